"""``direction="both"`` draws as from the graph to which the reverse of every edge was added, from
every family.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, LAYERED, graph_of_all, sampled
from _support.sampler_reference import assert_same_edges
from _support.views import viewed

from nodeflow import (
    Graph,
    LinkSampler,
    NeighborSampler,
    SaintSampler,
    TemporalNeighborSampler,
)
from nodeflow.sampling import induced
from nodeflow.testing import assert_unbiased
from nodeflow.transform import add_reverse_edges

MAKE = FAMILIES | {
    "temporal, prob": lambda g, **o: viewed(
        TemporalNeighborSampler, g, [2, 3], prob="p", since=8, **o
    )
}


def both_ways() -> tuple[Graph, Graph, torch.Tensor]:
    """A graph, the one with reverses, and the edge of the first one that each edge of the second
    one is.
    """
    graph = graph_of_all()
    src, dst = graph.edges()
    return (
        graph,
        add_reverse_edges(graph),
        torch.cat([torch.arange(len(src)), (src != dst).nonzero().squeeze(1)]),
    )


@pytest.mark.parametrize("name", [name for name in MAKE if name not in ("link", "saint, edge")])
def test_draws_are_those_of_the_graph_with_reverses(name):
    """An edge left out is left out both ways, and edges among the nodes of a batch are found both
    ways.
    """
    graph, doubled, edge = both_ways()
    options = (
        {} if name in ("random walk", "neighbor, filter") else {"weight": "w", "edge_filter": "old"}
    )
    sampler = MAKE[name](graph, direction="both", **options)
    reference = MAKE[name](doubled, **options)
    for epoch in range(3):
        assert_same_edges(
            sampled(name, sampler, epoch=epoch), sampled(name, reference, epoch=epoch), edge
        )
    if name in LAYERED:
        left_out = torch.arange(0, graph.num_edges, 3)
        sampler = sampler.without_edges(left_out)
        reference = reference.without_edges(torch.isin(edge, left_out).nonzero().squeeze(1))
        batch = sampled(name, sampler)
        wanted = sampled(name, reference)
        assert_same_edges(batch, wanted, edge)
        assert_same_edges(induced(batch, sampler), induced(wanted, reference), edge)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["node", "edge"])
def test_probabilities_of_subgraphs(kind):
    graph, doubled, _ = both_ways()
    sampler = SaintSampler(graph.view("both"), 1, kind=kind, budget=9)
    reference = SaintSampler(doubled, 1, kind=kind, budget=9)
    torch.testing.assert_close(sampler.node_probability(), reference.node_probability())
    torch.testing.assert_close(
        sampler.edge_probability(), reference.edge_probability()[: graph.num_edges]
    )
    assert_unbiased(sampler, range(200), nodes=[1, 2, 3], batch_size=1)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["neighbor, prob", "labor, 1", "ladies"])
def test_sums_are_unbiased_for_those_over_edges_both_ways(name):
    assert_unbiased(
        LAYERED[name](graph_of_all(), direction="both", weight="w"), [5, 11], draws=1500
    )


def test_link_batches_leave_seeds_out():
    graph = graph_of_all()
    links = LinkSampler(NeighborSampler(graph.view("both"), [-1]), exclude="self")
    assert not np.isin([7, 9], links([7, 9]).flows[0].parent_eid).any()
