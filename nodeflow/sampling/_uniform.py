"""Uniform draws of rows in both forms, compiled loops and operations of torch: of all edges, or of
past ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.forms import TwoForms
from nodeflow._core.in_torch import uniform
from nodeflow.sampling._rows import DrawingRows

Result = tuple[Any, Any, Any, Any]
"""Where the edges of each row begin ``[n + 1]``, degrees ``[n]``, positions ``[E]`` and sources
``[E]``.
"""


def _filled(
    edges: Edges,
    rows: DrawingRows,
    counts: Array,
    key: int,
    plan: tuple[Ints, Ints, Ints],
    *,
    replace: bool,
) -> Result:
    """Draw what a plan says: how many edges each row draws, where those it draws from begin, and
    how many they are.
    """
    indptr, begin, degree = plan
    positions = np.empty(indptr[-1], edges.position_type)
    src = np.empty(indptr[-1], np.int64)
    if replace and (counts >= 0).any():
        kernels.uniform.draw_with(
            begin,
            degree,
            edges.indices,
            rows.ident,
            np.uint64(key),
            counts,
            rows.kinds,
            indptr,
            positions,
            src,
        )
    else:
        kernels.uniform.draw_without(
            begin, degree, edges.indices, rows.ident, np.uint64(key), indptr, positions, src
        )
    return indptr, degree, positions, src


def _compiled(edges: Edges, rows: DrawingRows, counts: Array, key: int, *, replace: bool) -> Result:
    left_out = edges.left_out
    plan = kernels.uniform.plan(edges.indptr, rows.numbers, counts, rows.kinds, replace, left_out)
    indptr, degree, positions, src = _filled(edges, rows, counts, key, plan, replace=replace)
    if len(left_out):
        kernels.uniform.step_over(
            edges.indptr, rows.numbers, left_out, edges.indices, indptr, positions, src
        )
    return indptr, degree, positions, src


def _in_torch(edges: Edges, rows: Any, counts: Array, key: int, *, replace: bool) -> Result:
    return uniform.draw(
        edges.arrays.indptr,
        edges.arrays.indices,
        rows.numbers,
        rows.ident,
        key,
        counts.tolist(),
        rows.kinds,
        replace=replace,
        left_out=edges.form.array(edges.left_out),
    )


UNIFORM = TwoForms(_compiled, _in_torch)
"""How n rows draw ``counts`` edges, by kind (-1: all), without repeats or with ``replace``."""


class Window(NamedTuple):
    """The time of which edges count; arrays are those of the form.

    Attributes:
        stamps: the time of every edge by position, ascending in a row.
        limits: the last time that counts, by context; with ``strict`` the first that does not.
        starts: the first time that counts, by context; empty: no time is too early.
        lowest: what stands for no time.
        longest: no row has more edges.
    """

    stamps: Any
    limits: Any
    starts: Any
    lowest: Any
    longest: int
    strict: bool

    def plan(self, edges: Edges, rows: DrawingRows, counts: Array, *, replace: bool) -> Any:
        """Return what ``kernels.uniform.plan_past`` does."""
        return kernels.uniform.plan_past(
            edges.indptr,
            self.stamps,
            rows.numbers,
            self.limits,
            self.starts,
            self.lowest,
            rows.contexts,
            counts,
            rows.kinds,
            replace,
            self.strict,
        )


def _compiled_past(
    edges: Edges,
    rows: DrawingRows,
    counts: Array,
    key: int,
    window: Window,
    *,
    replace: bool,
    recent: bool,
) -> Result:
    indptr, begin, num_past = window.plan(edges, rows, counts, replace=replace)
    if recent:
        latest = np.diff(indptr)
        # of which all are taken
        begin = begin + num_past - latest
        num_past = latest
    return _filled(edges, rows, counts, key, (indptr, begin, num_past), replace=replace)


def _past_in_torch(
    edges: Edges,
    rows: Any,
    counts: Array,
    key: int,
    window: Window,
    *,
    replace: bool,
    recent: bool,
) -> Result:
    fanouts = counts.tolist()
    begin, num_past = uniform.past(
        edges.arrays.indptr,
        window.stamps,
        rows.numbers,
        window.limits,
        window.starts,
        window.lowest.item(),
        rows.contexts,
        window.longest,
        strict=window.strict,
    )
    if recent:
        fanout = uniform.per_kind(fanouts, rows.kinds, num_past)
        latest = uniform.number_drawn(num_past, fanout, replace=False)
        begin = begin + num_past - latest
        num_past = latest
        fanouts = [-1]
    indptr, positions = uniform.draw_between(
        begin, num_past, rows.ident, key, fanouts, rows.kinds, window.longest, replace=replace
    )
    return indptr, num_past, positions, edges.arrays.indices.index_select(0, positions).long()


PAST = TwoForms(_compiled_past, _past_in_torch)
"""How n rows draw ``counts`` of their edges in a ``window``, as ``UNIFORM`` or, with ``recent``,
the latest of them.

Degrees are the numbers of these edges, with ``recent`` of those taken.
"""
