"""What the tests of training share: one thread, small data sets, finished runs, and the command."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from _support.cli_tools import Cli, status, train, two_communities
from _support.training_tools import Fixed, planted, trained

from nodeflow.metrics import rank_links
from nodeflow.training import Result, _links


@pytest.fixture(autouse=True)
def _tiny_products(one_thread: None) -> None:
    """Networks are tiny here."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder is the test's own, so that commands need no long paths."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return two_communities(tmp_path / "two")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data set "two" and its finished runs "sage" and "gcn"."""
    place = tmp_path_factory.mktemp("runs")
    data = two_communities(place / "two")
    for model in ("sage", "gcn"):
        assert train(data, place / model, "--model", model, "--no-plot") == 0
    return place


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Fixed:
    """The planted data set as a graph folder, dense and sparse; its partitions along its edges, and
    both ways.
    """
    place = tmp_path_factory.mktemp("planted")
    planted().save(place / "data")
    planted(sparse=True).save(place / "sparse")
    for name, data, direction, parts in (
        ("in", "data", "in", "6"), ("both", "data", "both", "6"), ("out", "data", "out", "6"),
        ("sparse-in", "sparse", "in", "6"), ("seven", "data", "in", "7"),
    ):  # fmt: skip
        words = ["partition", place / data, "--parts", parts, "--direction", direction]
        assert status([*words, "--output", place / name]) == 0
    return {path.name: path for path in place.iterdir()}


@pytest.fixture
def result() -> Result:
    return trained()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


@pytest.fixture
def ranked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """How many links each ranking of a trainer had, and whether products were narrow in it."""
    calls: list[tuple[int, bool]] = []

    def noted(decoder, table, triples, **options):
        calls.append((len(triples), torch.is_autocast_enabled("cpu")))
        return rank_links(decoder, table, triples, **options)

    monkeypatch.setattr(_links, "rank_links", noted)
    return calls
