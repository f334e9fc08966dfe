"""Narrow columns in memory."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._base.calls import checked
from nodeflow._rows.narrow import NarrowRows
from nodeflow._rows.narrowing import narrowed
from nodeflow._rows.rows import Rows
from nodeflow.storage._memory import copied


@checked
def narrow(column: Tensor | Rows, width: str = "int8", *, limit: float = 0.25) -> NarrowRows:
    """Return a dense column in fewer bytes: codes in memory, which all who read it see as float32.

    With "int8" a number is read as a whole multiple of the scale of its column. If all numbers of a column are
    multiples of one step, at most 255 of them from the smallest to the largest (counts, flags, one-hot columns, ages,
    years), that is its scale, and the column keeps its numbers. Otherwise 255 steps go from the smallest to the
    largest, and the error is at most half a step. "float16" and "bfloat16" round every number to its nearest. A range
    of numbers that is wide for few of them costs int8 its precision: clip such columns, or take their logarithm.

    Args:
        column: rows of floating-point numbers, ``[n, ...]``: a tensor, or ``Rows``, which are read in pieces.
        width: "int8", "float16" or "bfloat16"; or "auto": int8 for columns whose error is within ``limit``, float32 for
            the others, or float16 in place of int8 where that takes fewer bytes.
        limit: the largest mean error of a column, as a share of its mean distance from its median; see
            ``ColumnErrors``.

    Raises ValueError for another width, a number that is not finite (with row and column), a column with a larger error
    than ``limit`` (with its number and the error), and "auto" that finds no column to narrow; TypeError for sparse
    rows, integers, and a column that requires a gradient.

    >>> rows = narrow(torch.tensor([[3.0, 0.1], [250.0, 0.2], [7.0, 0.5]]))
    >>> rows.fetch([0, 1])[:, 0], rows.stored.dtype
    (tensor([  3., 250.]), torch.int8)
    """
    rows = narrowed(column, width, limit)
    return NarrowRows(copied(rows.stored, torch.arange(rows.shape[0])), rows.coding)
