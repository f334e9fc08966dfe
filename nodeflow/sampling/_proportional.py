"""Draws in proportion to an edge column, from alias tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array
from nodeflow.graph._edges import Edges
from nodeflow.sampling._frontier import Inclusion
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

    def inclusion(self, edges: Edges, rows: Ints, fanouts: Ints, *, replace: bool) -> Inclusion:
        """Return how often rows draw their edges; ``fanouts`` has a number per row, -1 for all edges."""
        indptr, positions = kernels.csr.csr_rows(edges.indptr, rows)
        weights = self.weights[positions].astype(np.float64)
        row = np.repeat(np.arange(len(rows)), np.diff(indptr))
        if not replace:
            prob = kernels.pps.row_probabilities(indptr, weights, fanouts)
            return Inclusion(np.bincount(row, prob, len(rows)).astype(np.float64), prob, per_edge=True)
        total = np.bincount(row, weights, len(rows))
        share = np.minimum(weights / np.where(total > 0, total, 1)[row], 1 - 1e-16)
        once = -np.expm1(fanouts[row] * np.log1p(-share))
        some = np.where(fanouts < 0, np.bincount(row, weights > 0, len(rows)), fanouts * (total > 0))
        return Inclusion(some.astype(np.float64), np.where(fanouts[row] < 0, weights > 0, once), per_edge=True)

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
        given = (weights, positions, indptr, unit, replace)
        return Drawn(indptr, positions, src, lambda: kernels.weighted.inverse_probability(*given), True)
