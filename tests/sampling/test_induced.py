"""induced: the layers of a batch, and all edges of the graph among them, against a loop over all
edges.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.loader_tools import random_graph
from _support.sampler_reference import ends_of
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import (
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    ShadowSampler,
)
from nodeflow.sampling import induced
from nodeflow.sampling.base import BoundSampler
from nodeflow.testing import assert_same_node_flow, graphs


def contexts(layer: Any) -> list[int]:
    return [0] * len(layer) if layer.context is None else layer.context.tolist()


def reference(
    batch: NodeFlow, sampler: BoundSampler, out: set[int]
) -> list[list[tuple[int, int, int]]]:
    """Per flow: (edge, source row, destination row) of every edge among the layers, sorted."""
    flows = []
    for i in range(batch.num_flows):
        below, above = (
            list(zip(layer.parent_nid.tolist(), contexts(layer), strict=True))
            for layer in batch.layers[i : i + 2]
        )
        found = []
        for e, (u, v) in enumerate(ends_of(batch.parent)):
            near, far = (u, v) if sampler.view.direction == "in" else (v, u)
            if e not in out:
                found += [
                    (e, a, b)
                    for a, (x, c) in enumerate(below)
                    for b, (y, d) in enumerate(above)
                    if (x, y, c) == (near, far, d)
                ]
        flows.append(sorted(found))
    return flows


@st.composite
def cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1))
    graph.edata["w"] = torch.arange(graph.num_edges) * 0.5 - 1
    graph.edata["type"] = torch.arange(graph.num_edges) % 2
    mask = torch.arange(graph.num_edges) % 4 != 1
    option = st.sampled_from(
        [{}, {"disjoint": True}, {"include_dst": False}, {"reuse": True}, {"edge_type": "type"}]
    )
    options = {
        **draw(option),
        "direction": draw(st.sampled_from(["in", "out"])),
        "weight": draw(st.sampled_from([None, "w"])),
        "edge_filter": draw(st.sampled_from([None, mask])),
    }
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=3))
    left_out = [0] if graph.num_edges and draw(st.booleans()) else []
    sampler = viewed(NeighborSampler, graph, fanouts, **options)
    sampler = (
        sampler.without_edges(left_out) if left_out and "edge_type" not in options else sampler
    )
    out = set(sampler.reader.left_out.tolist()) if sampler.reader.left_out is not None else set()
    if options["edge_filter"] is not None:
        out |= set((~mask).nonzero().flatten().tolist())
    seeds = draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5))
    return graph, sampler, seeds, out


@given(cases())
def test_all_edges_among_the_layers(case):
    graph, sampler, seeds, out = case
    batch = sampler(seeds)
    batch.ldata[0]["x"] = torch.ones(batch.layer_sizes[0])
    batch.seed_data["y"] = torch.ones(len(seeds))
    result = induced(batch, sampler)
    result.validate()
    found = []
    for flow in result.flows:
        src, dst = flow.edges()
        found.append(sorted(zip(flow.parent_eid.tolist(), src.tolist(), dst.tolist(), strict=True)))
        wanted = (
            graph.edata["w"][flow.parent_eid] if sampler.view.weight else torch.ones(flow.num_edges)
        )
        assert flow.weight.tolist() == wanted.tolist()
    assert found == reference(batch, sampler, out)
    for layer, own in zip(result.layers, batch.layers, strict=True):
        assert layer.parent_nid is own.parent_nid
    assert result.ldata[0]["x"].equal(batch.ldata[0]["x"])
    assert result.seed_data["y"].equal(batch.seed_data["y"])
    assert result.seed_index is batch.seed_index


def test_of_a_scope_it_is_the_scope():
    sampler = ShadowSampler(random_graph(), 3, depth=2, fanout=2)
    batch = sampler([3, 7])
    assert_same_node_flow(induced(batch, sampler), batch)


@pytest.mark.parametrize("workers", [0, 2])
def test_as_a_transform(workers):
    sampler = NeighborSampler(random_graph(), [2, 2])
    plain = NodeFlowLoader(sampler, range(60), 20)
    for batch, other in zip(
        NodeFlowLoader(
            sampler, range(60), 20, num_workers=workers, transform=lambda b: induced(b, sampler)
        ),
        plain,
        strict=True,
    ):
        assert_same_node_flow(batch, induced(other, sampler))
        assert batch.flow_sizes[0] > other.flow_sizes[0]
