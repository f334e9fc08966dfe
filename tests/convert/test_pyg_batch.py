"""NodeFlows as batches of PyTorch Geometric: its layers compute the same on them, and nothing is
lost.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from _support.conversions import assert_same_batch, assert_same_columns, below, filled, stored
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import (
    ClusterSampler,
    FullSampler,
    Graph,
    LaborSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    RandomWalkSampler,
    SaintSampler,
    ShadowSampler,
    TemporalNeighborSampler,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.convert import from_pyg_batch, pyg_loader, to_pyg
from nodeflow.storage import Lookahead, open as open_rows
from nodeflow.testing import graphs

pyg = pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")


def ring(num_nodes: int = 60, degree: int = 6) -> Graph:
    """Return a graph with repeated edges, self-loops and a node without in-edges."""
    generator = torch.Generator().manual_seed(5)
    dst = torch.arange(num_nodes - 1).repeat_interleave(degree)
    src = torch.randint(0, num_nodes, (len(dst),), generator=generator)
    edata = {
        "time": torch.randint(0, 50, (len(dst),), generator=generator),
        "w": torch.rand(len(dst)) + 0.1,
    }
    ndata = {"x": torch.randn(num_nodes, 4, generator=generator), "y": torch.arange(num_nodes)}
    return Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)


GRAPH = ring()
DRAWS: dict[str, Any] = {
    "neighbours": NeighborSampler(GRAPH, [2, 3, 4], reuse=True),
    "with replacement": NeighborSampler(GRAPH, [3, 3], reuse=True, replace=True),
    "all of the first": NeighborSampler(GRAPH, [2, -1, 2], reuse=True),
    "by weight": NeighborSampler(GRAPH.view(weight="w"), [2, 3], reuse=True, prob="w"),
    "out-edges": NeighborSampler(GRAPH.view("out"), [2, 3], reuse=True),
    "disjoint": NeighborSampler(GRAPH, [2, 3], reuse=True, disjoint=True),
    "all neighbours": FullSampler(GRAPH, 2),
    "labor": LaborSampler(GRAPH, [2, 3], reuse=True),
    "walks": RandomWalkSampler(GRAPH, 2, num_walks=5, walk_length=2, num_neighbors=2, reuse=True),
    "subgraph per seed": ShadowSampler(GRAPH, 2, 2, 3),
}


same_structure = partial(assert_same_batch, frames=False)


@pytest.mark.parametrize("name", DRAWS)
def test_a_batch_and_back_is_the_same_node_flow(name):
    batch = DRAWS[name]([7, 3, 59, 7])
    batch.copy_from_parent({0: ["x"], -1: ["y"]}, {0: ["w"]})
    data = to_pyg(batch)
    assert data.validate()
    assert data.num_nodes == sum(data.num_sampled_nodes)
    assert data.num_edges == sum(data.num_sampled_edges)
    assert data.n_id[: data.batch_size].tolist() == [7, 3, 59]
    assert torch.equal(data.x, GRAPH.ndata["x"][data.n_id])
    assert data.y[: data.batch_size].tolist() == [7, 3, 59]
    drawn = data.e_id >= 0  # edges of random walks are none of the graph
    assert torch.equal(data.w[drawn], GRAPH.edata["w"][data.e_id[drawn]])
    back = from_pyg_batch(data, parent=GRAPH, node_columns=["x", "y"], edge_columns=["w"])
    same_structure(back, batch)
    assert_same_columns(back.ldata[0], batch.ldata[0])
    assert_same_columns(back.ldata[-1], batch.ldata[-1])
    assert_same_columns(back.fdata[0], batch.fdata[0])


@given(graphs(min_nodes=1), st.integers(1, 3), st.integers(1, 4), st.data())
def test_any_graph_and_back(graph, num_flows, fanout, data):
    seeds = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5))
    batch = NeighborSampler(filled(graph, sparse=True), [fanout] * num_flows, reuse=True)(seeds)
    batch.copy_from_parent({0: list(graph.ndata)}, {0: list(graph.edata)})
    back = from_pyg_batch(
        to_pyg(batch), parent=graph, node_columns=list(graph.ndata), edge_columns=list(graph.edata)
    )
    same_structure(back, batch)
    assert_same_columns(back.ldata[0], batch.ldata[0])
    assert_same_columns(back.fdata[0], batch.fdata[0])


def convs(kind: str, widths: list[int]) -> torch.nn.ModuleList:
    from torch_geometric import nn

    torch.manual_seed(0)
    made = {
        "sage": lambda i, o: nn.SAGEConv(i, o),
        "gat": lambda i, o: nn.GATConv(i, o, add_self_loops=False),
        "gatv2": lambda i, o: nn.GATv2Conv(i, o, add_self_loops=False, share_weights=True),
        "graph": lambda i, o: nn.GraphConv(i, o),
        "gin": lambda i, o: nn.GINConv(torch.nn.Linear(i, o)),
    }[kind]
    return torch.nn.ModuleList([made(i, o) for i, o in pairwise(widths)])


def by_flows(
    model: torch.nn.ModuleList, batch: NodeFlow, h: torch.Tensor, weighted: bool
) -> torch.Tensor:
    """PyTorch Geometric's layers, flow by flow: nothing is merged, so this is the reference."""
    for i, (conv, flow) in enumerate(zip(model, batch.flows, strict=True)):
        more = (flow.weight,) if weighted else ()
        h = conv(
            (h.relu() if i else h, flow.take_dst(h.relu() if i else h)),
            torch.stack(flow.edges()),
            *more,
        )
    return h


@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("kind", ["sage", "gat", "gatv2", "graph", "gin"])
@pytest.mark.parametrize("name", DRAWS)
def test_layers_compute_the_same_on_the_merged_batch(name, kind, trim):
    from torch_geometric.utils import trim_to_layer

    batch = DRAWS[name]([7, 3, 59])
    batch.copy_from_parent({0: ["x"]}, None)
    data = to_pyg(batch)
    weighted = kind == "graph"
    model = convs(kind, [4, *[5] * batch.num_flows])
    h = data.x
    index = data.edge_index
    weight = data.edge_weight
    for i, conv in enumerate(model):
        if trim:
            h, index, weight = trim_to_layer(
                i, data.num_sampled_nodes, data.num_sampled_edges, h, index, weight
            )
        h = conv(h.relu() if i else h, index, *((weight,) if weighted else ()))
    expected = by_flows(model, batch, batch.ldata[0]["x"], weighted)
    torch.testing.assert_close(h[: data.batch_size], expected, rtol=1e-5, atol=1e-6)


def test_every_hop_has_its_own_nodes_and_edges():
    chain = Graph.from_edges([1, 2, 3, 4, 2], [0, 1, 2, 3, 0])
    data = to_pyg(NeighborSampler(chain, [9, 9, 9], reuse=True)([0]))
    assert (data.n_id.tolist(), data.num_sampled_nodes) == ([0, 1, 2, 3, 4], [1, 2, 1, 1])
    assert (data.e_id.tolist(), data.num_sampled_edges) == ([0, 4, 1, 2, 3], [2, 2, 1])


def test_full_graph_and_subgraphs():
    parts = torch.arange(60) // 20
    for batch in (
        create_full_node_flow(GRAPH, 2),
        SaintSampler(GRAPH, 2, kind="node", budget=20)([0]),
        ClusterSampler(GRAPH, 2, parts=parts)([1]),
    ):
        data = to_pyg(batch)
        assert data.num_sampled_nodes == [batch.layer_sizes[0], 0, 0]
        assert data.num_sampled_edges == [batch.flow_sizes[0], 0]
        same_structure(from_pyg_batch(data, parent=GRAPH), batch)
    whole = create_full_node_flow(GRAPH, 1, add_self_loop=True)
    assert (to_pyg(whole).e_id == -1).sum() == GRAPH.num_nodes


def test_times_pairs_and_columns_of_seeds():
    timed = TemporalNeighborSampler(GRAPH, [2, 2], time="time", reuse=True)([7, 7], times=[30, 40])
    data = to_pyg(timed)
    assert data.batch.tolist() == timed.layers[0].context.tolist()
    assert torch.equal(data.time, timed.ldata[0]["time"])
    same_structure(from_pyg_batch(data, parent=GRAPH), timed)
    links = LinkSampler(NeighborSampler(GRAPH, [2], reuse=True), num_negatives=2)
    loader = NodeFlowLoader(
        links, [4, 9, 4], batch_size=3, seed_data={"label": torch.tensor([1, 0, 1])}
    )
    data = next(iter(pyg_loader(loader)))
    assert (data.seed_index.shape, data.seed_ids.tolist()) == ((3, 4), [4, 9, 4])
    assert data.seed_data["label"].tolist() == [1, 0, 1]
    assert data.n_id[data.seed_index[:, :2]].T.tolist() == [
        end[[4, 9, 4]].tolist() for end in GRAPH.edges()
    ]
    loader.set_epoch(0)
    same_structure(from_pyg_batch(data, parent=GRAPH), next(iter(loader)))


def test_precise_weights_stay_precise():
    graph = Graph.from_edges([0, 1, 2], [3, 3, 3], edata={"a": torch.rand(3, dtype=torch.float64)})
    batch = NeighborSampler(graph.view(weight="a"), [2], reuse=True)([3])
    assert to_pyg(batch).edge_weight.dtype == torch.float64
    same_structure(from_pyg_batch(to_pyg(batch), parent=graph), batch)


def test_no_seeds_no_edges_no_flows_no_parents():
    for batch in (
        NeighborSampler(GRAPH, [2, 2], reuse=True)([]),
        NeighborSampler(GRAPH, [2, 2], reuse=True)([59]),
        create_full_node_flow(GRAPH, 0),
    ):
        data = to_pyg(batch)
        assert data.validate()
        same_structure(from_pyg_batch(data, parent=GRAPH), batch)
    hand = create_node_flow([flow_from_edges([0], [0], num_src=1, num_dst=1)], [[4], [4]])
    data = to_pyg(hand)
    assert "e_id" not in data
    assert from_pyg_batch(data).seeds.tolist() == [4]


def test_edges_in_any_order_come_back_sorted():
    batch = DRAWS["neighbours"]([7, 3])
    batch.copy_from_parent({0: ["x"]}, {0: ["w"]})
    data = to_pyg(batch)
    mixed = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(0))
    for name in ("e_id", "edge_weight", "w"):
        data[name] = data[name][mixed]
    data.edge_index = data.edge_index[:, mixed]
    back = from_pyg_batch(data, parent=GRAPH)
    back.validate()
    assert torch.equal(back.fdata[0]["w"], GRAPH.edata["w"][back.flows[0].parent_eid])
    data.edge_inner = torch.arange(batch.flow_sizes[1])
    with pytest.raises(
        ValueError, match="columns of some hops only need edges that are sorted by destination"
    ):
        from_pyg_batch(data)
    for flow, wanted in zip(back.flows, batch.flows, strict=True):
        assert torch.equal(flow.indptr, wanted.indptr)
        assert torch.equal(flow.parent_eid.sort().values, wanted.parent_eid.sort().values)


def test_hops_are_found_again_without_counts():
    """PyTorch Geometric counts per hop only where ``pyg-lib`` is installed."""
    batch = DRAWS["neighbours"]([7, 3, 59])
    data = to_pyg(batch)
    data.num_sampled_nodes = data.num_sampled_edges = None
    same_structure(from_pyg_batch(data, parent=GRAPH, num_flows=3), batch)


@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"prob": "w", "weight": "w"}, {"direction": "out"}]
)
def test_nodes_that_drew_anew_have_the_edges_of_all_draws(options):
    batch = viewed(NeighborSampler, GRAPH, [2, 3, 2], **options)([7, 3, 40])
    batch.copy_from_parent({0: ["x"]}, ["w"])
    data = to_pyg(batch)
    estimates = torch.zeros(batch.layer_sizes[0])
    draws = torch.zeros(batch.layer_sizes[0])
    for flow in batch.flows:
        estimates.index_add_(0, flow.edges()[1], batch.inputs["x"][flow.indices, 0] * flow.weight)
        draws[: flow.num_dst] += 1
    src, dst = data.edge_index
    sums = torch.zeros(batch.layer_sizes[0]).index_add_(0, dst, data.x[src, 0] * data.edge_weight)
    assert torch.allclose(sums, estimates / draws.clamp(min=1), atol=1e-5)
    assert set(data.e_id.tolist()) == {e for flow in batch.flows for e in flow.parent_eid.tolist()}
    assert len(set(data.e_id.tolist())) == len(data.e_id)
    assert torch.equal(data.w, GRAPH.edata["w"][data.e_id])
    ends = (GRAPH.edges()[1], GRAPH.edges()[0]) if "direction" in options else GRAPH.edges()
    assert torch.equal(data.n_id[src], ends[0][data.e_id])
    assert torch.equal(data.n_id[dst], ends[1][data.e_id])
    # an edge drawn last may end at a seed, so nothing can be trimmed
    assert "num_sampled_nodes" not in data


def test_an_inner_flow_may_have_more_edges():
    flows = (
        flow_from_edges([1], [0], num_src=2, num_dst=2),
        flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1),
    )
    data = to_pyg(create_node_flow([*flows], [[5, 6], [5, 6], [5]]))
    assert (data.edge_index.tolist(), data.edge_weight.tolist()) == ([[0, 1], [0, 0]], [0.5, 1.0])


def test_batches_that_one_graph_cannot_hold():
    anew = NeighborSampler(GRAPH, [2, 2])([7, 3])
    anew.fdata[1]["w"] = torch.ones(anew.flow_sizes[1])
    with pytest.raises(ValueError, match=r"column 'w' is in only one of the flows 0 and 1"):
        to_pyg(anew)
    low = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    high, skip = (flow_from_edges([0], [0], num_src=n, num_dst=1) for n in (1, 2))
    with pytest.raises(
        ValueError, match=r"cannot hold flows that skip layers, got the flows \[.*\(0, 2\)\]"
    ):
        to_pyg(create_node_flow({(0, 1): low, (1, 2): high, (0, 2): skip}, [[5, 6], [5], [5]]))
    batch = DRAWS["neighbours"]([7])
    batch.ldata[0]["h"] = torch.zeros(batch.layer_sizes[0])
    batch.ldata[-1]["h"] = torch.ones(1)
    with pytest.raises(
        ValueError, match="column 'h' of layer 3 differs from that of an earlier layer"
    ):
        to_pyg(batch)
    batch.ldata[-1]["h"] = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(ValueError, match="column 'h' of layer 3 differs"):
        to_pyg(batch)
    batch.ldata[-1]["h"] = torch.zeros(1)
    batch.ldata[0]["s"] = torch.eye(batch.layer_sizes[0]).to_sparse_csr()
    batch.ldata[-1]["s"] = torch.eye(1, batch.layer_sizes[0]).to_sparse_csr()
    assert to_pyg(batch).h.shape == (batch.layer_sizes[0],)
    batch.ldata[-1]["s"] = batch.ldata[-1]["s"] * 2
    with pytest.raises(ValueError, match="column 's' of layer 3 differs"):
        to_pyg(batch)
    batch.ldata[-1].pop("s")
    batch.fdata[0]["edge_weight"] = torch.ones(batch.flow_sizes[0])
    with pytest.raises(
        ValueError, match=r"the name that estimator weights have .* weight='edge_weight' needs no"
    ):
        to_pyg(batch)
    batch.fdata[0].pop("edge_weight")
    batch.ldata[0]["n_id"] = batch.layers[0].parent_nid
    with pytest.raises(ValueError, match=r"Data keeps the names \['n_id'\] for itself"):
        to_pyg(batch)


def test_the_loader_gives_every_batch_in_order():
    def loader() -> NodeFlowLoader:
        sampler = NeighborSampler(GRAPH, [2, 2], reuse=True)
        return NodeFlowLoader(
            sampler,
            range(50),
            batch_size=8,
            shuffle=True,
            num_workers=1,
            ndata={0: ["x"], -1: ["y"]},
        )

    plain = loader()
    wrapped = pyg_loader(loader())
    assert repr(wrapped) == f"pyg_loader({wrapped.loader!r})"
    assert len(wrapped) == len(plain) == 7
    for _ in range(2):  # every iteration is an epoch of its own
        pairs = list(zip(plain, wrapped, strict=True))
        assert len(pairs) == 7
        for batch, data in pairs:
            assert torch.equal(data.n_id[: data.batch_size], batch.seeds)
            assert torch.equal(data.y, batch.seeds)
            same_structure(from_pyg_batch(data, parent=GRAPH), batch)
    assert wrapped.loader.state_dict() == plain.state_dict()


def test_batches_whose_features_lie_in_a_file(tmp_path):
    np.save(tmp_path / "x.npy", GRAPH.ndata["x"].numpy())
    graph = Graph.from_edges(*GRAPH.edges(), ndata={"x": open_rows(tmp_path / "x.npy")})
    loader = NodeFlowLoader(
        NeighborSampler(graph, [2, 2], reuse=True), range(50), batch_size=8, ndata={0: ["x"]}
    )
    batches = list(pyg_loader(Lookahead(loader, memory="1 KB")))
    assert [data.batch_size for data in batches] == [8, 8, 8, 8, 8, 8, 2]
    for data in batches:
        assert torch.equal(data.x, GRAPH.ndata["x"][data.n_id])
    assert torch.equal(to_pyg(graph).x, GRAPH.ndata["x"])


def test_named_columns_of_a_batch():
    data = to_pyg(DRAWS["neighbours"]([7, 3]))
    data.a, data.b = torch.zeros(data.num_nodes), torch.ones(data.num_edges)
    back = from_pyg_batch(data, edge_columns=["b"])
    assert (list(back.ldata[0]), list(back.fdata[0])) == (["a"], ["b"])
    assert list(from_pyg_batch(data, node_columns=[], edge_columns=["b"]).ldata[0]) == []
    # with names of a kind, no others are of it
    assert not any(from_pyg_batch(data, node_columns=[]).ldata)
    assert "edge_weight" in from_pyg_batch(data, weight=None).fdata[0]


def test_batches_of_the_loader_of_pyg():
    """``_support/draw_pyg_batches.py`` wrote them, with torch-sparse 0.6.18, which has no counts
    per hop.
    """
    arrays = stored("pyg_batches.npz")
    graph = Graph.from_edges(*arrays["edge_index"], num_nodes=40, edata={"w": torch.arange(240)})
    for i, seeds in enumerate([[5, 9], [1, 30]]):
        data = pyg.data.Data(**below(arrays, f"{i}."), batch_size=2)
        batch = from_pyg_batch(data, parent=graph, num_flows=2, edge_columns=["w"])
        batch.validate()  # parent ids and parent edges fit the graph
        assert batch.seeds.tolist() == seeds
        assert torch.equal(batch.ldata[0]["x"], batch.layers[0].parent_nid.float())
        assert torch.equal(batch.fdata[0]["w"], batch.flows[0].parent_eid)
        fanouts = [int(flow.in_degrees.max()) for flow in batch.flows]
        assert fanouts[1] <= 3
        assert fanouts[0] <= 3
        assert int(batch.flows[0].in_degrees[2:].max()) <= 2
        same_structure(from_pyg_batch(to_pyg(batch), parent=graph), batch)
