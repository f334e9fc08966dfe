"""New graphs from a graph, against lists of edges in Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse
import torch
from _support.graphs import ends_of
from _support.strategies import masks
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.testing import graphs
from nodeflow.transform import add_reverse_edges, add_self_loops, edge_norm, is_symmetric, reverse

some_graphs = graphs(node_columns={"x": (2,)}, edge_columns={"w": (), "f": (3,)})


def same_nodes(one: Graph, other: Graph) -> bool:
    return one.num_nodes == other.num_nodes and torch.equal(one.ndata["x"], other.ndata["x"])


@given(some_graphs)
def test_reverse_turns_every_edge_and_keeps_ids_and_columns(graph):
    turned = reverse(graph)
    assert ends_of(turned) == [(v, u) for u, v in ends_of(graph)]
    assert same_nodes(graph, turned)
    assert all(torch.equal(turned.edata[name], graph.edata[name]) for name in ("w", "f"))
    assert ends_of(reverse(turned)) == ends_of(graph)


@given(some_graphs)
def test_reverse_edges_come_after_the_graphs_own_with_their_rows(graph):
    both = add_reverse_edges(graph, mark="added")
    own = ends_of(graph)
    turned = [e for e, (u, v) in enumerate(own) if u != v]
    assert ends_of(both) == own + [own[e][::-1] for e in turned]
    assert same_nodes(graph, both)
    for name in ("w", "f"):
        assert torch.equal(
            both.edata[name], torch.cat([graph.edata[name], graph.edata[name][turned]])
        )
        assert both.edata[name].dtype == graph.edata[name].dtype
    assert both.edata["added"].tolist() == [0] * len(own) + [1] * len(turned)
    assert both.edata["added"].dtype == torch.int8
    assert is_symmetric(both)


@given(some_graphs)
def test_self_loops_come_after_the_graphs_own_edges_with_zeros(graph):
    looped = add_self_loops(graph, mark="added")
    assert ends_of(looped) == ends_of(graph) + [(v, v) for v in range(graph.num_nodes)]
    assert same_nodes(graph, looped)
    for name in ("w", "f"):
        assert torch.equal(looped.edata[name][: graph.num_edges], graph.edata[name])
        assert not looped.edata[name][graph.num_edges :].any()
    assert looped.edata["added"].tolist() == [0] * graph.num_edges + [1] * graph.num_nodes


@given(graphs(max_nodes=4, max_edges=8))
def test_symmetric_means_every_edge_has_its_reverse_as_often(graph):
    count = Counter(ends_of(graph))
    assert is_symmetric(graph) == all(count[v, u] == times for (u, v), times in count.items())


def test_sparse_columns_are_carried_along():
    rows = np.array([[0, 2.0], [0, 0], [3, 0]])
    columns = {"s": scipy.sparse.csr_array(rows)}
    graph = Graph.from_edges(
        [0, 1, 1], [1, 1, 0], num_nodes=2, ndata={"x": scipy.sparse.eye_array(2)}, edata=columns
    )
    both = add_reverse_edges(graph)
    looped = add_self_loops(graph)
    turned = reverse(graph)
    for changed in (both, looped, turned):
        assert changed.edata["s"].layout == torch.sparse_csr
        assert changed.edata["s"].dtype == torch.float64
        assert torch.equal(changed.ndata["x"].to_dense(), torch.eye(2, dtype=torch.float64))
    assert both.edata["s"].to_dense().tolist() == [*rows.tolist(), [0, 2], [3, 0]]
    assert looped.edata["s"].to_dense().tolist() == [*rows.tolist(), [0, 0], [0, 0]]
    assert turned.edata["s"].to_dense().tolist() == rows.tolist()


def test_the_graph_given_is_not_changed():
    graph = Graph.from_edges([0, 1], [1, 2], edata={"w": torch.tensor([1.0, 2.0])})
    for change in (reverse, add_reverse_edges, add_self_loops):
        change(graph)
        assert ends_of(graph) == [(0, 1), (1, 2)]
        assert graph.edata["w"].tolist() == [1, 2]
        assert list(graph.edata) == ["w"]


@given(some_graphs)
def test_edge_norms_are_entries_of_the_normalised_adjacency(graph):
    leaving = Counter(u for u, _ in ends_of(graph))
    entering = Counter(v for _, v in ends_of(graph))
    wanted = {
        "both": [1 / (leaving[u] * entering[v]) ** 0.5 for u, v in ends_of(graph)],
        "right": [1 / entering[v] for _, v in ends_of(graph)],
        "left": [1 / leaving[u] for u, _ in ends_of(graph)],
    }
    for norm, values in wanted.items():
        found = edge_norm(graph, norm)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, torch.tensor(values, dtype=torch.float32))
        # turned round, the graph has the same edge ids, and what is "in" there is "out" here
        assert torch.equal(edge_norm(graph.view("out"), norm), edge_norm(reverse(graph), norm))
    assert torch.equal(edge_norm(graph), edge_norm(graph, "both"))
    graph.edata["p"] = edge_norm(graph, "right")
    dst = graph.edges()[1]
    sums = torch.zeros(graph.num_nodes).index_add_(0, dst, graph.edata["p"])
    torch.testing.assert_close(sums, (graph.in_degrees() > 0).float())


def test_what_self_loops_have_in_edge_columns():
    columns = {"kind": torch.tensor([2, 1]), "w": torch.tensor([[0.5, 1.0], [2.0, 3.0]])}
    graph = Graph.from_edges([0, 1], [1, 0], edata=columns)
    made = add_self_loops(graph, edata={"kind": 7, "w": 1.5})
    assert made.edata["kind"].tolist() == [2, 1, 7, 7]
    assert made.edata["w"].tolist() == [[0.5, 1.0], [2.0, 3.0], [1.5, 1.5], [1.5, 1.5]]
    assert graph.edata["kind"].tolist() == [2, 1]


@given(some_graphs, st.data())
def test_filtered_edges_count_in_no_norm(graph, data):
    mask = torch.from_numpy(data.draw(masks(graph)))
    src, dst = graph.edges()
    rest = Graph.from_edges(src[mask], dst[mask], num_nodes=graph.num_nodes)
    for norm in ("both", "right", "left"):
        for direction in ("in", "out"):
            found = edge_norm(graph.view(direction, where=mask), norm)
            assert torch.equal(found[mask], edge_norm(rest.view(direction), norm))
            assert (found[~mask] == 0).all()
