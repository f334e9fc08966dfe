"""Seeds drawn with replacement, in proportion to weights."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_array, as_ids, describe, first_true
from nodeflow._base.types import Floats, IdsLike, NumbersLike
from nodeflow.random import Random


def balanced_weights(labels: IdsLike) -> Tensor:
    """Return a weight for every label with which all classes are drawn equally often.

    The weight is 1 / the number of entries with this label, so the weights of a class add up to 1. For the seeds of a
    loader, pass the labels of the seeds: ``NodeFlowLoader(sampler, train, weights=balanced_weights(label[train]))``.

    Args:
        labels: an integer per seed, ``[num_seeds]``. Negative ones mean "no label": their weight is 0.

    Returns float64 ``[num_seeds]``. Raises TypeError for labels that are not integers, and ValueError for labels of
    another shape, and where no entry has a label.

    >>> balanced_weights(torch.tensor([0, 0, 2, -1]))
    tensor([0.5000, 0.5000, 1.0000, 0.0000], dtype=torch.float64)
    """
    limits = np.iinfo(np.int64)
    array = as_ids(labels, "labels", limits.max, "class", lower=limits.min)
    if not (array >= 0).any():
        raise ValueError(f"labels must have an entry of 0 or more, got {describe(labels)}: no seed has a label")
    _, of, count = np.unique(array, return_inverse=True, return_counts=True)
    return torch.from_numpy(np.where(array >= 0, 1.0 / count[of], 0.0))


def running_sums(weights: NumbersLike, num_seeds: int) -> Floats:
    """Return the sums of the first 1, 2, ... weights, float64; raise an error unless each is finite and at least 0."""
    array = as_array(weights, "weights", "numbers")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"weights must be numbers, one per seed, got dtype {array.dtype}")
    if array.shape != (num_seeds,):
        raise ValueError(
            f"weights must have one entry per seed ({num_seeds}), got shape {array.shape}; for weights by node pass "
            "weights[seeds]"
        )
    array = array.astype(np.float64)
    if (i := first_true(~(np.isfinite(array) & (array >= 0)))) is not None:
        raise ValueError(f"weights must be finite and at least 0, but weights[{i}] is {array[i]}")
    with np.errstate(over="ignore"):
        sums: Floats = np.cumsum(array)
    if num_seeds and not 0 < sums[-1] < np.inf:
        raise ValueError(f"weights must add up to a number above 0, got {sums[-1]}")
    return sums


def draw(sums: Floats, random: Random) -> Tensor:
    """Return as many positions as there are weights, int64: each is i with the probability weight i / their sum."""
    if not len(sums):
        return torch.zeros(0, dtype=torch.int64)
    points = random.uniform(np.arange(len(sums))).numpy() * sums[-1]
    # rounding may give the total itself, which lies past the last positive weight
    last = np.searchsorted(sums, sums[-1])
    return torch.from_numpy(np.minimum(np.searchsorted(sums, points, side="right"), last))
