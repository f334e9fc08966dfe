"""Faults planted in the draw on purpose: each must be found by the tests that the real sampler passes.

The planted versions are plain Python; they go through the same counting and the same thresholds as ``test_uniform.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from _support.sampler_reference import Stream, chi_square
from test_uniform import subset_counts

Below = Callable[[Stream, int], int]


def fair(rng: Stream, bound: int) -> int:
    return rng.below(bound)


def modulo_of_16_bits(rng: Stream, bound: int) -> int:
    return (rng.word() & 0xFFFF) % bound


def float32_scaling(rng: Stream, bound: int) -> int:
    return min(int(np.float32(rng.word() >> 40) / np.float32(2**24) * np.float32(bound)), bound - 1)


def multiply_without_rejection(rng: Stream, bound: int, width: int = 8) -> int:
    # few bits, so that what 32 bits hide well is large enough to be seen
    return ((rng.word() >> (64 - width)) * bound) >> width


def floyd(rng: Stream, degree: int, count: int, below: Below = fair) -> list[int]:
    picked: list[int] = []
    for last in range(degree - count, degree):
        t = below(rng, last + 1)
        picked.append(last if t in picked else t)
    return picked


def one_too_few(rng: Stream, degree: int, count: int) -> list[int]:
    """The bound is ``last``, not ``last + 1``."""
    picked: list[int] = []
    for last in range(degree - count, degree):
        t = rng.below(max(last, 1))
        picked.append(last if t in picked else t)
    return picked


def always_the_whole_list(rng: Stream, degree: int, count: int) -> list[int]:
    """The bound is the degree in every step, so that a replacement may be an edge drawn before."""
    picked: list[int] = []
    for j in range(count):
        t = rng.below(degree)
        picked.append(degree - count + j if t in picked else t)
    return picked


def linear_probe(rng: Stream, degree: int, count: int) -> list[int]:
    """A pick made before is replaced by the next free edge."""
    picked: list[int] = []
    for _ in range(count):
        t = rng.below(degree)
        while t in picked:
            t = (t + 1) % degree
        picked.append(t)
    return picked


def counts(draw: Callable[[Stream, int, int], list[int]], degree: int, fanout: int, number: int = 20_000) -> np.ndarray:
    rows = np.array([draw(Stream(1, ident), degree, fanout) for ident in range(number)])
    return subset_counts(rows, degree, fanout)


def found(draw: Callable[[Stream, int, int], list[int]], degree: int, fanout: int) -> bool:
    try:
        return chi_square(counts(draw, degree, fanout)) > 1
    except AssertionError:  # an edge was drawn twice
        return True


def test_the_true_method_passes():
    assert chi_square(counts(floyd, 7, 3)) < 1
    assert chi_square(counts(floyd, 5, 1)) < 1


@pytest.mark.parametrize("fault", [one_too_few, always_the_whole_list, linear_probe])
def test_faults_in_floyds_method_are_found(fault):
    assert found(fault, 7, 3)


@pytest.mark.parametrize("below", [modulo_of_16_bits, multiply_without_rejection])
def test_biased_bounded_draws_are_found(below):
    degree = 70_000 if below is modulo_of_16_bits else 192
    numbers = np.array([below(Stream(2, ident), degree) for ident in range(20_000)])
    edges = np.linspace(0, degree, 65).astype(np.int64)
    by_place = chi_square(np.histogram(numbers, bins=edges)[0], np.diff(edges) / degree * len(numbers))
    by_residue = chi_square(np.bincount(numbers % 3, minlength=3))
    assert max(by_place, by_residue) > 1


def test_float32_scaling_is_found():
    """With 24 bits, a bound of 3 * 2**23 leaves every third number out of reach."""
    bound = 3 * 2**23
    numbers = np.array([float32_scaling(Stream(3, ident), bound) for ident in range(20_000)])
    assert chi_square(np.bincount(numbers % 3, minlength=3)) > 1
    numbers = np.array([fair(Stream(3, ident), bound) for ident in range(20_000)])
    assert chi_square(np.bincount(numbers % 3, minlength=3)) < 1


def test_a_shared_stream_is_found():
    """Two destinations that draw from one stream: the joint table sees it."""
    first = np.array([Stream(4, ident).below(7) for ident in range(20_000)])
    assert chi_square(np.bincount(first * 7 + first, minlength=49)) > 1
    second = np.array([Stream(4, ident + 1).below(7) for ident in range(20_000)])
    assert chi_square(np.bincount(first * 7 + second, minlength=49)) < 1
