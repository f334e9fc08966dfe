"""Binary searches in parts of ascending arrays."""

from __future__ import annotations

from numba import njit


@njit(inline="always")
def first_at_least(values, first, end, bound):
    """The first i from ``first`` to ``end`` with ``values[i] >= bound``; ``end`` where there is none."""
    while first < end:
        middle = (first + end) // 2
        if values[middle] < bound:
            first = middle + 1
        else:
            end = middle
    return first


@njit(inline="always")
def first_above(values, first, end, bound):
    """The first i from ``first`` to ``end`` with ``values[i] > bound``; ``end`` where there is none."""
    while first < end:
        middle = (first + end) // 2
        if values[middle] > bound:
            end = middle
        else:
            first = middle + 1
    return first
