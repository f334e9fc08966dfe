"""Samplers of ``nodeflow.compat.dgl``: what is drawn, in which order, and what the draws depend
on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from _support.old_nodeflow import edge_lists, graph_of
from _support.sampler_reference import chi_square
from hypothesis import given, strategies as st

import nodeflow.compat.dgl as dgl
from nodeflow.compat.dgl import DGLGraph
from nodeflow.compat.dgl.contrib.sampling import LayerSampler, NeighborSampler

DIRECTIONS = st.sampled_from(["in", "out"])


@pytest.fixture(autouse=True)
def first_seed() -> Iterator[None]:
    dgl.random.seed(0)
    yield
    dgl.random.seed(0)


def hub(degree: int = 6, hubs: int = 1) -> DGLGraph:
    """The nodes from ``hubs`` on all have an edge into each of the first."""
    return DGLGraph(
        [(hubs + i, v) for v in range(hubs) for i in range(degree)] + [(0, hubs)], readonly=True
    )


def parents(nf: dgl.NodeFlow) -> list[list[int]]:
    edges = [nf.block_parent_eid(i).tolist() for i in range(nf.num_blocks)]
    return [*(nf.layer_parent_nid(i).tolist() for i in range(nf.num_layers)), *edges]


@given(edges=edge_lists(), k=st.integers(1, 4), direction=DIRECTIONS, loops=st.booleans())
def test_drawn_neighbours_are_in_the_order_of_the_graph(edges, k, direction, loops):
    g = graph_of(edges)
    (nf,) = NeighborSampler(g, 99, k, 2, direction, add_self_loop=loops)
    end = edges.dst if direction == "in" else edges.src
    other = edges.src if direction == "in" else edges.dst
    for i in range(2):
        src, dst, _ = nf.block_edges(i)
        src = nf.map_to_parent_nid(src).tolist()
        eid = nf.block_parent_eid(i).tolist()
        at = nf.map_to_parent_nid(dst).tolist()
        assert nf.layer_parent_nid(i).tolist() == sorted(set(src))
        for node in nf.layer_parent_nid(i + 1).tolist():
            mine = [(u, e) for u, v, e in zip(src, at, eid, strict=True) if v == node]
            degree = end.count(node)
            own = [e for e in range(len(end)) if end[e] == node == other[e]]
            added = len(mine) - min(k, degree)
            drawn = mine[: len(mine) - added]
            assert [u for u, _ in drawn] == [other[e] for _, e in drawn]
            assert [e for _, e in drawn] == sorted({e for _, e in drawn})
            without = all(u != node for u, _ in drawn)
            assert added == int(loops and without)
            if added:
                assert mine[-1] == (node, own[0] if own else -1)


def test_the_first_of_several_self_loops_is_added():
    g = DGLGraph([*((v, 0) for v in range(1, 30)), (0, 0), (0, 0)], readonly=True)
    loops = [
        nf.block_parent_eid(0).tolist()[1:]
        for nf in NeighborSampler(g, 1, 1, seed_nodes=[0] * 40, add_self_loop=True)
    ]
    assert [29] in loops
    assert {tuple(added) for added in loops} <= {(29,), ()}  # none where a loop was drawn


@pytest.mark.parametrize(
    ("kind", "size", "drawn"), [(NeighborSampler, 2, 2), (LayerSampler, [1], 1)]
)
def test_draws_are_uniform(kind, size, drawn):
    sampler = kind(hub(degree=5), 1, size, seed_nodes=[0])
    counts = np.zeros(5)
    for _ in range(500):
        (nf,) = sampler
        counts[nf.block_parent_eid(0)] += 1
    # fails with at most that probability over the seed
    assert chi_square(counts, np.full(5, 100.0 * drawn)) > 1e-6


def test_draws_are_fresh_and_depend_on_the_seed_only():
    g = hub(degree=40, hubs=30)
    options = {
        "batch_size": 4,
        "expand_factor": 3,
        "num_hops": 2,
        "seed_nodes": torch.arange(30),
        "shuffle": True,
    }

    def draws(**more: object) -> list[list[list[int]]]:
        return [parents(nf) for nf in NeighborSampler(g, **{**options, **more})]

    first = draws()
    second = draws()
    assert first != second  # every object draws on its own, and has its own order
    for more in ({"num_workers": 4}, {"num_workers": 32, "prefetch": True}, {"prefetch": True}):
        dgl.random.seed(0)
        assert draws(**more) == first
        assert draws(**more) == second
    dgl.random.seed(1)
    assert draws() != first
    sampler = NeighborSampler(g, **options)
    one, two = ([parents(nf) for nf in sampler] for _ in range(2))
    # the order is that of the object
    assert [batch[2] for batch in one] == [batch[2] for batch in two]
    assert one != two
    state = torch.get_rng_state()
    list(sampler)
    assert torch.equal(torch.get_rng_state(), state)


def test_equal_batches_of_one_iteration_draw_on_their_own():
    g = hub(degree=50)
    drawn = {
        tuple(nf.block_parent_eid(0).tolist())
        for nf in NeighborSampler(g, 1, 3, seed_nodes=[0] * 8)
    }
    assert len(drawn) == 8  # of 19,600 triples; a repeat has a probability below 0.002


def test_seeds():
    g = hub()
    assert [parents(nf)[1] for nf in NeighborSampler(g, 3, 1)] == [[0, 1, 2], [3, 4, 5], [6]]
    (nf,) = NeighborSampler(g, 5, 1, seed_nodes=np.array([4, 0, 4, 2]))
    assert parents(nf)[1] == [4, 0, 2]
    assert list(NeighborSampler(g, 5, 1, seed_nodes=[])) == []
    shuffled = NeighborSampler(g, 7, 1, shuffle=True)
    assert sorted(shuffled.seed_nodes.tolist()) == list(range(7))
    assert (shuffled.g, shuffled.batch_size) == (g, 7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transition_probabilities(dtype):
    g = DGLGraph([(4, 0), (3, 0), (2, 0), (1, 0), (0, 1), (2, 1)], readonly=True)
    w = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.0, 1.0], dtype=dtype)
    g.edata["w"] = w
    for prob in ("w", w):
        for _ in range(20):
            (nf,) = NeighborSampler(g, 2, 2, transition_prob=prob, seed_nodes=[0, 1])
            eid = nf.block_parent_eid(0).tolist()
            assert (sorted(eid), len(eid)) == (eid, 3)
            assert not {1, 4} & set(eid)
            src = nf.map_to_parent_nid(nf.block_edges(0)[0])
            # neighbour and edge belong together
            assert src.tolist() == [[4, 3, 2, 1, 0, 2][e] for e in eid]
            nf.copy_from_parent(None, [["w"]])
            assert torch.equal(nf.blocks[0].data["w"], w[eid])
    sampler = NeighborSampler(g, 1, 1, transition_prob="w", seed_nodes=[1])
    assert [nf.block_parent_eid(0).tolist() for nf in sampler] == [[5]]
    g.edata["w"] = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0], dtype=dtype)
    # read when the iteration begins
    assert [nf.block_parent_eid(0).tolist() for nf in sampler] == [[4]]


@given(
    edges=edge_lists(),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    direction=DIRECTIONS,
)
def test_layers(edges, sizes, direction):
    g = graph_of(edges)
    near, far = (edges.src, edges.dst) if direction == "in" else (edges.dst, edges.src)
    (nf,) = LayerSampler(g, 99, sizes, direction)
    assert nf.layer_parent_nid(-1).tolist() == list(range(edges.num_nodes))
    for i, size in enumerate(sizes):
        layer, after = (nf.layer_parent_nid(k).tolist() for k in (i, i + 1))
        candidates = {near[e] for e in range(len(near)) if far[e] in after}
        assert layer == sorted(set(layer) & candidates)
        assert min(1, len(candidates)) <= len(layer) <= min(size, len(candidates))
        expected = [
            (u, v, e)
            for v in after
            for u, e in sorted((near[e], e) for e in range(len(near)) if far[e] == v)
            if u in layer
        ]
        src, dst, _ = nf.block_edges(i)
        ends = (nf.map_to_parent_nid(x).tolist() for x in (src, dst))
        assert list(zip(*ends, nf.block_parent_eid(i).tolist(), strict=True)) == expected
