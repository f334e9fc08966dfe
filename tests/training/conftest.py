"""What the tests of training share: one thread, small data sets, finished runs, and the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from _support.cli_tools import Cli, finished_runs, two_communities
from _support.partition_training import Fixed, write_folders
from _support.training_tools import trained

from nodeflow.training import Result


@pytest.fixture(autouse=True)
def _tiny_products(one_thread: None) -> None:
    """Networks are tiny here."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return two_communities(tmp_path / "two")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data set "two" and its finished runs "sage" and "gcn"."""
    return finished_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Fixed:
    return write_folders(tmp_path_factory.mktemp("planted"))


@pytest.fixture
def result() -> Result:
    return trained()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)
