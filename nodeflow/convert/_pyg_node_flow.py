"""NodeFlows from the batches of PyTorch Geometric's loaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._base.checks import as_count, describe
from nodeflow._base.frozen import Lazy
from nodeflow._rows.rows import take_rows
from nodeflow.convert._columns import check_names
from nodeflow.convert._pyg_batch import RESERVED, steps
from nodeflow.convert._pyg_data import check_data, with_rows
from nodeflow.flow import Flow, Layer, NodeFlow, check_graph
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from nodeflow.flow import FlowParts


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

    Tensors with a row per node or edge become columns of the first layer or flow. Those with fewer rows go to the layer
    or flow that has so many. Other attributes are left out. Edges are sorted by destination where they are not, with
    their columns.

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
    check_data(data)
    if parent is not None:
        check_graph(parent, "parent")
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"data must have an edge_index, got {describe(data)}")
    num_nodes = int(data.num_nodes)
    index = data.edge_index
    src, dst = index.as_tensor() if hasattr(index, "as_tensor") else index
    order = None
    if bool((dst[1:] < dst[:-1]).any()):
        order = torch.argsort(dst, stable=True)
        src, dst = src[order], dst[order]
    counts = torch.bincount(dst, minlength=num_nodes) if len(dst) else dst.new_zeros(num_nodes)
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
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
    batch = NodeFlow(
        layers,
        flows,
        parent=parent,
        seed_index=getattr(data, "seed_index", None),
        seed_ids=getattr(data, "seed_ids", None),
    )
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
    """Find the hops again: a hop ends with the last node that the destinations before it reach."""
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
            f"num_sampled_nodes, have {steps([*edges, 0])} edges"
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
        check_names(names, argument)
        if (unknown := next((name for name in names or () if name not in data), None)) is not None:
            raise KeyError(f"{argument}: data has no attribute {unknown!r}; it has {', '.join(data.keys())}")
        wanted += names or ()
    if None not in named:
        return wanted
    others = (RESERVED - {"edge_weight"}) | {weight}
    return [name for name in list(data.keys()) if name not in others]
