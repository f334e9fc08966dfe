"""Every instruction of compiled loops as a function of Python: what it means, without a word of
speed.

With ``NUMBA_DISABLE_JIT=1`` numba compiles nothing, and the loops run as Python with these,
thousands of times slower: for a debugger, for coverage, or to see whether a result is the
compiler's doing. ``tests/kernels/test_in_python.py`` holds the compiled instructions against them.
A vector is an array of 16 or of 8 numbers.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

ACTIVE = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether loops run as Python."""
_SMALLEST_POWER = {np.dtype(np.float32): -87.0, np.dtype(np.float64): -708.0}


class Written(int):
    """A count that is written in a loop: the compiler sees it, and so does Python, unlike a count
    that is computed.
    """


# ---- bits and prefetches


def prefetch(array: Any, index: int) -> None:
    """Nothing is seen of a prefetch but its speed."""


def prefetch_lines(array: Any, begin: int, count: int) -> None:
    """Nothing is seen of a prefetch but its speed."""


def prefetch_at(array: Any, positions: Any, i: int) -> None:
    """Nothing is seen of a prefetch but its speed."""


def high_product(a: int, b: int) -> Any:
    return np.uint64(int(a) * int(b) >> 64)


def bit_length(a: int) -> Any:
    return np.uint64(int(a).bit_length())


def lowest_bit(word: int) -> Any:
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


# ---- memory


def pread(file: int, address: int, size: int, offset: int) -> int:
    try:
        piece = os.pread(file, size, offset)
    except OSError:
        return -1
    ctypes.memmove(address, piece, len(piece))
    return len(piece)


def _loaded(array: Any, index: int, count: int, lanes: int) -> Any:
    numbers = array.reshape(-1)[int(index) : int(index) + int(count)]
    if array.dtype == np.uint16:  # the bits of bfloat16 are the upper half of those of float32
        numbers = (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if array.dtype == np.int16:
        numbers = numbers.view(np.float16).astype(np.float32)
    if array.dtype == np.int8:
        numbers = numbers.astype(np.float32)
    vector = np.zeros(lanes, numbers.dtype)
    vector[: int(count)] = numbers
    return vector


def load(array: Any, index: int, count: int) -> Any:
    return _loaded(array, index, count, count if isinstance(count, Written) else 16)


def load_half(array: Any, index: int, count: int) -> Any:
    return _loaded(array, index, count, 8)


def store(array: Any, index: int, count: int, vector: Any) -> None:
    if array.dtype == np.uint16:
        bits = vector.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(
            16
        )
        vector = np.where(np.isnan(vector), np.uint32(0x7FC0), rounded).astype(np.uint16)
    array.reshape(-1)[int(index) : int(index) + int(count)] = vector[: int(count)]


def put(array: Any, index: int, vector: Any, streamed: bool) -> None:
    store(array, index, len(vector), vector)


def fence() -> None:
    """Each store of Python is seen at once."""


# ---- arithmetic


def splat(number: Any) -> Any:
    return np.full(16, number)


def splat_half(number: Any) -> Any:
    return np.full(8, number)


def splat_wide(number: Any) -> Any:
    return np.full(64, number)


def add(a: Any, b: Any) -> Any:
    return a + b


def sub(a: Any, b: Any) -> Any:
    return a - b


def mul(a: Any, b: Any) -> Any:
    return a * b


def div(a: Any, b: Any) -> Any:
    return a / b


def mul_add(a: Any, b: Any, c: Any) -> Any:
    """For float32 rounded to float64 and then once more, so nearly always as if once; for float64
    twice.
    """
    return (a.astype(np.float64) * b + c).astype(a.dtype)


def total(a: Any) -> Any:
    while len(a) > 1:
        a = a[: len(a) // 2] + a[len(a) // 2 :]
    return a[0]


def where_above(a: Any, b: Any, yes: Any, no: Any) -> Any:
    return np.where((a > b) | np.isnan(a), yes, no)


def where_equal(a: Any, b: Any, yes: Any, no: Any) -> Any:
    return np.where(a == b, yes, no)


def exp_below_zero(a: Any) -> Any:
    return np.where(
        a >= _SMALLEST_POWER[a.dtype], np.exp(a), np.where(np.isnan(a), a, a.dtype.type(0))
    )
