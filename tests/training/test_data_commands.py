"""The commands of data: graph folders built from files of edges, and graphs cut into partitions and parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from _support.cli_tools import status, train, two_communities
from _support.parts_tools import check_parts, renumbered

from nodeflow import Graph
from nodeflow.datasets import read_folder
from nodeflow.distributed import GraphParts
from nodeflow.partitions import Partitions
from nodeflow.transform import reverse

pytestmark = pytest.mark.usefixtures("one_thread")


def scores(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.split()[:1] in (["train"], ["val"], ["test"])]


def test_from_edges_to_a_trained_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = two_communities(tmp_path / "two")
    with np.load(data / "edges.npz") as arrays:
        ends = np.stack([arrays["src"], arrays["dst"]], 1)
    np.savetxt(tmp_path / "a.csv", ends[:400], "%d", delimiter=",", header="src,dst", comments="")
    np.save(tmp_path / "b.npy", ends[400:])
    for name in ("features", "labels"):
        np.save(tmp_path / f"{name}.npy", np.load(data / f"{name}.npy"))
    split = read_folder(data).splits
    for part, nodes in split.items():
        np.save(tmp_path / f"{part}.npy", nodes.numpy())
    files = [f"--{name}={tmp_path / name}.npy" for name in ("features", "labels", *split)]
    papers = tmp_path / "papers"
    arguments = ["build", str(tmp_path / "a.csv"), str(tmp_path / "b.npy"), "--output", str(papers), *files]
    assert status(arguments) == 0
    assert "120 nodes, 600 edges, 4 features, 2 classes, train/val/test 60/30/30" in capsys.readouterr().out
    assert status(["info", str(papers)]) == 0
    told = capsys.readouterr().out
    assert status(["info", str(data)]) == 0
    assert told == capsys.readouterr().out.replace("two", "papers", 1)
    assert train(papers, tmp_path / "run", "--no-plot") == 0
    from_folder = scores(capsys.readouterr().out)
    assert train(data, tmp_path / "other", "--no-plot") == 0
    assert from_folder == scores(capsys.readouterr().out)
    assert len(from_folder) == 3
    assert status(["evaluate", str(tmp_path / "run")]) == 0


def test_options_of_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.tsv").write_text("x\t5\tann\tbob\nx\t6\tbob\tcid\n")
    np.save(tmp_path / "age.npy", np.arange(3))
    np.save(tmp_path / "when.npy", np.arange(2))
    arguments = [
        "build", str(tmp_path / "e.tsv"), "--output", str(tmp_path / "g"), "--named", "--no-header", "--memory", "1 GB",
        "--node-column", f"age={tmp_path / 'age.npy'}", "--edge-column", f"when={tmp_path / 'when.npy'}",
        "--columns", "_", "w", "src", "dst",
    ]  # fmt: skip
    assert status(arguments) == 0
    graph = Graph.open(tmp_path / "g")
    assert [*graph.ndata, *graph.edata] == ["age", "w", "when"]
    assert graph.edata["w"].tolist() == [5, 6]
    capsys.readouterr()
    assert status(arguments) == 2
    assert "exists; give --overwrite to replace it" in capsys.readouterr().err
    assert status([*arguments, "--overwrite"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["e.csv"], "line 3: dst must be an integer from 0, got '-2'"),
        (["e.csv", "--node-column", "x"], "--node-column must be NAME=FILE, got 'x'"),
        (["e.csv", "--memory", "lots"], "memory must be a number and a unit"),
        (["none.csv"], "there is no file none.csv"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text("0,1\n\n1,-2\n")
    assert status(["build", *arguments, "--output", "g"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.startswith("nodeflow build: ")
    assert told.count("\n") == 1
    assert not Path("g").exists()


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
        (["--links"], "--links is for parts of processes"),
        (["--for", "processes", "--links", "--renumber"], "--links keeps the ids of the data set"),
        (["--for", "processes", "--parts", "0"], "parts must be at least 1, got 0"),
    ],
)
def test_mistakes_of_partition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
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
