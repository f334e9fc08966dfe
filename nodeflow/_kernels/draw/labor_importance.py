"""Importance of sources for LABOR-i: the fixed-point iteration for ``c`` and ``pi``, and the draws.

These are ``c_s`` and ``pi_t`` of LABOR (Balin and Catalyurek 2023, see ``labor``). Row i has the
``degree[i]`` candidate edges from position ``begin[i]`` of ``indices``. ``c`` has an entry per row,
and ``pi`` one per possible entry of ``indices``. A flow may have most edges of the graph as
candidates, so these loops keep little memory per edge.
"""

# What is not good yet: every iteration reads all candidate edges twice, from memory; rows are not
# shared by threads, because ``update`` gives a source to the first row that has it; and
# ``keep_smallest`` pushes through a heap what ``labor.draw_smallest`` finds by a bound.

import math
from heapq import heapreplace

import numpy as np
from numba import njit

from nodeflow._kernels.arrays import reserve
from nodeflow._kernels.draw.labor import is_renewed, sum_of_inverses
from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.rng import GOLDEN, U64, stream, uniform

_AHEAD = 4  # rows between the prefetch of their first sources and their use
_PIECE = 1024  # edges per block
_FAR = 1e300  # more than number / pi of any source


@loop
def gather_local(begin, degree, indices, table, local):
    """Number the sources of all edges of the rows in order of first appearance; return their parent
    ids.

    ``local`` receives the local id of the source of every edge. ``table`` has an int32 -1 for every
    node of the graph.
    """
    nodes = np.empty(min(local.shape[0], table.shape[0]), np.int64)
    size = 0
    w = 0
    for i in range(begin.shape[0]):
        prefetch_at(indices, begin, i + _AHEAD)
        for p in range(begin[i], begin[i] + degree[i]):
            t = indices[p]
            if table[t] < 0:
                table[t] = size
                nodes[size] = t
                size += 1
            local[w] = table[t]
            w += 1
    return nodes[:size].copy()


@loop
def update(begin, degree, indices, order, c, pi, seen):
    """Multiply every pi by the largest c of its destinations; return the sum of the new pi.

    That sum is the expected number of distinct sources in a draw with the old pi and c. ``order``
    are the rows by descending c: the first row that has a source has the largest c. ``seen`` gets a
    1 for every source.
    """
    seen[:] = 0
    total = 0.0
    fresh = np.empty(_PIECE, np.int64)
    for q in range(order.shape[0]):
        if q + _AHEAD < order.shape[0]:
            prefetch(indices, begin[order[q + _AHEAD]])
        i = order[q]
        end = begin[i] + degree[i]
        for start in range(begin[i], end, _PIECE):
            # First collect the edges whose source is new, without a branch, which would often be
            # predicted wrong: the next edge overwrites this one unless it counts. Then look again,
            # since a source may come twice in a piece.
            part = indices[start : min(start + _PIECE, end)]
            number = 0
            for j in range(part.shape[0]):
                fresh[number] = j
                number += seen[U64(part[j])] == 0
            for j in fresh[:number]:
                t = part[j]
                if seen[t] == 0:
                    seen[t] = 1
                    pi[t] *= c[i]
                    total += pi[t]
    return total


# no checks for division by zero, which prevent vectors
@njit(nogil=True, cache=True, error_model="numpy")
def solve(begin, degree, indices, fanout, pi, c, scratch):
    """Write into ``c`` the solution of ``sum(1 / min(1, c pi)) == degree**2 / fanout`` for every
    row after an update.

    No c and no pi exceeds 1, so the equation is linear in 1 / c. (Every pi begins at 1 and is
    multiplied by c. With the old pi and c a row has ``sum(1 / (c pi)) == degree**2 / fanout``;
    every new pi is at least c pi, so the new c of the row is at most 1.) Rows of at most ``fanout``
    edges keep c = 1, and their sources pi = 1. ``fanout`` and ``degree`` have an entry per row,
    here and below; a fanout of -1 takes all edges. ``scratch`` has an entry per source, or is
    empty, which saves memory and costs a division per edge.
    """
    for t in range(scratch.shape[0]):
        scratch[t] = 1.0 / pi[t]
    inverse = np.empty(_PIECE, np.float64)
    for i in range(c.shape[0]):
        prefetch_at(indices, begin, i + _AHEAD)
        d = degree[i]
        if 0 <= fanout[i] < d:
            # With 1 / pi of every source at hand the sum is a gather; else divisions are made in
            # pieces, which the compiler turns into vectors. Either way it is added up in the order
            # of the edges.
            total = 0.0
            end = begin[i] + d
            for p in range(begin[i], end if scratch.shape[0] else begin[i]):
                total += scratch[U64(indices[p])]
            for start in range(end if scratch.shape[0] else begin[i], end, _PIECE):
                part = indices[start : min(start + _PIECE, end)]
                for j in range(part.shape[0]):
                    inverse[j] = pi[U64(part[j])]
                for j in range(part.shape[0]):
                    inverse[j] = 1.0 / inverse[j]
                for j in range(part.shape[0]):
                    total += inverse[j]
            c[i] = total / sum_of_inverses(fanout[i], d)


@loop
def _least(t, nodes, keys, early, copy, pi):
    """Number / pi, the c above which source t is kept; its number has 53 bits, in [0, 1).

    ``nodes`` are the ids of the sources; empty: t is the id. ``copy`` counts the edges from it in
    the row before.
    """
    ident = nodes[t] if nodes.shape[0] else np.int64(t)
    key = keys[1] if early > 0 and is_renewed(ident, keys, early) else keys[0]
    return uniform(stream(key, ident) + U64(copy + 1) * GOLDEN) / pi[t]


@inlined
def _code(x):
    """A byte that grows with ``x``: of two numbers the larger has the larger code or the same
    one.
    """
    fraction, exponent = math.frexp(max(x, 1e-12))
    return min(max((exponent + 30) * 8 + int(fraction * 16.0) - 8, 0), 255)


@loop
def _fill(nodes, keys, early, pi, codes, scratch):
    """Replace every 1 in ``codes`` by the code of number / pi of that source.

    Codes are one byte each, so they stay in the cache, and they rule out most edges that are not
    kept. ``scratch``, unless empty, receives number / pi itself.
    """
    for t in range(pi.shape[0]):
        if codes[t]:
            least = _least(t, nodes, keys, early, 0, pi)
            codes[t] = _code(least)
            if scratch.shape[0]:
                scratch[t] = least


@loop
def keep_poisson(
    begin, degree, indices, nodes, fanout, keys, early, pi, codes, scratch, kept, inverse, c
):
    """Keep the edges whose source has a number below ``c pi``; return their indptr.

    ``kept`` receives their positions and ``inverse`` 1 / probability of each. ``codes`` is the
    array ``seen`` of ``update``, and ``scratch`` is as in ``solve``.
    """
    _fill(nodes, keys, early, pi, codes, scratch)
    n = c.shape[0]
    w = 0
    indptr = np.zeros(n + 1, np.int64)
    likely = np.empty(_PIECE, np.int64)
    for i in range(n):
        prefetch_at(indices, begin, i + _AHEAD)
        end = begin[i] + degree[i]
        every = fanout[i] < 0 or degree[i] <= fanout[i]
        bound = _code(c[i])
        for first in range(begin[i], end, _PIECE):
            # The codes rule out most edges, without a branch: the next edge overwrites this one
            # unless it counts.
            number = 0
            for p in range(first, min(first + _PIECE, end)):
                likely[number] = p
                number += every or codes[U64(indices[p])] <= bound
            # The numbers themselves decide about the rest.
            for q in range(number):
                kept[w] = likely[q]
                t = indices[likely[q]]
                w += (
                    every
                    or (scratch[t] if scratch.shape[0] else _least(t, nodes, keys, early, 0, pi))
                    < c[i]
                )
        indptr[i + 1] = w
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            inverse[q] = 1.0 / min(1.0, c[i] * pi[indices[kept[q]]])
    return indptr


@loop
def keep_smallest(
    begin, degree, indices, nodes, fanout, keys, early, pi, codes, scratch, kept, inverse
):
    """Keep the ``fanout`` edges of each row with the smallest number / pi; return their indptr.

    Arguments and results are those of ``keep_poisson``. The inverse is 1 / min(1, pi tau), where
    tau is the smallest number / pi that was not kept.
    """
    n = begin.shape[0]
    indptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        indptr[i + 1] = indptr[i] + (degree[i] if fanout[i] < 0 else min(degree[i], fanout[i]))
    _fill(nodes, keys, early, pi, codes, scratch)
    # A heap holds the k + 1 smallest of a row, negated: at its root is the largest of these, tau,
    # which is not kept.
    heap = [(-_FAR, 0)]
    smallest = np.empty(1, np.int64)
    # mark[t] is the last row with source t; or ~m, where source t is entry m of the repeated
    # sources of a row
    mark = np.full(pi.shape[0], -1, np.int32)
    repeated = np.empty(16, np.int64)
    copies = np.empty(16, np.int64)
    for i in range(n):
        prefetch_at(indices, begin, i + _AHEAD)
        first = begin[i]
        end = begin[i] + degree[i]
        w = indptr[i]
        k = indptr[i + 1] - indptr[i]
        if k == degree[i]:
            for j in range(k):
                kept[w + j] = first + j
                inverse[w + j] = 1.0
            continue
        if len(heap) != k + 1:
            heap = [(-_FAR, 0) for _ in range(k + 1)]
            smallest = np.empty(k + 1, np.int64)
        for q in range(k + 1):
            heap[q] = (-_FAR, 0)
        # ``bound`` is the code of the root, beyond which no edge can enter the heap
        number = 0
        bound = 255
        for p in range(first, end):
            t = np.int64(indices[p])
            copy = 0
            m = int(mark[t])
            if m == i or (m < 0 and ~m < number and repeated[~m] == t):
                # another edge from the same source: it needs a number of its own, else both are
                # kept together
                if m == i:
                    m = ~number
                    mark[t] = m
                    repeated = reserve(repeated, number, 1)
                    copies = reserve(copies, number, 1)
                    repeated[number] = t
                    copies[number] = 0
                    number += 1
                copies[~m] += 1
                copy = int(copies[~m])
            else:
                mark[t] = i
                if codes[t] > bound:
                    continue
            entry = (-_least(t, nodes, keys, early, copy, pi), -p)
            if entry > heap[0]:
                heapreplace(heap, entry)
                bound = _code(-heap[0][0])
        tau, last = heap[0]
        for q in range(len(heap)):
            smallest[q] = -heap[q][1]
        for p in np.sort(smallest):
            if p != -last:
                kept[w] = p
                inverse[w] = 1.0 / min(1.0, -pi[indices[p]] * tau)
                w += 1
    return indptr
