"""Dataset: what it checks, how it prints."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import torch

from nodeflow import Graph
from nodeflow.datasets import Dataset


def small(**changes: object) -> Dataset:
    feat = torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0], [0.0, 1.0]])
    ndata = {"feat": feat, "label": torch.tensor([0, 2, 2, -1])}
    graph = Graph.from_edges([0, 0, 1, 2], [1, 1, 1, 0], num_nodes=4, ndata=ndata)
    fields: dict[str, object] = {"name": "small", "graph": graph, "train": [0], "val": np.array([1]), "test": [2]}
    return Dataset(**{**fields, "num_classes": 4, **changes})  # type: ignore[arg-type]


def test_a_data_set() -> None:
    data = small()
    assert list(data.splits) == ["train", "val", "test"]
    assert data.splits["val"] is data.val
    assert all(ids.dtype == torch.int64 for ids in data.splits.values())
    assert repr(data) == "Dataset(small: 4 nodes, 4 edges, 2 features, 4 classes, train/val/test 1/1/1)"
    other = pickle.loads(pickle.dumps(data))
    assert repr(other) == repr(data)
    assert torch.equal(other.test, data.test)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]


def test_info_counts_by_hand() -> None:
    text = small(class_names=("a", "b", "c", "d"), description="for this test").info()
    assert text.splitlines() == [
        "small: for this test",
        "  nodes       4 (1 isolated)",
        "  edges       4 (1 self-loops, 1 repeat an earlier one's ends)",
        "  in-degree   min 0, mean 1.00, max 3",
        "  out-degree  min 0, mean 1.00, max 2",
        "  features    4 x 2, float32, dense, 1.00 non-zeros a row",
        "  classes     4, largest 'c' (2), smallest 'a' (1), 2 without nodes; 1 nodes without label",
        "  split       train 1, val 1, test 1",
    ]


def test_info_of_several_labels_and_of_nothing() -> None:
    graph = Graph.from_edges([0], [1], num_nodes=3, ndata={"label": torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])})
    words = "2, several per node, largest class 1 (2), smallest class 0 (1); 1 nodes without label"
    assert words in small(graph=graph, num_classes=2).info()
    text = Dataset("none", Graph.from_edges([], []), [], [], [], 0).info()  # type: ignore[arg-type]
    assert all(words in text for words in ("no nodes", "features    none", "classes     none"))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        *(({part: [4]}, IndexError, rf"{part}\[0\] is 4") for part in ("train", "val", "test")),
        ({"train": [-1]}, IndexError, r"train\[0\] is -1"),
        ({"train": torch.tensor([True, False, False, False])}, TypeError, "must hold node ids, got a bool mask"),
        ({"class_names": ("one",)}, ValueError, "class_names must be None or hold 4 names, got 1"),
        ({"node_names": ("one",)}, ValueError, "node_names must be None or hold 4 names, got 1"),
        ({"feature_names": ("one",)}, ValueError, "feature_names must be None or hold 2 names, got 1"),
    ],
)
def test_mistakes(changes: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        small(**changes)


def test_names_of_categories() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"relation": torch.tensor([0, 2, 0], dtype=torch.int8)})
    data = Dataset("kinds", graph, [], [], [], 0, category_names={"relation": ("a", "b", "c")})  # type: ignore[arg-type]
    assert data.relation_names == ("a", "b", "c")
    assert "  relations   3, largest 'a' (2), smallest 'c' (1), 1 without edges\n" in data.info()
    with pytest.raises(ValueError, match=r"category_names\['relation'\] must hold at least 3 names, got 1"):
        dataclasses.replace(data, category_names={"relation": ("a",)})
    with pytest.raises(KeyError, match="category_names has 'kind', which is no edge column"):
        dataclasses.replace(data, category_names={"kind": ("a",)})
    assert small().relation_names is None
