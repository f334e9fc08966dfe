"""The edges of a graph that is cut, in groups by the parts of their two ends: counted, and read piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.graph import Graph

EDGES = ("in", "out", "grid")
_EDGES = 2**19  # edges of a piece


class EdgeGroups(NamedTuple):
    """Groups of edges: ``source[p] + destination[q]`` is that of an edge whose ends have the masters p and q."""

    source: Ints
    destination: Ints

    @classmethod
    def of(cls, edges: str, num_parts: int) -> EdgeGroups:
        """Return the groups of a layout. All but "buckets" have a group per part.

        "in" takes the part of the destination, "out" that of the source, and "grid" the part in the grid row of the
        source and the grid column of the destination, where part k is in row ``k // columns`` and column
        ``k % columns``. The bucket ``j * num_parts + i`` has the edges from part i to part j.
        """
        part, columns = np.arange(num_parts), grid_of(num_parts)[1]
        return {
            "in": cls(0 * part, part),
            "out": cls(part, 0 * part),
            "grid": cls(part // columns * columns, part % columns),
            "buckets": cls(part, part * num_parts),
        }[edges]

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.source[-1] + self.destination[-1]) + 1


def grid_of(num_parts: int) -> tuple[int, int]:
    """Return the rows and columns of a grid of parts: as square as their number allows, no more rows than columns.

    >>> grid_of(12), grid_of(7)
    ((3, 4), (1, 7))
    """
    rows = next(r for r in range(math.isqrt(num_parts), 0, -1) if num_parts % r == 0)
    return rows, num_parts // rows


class EdgePiece(NamedTuple):
    """Some edges, in the order in which they are read.

    ``src``, ``dst`` and ``ids``, ``[k]``, are ends and ids as the graph stores them, ``group`` the groups, and
    ``place`` the places among all edges of a group. ``starts``, bool ``[k]``, says where a group comes to another
    destination.
    """

    src: Array
    dst: Ints
    ids: Array
    group: Ints
    place: Ints
    starts: Array

    def sorted(self, size: int) -> tuple[Ints, EdgePiece]:
        """Return where each of ``size`` groups begins, and the edges sorted by group."""
        begin, order = kernels.csr.sort_by_destination(self.group, size)
        return begin, EdgePiece(*(array[order] for array in self))


class EdgeCounts:
    """Edges and destinations of each group, int64 ``[size]``, and the number of edges between different masters."""

    def __init__(self, size: int) -> None:
        self.edges, self.rows, self.cut = np.zeros(size, np.int64), np.zeros(size, np.int64), 0


class GroupedEdges:
    """The edges of a graph by group, in the order of their destinations.

    Args:
        graph: the graph.
        owner: the part of every node.
        groups: of the edges.
        nodes: destinations in the order in which their edges are read; None: ascending, which reads arrays in order.
    """

    def __init__(self, graph: Graph, owner: Array, groups: EdgeGroups, nodes: Ints | None = None) -> None:
        self.graph, self.size, self._owner, self._groups, self._nodes = graph, groups.size, owner, groups, nodes

    def count(self, advance: Callable[[int], object] = lambda _: None) -> EdgeCounts:
        """Count the edges; ``advance`` is told of those that are done."""
        counts = EdgeCounts(self.size)
        for piece in self.pieces(counts=counts):
            advance(len(piece.src))
        return counts

    def pieces(self, most: int | None = None, counts: EdgeCounts | None = None) -> Iterator[EdgePiece]:
        """Yield all edges in pieces of at most ``most`` edges, and count them."""
        indptr, indices, edge_ids = self.graph.csc()
        counts, last = counts or EdgeCounts(self.size), np.full(self.size, -1, np.int64)
        for at, dst in self._positions(indptr, min(most or _EDGES, _EDGES)):
            src = np.asarray(indices[at])
            group, place = np.empty(len(src), np.int64), np.empty(len(src), np.int64)
            starts = np.empty(len(src), np.bool_)
            counted = last, counts.edges, counts.rows
            counts.cut += kernels.buckets.place_edges(
                self._owner, src, dst, *self._groups, *counted, group, place, starts
            )
            if edge_ids is not None:
                ids = edge_ids[at]
            else:
                ids = np.arange(at.start, at.stop) if isinstance(at, slice) else at
            yield EdgePiece(src, dst, ids, group, place, starts)

    def _positions(self, indptr: Ints, most: int) -> Iterator[tuple[slice | Ints, Ints]]:
        """Positions and destinations of the edges, ``most`` at a time."""
        begin = indptr if self._nodes is None else sums(np.diff(indptr)[self._nodes])
        for first in range(0, self.graph.num_edges, most):
            last = min(first + most, self.graph.num_edges)
            low, high = int(np.searchsorted(begin, first, side="right")) - 1, int(np.searchsorted(begin, last))
            ends: Ints = np.clip(begin[low : high + 1], first, last)
            length = np.diff(ends)
            if self._nodes is None:
                yield slice(first, last), np.repeat(np.arange(low, high), length)
            else:
                nodes = self._nodes[low:high]
                yield np.arange(first, last) + np.repeat(indptr[nodes] - begin[low:high], length), nodes.repeat(length)


def sums(sizes: Array) -> Ints:
    """Return where each of several pieces begins, and where the last one ends."""
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    return begin
