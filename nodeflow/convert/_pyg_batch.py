"""NodeFlows as batches of PyTorch Geometric's loaders: one graph of all layers, with counts per hop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nodeflow._rows.rows import slice_rows
from nodeflow.convert._pyg_data import data_class, make_data
from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from torch_geometric.data import Data

RESERVED = frozenset(
    (
        "batch",
        "batch_size",
        "e_id",
        "edge_index",
        "edge_weight",
        "input_id",
        "n_id",
        "num_nodes",
        "num_sampled_edges",
        "num_sampled_nodes",
        "seed_data",
        "seed_ids",
        "seed_index",
    )
)
"""Names of the attributes of a batch that are no columns."""


def node_flow_data(batch: NodeFlow) -> Data:
    """Return ``Data`` with one graph of all layers of a NodeFlow; ``to_pyg`` says what is in it."""
    data_class()  # before anything is computed
    _check_layers(batch)
    edges = _edges(batch)
    ndata, edata = _merged([layer.data for layer in batch.layers], "layer"), edges.columns
    if "edge_weight" in edata:
        raise ValueError(
            "a flow has a column 'edge_weight', the name that estimator weights have in PyTorch Geometric; give it "
            "another name. A sampler with weight='edge_weight' needs no such column: its estimator weights hold it"
        )
    front, back = batch.front, batch.back
    parts: dict[str, Any] = {"num_nodes": front.num_nodes, "batch_size": back.num_nodes}
    if edges.nested:
        counts = [[sizes[-1], *steps(sizes)] if sizes else [] for sizes in (batch.layer_sizes, batch.flow_sizes)]
        parts |= {"num_sampled_nodes": counts[0], "num_sampled_edges": counts[1]}
    parts |= {"edge_index": torch.stack(edges.ends)}
    parts |= {name: value for name, value in (("edge_weight", edges.weight), ("e_id", edges.eid)) if value is not None}
    if front.has_parent:
        parts["n_id"] = front.parent_nid
    if front.context is not None:
        parts["batch"] = front.context
    parts["seed_index"] = batch.seed_index
    if batch.has_seed_ids:
        parts["seed_ids"] = batch.seed_ids
    if batch.seed_data:
        parts["seed_data"] = dict(batch.seed_data)
        if "index" in batch.seed_data:
            parts["input_id"] = batch.seed_data["index"]
    return make_data(parts, ndata, edata, RESERVED)


def steps(sizes: Sequence[int]) -> list[int]:
    """Differences of sizes, from the seeds' side."""
    return [more - less for less, more in pairwise(reversed(sizes))]


class _Edges(NamedTuple):
    """The edges of all flows, each once, grouped by destination.

    ``ends`` are rows of layer 0, two tensors ``[E]``; ``nested`` says whether a node has the same edges in all flows;
    ``weight`` are the estimator weights and ``eid`` the parent ids, ``[E]`` or None; ``columns`` have a row per edge.
    """

    ends: tuple[Tensor, Tensor]
    nested: bool
    weight: Tensor | None
    eid: Tensor | None
    columns: dict[str, Tensor]


def _check_layers(batch: NodeFlow) -> None:
    """Raise ValueError unless every layer is the first part of the layer before it."""
    if len(batch.flows.pairs()) > batch.num_flows:
        raise ValueError(f"one graph cannot hold flows that skip layers, got the flows {batch.flows.pairs()}")
    for i, flow in enumerate(batch.flows):
        if not torch.equal(flow.dst_in_src, torch.arange(flow.num_dst, device=batch.device)):
            raise ValueError(
                f"layer {i} must begin with the nodes of layer {i + 1}, in their order: sample with include_dst=True"
            )


def _edges(batch: NodeFlow) -> _Edges:
    flows = list(batch.flows)
    if not flows:
        empty = torch.zeros(0, dtype=torch.int64, device=batch.device)
        return _Edges((empty, empty), True, None, None, {})
    if all(_is_prefix(inner, outer) for outer, inner in pairwise(flows)):
        outer, columns = flows[0], _merged([flow.data for flow in flows], "flow")
        eid = outer.parent_eid if outer.has_parent else None
        return _Edges(outer.edges(), True, outer.weight, eid, columns)
    return _union(batch, flows)


def _union(batch: NodeFlow, flows: list[Flow]) -> _Edges:
    """The edges of flows whose nodes drew anew in each."""
    parents = all(flow.has_parent for flow in flows)
    src, dst = (torch.cat(ends) for ends in zip(*(flow.edges() for flow in flows), strict=True))
    eid = torch.cat([flow.parent_eid for flow in flows]) if parents else torch.full_like(src, -1)
    distinct, index = torch.unique(torch.stack([dst, src, eid]), dim=1, return_inverse=True)
    sizes = torch.tensor(batch.layer_sizes[1:], device=batch.device)
    # a node that drew in several flows has as many estimates of one sum: their mean is unbiased too
    draws = (dst[:, None] < sizes).sum(1)
    weight = torch.cat([flow.weight for flow in flows]) / draws
    mean = weight.new_zeros(distinct.shape[1]).index_add_(0, index, weight)
    names = {name for flow in flows for name in flow.data}
    for i, flow in enumerate(flows):
        if missing := names - set(flow.data):
            raise ValueError(
                f"flow {i} has no column {min(missing)!r}, which another flow has: nodes drew anew in every flow, so "
                "the graph of all edges needs it from each"
            )
    rows = torch.arange(len(index), device=batch.device)
    first = torch.full_like(distinct[0], len(index)).scatter_reduce_(0, index, rows, "amin")
    columns = {name: torch.cat([flow.data[name] for flow in flows])[first] for name in sorted(names)}
    return _Edges((distinct[1], distinct[0]), False, mean, distinct[2] if parents else None, columns)


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
            if name in columns and not _same(slice_rows(columns[name], 0, len(column)), column):
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
