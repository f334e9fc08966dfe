"""Expected sizes of layers and flows where every row draws among its own edges, from probabilities of inclusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_length
from nodeflow._base.types import Floats
from nodeflow.graph._edges import Edges

_CHUNK = 2**22  # edges looked at together
_CERTAIN = 1 - 1e-15


class Inclusion(NamedTuple):
    """How often rows draw their edges.

    Attributes:
        edges: expected number of edges that each row draws, float64 ``[n]``.
        prob: probability that an edge of the row is drawn at least once, the same for all of them, float64 ``[n]``;
            with ``per_edge`` that of every edge of these rows, ``[E]``, row after row, in the order of positions.
        shared: whether one random number of a source decides about all edges from it, so that it is drawn where it is
            drawn with the largest of their probabilities. Else edges of different rows are drawn independently.
        per_edge: whether ``prob`` has a number per edge, because those of one row differ.

    >>> import numpy as np
    >>> degrees = np.array([2.0, 8.0])  # each edge with probability 1 / 4
    >>> Inclusion(edges=degrees / 4, prob=np.full(2, 0.25)).edges
    array([0.5, 2. ])

    Of two rows, the first draws one of two edges, the second keeps its only edge:

    >>> Inclusion(edges=np.ones(2), prob=np.array([0.25, 0.75, 1.0]), per_edge=True).shared
    False
    """

    edges: Floats
    prob: Floats
    shared: bool = False
    per_edge: bool = False


Includes = Callable[[Ints, Ints, int], Inclusion]
"""A function of rows, their numbers of edges, and the number of the flow."""


def expected_sizes(
    edges: Edges, seeds: Ints, num_flows: int, includes: Includes, *, include_dst: bool, reuse: bool
) -> tuple[Floats, Floats]:
    """Return the expected numbers of nodes ``[L + 1]`` and edges ``[L]`` of a batch, in flow order.

    Every node has a probability of being in a layer. That of the next layer towards the inputs follows from it, as if
    nodes were in a layer independently of each other, and parallel edges were drawn independently:

        P(u in layer i) = 1 - (1 - P(u in layer i + 1)) * product over edges u -> v of (1 - P(v in layer i + 1) * prob)

    The first factor stands for ``include_dst``. The numbers of edges are sums of ``P(v) * edges(v)``. So the last two
    flows and layers are exact (without parallel edges), since the seeds are certain.

    Args:
        edges: the edge arrays.
        seeds: parent ids, repeats allowed.
        num_flows: number of flows.
        includes: how often rows draw their edges.
        include_dst, reuse: settings of the sampler.

    Raises ValueError where ``Inclusion.per_edge`` and ``prob`` does not have a number per edge.

    Cost: all edges of the nodes that may be in a layer, once per flow. Memory: 32 bytes a node, and some more for the
    edges of a piece; where ``Inclusion.shared`` or ``per_edge``, about 40 bytes for every such edge.
    """
    per_node = edges.rows_per_node
    count = edges.num_rows // per_node
    asked = np.zeros(count)
    asked[seeds] = 1
    present, before = asked, np.zeros(count)
    nodes, sizes = [present.sum()], []
    drawn, total = _Drawn(edges), 0.0
    for flow in reversed(range(num_flows)):
        chance = present - before if reuse else present  # with reuse, a node draws when it is reached first
        rows = edges.rows_of(np.flatnonzero(chance > 0))
        degree = edges.indptr[rows + 1] - edges.indptr[rows]
        found = includes(rows, degree, flow)
        there = chance[rows // per_node]
        total = float((there * found.edges).sum()) + (total if reuse else 0.0)
        sizes.append(total)
        if found.per_edge:
            check_length(found.prob, "prob of an Inclusion per edge", int(degree.sum()), "edge of the rows")
        if reuse:
            drawn.add(rows, degree, there, found)
            rows, found = drawn.inclusion(found.shared)
            there = np.ones(len(rows))
        absent = (_absent_shared if found.shared else _absent)(edges, rows, there, found, count)
        own = asked if reuse else present if include_dst else np.zeros(count)
        before, present = present, 1 - (1 - own) * absent
        nodes.append(present.sum())
    return np.array(nodes[::-1]), np.array(sizes[::-1])


class _Drawn:
    """The probability of every edge that it was drawn in a flow so far, where flows share draws."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.rows = np.zeros(0, np.bool_)  # which rows may have drawn
        self.chance = np.zeros(0)  # one of all edges of a row ``[rows]``; with ``per_edge`` of every position
        self.per_edge = False

    def add(self, rows: Ints, degree: Ints, there: Floats, found: Inclusion) -> None:
        """Add what rows draw that are in a layer for the first time with probability ``there``."""
        if not len(self.rows):
            self.rows, self.chance = np.zeros(self.edges.num_rows, np.bool_), np.zeros(self.edges.num_rows)
        if found.per_edge and not self.per_edge:
            self.chance, self.per_edge = np.repeat(self.chance, np.diff(self.edges.indptr)), True
        self.rows[rows[there > 0]] = True
        if not self.per_edge:
            self.chance[rows] += there * found.prob
            return
        _, positions = kernels.csr.csr_rows(self.edges.indptr, rows)
        prob = found.prob if found.per_edge else np.repeat(found.prob, degree)
        self.chance[positions] += np.repeat(there, degree) * prob

    def inclusion(self, shared: bool) -> tuple[Ints, Inclusion]:
        """Return the rows that may have drawn, and how likely their edges are drawn."""
        rows = np.flatnonzero(self.rows)
        at = kernels.csr.csr_rows(self.edges.indptr, rows)[1] if self.per_edge else rows
        return rows, Inclusion(np.zeros(len(rows)), self.chance[at], shared, self.per_edge)


def _pieces(edges: Edges, rows: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield the edges of some rows in pieces: for each its source, the index of its row in ``rows``, and its number."""
    ends = np.append(0, np.cumsum(edges.indptr[rows + 1] - edges.indptr[rows]))
    start = 0
    while start < len(rows):
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] + _CHUNK, side="right")) - 1)
        indptr, positions = kernels.csr.csr_rows(edges.indptr, rows[start:stop])
        yield (
            edges.indices[positions],
            np.repeat(np.arange(start, stop), np.diff(indptr)),
            ends[start] + np.arange(len(positions)),
        )
        start = stop


def _absent(edges: Edges, rows: Ints, there: Floats, found: Inclusion, count: int) -> Floats:
    """The probability of every node that no edge from it is drawn, where edges are drawn independently."""
    log = np.zeros(count)
    chance = found.prob * (np.repeat(there, edges.indptr[rows + 1] - edges.indptr[rows]) if found.per_edge else there)
    with np.errstate(divide="ignore"):  # what is drawn for certain has the logarithm minus infinity
        each = np.log1p(-np.minimum(chance, 1))
    for source, row, number in _pieces(edges, rows):
        log += np.bincount(source, weights=each[number if found.per_edge else row], minlength=count)
    absent: Floats = np.exp(log)
    return absent


def _absent_shared(edges: Edges, rows: Ints, there: Floats, found: Inclusion, count: int) -> Floats:
    """The same where the largest probability among the destinations in the layer decides."""
    pieces = list(_pieces(edges, rows))
    if not pieces:
        return np.ones(count)
    source, row, number = (np.concatenate(part) for part in zip(*pieces, strict=True))
    prob = found.prob[number if found.per_edge else row]
    order = np.lexsort((-prob, source))
    source, q = source[order], prob[order]
    p = np.minimum(there[row[order]], _CERTAIN)
    # in descending order of q, an edge decides if its destination is there and none before it is
    log = np.cumsum(np.log1p(-p))
    first = np.append(True, source[1:] != source[:-1])
    earlier = np.concatenate([np.zeros(1), log[:-1]])
    start = np.maximum.accumulate(np.where(first, np.arange(len(source)), 0))
    decides = q * p * np.exp(earlier - earlier[start])
    return np.ones(count) - np.bincount(source, weights=decides, minlength=count)
