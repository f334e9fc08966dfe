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


def test_parts_become_int64_tensors() -> None:
    data = small()
    assert list(data.splits) == ["train", "val", "test"]
    assert data.splits["val"] is data.val
    assert all(ids.dtype == torch.int64 for ids in data.splits.values())


def test_repr_is_one_line_with_the_sizes() -> None:
    assert repr(small()) == "Dataset(small: 4 nodes, 4 edges, 2 features, 4 classes, train/val/test 1/1/1)"


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


def test_info_of_several_labels_per_node() -> None:
    graph = Graph.from_edges([0], [1], num_nodes=3, ndata={"label": torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])})
    assert (
        "2, several per node, largest class 1 (2), smallest class 0 (1); 1 nodes without label"
        in small(graph=graph, num_classes=2).info()
    )


def test_info_of_a_graph_without_nodes() -> None:
    text = Dataset("none", Graph.from_edges([], []), [], [], [], 0).info()  # type: ignore[arg-type]
    assert "no nodes" in text
    assert "features    none" in text
    assert "classes     none" in text


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        small().name = "other"  # type: ignore[misc]


def test_pickles() -> None:
    data = small()
    other = pickle.loads(pickle.dumps(data))
    assert repr(other) == repr(data)
    assert torch.equal(other.test, data.test)


@pytest.mark.parametrize("part", ["train", "val", "test"])
@pytest.mark.parametrize("bad", [[4], [-1]])
def test_ids_that_are_no_nodes(part: str, bad: list[int]) -> None:
    with pytest.raises(IndexError, match=rf"{part}\[0\] is {bad[0]}"):
        small(**{part: bad})


def test_mask_instead_of_ids() -> None:
    with pytest.raises(TypeError, match="train must hold node ids, got a bool mask"):
        small(train=torch.tensor([True, False, False, False]))


@pytest.mark.parametrize(("field", "size"), [("class_names", 4), ("node_names", 4), ("feature_names", 2)])
def test_wrong_number_of_names(field: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"{field} must be None or hold {size} names, got 1"):
        small(**{field: ("one",)})


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
