"""Tables of NodeFlows, layers and flows for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeflow._display.columns import column_table
from nodeflow._display.html import funnel, page

if TYPE_CHECKING:
    from nodeflow.flow._flow import Flow
    from nodeflow.flow._layer import Layer
    from nodeflow.flow._node_flow import NodeFlow

_IDS = 10


def node_flow_html(batch: NodeFlow) -> str:
    """Return the sizes of layers and flows as a small picture, and the columns of their frames."""
    flows = list(batch.flows.items())
    skips = "".join(f", {i} → {j}: {flow.num_edges:,} edges" for (i, j), flow in flows if j != i + 1)
    words = f"{batch.num_flows} flows, {sum(batch.layer_sizes):,} nodes, {sum(batch.flow_sizes):,} edges{skips}"
    frames = [(f"layer {i}", layer.data) for i, layer in enumerate(batch.layers)]
    frames += [(f"flow {i}" if j == i + 1 else f"flow {i}, {j}", flow.data) for (i, j), flow in flows]
    frames.append(("seeds", batch.seed_data))
    return page("NodeFlow", words, funnel(batch.layer_sizes, batch.flow_sizes), column_table(frames, "frame"))


def layer_html(layer: Layer) -> str:
    """Return the number of nodes, the first parent ids, and the columns."""
    words = f"{layer.num_nodes:,} nodes"
    if not layer.has_parent:
        words += ", without parent ids"
    elif layer.parent_nid.device.type == "cpu":
        words += f", parent ids {_first(layer.parent_nid[:_IDS].tolist(), layer.num_nodes)}"
    if layer.context is not None:
        words += ", in contexts"
    return page("Layer", words, column_table([("", layer.data)]))


def flow_html(flow: Flow) -> str:
    """Return the numbers of nodes and edges, and the columns; parts that are made when asked for stay unmade."""
    mean = flow.num_edges / max(flow.num_dst, 1)
    words = (
        f"layer {flow.layers[0]} → layer {flow.layers[1]}: {flow.num_src:,} sources, {flow.num_dst:,} destinations, "
        f"{flow.num_edges:,} edges ({mean:.3g} per destination)"
    )
    return page("Flow", words, column_table([("", flow.data)]))


def _first(ids: list[int], count: int) -> str:
    return ", ".join(map(str, ids)) + (", …" if count > len(ids) else "")
