"""Columns that are no tensor: fetched by id, where tensors are gathered, with the same batches and
results.
"""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from _support.graphs import random_graph
from _support.own_rows import OwnRows
from _support.stores import Store

from nodeflow import (
    Graph,
    NeighborSampler,
    NodeFlowLoader,
    create_full_node_flow,
    create_node_flow,
    nn,
    transform,
)
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.flow import flow_from_edges
from nodeflow.propagation import Propagation
from nodeflow.storage import Rows


def all_rows(column: torch.Tensor | Rows) -> torch.Tensor:
    return column.fetch(torch.arange(column.shape[0])) if isinstance(column, Rows) else column


@pytest.fixture
def graph() -> Graph:
    graph = random_graph(0, 40, 300)
    graph.ndata["x"] = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    graph.edata["p"] = transform.edge_norm(graph, "right")
    graph.edata["e"] = torch.arange(600.0).view(300, 2)
    return graph


@pytest.fixture
def stored(graph: Graph) -> Graph:
    """The same graph, its columns fetched by id."""
    indptr, indices, edge_ids = graph.csc()
    ndata, edata = (
        {name: OwnRows(x) for name, x in frame.items()} for frame in (graph.ndata, graph.edata)
    )
    return Graph(indptr, indices, edge_ids=edge_ids, ndata=ndata, edata=edata)


def test_rows_are_fetched_and_enter_full_passes(graph, stored):
    torch.manual_seed(0)
    x = graph.ndata["x"]
    rows = stored.ndata["x"]
    assert isinstance(rows, Rows)
    assert not isinstance(x, Rows)
    ids = torch.tensor([5, 0, 5])
    assert rows.fetch(ids).equal(x[ids])
    model = nn.GraphSAGE(3, 4, 2, num_layers=2)
    assert model.inference(graph, rows).equal(model.inference(graph, x))
    assert model.inference(graph, rows, nodes=[2]).equal(model.inference(graph, x, nodes=[2]))


def test_a_full_pass_for_some_nodes_fetches_no_more_than_they_depend_on():
    x = torch.randn(6, 3)
    rows = OwnRows(x)
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    model = nn.GraphSAGE(3, 4, 2, num_layers=2)
    assert model.inference(graph, rows, nodes=[2]).equal(model.inference(graph, x, nodes=[2]))
    assert rows.fetched == 3  # nodes 0, 1 and 2


def test_batches_have_the_same_rows(graph, stored):
    for workers in (0, 1):
        loaders = [
            NodeFlowLoader(
                NeighborSampler(g.view(weight="p"), [2, 2]), range(40), 16, num_workers=workers
            )
            for g in (graph, stored)
        ]
        for batch, other in zip(*loaders, strict=True):
            batch.copy_from_parent()
            other.copy_from_parent()
            assert batch.ldata[0]["x"].equal(other.ldata[0]["x"])
            assert batch.fdata[1]["e"].equal(other.fdata[1]["e"])
            assert batch.flows[0].weight.equal(other.flows[0].weight)
    full, other = (create_full_node_flow(g, 1) for g in (graph, stored))
    for batch in (full, other):
        batch.copy_from_parent(["x"], ["e"])
    assert full.fdata[0]["e"].equal(other.fdata[0]["e"])


def test_edges_without_parent_get_zeros(graph, stored):
    src, dst = (end[[8]] for end in graph.edges())
    flow = flow_from_edges([0, 0], [0, 0], num_src=1, num_dst=1, parent_eid=[8, -1])
    batches = [create_node_flow([flow], [src, dst], parent=g) for g in (graph, stored)]
    for batch in batches:
        batch.copy_from_parent(None, ["e"])
    assert batches[0].fdata[0]["e"].equal(batches[1].fdata[0]["e"])
    assert batches[1].fdata[0]["e"][1].tolist() == [0, 0]


def test_propagation_history_and_updater(graph, stored):
    x = graph.ndata["x"]
    rows = stored.ndata["x"]
    sums = Propagation(graph.view(weight="p"))
    others = Propagation(stored.view(weight="p"))
    torch.testing.assert_close(others(rows), sums(x))
    torch.testing.assert_close(others(rows, [3, 3, 1]), sums(x, [3, 3, 1]))
    model = nn.VRGCN(3, 4, 2, num_layers=2)
    histories = [History(g.view(weight="p"), {1: 4}, inputs=g.ndata["x"]) for g in (graph, stored)]
    for history, g in zip(histories, (graph, stored), strict=True):
        Updater(model, history, g.ndata["x"]).step()
    torch.testing.assert_close(histories[0].rows(1, range(40)), histories[1].rows(1, range(40)))
    batches = [
        ControlVariateSampler(history, [0, 2])([1, 2])
        for g, history in zip((graph, stored), histories, strict=True)
    ]
    torch.testing.assert_close(model(batches[0]), model(batches[1]))
    with pytest.raises(ValueError, match="inputs must have a row per node"):
        History(graph, {1: 4}, inputs=OwnRows(torch.ones(3, 2)))


def test_graphs_made_of_graphs_with_such_columns(graph, stored):
    for change in (
        lambda g: transform.subgraph(g, range(20)),
        transform.add_reverse_edges,
        transform.add_self_loops,
    ):
        ours = change(graph)
        theirs = change(stored)
        for frame, other in ((ours.ndata, theirs.ndata), (ours.edata, theirs.edata)):
            for name in frame:
                assert all_rows(frame[name]).equal(all_rows(other[name]))
    for again in (pickle.loads(pickle.dumps(stored)), copy.deepcopy(stored)):
        assert all_rows(again.ndata["x"]).equal(graph.ndata["x"])
    assert stored.ndata.to("cpu")["x"] is stored.ndata["x"]
    assert "x float32 [40, 3]" in repr(stored.ndata)


def test_mistakes_with_such_columns(graph, stored):
    with pytest.raises(
        ValueError, match=r"column 'y' must have 40 rows, one per node or edge, got shape \(3, 2\)"
    ):
        graph.ndata["y"] = OwnRows(torch.ones(3, 2))
    with pytest.raises(TypeError, match="a column name must be a str"):
        graph.ndata[3] = stored.ndata["x"]
    batch = NeighborSampler(stored, [2])([1])
    with pytest.raises(TypeError, match="must be a tensor, an array or a sparse matrix"):
        batch.ldata[0]["x"] = OwnRows(torch.ones(batch.layer_sizes[0], 3))
    batch.copy_from_parent(["x"], None)
    with pytest.raises(
        TypeError, match="'x' of the parent is fetched from OwnRows: it cannot be written"
    ):
        batch.copy_to_parent(["x"], None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_rows_in_a_file_are_those_of_their_tensor(dtype, tmp_path):
    values = torch.arange(20).view(10, 2).to(dtype)
    shapes = {"x": ((10, 2), dtype)}
    store = Store(tmp_path / "rows", "thing", 1, shapes, {})
    assert not store.arrays["x"].any()
    store.arrays["x"].copy_(values)
    rows = Store(tmp_path / "rows", "thing", 1, shapes, {}).arrays["x"]
    assert (rows.shape, rows.dtype) == ((10, 2), dtype)
    ids = torch.tensor([7, 0, 7])
    assert rows[ids].equal(values[ids])
    rows.index_copy_(0, torch.tensor([0, 3]), values[[5, 6]])
    assert rows[[3, 0]].equal(values[[6, 5]])
