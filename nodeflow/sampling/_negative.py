"""The pairs of nodes that are edges, and draws of negatives: nodes for pairs that are not."""

from __future__ import annotations

import decimal
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_array, describe, first_true
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array, Floats, NumbersLike
from nodeflow._edges.edges import NOTHING
from nodeflow._edges.stored import Stored
from nodeflow._links.links import Queries, pointers
from nodeflow._rows.rows import whole_column
from nodeflow.graph import Graph
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._known import Known

DISTRIBUTIONS = ("uniform", "degree")


class Pairs(NamedTuple):
    """The out-edges of every node by destination: ``dst`` and ``eid`` ``[num_edges]``, ascending ``dst`` in a row."""

    indptr: Ints
    dst: Stored
    eid: Stored

    @classmethod
    def of(cls, graph: Graph) -> Pairs:
        """The pairs of a graph; costs one pass over its edges, and as much memory as they take."""
        indptr, src, edge_ids = graph.csc()
        # the in-edges come by destination, and turning them round keeps that order in every row
        rows, dst, positions = kernels.csr.transpose(indptr, src, graph.num_nodes)
        narrow = np.int32 if max(graph.num_nodes, graph.num_edges) <= np.iinfo(np.int32).max else np.int64
        eid = positions if edge_ids is None else edge_ids[positions]
        return cls(rows, dst.astype(narrow), eid.astype(narrow))

    def known(self, side: str) -> Known:
        """Return the other ends that are known to every node, as a source or as a destination."""
        if side == "destination":
            return Known(self.indptr, self.dst, np.arange(len(self.indptr) - 1))
        rows, src, _ = kernels.csr.transpose(self.indptr, self.dst, len(self.indptr) - 1)
        return Known(rows, src.astype(self.dst.dtype), np.arange(len(rows) - 1))

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``, in either direction, int64; some repeatedly."""
        pairs = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)]), axis=1)  # parallel edges make one look-up
        ids: Ints = kernels.negative.edges_between(self.indptr, self.dst, self.eid, pairs[0], pairs[1])
        return ids


class Negatives(Frozen):
    """The distribution of negatives: every node alike, or in proportion to weights.

    Args:
        num_nodes: number of nodes.
        weights: whole numbers ``[num_nodes]`` whose sum is below 2^63; None: all nodes alike.
        known: a draw for a row of ``known`` leaves out its nodes and the row's own node; the others keep the
            proportions of their probabilities. None: nothing is left out.
        birth: time ``[num_nodes]`` from which on each node exists; None: always.
        filtered: leave known nodes out of draws; they can be ``marked`` in any case.
    """

    __slots__ = ("_birth", "_filtered", "_known", "_num_nodes", "_order", "_queries", "_rank", "_upto")
    _num_nodes: int
    _upto: Ints
    _known: tuple[Ints, Stored, Ints]
    _birth: Array | None
    _order: Ints | None
    _rank: Ints | None
    _filtered: bool
    _queries: Queries | None

    def __init__(
        self, num_nodes: int, weights: Ints | None, known: Known | None, birth: Array | None, filtered: bool = True
    ) -> None:
        order = rank = None
        if birth is not None:  # nodes are numbered by birth, so that those that exist are the first ones
            order = np.argsort(birth, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(num_nodes)
            birth = birth[order]
            weights = None if weights is None else weights[order]
            known = None if known is None else known.renumbered(rank)
        upto = NOTHING if weights is None else np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
        rows: tuple[Ints, Stored, Ints] = (NOTHING, NOTHING, NOTHING)
        if known is not None:
            rows = kernels.negative.known_rows(known.own, known.indptr, known.nodes, upto)
        self._set(_num_nodes=num_nodes, _upto=upto, _known=rows, _birth=birth, _order=order, _rank=rank)
        self._set(_filtered=filtered and known is not None, _queries=None if known is None else known.queries)

    def rows_of(self, ends: Ints, relation: Ints | None) -> Ints:
        """Return the rows of ``known`` for nodes and their relations."""
        if self._queries is None or relation is None:
            return ends
        number = self._queries.find(ends, relation)
        return np.where(number >= 0, number, len(self._queries) + ends)

    def draw(self, key: int, rows: Ints, count: int, chunk: int = 1, times: Array | None = None) -> tuple[Ints, int]:
        """Draw ``count`` nodes for every row of ``known``, int64 ``[n, count]``; ``chunk`` rows in turn share theirs.

        Nodes that ``chunk`` rows share are known to none of them. With ``birth``, nodes exist at ``times`` ``[n]``,
        those that a chunk shares at all its times. Returns the nodes and -1, or the number of the first row for which
        there is no node left to draw.
        """
        n, bits = len(rows), np.uint64(key)
        size = min(chunk, max(n, 1))
        out = np.empty((-(-n // size), count), np.int64)
        if out.size == 0:
            return np.empty((n, count), np.int64), -1
        limits = np.full(len(out), self._num_nodes)
        if self._birth is not None and times is not None:
            exist = np.searchsorted(self._birth, times, side="right")
            limits = np.minimum.reduceat(exist, np.arange(0, n, size))
        if self._filtered:
            shared, known = self._known_to_chunks(rows, size)
            bad = int(kernels.negative.draw_unknown(bits, limits, self._upto, shared, *known, out))
        else:
            bad = int(kernels.negative.draw_any(bits, limits, self._upto, out))
        if bad >= 0:
            return np.empty((n, count), np.int64), bad * size
        if self._order is not None:
            out = self._order[out]
        return (out if size == 1 else out[np.arange(n) // size]), -1

    def _known_to_chunks(self, rows: Ints, size: int) -> tuple[Ints, tuple[Ints, Stored, Ints]]:
        """Return a row of known nodes for every ``size`` rows in turn, and the arrays of these rows."""
        if size == 1:
            return rows, self._known
        indptr, known, _ = self._known
        begin, positions = kernels.csr.csr_rows(indptr, rows)
        chunk = np.repeat(np.arange(len(rows)) // size, np.diff(begin))
        chunk, nodes = np.divmod(np.unique(chunk * self._num_nodes + known[positions]), self._num_nodes)
        count = -(-len(rows) // size)
        begin, before = pointers(chunk, count), NOTHING
        if len(self._upto):
            # the sums over all chunks may wrap around, their differences within a chunk are right all the same
            sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._upto[nodes + 1] - self._upto[nodes])])
            before = sums[:-1] - sums[begin[chunk]]
        return np.arange(count), (begin, nodes, before)

    def marked(self, rows: Ints, nodes: Ints, size: int) -> NDArray[np.bool_]:
        """Return which nodes are known in the rows ``[n]``, each row's own node too, ``[n, count]``.

        ``nodes`` ``[n / size, count]`` has a row for ``size`` rows in turn, which share it.
        """
        indptr, known, _ = self._known
        nodes = nodes if self._rank is None else self._rank[nodes]
        marks: NDArray[np.bool_] = kernels.negative.known_among(rows, indptr, known, nodes, size, self._num_nodes)
        return marks

    def log_chance(self, rows: Ints, nodes: Ints, size: int) -> Floats:
        """Return the logarithms of the probabilities with which the rows ``[n]`` had their negatives, ``[n, count]``.

        ``nodes`` are as for ``marked``.
        """
        even = len(self._upto) == 0
        weights = np.ones(nodes.shape) if even else (self._upto[nodes + 1] - self._upto[nodes]).astype(np.float64)
        total = np.full(len(nodes), self._num_nodes if even else self._upto[-1])
        if self._filtered:
            shared, (indptr, known, before) = self._known_to_chunks(rows, size)
            last = indptr[shared + 1] - 1
            node = known[last].astype(np.int64)
            total -= last + 1 - indptr[shared] if even else before[last] + self._upto[node + 1] - self._upto[node]
        with np.errstate(divide="ignore"):
            chance: Floats = np.log(weights) - np.log(total.astype(np.float64))[:, None]
        return chance[np.arange(len(rows)) // size]


def whole_weights(weights: Floats) -> Ints:
    """Return whole numbers in proportion to ``weights`` ``[n]``, whose sum is about 2^61.

    A weight of 0 gives 0, any other at least 1. Relative rounding is at most 2^-51, or 2^-61 of the sum.
    """
    total = math.fsum(weights)  # exact, so that it is the same on every processor
    if total == 0:
        return np.zeros(len(weights), np.int64)
    shares = np.floor(weights / total * 2.0**61).astype(np.int64)
    at_least_one: Ints = np.maximum(shares, weights > 0)
    return at_least_one


def degree_weights(degrees: Ints, power: float) -> NDArray[np.int64]:
    """Return whole numbers in proportion to ``degrees ** power`` ``[n]``, whose sum is about 2^61.

    A degree of 0 gives 0, any other at least 1. Relative rounding is at most 2^-61 times the sum of the powers over
    the power itself. Made with decimal numbers, because powers of floats differ between processors in their last bit.
    """
    distinct, index, times = np.unique(degrees, return_inverse=True, return_counts=True)
    weights = np.zeros(len(distinct), np.int64)
    if len(distinct) and distinct[-1] > 0:
        exact = decimal.Context(prec=34, Emin=-999999, Emax=999999, traps=[])
        top, exponent = decimal.Decimal(int(distinct[-1])), decimal.Decimal(power)
        powers = [exact.power(exact.divide(int(d), top), exponent) if d else decimal.Decimal(0) for d in distinct]
        total = decimal.Decimal(0)
        for value, number in zip(powers, times, strict=True):
            total = exact.fma(value, int(number), total)
        scale = exact.divide(decimal.Decimal(2**61), total)
        least = (distinct > 0).tolist()
        weights[:] = [max(int(exact.multiply(p, scale)), int(b)) for p, b in zip(powers, least, strict=True)]
    spread: NDArray[np.int64] = weights[index]
    return spread


def node_degrees(graph: Graph, side: str) -> Ints:
    """Return the degrees ``[num_nodes]`` in proportion to whose powers negatives of a side are drawn."""
    degrees: Ints = (graph.in_degrees() if side == "destination" else graph.out_degrees()).numpy()
    return degrees


def node_weights(graph: Graph, value: object) -> Floats:
    """Return weights of nodes, float64 ``[num_nodes]``, given as numbers or as the name of a node column."""
    name = "negatives"
    if isinstance(value, str):
        if value not in graph.ndata:
            raise ValueError(
                f"negatives must be 'uniform' or 'degree', the name of a node column, or a weight "
                f"per node, got {value!r}"
            )
        value, name = whole_column(graph.ndata[value]), f"negatives: the node column {value!r}"
    array = as_array(value, name)
    if array.dtype.kind not in "iuf" or array.shape != (graph.num_nodes,):
        raise ValueError(f"{name} must hold a number per node ({graph.num_nodes}), got {describe(array)}")
    weights: Floats = array.astype(np.float64)
    if (i := first_true(~(np.isfinite(weights) & (weights >= 0)))) is not None:
        raise ValueError(f"{name} must be finite and not negative, but node {i} has {weights[i]}")
    if not weights.any():
        raise ValueError(f"{name} must not be 0 for all nodes, since none could be drawn")
    return weights


def birth_times(sampler: SamplerBase, value: object) -> Array:
    """Return the time from which on each node exists, int64 or float64 ``[num_nodes]``."""
    graph = sampler.graph
    if value is None:
        column = getattr(sampler, "time", None)
        if not isinstance(column, str):
            raise TypeError(
                f"birth is missing: {type(sampler).__name__} has no column of edge times from which to tell when a "
                "node first has an edge; pass a time per node, or the name of a node column"
            )
        return _first_times(graph, column)
    if isinstance(value, str):
        value = whole_column(graph.ndata[value])
    array = as_array(value, "birth")
    if array.dtype.kind not in "iuf" or array.shape != (graph.num_nodes,) or np.isnan(array).any():
        raise ValueError(f"birth must hold a time per node ({graph.num_nodes}), got {describe(array)}")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _first_times(graph: Graph, column: str) -> Array:
    """The time of the first edge of every node in either direction; the largest number for a node without edges."""
    held = graph.held
    times = as_array(whole_column(held.edata[column]), "time")
    times = times.astype(np.float64 if times.dtype.kind == "f" else np.int64)
    never = np.inf if times.dtype.kind == "f" else np.iinfo(np.int64).max
    births = np.full(graph.num_nodes, never, times.dtype)
    for ends in graph.find_edges(held.whole.edge_ids_of(np.arange(held.num_edges))):
        np.minimum.at(births, ends.numpy(), times)
    with graph.peers.together("times of first edges", exchanges=1):
        seen = np.flatnonzero(births != never)
        for nodes, first in graph.peers.gather("times of first edges", [seen, births[seen]]):
            births[nodes] = np.minimum(births[nodes], first)
    return births


def none_left(
    side: str, node: int, seed: str, negatives: str, filtered: bool, time: object = None, chunk: int = 1
) -> str:
    """Return the message for a seed ("edge 7", say) without a possible negative for a side.

    Args:
        side: the end that negatives take the place of.
        node: the other end.
        seed: the seed, with its kind.
        negatives: the distribution by name.
        filtered: whether known nodes are left out.
        time: of the seed; None without times.
        chunk: number of seeds that share negatives.
    """
    direction = "in" if side == "destination" else "out"
    among = {"uniform": "every other node", "degree": f"every node that has {direction}-edges"}
    everything = among.get(negatives, "every node with a weight")
    if time is not None:
        everything += f" that exists at time {time}"
    if not filtered:
        return f"no negative is left for {seed}: no node with a weight above 0 exists"
    if chunk > 1:
        return (
            f"the seeds from {seed} on share their negatives, but {everything} is known to one of these {chunk}; "
            f"take a smaller chunk, or filter_known='mark'"
        )
    end = "source" if side == "destination" else "destination"
    return (
        f"node {node}, the {end} of {seed}, has edges to {everything} (but perhaps itself), so no negative is left for "
        f"it; leave the {seed.split()[0]} out of the seeds, or use filter_known=False"
    )


def seed_times(sampler: SamplerBase, times: NumbersLike, size: int) -> Array:
    """Return the checked times of seeds ``[size]``."""
    if not sampler.takes_times:
        raise TypeError(
            f"times must be None, because {type(sampler).__name__} takes none; use a sampler that sees the "
            "graph as it was at a time, such as TemporalNeighborSampler"
        )
    when = as_array(times, "times")
    if when.dtype.kind not in "iuf":
        raise TypeError(f"times must be numbers, got {describe(times)}")
    if when.shape != (size,):
        raise ValueError(f"times must have one entry per seed edge ({size}), got shape {tuple(when.shape)}")
    if when.dtype.kind == "f" and (i := first_true(~np.isfinite(when))) is not None:
        raise ValueError(f"times must be finite, but times[{i}] is {when[i]}")
    return when
