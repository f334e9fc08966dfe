"""Draws of LABOR-0 in both forms: compiled loops, and operations of torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import Placed, TwoForms
from nodeflow._core.in_torch import labor, ragged, uniform
from nodeflow._core.random import GOLDEN, mix
from nodeflow.sampling._rows import DrawingRows

Numbers = tuple[NDArray[np.uint64], np.uint32]
"""The keys that the numbers of sources are made from, and the share of sources that use the second,
times 2**32.
"""
_WORDS = 2**32


def fanouts_of(counts: Array, rows: DrawingRows, degree: Ints) -> tuple[Ints, Ints]:
    """Return the fanout of every row, and its degree, which counts as 0 where the fanout is 0."""
    if len(counts) > 1:
        fanout = counts[rows.kinds]
    else:
        fanout = np.full(len(degree), counts[0])
    return fanout, np.where(fanout == 0, 0, degree)


def _compiled(
    edges: Edges,
    rows: DrawingRows,
    counts: Array,
    numbers: Numbers,
    num_nodes: int,
    repeats: Placed | None,
) -> tuple[Any, ...]:
    indptr, begin, degree = kernels.uniform.plan(
        edges.indptr, rows.numbers, counts, rows.kinds, replace=False, left_out=NOTHING
    )
    fanout, degree = fanouts_of(counts, rows, degree)
    if repeats is None:
        expected = int(indptr[-1])
        drawn = kernels.labor.draw_poisson(begin, degree, edges.indices, fanout, *numbers, expected)
        return *drawn, fanout, degree
    # as many as a uniform draw has, so ``plan`` says where they go; Poisson draws vary
    positions = np.empty(indptr[-1], np.int64)
    src = np.empty_like(positions)
    parallel = repeats.at(edges.form)
    kernels.labor.draw_smallest(
        begin, degree, edges.indices, *numbers, *parallel, indptr, positions, src
    )
    return indptr, positions, src, fanout, degree


def _in_torch(
    edges: Edges,
    rows: Any,
    counts: Array,
    numbers: Numbers,
    num_nodes: int,
    repeats: Placed | None,
) -> tuple[Any, ...]:
    begin, end = ragged.spans(edges.arrays.indptr, rows.numbers)
    fanout = uniform.per_kind(counts.tolist(), rows.kinds, begin)
    degree = (end - begin).mul_(fanout != 0)
    # words of 32 bits as Python's integers: they are exact, and torch has no unsigned ones
    keys = [key_of(int(key)) for key in numbers[0]]
    early = int(numbers[1])
    draw: Callable[..., Any] = labor.draw_poisson
    if repeats is not None:
        draw = partial(labor.draw_smallest, repeats=repeats.at(edges.form))
    drawn = draw(begin, degree, edges.arrays.indices, num_nodes, fanout, keys, early)
    return *drawn, fanout, degree


def key_of(bits: int) -> labor.Key:
    """Return a key of 64 bits and its words."""
    first, second = (mix((bits + i * GOLDEN) % 2**64) for i in (1, 2))
    return labor.Key(bits, first % _WORDS, first // _WORDS, second % _WORDS)


KEPT = TwoForms(_compiled, _in_torch)
"""Which edges n rows keep, for ``counts`` by kind and the numbers of sources, which are below
``num_nodes``: where the edges of each row begin, positions, sources, fanouts of rows, and degrees,
0 where the fanout is 0.

Without ``repeats`` (the parallel edges, as ``find_repeats`` gives them) these are Poisson draws,
else the edges whose sources have the smallest numbers.
"""


def _inverses(fanout: Ints, degree: Ints, indptr: Ints, size: int) -> Floats:
    inverse = _WORDS / np.ceil(kernels.labor.labor0_rates(fanout, degree) * _WORDS)
    return np.repeat(inverse, np.diff(indptr))


INVERSES = TwoForms(_inverses, labor.inverses)
"""1 / p of every drawn edge, ``[size]``, where p is rounded up to a multiple of 2**-32, as in the
draw.
"""
