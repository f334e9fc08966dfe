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
from nodeflow._base.types import Array, Floats
from nodeflow._rows.rows import whole_column
from nodeflow.graph import Graph
from nodeflow.graph._edges import NOTHING
from nodeflow.graph._storage import Stored
from nodeflow.sampling._base import SamplerBase

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

    def turned(self) -> tuple[Ints, Stored]:
        """Return ``(indptr, src)``: the in-edges of every node by source, ascending ``src`` in a row."""
        rows, src, _ = kernels.csr.transpose(self.indptr, self.dst, len(self.indptr) - 1)
        return rows, src.astype(self.dst.dtype)

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
        known: ``(indptr, indices)``: a draw for node u leaves out ``indices[indptr[u] : indptr[u + 1]]`` (ascending)
            and u itself; the others keep the proportions of their probabilities. None: nothing is left out.
        birth: time ``[num_nodes]`` from which on each node exists; None: always.
    """

    __slots__ = ("_birth", "_known", "_num_nodes", "_order", "_rank", "_upto")
    _num_nodes: int
    _upto: Ints
    _known: tuple[Ints, Stored, Ints]
    _birth: Array | None
    _order: Ints | None
    _rank: Ints | None

    def __init__(
        self, num_nodes: int, weights: Ints | None, known: tuple[Ints, Stored] | None, birth: Array | None
    ) -> None:
        order = rank = None
        if birth is not None:  # nodes are numbered by birth, so that those that exist are the first ones
            order = np.argsort(birth, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(num_nodes)
            birth = birth[order]
            weights = None if weights is None else weights[order]
            if known is not None:
                src, dst = np.repeat(rank, np.diff(known[0])), rank[known[1]]
                sizes = np.bincount(src, minlength=num_nodes)
                known = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), dst[np.lexsort((dst, src))]
        upto = NOTHING if weights is None else np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
        rows: tuple[Ints, Stored, Ints] = (NOTHING, NOTHING, NOTHING)
        if known is not None:
            narrow = np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64
            rows = kernels.negative.known_rows(known[0], known[1].astype(narrow, copy=False), upto)
        self._set(_num_nodes=num_nodes, _upto=upto, _known=rows, _birth=birth, _order=order, _rank=rank)

    def draw(
        self, key: int, ends: Ints, count: int, chunk: int | None = None, times: Array | None = None
    ) -> tuple[Ints, int]:
        """Draw ``count`` nodes for every end ``[n]``, int64 ``[n, count]``; ``chunk`` ends in turn share theirs.

        With ``birth``, nodes exist at ``times`` ``[n]``, those that a chunk shares at all its times. Returns the nodes
        and -1, or the number of the first end for which there is no node left to draw.
        """
        n, bits = len(ends), np.uint64(key)
        size = 1 if chunk is None else min(chunk, max(n, 1))
        out = np.empty((-(-n // size), count), np.int64)
        if out.size == 0:
            return np.empty((n, count), np.int64), -1
        limits = np.full(len(out), self._num_nodes)
        if self._birth is not None and times is not None:
            exist = np.searchsorted(self._birth, times, side="right")
            limits = np.minimum.reduceat(exist, np.arange(0, n, size))
            ends = ends if self._rank is None else self._rank[ends]
        bad = int(kernels.negative.draw_unknown(bits, limits, self._upto, ends, *self._known, out))
        if bad >= 0:
            return np.empty((n, count), np.int64), bad * size
        if self._order is not None:
            out = self._order[out]
        return (out if size == 1 else out[np.arange(n) // size]), -1


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
        times = as_array(whole_column(graph.edata[column]), "time")
        times = times.astype(np.float64 if times.dtype.kind == "f" else np.int64)
        never = np.inf if times.dtype.kind == "f" else np.iinfo(np.int64).max
        births = np.full(graph.num_nodes, never, times.dtype)
        for ends in graph.edges():
            np.minimum.at(births, ends.numpy(), times)
        return births
    if isinstance(value, str):
        value = whole_column(graph.ndata[value])
    array = as_array(value, "birth")
    if array.dtype.kind not in "iuf" or array.shape != (graph.num_nodes,) or np.isnan(array).any():
        raise ValueError(f"birth must hold a time per node ({graph.num_nodes}), got {describe(array)}")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
