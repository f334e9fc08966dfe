"""read_ogb, on folders made here in OGB's layout."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from _support.text_folders import OGB_FILES, write_files

from nodeflow._files.text.table import Table, reading
from nodeflow.datasets import read_ogb


@pytest.fixture
def ogb(tmp_path: Path) -> Path:
    files = {f"{name}.csv.gz": text for name, text in OGB_FILES.items()}
    return write_files(tmp_path / "arxiv", files)


def write(path: Path, name: str, text: str) -> None:
    file = path / f"{name}.csv.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode()))


def test_everything_is_read(ogb):
    data = read_ogb(ogb)
    assert (
        repr(data)
        == "Dataset(arxiv: 4 nodes, 3 edges, 2 features, 3 classes, train/val/test 1/1/2)"
    )
    assert [ends.tolist() for ends in data.graph.edges()] == [[0, 1, 3], [1, 2, 0]]
    assert data.graph.ndata["label"].tolist() == [0, 2, -1, 1]
    assert data.graph.ndata["node_year"].tolist() == [2001, 1999, 2020, 2011]
    feat = torch.tensor([[1.0, 0.25], [-1e-3, 0.0], [0.0, 0.0], [2.0, 3.0]])
    assert torch.equal(data.graph.ndata["feat"], feat)
    assert torch.equal(data.graph.edata["feat"], torch.tensor([[0.5], [1.5], [2.5]]))
    assert data.test.tolist() == [3, 2]


def test_times_of_edges_keep_their_digits(ogb):
    write(ogb, "raw/edge-feat", "1700000060.5\n1.5\n2.5\n")
    feat = read_ogb(ogb).graph.edata["feat"]
    assert torch.equal(feat, torch.tensor([[1700000060.5], [1.5], [2.5]], dtype=torch.float64))


def test_optional_files(ogb):
    for name in ("edge-feat", "node-feat", "node_year", "num-edge-list"):
        (ogb / "raw" / f"{name}.csv.gz").unlink()
    graph = read_ogb(ogb).graph
    assert (list(graph.ndata), list(graph.edata)) == (["label"], [])


def test_unpacked_files(ogb):
    for name, text in OGB_FILES.items():
        (ogb / f"{name}.csv.gz").unlink()
        (ogb / f"{name}.csv").write_text(text)
    assert read_ogb(ogb).graph.ndata["node_year"].tolist() == [2001, 1999, 2020, 2011]


def test_inverse_edges(ogb):
    graph = read_ogb(ogb, add_inverse_edge=True).graph
    assert [ends.tolist() for ends in graph.edges()] == [[0, 1, 3, 1, 2, 0], [1, 2, 0, 0, 1, 3]]
    assert graph.edata["feat"].flatten().tolist() == [0.5, 1.5, 2.5] * 2


def test_several_labels_per_node(ogb):
    write(ogb, "raw/node-label", "0,1\n1,1\n0,0\n1,0\n")
    data = read_ogb(ogb)
    assert data.num_classes == 2
    assert torch.equal(data.graph.ndata["label"], torch.tensor([[0.0, 1], [1, 1], [0, 0], [1, 0]]))


def test_no_edges(ogb):
    write(ogb, "raw/edge", "")
    write(ogb, "raw/num-edge-list", "0\n")
    (ogb / "raw" / "edge-feat.csv.gz").unlink()
    assert read_ogb(ogb).graph.num_edges == 0


def test_scheme(ogb):
    for part in ("train", "valid", "test"):
        write(ogb, f"split/random/{part}", {"train": "2\n", "valid": "", "test": "0\n"}[part])
    data = read_ogb(ogb, scheme="random")
    assert {part: ids.tolist() for part, ids in data.splits.items()} == {
        "train": [2],
        "val": [],
        "test": [0],
    }
    with pytest.raises(
        ValueError,
        match=r"scheme must be one of the splits under .* \['random', 'time'\], got None",
    ):
        read_ogb(ogb)
    with pytest.raises(ValueError, match=r"scheme must be one of .*got 'year'"):
        read_ogb(ogb, scheme="year")


@pytest.mark.parametrize(
    "name", ["raw/edge", "raw/node-label", "raw/num-node-list", "split/time/valid"]
)
def test_missing_file(ogb, name):
    (ogb / f"{name}.csv.gz").unlink()
    with pytest.raises(
        FileNotFoundError, match=rf"there is no file .*{name}\.csv\.gz; expected an unpacked"
    ):
        read_ogb(ogb)


def test_missing_folder(tmp_path, ogb):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        read_ogb(tmp_path / "nowhere")
    for file in (ogb / "split" / "time").iterdir():
        file.unlink()
    (ogb / "split" / "time").rmdir()
    with pytest.raises(FileNotFoundError, match=r"there is no folder under .*split"):
        read_ogb(ogb)


def test_lines_of_blanks_are_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n  \n3,4\n")
    assert Table(tmp_path / "a.csv").numbers(np.int64, "integers").tolist() == [[1, 2], [3, 4]]
    assert Table(tmp_path / "a.csv").numbers(np.float32, "numbers").tolist() == [[1, 2], [3, 4]]


def test_errors_that_are_no_damage_and_warnings_that_are(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("1.5\n")
    with pytest.raises(MemoryError), reading(tmp_path / "a.csv", "a table"):
        raise MemoryError

    def older(*_: object, **__: object) -> None:
        warnings.warn(
            "loadtxt(): Parsing an integer via a float is deprecated",
            DeprecationWarning,
            stacklevel=1,
        )

    monkeypatch.setattr(np, "loadtxt", older)
    with pytest.raises(ValueError, match=r"a\.csv, line 1: expected integers, got '1\.5'"):
        Table(tmp_path / "a.csv").numbers(np.int64, "integers")
