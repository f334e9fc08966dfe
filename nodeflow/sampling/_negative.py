"""Negatives, drawn or of the user's choice, look-ups of edges by their two ends, and the known
answers of queries.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_array, as_ids, first_true
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.edges.edges import NOTHING
from nodeflow._core.edges.stored import Stored, ids_at, narrow
from nodeflow._core.links import Links, Queries, pointers
from nodeflow._core.random import Random
from nodeflow.graph import Graph
from nodeflow.sampling._link_parts import LinkLayout

OwnNegatives: TypeAlias = "Ints | Callable[[Any, int, Random], Any]"
"""Nodes ``[num_seeds, K]``, or a function of links, K and random numbers that returns nodes
``[B, K]``.
"""

_NONE_KNOWN = (np.zeros(2, np.int64), NOTHING, NOTHING)  # one row, in which no node is known


class Known(NamedTuple):
    """The nodes that answer queries: row i has ``nodes[indptr[i] : indptr[i + 1]]``, ascending, for
    node ``own[i]``.

    Row u is that of node u. With ``queries`` row i is that of query i, and behind these every node
    has a row without answers, for queries that are not among them.
    """

    indptr: Ints
    nodes: Stored
    own: Ints
    queries: Queries | None = None

    @classmethod
    def of(cls, links: Links, side: str, num_nodes: int) -> Known:
        """Collect the answers that links give for a side: 24 bytes a link while they are sorted, 4
        (or 8) then.
        """
        own = np.arange(num_nodes)
        relation = links.relation
        queries = Queries(own if relation is None else links.ends(side)[0], relation, num_nodes)
        indptr, nodes = queries.answers(links, side)
        nodes = nodes.astype(narrow(num_nodes))
        if relation is None:
            return cls(indptr, nodes, own)
        return cls(
            np.pad(indptr, (0, num_nodes), mode="edge"),
            nodes,
            np.concatenate([queries.node, own]),
            queries,
        )

    def renumbered(self, rank: Ints) -> Known:
        """Return the same with node v written as ``rank[v]``."""
        rows = np.repeat(np.arange(len(self.own)), np.diff(self.indptr))
        nodes = rank[self.nodes]
        return self._replace(
            nodes=nodes[np.lexsort((nodes, rows))].astype(self.nodes.dtype), own=rank[self.own]
        )


class Pairs(NamedTuple):
    """The out-edges of every node by destination: ``dst`` and ``eid`` ``[num_edges]``, ascending
    ``dst`` in a row.
    """

    indptr: Ints
    dst: Stored
    eid: Stored

    @classmethod
    def of(cls, graph: Graph) -> Pairs:
        """The pairs of a graph; costs one pass over its edges, and as much memory as they take."""
        indptr, src, edge_ids = graph.csc()
        # the in-edges come by destination, and turning them round keeps that order in every row
        rows, dst, positions = kernels.csr.transpose(indptr, src, graph.num_nodes)
        width = narrow(max(graph.num_nodes, graph.num_edges))
        return cls(rows, dst.astype(width), ids_at(edge_ids, positions).astype(width))

    def known(self, side: str) -> Known:
        """Return the other ends that are known to every node, as a source or as a destination."""
        if side == "destination":
            return Known(self.indptr, self.dst, np.arange(len(self.indptr) - 1))
        rows, src, _ = kernels.csr.transpose(self.indptr, self.dst, len(self.indptr) - 1)
        return Known(rows, src.astype(self.dst.dtype), np.arange(len(rows) - 1))

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``, in either direction, int64;
        some repeatedly.
        """
        # parallel edges make one look-up
        pairs = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)]), axis=1)
        return cast(
            "Ints",
            kernels.negative.edges_between(self.indptr, self.dst, self.eid, pairs[0], pairs[1]),
        )


class Negatives:
    """The distribution of negatives: every node of a type alike, or in proportion to ``weights``,
    whole numbers.

    Type t has the nodes ``bounds[t]`` to ``bounds[t + 1] - 1``. A draw for a row of ``known``
    leaves out its nodes and the row's own node where it is ``filtered``; the others of the type
    keep the proportions of their probabilities. ``birth`` ``[num_nodes]`` is the time from which on
    each node exists.
    """

    def __init__(
        self,
        bounds: Ints,
        weights: Ints | None,
        known: Known | None,
        birth: Array | None,
        filtered: bool = True,
    ) -> None:
        self._bounds = bounds
        self._num_nodes = int(bounds[-1])
        self._birth = birth
        self._filtered = filtered and known is not None
        # draws are numbers below a sum: where weights or births order the nodes otherwise,
        # ``_order`` turns a number into its node, ``_rank`` a node into its number
        self._order: Ints | None = None
        self._rank: Ints | None = None
        # nodes are numbered by birth within their type, so that those that exist come first
        if birth is not None:
            types = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            self._order = np.lexsort((birth, types))
            self._rank = np.argsort(self._order)
            self._birth = birth[self._order]
            if weights is not None:
                weights = weights[self._order]
            if known is not None:
                known = known.renumbered(self._rank)
        self._upto = NOTHING
        if weights is not None:
            self._upto = np.append(0, np.cumsum(weights))
        self._queries = None if known is None else known.queries
        self._known = _NONE_KNOWN
        if known is not None:
            self._known = kernels.negative.known_rows(
                known.own, known.indptr, known.nodes, self._upto
            )

    def rows_of(self, ends: Ints, relation: Ints | None) -> Ints:
        """Return the rows of ``known`` for nodes and their relations."""
        if self._queries is None or relation is None:
            return ends
        number = self._queries.find(ends, relation)
        return np.where(number >= 0, number, len(self._queries) + ends)

    def draw(
        self,
        key: int,
        rows: Ints,
        types: Ints,
        count: int,
        chunk: int = 1,
        times: Array | None = None,
    ) -> tuple[Ints, int]:
        """Draw ``count`` nodes of ``types[i]`` for row ``rows[i]`` of ``known``, int64
        ``[n, count]``.

        ``chunk`` rows in turn share theirs, which are known to none of them; they have one type.
        With ``birth``, nodes exist at ``times`` ``[n]``, those that a chunk shares at all its
        times. Returns the nodes and -1, or the number of the first row for which there is no node
        left to draw.
        """
        n = len(rows)
        bits = np.uint64(key)
        size = min(chunk, max(n, 1))
        out = np.empty((-(-n // size), count), np.int64)
        if out.size == 0:
            return np.empty((n, count), np.int64), -1
        limits = self._bounds[types[::size] + 1]
        if self._birth is not None and times is not None:
            limits = np.minimum.reduceat(
                self._existing(self._birth, types, times), np.arange(0, n, size)
            )
        # a draw leaves known nodes out by counting how many lie before it, so no draw is repeated
        answers = self._known_to_chunks(rows, size)
        bad = int(
            kernels.negative.draw_unknown(
                bits, self._bounds[types[::size]], limits, self._upto, *answers, out
            )
        )
        if bad >= 0:
            return np.empty((n, count), np.int64), bad * size
        if self._order is not None:
            out = self._order[out]
        return (out if size == 1 else out[np.arange(n) // size]), -1

    def _existing(self, birth: Array, types: Ints, times: Array) -> Ints:
        """Return the end of the nodes of a type that exist at a time, for each type and time."""
        ends = np.empty(len(types), np.int64)
        # born nodes of a type are the first of it: how many is a search among its births
        for kind in np.unique(types):
            first, end = self._bounds[kind : kind + 2]
            is_kind = types == kind
            ends[is_kind] = first + np.searchsorted(birth[first:end], times[is_kind], side="right")
        return ends

    def _known_to_chunks(self, rows: Ints, size: int) -> tuple[Ints, Ints, Stored, Ints]:
        """Return a row of nodes that are not drawn for every ``size`` rows in turn, and the arrays
        of these rows.
        """
        if not self._filtered:
            return np.zeros(-(-len(rows) // size), np.int64), *_NONE_KNOWN
        if size == 1:
            return rows, *self._known
        indptr, answers, _ = self._known
        begin, positions = kernels.csr.csr_rows(indptr, rows)
        # known to any of a chunk is known to all of it: distinct nodes per chunk, ascending
        chunk = np.repeat(np.arange(len(rows)) // size, np.diff(begin))
        chunk, nodes = np.divmod(
            np.unique(chunk * self._num_nodes + answers[positions]), self._num_nodes
        )
        count = -(-len(rows) // size)
        begin = pointers(chunk, count)
        before = NOTHING
        if len(self._upto):
            # the sums over all chunks may wrap around, their differences within a chunk are right
            # all the same
            sums = np.append(0, np.cumsum(self._upto[nodes + 1] - self._upto[nodes]))
            before = sums[:-1] - sums[begin[chunk]]
        return np.arange(count), begin, nodes, before

    def marked(self, rows: Ints, nodes: Ints, size: int) -> NDArray[np.bool_]:
        """Return which ``nodes`` ``[n / size, count]``, shared by ``size`` rows in turn, are known,
        ``[n, count]``.
        """
        indptr, answers, _ = self._known
        if self._rank is not None:
            nodes = self._rank[nodes]
        return cast(
            "NDArray[np.bool_]",
            kernels.negative.known_among(rows, indptr, answers, nodes, size, self._num_nodes),
        )

    def log_chance(self, rows: Ints, types: Ints, nodes: Ints, size: int) -> Floats:
        """Return the logarithms of the probabilities of ``nodes``, which are as for ``marked``,
        ``[n, count]``.
        """
        kinds = types[::size]
        weights = np.ones(nodes.shape)
        if len(self._upto):
            weights = (self._upto[nodes + 1] - self._upto[nodes]).astype(np.float64)
        answers = self._known_to_chunks(rows, size)
        totals = kernels.negative.totals(
            self._bounds[kinds], self._bounds[kinds + 1], self._upto, *answers
        ).astype(np.float64)
        with np.errstate(divide="ignore"):
            chance: Floats = np.log(weights) - np.log(totals)[:, None]
        return chance[np.arange(len(rows)) // size]


def whole_weights(weights: Floats) -> Ints:
    """Return whole numbers in proportion to ``weights`` ``[n]``, not all 0, whose sum is about
    2^61.

    A weight of 0 gives 0, any other at least 1. Relative rounding is at most 2^-51, or 2^-61 of the
    sum.
    """
    # exact, so that it is the same on every processor
    total = math.fsum(weights)
    shares = np.floor(weights / total * 2.0**61).astype(np.int64)
    return np.maximum(shares, weights > 0)


def degree_weights(degrees: Ints, power: float) -> NDArray[np.int64]:
    """Return whole numbers in proportion to ``degrees ** power`` ``[n]``, whose sum is about 2^61.

    A degree of 0 gives 0, any other at least 1. Relative rounding is at most 2^-61 times the sum of
    the powers over the power itself. Made with decimal numbers, because powers of floats differ
    between processors in their last bit.
    """
    distinct, index, times = np.unique(degrees, return_inverse=True, return_counts=True)
    weights = np.zeros(len(distinct), np.int64)
    if len(distinct) and distinct[-1] > 0:
        exact = decimal.Context(prec=34, Emin=-999999, Emax=999999, traps=[])
        top = decimal.Decimal(int(distinct[-1]))
        exponent = decimal.Decimal(power)
        # relative to the largest degree: no power overflows, whatever its exponent
        powers = [
            exact.power(exact.divide(int(d), top), exponent) if d else decimal.Decimal(0)
            for d in distinct
        ]
        total = decimal.Decimal(0)
        for value, number in zip(powers, times, strict=True):
            total = exact.fma(value, int(number), total)
        scale = exact.divide(decimal.Decimal(2**61), total)
        weights[:] = [int(exact.multiply(share, scale)) for share in powers]
        weights = np.maximum(weights, distinct > 0)
    return weights[index]


def as_own(value: object, shape: tuple[int, int], graph: Graph) -> OwnNegatives | None:
    """Return ``negatives`` of a link sampler that are a function or a matrix; None for a law, and
    for weights.
    """
    if callable(value):
        return value
    if isinstance(value, str) or as_array(value, "negatives", "numbers").ndim != 2:
        return None
    return _as_nodes(value, shape, "a row per seed, and num_negatives columns,", graph)


def own_nodes(
    given: OwnNegatives, seeds: Ints, links: Links, count: int, random: Random, graph: Graph
) -> Ints:
    """Return the negatives ``[B, count]`` of seeds, which are ``links``."""
    if not callable(given):
        return given[seeds]
    tensors: Any = [None if part is None else torch.from_numpy(part) for part in links]
    chosen = given(Links(*tensors), count, random)
    return _as_nodes(chosen, (len(seeds), count), "a row per link, num_negatives wide,", graph)


def check_types(nodes: Ints, links: Links, graph: Graph, layout: LinkLayout) -> None:
    """Raise ValueError for negatives of another type than the ends that they take the place of."""
    names = list(graph.schema.nodes)
    types = graph.schema.types_of(nodes.reshape(-1)).reshape(nodes.shape)
    for side in layout.sides:
        of_side = types[:, layout.columns(side)]
        wanted = graph.schema.types_of(links.ends(side)[1])
        is_wrong = of_side != wanted[:, None]
        if (row := first_true(is_wrong.any(1))) is not None:
            raise ValueError(
                f"negatives in row {row} of the batch must be of type {names[wanted[row]]!r}, as "
                f"the {side} that they replace, got {names[of_side[row][is_wrong[row]][0]]!r}"
            )


def _as_nodes(value: Any, shape: tuple[int, int], words: str, graph: Graph) -> Ints:
    array = as_array(value, "negatives")
    if array.shape != shape:
        raise ValueError(
            f"negatives must have {words} {list(shape)}, got shape {list(array.shape)}"
        )
    return as_ids(array.reshape(-1), "negatives.reshape(-1)", graph.num_nodes).reshape(shape)
