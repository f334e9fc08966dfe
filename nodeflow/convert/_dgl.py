"""Graphs from and to DGL, and NodeFlows from and to its message-flow graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import describe
from nodeflow._core.rows.rows import whole_column
from nodeflow.convert._columns import PLAIN, library, merged, of_types
from nodeflow.flow import Flow, NodeFlow, create_node_flow, flow_from_edges
from nodeflow.graph import Graph

if TYPE_CHECKING:
    import dgl

_DGL = "dgl", "DGL", "see https://www.dgl.ai/pages/start.html for how to install it"
_ID = "_ID"
_WEIGHT = "edge_weights"
"""DGL's names of the columns of parent ids (``dgl.NID``, ``dgl.EID``) and of estimator weights
(``LaborSampler``).
"""


def from_dgl(graph: dgl.DGLGraph) -> Graph:
    """Return the graph of a DGL graph, with its types and all columns; ids stay, within types.

    The types of ``dgl.graph``, "_N" and "_E", are those of a graph without types. Raises TypeError
    for other objects.
    """
    if not hasattr(graph, "canonical_etypes"):
        raise TypeError(f"graph must be a graph of DGL, got {describe(graph)}")
    if getattr(graph, "is_block", False):
        raise TypeError(
            "graph is a block of DGL; from_dgl_blocks makes a NodeFlow of a list of them"
        )
    nodes: dict[str, Any] = {
        t: dict(graph.nodes[t].data) or graph.num_nodes(t) for t in graph.ntypes
    }
    edges = {
        r: (*graph.edges(etype=r, order="eid"), dict(graph.edges[r].data))
        for r in graph.canonical_etypes
    }
    # the names that DGL gives to the types of a graph without types
    if {*nodes, *edges} == {"_N", ("_N", "_E", "_N")}:
        nodes = {"node": nodes["_N"]}
        edges = {("node", "edge", "node"): edges["_N", "_E", "_N"]}
    return Graph.typed(nodes, edges)


@checked
def to_dgl(graph: Graph) -> dgl.DGLGraph:
    """Return a DGL graph with the types of a graph and all columns; ids stay, within types.

    A graph without types becomes a homogeneous one. DGL sorts the names of types. Columns of all
    nodes, or of all edges, become columns of each type. Raises ValueError for a column that a type
    has too, ImportError without DGL.
    """
    module = library(*_DGL)
    nodes, edges = of_types(graph)
    if {*nodes, *edges} == PLAIN:
        nodes = {"_N": nodes["node"]}
        edges = {("_N", "_E", "_N"): edges["node", "edge", "node"]}
    sizes = {name: size for name, (size, _) in nodes.items()}
    dgl_graph: dgl.DGLGraph = module.heterograph(
        {r: (src, dst) for r, (src, dst, _) in edges.items()}, sizes
    )
    for name, (_, columns) in nodes.items():
        _fill(dgl_graph.nodes[name].data, columns)
    for relation, (_, _, columns) in edges.items():
        _fill(dgl_graph.edges[relation].data, columns)
    return dgl_graph


@checked
def from_dgl_blocks(blocks: Sequence[dgl.DGLGraph], *, parent: Graph | None = None) -> NodeFlow:
    """Return the NodeFlow of DGL's message-flow graphs, inputs first, as DGL's samplers return
    them.

    Source nodes of block i are layer i, its edges are flow i, and its destination nodes are layer i
    + 1. The columns ``dgl.NID`` and ``dgl.EID`` become parent ids, and ``edge_weights`` (the name
    that ``dgl.dataloading.LaborSampler`` uses) estimator weights. All other columns stay. Edges are
    sorted by destination where they are not.

    Args:
        blocks: one or more blocks; the destinations of one are the sources of the next.
        parent: the graph that the parent ids belong to.

    Raises ValueError for blocks that do not follow one another, or whose columns of a shared layer
    differ; TypeError for other objects; IndexError for a parent id that ``parent`` does not have.
    """
    if (
        not isinstance(blocks, Sequence)
        or not blocks
        or not all(getattr(b, "is_block", False) for b in blocks)
    ):
        raise TypeError(
            f"blocks must be a list of one or more blocks of DGL, got {describe(blocks)}"
        )
    flows = list(map(_flow, blocks))
    # a layer is the destinations of one block and the sources of the next
    columns = [dict(blocks[0].srcdata)]
    for i, block in enumerate(blocks, 1):
        words = f"layer {i} differs between the destinations of block {i - 1} and the sources of "
        sources = blocks[i].srcdata if i < len(blocks) else {}
        words += f"block {i}"
        columns.append(merged([(dict(block.dstdata), words), (dict(sources), words)]))
    ids = [of_layer.pop(_ID, None) for of_layer in columns]
    batch = create_node_flow(flows, ids, parent=parent)
    for layer, of_layer in zip(batch.layers, columns, strict=True):
        layer.data.update(of_layer)
    return batch


@checked
def to_dgl_blocks(batch: NodeFlow) -> list[dgl.DGLGraph]:
    """Return the flows of a NodeFlow as DGL's message-flow graphs, inputs first.

    Block i has the edges of flow i in their order, with local ids. ``srcdata`` and ``dstdata`` have
    the columns of layers i and i + 1, ``edata`` those of the flow. Parent ids are in ``dgl.NID``
    and ``dgl.EID`` where there are any, estimator weights in ``edata["edge_weights"]``. Seeds that
    repeat are one row; ``batch.seed_index`` has the repeats.

    Raises ValueError for flows that skip layers, contexts, and columns with one of these names;
    ImportError without DGL.
    """
    create_block = library(*_DGL).create_block
    if len(batch.flows.pairs()) > batch.num_flows:
        raise ValueError(
            f"blocks of DGL cannot hold flows that skip layers, got the flows {batch.flows.pairs()}"
        )
    if batch.parent is not None:
        batch.parent.schema.check_one_type("to_dgl_blocks")
    if any(layer.context is not None for layer in batch.layers):
        raise ValueError(
            "blocks of DGL cannot hold a node in several contexts (seeds or times), which this "
            "batch has"
        )
    blocks = []
    for flow in batch.flows:
        block = create_block(flow.edges(), num_src_nodes=flow.num_src, num_dst_nodes=flow.num_dst)
        for frame, layer in ((block.srcdata, flow.src_layer), (block.dstdata, flow.dst_layer)):
            _fill(frame, layer.data, **{_ID: layer.parent_nid if layer.has_parent else None})
        ids = None
        if flow.has_parent:
            ids = flow.parent_eid
        _fill(block.edata, flow.data, **{_ID: ids, _WEIGHT: flow.weight})
        blocks.append(block)
    return blocks


def _fill(frame: Any, columns: Mapping[str, Tensor], **more: Tensor | None) -> None:
    if taken := [name for name in more if name in columns]:
        raise ValueError(
            f"DGL's blocks keep the column name {taken[0]!r} for ids and weights; give yours "
            "another name"
        )
    for name, column in {**columns, **more}.items():
        if column is not None:
            frame[name] = whole_column(column)


def _flow(block: Any) -> Flow:
    columns = dict(block.edata)
    return flow_from_edges(
        *block.edges(order="eid"),
        num_src=block.num_src_nodes(),
        num_dst=block.num_dst_nodes(),
        parent_eid=columns.pop(_ID, None),
        weight=columns.pop(_WEIGHT, None),
        data=columns,
    )
