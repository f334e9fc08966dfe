"""Poisson draws of LABOR-0 in both forms: compiled loops, and operations of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._edges.edges import NOTHING, Edges
from nodeflow._edges.forms import Loop
from nodeflow._tensors import labor, ragged, uniform
from nodeflow.random import GOLDEN, mix

if TYPE_CHECKING:
    from nodeflow.sampling._rows import DrawingRows

Numbers = tuple[NDArray[np.uint64], np.uint32]
"""The keys that the numbers of sources are made from, and the share of sources that use the second, times 2**32."""
Result = tuple[Any, Any, Any, Any, Any]
"""Where the edges of each row begin, positions, sources, fanouts of rows, and degrees, 0 where the fanout is 0."""
_WORDS = 2**32


def fanouts_of(counts: NDArray[Any], rows: DrawingRows, degree: Ints) -> tuple[Ints, Ints]:
    """Return the fanout of every row, and its degree, which counts as 0 where the fanout is 0."""
    fanout = counts[rows.kinds] if len(counts) > 1 else np.full(len(degree), counts[0])
    return fanout, np.where(fanout == 0, 0, degree)


def _compiled(edges: Edges, rows: DrawingRows, counts: NDArray[Any], numbers: Numbers) -> Result:
    of_rows = edges.indptr, rows.numbers, counts, rows.kinds, False, NOTHING
    indptr, begin, degree = kernels.uniform.plan(*of_rows)
    fanout, degree = fanouts_of(counts, rows, degree)
    expected = int(indptr[-1])
    drawn = kernels.labor.draw_poisson(begin, degree, edges.indices, fanout, *numbers, expected)
    return *drawn, fanout, degree


def _in_torch(edges: Edges, rows: DrawingRows, counts: NDArray[Any], numbers: Numbers) -> Result:
    arrays, (keys, early) = edges.arrays, numbers
    of_rows: Any = rows.numbers, rows.kinds
    begin, end = ragged.spans(arrays.indptr, of_rows[0])
    fanout = uniform.per_kind(counts.tolist(), of_rows[1], begin)
    degree = (end - begin).mul_(fanout != 0)
    words = [words_of(int(key)) for key in keys]
    return *labor.draw_poisson(begin, degree, arrays.indices, fanout, words, int(early)), fanout, degree


def words_of(key: int) -> labor.Words:
    """Return the words of 32 bits that ``kernels.labor`` makes of a key."""
    first, second = (mix((key + i * GOLDEN) % 2**64) for i in (1, 2))
    return first % _WORDS, first // _WORDS, second % _WORDS


POISSON = Loop(_compiled, _in_torch)
"""Which edges n rows keep, for ``counts`` by kind and the numbers of sources."""


def _inverses(fanout: Ints, degree: Ints, indptr: Ints, size: int) -> NDArray[np.float64]:
    inverse = _WORDS / np.ceil(kernels.labor.labor0_rates(fanout, degree) * _WORDS)
    return np.repeat(inverse, np.diff(indptr))


INVERSES = Loop(_inverses, labor.inverses)
"""1 / p of every drawn edge, ``[size]``, where p is rounded up to a multiple of 2**-32, as in the draw."""
