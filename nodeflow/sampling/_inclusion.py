"""Probabilities in proportion to weights that add up to a number per row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import as_array, check_indptr, describe, first_true
from nodeflow._base.types import IdsLike, NumbersLike


def inclusion_probabilities(weight: NumbersLike, indptr: IdsLike, k: int | IdsLike) -> Tensor:
    """Return the probabilities ``min(1, c weight)`` that add up to k in every row, float64 ``[E]``.

    They are the probabilities with which exactly k edges of a destination are drawn without replacement, in proportion
    to their weights. c belongs to the row. Edges for which c times the weight would exceed 1 are certain, and the
    others share what remains of k. In a row with no more than k weights above 0, each of those gets 1.

    Args:
        weight: a number per edge, finite and at least 0, ``[E]``, grouped by row.
        indptr: where the edges of each row begin and end, integers ``[num_rows + 1]``, such as ``Candidates.indptr``.
        k: a number of edges for all rows, or one per row ``[num_rows]``, at least 0, or -1 for all edges.

    Raises TypeError for an ``indptr`` or ``k`` that is not integers, ValueError for arrays that do not fit each other,
    a weight that is negative or not finite, and a k below -1.

    Cost: some passes over the edges, one per round in which an edge is found certain, and one more.

    Source: Sarndal, Swensson, Wretman 1992, section 3.6.1.

    >>> weight = torch.tensor([8.0, 1.0, 1.0, 0.0, 2.0, 3.0, 1.0])  # five edges of one row, two of another
    >>> inclusion_probabilities(weight, [0, 5, 7], 2).tolist()
    [1.0, 0.25, 0.25, 0.0, 0.5, 1.0, 1.0]
    >>> inclusion_probabilities(weight, [0, 5, 7], [-1, 1]).tolist()
    [1.0, 1.0, 1.0, 0.0, 1.0, 0.75, 0.25]
    """
    values = as_array(weight, "weight", "numbers")
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise TypeError(f"weight must be one-dimensional numbers, got {describe(values)}")
    values = values.astype(np.float64)
    if (i := first_true(~(np.isfinite(values) & (values >= 0)))) is not None:
        raise ValueError(f"weight must be finite and not negative, but weight[{i}] is {values[i]}")
    ends, counts = as_array(indptr, "indptr"), as_array(k, "k")
    if ends.ndim != 1 or (ends.size and ends.dtype.kind not in "iu"):
        raise TypeError(f"indptr must be one-dimensional integers, got {describe(indptr)}")
    check_indptr(ends, len(values))
    rows = len(ends) - 1
    if counts.size and counts.dtype.kind not in "iu":
        raise TypeError(f"k must be an integer, or one per row, got {describe(k)}")
    if counts.shape not in ((), (rows,)):
        raise ValueError(f"k must be an integer, or one per row ({rows}), got shape {counts.shape}")
    numbers = np.broadcast_to(counts, rows).astype(np.int64)
    if (i := first_true(numbers < -1)) is not None:
        raise ValueError(f"k must be at least 0, or -1 for all edges, but k of row {i} is {numbers[i]}")
    return torch.from_numpy(kernels.pps.row_probabilities(ends.astype(np.int64), values, numbers))
