"""Data of graphs in the way of DGL 0.4: structures made of what programs pass, and frames.

Frames have schemes, initialisers, rows of some ids, and can be written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import describe
from nodeflow._core.rows.rows import take_rows
from nodeflow.convert import from_networkx, from_scipy
from nodeflow.flow import written
from nodeflow.graph import Frame, Graph

Initializer: TypeAlias = Callable[..., Tensor]
"""A function of shape, dtype, device and range of ids that makes rows of a column."""


class Scheme(NamedTuple):
    """Shape of a row and dtype of a column."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Space(NamedTuple):
    """Result of ``g.nodes[v]`` and ``g.edges[e]``: their columns ``data``."""

    data: MutableMapping[str, Tensor]


class Rows(MutableMapping[str, Tensor]):
    """The rows ``ids`` of the columns of a frame. Setting a column sets these rows, in a new
    tensor.
    """

    def __init__(self, frame: Frame, ids: Tensor, where: str) -> None:
        self._frame = frame
        self._ids = ids
        self._where = where

    def __getitem__(self, name: str) -> Tensor:
        return take_rows(self._frame[name], self._ids)

    def __setitem__(self, name: str, values: Any) -> None:
        # a frame of these rows checks their number and type before anything is written
        column = Frame(len(self._ids), {name: values})[name]
        self._frame.update(written(self._frame, {name: column}, self._ids, self._where))

    def __delitem__(self, name: str) -> None:
        raise ValueError(
            f"column {name!r} cannot be deleted for some rows only: delete it from the whole frame"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame)

    def __len__(self) -> int:
        return len(self._frame)


def schemes(frame: Frame) -> dict[str, Scheme]:
    """Return the scheme of every column."""
    return {name: Scheme(tuple(column.shape[1:]), column.dtype) for name, column in frame.items()}


def as_initializer(function: Initializer) -> Initializer:
    """Return DGL's initialiser, which takes a range of ids too, as a Frame takes it."""
    return lambda shape, dtype, device: function(shape, dtype, device, slice(0, shape[0]))


@contextmanager
def in_place(frame: Frame, wanted: bool) -> Iterator[None]:
    """Put columns that are replaced inside into the memory of the old ones, without gradient, where
    that is wanted.
    """
    if wanted:
        before = frame.snapshot()
    else:
        before = {}
    yield
    for name, old in before.items():
        new = frame.get(name)
        if new is not None and new is not old and new.shape == old.shape and new.dtype == old.dtype:
            with torch.no_grad():
                old.copy_(new)
            frame[name] = old


def structure_of(data: Any) -> Graph:
    """Return the graph of ``data``, with edge ids in its order: see ``DGLGraph``. Raises TypeError
    for other data.
    """
    if data is None:
        return Graph.from_edges([], [], num_nodes=0)
    if isinstance(data, Graph):
        return data
    if isinstance(data, (list, tuple)):
        if not (isinstance(data, tuple) and len(data) == 2):
            if data:
                data = zip(*data, strict=True)
            else:
                data = ([], [])
        src, dst = map(np.asarray, data)
        if len(src) and min(src.min(), dst.min()) != 0:
            lowest = min(src.min(), dst.min())
            raise ValueError(f"nodes of an edge list must start from 0, got {lowest} as the lowest")
        return Graph.from_edges(src, dst)
    if not hasattr(data, "tocoo"):
        return of_networkx(data)
    size = max(data.shape)
    if data.shape != (size, size):  # missing rows or columns are empty
        data = data.tocoo(copy=True)
        data.resize(size, size)
    return from_scipy(data)


def of_networkx(data: Any, node_attrs: Iterable[str] = (), edge_attrs: Iterable[str] = ()) -> Graph:
    """Return the graph of a networkx graph, or of what ``networkx.DiGraph`` takes, with attributes
    as columns.

    Edge ids are the attribute ``id`` of the edges where they have it, else networkx's order. An
    undirected edge becomes two. The nodes must be 0 to n - 1.
    """
    import networkx

    if not isinstance(data, networkx.Graph):
        try:
            data = networkx.DiGraph(data)
        except Exception as error:
            raise TypeError(
                "a graph is made of an edge list, a scipy matrix or a networkx graph, got "
                f"{describe(data)}"
            ) from error
    size = data.number_of_nodes()
    if {*data.nodes} != {*range(size)}:
        raise TypeError(
            "networkx nodes must be the integers 0 to n - 1; DGLGraph().from_networkx(...) numbers "
            "others"
        )
    # a multigraph whose nodes come by id, and whose edges have their ids as keys
    ordered = networkx.MultiDiGraph()
    ordered.add_nodes_from((node, data.nodes[node]) for node in range(size))
    if data.is_directed():
        edges = data
    else:
        edges = data.to_directed()
    for number, (u, v, attributes) in enumerate(edges.edges(data=True)):
        ordered.add_edges_from([(u, v, int(attributes.get("id", number)), attributes)])
    if ordered.number_of_edges() < edges.number_of_edges():
        raise ValueError("edges must have distinct ids in their attribute 'id', but two share one")
    graph, _ = from_networkx(
        ordered, node_columns=[*node_attrs], edge_columns=[*edge_attrs], keys_are_ids=True
    )
    return graph


def sorted_by_source(graph: Graph) -> Graph:
    """Return a graph with the same columns in which the edges into a node are sorted by source."""
    indptr, indices, _ = graph.csc()
    order = np.lexsort((indices, np.repeat(np.arange(graph.num_nodes), np.diff(indptr))))
    ids = graph.stored_edge_ids[order]
    return Graph(indptr, indices[order], edge_ids=ids, ndata=graph.ndata, edata=graph.edata)


def ones(index: Tensor, shape: tuple[int, int], ctx: torch.device | str) -> Tensor:
    """Return the sparse tensor with a one, float32, at every entry of ``index`` ``[2, k]``."""
    return torch.sparse_coo_tensor(
        index, torch.ones(index.shape[1]), shape, check_invariants=False
    ).to(ctx)
