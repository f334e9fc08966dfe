"""Between a NodeFlow and its parent: the three maps, and columns copied both ways."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import assume, given, strategies as st

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.testing import node_flows


@pytest.fixture
def batch(graph: Graph) -> NodeFlow:
    """Layers [1, 2, 0, 4], [1, 2, 0], [1, 2] of the graph with parent nodes 0 to 5."""
    return FullSampler(graph, 2)([1, 2])


@pytest.fixture
def mixed() -> NodeFlow:
    """Layers [7, 5], two pooled nodes, [5]; the first flow has parent edges, the others have
    none.
    """
    low = flow_from_edges([0, 1], [0, 1], num_src=2, num_dst=2, parent_eid=[8, -1])
    high = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    skip = flow_from_edges([1], [0], num_src=2, num_dst=1, parent_eid=[3])
    return create_node_flow({(0, 1): low, (1, 2): high, (0, 2): skip}, [[7, 5], None, [5]])


# ---- maps


@given(node_flows(parents=True))
def test_maps_agree_with_the_parts(batch):
    nodes = [i for layer in batch.layers for i in layer.parent_nid.tolist()]
    assert batch.map_to_parent_nid(range(len(nodes))).tolist() == nodes
    assert batch.map_to_parent_nid(range(len(nodes))[::-1]).tolist() == nodes[::-1]
    edges = [e for pair in batch.flows.pairs() for e in batch.flows[pair].parent_eid.tolist()]
    assert batch.map_to_parent_eid(range(len(edges))).tolist() == edges
    for i, layer in enumerate(batch.layers):
        assert torch.equal(batch.map_to_parent_nid(batch.layers(i)), layer.parent_nid)
        assert torch.equal(batch.map_from_parent_nid(i, layer.parent_nid), batch.layers(i))
        local = batch.map_from_parent_nid(
            i - batch.num_layers, layer.parent_nid.flip(0), remap_local=True
        )
        assert local.tolist() == list(range(layer.num_nodes))[::-1]
    for i, flow in enumerate(batch.flows):
        assert torch.equal(batch.map_to_parent_eid(batch.flows(i)), flow.parent_eid)


@given(node_flows(parents=True))
def test_missing_nodes_raise_or_give_minus_one(batch):
    every = list(range(batch.parent.num_nodes))
    for i, layer in enumerate(batch.layers):
        held = layer.parent_nid.tolist()
        start = sum(batch.layer_sizes[:i])
        local = [held.index(v) if v in held else -1 for v in every]
        found = batch.map_from_parent_nid(i, every, allow_missing=True)
        assert found.tolist() == [row + start if row >= 0 else -1 for row in local]
        assert (
            batch.map_from_parent_nid(i, every, remap_local=True, allow_missing=True).tolist()
            == local
        )
        missing = [v for v in every if v not in held]
        if missing:
            with pytest.raises(
                KeyError,
                match=rf"parent node {missing[0]} \(parent_nid\[\d+\]\) is not in layer {i}",
            ):
                batch.map_from_parent_nid(i, every)


def test_maps_of_layers_and_flows_without_parents(mixed):
    assert mixed.map_to_parent_nid([4, 0, 1]).tolist() == [5, 7, 5]
    with pytest.raises(
        ValueError, match=r"nid\[1\] is 3, which is in a layer made without parent ids"
    ):
        mixed.map_to_parent_nid([0, 3])
    assert mixed.map_to_parent_eid([0, 1, 4]).tolist() == [8, -1, 3]
    with pytest.raises(
        ValueError, match=r"eid\[0\] is 2, which is in a flow made without parent ids"
    ):
        mixed.map_to_parent_eid([2])
    assert mixed.map_from_parent_nid(0, [10**15, 5], allow_missing=True).tolist() == [-1, 1]
    with pytest.raises(ValueError, match="no parent nodes"):
        mixed.map_from_parent_nid(1, [5])
    assert create_node_flow([], [[4]]).map_to_parent_eid([]).tolist() == []


def test_rows_of_a_layer(batch, mixed):
    assert batch.front.parent_nid.tolist() == [1, 2, 0, 4]
    for ids in (
        [4, 5, 1],
        torch.tensor([4, 5, 1]),
        np.array([4, 5, 1], np.int32),
        torch.tensor([4, 5, 1]).int(),
    ):
        assert batch.front.rows_of(ids).tolist() == [3, -1, 0]
    assert batch.front.rows_of([]).tolist() == []
    assert FullSampler(batch.parent, 1)([]).front.rows_of([-1, 3]).tolist() == [-1, -1]
    for bad in ([1.0], torch.ones(2), torch.tensor([True]), 3):
        with pytest.raises(TypeError, match="parent_nid must"):
            batch.front.rows_of(bad)
    with pytest.raises(ValueError, match="no parent nodes"):
        mixed.layers[1].rows_of([1])


# ---- from the parent


def columns_of(batch: NodeFlow) -> tuple[list[list[str]], list[list[str]]]:
    return [sorted(frame) for frame in batch.ldata], [
        sorted(batch.fdata[pair]) for pair in batch.flows.pairs()
    ]


@given(node_flows(parents=True, columns=False), st.data())
def test_copied_rows_are_those_of_the_parent_ids(batch, data):
    graph = batch.parent
    graph.ndata["x"] = torch.arange(3.0 * graph.num_nodes).view(-1, 3)
    graph.ndata["s"] = scipy.sparse.csr_matrix(np.arange(2.0 * graph.num_nodes).reshape(-1, 2))
    graph.edata["w"] = torch.arange(1.0, graph.num_edges + 1)
    batch.copy_from_parent()
    for layer in batch.layers:
        assert torch.equal(layer.data["x"], graph.ndata["x"][layer.parent_nid])
        assert torch.equal(
            layer.data["s"].to_dense(), graph.ndata["s"].to_dense()[layer.parent_nid]
        )
    for flow in batch.flows:
        expected = [graph.edata["w"][e].item() if e >= 0 else 0.0 for e in flow.parent_eid.tolist()]
        assert flow.data["w"].tolist() == expected


@pytest.mark.parametrize(
    ("nodes", "edges", "expected"),
    [
        (None, None, ([[], [], []], [[], []])),
        (["feat"], None, ([["feat"]] * 3, [[], []])),
        (("feat",), {}, ([["feat"]] * 3, [[], []])),
        ({0: ["feat"], -1: ["label"]}, {1: ["w"]}, ([["feat"], [], ["label"]], [[], ["w"]])),
        ({-3: ["label", "feat"]}, {(0, 1): ["w"]}, ([["feat", "label"], [], []], [["w"], []])),
        ([], {-1: []}, ([[], [], []], [[], []])),
    ],
)
def test_columns_are_chosen_per_layer_and_per_flow(batch, nodes, edges, expected):
    batch.parent.ndata["label"] = torch.arange(6)
    batch.copy_from_parent(nodes, edges)
    assert columns_of(batch) == expected


BAD_CHOICES = [
    (["nope"], None, KeyError, "no column 'nope'"),
    (["feat"], {0: ["w"], (0, 1): ["w"]}, ValueError, "edata names one layer or flow twice"),
]


@pytest.mark.parametrize(("nodes", "edges", "error", "words"), BAD_CHOICES)
def test_bad_choices_change_nothing(batch, nodes, edges, error, words):
    with pytest.raises(error, match=words):
        batch.copy_from_parent(nodes, edges)
    assert columns_of(batch) == ([[], [], []], [[], []])
    batch.copy_from_parent()
    before = {name: column.clone() for name, column in batch.parent.ndata.items()}
    batch.ldata[0]["feat"] = batch.ldata[0]["feat"] + 1
    with pytest.raises(error, match=words):
        batch.copy_to_parent(nodes, edges)
    assert list(batch.parent.ndata) == list(before)
    assert all(torch.equal(batch.parent.ndata[name], before[name]) for name in before)


def test_pooled_layers_take_part_only_when_named(mixed):
    src = torch.zeros(9, dtype=torch.int64)
    dst = torch.zeros(9, dtype=torch.int64)
    src[3] = dst[3] = 5
    graph = Graph.from_edges(
        src, dst, num_nodes=9, ndata={"x": torch.arange(9.0)}, edata={"w": torch.arange(9.0)}
    )
    batch = mixed.with_parent(graph)
    batch.copy_from_parent()
    assert [list(frame) for frame in batch.ldata] == [["x"], [], ["x"]]
    assert (
        batch.fdata[0]["w"].tolist(),
        list(batch.fdata[1]),
        batch.fdata[0, 2]["w"].tolist(),
    ) == ([8, 0], [], [3])
    with pytest.raises(ValueError, match="this layer has no parent nodes"):
        batch.copy_from_parent({1: ["x"]})
    with pytest.raises(ValueError, match="this flow has no parent edges"):
        batch.copy_from_parent(None, {1: ["w"]})
    batch.ldata[1]["pooled"] = torch.ones(2)
    batch.fdata[1]["pooled"] = torch.ones(2)
    batch.copy_to_parent()
    assert "pooled" not in graph.ndata
    assert "pooled" not in graph.edata


def test_added_self_loops_read_zeros_even_where_no_edge_is():
    graph = Graph.from_edges([], [], num_nodes=2, edata={"w": torch.ones(0, 3)})
    batch = create_full_node_flow(graph, 1, add_self_loop=True)
    batch.copy_from_parent()
    assert torch.equal(batch.fdata[0]["w"], torch.zeros(2, 3))
    batch.copy_to_parent()
    sparse = Graph.from_edges([0], [1], edata={"w": scipy.sparse.eye(1, format="csr")})
    looped = create_full_node_flow(sparse, 1, add_self_loop=True)
    with pytest.raises(ValueError, match="column 'w' is sparse; only dense columns"):
        looped.copy_from_parent()
    create_full_node_flow(sparse, 1).copy_from_parent()


# ---- to the parent


def test_the_layer_nearest_to_the_seeds_stays(batch):
    graph = batch.parent
    for i in range(3):
        batch.ldata[i]["h"] = torch.full((batch.layer_sizes[i],), float(i))
    batch.copy_to_parent(["h"])
    # 4 is in layer 0 only, 0 in layers 0 and 1, the seeds 1 and 2 in all, 3 and 5 nowhere
    assert graph.ndata["h"].tolist() == [1, 2, 2, 0, 0, 0]
    batch.copy_to_parent({-1: ["h"], 0: ["h"]})  # the order of the choice plays no part
    assert graph.ndata["h"].tolist() == [0, 2, 2, 0, 0, 0]
    batch.copy_to_parent({1: ["h"]})
    assert graph.ndata["h"].tolist() == [1, 1, 1, 0, 0, 0]


@given(node_flows(parents=True, columns=False))
def test_rows_written_agree_with_a_loop(batch):
    graph = batch.parent
    nodes = torch.full((graph.num_nodes,), -1.0)
    edges = torch.full((graph.num_edges,), -1.0)
    graph.ndata["h"] = nodes.clone()
    graph.edata["e"] = edges.clone()
    value = 0.0
    for i, layer in enumerate(batch.layers):
        layer.data["h"] = torch.arange(layer.num_nodes) + value
        for row, v in enumerate(layer.parent_nid.tolist()):
            nodes[v] = value + row
        value += layer.num_nodes
        if i < batch.num_flows:
            flow = batch.flows[i]
            flow.data["e"] = torch.arange(flow.num_edges) + value
            for row, e in enumerate(flow.parent_eid.tolist()):
                if e >= 0:
                    edges[e] = value + row
            value += flow.num_edges
    batch.copy_to_parent()
    assert torch.equal(graph.ndata["h"], nodes)
    assert torch.equal(graph.edata["e"], edges)


def test_flows_that_skip_layers_are_written_last(graph):
    flow = flow_from_edges([0], [0], num_src=1, num_dst=1, parent_eid=[4])
    batch = create_node_flow({(0, 1): flow, (1, 2): flow, (0, 2): flow}, [[2]] * 3, parent=graph)
    for number, pair in enumerate([(0, 1), (1, 2), (0, 2)]):
        batch.fdata[pair]["w"] = torch.tensor([10.0 + number])
    batch.copy_to_parent()
    assert graph.edata["w"][4] == 12
    batch.copy_to_parent(None, {(0, 2): ["w"], 0: ["w"]})
    assert graph.edata["w"][4] == 12
    batch.copy_to_parent(None, {1: ["w"], 0: ["w"]})
    assert graph.edata["w"].tolist() == [0, 1, 2, 3, 11, 5, 6]


def test_an_edge_drawn_repeatedly_keeps_its_last_row():
    graph = Graph.from_edges([0, 1], [1, 1])
    batch = NeighborSampler(graph, [4_000], replace=True)([1])
    batch.fdata[0]["e"] = torch.arange(4_000.0)
    batch.copy_to_parent()
    eid = batch.flows[0].parent_eid
    assert graph.edata["e"].tolist() == [int((eid == e).nonzero().max()) for e in (0, 1)]


def test_columns_are_written_in_place_and_made_where_missing(batch):
    graph = batch.parent
    feat = graph.ndata["feat"]
    before = feat.clone()
    batch.ldata[-1]["feat"] = torch.full((2, 2), -1.0, requires_grad=True) * 2
    batch.ldata[-1]["new"] = torch.ones(2, 3, dtype=torch.float64)
    batch.copy_to_parent({-1: ["feat", "new"]})
    assert graph.ndata["feat"] is feat
    assert not feat.requires_grad
    before[1:3] = -2
    assert torch.equal(feat, before)
    assert graph.ndata["new"].dtype == torch.float64
    assert graph.ndata["new"].tolist() == [[0] * 3, [1] * 3, [1] * 3, [0] * 3, [0] * 3, [0] * 3]
    assert not graph.ndata["new"].requires_grad


def test_a_parameter_of_the_parent_is_written_without_gradient(batch):
    weight = torch.nn.Parameter(torch.zeros(6, 1))
    batch.parent.ndata["p"] = weight
    batch.ldata[-1]["p"] = torch.ones(2, 1)
    batch.copy_to_parent({-1: ["p"]})
    assert weight.requires_grad
    assert weight.grad_fn is None
    assert weight.flatten().tolist() == [0, 1, 1, 0, 0, 0]


def test_a_column_that_is_the_parents_own_can_be_written_back(graph):
    batch = create_full_node_flow(graph, 1)
    batch.ldata[0]["feat"] = graph.ndata["feat"]
    batch.ldata[1]["feat"] = graph.ndata["feat"].flip(0)
    batch.copy_to_parent()
    assert torch.equal(graph.ndata["feat"], torch.arange(12.0).view(6, 2).flip(0))
    batch.ldata[0]["h"] = graph.ndata["feat"][:]
    batch.copy_to_parent({0: ["h"]})
    assert torch.equal(graph.ndata["h"], graph.ndata["feat"])


@pytest.mark.parametrize(
    ("column", "rows", "words"),
    [
        (
            torch.zeros(6, 3),
            torch.ones(2, 2),
            r"rows of shape \(3,\) and torch.float32, the batch has \(2,\)",
        ),
        (
            torch.zeros(6, 2, dtype=torch.float64),
            torch.ones(2, 2),
            "torch.float64, the batch has .* torch.float32",
        ),
        (torch.zeros(6), torch.ones(2, 2), r"rows of shape \(\)"),
        (
            scipy.sparse.eye(6, format="csr", dtype=np.float32),
            torch.ones(2, 6),
            "column 'bad' is sparse",
        ),
        (
            torch.zeros(6, 2),
            scipy.sparse.eye(2, format="csr", dtype=np.float32),
            "column 'bad' is sparse",
        ),
        (torch.zeros(1, 2).expand(6, 2), torch.ones(2, 2), "rows that share memory .*clone"),
    ],
)
def test_writes_that_fail_leave_the_parent_as_it_was(batch, column, rows, words):
    graph = batch.parent
    graph.ndata["bad"] = column
    before = {name: c.to_dense().clone() for name, c in graph.ndata.items()}
    batch.ldata[-1].update({"feat": torch.ones(2, 2), "new": torch.ones(2), "bad": rows})
    with pytest.raises(ValueError, match=words):
        batch.copy_to_parent()
    assert list(graph.ndata) == list(before)
    assert all(torch.equal(graph.ndata[name].to_dense(), before[name]) for name in before)


def test_layers_that_disagree_on_a_new_column_write_nothing(batch):
    batch.ldata[0]["new"] = torch.ones(4)
    batch.ldata[1]["new"] = torch.ones(3, 2)
    batch.fdata[0]["w"] = torch.full((6,), 9.0)
    with pytest.raises(ValueError, match="column 'new'"):
        batch.copy_to_parent()
    assert "new" not in batch.parent.ndata
    assert batch.parent.edata["w"].tolist() == list(range(7))


# ---- attaching a parent


@given(node_flows(parents=False), st.integers(0, 30))
def test_with_parent_takes_only_graphs_that_have_the_ids(batch, num_nodes):
    assume(not any(batch.flows[pair].has_parent for pair in batch.flows.pairs()))
    graph = Graph.from_edges([], [], num_nodes=num_nodes)
    if all(
        int(layer.parent_nid.max()) < num_nodes
        for layer in batch.layers
        if layer.has_parent and len(layer)
    ):
        attached = batch.with_parent(graph)
        assert attached.parent is graph
        assert attached.with_parent(None).parent is None
        attached.validate()
    else:
        with pytest.raises(
            IndexError,
            match=r"layers\[\d\]\.parent_nid\[\d\] is \d+, but (node ids go|there is no node)",
        ):
            batch.with_parent(graph)
    assert batch.parent is None


def test_with_parent_looks_at_edges_and_types(mixed):
    with pytest.raises(
        IndexError, match=r"flows\[0, 1\]\.parent_eid\[0\] is 8, but edge ids go from -1 to 0"
    ):
        mixed.with_parent(Graph.from_edges([0], [0], num_nodes=9))
    with pytest.raises(TypeError, match=r"graph must be a nodeflow\.Graph, got int 3"):
        mixed.with_parent(3)


def test_names_of_the_frames_that_every_loop_reads():
    graph = Graph.from_edges(
        [0, 1], [1, 2], ndata={"x": torch.arange(3.0)}, edata={"w": torch.ones(2)}
    )
    batch = NeighborSampler(graph, [1])([2])
    batch.copy_from_parent({0: ["x"]})
    assert (list(batch.inputs), list(batch.outputs), list(batch.fdata[0])) == (["x"], [], [])
    batch.copy_from_parent(edata=["w"])
    assert (list(batch.outputs), list(batch.fdata[0])) == ([], ["w"])
    batch.copy_from_parent()
    assert batch.outputs["x"].tolist() == [2.0]
    assert batch.inputs is batch.ldata[0]
