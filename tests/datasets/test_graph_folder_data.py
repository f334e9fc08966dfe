"""Data sets in graph folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nodeflow import Graph
from nodeflow._disk.manifest import MANIFEST
from nodeflow.building import build_graph
from nodeflow.datasets import Dataset, debian, read_folder


def same(a: Dataset, b: Dataset) -> None:
    for part, nodes in a.splits.items():
        assert torch.equal(nodes, b.splits[part])
    for name in ("num_classes", "class_names", "description", "feature_names"):
        assert getattr(a, name) == getattr(b, name)
    assert (a.node_names is None) == (b.node_names is None)
    assert a.node_names is None or list(a.node_names) == list(b.node_names or ())
    assert dict(a.category_names) == dict(b.category_names)
    assert list(a.graph.ndata) == list(b.graph.ndata)
    assert all(torch.equal(x, y) for x, y in zip(a.graph.edges(), b.graph.edges(), strict=True))


def ids(*nodes: int) -> Tensor:
    return torch.tensor(nodes, dtype=torch.int64)


@pytest.fixture
def graph() -> Graph:
    ndata = {"label": torch.tensor([0, 1, -1, 1]), "feat": torch.rand(4, 2)}
    return Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata=ndata, edata={"relation": torch.tensor([0, 1, 1, 0])})


def test_a_data_set_comes_back(tmp_path: Path, graph: Graph) -> None:
    data = Dataset(
        "four", graph, train=ids(1), val=ids(3), test=ids(), num_classes=5, class_names=tuple("abcde"),
        description="of four", node_names=("x", "ÿ", "", "z\n"), feature_names=("f", "g"),
        category_names={"relation": ("is", "has")},
    )  # fmt: skip
    data.save(tmp_path / "d")
    again = read_folder(tmp_path / "d")
    same(data, again)
    assert again.name == "four"
    assert again.info() == data.info()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        data.save(tmp_path / "d")
    again.save(tmp_path / "d", overwrite=True)
    same(data, read_folder(tmp_path / "d"))


def test_the_bundled_set_comes_back(tmp_path: Path) -> None:
    debian().save(tmp_path / "d")
    same(debian(), read_folder(tmp_path / "d"))


def test_a_saved_graph_is_a_data_set(tmp_path: Path, graph: Graph) -> None:
    graph.save(tmp_path / "g")
    data = read_folder(tmp_path / "g")
    assert repr(data) == "Dataset(g: 4 nodes, 4 edges, 2 features, 2 classes, train/val/test 1/0/2)"
    assert data.node_names is None


@pytest.mark.parametrize(
    ("label", "dtype", "classes"),
    [
        (np.array([0, 2, -1], np.int8), torch.int64, 3),
        (np.array([0.5, 2, np.nan]), torch.float32, 0),
        (np.array([[0, 1], [1, 1], [0, 0]], np.float64), torch.float32, 2),
    ],
)
def test_types_of_labels(tmp_path: Path, label: Any, dtype: torch.dtype, classes: int) -> None:
    Graph.from_edges([0], [2], ndata={"label": label}).save(tmp_path / "g")
    data = read_folder(tmp_path / "g")
    assert (data.graph.ndata["label"].dtype, data.num_classes) == (dtype, classes)
    assert sum(map(len, data.splits.values())) == 2  # one of three has none


def test_names_and_split_of_a_built_graph(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("ann,bob\nbob,cid\n")
    np.save(tmp_path / "label.npy", np.array([0, 1, 0]))
    build_graph(
        tmp_path / "e.csv", tmp_path / "g", named=True, ndata={"label": tmp_path / "label.npy"},
        split={"train": [2], "val": ids(0)}, progress=False,
    )  # fmt: skip
    data = read_folder(tmp_path / "g")
    assert list(data.node_names or ()) == ["ann", "bob", "cid"]
    assert [nodes.tolist() for nodes in data.splits.values()] == [[2], [0], []]


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_what_is_wrong_is_named(tmp_path: Path, graph: Graph) -> None:
    plain = Graph.from_edges([0], [1])
    plain.save(tmp_path / "plain")
    with pytest.raises(FileNotFoundError, match="no node column 'label'"):
        read_folder(tmp_path / "plain")
    assert read_folder(tmp_path / "plain", labels=False).num_classes == 0
    plain.ndata["label"] = torch.tensor([0, -3])
    plain.save(tmp_path / "negative")
    with pytest.raises(ValueError, match="node 1 has -3"):
        read_folder(tmp_path / "negative")
    data = Dataset("d", graph, train=ids(2), val=ids(), test=ids(), num_classes=2)
    data.save(tmp_path / "bare")
    with pytest.raises(ValueError, match="holds node 2 for training, which has no label"):
        read_folder(tmp_path / "bare")
    data = Dataset("d", graph, train=ids(0), val=ids(), test=ids(), num_classes=2)
    data.save(tmp_path / "d")
    edited(tmp_path / "d", lambda m: m["facts"]["dataset"].update(class_names=["only"]))
    with pytest.raises(ValueError, match="does not fit the graph: class_names must be None or hold 2 names, got 1"):
        read_folder(tmp_path / "d")
    edited(tmp_path / "d", lambda m: m["facts"].update(dataset=3))
    with pytest.raises(ValueError, match="nothing readable of the data set"):
        read_folder(tmp_path / "d")


def test_a_folder_of_plain_files_may_hold_a_manifest_of_its_own(tmp_path: Path, folder: Path) -> None:
    (folder / MANIFEST).write_text("{}")
    assert read_folder(folder).graph.num_nodes == 8
