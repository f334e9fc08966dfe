"""Ranks, their means and table; positives against negatives: ranks, AUC, average precision, OGB's
conventions.
"""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st

from nodeflow import metrics

SCORES = st.integers(-3, 3).map(float) | st.sampled_from([-1e30, 25.0, 26.0, 1e30])
"""Few values, so many ties; some beyond what a sigmoid in float32 tells apart."""


def rank(score: float, negatives: list[float], ties: str) -> float:
    above = sum(n > score for n in negatives)
    same = sum(n == score for n in negatives)
    return 1 + above + {"realistic": same / 2, "optimistic": 0, "pessimistic": same}[ties]


@examples(50)
@given(
    st.lists(SCORES, max_size=8),
    st.integers(0, 6),
    st.data(),
    st.sampled_from(["realistic", "optimistic", "pessimistic"]),
)
def test_ranks_are_those_of_the_definition(positive, k, data, ties):
    shared = data.draw(st.lists(SCORES, min_size=k, max_size=k))
    found = metrics.rank_among(np.array(positive), np.array(shared), ties=ties)
    assert found.ranks.flatten().tolist() == [rank(score, shared, ties) for score in positive]
    own = [data.draw(st.lists(SCORES, min_size=k, max_size=k)) for _ in positive]
    found = metrics.rank_among(
        np.array(positive), np.array(own).reshape(len(positive), k), ties=ties
    )
    assert found.ranks.flatten().tolist() == [
        rank(score, row, ties) for score, row in zip(positive, own, strict=True)
    ]


@examples(50)
@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(SCORES, min_size=1, max_size=8))
def test_auc_and_average_precision_are_those_of_the_definition(positive, negative):
    scores = np.array([*positive, *negative])
    labels = np.array([1] * len(positive) + [0] * len(negative))
    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert metrics.auroc(scores, labels) == pytest.approx(sum(pairs) / len(pairs))
    area = 0.0
    recall = 0.0
    for bound in sorted({*positive, *negative}, reverse=True):
        hits = sum(p >= bound for p in positive)
        misses = sum(n >= bound for n in negative)
        area += (hits / len(positive) - recall) * hits / (hits + misses)
        recall = hits / len(positive)
    assert metrics.average_precision(scores, labels) == pytest.approx(area)


@examples(50)
@given(st.lists(SCORES, min_size=1, max_size=8), st.lists(SCORES, max_size=8), st.integers(1, 6))
def test_pessimistic_hits_among_shared_negatives_are_ogbs(positive, shared, k):
    """OGB: above the k-th highest negative; all are hits where there are fewer than k."""
    kth = sorted(shared, reverse=True)[k - 1] if len(shared) >= k else -math.inf
    wanted = np.mean([score > kth for score in positive])
    assert metrics.rank_among(np.array(positive), np.array(shared), ties="pessimistic").hits(
        k
    ) == pytest.approx(wanted)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
def test_scores_of_two_types_compare_as_they_are(kind):
    score = torch.tensor([0.1], dtype=kind)
    assert metrics.rank_among(score, torch.tensor([0.1], dtype=torch.float64)).ranks.item() == (
        1 if score.double().item() > 0.1 else 2
    )


# ---- means of ranks, by side and by relation, and the table that shows them

RANKS = metrics.Ranks(
    torch.tensor([[1.0, 2.0], [4.0, 10.0], [1.5, 100.0]], dtype=torch.float64),
    ("destination", "source"), torch.tensor([7, 0, 7]), "realistic",
)  # fmt: skip


def test_by_side_and_relation():
    assert {side: part.mean_rank for side, part in RANKS.by_side().items()} == pytest.approx(
        {"destination": 6.5 / 3, "source": 112 / 3}
    )
    assert {kind: part.ranks.tolist() for kind, part in RANKS.by_relation().items()} == {
        0: [[4.0, 10.0]], 7: [[1.0, 2.0], [1.5, 100.0]],
    }  # fmt: skip
    assert RANKS.by_relation()[7].by_side()["source"].ranks.tolist() == [[2.0], [100.0]]
    with pytest.raises(ValueError, match="pairs without relations"):
        metrics.Ranks(RANKS.ranks, RANKS.sides, None, "realistic").by_relation()


def test_the_table():
    assert repr(RANKS).splitlines() == [
        "Ranks(3 links, ties realistic)",
        "             mean rank     MRR  Hits@1  Hits@3  Hits@10",
        "both              19.8  0.4211  0.1667  0.5000   0.8333",
        "destination        2.2  0.6389  0.3333  0.6667   1.0000",
        "source            37.3  0.2033  0.0000  0.3333   0.6667",
    ]


def test_no_ranks_have_no_mean():
    none = metrics.Ranks(torch.zeros(0, 2, dtype=torch.float64), RANKS.sides, None, "realistic")
    assert repr(none) == "Ranks(0 links, ties realistic)"
    assert len(none) == 0
    for name in ("mean_rank", "mrr"):
        with pytest.raises(ValueError, match="nothing was ranked"):
            getattr(none, name)
    with pytest.raises(ValueError, match="k must be at least 1"):
        RANKS.hits(0)


def test_ranks_are_copied_and_pickled():
    for other in (copy.deepcopy(RANKS), pickle.loads(pickle.dumps(RANKS))):
        assert repr(other) == repr(RANKS)
    with pytest.raises(AttributeError, match="cannot assign"):
        RANKS.ties = "optimistic"  # type: ignore[misc]
