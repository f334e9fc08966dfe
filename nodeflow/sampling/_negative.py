"""Which pairs of nodes are edges, and draws of nodes for the pairs that are none."""

from __future__ import annotations

import decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow.graph import Graph
from nodeflow.graph._storage import Stored

LAWS = ("uniform", "degree")
_NO_WEIGHTS = np.zeros(0, np.int64)


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

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``, in either direction, int64; some repeatedly."""
        pairs = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)]), axis=1)  # parallel edges make one look-up
        found: Ints = kernels.negative.edges_between(self.indptr, self.dst, self.eid, pairs[0], pairs[1])
        return found


class Negatives(Frozen):
    """A law by which negatives are drawn: every node alike, or in proportion to in-degree ** ``power``.

    With ``pairs``, nodes that the source has an edge to, and the source itself, are left out; the others keep the
    proportions of their probabilities.
    """

    __slots__ = ("_before", "_indptr", "_known", "_num_nodes", "_upto")
    _num_nodes: int
    _upto: Ints
    _indptr: Ints | None
    _known: Stored
    _before: Ints

    def __init__(self, graph: Graph, law: str, power: float, pairs: Pairs | None) -> None:
        upto = _NO_WEIGHTS
        if law == "degree":
            weights = degree_weights(graph.in_degrees().numpy(), power)
            upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
        self._set(_num_nodes=graph.num_nodes, _upto=upto, _indptr=None, _known=_NO_WEIGHTS, _before=_NO_WEIGHTS)
        if pairs is not None:
            indptr, known, before = kernels.negative.known_rows(pairs.indptr, pairs.dst, upto)
            self._set(_indptr=indptr, _known=known, _before=before)

    def draw(self, key: int, src: Ints, count: int, chunk: int | None) -> tuple[Ints, int]:
        """Draw ``count`` nodes for every source ``[n]``, int64 ``[n, count]``; ``chunk`` sources in turn share theirs.

        Returns them and -1, or the number of the first source for which there is no node left to draw.
        """
        n, bits, bad = len(src), np.uint64(key), -1
        size = 1 if chunk is None else min(chunk, max(n, 1))
        out = np.empty((-(-n // size), count), np.int64)
        if out.size == 0:
            return np.empty((n, count), np.int64), -1
        if self._indptr is None:
            kernels.negative.draw_any(bits, self._num_nodes, self._upto, out)
        else:
            rows = (self._indptr, self._known, self._before)
            bad = int(kernels.negative.draw_unknown(bits, self._num_nodes, self._upto, src, *rows, out))
        return (out if size == 1 else out[np.arange(n) // size]), bad


def degree_weights(degrees: Ints, power: float) -> NDArray[np.int64]:
    """Return whole numbers in proportion to ``degrees ** power`` ``[n]``, whose sum is about 2^61.

    A degree of 0 gives 0, any other at least 1. Relative rounding is at most 2^-61 times the sum of the powers over
    the power itself. Made with decimal numbers, because powers of floats differ between processors in their last bit.
    """
    found, place, times = np.unique(degrees, return_inverse=True, return_counts=True)
    weights = np.zeros(len(found), np.int64)
    if len(found) and found[-1] > 0:
        exact = decimal.Context(prec=34, Emin=-999999, Emax=999999, traps=[])
        top, exponent = decimal.Decimal(int(found[-1])), decimal.Decimal(power)
        powers = [exact.power(exact.divide(int(d), top), exponent) if d else decimal.Decimal(0) for d in found]
        total = decimal.Decimal(0)
        for value, number in zip(powers, times, strict=True):
            total = exact.fma(value, int(number), total)
        scale = exact.divide(decimal.Decimal(2**61), total)
        least = (found > 0).tolist()
        weights[:] = [max(int(exact.multiply(p, scale)), int(b)) for p, b in zip(powers, least, strict=True)]
    spread: NDArray[np.int64] = weights[place]
    return spread
