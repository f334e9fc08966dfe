"""Graphs from and to other libraries. Those not installed stand in as small objects with the same few attributes."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import ALL, FullSampler, Graph, NeighborSampler, create_node_flow, flow_from_edges
from nodeflow.convert import from_dgl, from_networkx, from_pyg, from_scipy, to_networkx, to_pyg, to_scipy
from nodeflow.testing import graphs

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


def pairs(graph: Graph) -> list[tuple[int, int]]:
    src, dst = graph.edges()
    return list(zip(src.tolist(), dst.tolist(), strict=True))


# scipy


@given(graphs(edge_columns={"w": ()}))
def test_scipy_and_back_keeps_every_edge_its_id_and_its_value(graph: Graph) -> None:
    matrix = to_scipy(graph, weight="w")
    assert matrix.shape == (graph.num_nodes, graph.num_nodes)
    back = from_scipy(matrix, weight="w")
    assert pairs(back) == pairs(graph)
    assert back.num_nodes == graph.num_nodes
    assert torch.equal(back.edata["w"], graph.edata["w"])
    assert not from_scipy(to_scipy(graph)).edata
    ones = to_scipy(graph)
    assert ones.dtype == np.float32
    assert (ones.data == 1).all()


@given(graphs(multi_edges=False), st.sampled_from(FORMATS))
def test_every_scipy_format_has_the_same_edges(graph: Graph, format: str) -> None:
    if graph.num_nodes == 0 and format == "bsr":
        format = "csr"  # which has no blocks of no rows
    assert sorted(pairs(from_scipy(to_scipy(graph).asformat(format)))) == sorted(pairs(graph))


def test_zeros_that_fill_up_blocks_are_no_edges() -> None:
    matrix = scipy.sparse.bsr_array(
        np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]), blocksize=(2, 2)
    )
    assert matrix.data.size == 8
    graph = from_scipy(matrix, weight="w")
    assert pairs(graph) == [(0, 1), (2, 3)]
    assert graph.edata["w"].tolist() == [1, 2]


def test_scipy_entry_i_j_is_the_edge_from_i_to_j_and_columns_come_along() -> None:
    matrix = scipy.sparse.csr_array(np.array([[0, 5, 0], [0, 0, 0], [7, 0, 9]]))
    graph = from_scipy(matrix, weight="w", ndata={"x": np.arange(3)})
    assert pairs(graph) == [(0, 1), (2, 0), (2, 2)]
    assert graph.edata["w"].tolist() == [5, 7, 9]
    assert graph.ndata["x"].tolist() == [0, 1, 2]
    matrix.data[:] = 0
    assert graph.edata["w"].tolist() == [5, 7, 9]


def test_scipy_entries_stored_twice_and_stored_zeros_are_edges() -> None:
    coo = scipy.sparse.coo_array((np.array([1.0, 2.0, 0.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    graph = from_scipy(coo, weight="w")
    assert pairs(graph) == [(0, 1), (0, 1), (1, 0)]
    assert graph.edata["w"].tolist() == [1, 2, 0]
    assert coo.nnz == 3


def test_a_matrix_shares_nothing_with_its_graph() -> None:
    graph = Graph.from_edges([0, 0], [1, 1], edata={"w": torch.tensor([1.0, 2.0], requires_grad=True)})
    matrix = to_scipy(graph, weight="w")
    matrix.data[:] = 9
    matrix.row[:] = 1
    assert graph.edata["w"].tolist() == [1, 2]
    assert pairs(graph) == [(0, 1), (0, 1)]


def test_scipy_mistakes() -> None:
    with pytest.raises(TypeError, match="matrix must be a scipy sparse matrix, got ndarray"):
        from_scipy(np.eye(2))
    with pytest.raises(ValueError, match=r"must be square, got shape \(2, 3\)"):
        from_scipy(scipy.sparse.csr_array((2, 3)))
    graph = Graph.from_edges([0], [1], edata={"f": torch.ones(1, 2)})
    with pytest.raises(KeyError, match="no column 'w'"):
        to_scipy(graph, weight="w")
    with pytest.raises(ValueError, match=r"one number per edge, 'f' is \(1, 2\)"):
        to_scipy(graph, weight="f")


# networkx


@given(graphs())
def test_networkx_and_back_keeps_every_edge(graph: Graph) -> None:
    networkx = pytest.importorskip("networkx")
    made = to_networkx(graph)
    assert type(made) is networkx.MultiDiGraph
    assert list(made.nodes) == list(range(graph.num_nodes))
    assert {key: (u, v) for u, v, key in made.edges(keys=True)} == dict(enumerate(pairs(graph)))
    back, nodes = from_networkx(made)
    assert nodes == list(range(graph.num_nodes))
    assert sorted(pairs(back)) == sorted(pairs(graph))


def test_networkx_directed_and_undirected() -> None:
    networkx = pytest.importorskip("networkx")
    edges = [("a", "b"), ("c", "c"), ("b", "c")]
    one_way, nodes = from_networkx(networkx.DiGraph(edges))
    assert nodes == ["a", "b", "c"]
    assert sorted(pairs(one_way)) == [(0, 1), (1, 2), (2, 2)]
    both_ways, nodes = from_networkx(networkx.Graph(edges))
    named = [(nodes[u], nodes[v]) for u, v in pairs(both_ways)]
    assert sorted(named) == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "c")]
    assert named.index(("a", "b")) // 2 == named.index(("b", "a")) // 2


def test_networkx_multigraphs_keep_repeated_edges_and_isolated_nodes() -> None:
    networkx = pytest.importorskip("networkx")
    many = networkx.MultiGraph([(3, 1), (1, 3), (1, 1), (1, 1)])
    many.add_node("alone")
    graph, nodes = from_networkx(many)
    assert nodes == [3, 1, "alone"]
    assert sorted(pairs(graph)) == [(0, 1), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)]
    assert from_networkx(networkx.Graph())[0].num_nodes == 0


def test_networkx_attributes_become_columns() -> None:
    networkx = pytest.importorskip("networkx")
    given = networkx.Graph()
    given.add_node("p", x=[1.0, 2.0], y=4)
    given.add_node("q", x=[3.0, 4.0], y=5)
    given.add_edge("p", "q", w=0.5)
    given.add_edge("q", "q", w=2.5)
    graph, _ = from_networkx(given, node_columns=["x", "y"], edge_columns=["w"])
    assert graph.ndata["x"].tolist() == [[1, 2], [3, 4]]
    assert graph.ndata["y"].tolist() == [4, 5]
    assert graph.ndata["y"].dtype == torch.int64
    assert dict(zip(pairs(graph), graph.edata["w"].tolist(), strict=True)) == {(0, 1): 0.5, (1, 0): 0.5, (1, 1): 2.5}
    assert not from_networkx(given)[0].ndata


def test_networkx_attributes_that_are_missing_are_named() -> None:
    networkx = pytest.importorskip("networkx")
    given = networkx.DiGraph()
    given.add_node("p", x=1)
    given.add_edge("p", "q")
    with pytest.raises(KeyError, match="every node must have the attribute 'x', but node 'q' has none"):
        from_networkx(given, node_columns=["x"])
    with pytest.raises(KeyError, match=r"every edge must have the attribute 'w', but edge \('p', 'q'\) has none"):
        from_networkx(given, edge_columns=["w"])


def test_without_networkx_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install networkx$"):
        to_networkx(Graph.from_edges([0], [1]))


# PyTorch Geometric


class FakeData:
    """What the converters use of ``torch_geometric.data.Data``."""

    def __init__(self, edge_index: Any = None, num_nodes: int = 0, **columns: Any) -> None:
        self.edge_index, self.num_nodes, self.columns = edge_index, num_nodes, columns

    def __getitem__(self, name: str) -> Any:
        return self.edge_index if name == "edge_index" else self.columns[name]

    def node_attrs(self) -> list[str]:
        return [name for name in self.columns if "edge" not in name]

    def edge_attrs(self) -> list[str]:
        return ["edge_index", *(name for name in self.columns if "edge" in name)]


@pytest.fixture(params=["a stand-in", "the library"])
def data_class(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "the library":
        return pytest.importorskip("torch_geometric.data").Data
    module = ModuleType("torch_geometric.data")
    module.Data = FakeData  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch_geometric", ModuleType("torch_geometric"))
    monkeypatch.setitem(sys.modules, "torch_geometric.data", module)
    return FakeData


def test_pyg_and_back(data_class: Any) -> None:
    columns = {"x": torch.arange(8.0).view(4, 2), "y": torch.arange(4)}
    edge_attr = torch.arange(6.0).view(3, 2)
    data = data_class(edge_index=torch.tensor([[0, 2, 0], [1, 2, 1]]), num_nodes=4, edge_attr=edge_attr, **columns)
    graph = from_pyg(data)
    assert graph.num_nodes == 4
    assert pairs(graph) == [(0, 1), (2, 2), (0, 1)]
    assert list(graph.ndata) == ["x", "y"]
    assert list(graph.edata) == ["edge_attr"]
    assert torch.equal(graph.ndata["x"], columns["x"])
    assert torch.equal(graph.edata["edge_attr"], edge_attr)
    back = to_pyg(graph)
    assert torch.equal(back.edge_index, data.edge_index)
    assert back.num_nodes == 4
    assert all(torch.equal(back[name], data[name]) for name in ("x", "y", "edge_attr"))


def test_pyg_attributes_without_a_row_per_node_or_edge_stay_behind(data_class: Any) -> None:
    labels = torch.tensor([[0, 1, 2], [1, 2, 0]])
    data = data_class(
        edge_index=torch.tensor([[0, 2, 0], [1, 2, 1]]), num_nodes=4, edge_label_index=labels, name="tiny"
    )
    graph = from_pyg(data)
    assert not graph.ndata
    assert not graph.edata


def test_pyg_mistakes(data_class: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="data must have an edge_index"):
        from_pyg(data_class(None, num_nodes=2))
    both = Graph.from_edges([0], [1], ndata={"w": torch.ones(2)}, edata={"w": torch.ones(1)})
    with pytest.raises(ValueError, match=r"share a name, which Data cannot hold: \['w'\]"):
        to_pyg(both)
    taken = Graph.from_edges([0], [1], ndata={"num_nodes": torch.ones(2)})
    with pytest.raises(ValueError, match=r"Data keeps the names \['num_nodes'\] for itself"):
        to_pyg(taken)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ImportError, match="pip install torch-geometric"):
        to_pyg(Graph.from_edges([0], [1]))


# DGL


def test_dgl_stand_in() -> None:
    def edges(order: str) -> tuple[torch.Tensor, torch.Tensor]:
        assert order == "eid"
        return torch.tensor([2, 0, 0], dtype=torch.int32), torch.tensor([1, 1, 1], dtype=torch.int32)

    ndata, edata = {"x": torch.arange(4)}, {"w": torch.arange(3.0)}
    graph = from_dgl(SimpleNamespace(edges=edges, num_nodes=lambda: 4, ndata=ndata, edata=edata))
    assert pairs(graph) == [(2, 1), (0, 1), (0, 1)]
    assert graph.num_nodes == 4
    assert graph.ndata["x"].tolist() == [0, 1, 2, 3]
    assert graph.edata["w"].tolist() == [0, 1, 2]


def test_dgl() -> None:
    dgl = pytest.importorskip("dgl")
    made = dgl.graph((torch.tensor([2, 0, 0]), torch.tensor([1, 1, 1])), num_nodes=4)
    made.ndata["x"], made.edata["w"] = torch.arange(4), torch.arange(3.0)
    graph = from_dgl(made)
    assert pairs(graph) == [(2, 1), (0, 1), (0, 1)]
    assert graph.ndata["x"].tolist() == [0, 1, 2, 3]
    assert graph.edata["w"].tolist() == [0, 1, 2]


def test_columns_become_attributes_and_come_back() -> None:
    columns = {"x": torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "label": torch.tensor([0, 1, -1])}
    graph = Graph.from_edges([0, 0, 2], [1, 1, 2], ndata=columns, edata={"w": torch.tensor([0.5, 1.5, 2.5])})
    made = to_networkx(graph, node_columns=["x", "label"], edge_columns=ALL)
    assert made.nodes[1] == {"x": [3.0, 4.0], "label": 1}
    assert list(made.edges(keys=True, data=True)) == [
        (0, 1, 0, {"w": 0.5}), (0, 1, 1, {"w": 1.5}), (2, 2, 2, {"w": 2.5}),
    ]  # fmt: skip
    back, names = from_networkx(made, node_columns=["x", "label"], edge_columns=["w"])
    assert names == [0, 1, 2]
    assert [end.tolist() for end in back.edges()] == [end.tolist() for end in graph.edges()]
    for name, column in columns.items():
        assert torch.equal(back.ndata[name], column)
    assert torch.equal(back.edata["w"], graph.edata["w"])
    assert to_networkx(graph).nodes[0] == {}
    with pytest.raises(KeyError, match="no column 'y'"):
        to_networkx(graph, node_columns=["y"])
    with pytest.raises(TypeError, match="graph must be a Graph or a NodeFlow, got list"):
        to_networkx([])  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda g: NeighborSampler(g, [2, 1], replace=True), lambda g: FullSampler(g, 2)])
def test_a_node_flow_as_a_networkx_graph(make: Any) -> None:
    src, dst = [0, 1, 2, 3, 3, 0, 0], [1, 2, 0, 1, 0, 1, 0]
    graph = Graph.from_edges(src, dst, ndata={"x": torch.arange(4.0)}, edata={"t": torch.arange(7)})
    batch = make(graph)([1, 0])
    batch.copy_from_parent({0: ["x"]}, {1: ["t"]})
    made = to_networkx(batch, node_columns=["x"], edge_columns=["t"])
    assert made.number_of_nodes() == sum(batch.layer_sizes)
    assert made.number_of_edges() == sum(batch.flow_sizes)
    for (i, row), attributes in made.nodes(data=True):
        v = int(batch.layers[i].parent_nid[row])
        assert attributes == {"layer": i, "parent_nid": v} | ({"x": float(v)} if i == 0 else {})
    for (i, u), (j, v), key, attributes in made.edges(keys=True, data=True):
        flow, e = batch.flows[i, j], attributes["parent_eid"]
        assert (int(flow.edges()[0][key]), int(flow.edges()[1][key])) == (u, v)
        assert (made.nodes[i, u]["parent_nid"], made.nodes[j, v]["parent_nid"]) == (src[e], dst[e])
        assert attributes["weight"] == float(flow.weight[key])
        assert attributes.get("t") == (e if i == 1 else None)
    with pytest.raises(KeyError, match="no layer has a column 'y'"):
        to_networkx(batch, node_columns=["y"])


def test_node_flows_without_parents_and_with_skips() -> None:
    batch = create_node_flow(
        {(0, 1): flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1),
         (1, 2): flow_from_edges([0], [0], num_src=1, num_dst=1),
         (0, 2): flow_from_edges([1], [0], num_src=2, num_dst=1)}
    )  # fmt: skip
    made = to_networkx(batch)
    assert made.nodes[0, 1] == {"layer": 0}
    assert sorted(made.edges(data=True)) == [
        ((0, 0), (1, 0), {"weight": 1.0}), ((0, 1), (1, 0), {"weight": 1.0}), ((0, 1), (2, 0), {"weight": 1.0}),
        ((1, 0), (2, 0), {"weight": 1.0}),
    ]  # fmt: skip
