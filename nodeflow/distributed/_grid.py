"""Where edges lie, given the masters of their two ends."""

from __future__ import annotations

import math

import numpy as np

from nodeflow._base.types import Array

EDGES = ("in", "out", "grid")
_PAIRS = 2**14  # parts from which on a pair of parts does not fit into int32


def grid_of(num_parts: int) -> tuple[int, int]:
    """Return the rows and columns of a grid of parts: as square as their number allows, no more rows than columns.

    >>> grid_of(12), grid_of(7)
    ((3, 4), (1, 7))
    """
    rows = next(r for r in range(math.isqrt(num_parts), 0, -1) if num_parts % r == 0)
    return rows, num_parts // rows


def part_of_edges(edges: str, num_parts: int, src: Array, dst: Array) -> Array:
    """Return the parts of edges, of which the masters are in the parts ``src`` and ``dst``.

    "in" takes the part of the destination, "out" that of the source, and "grid" the part in the grid row of the source
    and the grid column of the destination, where part k is in row ``k // columns`` and column ``k % columns``.
    """
    if edges == "in":
        return dst
    if edges == "out":
        return src
    columns = grid_of(num_parts)[1]
    kind = np.int32 if num_parts < _PAIRS else np.int64
    found: Array = src.astype(kind) // columns * columns + dst % columns
    return found
