"""LABOR draws: every source has one random number for all destinations (Poisson, order sampling).

LABOR is Balin and Catalyurek (2023), "Layer-neighbor sampling: defusing neighborhood explosion in
GNNs"; order sampling with the smallest numbers of a row is Rosen (1997).

A destination of degree d must look at the numbers of all its d neighbours. The number of a source
is therefore a hash of 32 bits that a processor computes for many sources at once. Rows are hashed
in blocks, and parts of a block in which no number is small enough are skipped.
"""

# What is not good yet: a source with many destinations is hashed for each of them, where
# ``_core.in_torch.kept`` makes a table if that is faster; the two draws share their inner loop only by
# ``_below``; 32 bits make an inclusion probability a multiple of 2**-32.

import numpy as np

from nodeflow._kernels.arrays import reserve
from nodeflow._kernels.instructions import lowest_bit, prefetch
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

U32 = np.uint32
_BLOCK = 512  # numbers hashed at a time: they and their sources stay in the first-level cache
_MASK = 64  # numbers compared at a time, one bit each
_AHEAD = 3  # rows between the prefetch of their first block and its use
_LINE = 64  # bytes that the processor fetches at once
_TOP = U64(32)
_WORDS = 2.0**32
_ONE = U64(1)
_SIGN = U64(1 << 63)
_FEW = 48  # up to this many, inserting one by one sorts fastest


# ---- the number of a source


@inlined
def _round(x, one, two):
    """A bijection of 32 bits that spreads every bit, by xorshifts and two multiplications."""
    x = U32(x ^ (x >> U32(16)))
    x = U32(x * one)
    x = U32(x ^ (x >> U32(15)))
    x = U32(x * two)
    return U32(x ^ (x >> U32(15)))


@inlined
def _hash(x, before, between, after):
    """Two rounds with a word of the key before, between and after them: a bijection for every key.

    With a word before only, the numbers under two keys would be permutations of each other. The
    multipliers are those of C. Wellons' search for 32-bit hashes of low bias (2018).
    """
    x = _round(U32(x ^ before), U32(0x21F0AAAD), U32(0xD35A2D97))
    x = _round(U32(x ^ between), U32(0x7FEB352D), U32(0x846CA68B))
    return U32(x ^ after)


@inlined
def _words(key):
    first = mix(key + GOLDEN)
    second = mix(key + GOLDEN + GOLDEN)
    return U32(first), U32(first >> _TOP), U32(second)


@inlined
def _fold(t):
    """32 bits of an id. An id below 2**32 is kept as it is, so that no two of these have the same
    number.
    """
    upper = U32(U64(t) >> _TOP)
    return U32(U32(t) ^ U32(upper * U32(0x9E3779B9)))


@inlined
def is_renewed(t, keys, early):
    """Whether node ``t`` takes its number from ``keys[1]`` and not from ``keys[0]``: ``early`` in
    2**32 nodes do.
    """
    a, b, c = _words(keys[2])
    return _hash(_fold(t), a, b, c) < early


@loop
def hash_block(ids, keys, early, out):
    """Write the 32-bit number of every id into ``out``, under ``keys[0]`` or ``keys[1]`` (see
    ``is_renewed``).
    """
    a0, b0, c0 = _words(keys[0])
    narrow = ids.itemsize == 4  # known when compiled
    if early == 0:
        for j in range(ids.shape[0]):
            out[j] = _hash(U32(ids[j]) if narrow else _fold(ids[j]), a0, b0, c0)
        return
    a1, b1, c1 = _words(keys[1])
    a2, b2, c2 = _words(keys[2])
    for j in range(ids.shape[0]):
        t = U32(ids[j]) if narrow else _fold(ids[j])
        renewed = _hash(t, a2, b2, c2) < early
        before = a1 if renewed else a0
        between = b1 if renewed else b0
        after = c1 if renewed else c0
        out[j] = _hash(t, before, between, after)


@inlined
def _prefetch_block(indices, first, end):
    """Prefetch the sources of a block, up to ``end``: the processor foresees no more than a few
    lines of a row.
    """
    for position in range(first, min(first + _BLOCK, end), _LINE // indices.itemsize):
        prefetch(indices, position)


# ---- Poisson sampling


@inlined
def _below(numbers, g, size, bound):
    """A bit for each of the 64 numbers from ``g``: whether it is at most ``bound`` and its index
    below ``size``.
    """
    part = numbers[g : g + _MASK]
    mask = U64(0)
    for q in range(_MASK):  # vectorised, which an early exit or a branch would prevent
        mask |= U64(part[q] <= bound) << U64(q)
    if size - g < _MASK:
        mask &= (_ONE << U64(size - g)) - _ONE
    return mask


@inlined
def _bound(rate):
    """The largest number of 32 bits that is kept with probability ``rate``, rounded up."""
    return U32(U64(np.ceil(rate * _WORDS)) - _ONE)


@inlined
def _trimmed(array, used):
    return array[:used] if 2 * used > array.shape[0] else array[:used].copy()


@inlined
def _probability(fanout, degree):
    """Return the inclusion probability of the edges of a row in LABOR-0, which is c of the row
    where all pi are 1.
    """
    return 1.0 if fanout < 0 or degree <= fanout else fanout / degree


@inlined
def sum_of_inverses(fanout, degree):
    """Return the sum of 1 / p over the edges of a row in LABOR-0, which LABOR-i keeps."""
    return float(degree) * degree / fanout


@loop
def labor0_rates(fanout, degree):
    """Return ``_probability`` of every row: for the weights of Poisson draws, and as the first c of
    LABOR-i.

    ``fanout`` and ``degree`` have an entry per row, here and below; -1 takes all edges.
    """
    rates = np.empty(degree.shape[0], np.float64)
    for i in range(degree.shape[0]):
        rates[i] = _probability(fanout[i], degree[i])
    return rates


@loop
def draw_poisson(begin, degree, indices, fanout, keys, early, expected):
    """Keep the edges of each row whose source has a number below ``ceil(2**32 * p)``, p of
    ``_probability``.

    Returns ``(indptr, positions, src)``. ``expected`` is the expected number of edges.
    """
    n = begin.shape[0]
    indptr = np.zeros(n + 1, np.int64)
    # Slack above the expected number saves reallocations by ``reserve``.
    capacity = expected + 4 * int(np.sqrt(expected)) + _BLOCK
    positions = np.empty(capacity, np.int64)
    src = np.empty(capacity, np.int64)
    numbers = np.zeros(_BLOCK, U32)
    w = 0
    for i in range(n):
        if i + _AHEAD < n:
            _prefetch_block(indices, begin[i + _AHEAD], begin[i + _AHEAD] + degree[i + _AHEAD])
        first = begin[i]
        d = degree[i]
        rate = _probability(fanout[i], degree[i])
        if rate == 1.0:
            positions = reserve(positions, w, d)
            src = reserve(src, w, d)
            for j in range(d):
                positions[w + j] = first + j
                src[w + j] = indices[first + j]
            w += d
            indptr[i + 1] = w
            continue
        # Numbers are hashed and compared a block at a time, in loops without branches that the
        # compiler turns into vectors; only the edges that are kept are then visited one by one.
        bound = _bound(rate)
        for start in range(first, first + d, _BLOCK):
            _prefetch_block(indices, start + _BLOCK, first + d)
            part = indices[start : min(start + _BLOCK, first + d)]
            size = part.shape[0]
            hash_block(part, keys, early, numbers)
            positions = reserve(positions, w, size)
            src = reserve(src, w, size)
            for g in range(0, size, _MASK):
                mask = _below(numbers, g, size, bound)
                while mask:
                    q = g + np.int64(lowest_bit(mask))
                    positions[w] = start + q
                    src[w] = part[q]
                    w += 1
                    mask &= mask - _ONE
        indptr[i + 1] = w
    return indptr, _trimmed(positions, w), _trimmed(src, w)


# ---- order sampling: the smallest numbers of a row


@loop
def draw_smallest(begin, degree, indices, keys, early, again, copies, indptr, positions, src):
    """Fill ``positions`` and ``src`` with the edges of each row whose sources have the smallest
    numbers.

    They are as many as ``indptr`` says, and come in the order of the row. ``again`` are the
    positions (ascending) of edges whose source occurred before in the row, and ``copies`` how often
    it did (see ``find_repeats``): such an edge has a number of its own. Rows are shorter than
    2**32.
    """
    # number << 32 | offset in the row, less 2**63, so that it fits int64 in the same order
    smallest = np.empty(_BLOCK, np.int64)
    numbers = np.zeros(_BLOCK, U32)
    n = begin.shape[0]
    for i in range(n):
        if i + _AHEAD < n:
            _prefetch_block(indices, begin[i + _AHEAD], begin[i + _AHEAD] + degree[i + _AHEAD])
        first = begin[i]
        d = degree[i]
        w = indptr[i]
        k = indptr[i + 1] - indptr[i]
        if k == d:
            for j in range(d):
                positions[w + j] = first + j
                src[w + j] = indices[first + j]
            continue
        # The k smallest of d uniform numbers lie below about k / d. Numbers below a somewhat larger
        # bound are collected, and only these are sorted; in the few rows that have less than k of
        # them, the bound is doubled.
        guess = (k + 4 * np.sqrt(k) + 4) / d
        count = 0
        while count < k:
            bound = _bound(min(1.0, guess))
            count = 0
            guess = 2 * guess
            extra = np.searchsorted(again, first) if again.shape[0] else 0
            for start in range(first, first + d, _BLOCK):
                _prefetch_block(indices, start + _BLOCK, first + d)
                part = indices[start : min(start + _BLOCK, first + d)]
                size = part.shape[0]
                hash_block(part, keys, early, numbers)
                smallest = reserve(smallest, count, size)
                while extra < again.shape[0] and again[extra] < start + size:
                    j = again[extra] - start
                    numbers[j] = _number_of_copy(part[j], keys, early, copies[extra])
                    extra += 1
                for g in range(0, size, _MASK):
                    mask = _below(numbers, g, size, bound)
                    while mask:
                        p = g + np.int64(lowest_bit(mask))
                        offset = start - first + p
                        smallest[count] = np.int64((U64(numbers[p]) << _TOP | U64(offset)) ^ _SIGN)
                        count += 1
                        mask &= mask - _ONE
        # By number, and where numbers are equal by place in the row; then the k first in the order
        # of the row.
        _sort(smallest, count)
        for q in range(k):
            smallest[q] &= 0xFFFFFFFF
        _sort(smallest, k)
        for q in range(k):
            positions[w + q] = first + smallest[q]
            src[w + q] = indices[first + smallest[q]]


@inlined
def _sort(array, size):
    """Sort the first ``size`` entries in place."""
    if size > _FEW:
        ordered = np.sort(array[:size])
        for i in range(size):
            array[i] = ordered[i]
        return
    for i in range(1, size):
        entry = array[i]
        j = i
        while j > 0 and array[j - 1] > entry:
            array[j] = array[j - 1]
            j -= 1
        array[j] = entry


@inlined
def _number_of_copy(t, keys, early, copy):
    key = keys[1] if is_renewed(t, keys, early) else keys[0]
    return U32(mix(stream(key, t) + U64(copy) * GOLDEN) >> _TOP)


@loop
def find_repeats(indptr, indices, num_nodes):
    """Return ``(positions, copies)`` of the edges whose source occurred before in their row, and
    how often it did.
    """
    last = np.full(num_nodes, -1, np.int64)
    times = np.zeros(num_nodes, np.int32)
    again = np.empty(16, np.int64)
    copies = np.empty(16, np.int64)
    w = 0
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[row], indptr[row + 1]):
            t = indices[e]
            if last[t] != row:
                last[t] = row
                times[t] = 0
                continue
            times[t] += 1
            again = reserve(again, w, 1)
            copies = reserve(copies, w, 1)
            again[w] = e
            copies[w] = times[t]
            w += 1
    return again[:w].copy(), copies[:w].copy()
