"""The arrays of a graph as they are stored, checked and shared where possible, and questions about
its edges.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import (
    LARGEST,
    Ints,
    _All,
    as_array,
    as_ids,
    check_length,
    check_range,
    describe,
    first_true,
)
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.runtime.mapped import file_of

Stored = NDArray[Any]
"""A read-only int32 or int64 array of a graph."""


class OutEdges:
    """The arrays of out-edges ``(indptr, destinations, edge ids)``, made when first asked for, by
    one thread.
    """

    __slots__ = ("_lock", "arrays")

    def __init__(self) -> None:
        self.arrays: tuple[Stored, Stored, Stored] | None = None
        self._lock = threading.Lock()

    def get(
        self, make: Callable[[], tuple[Stored, Stored, Stored]]
    ) -> tuple[Stored, Stored, Stored]:
        """Return the arrays, which ``make`` returns on the first call."""
        # all threads wait for the one that sorts: the arrays are as large as the graph
        with self._lock:
            self.arrays = self.arrays or make()
        return self.arrays


def transposed(
    indptr: Ints, indices: Stored, edge_ids: Stored | None
) -> tuple[Ints, Stored, Stored]:
    """Return ``(indptr, destinations, edge ids)`` of the out-edges, by source and id, from arrays
    of the in-edges.
    """
    num_nodes = len(indptr) - 1
    begin, dst, position = kernels.csr.transpose(indptr, indices, num_nodes)
    edges = ids_at(edge_ids, position)
    # by edge id inside each source, like the in-edges of a graph built from an edge list
    order = np.lexsort((edges, np.repeat(np.arange(num_nodes), np.diff(begin))))
    dst = stored(dst[order], None, num_nodes)
    edges = stored(edges[order], None, len(indices))
    return stored_indptr(begin, copy=False), dst, edges


def integers(value: object, name: str) -> Array:
    """Return a one-dimensional int32 or int64 array of ``value``, shared where it is an array or
    tensor already.
    """
    array = as_array(value, name)
    if array.size == 0 and array.dtype.kind != "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {describe(array)}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {tuple(array.shape)}")
    if array.dtype not in (np.int32, np.int64):
        if array.size and int(array.max()) > LARGEST:
            raise ValueError(f"{name} holds {int(array.max())}, beyond the largest 64-bit id")
        array = array.astype(np.int64)
    return array


def permutation(value: IdsLike, size: int) -> Stored:
    """Return ids of ``size`` edges as ``integers`` does, after checking that they are a
    permutation.
    """
    ids = integers(value, "edge_ids")
    check_length(ids, "edge_ids", size, "edge")
    check_range(ids, "edge_ids", size, "edge")
    # as many ids as edges, all in range: they are a permutation unless one is missing
    seen = np.zeros(size, np.bool_)
    seen[ids] = True
    if (missing := first_true(~seen)) is not None:
        raise ValueError(f"edge_ids must be a permutation, but no edge has id {missing}")
    return ids


def narrow(upper: int) -> type[np.signedinteger[Any]]:
    """Return the narrowest type that holds the integers below ``upper``."""
    return np.int32 if upper <= 2**31 else np.int64


def ids_at(edge_ids: Stored | None, positions: Ints) -> Ints:
    """Return the ids of the edges at positions, int64; without ``edge_ids`` these are their ids."""
    return positions if edge_ids is None else edge_ids[positions].astype(np.int64, copy=False)


def stored(array: Stored, copy: bool | None, upper: int) -> Stored:
    """Return ids below ``upper`` as a graph stores them; see ``Graph`` for ``copy``."""
    dtype = narrow(upper)
    if copy is None:
        copy = array.dtype != dtype and file_of(array) is None
    return read_only(np.ascontiguousarray(array.astype(dtype) if copy else array))


def stored_indptr(array: Stored, copy: bool | None) -> Stored:
    """Return an ``indptr`` as a graph stores it: int64, the one width that compiled loops take."""
    wide = array.astype(np.int64, copy=bool(copy))
    return read_only(np.ascontiguousarray(wide))


def read_only(array: Stored) -> Stored:
    """Return a view of an array that cannot be written to."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def by_id(values: Stored, ids: Stored) -> Stored:
    """Put ``values``, one for each of ``ids`` (a permutation), in the order of the ids."""
    out = np.empty_like(values)
    out[ids] = values
    return out


Triple = tuple[Tensor, Tensor, Tensor]
"""Source, destination and id of edges, int64 ``[k]`` each."""


def degrees(indptr: Ints, v: IdsLike | _All, num_nodes: int) -> Tensor:
    """Return the number of edges in the rows ``v``, int64 ``[len(v)]``."""
    if isinstance(v, _All):
        return torch.from_numpy(np.diff(indptr))
    rows = as_ids(v, "v", num_nodes)
    return torch.from_numpy(indptr[rows + 1] - indptr[rows])


def edges_of(rows: Ints, indptr: Ints, indices: Stored, edge_ids: Stored | None) -> Triple:
    """Return ``(neighbours, rows, edge ids)`` of all edges in some rows, row by row."""
    chosen, position = kernels.csr.csr_rows(indptr, rows)
    return _triple(indices[position], np.repeat(rows, np.diff(chosen)), ids_at(edge_ids, position))


class Between(NamedTuple):
    """All edges from ``u[i]`` to ``v[i]`` for every pair i of nodes:
    ``edges[indptr[i]:indptr[i + 1]]``, ascending.
    """

    u: Ints
    v: Ints
    indptr: Ints
    edges: Ints

    @classmethod
    def of(
        cls,
        u: Ints,
        v: Ints,
        num_nodes: int,
        indptr: Ints,
        indices: Stored,
        edge_ids: Stored | None,
    ) -> Between:
        """Look up the edges in the rows ``v`` of some arrays. Costs the degrees of the distinct
        rows, sorted.
        """
        rows, row = np.unique(v, return_inverse=True)
        chosen, position = kernels.csr.csr_rows(indptr, rows)
        edges = ids_at(edge_ids, position)
        # one integer for each pair of nodes, so that pairs can be looked up in sorted ones
        pair = np.repeat(np.arange(len(rows)), np.diff(chosen)) * num_nodes + indices[position]
        order = np.lexsort((edges, pair))
        asked = row * num_nodes + u
        first, last = (np.searchsorted(pair[order], asked, side) for side in ("left", "right"))
        indptr = np.append(0, np.cumsum(last - first))
        places = np.arange(indptr[-1]) + np.repeat(first - indptr[:-1], last - first)
        return cls(u, v, indptr, edges[order[places]])

    def exist(self) -> Tensor:
        """Return whether there is an edge, bool ``[num_pairs]``."""
        return torch.from_numpy(np.diff(self.indptr) > 0)

    def lowest(self) -> Tensor:
        """Return the lowest edge id of every pair, int64 ``[num_pairs]``; ValueError for a pair
        without edges.
        """
        missing = np.diff(self.indptr) == 0
        if (pair := first_true(missing)) is not None:
            raise ValueError(
                f"there is no edge {self.u[pair]} -> {self.v[pair]} "
                f"(pair {pair} of {len(missing)}); ask has_edges(u, v) first, or pass "
                "return_uv=True for the edges that there are"
            )
        return torch.from_numpy(self.edges[self.indptr[:-1]])

    def every(self) -> Triple:
        """Return ``(src, dst, edge ids)`` of all edges, pair by pair."""
        counts = np.diff(self.indptr)
        return _triple(np.repeat(self.u, counts), np.repeat(self.v, counts), self.edges)


def _triple(*arrays: Stored) -> Triple:
    src, dst, edges = (torch.from_numpy(part.astype(np.int64, copy=False)) for part in arrays)
    return src, dst, edges
