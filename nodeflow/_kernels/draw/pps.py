"""Draws from a list of candidates with unequal probabilities: with replacement, one by one, or a set of fixed size."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

_UNIT = 2.0**-53


@njit(inline="always")
def uniform(state):
    """A number in [0, 1) with 53 bits from a state."""
    return float(mix(state) >> U64(11)) * _UNIT


@njit(nogil=True, cache=True)
def cumulated(scores):
    """Running sums, float64, added one after another (so that they are the same on every machine)."""
    out, total = np.empty(scores.shape[0], np.float64), 0.0
    for i in range(scores.shape[0]):
        total += scores[i]
        out[i] = total
    return out


@njit(inline="always")
def find_between(ends, x, low, high):
    """The first i from ``low`` to ``high`` with ``ends[i] > x``; an interval of length 0 is never found."""
    while low < high:
        middle = (low + high) // 2
        if ends[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@njit(nogil=True, cache=True)
def find(ends, x):
    """The first i with ``ends[i] > x`` in ascending ``ends``; the last i where there is none."""
    return find_between(ends, x, 0, ends.shape[0] - 1)


@njit(nogil=True, cache=True)
def guide_to(ends, out):
    """Where to search in running sums: entry b of ``2**bits + 1`` is the place of the point total * b / 2**bits."""
    number, last, i = out.shape[0] - 1, ends.shape[0] - 1, 0
    for b in range(number):
        x = b / number * ends[last]
        while i < last and ends[i] <= x:
            i += 1
        out[b] = i
    out[number] = last


@njit(nogil=True, cache=True)
def draw_with_replacement(ends, guide, size, key):
    """Draw ``size`` places with probabilities in proportion to the steps of the running sums ``ends``.

    ``guide`` is what ``guide_to`` made of them; it makes searching fast, and nothing else.
    """
    out, state, total = np.empty(size, np.int64), stream(key, 0), ends[-1]
    bits = 0
    while (1 << bits) < guide.shape[0] - 1:
        bits += 1
    for j in range(size):
        state += GOLDEN
        b = int64((mix(state) >> U64(11)) >> U64(53 - bits))
        out[j] = find_between(ends, uniform(state) * total, guide[b], guide[b + 1])
    return out


@njit(nogil=True, cache=True)
def sum_below(scores, cut):
    """Sum and number of the scores below ``cut``, added in their order."""
    total, count = 0.0, 0
    for i in range(scores.shape[0]):
        if scores[i] < cut:
            total += scores[i]
            count += 1
    return total, count


@njit(nogil=True, cache=True)
def count_certain(top, rest):
    """How many of the draws are certain: the k largest scores, which are drawn with probability 1.

    ``top`` are the largest scores, descending, as many as there are draws; ``rest`` is the sum of the others. k is the
    smallest number for which c * score exceeds 1 for no other score, c = (draws - k) / the sum that is left.
    """
    size = top.shape[0]
    left = np.empty(size + 1, np.float64)
    left[size] = rest
    for k in range(size - 1, -1, -1):  # from the smallest, so that no digits cancel
        left[k] = left[k + 1] + top[k]
    k = 0
    while k < size and top[k] * (size - k) > left[k]:
        k += 1
    return k


@njit(nogil=True, cache=True)
def keep_poisson(prob, ids, key):
    """Places that are kept, each on its own with its probability, by the random number of its id."""
    out, n = np.empty(ids.shape[0], np.int64), 0
    for i in range(ids.shape[0]):
        out[n] = i
        n += uniform(stream(key, ids[i]) + GOLDEN) < prob[i]
    return out[:n].copy()


@njit(nogil=True, cache=True)
def hash_order(ids, key):
    """The places of ``ids`` in a random order that depends on the ids only, not on how they are given.

    A bucket sort by the leading bits of a random number, then insertion inside each bucket (two or so).
    """
    n, bits = ids.shape[0], 1
    while (1 << bits) < n:
        bits += 1
    shift = U64(64 - bits)
    number = np.empty(n, np.uint64)
    start = np.zeros((1 << bits) + 1, np.int64)
    for i in range(n):
        number[i] = mix(stream(key, ids[i]) + GOLDEN)
        start[int64(number[i] >> shift) + 1] += 1
    for b in range(1 << bits):
        start[b + 1] += start[b]
    first = start.copy()
    out = np.empty(n, np.int64)
    for i in range(n):
        b = int64(number[i] >> shift)
        at = start[b]
        start[b] += 1
        while at > first[b] and (
            number[out[at - 1]] > number[i] or (number[out[at - 1]] == number[i] and ids[out[at - 1]] > ids[i])
        ):
            out[at] = out[at - 1]
            at -= 1
        out[at] = i
    return out


@njit(nogil=True, cache=True)
def draw_systematic(ends, size, key):
    """Draw ``size`` distinct places, by Deville's systematic method (Deville 1998; Chauvet 2012).

    ``ends`` are the running sums of the probabilities (positive, below 1), which add up to ``size``. The line from 0 to
    ``size`` is cut into strata of length 1; each draws one point. A unit that lies across a border, with a length a
    before and b behind it, is drawn in the later stratum with chance b / (1 - a) where the earlier one left it, and
    never where the earlier one took it, so that it is drawn once with probability a + b.
    """
    out, state = np.empty(size, np.int64), stream(key, 0)
    last = ends.shape[0] - 1
    across, before, behind, taken = -1, 0.0, 0.0, False  # the unit across the lower border of the stratum
    for j in range(size):
        low, high = 0, last  # the unit that reaches the upper border: first i with ends[i] >= j + 1
        while low < high:
            middle = (low + high) // 2
            if ends[middle] >= j + 1:
                high = middle
            else:
                low = middle + 1
        border = low
        state += GOLDEN
        point = uniform(state)
        chance = behind / (1.0 - before) if across >= 0 and not taken else 0.0
        if point < chance:
            pick = across
        else:  # one number serves both decisions, so that a border that rounding moves a little changes nothing
            x = j + behind + (point - chance) / (1.0 - chance) * (1.0 - behind)
            pick = min(max(find(ends, x), across + 1), border)  # also where rounding moved x beyond the stratum
        out[j] = pick
        taken = pick == border
        behind = ends[border] - (j + 1)
        if behind > 0:
            across, before = border, (j + 1) - (ends[border - 1] if border > 0 else 0.0)
        else:
            across, behind = -1, 0.0
    return out
