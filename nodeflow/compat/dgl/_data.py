"""Data of graphs in the way of DGL 0.4: structures made of what programs pass, and frames.

Frames have initialisers, and rows of some ids that can be set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor

from nodeflow._core.base.checks import describe
from nodeflow._core.rows.rows import take_rows
from nodeflow.convert import from_scipy
from nodeflow.flow import written
from nodeflow.graph import Frame, Graph

Initializer: TypeAlias = Callable[..., Tensor]
"""A function of shape, dtype, device and range of ids that makes rows of a column."""


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


def as_initializer(function: Initializer) -> Initializer:
    """Return DGL's initialiser, which takes a range of ids too, as a Frame takes it."""
    return lambda shape, dtype, device: function(shape, dtype, device, slice(0, shape[0]))


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


def of_networkx(data: Any) -> Graph:
    """Return the graph of a networkx graph, without columns.

    Edge ids are the attribute ``id`` of the edges where they have it, else networkx's order. An
    undirected edge becomes two. The nodes must be 0 to n - 1.
    """
    import networkx

    if not isinstance(data, networkx.Graph):
        raise TypeError(
            "a graph is made of an edge list, a scipy matrix or a networkx graph, got "
            f"{describe(data)}"
        )
    size = data.number_of_nodes()
    if {*data.nodes} != {*range(size)}:
        raise TypeError(
            "networkx nodes must be the integers 0 to n - 1; nodeflow.convert.from_networkx "
            "numbers others"
        )
    edges = data.to_directed(as_view=True).edges(data="id")
    ends = [(u, v, number if eid is None else eid) for number, (u, v, eid) in enumerate(edges)]
    src, dst, ids = np.array(ends, np.int64).reshape(-1, 3).T
    return Graph.from_edges(src, dst, num_nodes=size, edge_ids=ids)
