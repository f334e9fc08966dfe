"""Pickles of graphs whose arrays lie in files: loaded in another process, the files are checked as
at an opening.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
import torch
from _support.file_formats import trust_stamps

from nodeflow import Graph
from nodeflow._core.runtime import process
from nodeflow._files.disk import checked


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    feat = {"x": torch.arange(8.0).reshape(4, 2)}
    Graph.from_edges([3, 1, 0, 2], [1, 2, 3, 0], ndata=feat).save(tmp_path / "g")
    return tmp_path / "g"


def elsewhere(data: bytes) -> Graph:
    """Load the pickle of a graph as a process does in which no graph lives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "graphs", WeakValueDictionary())
        return pickle.loads(data)


def flip(file: Path, at: int = -1) -> None:
    contents = bytearray(file.read_bytes())
    contents[at] ^= 0x40
    file.write_bytes(contents)


@pytest.mark.parametrize("name", ["indptr", "indices", "edge_ids", "ndata0"])
def test_a_damaged_file_is_found(stored, name):
    data = pickle.dumps(Graph.open(stored))
    flip(next(stored.glob(f"{name}-*.npy")))
    with pytest.raises(ValueError, match=f"{name}.* is damaged"):
        elsewhere(data)


def test_files_as_they_were_are_not_read_again(stored, monkeypatch):
    trust_stamps(monkeypatch, -1.0)
    graph = Graph.open(stored)
    data = pickle.dumps(graph)
    Graph.open(stored)

    def read(*_: object) -> None:
        raise AssertionError("a file is read")

    monkeypatch.setattr(checked, "checksum", read)
    monkeypatch.setattr(checked, "check_ids", read)
    assert elsewhere(data).in_edges([0])[0].tolist() == [2]


def test_a_graph_that_lives_is_trusted(stored):
    graph = Graph.open(stored)
    flip(next(stored.glob("ndata0-*.npy")))
    assert pickle.loads(pickle.dumps(graph)).uid == graph.uid


def test_arrays_of_other_files_are_compared_with_their_bounds(tmp_path):
    for name, values in {"indptr": [0, 1, 2], "indices": [1, 0]}.items():
        np.save(tmp_path / f"{name}.npy", np.array(values))
    indptr, indices = (
        np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")
    )
    data = pickle.dumps(Graph(indptr, indices))
    assert elsewhere(data).num_edges == 2
    flip(tmp_path / "indices.npy", -8)
    with pytest.raises(ValueError, match=r"indices\.npy.*damaged.*indices\[1\] is 64"):
        elsewhere(data)


def test_some_arrays_of_a_graph_folder_are_compared_with_their_bounds(stored):
    indptr, indices, edge_ids = Graph.open(stored).csc()
    assert elsewhere(pickle.dumps(Graph(indptr, indices))).num_edges == 4
    data = pickle.dumps(Graph(indptr, indices + 0, edge_ids=edge_ids))
    assert elsewhere(data).num_edges == 4
    flip(next(stored.glob("edge_ids-*.npy")), -edge_ids.itemsize)
    with pytest.raises(
        ValueError,
        match=r"edge_ids.*not the graph that was pickled, or damaged: edge_ids\[3\] is 6.",
    ):
        elsewhere(data)
