"""Draws from a list of candidates with probability proportional to size (pps), the size being a score."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array, Floats
from nodeflow.random import derive_key


class Picked(NamedTuple):
    """The drawn candidates.

    Attributes:
        places: their indices in the list of candidates, ascending, int64 ``[k]``.
        times: how often each was drawn, int64 ``[k]``; 1 without replacement.
        mean: the mean of ``times``, float64 ``[k]``: ``size * q`` with replacement, else the probability of being
            drawn. Sums over the drawn candidates, weighted by ``times / mean``, are unbiased.
    """

    places: Ints
    times: Ints
    mean: Floats


def scale_of(values: NDArray[np.floating]) -> float:
    """Return the power of two that brings the largest absolute value to between 1/2 and 1; 1 where all are 0.

    Multiplied by it, values neither overflow nor vanish when they are squared and added, and none loses a digit.
    """
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    # a subnormal number would need a factor that is no number
    return 2.0 ** -max(math.frexp(largest)[1], -1000) if largest > 0 else 1.0


def squared_norms(sources: Array, weights: Array | None, size: int) -> Floats:
    """Return for each of ``size`` sources the sum of the squared ``weights`` (None: 1) of its edges, float64."""
    squares = None if weights is None else np.square(weights, dtype=np.float64)
    return np.bincount(sources, squares, minlength=size).astype(np.float64)


def list_probabilities(scores: Floats, size: int) -> Floats:
    """Return ``min(1, c * score)`` with the c for which the probabilities add up to ``size``, float64 ``[n]``.

    Args:
        scores: finite, not negative, float64 ``[n]``.
        size: at least 1. Where no more candidates than this have a score above 0, each of those gets 1.

    Source: Sarndal, Swensson, Wretman 1992, section 3.6.1. Cost: proportional to n, and to size * log(size).

    >>> list_probabilities(np.array([8.0, 1.0, 1.0, 0.0, 2.0]), 2)
    array([1.  , 0.25, 0.25, 0.  , 0.5 ])
    """
    scores = scores * scale_of(scores)
    positive = scores > 0
    prob = positive.astype(np.float64)
    if int(np.count_nonzero(positive)) <= size:
        return prob
    at = len(scores) - size
    top = np.sort(np.partition(scores, at)[at:])[::-1]
    rest, below = kernels.pps.sum_below(scores, top[-1])
    certain = kernels.pps.count_certain(top, rest + (at - below) * top[-1])
    cut = top[certain - 1] if certain else np.inf
    left, number = kernels.pps.sum_below(scores, cut)
    others = scores < cut
    prob[others] = np.minimum(scores[others] / left * (size - (len(scores) - number)), 1.0)
    return prob


class Line(NamedTuple):
    """Candidates in the order of a systematic draw.

    Attributes:
        certain: places of the candidates with probability 1.
        order: places of the others, in the order of the draw.
        ends: running sums of the probabilities in that order; the last one is ``size``.
        size: the sum of the probabilities of the others, an integer.
    """

    certain: Ints
    order: Ints
    ends: Floats
    size: int


def laid_out(prob: Floats, ids: Ints, key: int) -> Line:
    """Lay candidates with these probabilities (which add up to an integer) in the order that ``key`` gives ``ids``.

    Cost: proportional to their number.
    """
    certain, others = np.flatnonzero(prob >= 1), np.flatnonzero((prob > 0) & (prob < 1))
    order = others[kernels.pps.hash_order(ids[others], np.uint64(key))]
    ends = np.cumsum(prob[order])
    size = round(float(ends[-1])) if len(ends) else 0
    ends = np.minimum(ends, size)  # which rounding may have missed by a little
    ends[-1:] = size
    return Line(certain, order, ends, size)


def pick_systematic(line: Line, prob: Floats, key: int) -> Picked:
    """Draw exactly as many distinct candidates as the probabilities add up to, each with its own (Deville 1998).

    Cost: proportional to the number drawn, times the logarithm of the number of candidates.
    """
    drawn = kernels.pps.draw_systematic(line.ends, line.size, np.uint64(key)) if line.size else line.order[:0]
    places = np.sort(np.concatenate([line.certain, line.order[drawn]]))
    return Picked(places, np.ones(len(places), np.int64), prob[places])


class Ladder(NamedTuple):
    """Candidates prepared for draws with replacement: scores, their running sums, and a guide for faster search."""

    scores: NDArray[np.floating]
    ends: Floats
    guide: NDArray[np.signedinteger]


def ladder(scores: NDArray[np.floating], bits: int = 0) -> Ladder:
    """Prepare scores ``[n]``, at least one positive. A 2**bits near n makes draws fast. Cost: proportional to n."""
    ends = np.cumsum(scores, dtype=np.float64)
    guide = np.empty(2**bits + 1, np.int32 if len(ends) < 2**31 else np.int64)
    kernels.pps.guide_to(ends, guide)
    return Ladder(scores, ends, guide)


def pick_with_replacement(steps: Ladder, size: int, key: int) -> Picked:
    """Draw ``size`` times in proportion to the scores.

    Cost: proportional to ``size``, times the logarithm of the number of candidates without a guide.
    """
    places, times = np.unique(
        kernels.pps.draw_with_replacement(steps.ends, steps.guide, size, np.uint64(key)), return_counts=True
    )
    return Picked(places, times, steps.scores[places].astype(np.float64) * (size / steps.ends[-1]))


def pick(scores: Floats, ids: Ints, size: int, draw: str, key: int) -> Picked:
    """Draw candidates in proportion to their scores.

    Args:
        scores: finite, not negative, float64 ``[n]``; candidates with 0 are never drawn.
        ids: ids of the candidates, to which their random numbers belong, distinct, int64 ``[n]``.
        size: how many draws; with "poisson" on average.
        draw: "replacement": each draw takes candidate u with probability q_u = score / sum of the scores.
            "poisson": each candidate is drawn on its own, with probability ``min(1, c * score)``.
            "systematic": exactly ``size`` distinct candidates, with the same probabilities.
        key: the random numbers' key.

    If all scores are 0, nothing is drawn.

    >>> picked = pick(np.array([3.0, 0.0, 1.0]), np.array([7, 8, 9]), 2, "systematic", key=0)
    >>> picked.places, picked.mean
    (array([0, 2]), array([1., 1.]))
    """
    scores = scores * scale_of(scores)
    if not scores.any():
        return Picked(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    if draw == "replacement":
        return pick_with_replacement(ladder(scores), size, key)
    prob = list_probabilities(scores, size)
    if draw == "systematic":
        return pick_systematic(laid_out(prob, ids, derive_key(key, 1)), prob, key)
    places = kernels.pps.keep_poisson(prob, ids, np.uint64(key))
    return Picked(places, np.ones(len(places), np.int64), prob[places])
