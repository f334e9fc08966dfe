"""Results of the instructions of compiled loops on many numbers: compiled, or of their forms in
Python.

``python instructions.py FILE`` writes them, with the fingerprints of a batch of every sampler.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numba import njit

from _support.sampler_families import everything
from nodeflow._kernels.instructions import bit_length, high_product, lowest_bit
from nodeflow._kernels.simd import (
    HALF,
    LANES,
    add,
    div,
    exp_below_zero,
    load,
    load_half,
    mul,
    mul_add,
    splat,
    splat_half,
    store,
    sub,
    total,
    where_above,
    where_equal,
)

ROWS = 300


@njit
def work_on_bits(a, b, out):
    for i in range(a.shape[0]):
        out[i, 0] = high_product(a[i], b[i])
        out[i, 1] = bit_length(a[i])
        out[i, 2] = lowest_bit(a[i] | np.uint64(1) << np.uint64(63))


@njit
def work_on_vectors(x, y, z, out):
    """Work on ``i % 16 + 1`` numbers of row i, and on all of it, and on the first half."""
    for i in range(x.shape[0] // LANES):
        at = i * LANES
        count = i % LANES + 1
        a = load(x, at, count)
        b = load(y, at, count)
        c = load(z, at, LANES)
        store(out[0], at, count, add(a, b))
        store(out[1], at, count, sub(a, b))
        store(out[2], at, count, mul(a, b))
        store(out[3], at, count, div(a, b))
        store(out[4], at, LANES, where_above(a, b, c, splat(x[at])))
        store(out[5], at, LANES, where_equal(a, b, c, splat(x[at])))
        half = mul(load(x, at, HALF), load(z, at + HALF, HALF))
        store(out[6], at, HALF, half)
        out[7, at] = total(half)
        out[7, at + 1] = total(a)
        few = min(count, HALF)
        out[7, at + 2] = total(sub(load_half(y, at, few), splat_half(z[at])))


@njit
def work_with_rounding(x, y, z, out):
    for i in range(x.shape[0] // LANES):
        at = i * LANES
        a = load(x, at, LANES)
        b = load(y, at, LANES)
        c = load(z, at, LANES)
        store(out[0], at, LANES, mul_add(a, b, c))
        below = where_above(a, splat(x.dtype.type(0)), sub(splat(x.dtype.type(0)), a), a)
        store(out[1], at, LANES, exp_below_zero(below))


@njit
def work_on_words(words, halves, small, singles, out, read):
    for i in range(words.shape[0] // LANES):
        at = i * LANES
        count = i % LANES + 1
        store(read[0], at, count, load(words, at, count))
        store(read[1], at, count, load(halves, at, count))
        store(read[2], at, count, load(small, at, count))
        store(out, at, count, load(singles, at, count))


def numbers(rng: np.random.Generator, dtype: type, usual: bool = False) -> np.ndarray:
    """Numbers of many sizes; but for the usual ones also infinity, NaN, -0 and denormal ones."""
    drawn = rng.standard_normal(ROWS * 16) * 10.0 ** rng.integers(-3, 3, ROWS * 16)
    if not usual:
        special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40, 1.0, 1.0, -1.0, 3e38])
        drawn = np.where(rng.random(ROWS * 16) < 0.3, rng.choice(special, ROWS * 16), drawn)
    with np.errstate(over="ignore"):
        return drawn.astype(dtype)


def results() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(0, 2**64, 2000, np.uint64) >> rng.integers(0, 64, 2000, np.uint64)
        for _ in range(2)
    )
    a[:3] = 0
    b[:3] = 2**64 - 1
    bits = np.zeros((2000, 3), np.uint64)
    work_on_bits(a, b, bits)
    found = {"bits": bits}
    for dtype in (np.float32, np.float64):
        out = np.zeros((8, ROWS * 16), dtype)
        work_on_vectors(*(numbers(rng, dtype) for _ in range(3)), out)
        found[f"vectors of {dtype.__name__}"] = out
        out = np.zeros((2, ROWS * 16), dtype)
        a, b, c = (numbers(rng, dtype, usual=True) for _ in range(3))
        work_with_rounding(a, b, c, out)
        found[f"rounded {dtype.__name__}"] = out
        found[f"error of {dtype.__name__}"] = np.finfo(dtype).eps * (np.abs(a * b) + np.abs(c))
    words = rng.integers(0, 2**16, ROWS * 16, np.uint16)
    halves = rng.integers(-(2**15), 2**15, ROWS * 16, np.int16)
    out = np.zeros(ROWS * 16, np.uint16)
    read = np.zeros((3, ROWS * 16), np.float32)
    work_on_words(words, halves, halves.astype(np.int8), numbers(rng, np.float32), out, read)
    return found | {"stored words": out, "read words": read}


def main() -> None:
    with np.errstate(all="ignore"):
        found = results()
    np.savez(Path(sys.argv[1]), **found, samplers=np.array(list(everything().items())))


if __name__ == "__main__":
    main()
