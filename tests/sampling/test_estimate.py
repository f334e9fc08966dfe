"""Estimates of the size of a batch: means of draws, exact sizes of full neighbourhoods, bytes, and
mistakes.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, call_of, graph_of_all
from hypothesis import given, strategies as st

from nodeflow import BernoulliSampler, FullSampler, Graph, LaborSampler, NeighborSampler, testing
from nodeflow.sampling import Estimate


def plain_graph(num_nodes: int = 400, num_edges: int = 2500) -> Graph:
    """A graph without parallel edges, with hubs, self-loops and isolated nodes."""
    rng = np.random.default_rng(1)
    ends = (num_nodes * rng.random((num_edges, 2)) ** (2.5, 1.5)).astype(int)
    src, dst = np.unique(ends, axis=0).T
    edata = {
        "type": torch.from_numpy((src + dst) % 3),
        "p": torch.from_numpy((src * 7 + dst) % 5 * (1.0 + src)),
    }
    return Graph.from_edges(src, dst, num_nodes=num_nodes, edata=edata)


def test_a_pilot_is_the_mean_of_draws_that_training_does_not_make():
    sampler = NeighborSampler(plain_graph(), [2, 2])
    pilot = sampler.estimate([5, 7], pilot=2)
    assert pilot == sampler.estimate([5, 7], pilot=2)
    batches = [sampler([5, 7], epoch=-1 - i, batch_number=i) for i in range(2)]
    assert pilot.nodes == tuple(np.mean([batch.layer_sizes for batch in batches], 0))


@given(data=st.data(), graph=testing.graphs())
def test_full_neighbourhoods_are_exact(data, graph):
    seeds = data.draw(testing.seeds(graph))
    for sampler in (
        FullSampler(graph, 3), FullSampler(graph.view("out"), 3), FullSampler(graph, 2, reuse=True),
        FullSampler(graph, 2, include_dst=False), LaborSampler(graph, [-1, -1]), BernoulliSampler(graph, rates=[1, 1]),
    ):  # fmt: skip
        estimate = sampler.estimate(seeds, pilot=2)
        batch = sampler(seeds)
        assert estimate.nodes == pytest.approx(batch.layer_sizes, abs=1e-9)
        assert estimate.edges == pytest.approx(batch.flow_sizes, abs=1e-9)


def test_bytes_are_those_of_a_batch():
    graph = plain_graph()
    graph.ndata["x"] = torch.zeros(400, 7, dtype=torch.float64)
    graph.ndata["sparse"] = torch.eye(400).to_sparse_csr()
    sampler = FullSampler(graph, 2)
    estimate = sampler.estimate([5, 7, 9], ndata={0: ["x", "sparse"], -1: ["x"]})
    batch = sampler([5, 7, 9])
    batch.copy_from_parent({0: ["x"], -1: ["x"]})
    ids = [layer.parent_nid.nbytes for layer in batch.layers]
    held = [sum(column.nbytes for column in frame.values()) for frame in batch.ldata]
    # the mean row: an entry, and a place in indptr
    sparse = (401 * 8 + 400 * 12) / 400 * batch.layer_sizes[0]
    assert estimate.node_bytes == pytest.approx(
        (ids[0] + held[0] + sparse, ids[1] + held[1], ids[2] + held[2])
    )
    assert estimate.edge_bytes == tuple(
        flow.indptr.nbytes + flow.indices.nbytes for flow in batch.flows
    )
    assert estimate.total_bytes == pytest.approx(
        sum(estimate.node_bytes) + sum(estimate.edge_bytes)
    )


def test_columns_that_are_fetched_count_without_a_fetch():
    class Far:
        shape = (400, 5)
        dtype = torch.float16

        def fetch(self, ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
            raise AssertionError("an estimate reads no rows")

    graph = plain_graph()
    graph.ndata["far"] = Far()
    assert NeighborSampler(graph, [2]).estimate([5], ndata={-1: ["far"]}).node_bytes[-1] == 8 + 10


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_an_estimate(name):
    sampler = FAMILIES[name](graph_of_all())
    seeds, more = call_of(name)
    estimate = sampler.estimate(seeds, pilot=3, **more)
    assert estimate.pilot == 3
    assert len(estimate.nodes) == len(estimate.edges) + 1 == sampler.num_flows + 1
    assert "mean of 3 draws" in repr(estimate)


def test_it_prints_as_a_table_and_has_no_seeds_when_there_are_none():
    graph = plain_graph()
    lines = repr(NeighborSampler(graph, [2, 2]).estimate([])).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["layer", "0", "1", "2"]
    assert {len(line) for line in lines[:3]} == {len(lines[0])}
    large = Estimate((1e9, 1e6), (1e10,), (8e9, 8e6), (8e10,), 1)
    head, first, *_ = repr(large).splitlines()
    assert len(head) == len(first)
    assert large.total_bytes == 88.008e9
