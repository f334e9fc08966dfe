"""GraphSAINT's normalisation: unbiased, by enumeration of all draws in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from _support.sampler_reference import ends_of
from _support.subgraph_reference import law_of_edge, law_of_node, law_of_walk, subsets_by_chance
from _support.views import viewed

from nodeflow import Graph
from nodeflow.sampling import SaintSampler

# self-loop, repeated edge, opposite edges, a node that no edge leaves (3), one that no edge enters
# (4)
SMALL = Graph.from_edges([0, 1, 2, 0, 2, 4, 0, 1, 1], [1, 2, 0, 1, 2, 0, 3, 3, 0])
SQUARES = [1, 4, 9, 1, 0, 4, 1, 1, 4]
SMALL.edata["w"] = torch.tensor([1.0, -2, 3, -1, 0, 2, 1, -1, 2])
RING = Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
CASES = [
    (SMALL, {"kind": "node", "budget": 3}, lambda: law_of_node(SMALL, [1] * 9)),
    (SMALL, {"kind": "node", "budget": 2, "direction": "out"}, None),
    (SMALL, {"kind": "node", "budget": 3, "weight": "w"}, lambda: law_of_node(SMALL, SQUARES)),
    (SMALL, {"kind": "node", "budget": 1}, lambda: law_of_node(SMALL, [1] * 9)),
    (SMALL, {"kind": "edge", "budget": 1}, lambda: law_of_edge(SMALL)),
    (SMALL, {"kind": "edge", "budget": 2}, lambda: law_of_edge(SMALL)),
    (
        SMALL,
        {"kind": "edge", "budget": 3, "direction": "out", "weight": "w"},
        lambda: law_of_edge(SMALL),
    ),
    (RING, {"kind": "edge", "budget": 2}, lambda: law_of_edge(RING)),
    (RING, {"kind": "node", "budget": 3}, lambda: law_of_node(RING, [1] * 6)),
]


def law_out(graph: Graph) -> list:
    """Kind "node" along out-edges: the flows' edges leave the nodes that they enter in the
    graph.
    """
    turned = Graph.from_edges(*reversed(graph.edges()), num_nodes=graph.num_nodes)
    return law_of_node(turned, [1] * graph.num_edges)


@pytest.mark.parametrize(
    ("graph", "options", "once"), CASES, ids=[str(options) for _, options, _ in CASES]
)
def test_exact_weights_are_unbiased(graph, options, once):
    """Over all sequences of draws, in fractions: an edge (u, v) that is there counts 1 in the mean
    of the subgraphs with v if its weight is P(v) / P(u, v), and a node's loss if it is 1 / P(v).
    """
    law = subsets_by_chance(law_out(graph) if once is None else once(), options["budget"])
    sampler = viewed(SaintSampler, graph, 1, **options)
    pairs = ends_of(graph)
    if options.get("direction") == "out":
        pairs = [(v, u) for u, v in pairs]
    amount = (
        [Fraction(int(x)) for x in graph.edata["w"]]
        if "weight" in options
        else [Fraction(1)] * len(pairs)
    )
    one = [sum(p for nodes, p in law.items() if v in nodes) for v in range(graph.num_nodes)]
    two = [sum(p for nodes, p in law.items() if {u, v} <= nodes) for u, v in pairs]
    np.testing.assert_allclose(sampler.node_probability(), np.array(one, float), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sampler.edge_probability(), np.array(two, float), rtol=0, atol=1e-12)
    scale = [a * one[v] / p if p else None for (_, v), a, p in zip(pairs, amount, two, strict=True)]
    assert sampler.estimand().tolist() == [
        float(a) if p else 0 for a, p in zip(amount, two, strict=True)
    ]

    seen = set()
    for number in range(20_000):
        batch = sampler([number])
        nodes = frozenset(batch.seeds.tolist())
        if nodes in seen:
            continue
        seen.add(nodes)
        expected = [float(scale[e]) for e in batch.flows[0].parent_eid.tolist()]
        np.testing.assert_allclose(batch.flows[0].weight, expected, rtol=1e-7)
        np.testing.assert_allclose(
            batch.back.data["loss_weight"], [float(1 / one[v]) for v in batch.seeds], rtol=1e-7
        )
        assert batch.flows[0].weight.dtype == batch.back.data["loss_weight"].dtype == torch.float32
        if len(seen) == len(law):
            break
    assert seen == set(law)


@pytest.mark.parametrize("kind", ["node", "edge"])
@pytest.mark.parametrize("draws", [2, 1000])
def test_small_probabilities_keep_their_digits(kind, draws):
    """Pairs as rare as 1e-25, against fractions: where 1 - (1 - a)^m - ... has no digit left."""
    many = 30_000
    graph = Graph.from_edges(np.arange(many), (np.arange(many) + 1) % many)
    graph.edata["w"] = torch.full((many,), 1.0, dtype=torch.float64)
    graph.edata["w"][:2] = 1e-4
    sampler = SaintSampler(
        graph.view(weight="w" if kind == "node" else None), 1, kind=kind, budget=draws
    )
    if kind == "node":
        norms = [Fraction(float(x)) ** 2 for x in (1e-4, 1)]
        total = 2 * norms[0] + (many - 2) * norms[1]
        # nodes 0 and 1
        a = norms[0] / total
        b = norms[0] / total
        joint = Fraction(0)
    else:
        a = Fraction(2, many)
        b = Fraction(2, many)
        joint = Fraction(1, many)
    exact = 1 - (1 - a) ** draws - (1 - b) ** draws + (1 - a - b + joint) ** draws
    assert float(sampler.edge_probability()[0]) == pytest.approx(float(exact), rel=1e-9, abs=0)


def test_a_node_that_always_comes():
    """A star: every drawn edge has the hub as an end; with "out", one node has the whole mass of
    kind "node".
    """
    star = Graph.from_edges([1, 2, 3], [0, 0, 0])
    sampler = SaintSampler(star, 1, kind="edge", budget=2)
    expected = 1 - (1 - 1 / 3) ** 2
    np.testing.assert_allclose(
        sampler.node_probability(), [1, expected, expected, expected], rtol=1e-12
    )
    np.testing.assert_allclose(sampler.edge_probability(), [expected] * 3, rtol=1e-12)
    hub = SaintSampler(star.view("out"), 1, kind="node", budget=2)
    assert hub.node_probability().tolist() == [1, 0, 0, 0]
    assert hub.edge_probability().tolist() == hub.estimand().tolist() == [0, 0, 0]
    assert hub([0]).layer_sizes == (1, 1)


def test_walks_are_counted_right():
    """Counts of 4000 subgraphs against the enumeration of all walks: within 5 standard errors, and
    every pair.
    """
    law = subsets_by_chance(law_of_walk(SMALL, 2), 2)
    sampler = SaintSampler(SMALL, 1, kind="walk", budget=2, walk_length=2, num_presamples=4000)
    assert sampler.num_presamples == 4000
    for found, groups in (
        (sampler.node_probability(), [{v} for v in range(5)]),
        (sampler.edge_probability(), [set(pair) for pair in ends_of(SMALL)]),
    ):
        exact = np.array(
            [float(sum(p for nodes, p in law.items() if group <= nodes)) for group in groups]
        )
        assert (np.abs(found.numpy() - exact) < 5 * np.sqrt(exact * (1 - exact) / 4000)).all()


def test_what_was_never_counted_counts_as_one():
    """One counted subgraph: what it had weighs 1, and so does what it lacked; nothing is infinite.

    Of several: alpha = C_uv / C_v and lambda = C_v / N, from the counts that the sampler tells.
    """
    sampler = SaintSampler(SMALL, 1, kind="walk", budget=1, walk_length=1, num_presamples=1)
    assert int((sampler.node_probability() == 0).sum()) >= 3
    for number in range(30):
        batch = sampler([number])
        assert batch.flows[0].weight.tolist() == [1.0] * batch.flow_sizes[0]
        assert batch.back.data["loss_weight"].tolist() == [1.0] * batch.layer_sizes[0]
    two = SaintSampler(
        SMALL.view(weight="w"), 1, kind="walk", budget=2, walk_length=1, num_presamples=3
    )
    node = two.node_probability() * 3
    edge = two.edge_probability() * 3
    for number in range(30):
        batch = two([number])
        eid = batch.flows[0].parent_eid
        dst = batch.seeds[batch.flows[0].edges()[1]]
        alpha = node[dst].clamp(min=1) / edge[eid].clamp(min=1)
        np.testing.assert_allclose(batch.flows[0].weight, SMALL.edata["w"][eid] * alpha, rtol=1e-6)
        np.testing.assert_allclose(
            batch.back.data["loss_weight"], 3 / node[batch.seeds].clamp(min=1), rtol=1e-6
        )


@pytest.mark.parametrize(
    ("options", "possible"),
    [
        ({"budget": 1, "walk_length": 0}, [4]),  # the self-loop
        ({"budget": 1, "walk_length": 1}, range(9)),
        ({"budget": 2, "walk_length": 0}, range(9)),
    ],
)
def test_estimand_of_walks(options, possible):
    sampler = viewed(SaintSampler, SMALL, 1, kind="walk", num_presamples=500, **options)
    assert sampler.estimand().nonzero().flatten().tolist() == list(possible)
    assert sampler.edge_probability().nonzero().flatten().tolist() == list(possible)
