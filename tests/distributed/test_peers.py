"""What processes exchange: the same for any number of them, and an error of one is known to all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from _support.ranks import ThreadTransport, group, run_ranks

from nodeflow import Graph
from nodeflow._processes.exchanges import is_heard_by_all
from nodeflow.distributed import PeerError


def on_ranks(size: int, work: Callable[[Any], Any]) -> list[Any]:
    """Return what ``work`` gives on every rank; a single one has no group."""

    def run(transport: ThreadTransport) -> Any:
        alone = Graph.from_edges([0], [0]).peers
        return work(alone if size == 1 else group(transport))

    return run_ranks(size, run)


def mean_of(peers: Any, number: float) -> float:
    with peers.averaging([], number) as means:
        pass
    return means[0]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_get_the_same(size):
    def work(peers: Any) -> list[Any]:
        rank = peers.rank
        weights = torch.full((2,), float(rank + 1))
        peers.copy_first("weights", [weights])
        rows = torch.arange(6.0).view(6, 1)[rank::size]
        return [
            peers.totals("counts", rank, 1, 10),
            mean_of(peers, float(rank)),
            peers.rows_of_all("rows", torch.arange(6)[rank::size], rows, 6).flatten().tolist(),
            peers.of_first(
                "a value", lambda: {"rank": rank, "rows": torch.ones(2, dtype=torch.bfloat16)}
            ),
            weights.tolist(),
            peers.totals("nothing"),
        ]

    results = on_ranks(size, work)
    for totals, mean, rows, value, weights, nothing in results:
        assert (totals, mean) == ([size * (size - 1) // 2, size, 10 * size], (size - 1) / 2)
        assert (rows, weights, nothing) == ([0, 1, 2, 3, 4, 5], [1, 1], [])
        assert value["rank"] == 0
        assert value["rows"].dtype == torch.bfloat16


def test_an_error_of_the_first_is_known_to_all():
    def work(peers: Any) -> tuple[str, bool]:
        def fail() -> None:
            raise FileNotFoundError("no such file: run.toml")

        with pytest.raises((FileNotFoundError, PeerError)) as caught:
            peers.of_first("settings", fail)
        assert peers.totals("what comes next", 1) == [2]
        return str(caught.value), is_heard_by_all(caught.value)

    assert on_ranks(2, work) == [
        ("no such file: run.toml", True),
        (
            "rank 0 failed while this one was at settings: FileNotFoundError: no such file: "
            "run.toml (at settings)",
            True,
        ),
    ]


def test_an_error_is_sent_once_through_all_that_enclose_it():
    def work(peers: Any) -> list[int]:
        with pytest.raises((ValueError, PeerError), match="bad"), peers.together("outer"):  # noqa: PT012
            with peers.together("inner"):
                if peers.rank == 1:
                    raise ValueError("bad")
            peers.gather("rows", [])
        return peers.totals("what comes next", 1)

    assert on_ranks(2, work) == [[2], [2]]


def test_errors_of_several_are_those_of_each():
    def work(peers: Any) -> tuple[str, bool]:
        with pytest.raises(ValueError, match="rank") as caught, peers.together("settings"):
            raise ValueError(f"rank {peers.rank}")
        return str(caught.value), is_heard_by_all(caught.value)

    assert on_ranks(2, work) == [("rank 0", True), ("rank 1", True)]
