"""Means of ranks, by side and by relation, and the table that shows them."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from nodeflow import metrics

RANKS = metrics.Ranks(
    torch.tensor([[1.0, 2.0], [4.0, 10.0], [1.5, 100.0]], dtype=torch.float64),
    ("destination", "source"), torch.tensor([7, 0, 7]), "realistic",
)  # fmt: skip


def test_means() -> None:
    assert RANKS.mean_rank == pytest.approx(118.5 / 6)
    assert RANKS.mrr == pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 10 + 2 / 3 + 1 / 100) / 6)
    assert [RANKS.hits(k) for k in (1, 3, 10)] == pytest.approx([1 / 6, 3 / 6, 5 / 6])
    assert RANKS.summary() == {
        "mean_rank": RANKS.mean_rank, "mrr": RANKS.mrr, **{f"hits@{k}": RANKS.hits(k) for k in (1, 3, 10)},
    }  # fmt: skip


def test_by_side_and_relation() -> None:
    assert {side: part.mean_rank for side, part in RANKS.by_side().items()} == pytest.approx(
        {"destination": 6.5 / 3, "source": 112 / 3}
    )
    assert {kind: part.ranks.tolist() for kind, part in RANKS.by_relation().items()} == {
        0: [[4.0, 10.0]], 7: [[1.0, 2.0], [1.5, 100.0]],
    }  # fmt: skip
    assert RANKS.by_relation()[7].by_side()["source"].ranks.tolist() == [[2.0], [100.0]]
    with pytest.raises(ValueError, match="pairs without relations"):
        metrics.Ranks(RANKS.ranks, RANKS.sides, None, "realistic").by_relation()


def test_the_table() -> None:
    assert repr(RANKS).splitlines() == [
        "Ranks(3 links, ties realistic)",
        "             mean rank     MRR  Hits@1  Hits@3  Hits@10",
        "both              19.8  0.4211  0.1667  0.5000   0.8333",
        "destination        2.2  0.6389  0.3333  0.6667   1.0000",
        "source            37.3  0.2033  0.0000  0.3333   0.6667",
    ]


def test_no_ranks_have_no_mean() -> None:
    none = metrics.Ranks(torch.zeros(0, 2, dtype=torch.float64), RANKS.sides, None, "realistic")
    assert repr(none) == "Ranks(0 links, ties realistic)"
    assert len(none) == 0
    for name in ("mean_rank", "mrr"):
        with pytest.raises(ValueError, match="nothing was ranked"):
            getattr(none, name)
    with pytest.raises(ValueError, match="k must be at least 1"):
        RANKS.hits(0)


def test_ranks_are_copied_and_pickled() -> None:
    for other in (copy.deepcopy(RANKS), pickle.loads(pickle.dumps(RANKS))):
        assert repr(other) == repr(RANKS)
    with pytest.raises(AttributeError, match="immutable"):
        RANKS.ties = "optimistic"  # type: ignore[misc]
