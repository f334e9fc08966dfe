"""Graphs of PyTorch Geometric, and NodeFlows of the batches of its loaders."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_count, describe
from nodeflow._core.base.frozen import Lazy
from nodeflow._core.rows.rows import take_rows
from nodeflow.convert._columns import by_destination, chosen
from nodeflow.convert._to_pyg import PARTS, per_hop
from nodeflow.flow import Flow, Layer, NodeFlow
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData


def from_pyg(
    data: Data | HeteroData,
    *,
    node_columns: Sequence[str] | None = None,
    edge_columns: Sequence[str] | None = None,
) -> Graph:
    """Return the graph of a PyTorch Geometric ``Data`` object, or the graph with types of a
    ``HeteroData`` object.

    Edge ids follow ``edge_index``. Tensors with a row per node or per edge become columns under
    their own names (``x``, ``y``, ``edge_attr``, ...). Other attributes are left out: lists, arrays,
    further ids of nodes (``edge_label_index``), and those of a whole ``HeteroData``. The batch of a
    loader becomes a NodeFlow by ``from_pyg_batch``.

    Args:
        data: the object.
        node_columns, edge_columns: names of the attributes that become columns of nodes or of
            edges. None takes those that ``Data`` holds to be such: it counts rows, and where there
            are as many nodes as edges, the word "edge" in the name tells an edge column. Of
            ``HeteroData`` each type gives those that it has.

    Raises ValueError for an object without ``edge_index`` or a type without ``num_nodes``, and for
    a named attribute that is no tensor or has another number of rows; TypeError for another class,
    KeyError for a name that is not there.

    >>> import torch_geometric.data
    >>> from_pyg(torch_geometric.data.Data(x=torch.ones(3, 8), edge_index=torch.tensor([[0, 1], [1, 2]])))
    Graph(3 nodes, 2 edges, ndata: x)
    """
    if hasattr(data, "node_types"):
        return _from_hetero(data, node_columns, edge_columns)
    src, dst = _edge_index(data)
    num_nodes = int(data.num_nodes)
    ndata = Frame(num_nodes)
    edata = Frame(len(src))
    _split_columns(data, [ndata], [edata], (node_columns, edge_columns), frozenset())
    return Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)


def _from_hetero(
    data: Any, node_columns: Sequence[str] | None, edge_columns: Sequence[str] | None
) -> Graph:
    kinds = (
        ("node_columns", node_columns, data.node_stores),
        ("edge_columns", edge_columns, data.edge_stores),
    )
    for argument, names, stores in kinds:
        for name in chosen(names or (), (), argument):
            if not any(name in store for store in stores):
                raise KeyError(f"{argument}: no type of data has the attribute {name!r}")
    nodes = {}
    edges = {}
    for of_type, store in data.node_items():
        if not store.can_infer_num_nodes:
            raise ValueError(
                f"data[{of_type!r}] must say how many nodes there are; set its num_nodes"
            )
        frame = Frame(int(store.num_nodes))
        _split_columns(store, [frame], [], (_in(store, node_columns), ()), frozenset(), data)
        nodes[of_type] = frame or frame.num_rows
    for relation, store in data.edge_items():
        src, dst = _edge_index(store, f"data[{relation}]")
        frame = Frame(len(src))
        _split_columns(store, [], [frame], ((), _in(store, edge_columns)), frozenset(), data)
        edges[relation] = src, dst, frame
    return Graph.typed(nodes, edges)


def _in(store: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return those of the names that a type has; None stays."""
    return None if names is None else [name for name in names if name in store]


@checked
def from_pyg_batch(
    data: Data,
    *,
    parent: Graph | None = None,
    num_flows: int | None = None,
    node_columns: Sequence[str] | None = None,
    edge_columns: Sequence[str] | None = None,
    weight: str | None = "edge_weight",
) -> NodeFlow:
    """Return the NodeFlow of a batch of PyTorch Geometric: of ``NeighborLoader``, or made by
    ``to_pyg``.

    The NodeFlow has a layer more than the batch has hops. Layers and flows are prefixes of one
    structure: a node has the same in-edges in every layer of the model. Tensors become columns of
    the first layer or flow with as many rows; other attributes are left out. Unsorted edges are
    sorted by destination, with their columns.

    Args:
        data: the batch, with ``edge_index`` and ``num_sampled_nodes``; ``n_id`` and ``e_id`` become
            parent ids.
        parent: the graph that ``n_id`` and ``e_id`` belong to.
        num_flows: number of hops, for batches without ``num_sampled_nodes`` (``NeighborLoader``
            without ``pyg-lib``); the hops are then found again from ``batch_size`` and the edges.
            None reads ``num_sampled_nodes``.
        node_columns, edge_columns: names of the attributes that become columns of nodes or of
            edges. None tells by the number of rows; where a layer and a flow have as many, the word
            "edge" in the name tells a column of edges. With names of a kind, no other attribute
            becomes a column of it.
        weight: name of the attribute with estimator weights, if it is there; None: the weights are
            1. Loaders of PyTorch Geometric keep the graph's own numbers in ``edge_weight``: pass
            None, and they become a column.

    Raises TypeError for another class, ValueError for a batch without these attributes and for
    counts that do not fit its edges, KeyError for a named attribute that is not there; IndexError
    for a parent id that ``parent`` does not have.

    >>> from nodeflow import FullSampler
    >>> from nodeflow.convert import to_pyg
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> from_pyg_batch(to_pyg(FullSampler(graph, 2)([3])), parent=graph)
    NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
    """
    # one structure for all flows: a node has the same in-edges in each
    src, dst = _edge_index(data)
    num_nodes = int(data.num_nodes)
    indptr, src, order = by_destination(src, dst, num_nodes)
    if num_flows is None:
        sizes = _layer_sizes(data, num_nodes)
    else:
        sizes = _found_sizes(data, src, indptr, num_flows)
    ldata = [Frame(size) for size in sizes]
    fdata = [Frame(int(indptr[size])) for size in sizes[1:]]
    _check_counts(data, [frame.num_rows for frame in fdata], src)
    parts = PARTS - {"edge_weight"} | {str(weight)}
    _split_columns(data, ldata, fdata, (node_columns, edge_columns), parts)
    # columns came in the order of the batch's edges, and flows keep edges by destination
    if order is not None:
        if any(fdata[1:]):
            raise ValueError("columns of some hops only need edges that are sorted by destination")
        for frame in fdata[:1]:
            frame.update({name: take_rows(column, order) for name, column in frame.items()})
    layers = _layers_of(data, ldata)
    e_id = _known(data, "e_id", len(src), order)
    weights = _known(data, weight, len(src), order)
    flows = []
    for i, frame in enumerate(fdata):
        structure = Structure(indptr[: sizes[i + 1] + 1], src[: frame.num_rows], sizes[i])
        flow = Flow._trusted(
            structure,
            layers[i],
            layers[i + 1],
            (i, i + 1),
            parent_eid=_lazy(_first(e_id, frame)),
            weight=_lazy(_first(weights, frame)),
            data=frame,
            prefix=True,
        )
        flows.append(flow)
    batch = NodeFlow(
        layers,
        flows,
        parent=parent,
        seed_index=getattr(data, "seed_index", None),
        seed_ids=getattr(data, "seed_ids", None),
    )
    batch.seed_data.update(getattr(data, "seed_data", None))
    return batch


def _layers_of(data: Any, frames: Sequence[Frame]) -> list[Layer]:
    """Return the layers, each of which is the first part of the one before it."""
    n_id = _known(data, "n_id", frames[0].num_rows)
    context = _known(data, "batch", frames[0].num_rows)
    layers = []
    for frame in frames:
        ids = _first(n_id, frame)
        layers.append(Layer._trusted(frame.num_rows, ids, frame, context=_first(context, frame)))
    return layers


def _first(column: Tensor | None, frame: Frame) -> Tensor | None:
    """Return as many rows of a column as a frame has; None where there is no column."""
    return None if column is None else column[: frame.num_rows]


def _lazy(column: Tensor | None) -> Any:
    return None if column is None else Lazy.of(column)


def _layer_sizes(data: Any, num_nodes: int) -> list[int]:
    counts = getattr(data, "num_sampled_nodes", None)
    if counts is None:
        raise ValueError(
            "data has no num_sampled_nodes, so it is no batch of a loader with counts per hop; "
            "pass num_flows= for a batch of NeighborLoader without pyg-lib, and a whole graph to "
            "from_pyg"
        )
    # the library counts what each hop adds, seeds first; layers are whole, seeds last
    of_hops = [as_count(int(count), "num_sampled_nodes") for count in counts]
    sizes = list(accumulate(of_hops))
    if not sizes or sizes[-1] != num_nodes:
        raise ValueError(
            f"num_sampled_nodes must add up to the {num_nodes} nodes of data, got {list(counts)}"
        )
    return sizes[::-1]


def _found_sizes(data: Any, src: Tensor, indptr: Tensor, num_flows: int) -> list[int]:
    """Recover the hops: a hop ends with the last node that earlier destinations reach."""
    sizes = [as_count(int(getattr(data, "batch_size", 0)), "batch_size")]
    for _ in range(as_count(num_flows, "num_flows")):
        # without counts: the nodes that edges into the nodes so far come from
        reached = src[: int(indptr[sizes[-1]])]
        size = 0
        if len(reached):
            size = int(reached.max()) + 1
        sizes.append(max(sizes[-1], size))
    if sizes[-1] != int(data.num_nodes):
        raise ValueError(
            f"data has {int(data.num_nodes)} nodes, but {num_flows} hops from its {sizes[0]} seeds "
            f"reach {sizes[-1]}; num_flows must be the number of hops that were sampled"
        )
    return sizes[::-1]


def _check_counts(data: Any, edges: Sequence[int], src: Tensor) -> None:
    counts = getattr(data, "num_sampled_edges", None)
    if counts is not None and list(accumulate(int(count) for count in counts)) != list(edges)[::-1]:
        raise ValueError(
            f"num_sampled_edges {list(counts)} does not fit the edges: the destinations of the "
            f"hops, in the order of num_sampled_nodes, have {per_hop(edges)} edges"
        )
    if others := len(src) - max(edges, default=0):
        raise ValueError(
            f"edges must end at nodes of the hops before the last, but {others} do not"
        )


def _known(
    data: Any, name: str | None, num_rows: int, order: Tensor | None = None
) -> Tensor | None:
    """Return an attribute, ids as int64, with its rows in an order, or None where it is not
    there.
    """
    value: Tensor | None = None if name is None else getattr(data, name, None)
    if value is None:
        return None
    if not isinstance(value, Tensor) or _rows_of(value) != num_rows:
        raise ValueError(f"{name} must be a tensor with {num_rows} rows, got {describe(value)}")
    if not value.is_floating_point():
        value = value.to(torch.int64)
    return value if order is None else take_rows(value, order)


def _edge_index(data: Any, what: str = "data") -> Tensor:
    """Return the ends of the edges, int64 ``[2, E]``; raises the errors of ``from_pyg``."""
    if hasattr(data, "node_types"):
        raise TypeError(
            "a batch must have one type of nodes, got HeteroData; from_pyg takes a whole graph of "
            "several"
        )
    if not hasattr(data, "is_edge_attr"):
        raise TypeError(
            f"data must be a torch_geometric.data.Data or HeteroData, got {describe(data)}"
        )
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"{what} must have an edge_index, got {describe(data)}")
    index: Tensor = data.edge_index
    # an EdgeIndex is a subclass whose operations depend on its sort order: its plain tensor is
    # enough
    return index.as_tensor() if hasattr(index, "as_tensor") else index


def _rows_of(value: object) -> int | None:
    """Return the number of rows of a tensor; None for anything else."""
    return len(value) if isinstance(value, Tensor) and value.ndim else None


def _split_columns(
    data: Any,
    layers: Sequence[Frame],
    flows: Sequence[Frame],
    named: Sequence[Sequence[str] | None],
    parts: Set[str],
    whole: Any = None,
) -> None:
    """Put attributes as columns into the first layer or flow that has as many rows; see
    ``from_pyg_batch``.

    ``named`` are the columns of nodes and of edges that the caller names; None: all whose rows fit,
    but ``parts``. ``whole`` is the ``HeteroData`` of which ``data`` has one type.
    """
    kinds = [("node_columns", named[0], layers), ("edge_columns", named[1], flows)]
    columns = {name: data[name] for name in data.keys()}  # noqa: SIM118 - Data is no dict
    taken = set(parts)
    for argument, names, frames in kinds:
        for name in chosen(names or (), (), argument):
            if name not in columns:
                raise KeyError(
                    f"{argument}: data must have the attribute {name!r}, it has {', '.join(columns)}"
                )
            frame = _of_size(frames, _rows_of(columns[name]))
            if frame is None:
                sizes = " or ".join(str(frame.num_rows) for frame in frames)
                raise ValueError(
                    f"{argument}: {name!r} must be a tensor with {sizes} rows, got "
                    f"{describe(data[name])}"
                )
            frame[name] = columns[name]
            taken.add(name)
    for name in columns:
        if name not in taken and (whole or data).__cat_dim__(name, data[name], data) == 0:
            # where a layer and a flow have as many rows, the word tells
            for _, names, frames in reversed(kinds) if "edge" in name else kinds:
                frame = _of_size(frames, _rows_of(columns[name]))
                if frame is not None:
                    if names is None:
                        frame[name] = columns[name]
                    break


def _of_size(frames: Sequence[Frame], num_rows: int | None) -> Frame | None:
    """Return the first frame with that many rows, None where none has."""
    return next((frame for frame in frames if frame.num_rows == num_rows), None)
