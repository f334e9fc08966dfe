"""LaborSampler is what the reference says, in every mode, and takes its place among samplers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.labor_reference import Keys, assert_is_reference, hash32, keys_of
from _support.sampler_reference import fingerprint, random_graph, star
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import Graph, NodeFlowLoader
from nodeflow._kernels.draw.labor import hash_block
from nodeflow.sampling import LaborSampler
from nodeflow.testing import graphs, seeds as seed_lists

GRAPH = random_graph(0, 40, 400)


@st.composite
def cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1, max_nodes=7, max_edges=40))
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=3))
    run = {"epoch": draw(st.integers(0, 2**40)), "batch_number": draw(st.integers(-5, 2**40))}
    iterations = draw(st.sampled_from([0, 1, 2, "converged"]))
    include_dst = draw(st.booleans())
    options = {
        "iterations": iterations,
        "method": draw(st.sampled_from(["poisson", "sequential"])),
        "estimator": draw(st.sampled_from(["horvitz-thompson", "hajek"])),
        "layer_dependency": draw(st.booleans()),
        "batch_dependency": draw(st.sampled_from([1, 2, 3, None])),
        "direction": draw(st.sampled_from(["in", "out"])),
        "include_dst": include_dst,
        "reuse": include_dst and iterations == 0 and draw(st.booleans()),
        "seed": draw(st.integers(-(2**63), 2**63)),
    }
    return graph, fanouts, draw(seed_lists(graph)), options, run


@examples(80)
@given(cases())
def test_a_batch_is_what_the_reference_says(case):
    """Ids, order and weights, on multigraphs with self-loops; the order of edges is that of the
    graph.
    """
    graph, fanouts, seeds, options, run = case
    batch = viewed(LaborSampler, graph, fanouts, **options)(seeds, **run)
    assert_is_reference(batch, graph, fanouts, seeds, **options, **run)


@pytest.mark.parametrize("iterations", [0, 1, 2, "converged"])
@pytest.mark.parametrize("method", ["poisson", "sequential"])
def test_a_dense_batch_is_what_the_reference_says(iterations, method):
    options = {"iterations": iterations, "method": method, "seed": 5}
    for epoch in range(3):
        options["layer_dependency"] = epoch == 1
        batch = viewed(LaborSampler, GRAPH, [3, 4], **options)([7, 3, 7, 21], epoch=epoch)
        assert_is_reference(batch, GRAPH, [3, 4], [7, 3, 7, 21], epoch=epoch, **options)


@pytest.mark.parametrize("degree", [1, 63, 64, 65, 511, 512, 513, 640, 1030])
@pytest.mark.parametrize("method", ["poisson", "sequential"])
def test_degrees_around_the_size_of_a_block(degree, method):
    """Rows of several destinations, because what one leaves in a buffer must not reach the next."""
    rng = np.random.default_rng(degree)
    degrees = [degree, 3, degree, 70, degree]
    src = np.concatenate([rng.choice(2000, d, replace=False) for d in degrees]) + 5
    graph = Graph.from_edges(src, np.repeat(np.arange(5), degrees), num_nodes=2005)
    for fanout in (1, 2, 60, 600):
        batch = LaborSampler(graph, [fanout], method=method)(range(5))
        assert_is_reference(batch, graph, [fanout], list(range(5)), method=method)


@pytest.mark.slow
def test_wide_ids():
    """The high half of an id counts."""
    ids = np.array([0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40 + 7, 2**63 - 1])
    for early in (0, 2**31):
        found = np.empty(len(ids), np.uint32)
        hash_block(ids, np.array([5, 6, 7], np.uint64), np.uint32(early), found)
        assert found.tolist() == [Keys(5, 6, 7, early).bits32(t, 0) for t in ids.tolist()]
    assert len({hash32(9, t) for t in ids.tolist()}) == len(ids)


def test_a_large_graph_with_a_small_batch():
    """Where a table of all nodes would cost more than the batch, sources are numbered otherwise."""
    src, dst = (end.numpy() for end in GRAPH.edges())
    far = Graph.from_edges(src * 50_000, dst * 50_000, num_nodes=2_000_000)
    for options in ({"iterations": 1}, {"iterations": 2, "method": "sequential"}):
        batch = viewed(LaborSampler, far, [2, 3], **options)([100_000, 350_000])
        assert_is_reference(batch, far, [2, 3], [100_000, 350_000], **options)
    assert far.num_nodes < 2**31 - 1


# ---- corner cases


def test_sequential_draws_from_rows_whose_numbers_are_all_large():
    """The search for the smallest number first looks below 9 / degree, where one row in 12,000 has
    none.
    """
    hubs = 20_000
    degree = 100
    near = np.arange(hubs * degree).reshape(hubs, degree)
    graph = Graph(np.minimum(np.arange(near.size + 1), hubs) * degree, near.ravel())
    sampler = LaborSampler(
        graph, [1], method="sequential", layer_dependency=True, batch_dependency=None
    )
    key = keys_of(0, 0, 0, None, [], layer_dependency=True, batch_dependency=None).now
    number = np.empty(near.size, np.uint32)
    hash_block(near.ravel(), np.full(3, key, np.uint64), np.uint32(0), number)
    number = number.reshape(hubs, degree)
    assert (number.min(1) >= 0.09 * 2**32).any()
    picked = sampler(range(hubs)).flows[0].parent_eid.numpy()
    np.testing.assert_array_equal(picked, number.argmin(1) + np.arange(hubs) * degree)


def test_weights_are_those_of_the_integers_that_are_compared():
    """1 / 70,000 is no multiple of 2^-32; the next one, 61,357 of them, is the probability, by 5 in
    a million more.
    """
    sampler = LaborSampler(star(70_000), [1])
    weights = torch.cat([sampler([0], epoch=epoch).flows[0].weight for epoch in range(20)])
    assert len(weights) > 5
    assert weights.eq(torch.tensor(2**32 / 61_357, dtype=torch.float32)).all()


@pytest.mark.parametrize("iterations", [0, 1])
def test_many_destinations_that_draw_more_than_expected(iterations):
    """300 destinations share their sources, so together they draw up to a half more than expected:
    buffers grow.
    """
    sampler = LaborSampler(star(1000, hubs=300), [40], iterations=iterations)
    sizes = []
    for epoch in range(10):
        batch = sampler(range(300), epoch=epoch)
        rows = (batch.flows[0].parent_eid % 1000).view(300, -1)
        assert rows.eq(rows[0]).all()
        assert (batch.front.parent_nid[batch.flows[0].indices] - 300).equal(rows.flatten())
        sizes.append(rows.shape[1])
    assert max(sizes) > 44
    assert min(sizes) < 40


# ---- options


def test_a_loader_numbers_the_batches():
    sampler = LaborSampler(GRAPH, [3, 3], batch_dependency=3)
    alone = [
        fingerprint(sampler(seeds, batch_number=k))
        for k, seeds in enumerate(torch.arange(40).split(8))
    ]
    for workers in (0, 2):
        loader = NodeFlowLoader(sampler, range(40), 8, num_workers=workers)
        assert [fingerprint(batch) for batch in loader] == alone
