"""Positives against negatives: ranks, area under the ROC curve, average precision, with defined handling of ties."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._base.checks import as_array, check_one_of, describe
from nodeflow._base.types import NumbersLike
from nodeflow.metrics._ranks import TIES, Ranks

_COMPARED = 2**22
"""Approximate number of comparisons made at a time."""


def rank_among(positive: NumbersLike, negative: NumbersLike, *, ties: str = "realistic") -> Ranks:
    """Rank the score of every positive among those of its negatives, or of the negatives that all share.

    The rank is 1 + the number of negatives that score higher; equal ones count by ``ties``. So "realistic" ranks among
    ``[n, k]`` negatives give OGB's MRR (``ogbl-citation2``, ``ogbl-wikikg2``), and "pessimistic" ranks among shared
    ones OGB's Hits@K (``ogbl-ppa``, ``ogbl-collab``, ``ogbl-ddi``): a positive is a hit where fewer than K negatives
    score as high as it does.

    Args:
        positive: a score per positive, ``[n]``; higher is more likely.
        negative: scores ``[n, k]`` of each positive's own negatives, or ``[k]`` of negatives that all share.
        ties: "realistic" (the mean of best and worst rank), "optimistic" or "pessimistic", as in ``rank_links``.

    Returns ranks, float64 ``[n, 1]``. Costs a sort of shared negatives, else a comparison per score.

    Raises TypeError or ValueError for scores of another type or shape, and for NaN.

    >>> rank_among([0.9, 0.2], [[0.1, 0.3], [0.2, 0.3]]).ranks.flatten()
    tensor([1.0000, 2.5000], dtype=torch.float64)
    >>> rank_among([0.9, 0.2], [0.1, 0.2, 0.3], ties="pessimistic").hits(2)
    0.5
    """
    check_one_of(ties, "ties", TIES)
    good = _scores(positive, "positive", (1,))
    bad = _scores(negative, "negative", (1, 2))
    if bad.ndim == 1:
        below, upto = _counts(good, bad)
        above, equal = len(bad) - upto, upto - below
    else:
        if len(bad) != len(good):
            raise ValueError(f"negative must have a row per positive ({len(good)}), got shape {tuple(bad.shape)}")
        above, equal = torch.zeros(len(good), dtype=torch.int64), torch.zeros(len(good), dtype=torch.int64)
        step = max(_COMPARED // max(bad.shape[1], 1), 1)
        for part in (slice(i, i + step) for i in range(0, len(good), step)):
            above[part] = (bad[part] > good[part, None]).sum(1)
            equal[part] = (bad[part] == good[part, None]).sum(1)
    return Ranks((1 + above + TIES[ties] * equal.double())[:, None], ("negatives",), None, ties)


def auroc(positive: NumbersLike, negative: NumbersLike) -> float:
    """Return the area under the ROC curve: how often a positive scores above a negative, ties count half.

    Args:
        positive, negative: scores ``[n]`` and ``[k]``, of any range; higher is more likely.

    Returns a number from 0 to 1; constant scores give 0.5. Raises what ``rank_among`` raises, and ValueError where
    there is no positive or no negative.

    >>> auroc([0.9, 0.2], [0.1, 0.2])
    0.875
    """
    good, bad = _both(positive, negative)
    below, upto = _counts(good, bad)
    return float((below + upto).double().mean()) / 2 / len(bad)


def average_precision(positive: NumbersLike, negative: NumbersLike) -> float:
    """Return the mean, over the positives, of the precision among everything that scores at least as high.

    Args:
        positive, negative: scores ``[n]`` and ``[k]``, of any range; higher is more likely.

    Returns a number from 0 to 1; constant scores give n / (n + k). Raises what ``auroc`` raises. Without ties this is
    the area under the precision-recall curve as a sum of rectangles.

    >>> average_precision([0.9, 0.2], [0.1, 0.3])
    0.8333333333333333
    """
    good, bad = _both(positive, negative)
    hits = len(good) - _counts(good, good)[0]
    misses = len(bad) - _counts(good, bad)[0]
    return float((hits.double() / (hits + misses)).mean())


def _counts(scores: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """For every score the number of others below it, and the number at most as high."""
    ordered = others.sort().values
    return torch.searchsorted(ordered, scores), torch.searchsorted(ordered, scores, right=True)


def _both(positive: NumbersLike, negative: NumbersLike) -> tuple[Tensor, Tensor]:
    good, bad = _scores(positive, "positive", (1,)), _scores(negative, "negative", (1,))
    for name, scores in (("positive", good), ("negative", bad)):
        if not len(scores):
            raise ValueError(f"{name} is empty: one score at least is needed on both sides")
    return good, bad


def _scores(value: object, name: str, dims: tuple[int, ...]) -> Tensor:
    """Check scores; float64 holds every float exactly, so that scores of two types compare as they are."""
    if not isinstance(value, Tensor):
        value = torch.from_numpy(as_array(value, name).copy())
    if value.dtype == torch.bool or value.is_complex():
        raise TypeError(f"{name} must be scores, real numbers, got {describe(value)}")
    if value.ndim not in dims:
        shapes = " or ".join(("[n]", "[n, k]")[dim - 1] for dim in dims)
        raise ValueError(f"{name} must have shape {shapes}, got {tuple(value.shape)}")
    scores = value.detach().double().cpu()
    if (wrong := scores.isnan().nonzero()).numel():
        raise ValueError(f"{name}{wrong[0].tolist()} is NaN, which has no rank")
    return scores.contiguous()
