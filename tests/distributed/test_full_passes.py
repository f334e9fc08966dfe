"""Sums and full passes over a graph that lies on several ranks equal those of one process, wherever
edges lie.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import NODES, graph_of_all
from hypothesis import given, settings, strategies as st

from nodeflow import Graph, NeighborSampler
from nodeflow.nn import GAT, GCN, GIN, GraphSAGE
from nodeflow.propagation import ExchangePlan, Propagation
from nodeflow.testing import graphs

WHOLE = graph_of_all()
WHOLE.edata["p64"] = WHOLE.edata["p"].double()
OWNER = [0 if v % 5 else 2 for v in range(NODES)]  # rank 1 owns nothing
X = torch.from_numpy(np.random.default_rng(3).normal(size=(NODES, 4)))
WHOLE.ndata["h"] = X
THREE = Parts(WHOLE, OWNER, 3)


@settings(max_examples=15)
@given(graphs(max_nodes=12, max_edges=40), st.data())
def test_sums_are_those_of_one_process_wherever_edges_lie(graph, data):
    size = data.draw(st.integers(1, 4))
    owner = [data.draw(st.integers(0, size - 1)) for _ in range(graph.num_nodes)]
    lie = data.draw(st.sampled_from(["in", "out"]))
    h = torch.from_numpy(np.random.default_rng(1).normal(size=(graph.num_nodes, 3)))
    graph.edata["p64"] = torch.from_numpy(np.random.default_rng(2).normal(size=graph.num_edges))
    parts = Parts(graph, owner, size, lie)
    weight = data.draw(st.sampled_from([None, "p64"]))
    direction = data.draw(st.sampled_from(["in", "out"]))

    def summed(held: Graph, rank: int) -> None:
        propagation = Propagation(held.view(direction, weight=weight))
        sums = propagation(h[held.masters])
        whole = Propagation(graph.view(direction, weight=weight))(h)[held.masters]
        torch.testing.assert_close(sums, whole, rtol=1e-12, atol=1e-12)
        if lie == direction:
            assert torch.equal(sums, whole)

    parts.run(summed)


@pytest.mark.parametrize(
    "model",
    [
        GraphSAGE(4, 6, 3), GraphSAGE(4, 6, 3, aggregator="pool", num_layers=3), GCN(4, 6, 3), GAT(4, 6, 3),
        GIN(4, 6, 3),
        GraphSAGE(4, 6, 3, jumping="cat", norm="layer"), GraphSAGE(4, 3, 3, num_layers=1),
    ],
    ids=lambda model: f"{type(model).__name__}-{len(model.convs)}",
)  # fmt: skip
@pytest.mark.parametrize("chunk_size", [None, 7])
def test_inference_is_that_of_one_process(model, chunk_size):
    model = model.double().train()
    whole = model.inference(WHOLE, X)
    nodes = [[5, 5, 1], [], list(range(NODES))]

    def computed(graph: Graph, rank: int) -> None:
        own_model = copy.deepcopy(model)
        for h in (graph.ndata["h"], X):
            own = own_model.inference(graph, h, chunk_size=chunk_size)
            torch.testing.assert_close(own, whole[graph.masters], rtol=1e-12, atol=1e-12)
        wanted = nodes[rank]
        found = own_model.inference(graph, X, nodes=wanted, chunk_size=chunk_size)
        torch.testing.assert_close(found, whole[wanted], rtol=1e-12, atol=1e-12)
        assert own_model.training

    THREE.run(computed)


def test_inference_with_weights_filters_and_edge_columns():
    model = GCN(4, 5, 2).double()
    options: dict[str, Any] = {"weight": "p64", "where": "old"}
    whole = model.inference(WHOLE.view(**options), X)

    def computed(graph: Graph, rank: int) -> None:
        torch.testing.assert_close(
            model.inference(graph.view(**options), X), whole[graph.masters], rtol=1e-12, atol=1e-12
        )
        flow = Propagation(graph.view(weight="p64")).flow(0, len(graph.masters))
        assert torch.equal(flow.data["time"], WHOLE.edata["time"][flow.parent_eid])
        assert torch.equal(flow.weight, WHOLE.edata["p64"][flow.parent_eid])
        src, dst = WHOLE.find_edges(flow.parent_eid)
        assert torch.equal(flow.src_layer.parent_nid[flow.edges()[0]], src)
        assert torch.equal(flow.dst_layer.parent_nid[flow.edges()[1]], dst)

    THREE.run(computed)


@THREE.on_every_rank
def test_plans_send_rows_without_ids(graph, rank):
    plan = ExchangePlan(graph)
    count = plan.num_masters
    assert plan.partners == [r for r in (0, 2) if r != rank] if rank != 1 else not plan.partners
    mirrors = plan.broadcast(X[graph.masters])
    assert torch.equal(mirrors, X[plan.nodes[count:]])
    sums = plan.reduce(torch.ones(plan.num_mirrors), torch.zeros(count))
    others = [set(THREE.all[r].src.tolist()) | set(THREE.all[r].rows.tolist()) for r in range(3)]
    expected = [sum(v in others[r] for r in range(3) if r != rank) for v in graph.masters.tolist()]
    assert sums.tolist() == expected


def test_mistakes_and_out(tmp_path):
    folder = tmp_path
    parts = {lie: Parts(WHOLE, OWNER, 3, lie) for lie in ("in", "out")}
    model = GraphSAGE(4, 6, 3).double()

    def mistaken(transport: ThreadTransport) -> None:
        graph = parts["in"].on(transport)
        plan = ExchangePlan(graph)
        with pytest.raises(ValueError, match="rows must have"):
            plan.broadcast(torch.zeros(NODES + 1, 2))
        with pytest.raises(ValueError, match="folder must be None"):
            model.inference(graph, X, folder=folder)
        out = torch.zeros(len(graph.masters), 3, dtype=torch.float64)
        assert model.inference(graph, X, out=out) is out
        assert torch.equal(out, model.inference(graph, X, nodes=graph.masters))
        with pytest.raises(ValueError, match="the in-edges of a node do not lie together"):
            model.inference(parts["out"].on(transport), X)

    run_ranks(3, mistaken)


def test_sparse_rows_stay_sparse_between_processes():
    dense = (torch.arange(NODES * 5).view(NODES, 5) % 3).float()
    dense[::4] = 0  # rows without entries
    whole = graph_of_all()
    sums = Propagation(whole)(dense)
    whole.ndata["s"] = dense.to_sparse_csr()
    parts = Parts(whole, OWNER, 3)
    model = GraphSAGE(5, 4, 3, num_layers=2)

    def computed(graph: Graph, rank: int) -> None:
        column = graph.ndata["s"]
        ids = torch.tensor([3, 0, 3, NODES - 1])
        rows = column.fetch(ids if rank else ids[:0])
        assert rows.layout == torch.sparse_csr
        assert rows.to_dense().equal(dense[ids] if rank else dense[:0])
        batch = NeighborSampler(graph, [2, 2])([rank, 7])
        batch.copy_from_parent({0: ["s"]}, None)
        assert batch.ldata[0]["s"].to_dense().equal(dense[batch.layers[0].parent_nid])
        outputs = model.inference(graph, column)
        torch.testing.assert_close(outputs, model.inference(whole, whole.ndata["s"])[graph.masters])
        plan = ExchangePlan(graph)
        own = dense[graph.masters].to_sparse_csr()
        mirrors = plan.broadcast(own)
        assert mirrors.layout == torch.sparse_csr
        assert mirrors.to_dense().equal(dense[plan.nodes[plan.num_masters :]])
        assert plan.gathered(own).to_dense().equal(dense[plan.nodes])
        propagation = Propagation(graph)
        nodes = [3, 0, 3, NODES - 1][: 4 * (rank != 2)]
        for found, expected in (
            (propagation.sums_of_column(column), sums[graph.masters]),
            (propagation(own), sums[graph.masters]),
            (propagation(own, nodes), sums[nodes]),
        ):
            assert found.layout == torch.sparse_csr
            torch.testing.assert_close(found.to_dense(), expected)

    parts.run(computed)


def test_sparse_rows_are_not_added_up():
    def refused(transport: ThreadTransport) -> None:
        graph = THREE.on(transport)
        plan = ExchangePlan(graph)
        mirrors = torch.zeros(plan.num_mirrors, 4).to_sparse_csr()
        with pytest.raises(TypeError, match="rows must be dense to be added up"):
            plan.reduce(mirrors, torch.zeros(plan.num_masters, 4))

    run_ranks(3, refused)
