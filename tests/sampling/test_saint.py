"""GraphSAINT: which subgraphs are drawn, and how often. Their weights are in
``test_saint_weights.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.sampler_reference import chi_square, key_of, random_graph
from _support.strategies import calls, masks
from _support.subgraph_reference import (
    assert_is_induced,
    key_of_batch,
    law_of_edge,
    law_of_node,
    law_of_walk,
    node_law,
    rows_of,
    saint_edges,
    saint_nodes,
    saint_walks,
    subsets_by_chance,
)
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.sampling import SaintSampler
from nodeflow.testing import graphs

KINDS = {
    "node": {"kind": "node", "budget": 3},
    "edge": {"kind": "edge", "budget": 2},
    "walk": {"kind": "walk", "budget": 2, "walk_length": 2, "num_presamples": 5},
}
# self-loop, repeated edge, a node that no edge leaves (3), a node that no edge enters (4)
SMALL = Graph.from_edges([0, 1, 2, 0, 2, 4, 0, 1], [1, 2, 0, 1, 2, 0, 3, 3])


def reference(kind: str, graph: Graph, direction: str, keep, key: int) -> list[int]:
    """The nodes that the description says."""
    rows = rows_of(graph, direction, keep)
    if kind == "node":
        return saint_nodes(node_law(graph, rows), 3, key)
    if kind == "edge":
        return saint_edges(rows, rows_of(graph, "out" if direction == "in" else "in", keep), 2, key)
    return saint_walks(rows, 2, 2, key)


@pytest.mark.parametrize("kind", KINDS)
@given(graph=graphs(min_nodes=1), number=st.integers(0, 2**62 - 1), data=st.data())
def test_the_same_subgraphs_as_the_description(kind, graph, number, data):
    """The reference draws in plain Python; nodes, edges and order must be the same."""
    direction = data.draw(st.sampled_from(["in", "out"]))
    mask = data.draw(masks(graph))
    which = data.draw(calls)
    options = KINDS[kind] | {"direction": direction, "seed": data.draw(st.integers(0, 3))}
    if kind != "walk" and not mask.any():
        with pytest.raises(ValueError, match=f"kind='{kind}' draws"):
            viewed(SaintSampler, graph.view(where=mask), 2, **options)
        return
    sampler = viewed(SaintSampler, graph.view(where=mask), 2, **options)
    nodes = reference(
        kind,
        graph,
        direction,
        lambda e: mask[e],
        key_of_batch("saint", [number], seed=options["seed"], **which),
    )
    batch = sampler([number], **which)
    assert_is_induced(batch, rows_of(graph, direction, lambda e: mask[e]), nodes)
    assert batch.seed_index.tolist() == list(range(len(nodes)))
    assert batch.back.data["loss_weight"].shape == (len(nodes),)
    assert bool(batch.flows[0].weight.isfinite().all())


def test_nodes_in_proportion_to_squared_weights():
    graph = random_graph(1)
    graph.edata["w"] = torch.randn(
        200, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    graph.edata["w"][::3] = 0
    sampler = SaintSampler(graph.view(weight="w"), 1, kind="node", budget=6, seed=2)
    rows = rows_of(graph)
    law = node_law(graph, rows, graph.edata["w"].tolist())
    for number in range(50):
        assert_is_induced(
            sampler([number]), rows, saint_nodes(law, 6, key_of_batch("saint", [number], seed=2))
        )


def test_numbers_on_the_border():
    """What is drawn at exactly 0, on a border, and where rounding reaches the end: never a node of
    no weight.
    """

    class Numbers:
        def uniform(self, ids):
            return torch.tensor([0.0, 0.25, 0.5, 1 - 2.0**-53, 1.0])

    # nodes 0, 2 and 5 have no out-edges; 1, 3 and 4 have 1, 1 and 2
    graph = Graph.from_edges([1, 3, 4, 4], [0, 0, 0, 0], num_nodes=6)
    kind = SaintSampler(graph, 1, kind="node", budget=5)._kind
    assert kind.draw(Numbers()).tolist() == [1, 3, 4, 4, 4]


def law_of(kind: str, graph: Graph) -> list:
    if kind == "node":
        return law_of_node(graph, [1] * graph.num_edges)
    return law_of_edge(graph) if kind == "edge" else law_of_walk(graph, 2)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("over", ["number", "epoch"])
def test_how_often_every_set_of_nodes_comes(kind, over):
    """Chi-square over all sets of nodes, against the enumeration of all draws.

    3000 draws over at most 25 sets: a deviation of all of them by 17 % is surely found (r^2 n > 8
    sqrt(m) + 40).
    """
    law = subsets_by_chance(law_of(kind, SMALL), KINDS[kind]["budget"])
    sampler = viewed(SaintSampler, SMALL, 1, **KINDS[kind])
    counts = dict.fromkeys(law, 0)
    for k in range(3000):
        batch = sampler([k]) if over == "number" else sampler([5], epoch=k)
        counts[frozenset(batch.seeds.tolist())] += 1
    expected = np.array([float(p) * 3000 for p in law.values()])
    assert expected.min() > 5
    assert chi_square(np.array(list(counts.values())), expected) < 1


def test_a_hub_of_many_edges():
    """50,000 edges at node 0: every edge has it as an end, and the other ends are uniform."""
    degree = 50_000
    graph = Graph.from_edges(np.arange(1, degree + 1), np.zeros(degree, np.int64))
    sampler = SaintSampler(graph, 1, kind="edge", budget=20_000)
    batch = sampler([0])
    others = batch.seeds[1:].numpy() - 1
    # half of the draws begin at a leaf and all have one as an end: 20,000 leaves with repeats, of
    # 50,000
    assert batch.seeds[0] == 0
    assert abs(len(others) - degree * -np.expm1(20_000 * np.log1p(-1 / degree))) < 500
    assert chi_square(np.bincount(others * 10 // degree, minlength=10)) < 1
    assert batch.flow_sizes == (len(others),)
    walk = SaintSampler(graph, 1, kind="walk", budget=1000, walk_length=1, num_presamples=1)([0])
    assert chi_square(np.bincount((walk.seeds[1:].numpy() - 1) * 10 // degree, minlength=10)) < 1


def test_counting_draws_are_not_those_of_training():
    sampler = SaintSampler(
        random_graph(2), 1, kind="walk", budget=3, walk_length=3, num_presamples=50
    )
    rows = rows_of(random_graph(2))
    counted = [
        saint_walks(rows, 3, 3, key_of("saint", 0, 0x70726573616D70, 3, k)) for k in range(50)
    ]
    times = np.bincount(np.concatenate(counted), minlength=40)
    assert (sampler.node_probability() * 50).round().tolist() == times.tolist()
    trained = [sampler([k]).seeds.tolist() for k in range(50)]
    assert not {tuple(nodes) for nodes in trained} & {tuple(nodes) for nodes in counted}


def test_settings():
    graph = random_graph(3)
    assert SaintSampler(graph, 2, kind="edge", budget=2).settings == {
        "num_flows": 2, "kind": "edge", "budget": 2, "coefficients": "exact", "direction": "in", "seed": 0,
    }  # fmt: skip
    # counted until nodes have been in 50 subgraphs in the mean, and no longer
    counted = SaintSampler(graph, 2, kind="walk", budget=2, walk_length=3)
    assert 50 <= float(counted.node_probability().mean() * counted.num_presamples) < 50 + 8 / 40


@pytest.mark.parametrize("kind", KINDS)
def test_edges_left_out_for_a_while(kind):
    """The same nodes, the same weights of all other edges."""
    sampler = viewed(SaintSampler, SMALL, 1, **KINDS[kind], seed=1)
    for number in range(20):
        whole = sampler([number])
        less = sampler.without_edges([0, 4])([number])
        assert_is_induced(
            less, rows_of(SMALL, keep=lambda e: e not in (0, 4)), whole.seeds.tolist()
        )
        kept = ~torch.isin(whole.flows[0].parent_eid, torch.tensor([0, 4]))
        assert torch.equal(less.flows[0].weight, whole.flows[0].weight[kept])
        assert torch.equal(less.back.data["loss_weight"], whole.back.data["loss_weight"])
