"""Draws in proportion to an edge column: the weights beside the edge arrays, and prefix sums to search in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodeflow._check import Ints
from nodeflow._frozen import Frozen
from nodeflow.columns import edge_numbers
from nodeflow.graph import Graph
from nodeflow.kernels.weighted import (
    block_sums,
    draw_proportional,
    draw_systematic,
    inverse_probability,
    plan_weighted,
)
from nodeflow.sampling.edges import Edges
from nodeflow.sampling.rows import Drawn, Rows

_LEAST, _MOST = 1e-280, 1e280  # sums, quotients and products of such numbers stay finite, and above 0


def edge_weights(graph: Graph, name: Any, argument: str) -> NDArray[Any]:
    """Return an edge column that draws may be proportional to, float32 or float64 ``[num_edges]``, shared if it can be.

    Raises ValueError for numbers that are not finite, negative, or (float64) neither 0 nor from 1e-280 to 1e280.
    """
    column = edge_numbers(graph, name, argument, signed=False)
    if column.dtype == np.float64:
        wrong = ((column < _LEAST) & (column != 0)) | (column > _MOST)
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(
                f"{argument}: the edge column {name!r} must have numbers from {_LEAST} to {_MOST}, or 0, but edge {at} "
                f"has {column[at]}; only ratios count, so multiply the column by a constant"
            )
    return np.ascontiguousarray(column)


class Cumulative(Frozen):
    """Weights of the edges of every row, and their prefix sums at the ends of blocks of 16 edges.

    Args:
        edges: the edge arrays, without a patch.
        column: weights by edge id, ``[num_edges]``, from ``edge_weights``.

    ``weights`` has them by position: the column itself where positions are edge ids. The sums and the largest weight of
    every row take ``num_edges / 2 + 12 num_rows`` bytes (16 with float64 weights). Made in one pass over all edges.
    """

    __slots__ = ("column", "most", "sums", "weights")
    column: NDArray[Any]
    weights: NDArray[Any]
    sums: NDArray[np.float64]
    most: NDArray[Any]

    def __init__(self, edges: Edges, column: NDArray[Any]) -> None:
        weights = edges.by_position(column)
        sums, most = block_sums(edges.indptr, weights)
        self._set(column=column, weights=weights, sums=sums, most=most)

    def draw(self, edges: Edges, rows: Rows, fanouts: Ints, key: int, *, replace: bool) -> Drawn:
        """Draw for ``rows`` of ``edges``, as many as ``fanouts`` (one number per kind of row, -1 = all) says."""
        weights, sums = self.weights, self.sums
        indptr, begin, degree, way, numbers = plan_weighted(
            edges.indptr, sums, self.most, weights, rows.at, rows.ident, fanouts, replace
        )
        positions, src = np.empty(indptr[-1], edges.place_type), np.empty(indptr[-1], np.int64)
        draw = draw_proportional if replace else draw_systematic
        lines = (begin, degree, edges.near, weights, sums, rows.at, rows.ident)
        draw(*lines, np.uint64(key), way, numbers, indptr, positions, src)

        def inverse() -> NDArray[Any]:
            found: NDArray[Any] = inverse_probability(weights, positions, indptr, numbers, replace)
            return found

        return Drawn(indptr, positions, src, None if (fanouts < 0).all() else inverse)
