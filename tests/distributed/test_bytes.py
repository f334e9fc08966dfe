"""Arrays come back from their bytes as they were, and integers take few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, from_dtype

from nodeflow._peers.packed import pack, unpack

KINDS = list(map(np.dtype, ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")))


@st.composite
def any_array(draw: Any) -> np.ndarray:
    kind = draw(st.sampled_from(KINDS))
    if kind.kind != "i" or draw(st.booleans()):
        return draw(arrays(kind, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9)))
    # long ones, near each other or not, ascending or nearly so
    limits = np.iinfo(kind)
    width = draw(st.sampled_from([1, 200, 255, 256, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]))
    first = draw(st.integers(limits.min, limits.max))
    last = min(first + width, limits.max)
    values = np.array(draw(st.lists(st.integers(first, last) | st.sampled_from([first, last]), max_size=90)), kind)
    if draw(st.booleans()):
        values.sort()
    if len(values) and draw(st.booleans()):
        values[draw(st.integers(0, len(values) - 1))] = draw(from_dtype(kind))
    return values


@settings(max_examples=300)
@given(st.lists(any_array(), max_size=4))
def test_arrays_come_back(every: list[np.ndarray]) -> None:
    found = unpack(pack(every))
    assert len(found) == len(every)
    for array, back in zip(every, found, strict=True):
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("array", "width"),
    [
        (np.arange(0, 100_000, 100), 1),  # ids of which each hundredth is asked for
        (np.arange(0, 10**8, 10**5), 4),
        (np.random.default_rng(0).integers(5 * 10**9, 5 * 10**9 + 60_000, 1000), 2),
        (np.random.default_rng(0).integers(0, 10, 1000), 1),  # numbers of edges
        (np.random.default_rng(0).integers(-(2**62), 2**62, 1000), 8),
        (np.random.default_rng(0).integers(0, 2**31 - 1, 1000).astype(np.int32), 4),
        (np.random.default_rng(0).integers(0, 2**16, 1000).astype(np.int32), 2),
    ],
)
def test_integers_take_few_bytes(array: np.ndarray, width: int) -> None:
    assert len(pack([array])) == pytest.approx(width * len(array), abs=64)
