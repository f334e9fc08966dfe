"""``nodeflow partition --for processes``: the parts of a data set, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from _support.cli_tools import status, two_communities
from _support.parts_tools import check_parts, renumbered

from nodeflow.datasets import read_folder
from nodeflow.distributed import GraphParts
from nodeflow.partitions import Partitions
from nodeflow.transform import reverse


def test_parts_hold_the_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = two_communities(tmp_path / "two")
    words = ["partition", str(data), "--parts", "4", "--for", "processes", "--method", "random", "--direction", "out"]
    assert status([*words, "--output", str(tmp_path / "a"), "--edges", "grid", "--balance", "--seed", "3"]) == 0
    parts, dataset = GraphParts.open(tmp_path / "a"), read_folder(data)
    assert (parts.edges, parts.method, parts.grid) == ("grid", "random", (2, 2))
    check_parts(reverse(dataset.graph), parts)
    for own, nodes in zip((parts.train, parts.val, parts.test), dataset.splits.values(), strict=True):
        assert own is not None
        assert own.tolist() == sorted(nodes.tolist())
    assert set(parts.report().train or ()) == {15}
    said = capsys.readouterr().out
    assert str(parts.report()) in said
    assert repr(parts) in said
    assert status([*words, "--output", str(tmp_path / "b"), "--renumber", "--seed", "3"]) == 0
    parts = GraphParts.open(tmp_path / "b")
    assert (parts.edges, parts.renumbered) == ("in", True)
    check_parts(renumbered(reverse(dataset.graph), parts), parts)


def test_partitions_for_a_buffer_are_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = two_communities(tmp_path / "two")
    assert status(["partition", str(data), "--parts", "4", "--output", str(tmp_path / "a")]) == 0
    parts = Partitions.open(tmp_path / "a")
    assert f"edges, {parts.cut:.1%} cut, ndata" in repr(parts)
    assert repr(parts) in capsys.readouterr().out


def test_metis_is_what_processes_get(tmp_path: Path) -> None:
    pytest.importorskip("pymetis")
    data = two_communities(tmp_path / "two")
    assert status(["partition", str(data), "--parts", "2", "--for", "processes", "--output", str(tmp_path / "a")]) == 0
    assert GraphParts.open(tmp_path / "a").method == "metis"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--edges", "in"], "--edges is for parts of processes; give --for processes, or leave it out"),
        (["--renumber"], "--renumber is for parts of processes"),
        (["--balance"], "--balance is for parts of processes"),
        (["--for", "processes", "--parts", "0"], "parts must be at least 1, got 0"),
    ],
)
def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    data = two_communities(tmp_path / "two")
    assert status(["partition", str(data), "--parts", "2", "--output", str(tmp_path / "a"), *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_balance_needs_training_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "edges.npz", src=np.arange(5), dst=np.arange(5)[::-1])
    np.save(tmp_path / "features.npy", torch.eye(5).numpy())
    words = ["partition", str(tmp_path), "--parts", "2", "--output", str(tmp_path / "a"), "--for", "processes"]
    assert status([*words, "--balance"]) == 2
    assert "--balance balances training nodes, and data set" in capsys.readouterr().err
