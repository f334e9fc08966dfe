"""Which edges join two nodes, and which nodes an edge joins, against lists of edges in Python."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, strategies as st

from nodeflow import Graph

# few nodes, so that edges repeat and nodes have edges to themselves
edge_lists = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14)
    )
)


@given(edge_lists, st.randoms(use_true_random=False))
def test_edges_between_nodes(drawn, random):
    num_nodes, edges = drawn
    ids = random.sample(range(len(edges)), len(edges))
    src = [u for u, _ in edges]
    dst = [v for _, v in edges]
    joins = {
        (u, v): sorted(ids[i] for i, edge in enumerate(edges) if edge == (u, v)) for u, v in edges
    }
    pairs = [(u, v) for u in range(num_nodes) for v in range(num_nodes)] * 2
    random.shuffle(pairs)
    listed = Graph.from_edges(src, dst, num_nodes=num_nodes, edge_ids=ids)
    indptr, indices, edge_ids = listed.csc()
    in_places = Graph(indptr, indices)  # ids are positions
    for graph, found in ((listed, joins), (in_places, None)):
        if found is None:
            places = dict(enumerate(zip(*(end.tolist() for end in graph.edges()), strict=True)))
            found = {
                pair: [e for e, other in places.items() if other == pair]
                for pair in places.values()
            }
        u = [u for u, _ in pairs]
        v = [v for _, v in pairs]
        assert graph.has_edges(u, v).tolist() == [pair in found for pair in pairs]
        every = [(*pair, e) for pair in pairs for e in found.get(pair, [])]
        assert (
            list(zip(*(x.tolist() for x in graph.edge_ids(u, v, return_uv=True)), strict=True))
            == every
        )
        real = [pair for pair in pairs if pair in found]
        lowest = graph.edge_ids(
            [u for u, _ in real], torch.tensor([v for _, v in real], dtype=torch.int64)
        )
        assert lowest.tolist() == [found[pair][0] for pair in real]
        ends = graph.find_edges(lowest)
        assert list(zip(*(end.tolist() for end in ends), strict=True)) == real
        assert {x.dtype for x in (*ends, lowest)} == {torch.int64}
    assert edge_ids is not None
    assert np.array_equal(listed.stored_edge_ids, edge_ids)


@given(edge_lists, st.randoms(use_true_random=False))
def test_the_order_in_which_edges_are_listed_does_not_matter(drawn, random):
    num_nodes, edges = drawn
    src, dst = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    order = random.sample(range(len(edges)), len(edges))
    columns = {"w": torch.arange(len(edges))}
    one = Graph.from_edges(src, dst, num_nodes=num_nodes, edata=columns)
    other = Graph.from_edges(
        src[order], dst[order], num_nodes=num_nodes, edge_ids=order, edata=columns
    )
    for a, b in zip(one.csc(), other.csc(), strict=True):
        assert a is not None
        assert b is not None
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    assert all(torch.equal(a, b) for a, b in zip(one.edges(), other.edges(), strict=True))
    assert other.edata["w"].tolist() == list(range(len(edges)))


def test_nothing_is_asked_of_graphs_without_edges():
    for empty in (Graph([0], []), Graph.from_edges([], [], edge_ids=[])):
        assert empty.has_edges([], []).tolist() == empty.edge_ids([], []).tolist() == []
        assert [x.tolist() for x in empty.find_edges([])] == [[], []]
    lonely = Graph.from_edges([], [], num_nodes=2)
    assert lonely.has_edges([0, 1], [1, 1]).tolist() == [False, False]
    assert [x.tolist() for x in lonely.edge_ids([0], [1], return_uv=True)] == [[], [], []]
