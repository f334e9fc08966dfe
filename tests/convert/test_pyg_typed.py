"""Graphs of several types as ``HeteroData``, and their batches: its models compute the same on
them.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.conversions import assert_same_typed_graph, typed_graphs
from hypothesis import given, strategies as st

from nodeflow import (
    FullSampler,
    Graph,
    LinkSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    RandomWalkSampler,
)
from nodeflow.convert import from_pyg, pyg_loader, to_pyg

pyg = pytest.importorskip("torch_geometric.data", reason="PyTorch Geometric is not installed")
pyg_nn = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is not installed")

# which validate() says
pytestmark = pytest.mark.filterwarnings("ignore:The node types .* are isolated:UserWarning")

SIZES = {"author": 12, "venue": 3, "paper": 20, "empty": 0}
ENDS = [("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "at", "venue")]


def bibliography(edges: int = 40) -> Graph:
    generator = torch.Generator().manual_seed(3)

    def columns(rows: int, width: int) -> dict[str, torch.Tensor]:
        return {
            "x": torch.randn(rows, width, dtype=torch.float64, generator=generator),
            "time": torch.arange(rows),
        }

    nodes = {name: columns(size, 4) for name, size in SIZES.items()}
    pairs = {
        r: [torch.randint(0, SIZES[of], (edges,), generator=generator) for of in (r[0], r[2])]
        for r in ENDS
    }
    typed = {
        r: (*ends, {"w": torch.rand(edges, generator=generator) + 0.1}) for r, ends in pairs.items()
    }
    graph = Graph.typed(nodes, typed, reverse=True)
    graph.ndata["all"], graph.edata["every"] = (
        torch.arange(graph.num_nodes),
        torch.arange(graph.num_edges),
    )
    return graph


GRAPH = bibliography()
SEEDS = torch.tensor([15, 34, 0, 12, 15, 20])
DRAWS: dict[str, Any] = {
    "neighbours": NeighborSampler(GRAPH, [2, 3, 4], reuse=True),
    "by relation": NeighborSampler(GRAPH, [{"writes": 2, "rev_at": 1, "cites": 3}, 4], reuse=True),
    "with replacement": NeighborSampler(GRAPH, [3, 3], reuse=True, replace=True),
    "all neighbours": FullSampler(GRAPH, 2),
    "disjoint": NeighborSampler(GRAPH, [2, 3], reuse=True, disjoint=True),
    "anew": NeighborSampler(GRAPH, [2, 3]),
}


def batch_of(name: str) -> NodeFlow:
    batch: NodeFlow = DRAWS[name](SEEDS)
    batch.copy_from_parent(
        {0: ["x", "all"], -1: ["time"]}, ["w", "every"] if name == "anew" else {0: ["w", "every"]}
    )
    return batch


@given(typed_graphs())
def test_hetero_data_and_back_is_the_same_graph(graph):
    data = to_pyg(graph)
    assert type(data).__name__ == "HeteroData"
    assert data.validate()
    assert (data.node_types, data.edge_types) == (
        list(graph.schema.nodes),
        list(graph.schema.relations),
    )
    assert_same_typed_graph(from_pyg(data), graph)


@given(typed_graphs(), st.data())
def test_a_batch_of_any_graph(graph, data):
    seeds = (
        data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5))
        if graph.num_nodes
        else []
    )
    batch = NeighborSampler(graph, [2, 1], reuse=data.draw(st.booleans()))(seeds)
    check_ids(to_pyg(batch), batch, graph)


@pytest.mark.parametrize("name", DRAWS)
def test_a_batch_has_the_nodes_edges_and_columns_that_were_drawn(name):
    batch = batch_of(name)
    data = to_pyg(batch)
    check_ids(data, batch, GRAPH)
    for of_type, part in GRAPH.nodes.items():
        held = data[of_type]
        assert torch.equal(held.x, part.data["x"][held.n_id])
        assert torch.equal(held.all, part.ids.start + held.n_id)
        assert torch.equal(held.time, part.data["time"][held.n_id[: held.batch_size]])
        assert ("batch" in held) == (name == "disjoint")
    for relation, part in GRAPH.relations.items():
        held = data[relation]
        assert torch.equal(held.every, part.ids.start + held.e_id)
        assert torch.equal(held.w, part.data["w"][held.e_id])


def check_ids(data: Any, batch: NodeFlow, graph: Graph) -> None:
    """Fail unless nodes, edges, seeds and counts per hop are those of the batch, in its order."""
    assert data.validate()
    nested = "num_sampled_nodes" in data[next(iter(graph.schema.nodes))]
    ends = graph.edges()
    for name, part in graph.nodes.items():
        held = data[name]
        sizes = [len(layer.of(name)) for layer in batch.layers][::-1]
        assert (held.num_nodes, held.batch_size) == (sizes[-1], sizes[0])
        assert part.to_graph(held.n_id).tolist() == [
            v for v in batch.front.parent_nid.tolist() if v in part.ids
        ]
        asked = [(i, v) for i, v in enumerate(batch.seed_ids.tolist()) if v in part.ids]
        assert part.to_graph(held.n_id[held.seed_index]).tolist() == [v for _, v in asked]
        if "index" in batch.seed_data:
            assert (
                held.input_id.tolist() == held.seed_data["index"].tolist() == [i for i, _ in asked]
            )
        if nested:
            assert torch.tensor(held.num_sampled_nodes).cumsum(0).tolist() == sizes
    for relation, part in graph.relations.items():
        held = data[relation]
        drawn = [e for flow in batch.flows for e in flow.parent_eid.tolist() if e in part.ids]
        assert set((held.e_id + part.ids.start).tolist()) == set(drawn)
        for row, end, of in zip(held.edge_index, ends, relation[::2], strict=True):
            assert torch.equal(
                graph.nodes[of].to_graph(data[of].n_id[row]), end[held.e_id + part.ids.start]
            )
        if nested:
            sizes = [flow.of(relation).num_edges for flow in batch.flows][::-1]
            assert torch.tensor(held.num_sampled_edges).cumsum(0).tolist() == sizes
            for hop, count in enumerate(torch.tensor(held.num_sampled_edges).cumsum(0)):
                dst = data[relation[2]]
                assert (held.edge_index[1, :count] < sum(dst.num_sampled_nodes[: hop + 1])).all()


KINDS: dict[str, Any] = {
    "sage": lambda: pyg_nn.SAGEConv((-1, -1), 4),
    "gat": lambda: pyg_nn.GATConv((-1, -1), 4, add_self_loops=False),
    "graph": lambda: pyg_nn.GraphConv((-1, -1), 4),
}


def model_of(kind: str, num_layers: int) -> Any:
    """Return layers over all relations; each takes and returns a row per node of every type."""
    if kind == "hgt":
        types = list(GRAPH.schema.nodes), list(GRAPH.schema.relations)
        return [pyg_nn.HGTConv(4, 4, types, heads=2).double() for _ in range(num_layers)]
    convs = [
        pyg_nn.HeteroConv({r: KINDS[kind]() for r in GRAPH.schema.relations})
        for _ in range(num_layers)
    ]
    return [conv.double() for conv in convs]


def run(
    model: Any, data: Any, *, trim: bool = False, weighted: bool = False
) -> dict[str, torch.Tensor]:
    from torch_geometric.utils import trim_to_layer

    x = data.x_dict
    index = data.edge_index_dict
    weight = data.edge_weight_dict if weighted else None
    counts = (data.num_sampled_nodes_dict, data.num_sampled_edges_dict) if trim else ()
    for i, conv in enumerate(model):
        if trim:
            x, index, weight = trim_to_layer(i, *counts, x, index, weight)
        new = conv(x, index, **({"edge_weight_dict": weight} if weighted else {}))
        x = {
            name: new[name].tanh() if new.get(name) is not None else rows
            for name, rows in x.items()
        }
    return x


@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("kind", ["sage", "gat", "graph", "hgt"])
def test_models_compute_for_the_seeds_what_they_do_on_the_whole_graph(kind, trim):
    model = model_of(kind, 2)
    data = to_pyg(batch_of("all neighbours"))
    whole = run(model, to_pyg(GRAPH))
    rows = run(model, data, trim=trim)
    for name in ("author", "venue", "paper"):
        size = data[name].batch_size
        torch.testing.assert_close(
            rows[name][:size], whole[name][data[name].n_id[:size]], rtol=1e-11, atol=1e-11
        )


@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("name", [name for name in DRAWS if name != "anew"])
def test_models_compute_on_a_batch_what_the_flows_of_its_relations_give(name, trim):
    """A weighted sum per relation and the node's own row, by ``flow.of``: nothing is merged."""
    batch = batch_of(name)
    data = to_pyg(batch)
    for relation in GRAPH.schema.relations:
        data[relation].edge_weight = data[relation].edge_weight.double()
    model = model_of("graph", batch.num_flows)
    rows = run(model, data, trim=trim, weighted=True)
    h = torch.zeros(batch.front.num_nodes, 4, dtype=torch.float64)
    for of_type in SIZES:
        h[batch.front.of(of_type).rows] = batch.front.of(of_type).data["x"]
    with torch.no_grad():
        for layers, flow in zip(model, batch.flows, strict=True):
            total = torch.zeros(flow.num_dst, 4, dtype=torch.float64)
            for relation in GRAPH.schema.relations:
                conv = layers.convs[relation]
                part = flow.of(relation)
                own = flow.dst_layer.of(relation[2]).rows
                summed = part.aggregate(h, weight=part.weight.double())
                total[own] += conv.lin_rel(summed[own]) + conv.lin_root(flow.take_dst(h)[own])
            h = total.tanh()
    for of_type in ("author", "venue", "paper"):
        own = batch.back.of(of_type).rows
        torch.testing.assert_close(rows[of_type][: len(own)], h[own], rtol=1e-11, atol=1e-11)


def test_nodes_that_drew_anew_have_the_mean_of_their_estimates():
    batch = batch_of("anew")
    data = to_pyg(batch)
    for relation in GRAPH.schema.relations:
        held = data[relation]
        estimates = torch.zeros(data[relation[2]].num_nodes)
        draws = torch.zeros(data[relation[2]].num_nodes)
        local = {
            v: i
            for i, v in enumerate(
                GRAPH.nodes[relation[2]].to_graph(data[relation[2]].n_id).tolist()
            )
        }
        for flow in batch.flows:
            dst = flow.of(relation).edges()[1]
            at = torch.tensor(
                [local[v] for v in flow.dst_layer.parent_nid[dst].tolist()], dtype=torch.int64
            )
            estimates.index_add_(0, at, flow.of(relation).weight)
            draws[: len(flow.dst_layer.of(relation[2]))] += 1
        sums = torch.zeros(len(draws)).index_add_(0, held.edge_index[1], held.edge_weight)
        torch.testing.assert_close(sums, estimates / draws.clamp(min=1))
        assert "num_sampled_edges" not in held


def test_a_loader_and_seeds_that_are_no_nodes():
    loader = NodeFlowLoader(
        DRAWS["neighbours"], SEEDS, 4, ndata={0: ["x"]}, seed_data={"index": torch.arange(6)}
    )
    first = next(iter(pyg_loader(loader)))
    assert {name: first[name].input_id.tolist() for name in SIZES} == {
        "author": [2], "venue": [3], "paper": [0, 1], "empty": []
    }  # fmt: skip
    links = LinkSampler(NeighborSampler(GRAPH, [2], reuse=True))([3, 41])
    data = to_pyg(links)
    src, dst = GRAPH.find_edges([3, 41])
    assert data.seed_ids.tolist() == [3, 41]
    assert (data["author"].n_id[data.seed_index[0, 0]], data["paper"].n_id[data.seed_index[1, 1]]) == (
        src[0], dst[1] - GRAPH.nodes["paper"].ids.start
    )  # fmt: skip


def test_what_hetero_data_holds_becomes_the_graph():
    from torch_geometric import EdgeIndex

    data = pyg.HeteroData()
    data["user"].x = torch.ones(3, 2)
    data["user"].train_mask = torch.ones(3).bool()
    data["user"].names = ["a", "b", "c"]
    data["item"].y = torch.arange(2)
    data["item"].num_nodes = 2
    data["none"].num_nodes = 4
    data["user", "buys", "item"].edge_index = EdgeIndex([[2, 0, 2], [1, 1, 0]], sparse_size=(3, 2))
    data["user", "buys", "item"].edge_attr = torch.rand(3, 2)
    data["user", "buys", "item"].edge_label_index = torch.zeros(2, 3, dtype=torch.int64)
    data["item", "same", "item"].edge_index = torch.zeros(2, 0, dtype=torch.int64)
    graph = from_pyg(data)
    assert (
        repr(graph.schema)
        == "Schema(user 3, item 2, none 4; user -buys-> item 3, item -same-> item 0)"
    )
    assert {name: sorted(part.data) for name, part in graph.nodes.items()} == {
        "user": ["train_mask", "x"], "item": ["y"], "none": []
    }  # fmt: skip
    assert list(graph.relations["buys"].data) == ["edge_attr"]
    assert graph.find_edges([0, 1, 2])[0].tolist() == [2, 0, 2]
    assert_same_typed_graph(from_pyg(to_pyg(graph)), graph)
    with pytest.raises(ValueError, match="'names' must be a tensor with 3 rows, got list"):
        from_pyg(data, node_columns=["names"])
    chosen = from_pyg(data, node_columns=["y"], edge_columns=[])
    assert [list(part.data) for part in (*chosen.nodes.values(), *chosen.relations.values())] == [
        [],
        ["y"],
        [],
        [],
        [],
    ]
    with pytest.raises(KeyError, match="node_columns: no type of data has the attribute 'z'"):
        from_pyg(data, node_columns=["z"])
    with pytest.raises(TypeError, match="edge_columns must be a list of names"):
        from_pyg(data, edge_columns="w")
    data["user", "buys", "item"].edge_index = torch.tensor([[3], [0]])
    with pytest.raises(
        IndexError, match=r"src of edges\[\('user', 'buys', 'item'\)\]\[0\] is 3, but user node ids"
    ):
        from_pyg(data, edge_columns=[])
    del data["item", "same", "item"].edge_index
    with pytest.raises(
        ValueError, match=r"data\[\('item', 'same', 'item'\)\] must have an edge_index"
    ):
        from_pyg(data)
    data["unsized"].names = ["a"]
    with pytest.raises(
        ValueError, match=r"data\['unsized'\] must say how many nodes there are; set its num_nodes"
    ):
        from_pyg(data)


def test_names_of_one_type_decide():
    plain = Graph.from_edges([0], [1])
    named = Graph.typed({"user": 2}, {("user", "knows", "user"): ([0], [1], {"w": torch.ones(1)})})
    assert (type(to_pyg(plain)), type(to_pyg(named))) == (pyg.Data, pyg.HeteroData)
    batch = FullSampler(named, 1)([1])
    batch.copy_from_parent(None, ["w"])
    data = to_pyg(batch)
    assert (data["user"].n_id.tolist(), data["knows"].w.tolist(), data["knows"].e_id.tolist()) == (
        [1, 0],
        [1],
        [0],
    )
    assert to_pyg(Graph.typed({"user": 2}, {})).node_types == ["user"]


def test_batches_that_hetero_data_cannot_hold():
    with pytest.raises(
        ValueError, match=r"cannot hold edges of \('author', 'writes', 'paper'\) from end to"
    ):
        to_pyg(NeighborSampler(GRAPH.view("out"), [2], reuse=True)([0]))
    with pytest.raises(
        ValueError, match="cannot hold edges that are none of the graph, which flow 0 has"
    ):
        to_pyg(RandomWalkSampler(GRAPH, 1, num_walks=5, walk_length=2, reuse=True)([0]))
    graph = bibliography()
    graph.ndata["x"] = torch.ones(graph.num_nodes)
    with pytest.raises(
        ValueError,
        match="column 'x' is one of 'author' and one of all types; delete one, or rename",
    ):
        to_pyg(graph)
    batch = DRAWS["neighbours"]([0])
    batch.layers[0].of("author").data["n_id"] = batch.layers[0].of("author").parent_nid
    with pytest.raises(ValueError, match=r"Data keeps the names \['n_id'\] for itself"):
        to_pyg(batch)
    batch = DRAWS["neighbours"]([0])
    batch.flows[0].of("rev_writes").data["edge_weight"] = torch.ones(
        batch.flows[0].of("rev_writes").num_edges
    )
    with pytest.raises(ValueError, match="a flow has a column 'edge_weight'"):
        to_pyg(batch)
