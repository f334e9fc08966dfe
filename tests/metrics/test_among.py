"""Positives against negatives: ranks, AUC and average precision by their definitions, and OGB's conventions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow import metrics

SCORES = st.integers(-3, 3).map(float) | st.sampled_from([-1e30, 25.0, 26.0, 1e30])
"""Few values, so many ties; some beyond what a sigmoid in float32 tells apart."""


def rank(score: float, negatives: list[float], ties: str) -> float:
    above, same = sum(n > score for n in negatives), sum(n == score for n in negatives)
    return 1 + above + {"realistic": same / 2, "optimistic": 0, "pessimistic": same}[ties]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(SCORES, max_size=8),
    st.integers(0, 6),
    st.data(),
    st.sampled_from(["realistic", "optimistic", "pessimistic"]),
)
def test_ranks_are_those_of_the_definition(positive: list[float], k: int, data: Any, ties: str) -> None:
    shared = data.draw(st.lists(SCORES, min_size=k, max_size=k))
    found = metrics.rank_among(np.array(positive), np.array(shared), ties=ties)
    assert found.ranks.flatten().tolist() == [rank(score, shared, ties) for score in positive]
    own = [data.draw(st.lists(SCORES, min_size=k, max_size=k)) for _ in positive]
    found = metrics.rank_among(np.array(positive), np.array(own).reshape(len(positive), k), ties=ties)
    assert found.ranks.flatten().tolist() == [rank(score, row, ties) for score, row in zip(positive, own, strict=True)]


@settings(max_examples=50, deadline=None)
@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(SCORES, min_size=1, max_size=8))
def test_auc_and_average_precision_are_those_of_the_definition(positive: list[float], negative: list[float]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert metrics.auroc(np.array(positive), np.array(negative)) == pytest.approx(sum(pairs) / len(pairs))
    area, recall = 0.0, 0.0
    for bound in sorted({*positive, *negative}, reverse=True):
        hits, misses = sum(p >= bound for p in positive), sum(n >= bound for n in negative)
        area += (hits / len(positive) - recall) * hits / (hits + misses)
        recall = hits / len(positive)
    assert metrics.average_precision(np.array(positive), np.array(negative)) == pytest.approx(area)


@settings(max_examples=50, deadline=None)
@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(SCORES, max_size=8), st.integers(1, 6))
def test_pessimistic_hits_among_shared_negatives_are_ogbs(positive: list[float], shared: list[float], k: int) -> None:
    """OGB: above the k-th highest negative; all are hits where there are fewer than k."""
    kth = sorted(shared, reverse=True)[k - 1] if len(shared) >= k else -math.inf
    wanted = np.mean([score > kth for score in positive])
    assert metrics.rank_among(np.array(positive), np.array(shared), ties="pessimistic").hits(k) == pytest.approx(wanted)


def test_many_negatives_are_compared_in_pieces() -> None:
    generator = torch.Generator().manual_seed(0)
    good, bad = torch.rand(2**12, generator=generator), torch.rand(2**12, 2**11, generator=generator)
    assert torch.equal(metrics.rank_among(good, bad).ranks[:, 0], 1 + (bad > good[:, None]).sum(1).double())


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
def test_scores_of_two_types_compare_as_they_are(kind: torch.dtype) -> None:
    score = torch.tensor([0.1], dtype=kind)
    assert metrics.rank_among(score, torch.tensor([0.1], dtype=torch.float64)).ranks.item() == (
        1 if score.double().item() > 0.1 else 2
    )


def test_constant_scores_never_look_good() -> None:
    same = np.zeros(50)
    assert metrics.rank_among(same, np.zeros(99)).mean_rank == 50.5
    assert metrics.auroc(same, np.zeros(99)) == 0.5
    assert metrics.average_precision(same, np.zeros(150)) == 0.25


@pytest.mark.parametrize(
    ("positive", "negative", "error", "message"),
    [
        ([0.1, math.nan], [0.2], ValueError, r"positive\[1\] is NaN"),
        ([0.1], [[0.2, math.nan]], ValueError, r"negative\[0, 1\] is NaN"),
        ([0.1], [[0.2], [0.3]], ValueError, r"a row per positive \(1\)"),
        ([[0.1]], [0.2], ValueError, r"positive must have shape \[n\]"),
        (torch.tensor([True]), [0.2], TypeError, "positive must be scores"),
        (torch.tensor([1j]), [0.2], TypeError, "positive must be scores"),
    ],
)
def test_wrong_scores_are_named(positive: Any, negative: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        metrics.rank_among(positive, negative)


@pytest.mark.parametrize("metric", [metrics.auroc, metrics.average_precision])
def test_nothing_has_no_area(metric: Any) -> None:
    with pytest.raises(ValueError, match="negative is empty"):
        metric([0.1], [])
    with pytest.raises(ValueError, match="positive is empty"):
        metric([], [0.1])
    with pytest.raises(ValueError, match=r"negative must have shape \[n\]"):
        metric([0.1], [[0.1]])
