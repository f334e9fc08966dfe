"""Draws in proportion to an edge column, from alias tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array
from nodeflow._edges.edges import Edges
from nodeflow.sampling._rows import DrawingRows, Drawn


class Proportional(Frozen):
    """Weights of the edges of every row, and alias tables to draw in proportion to them.

    Args:
        edges: the edge arrays, without a patch.
        column: weights by edge id, ``[num_edges]``, from ``edge_numbers``, without sign.

    ``weights`` are the weights by position, which is the column itself where positions are edge ids. ``table`` and
    ``sums`` take ``8 num_edges + 24 num_rows`` bytes (see ``_kernels/draw/alias.py``). Cost: one pass over all edges.
    """

    __slots__ = ("column", "sums", "table", "weights")
    column: Array
    weights: Array
    table: NDArray[np.uint64]
    sums: NDArray[np.float64]

    def __init__(self, edges: Edges, column: Array) -> None:
        weights = np.ascontiguousarray(edges.by_position(column))
        # made here, since numpy asks for large pages where it can: random access to small ones takes twice the time
        table, sums = np.zeros(len(weights), np.uint64), np.zeros((edges.num_rows, 3), np.float64)
        kernels.alias.build_tables(edges.indptr, weights, table, sums)
        self._set(column=column, weights=weights, table=table, sums=sums)

    def draw(self, edges: Edges, rows: DrawingRows, fanouts: Ints, key: int, *, replace: bool) -> Drawn:
        """Draw ``fanouts`` edges for each of ``rows``: one number per type of row, -1 for all edges."""
        weights, number = self.weights, np.uint64(key)
        indptr, begin, degree, unit, top, ways, sizes = kernels.weighted.plan_weighted(
            edges.indptr, self.sums, weights, rows.numbers, rows.ident, fanouts, replace
        )
        positions, src = np.empty(indptr[-1], edges.position_type), np.empty(indptr[-1], np.int64)
        table, scan, keep = (
            ways[way, : sizes[way]] for way in (kernels.weighted.TABLE, kernels.weighted.SCAN, kernels.weighted.KEEP)
        )
        drawn = (edges.indices, rows.ident, number)
        if replace:
            kernels.alias.draw_alias(table, begin, degree, self.table, *drawn, indptr, positions, src)
        elif len(table):
            kernels.sampford.draw_sampford(
                table, begin, degree, self.table, weights, *drawn, unit, top, indptr, positions, src
            )
        if len(scan):
            kernels.systematic.draw_systematic(scan, begin, degree, weights, *drawn, unit, top, indptr, positions, src)
        if len(keep):
            kernels.weighted.keep_nonzero(keep, begin, weights, edges.indices, indptr, positions, src)
        if (fanouts < 0).all():
            return Drawn(indptr, positions, src, None, True)
        arguments = (weights, positions, indptr, unit, replace)
        return Drawn(indptr, positions, src, lambda: kernels.weighted.inverse_probability(*arguments), True)
