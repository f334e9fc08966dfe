"""The counter-based generator in compiled loops: 64 random bits of a key, an id and a count.

It is SplitMix64 (Steele, Lea, Flood 2014) with a stream per id.

``U64`` is more than a type: numba compares a signed index with 0 at every access, since it may
count from the end. An index that is cast to ``U64`` is not compared. In loops of sums and draws
that is a tenth of the time, and loops of copies become vectors only so.
"""

# What is not good yet: the streams of two ids are parts of one sequence of 2**64 states, which
# may overlap, though hardly ever near each other.

import numpy as np
from numba import int64, uint64

from nodeflow._kernels.loops import inlined, loop

U64 = np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)
_HALF = U64(32)
_LOW = U64(0xFFFFFFFF)


@inlined
def mix(z):
    """The finalizer of SplitMix64 (Steele, Lea, Flood 2014, figure 16): a bijection that spreads
    every bit.
    """
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


@inlined
def stream(key, ident):
    """State before the first draw of ``ident`` under ``key``; adding GOLDEN gives the next state,
    mix its bits.
    """
    return mix(key ^ mix(U64(ident) * GOLDEN + GOLDEN))


@inlined
def bounded(state, bound):
    """Return ``(number uniform in [0, bound), new state)``, exactly uniform (Lemire 2019, algorithm
    5).

    Draws again where multiply-and-shift would favour some numbers.
    """
    state += GOLDEN
    if bound > _LOW:  # beyond 32 bits: keep as many bits as the bound has, and reject
        mask = bound - U64(1)
        for shift in (1, 2, 4, 8, 16, 32):
            mask |= mask >> U64(shift)
        number = mix(state) & mask
        while number >= bound:
            state += GOLDEN
            number = mix(state) & mask
        return number, state
    product = (mix(state) >> _HALF) * bound
    if (product & _LOW) < bound:
        threshold = (U64(0x100000000) - bound) % bound
        while (product & _LOW) < threshold:
            state += GOLDEN
            product = (mix(state) >> _HALF) * bound
    return product >> _HALF, state


@inlined
def uniform(state):
    """A number uniform in [0, 1) with 53 bits, from a state."""
    return float(int64(mix(state) >> U64(11))) * 2.0**-53


@loop
def fill_bits(key, ids, draw, out):
    """Write 64 random bits for every id: draw number ``draw`` of its stream."""
    step = uint64(draw + 1) * GOLDEN
    for i in range(ids.shape[0]):
        out[i] = mix(stream(key, ids[i]) + step)


@loop
def fill_bounded(key, ids, draw, bounds, out):
    """Write a number uniform in ``[0, bounds[i])`` for every id, from a stream that belongs to (id,
    draw).
    """
    for i in range(ids.shape[0]):
        state = stream(stream(key, ids[i]), draw)
        number, state = bounded(state, U64(bounds[i]))
        out[i] = np.int64(number)
