"""NodeFlows to and from batches of PyTorch Geometric's loaders: one graph of all layers, with counts per hop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nodeflow._base.checks import as_count, describe
from nodeflow._base.frozen import Lazy
from nodeflow._rows.rows import slice_rows, take_rows
from nodeflow.convert._columns import by_destination
from nodeflow.convert._pyg_data import check_attributes, data_class, edge_index, make_data, with_rows
from nodeflow.flow import Flow, Layer, NodeFlow, check_graph
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from nodeflow.flow import FlowParts


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
    parts = {name: part for name, part_of in _PARTS.items() if (part := part_of(batch, edges)) is not None}
    return make_data(parts, ndata, edata, _PARTS.keys())


def _steps(sizes: Sequence[int]) -> list[int]:
    """Return the differences of sizes, from the seeds' side."""
    return [more - less for less, more in pairwise(reversed(sizes))]


def _per_hop(sizes: Sequence[int], edges: _Edges) -> list[int] | None:
    """Return the number of nodes or edges that each hop adds; None if nodes drew anew: hops are then no prefixes."""
    return [*sizes[-1:], *_steps(sizes)] if edges.nested else None


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


_PARTS: dict[str, Callable[[NodeFlow, _Edges], Any]] = {
    "num_nodes": lambda batch, _: batch.front.num_nodes,
    "batch_size": lambda batch, _: batch.back.num_nodes,
    "num_sampled_nodes": lambda batch, edges: _per_hop(batch.layer_sizes, edges),
    "num_sampled_edges": lambda batch, edges: _per_hop(batch.flow_sizes, edges),
    "edge_index": lambda _, edges: torch.stack(edges.ends),
    "edge_weight": lambda _, edges: edges.weight,
    "e_id": lambda _, edges: edges.eid,
    "n_id": lambda batch, _: batch.front.parent_nid if batch.front.has_parent else None,
    "batch": lambda batch, _: batch.front.context,
    "seed_index": lambda batch, _: batch.seed_index,
    "seed_ids": lambda batch, _: batch.seed_ids if batch.has_seed_ids else None,
    "seed_data": lambda batch, _: dict(batch.seed_data) or None,
    "input_id": lambda batch, _: batch.seed_data.get("index"),
}
"""Attributes of a batch that are no columns."""


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
    """The edges of flows that draw neighbours independently."""
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
    """Return every column once, from the first frame that has it; ValueError if the rows of a later one differ."""
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


def from_pyg_batch(
    data: Data,
    *,
    parent: Graph | None = None,
    num_flows: int | None = None,
    node_columns: Sequence[str] | None = None,
    edge_columns: Sequence[str] | None = None,
    weight: str | None = "edge_weight",
) -> NodeFlow:
    """Return the NodeFlow of a batch of PyTorch Geometric: of ``NeighborLoader``, or made by ``to_pyg``.

    The NodeFlow has a layer more than the batch has hops. Layers and flows are prefixes of one structure, because in
    such a batch a node has the same in-edges in every layer of the model.

    Tensors with a row per node or edge become columns of the first layer or flow. Tensors with fewer rows go to the
    layer or flow of that size. Other attributes are left out. Unsorted edges are sorted by destination, with their
    columns.

    Args:
        data: the batch, with ``edge_index`` and ``num_sampled_nodes``; ``n_id`` and ``e_id`` become parent ids.
        parent: the graph that ``n_id`` and ``e_id`` belong to.
        num_flows: number of hops, for batches without ``num_sampled_nodes``: ``NeighborLoader`` counts only where
            ``pyg-lib`` is installed. The hops are then found again from ``batch_size`` and the edges. None reads
            ``num_sampled_nodes``.
        node_columns, edge_columns: names of the attributes that become columns of nodes or of edges. None tells by the
            number of rows; where a layer and a flow have as many, the word "edge" in the name tells a column of edges.
            With both, no other attribute becomes a column.
        weight: name of the attribute with estimator weights, if it is there; None: the weights are 1. A loader of
            PyTorch Geometric has the graph's own numbers in ``edge_weight``, which are no estimator weights of a
            sample: pass None, and they become a column.

    Raises TypeError for another class, ValueError for a batch without these attributes and for counts that do not fit
    its edges, KeyError for a named attribute that is not there; IndexError for a parent id that ``parent`` does not
    have.

    >>> from nodeflow import FullSampler
    >>> from nodeflow.convert import to_pyg
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> from_pyg_batch(to_pyg(FullSampler(graph, 2)([3])), parent=graph)
    NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
    """
    ends, num_nodes = edge_index(data), int(data.num_nodes)
    if parent is not None:
        check_graph(parent, "parent")
    indptr, src, order = by_destination(ends[0], ends[1], num_nodes)
    sizes = _layer_sizes(data, num_nodes) if num_flows is None else _found_sizes(data, src, indptr, num_flows)
    edges = [int(indptr[size]) for size in sizes[1:]]
    _check_counts(data, sizes, edges, src)

    def rows_of_edges(column: Tensor) -> Tensor:
        if order is not None and len(column) < len(order):
            raise ValueError("columns of some hops only need edges that are sorted by destination")
        return column if order is None else take_rows(column, order)

    named = _known(data, "n_id", num_nodes), _known(data, "e_id", len(src)), _known(data, "batch", num_nodes)
    n_id, e_id, context = (None if ids is None else ids.to(torch.int64) for ids in named)
    scale = None if weight is None else _known(data, weight, len(src))
    ldata, fdata = _split(data, sizes, edges, (node_columns, edge_columns), weight, rows_of_edges)
    layers = [
        Layer._trusted(size, _prefix(n_id, size), ldata[i], context=_prefix(context, size))
        for i, size in enumerate(sizes)
    ]
    flows = []
    for i, count in enumerate(edges):
        structure = Structure(indptr[: sizes[i + 1] + 1], src[:count], sizes[i])
        more: FlowParts = {"data": fdata[i], "rows": Lazy.of(None)}
        if e_id is not None:
            more["parent_eid"] = Lazy.of(rows_of_edges(e_id)[:count])
        if scale is not None:
            more["weight"] = Lazy.of(rows_of_edges(scale)[:count])
        flows.append(Flow._trusted(structure, layers[i], layers[i + 1], (i, i + 1), **more))
    seeds = {name: getattr(data, name, None) for name in ("seed_index", "seed_ids")}
    batch = NodeFlow(layers, flows, parent=parent, **seeds)
    batch.seed_data.update(getattr(data, "seed_data", None))
    return batch


def _layer_sizes(data: Any, num_nodes: int) -> list[int]:
    counts = getattr(data, "num_sampled_nodes", None)
    if counts is None:
        raise ValueError(
            "data has no num_sampled_nodes, so it is no batch of a loader with counts per hop; pass num_flows= for a "
            "batch of NeighborLoader without pyg-lib, and a whole graph to from_pyg"
        )
    sizes = list(accumulate(as_count(int(count), "num_sampled_nodes") for count in counts))
    if not sizes or sizes[-1] != num_nodes:
        raise ValueError(f"num_sampled_nodes must add up to the {num_nodes} nodes of data, got {list(counts)}")
    return sizes[::-1]


def _found_sizes(data: Any, src: Tensor, indptr: Tensor, num_flows: int) -> list[int]:
    """Recover the hops: a hop ends with the last node that earlier destinations reach."""
    sizes = [as_count(int(getattr(data, "batch_size", 0)), "batch_size")]
    for _ in range(as_count(num_flows, "num_flows")):
        reached = src[: int(indptr[sizes[-1]])]
        sizes.append(max(sizes[-1], int(reached.max()) + 1 if len(reached) else 0))
    if sizes[-1] != int(data.num_nodes):
        raise ValueError(
            f"data has {int(data.num_nodes)} nodes, but {num_flows} hops from its {sizes[0]} seeds reach {sizes[-1]}; "
            "num_flows must be the number of hops that were sampled"
        )
    return sizes[::-1]


def _check_counts(data: Any, sizes: Sequence[int], edges: Sequence[int], src: Tensor) -> None:
    counts = getattr(data, "num_sampled_edges", None)
    if counts is not None and list(accumulate(int(count) for count in counts)) != list(edges)[::-1]:
        raise ValueError(
            f"num_sampled_edges {list(counts)} does not fit the edges: the destinations of the hops, in the order of "
            f"num_sampled_nodes, have {_steps([*edges, 0])} edges"
        )
    if (edges[0] if edges else 0) != len(src):
        raise ValueError(
            f"edges must end at nodes of the hops before the last, but {len(src) - (edges or [0])[0]} do not"
        )


def _known(data: Any, name: str, num_rows: int) -> Tensor | None:
    value = getattr(data, name, None)
    if value is None:
        return None
    if not with_rows(value, num_rows):
        raise ValueError(f"{name} must be a tensor with {num_rows} rows, got {describe(value)}")
    return value  # type: ignore[no-any-return]


def _prefix(ids: Tensor | None, size: int) -> Tensor | None:
    return None if ids is None else ids[:size]


def _split(
    data: Any,
    sizes: Sequence[int],
    edges: Sequence[int],
    named: tuple[Sequence[str] | None, Sequence[str] | None],
    weight: str | None,
    rows_of_edges: Callable[[Tensor], Tensor],
) -> tuple[list[Frame], list[Frame]]:
    """Return the frames of all layers and flows, with the attributes that have as many rows as one of them.

    ``named`` are the columns of nodes and of edges that the caller names.
    """
    layers, flows = [Frame(size) for size in sizes], [Frame(count) for count in edges]
    for name in _column_names(data, named, weight):
        groups: tuple[list[Frame], ...] = (flows, layers) if "edge" in name else (layers, flows)
        for names, own in zip(named, (layers, flows), strict=True):
            groups = (own,) if name in (names or ()) else groups
        column = data[name]
        rows = column.shape[0] if isinstance(column, Tensor) and column.ndim else None
        frame = next((frame for group in groups for frame in group if frame.num_rows == rows), None)
        if frame is None and len(groups) == 1:
            raise ValueError(f"{name!r} must be a tensor with as many rows as a layer or flow, got {describe(column)}")
        if frame is not None:
            frame[name] = rows_of_edges(column) if any(frame is flow for flow in flows) else column
    return layers, flows


def _column_names(data: Any, named: tuple[Sequence[str] | None, Sequence[str] | None], weight: str | None) -> list[str]:
    """Return the attributes that may be columns; where both kinds are named, these only."""
    wanted: list[str] = []
    for names, argument in zip(named, ("node_columns", "edge_columns"), strict=True):
        check_attributes(data, names, argument)
        wanted += names or ()
    if None not in named:
        return wanted
    others = (_PARTS.keys() - {"edge_weight"}) | {weight}
    return [name for name in list(data.keys()) if name not in others]
