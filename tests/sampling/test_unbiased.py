"""Weighted sums over sampled edges are unbiased: by enumeration of all that can be chosen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from _support.sampler_families import LAYERED, graph_of_all
from _support.sampler_reference import picked_positions, star
from torch import Tensor

from nodeflow import FullSampler, Graph, NeighborSampler
from nodeflow.sampling.base import Choice, assemble, edges_along
from nodeflow.testing import assert_reproducible, assert_unbiased


def subsets(degree: int, fanout: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(degree), min(degree, fanout)))


@pytest.mark.parametrize("options", [{}, {"include_dst": False}, {"reuse": True}], ids=str)
def test_weighted_sum_is_unbiased_exactly(options):
    """Two flows on five nodes: probability times estimate, summed over every choice of every node, is the full sum.

    Fresh draws make the two-flow estimate unbiased too. With reuse a node that is a destination twice (0 is its own
    neighbour's neighbour) uses one draw in both flows, so there only the last flow is compared.
    """
    edges = [(1, 0), (2, 0), (3, 0), (0, 1), (2, 1), (4, 1), (2, 3), (3, 2), (4, 2)]
    graph = Graph.from_edges(*zip(*edges, strict=True))
    arrays = edges_along(graph, "in")
    degree = np.diff(graph.indptr)
    fanout, h = 2, torch.tensor([1.0, -2.0, 3.5, 7.0, 0.25], dtype=torch.float64)
    full = FullSampler(graph, 2, include_dst=options.get("include_dst", True))([0, 1])

    def through(batch, levels: int) -> Tensor:
        value = h[batch.layers[2 - levels].parent_nid]
        for i in range(2 - levels, 2):
            value = batch.flows[i].aggregate(value, "sum", weight=batch.flows[i].weight.double())
        return value

    # a table says which subset each (flow, node) takes; all tables together are the probability space
    slots = [(flow, v) for flow in ((1,) if options.get("reuse") else (1, 0)) for v in range(5)]
    slots = [(flow, v) for flow, v in slots if flow == 0 or v in (0, 1) or options.get("reuse")]
    spaces = [subsets(degree[v], fanout) for _, v in slots]
    mean = [torch.zeros(2, dtype=torch.float64) for _ in range(2)]
    total = 0.0
    for picks in itertools.product(*spaces):
        table = dict(zip(slots, picks, strict=True))
        probability = math.prod(1 / len(space) for space in spaces)

        def choose(dst: Tensor, flow: int, table=table) -> Choice:
            chosen = [table[1 if options.get("reuse") else flow, v] for v in dst.tolist()]
            starts = graph.indptr[dst.numpy()]
            positions = [s + p for s, picked in zip(starts.tolist(), chosen, strict=True) for p in picked]
            sizes = [len(picked) for picked in chosen]
            weight = [degree[v] / len(p) for v, p in zip(dst.tolist(), chosen, strict=True) for _ in p]
            return Choice(np.cumsum([0, *sizes]), np.array(positions, np.int64), weight=weight)

        batch = assemble(graph, arrays, [0, 1], 2, choose, **options)
        for levels in (1, 2):
            mean[levels - 1] += probability * through(batch, levels)
        total += probability
    assert total == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(mean[0], through(full, 1), rtol=0, atol=1e-12)
    if not options.get("reuse"):
        torch.testing.assert_close(mean[1], through(full, 2), rtol=0, atol=1e-12)


def test_sampled_weights_are_those_of_the_enumeration():
    """The built-in sampler gives each subset the weights under which the enumeration above is unbiased."""
    graph = star(4)
    values = torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=torch.float64)
    estimates = {}
    for epoch in range(400):
        batch = NeighborSampler(graph, [3])([0], epoch=epoch)
        picked = tuple(sorted(picked_positions(batch)[0]))
        h = torch.cat([torch.zeros(1, dtype=torch.float64), values])[batch.front.parent_nid]
        weight = batch.flows[0].weight.double()
        estimates[picked] = batch.flows[0].aggregate(h, "sum", weight=weight).item()
    assert len(estimates) == 4
    # float32 weights: 4/3 is right to 2**-24
    assert sum(estimates.values()) / 4 == pytest.approx(1111, rel=1e-7)


@pytest.mark.parametrize("name", ["neighbor, prob", "neighbor, prob, replace", "bernoulli", "bernoulli, rates"])
@pytest.mark.parametrize(
    "options",
    [{"include_dst": False, "weight": "a"}, {"direction": "out", "weight": "a", "edge_filter": "old"}, {"reuse": True}],
    ids=str,
)
def test_unbiased_through_all_options(name, options):
    graph = graph_of_all()
    graph.edata["a"] = torch.from_numpy(np.random.default_rng(0).normal(size=graph.num_edges).astype(np.float32))
    graph.edata["p"] = (graph.edata["p"] + 0.3) * (graph.edata["p"] > 0)  # of tiny ones 250 draws say little
    sampler = LAYERED[name](graph, **options)
    assert_unbiased(sampler, [0, 7, 21], draws=250)
    assert_reproducible(sampler, [0, 7, 21])
