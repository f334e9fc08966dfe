"""Draws from a list with unequal probabilities: with replacement, by Poisson sampling, or a set.

Probabilities in proportion to size are those of Tillé (2006), "Sampling algorithms"; sets of a
fixed size are drawn by Deville's systematic method.
"""

# What is not good yet: ``row_probabilities`` passes over a row three times per round;
# ``draw_systematic`` is the method of ``systematic.strata`` for one long list, written a second
# time.

import numpy as np
from numba import int64

from nodeflow._kernels.arrays import first_above, first_at_least
from nodeflow._kernels.loops import loop
from nodeflow._kernels.relabel import shift_for
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream, uniform


@loop
def guide_to(ends, guide):
    """Fill ``guide`` ``[2**bits + 1]``: entry b is the first i with
    ``ends[i] > total * b / 2**bits``.
    """
    number = guide.shape[0] - 1
    last = ends.shape[0] - 1
    i = 0
    for b in range(number):
        x = b / number * ends[last]
        while i < last and ends[i] <= x:
            i += 1
        guide[b] = i
    guide[number] = last


@loop
def draw_with_replacement(ends, guide, size, key):
    """Draw ``size`` indices with probabilities in proportion to the steps of the running sums
    ``ends``.

    ``guide``, made by ``guide_to``, says between which indices to search. It makes the search fast
    and changes no result.
    """
    drawn = np.empty(size, np.int64)
    state = stream(key, 0)
    total = ends[-1]
    shift = shift_for(guide.shape[0] - 1) - U64(11)
    for j in range(size):
        state += GOLDEN
        b = int64((mix(state) >> U64(11)) >> shift)
        drawn[j] = first_above(ends, guide[b], guide[b + 1], uniform(state) * total)
    return drawn


@loop
def sum_below(scores, cut):
    """Return the sum (added in their order) and the number of the scores below ``cut``."""
    total = 0.0
    count = 0
    for i in range(scores.shape[0]):
        if scores[i] < cut:
            total += scores[i]
            count += 1
    return total, count


@loop
def count_certain(top, rest):
    """Return the number k of certain draws: the k largest scores are drawn with probability 1.

    ``top`` are the largest scores, descending, as many as there are draws; ``rest`` is the sum of
    the others. k is the smallest number for which no other score exceeds (sum of the other scores)
    / (draws - k).
    """
    size = top.shape[0]
    left = np.empty(size + 1, np.float64)
    left[size] = rest
    # from the smallest: small scores added to a large sum would lose digits
    for k in range(size - 1, -1, -1):
        left[k] = left[k + 1] + top[k]
    k = 0
    while k < size and top[k] * (size - k) > left[k]:
        k += 1
    return k


@loop
def row_probabilities(indptr, weights, counts):
    """Return min(1, c w) of every entry, float64 ``[E]``; in row r they add up to ``counts[r]``, -1
    for all entries.

    Where no more entries than that have a weight above 0, each of those gets 1. A round finds the
    entries that are certain beside the others, until no further one is. Weights are taken in units
    of the largest that is not certain, so that sums do not overflow.
    """
    prob = np.zeros(weights.shape[0], np.float64)
    for r in range(counts.shape[0]):
        begin = indptr[r]
        end = indptr[r + 1]
        count = counts[r]
        positive = 0
        for p in range(begin, end):
            positive += weights[p] > 0
        if count < 0 or positive <= count:
            for p in range(begin, end):
                prob[p] = 1.0 if weights[p] > 0 else 0.0
            continue
        # Entries of at least ``cut`` are certain. Smaller entries share the rest of the count, in
        # units of the largest of them; those that would get more than 1 are certain too, and a
        # further round begins.
        certain = 0
        cut = np.inf
        most = 1.0
        unit = np.inf
        while certain < count:
            largest = 0.0
            total = 0.0
            more = 0
            lowest = cut
            for p in range(begin, end):
                if weights[p] < cut:
                    largest = max(largest, weights[p])
            for p in range(begin, end):
                if weights[p] < cut:
                    total += weights[p] / largest
            most = largest
            unit = total / (count - certain)
            for p in range(begin, end):
                if weights[p] < cut and weights[p] / most >= unit:
                    more += 1
                    lowest = min(lowest, weights[p])
            if more == 0:
                break
            certain += more
            cut = lowest
        for p in range(begin, end):
            prob[p] = 1.0 if weights[p] >= cut else weights[p] / most / unit
    return prob


@loop
def keep_poisson(prob, ids, key):
    """Return the indices of the ids that are kept: id i independently, with probability
    ``prob[i]``.
    """
    kept = np.empty(ids.shape[0], np.int64)
    n = 0
    for i in range(ids.shape[0]):
        kept[n] = i
        n += uniform(stream(key, ids[i]) + GOLDEN) < prob[i]
    return kept[:n].copy()


@loop
def hash_order(ids, key):
    """Return the indices of ``ids`` in a random order of the ids, which does not depend on the
    order they come in.

    The method is a bucket sort by the leading bits of the random number of an id, with insertion
    inside the buckets, which hold about one id each.
    """
    n = ids.shape[0]
    shift = shift_for(max(n, 2))
    buckets = 1 << int64(U64(64) - shift)
    number = np.empty(n, np.uint64)
    start = np.zeros(buckets + 1, np.int64)
    for i in range(n):
        number[i] = mix(stream(key, ids[i]) + GOLDEN)
        start[int64(number[i] >> shift) + 1] += 1
    for b in range(buckets):
        start[b + 1] += start[b]
    first = start.copy()
    order = np.empty(n, np.int64)
    for i in range(n):
        b = int64(number[i] >> shift)
        w = start[b]
        start[b] += 1
        while w > first[b] and (
            number[order[w - 1]] > number[i]
            or (number[order[w - 1]] == number[i] and ids[order[w - 1]] > ids[i])
        ):
            order[w] = order[w - 1]
            w -= 1
        order[w] = i
    return order


@loop
def draw_systematic(ends, size, key):
    """Draw ``size`` distinct indices, by Deville's systematic method (Deville 1998; Chauvet 2012).

    ``ends`` are the running sums of the probabilities (positive, below 1), which add up to
    ``size``. The line from 0 to ``size`` is cut into strata of length 1, and each stratum draws one
    point. A unit may lie across a border, with length a before and b after it. If the earlier
    stratum did not draw it, the later one does with probability b / (1 - a); if it did, the later
    one does not. So it is drawn once, with probability a + b.
    """
    drawn = np.empty(size, np.int64)
    state = stream(key, 0)
    last = ends.shape[0] - 1
    # the unit across the lower border of the stratum
    across = -1
    before = 0.0
    behind = 0.0
    taken = False
    for j in range(size):
        border = first_at_least(ends, 0, last, j + 1)  # the unit that reaches the upper border
        state += GOLDEN
        point = uniform(state)
        chance = behind / (1.0 - before) if across >= 0 and not taken else 0.0
        if point < chance:
            pick = across
        else:  # the same number again: rounding of a border changes almost no draws
            x = j + behind + (point - chance) / (1.0 - chance) * (1.0 - behind)
            # rounding may move x beyond the stratum
            pick = min(max(first_above(ends, 0, last, x), across + 1), border)
        drawn[j] = pick
        taken = pick == border
        behind = ends[border] - (j + 1)
        if behind > 0:
            across = border
            before = (j + 1) - (ends[border - 1] if border > 0 else 0.0)
        else:
            across = -1
            behind = 0.0
    return drawn
