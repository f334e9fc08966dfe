"""Dataset: what it checks, how it prints, and what comes back from a graph folder."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nodeflow import Graph
from nodeflow.datasets import Dataset, build_graph, debian, read_folder


def small(**changes: object) -> Dataset:
    feat = torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0], [0.0, 1.0]])
    ndata = {"feat": feat, "label": torch.tensor([0, 2, 2, -1])}
    graph = Graph.from_edges([0, 0, 1, 2], [1, 1, 1, 0], num_nodes=4, ndata=ndata)
    fields: dict[str, object] = {
        "name": "small",
        "graph": graph,
        "train": [0],
        "val": np.array([1]),
        "test": [2],
    }
    return Dataset(**{**fields, "num_classes": 4, **changes})  # type: ignore[arg-type]


def test_a_data_set():
    data = small()
    assert list(data.splits) == ["train", "val", "test"]
    assert data.splits["val"] is data.val
    assert all(ids.dtype == torch.int64 for ids in data.splits.values())
    assert (
        repr(data)
        == "Dataset(small: 4 nodes, 4 edges, 2 features, 4 classes, train/val/test 1/1/1)"
    )
    other = pickle.loads(pickle.dumps(data))
    assert repr(other) == repr(data)
    assert torch.equal(other.test, data.test)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]


def test_info_is_a_table():
    data = small(class_names=("a", "b", "c", "d"), description="for this test")
    assert data.info().splitlines() == [
        "small: for this test",
        "  nodes    4; feat float32 [4, 2]; label int64 [4]",
        "  edges    4",
        "  classes  4, 3 nodes with a label",
        "  split    train 1, val 1, test 1",
    ]


def test_info_lists_types_relations_and_names():
    columns = {"w": torch.ones(1), "t": torch.tensor([1])}
    graph = Graph.typed(
        {"user": 1_000, "item": {"x": torch.ones(2, 3)}},
        {("user", "buys", "item"): ([0], [1], columns)},
    )
    graph.edata["kind"] = torch.tensor([0])
    data = Dataset("typed", graph, category_names={"kind": ("a", "b")}, unread_files=("z.npy",))
    assert data.info().splitlines() == [
        "typed",
        "  nodes           1,002",
        "  edges           1; w float32 [1]; t int64 [1]; kind int64 [1]",
        "  user            1,000",
        "  item            2; x float32 [2, 3]",
        "  user buys item  1; w float32 [1]; t int64 [1]; kind int64 [1]",
        "  names of        kind 2",
        "  classes         0",
        "  split           train 0, val 0, test 0",
        "  not read        z.npy",
    ]


def test_names_of_categories():
    graph = Graph.from_edges(
        [0, 1, 2], [1, 2, 0], edata={"relation": torch.tensor([0, 2, 0], dtype=torch.int8)}
    )
    data = Dataset("kinds", graph, [], [], [], 0, category_names={"relation": ("a", "b", "c")})  # type: ignore[arg-type]
    assert data.relation_names == ("a", "b", "c")
    assert small().relation_names is None


# ---- in graph folders


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
    return Graph.from_edges(
        [0, 1, 2, 3], [1, 2, 3, 0], ndata=ndata, edata={"relation": torch.tensor([0, 1, 1, 0])}
    )


def test_a_data_set_comes_back(tmp_path, graph):
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


def test_the_bundled_set_comes_back(tmp_path):
    debian().save(tmp_path / "d")
    same(debian(), read_folder(tmp_path / "d"))


def test_names_and_split_of_a_built_graph(tmp_path):
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
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("checksum", None)
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_what_is_wrong_is_named(tmp_path, graph):
    Graph.from_edges([0], [1]).save(tmp_path / "plain")
    assert read_folder(tmp_path / "plain", labels=False).num_classes == 0
    data = Dataset("d", graph, train=ids(0), val=ids(), test=ids(), num_classes=2)
    data.save(tmp_path / "d")
    edited(tmp_path / "d", lambda m: m["facts"]["dataset"].update(class_names=["only"]))
    with pytest.raises(
        ValueError, match="does not fit the graph: class_names must be None or hold 2 names, got 1"
    ):
        read_folder(tmp_path / "d")
    edited(tmp_path / "d", lambda m: m["facts"].update(dataset=3))
    with pytest.raises(ValueError, match="of the data set does not fit"):
        read_folder(tmp_path / "d")


def test_a_folder_of_plain_files_may_hold_a_manifest_of_its_own(tmp_path, folder):
    (folder / "manifest.json").write_text("{}")
    assert read_folder(folder).graph.num_nodes == 8


# labels of one node type


def typed(**papers: Any) -> Graph:
    """2 authors, then 4 papers with these columns."""
    return Graph.typed(
        {"author": 2, "paper": papers or 4}, {("author", "writes", "paper"): ([0, 1], [1, 3])}
    )


def mask(*rows: int) -> Tensor:
    return torch.tensor([i in rows for i in range(4)])


@pytest.mark.parametrize(
    ("label", "of_all", "num_classes"),
    [
        (torch.tensor([1, 0, 2, -1], dtype=torch.int32), [-1, -1, 1, 0, 2, -1], 3),
        (torch.tensor([[1], [0], [2], [0]]), [-1, -1, 1, 0, 2, 0], 3),
        (
            torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1]]),
            [[0, 0], [0, 0], [1, 0], [0, 0], [1, 1], [0, 1]],
            2,
        ),
        (torch.tensor([0.5, 2.0, 1.0, 3.0]).double(), [math.nan, math.nan, 0.5, 2.0, 1.0, 3.0], 0),
    ],
)
def test_labels_of_a_node_type(label, of_all, num_classes):
    graph = typed(y=label, train_mask=mask(0, 2), test=mask(1))
    data = Dataset("d", graph).of_type("paper")
    assert (data.train.tolist(), data.val.tolist(), data.test.tolist()) == ([2, 4], [], [3])
    assert torch.equal(
        data.graph.ndata["label"].double().nan_to_num(9),
        torch.tensor(of_all).double().nan_to_num(9),
    )
    assert (data.num_classes, data.target, data.target_ids.tolist()) == (
        num_classes,
        "paper",
        [2, 3, 4, 5],
    )
    assert not graph.ndata  # the graph stays as it was
    assert data.graph.nodes["paper"].data["y"] is label
    assert data.of_type() is data.of_type("paper") is data


def test_splits_of_a_node_type(tmp_path):
    graph = typed(label=torch.tensor([0, 1, 0, -1]))
    own = Dataset("d", graph, [3], [2], []).of_type()  # type: ignore[arg-type]
    assert (own.train.tolist(), own.val.tolist()) == ([3], [2])
    drawn = Dataset("d", graph).of_type("paper")
    assert sorted(torch.cat([*drawn.splits.values()]).tolist()) == [2, 3, 4]  # those with a label
    drawn.save(tmp_path / "drawn")
    again = read_folder(tmp_path / "drawn")
    assert (again.target, again.train.tolist(), again.num_classes) == (
        "paper",
        drawn.train.tolist(),
        2,
    )
    graph.save(tmp_path / "graph")
    assert read_folder(tmp_path / "graph").train.tolist() == drawn.train.tolist()
    assert read_folder(tmp_path / "graph", labels=False).target == ""
    bare = Dataset("d", typed()).of_type("paper")
    assert (bare.target, dict(bare.graph.ndata)) == ("paper", {})
    one = small()
    assert torch.equal(one.of_type("node").train, one.train)
    graph.nodes["author"].data["y"] = torch.tensor([1, 0])
    assert own.graph.ndata["label"].tolist() == [-1, -1, 0, 1, 0, -1]
    other = Dataset("d", graph).of_type("paper").of_type("author")
    assert (other.target, sorted(torch.cat([*other.splits.values()]).tolist())) == (
        "author",
        [0, 1],
    )
