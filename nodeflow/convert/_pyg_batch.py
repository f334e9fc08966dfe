"""NodeFlows as batches of PyTorch Geometric's loaders: one graph of all layers, with counts per hop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._rows.rows import first_rows
from nodeflow.convert._pyg_data import data_class, make_data
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from torch_geometric.data import Data

RESERVED = frozenset(
    {
        "batch", "batch_size", "e_id", "edge_index", "edge_weight", "input_id", "n_id", "num_nodes",
        "num_sampled_edges", "num_sampled_nodes", "seed_data", "seed_ids", "seed_index",
    }
)  # fmt: skip
"""Names of the attributes of a batch that are no columns."""


def node_flow_data(batch: NodeFlow) -> Data:
    """Return ``Data`` with one graph of all layers of a NodeFlow; ``to_pyg`` says what is in it."""
    data_class()  # before anything is computed
    _check_nested(batch)
    ndata = _merged([layer.data for layer in batch.layers], "layer")
    edata = _merged([flow.data for flow in batch.flows], "flow")
    if "edge_weight" in edata:
        raise ValueError(
            "a flow has a column 'edge_weight', the name that estimator weights have in PyTorch Geometric; give it "
            "another name. A sampler with weight='edge_weight' needs no such column: its estimator weights hold it"
        )
    front, back = batch.front, batch.back
    nodes, edges = ([sizes[-1], *steps(sizes)] for sizes in (batch.layer_sizes, batch.flow_sizes or (0,)))
    parts: dict[str, Any] = {"num_nodes": front.num_nodes, "batch_size": back.num_nodes}
    parts |= {"num_sampled_nodes": nodes, "num_sampled_edges": edges if batch.num_flows else []}
    if front.has_parent:
        parts["n_id"] = front.parent_nid
    if front.context is not None:
        parts["batch"] = front.context
    if batch.num_flows:
        flow = batch.flows[0]
        parts |= {"edge_index": torch.stack(flow.edges()), "edge_weight": flow.weight}
        if flow.has_parent:
            parts["e_id"] = flow.parent_eid
    else:
        parts["edge_index"] = torch.zeros((2, 0), dtype=torch.int64, device=batch.device)
    parts["seed_index"] = batch.seed_index
    if batch.has_seed_ids:
        parts["seed_ids"] = batch.seed_ids
    if batch.seed_data:
        parts["seed_data"] = dict(batch.seed_data)
    return make_data(parts, ndata, edata, RESERVED)


def steps(sizes: Sequence[int]) -> list[int]:
    """Differences of sizes, from the seeds' side."""
    return [more - less for less, more in pairwise(reversed(sizes))]


def _check_nested(batch: NodeFlow) -> None:
    """Raise ValueError unless every flow is the first part of the flow before it, and every layer of its layer."""
    if len(batch.flows.pairs()) > batch.num_flows:
        raise ValueError(f"one graph cannot hold flows that skip layers, got the flows {batch.flows.pairs()}")
    for i, flow in enumerate(batch.flows):
        if not torch.equal(flow.dst_in_src, torch.arange(flow.num_dst, device=batch.device)):
            raise ValueError(
                f"layer {i} must begin with the nodes of layer {i + 1}, in their order: sample with include_dst=True"
            )
        if i and not _is_prefix(flow, batch.flows[i - 1]):
            raise ValueError(
                f"flow {i} is not a part of flow {i - 1}: nodes drew neighbours anew in every flow, and one graph of "
                "all layers cannot hold that. Sample with reuse=True, or run a layer of PyTorch Geometric on every "
                "flow: conv((h, flow.take_dst(h)), torch.stack(flow.edges()))"
            )


def _is_prefix(flow: Flow, outer: Flow) -> bool:
    nodes, edges = flow.num_dst, flow.num_edges
    if outer.num_dst < nodes or outer.num_edges < edges or flow.has_parent != outer.has_parent:
        return False
    same = torch.equal(flow.indptr, outer.indptr[: nodes + 1]) and torch.equal(flow.indices, outer.indices[:edges])
    if same and flow.has_parent:
        same = torch.equal(flow.parent_eid, outer.parent_eid[:edges])
    return same and torch.equal(flow.weight, outer.weight[:edges])


def _merged(frames: Sequence[Frame], what: str) -> dict[str, Tensor]:
    """Return every column once, that of the first frame that has it; ValueError where a later one has other rows."""
    columns: dict[str, Tensor] = {}
    for i, frame in enumerate(frames):
        for name, column in frame.items():
            if name in columns and not _same(first_rows(columns[name], len(column)), column):
                raise ValueError(
                    f"column {name!r} of {what} {i} differs from that of an earlier {what}, and Data holds one row per "
                    "node or edge; delete one of them, or give it another name"
                )
            columns.setdefault(name, column)
    return columns


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout == torch.sparse_csr:
        parts = ("crow_indices", "col_indices", "values")
        return all(_same(getattr(one, part)(), getattr(other, part)()) for part in parts)
    return bool(((one == other) | ((one != one) & (other != other))).all())  # NaN is the same as NaN
