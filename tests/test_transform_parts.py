"""Parts of graphs, new orders and random splits, against networkx and lists of edges in Python."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from _support.graphs import ends_of
from _support.sampler_reference import chi_square
from _support.strategies import masks
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.convert import to_networkx
from nodeflow.testing import graphs
from nodeflow.transform import (
    add_reverse_edges,
    edge_norm,
    filter_edges,
    random_split,
    reorder,
    subgraph,
)

some_graphs = graphs(node_columns={"x": (2,)}, edge_columns={"w": (), "f": (3,)})


def check_columns(part: Graph, graph: Graph, nodes: list[int], edges: list[int]) -> None:
    assert torch.equal(part.ndata["x"], graph.ndata["x"][nodes])
    assert all(torch.equal(part.edata[name], graph.edata[name][edges]) for name in ("w", "f"))


@given(some_graphs, st.data())
def test_subgraphs_have_all_edges_among_their_nodes(graph, data):
    everything = list(range(graph.num_nodes))
    nodes = data.draw(st.permutations(everything))[: data.draw(st.integers(0, graph.num_nodes))]
    part = subgraph(graph, nodes)
    kept = [e for e, (u, v) in enumerate(ends_of(graph)) if u in nodes and v in nodes]
    assert part.ndata["parent_nid"].tolist() == nodes
    assert part.edata["parent_eid"].tolist() == kept
    assert [(nodes[u], nodes[v]) for u, v in ends_of(part)] == [ends_of(graph)[e] for e in kept]
    check_columns(part, graph, nodes, kept)
    reference = networkx.relabel_nodes(
        to_networkx(graph).subgraph(nodes), {v: i for i, v in enumerate(nodes)}
    )
    assert Counter(reference.edges()) == Counter(ends_of(part))
    assert "parent_nid" not in graph.ndata


@given(some_graphs, st.data())
def test_subgraphs_of_subgraphs_map_back_step_by_step(graph, data):
    nodes = data.draw(st.permutations(range(graph.num_nodes)))
    one = subgraph(graph, nodes[: len(nodes) // 2 + 1])
    two = subgraph(one, range(one.num_nodes)[::-1])
    back = one.ndata["parent_nid"][two.ndata["parent_nid"]]
    assert torch.equal(graph.ndata["x"][back], two.ndata["x"])


@given(some_graphs, st.data())
def test_filtered_graphs_keep_nodes_and_the_order_of_edges(graph, data):
    array = data.draw(masks(graph))
    kept = np.flatnonzero(array).tolist()
    graph.edata["keep"] = torch.from_numpy(array)
    for given_mask in (array, torch.from_numpy(array), "keep", lambda edata: edata["keep"]):
        part = filter_edges(graph, given_mask)
        assert ends_of(part) == [ends_of(graph)[e] for e in kept]
        assert part.edata["parent_eid"].tolist() == kept
        assert part.num_nodes == graph.num_nodes
        check_columns(part, graph, list(range(graph.num_nodes)), kept)


@given(some_graphs, st.data())
def test_reordered_graphs_are_the_same_but_for_names(graph, data):
    order = data.draw(st.permutations(range(graph.num_nodes)))
    made = reorder(graph, order)
    assert [(order[u], order[v]) for u, v in ends_of(made)] == ends_of(graph)
    assert made.ndata["parent_nid"].tolist() == list(order)
    check_columns(made, graph, list(order), list(range(graph.num_edges)))
    back = reorder(made, np.argsort(order))
    assert ends_of(back) == ends_of(graph)
    if graph.num_nodes:
        shape = [graph.num_nodes] * 2
        counts, moved = (
            scipy.sparse.coo_array(
                (np.ones(g.num_edges), np.array(ends_of(g), np.int64).reshape(-1, 2).T), shape
            )
            for g in (graph, made)
        )
        assert np.array_equal(counts.toarray()[np.ix_(order, order)], moved.toarray())


def test_sparse_columns_go_with_their_rows():
    eye = scipy.sparse.eye_array(3, format="csr")
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], ndata={"x": eye}, edata={"s": eye})
    part = subgraph(graph, [2, 0])
    assert part.ndata["x"].to_dense().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert part.edata["s"].to_dense().tolist() == [[0, 0, 1]]


# ------------------------------------------------------------------------------------------------------
# random splits


def two_ways(num_pairs: int) -> Graph:
    return add_reverse_edges(
        Graph.from_edges(range(0, 2 * num_pairs, 2), range(1, 2 * num_pairs, 2))
    )


@given(some_graphs, st.integers(0, 50), st.sampled_from(["nodes", "edges"]), st.data())
def test_splits_are_disjoint_and_of_the_sizes_asked_for(graph, seed, of, data):
    total = graph.num_nodes if of == "nodes" else graph.num_edges
    among = data.draw(
        st.none() | st.permutations(range(total)).map(lambda ids: list(ids)[: len(ids) // 2 + 1])
    )
    ids = list(range(total)) if among is None else sorted(among)
    item = {i: i if of == "nodes" else frozenset(ends_of(graph)[i]) for i in ids}
    count = len(set(item.values()))
    counts = [count // 2, count - count // 2]
    choices: list[dict[str, Any]] = [
        {"fractions": [0.5, 0.0, 0.5]},
        {"fractions": [0.8, 0.1, 0.1]},
        {"fractions": [1]},
    ]
    choices += [{"counts": counts}, {"counts": torch.tensor(counts)}, {"counts": [count // 2, -1]}]
    for choice in choices:
        parts, again = (
            random_split(graph, of=of, among=among, seed=seed, **choice) for _ in range(2)
        )
        assert all(torch.equal(a, b) for a, b in zip(parts, again, strict=True))
        assert all(
            part.dtype == torch.int64 and part.tolist() == sorted(part.tolist()) for part in parts
        )
        joint = sorted(i for part in parts for i in part.tolist())
        assert joint == ids
        split = [{item[i] for i in part.tolist()} for part in parts]
        assert sum(map(len, split)) == len(set().union(*split))  # no pair of nodes is in two parts
        if "counts" in choice:
            assert [len(part) for part in split] == counts
        else:
            assert all(
                abs(len(part) - f * count) < 1
                for part, f in zip(split, choice["fractions"], strict=True)
            )


def test_both_ways_of_an_edge_fall_into_one_part():
    graph = two_ways(100)
    train, test = random_split(graph, counts=[80, 20], of="edges", seed=3)
    assert (len(train), len(test)) == (160, 40)
    assert set((train % 100).tolist()).isdisjoint((test % 100).tolist())
    assert random_split(graph, counts=[80, -1], of="edges", seed=4)[0].tolist() != train.tolist()


@pytest.mark.parametrize("of", ["nodes", "edges"])
def test_every_split_is_equally_likely(of):
    """Chi-squared over the 24 orders of 4 items; the bound is passed by chance once in a
    million.
    """
    graph = two_ways(4) if of == "edges" else Graph([0] * 5, [])
    draws = 2400
    found = Counter(
        tuple(int(part[0]) % 4 for part in random_split(graph, counts=[1] * 4, of=of, seed=seed))
        for seed in range(draws)
    )
    assert set(found) == set(permutations(range(4)))
    assert chi_square(np.array(list(found.values()))) < 1


def test_an_empty_graph_has_empty_parts():
    empty = Graph([0], [])
    nothing = np.zeros(0, np.bool_)
    for graph in (subgraph(empty, []), reorder(empty, []), filter_edges(empty, nothing)):
        assert graph.num_nodes == 0
    for of in ("nodes", "edges"):
        assert [part.tolist() for part in random_split(empty, [1.0], of=of)] == [[]]
    assert edge_norm(empty).shape == (0,)
