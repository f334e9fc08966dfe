"""Graphs of PyTorch Geometric, with the library itself."""

from __future__ import annotations

import sys

import pytest
import torch
from _support.conversions import assert_same_column, assert_same_graph, ends, filled
from hypothesis import given

from nodeflow import Graph
from nodeflow.convert import from_pyg, to_pyg
from nodeflow.testing import graphs

pyg = pytest.importorskip("torch_geometric.data", reason="PyTorch Geometric is not installed")


@given(graphs())
def test_pyg_and_back_is_the_same_graph(graph):
    data = to_pyg(filled(graph, sparse=True))
    assert data.validate()
    assert (data.num_nodes, data.num_edges, data.edge_index.tolist()) == (
        graph.num_nodes,
        graph.num_edges,
        ends(graph),
    )
    assert_same_graph(
        from_pyg(data, node_columns=list(graph.ndata), edge_columns=list(graph.edata)), graph
    )
    if graph.num_nodes != graph.num_edges:  # then rows tell which columns are whose
        assert_same_graph(from_pyg(data), graph)


def test_what_data_holds_becomes_the_graph():
    columns = {
        "x": torch.arange(8.0).view(4, 2),
        "y": torch.arange(4),
        "train_mask": torch.ones(4, dtype=torch.bool),
    }
    index = torch.tensor([[0, 2, 0], [1, 2, 1]])
    data = pyg.Data(
        edge_index=index, edge_attr=torch.arange(6.0).view(3, 2), name="tiny", **columns
    )
    data.listed = [1, 2, 3, 4]
    data.edge_label_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    graph = from_pyg(data)
    assert ends(graph) == index.tolist()
    assert (sorted(graph.ndata), list(graph.edata)) == (["train_mask", "x", "y"], ["edge_attr"])
    for name, column in columns.items():
        assert_same_column(graph.ndata[name], column, name)
    with pytest.raises(
        ValueError, match="node_columns: 'listed' must be a tensor with 4 rows, got list"
    ):
        from_pyg(data, node_columns=["listed"])


def test_as_many_edges_as_nodes():
    graph = Graph.from_edges(
        [0, 1, 2], [1, 2, 0], ndata={"x": torch.ones(3)}, edata={"w": torch.zeros(3)}
    )
    data = to_pyg(graph)
    assert sorted(from_pyg(data).ndata) == ["w", "x"]  # as Data itself says
    assert_same_graph(from_pyg(data, edge_columns=["w"]), graph)
    assert list(from_pyg(data, node_columns=[]).ndata) == []


def test_an_edge_index_of_a_class_of_its_own():
    index = torch_geometric_index([[1, 0, 2], [0, 1, 1]])
    assert ends(from_pyg(pyg.Data(edge_index=index, num_nodes=3))) == [[1, 0, 2], [0, 1, 1]]


def torch_geometric_index(ends: list[list[int]]) -> torch.Tensor:
    from torch_geometric import EdgeIndex

    return EdgeIndex(ends, sparse_size=(3, 3))


def test_pyg_may_be_missing(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ImportError, match=r"pip install torch-geometric$"):
        to_pyg(graph)


@pytest.mark.parametrize(
    "name",
    ["_private", "keys", "num_edges", "is_undirected", "batch", "ptr", "face", "index", "a b"],
)
def test_unusual_names_of_columns_are_kept_or_refused(name):
    """``Data`` loses some of them without a word."""
    graph = Graph.from_edges([0, 1], [1, 2], ndata={name: torch.arange(6).view(3, 2)})
    try:
        data = to_pyg(graph)
    except ValueError as error:
        assert f"Data cannot hold a column named {name!r}" in str(error)  # noqa: PT017
        assert name in ("_private", "keys", "num_edges", "is_undirected")
        return
    assert_same_graph(from_pyg(data, node_columns=[name]), graph)
