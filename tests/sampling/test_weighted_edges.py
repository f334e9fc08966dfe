"""NeighborSampler with ``prob`` at its edges: hard weights, points at the ends, structure, options,
what it refuses.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.sampler_reference import fingerprint, picked_positions, random_graph
from _support.weighted_reference import crowd, line
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, NeighborSampler
from nodeflow._kernels.draw.systematic import lay_out, left_over

# ---- arithmetic at its edges

HARD = [
    0.0,
    1.0,
    1.0,
    2.0,
    0.1,
    0.2,
    1 / 3,
    1e-3,
    1e-17,
    1e-30,
    1e-45,
    1e17,
    1e30,
    np.float32(1e-42),
    5.0,
]


@given(
    st.lists(st.sampled_from(HARD), min_size=1, max_size=40),
    st.integers(1, 41),
    st.booleans(),
    st.booleans(),
)
def test_hard_weights(weights, k, replace, narrow):
    """Whatever rounding does: the right number of edges, none twice, none of weight 0, finite
    weights of at least 1.
    """
    graph = crowd(weights, 3, np.float32 if narrow else np.float64)
    column = graph.edata["w"][: len(weights)]
    possible = int((column > 0).sum())
    batch = NeighborSampler(graph, [k], prob="w", replace=replace)([0, 1, 2])
    flow = batch.flows[0]
    size = (k if possible else 0) if replace else min(k, possible)
    assert flow.in_degrees.tolist() == [size] * 3
    assert (graph.edata["w"][flow.parent_eid] > 0).all()
    if not replace:
        assert all(len(set(picked)) == size for picked in picked_positions(batch))
        assert (flow.weight >= 1).all()


@pytest.mark.parametrize("count", [2, 3, 7, 10, 99, 1000])
def test_all_but_one_of_equal_weights(count):
    """c w is just below 1 for all, and k times the largest weight is within rounding of the sum."""
    for value in (0.1, 1.0, 1 / 3, 1e-20):
        for dtype in (np.float32, np.float64):
            graph = crowd([value] * (count + 1), 4, dtype)
            batch = NeighborSampler(graph, [count], prob="w")(range(4))
            assert all(len(set(picked)) == count for picked in picked_positions(batch))
            np.testing.assert_allclose(
                batch.flows[0].weight.numpy(), (count + 1) / count, rtol=1e-6
            )
            batch = NeighborSampler(graph, [count + 1], prob="w")(range(4))
            assert picked_positions(batch) == [
                list(range(v * (count + 1), (v + 1) * (count + 1))) for v in range(4)
            ]
            assert (batch.flows[0].weight == 1).all()


def test_powers_of_two_are_certain_one_after_the_other():
    graph = crowd([2.0**-i for i in range(60)] * 2, 1, np.float64)
    picked = picked_positions(NeighborSampler(graph, [30], prob="w")([0]))[0]
    assert len(set(picked)) == 30
    assert {0, 1, 2, 3, 60, 61, 62, 63} <= set(picked)


@pytest.mark.parametrize("size", range(1, 40))
def test_edges_lie_one_after_another(size):
    """Sums made in fours never descend, and leave no room for edges of weight 0 and for certain
    ones.
    """
    weights = np.random.default_rng(size).random(size).astype(np.float32) * (
        np.arange(size) % 3 > 0
    )
    ends = np.full(size + 8, -1.0)
    sure = lay_out(weights, np.uint64(0), np.uint64(size), 0.8, ends)
    lengths = np.where(weights < 0.8, weights, 0)
    assert sure == (weights >= 0.8).sum()
    assert ends[:size].tolist() == line(lengths.tolist())
    np.testing.assert_allclose(ends[:size], np.cumsum(lengths, dtype=np.float64), rtol=1e-14)
    assert ((np.diff(ends[:size], prepend=0) > 0) == (lengths > 0)).all()
    assert (ends[size : size // 8 * 8 + 8] == np.inf).all()


def test_no_edge_is_taken_twice_where_rounding_has_used_up_the_line():
    weights = np.array([1, 2, 0, 3, 0, 0], np.float32)
    first = np.uint64(0)
    size = np.uint64(6)
    assert left_over(weights, first, size, np.array([7, 3, 1]), 1, 1) == 3
    assert left_over(weights, first, size, np.array([7, 3, 1]), 1, 2) == 1
    assert left_over(weights, first, size, np.array([7, 3, 1]), 1, 3) == 0


# ---- structure and options


def test_zero_weights_are_no_neighbours():
    graph = Graph.from_edges(
        [1, 2, 3, 1, 2], [0, 0, 0, 4, 4], edata={"w": torch.tensor([0.0, 2.0, 1.0, 0.0, -0.0])}
    )
    for fanout in (-1, 2, 5):
        batch = NeighborSampler(graph, [fanout], prob="w")([0, 4, 1])
        assert picked_positions(batch) == [[1, 2], [], []]
        assert batch.flows[0].weight.tolist() == [1, 1]
    batch = NeighborSampler(graph, [4], prob="w", replace=True)([0, 4, 1])
    assert batch.flows[0].in_degrees.tolist() == [4, 0, 0]
    assert NeighborSampler(graph, [2], prob="w").estimand().tolist() == [0, 1, 1, 0, 0]


def test_equal_weights_and_full_fanout_are_the_full_neighbourhood():
    graph = random_graph(5)
    graph.edata["w"] = torch.full((200,), 0.5)
    full = fingerprint(FullSampler(graph, 2)([1, 2]))
    assert fingerprint(NeighborSampler(graph, [-1, -1], prob="w")([1, 2])) == full
    assert fingerprint(NeighborSampler(graph, [2**62, 10**6], prob="w")([1, 2])) == full


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool]
)
def test_other_types_of_columns(dtype):
    graph = random_graph(6)
    whole = torch.arange(200) % 2 if dtype == torch.bool else torch.arange(200) % 5
    graph.edata["w"] = whole.to(dtype)
    graph.edata["v"] = whole.double()
    batches = [NeighborSampler(graph, [2, 3], prob=name)(range(9)) for name in "wv"]
    assert fingerprint(batches[0]) == fingerprint(batches[1])


def test_a_column_that_is_a_view():
    graph = random_graph(6)
    both = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    graph.edata["w"] = both[:, 1]
    expected = fingerprint(NeighborSampler(graph, [2, 3], prob="w")(range(9)))
    graph.edata["w"] = both[:, 1].clone()
    assert fingerprint(NeighborSampler(graph, [2, 3], prob="w")(range(9))) == expected
