"""Layer-wise samplers: their laws by enumeration, the very draws by a second implementation, and
their options.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.layerwise_reference import (
    DRAWS,
    assert_equals_reference,
    drawn_edges,
    in_order,
    inclusion,
    law,
    means,
)
from _support.sampler_reference import chi_square, key_of
from _support.strategies import calls, edge_ids, masks
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.sampling import FastGCNSampler, LadiesSampler, LayerSampler
from nodeflow.testing import assert_unbiased, graphs, seeds

KINDS = [LayerSampler, LadiesSampler, FastGCNSampler]


def node_number(candidates, step):
    """A score: candidate 0 never, node u in proportion to u."""
    return candidates.nid.double()


# ---- the law

# two destinations, 4 and 5, and four candidates; 1 -> 4 is there twice; the two last edges count
# for FastGCN only
PROOF = [
    (0, 4, 1),
    (1, 4, 2),
    (2, 4, -1),
    (0, 5, 3),
    (3, 5, 1),
    (2, 5, 1),
    (1, 4, 1),
    (4, 0, 1),
    (0, 1, 1),
]
H = [3, -1, 4, 5, 9, 2]


def candidates_of(kind, score) -> tuple[list[int], list[int]]:
    into = [edge for edge in PROOF if edge[1] in (4, 5)]
    if kind is FastGCNSampler:
        return list(range(6)), [sum(a * a for w, _, a in PROOF if w == u) for u in range(6)]
    if kind is LadiesSampler:
        return list(range(4)), [sum(a * a for w, _, a in into if w == u) for u in range(4)]
    return list(range(4)), [1] * 4 if score is None else [0, 1, 2, 3]


CASES = [(kind, None, draw, 2) for kind in KINDS for draw in DRAWS]
CASES += [
    pytest.param(LayerSampler, node_number, draw, 2, marks=pytest.mark.slow) for draw in DRAWS
]
CASES += [
    pytest.param(kind, None, draw, 3, marks=pytest.mark.slow) for kind in KINDS for draw in DRAWS
]


@pytest.mark.parametrize(("kind", "score", "draw", "size"), CASES)
def test_the_law_by_enumeration(kind, score, draw, size):
    """Over all outcomes: the estimate is unbiased, its variance is the formula's; and the sampler
    follows that law.

    1,000 calls against whole outcomes (sets, or multisets) with all weights: an outcome of
    probability 0.1 that comes up 80 % too often is surely found (1,000 * 0.1 * 0.8^2 = 64 with some
    10 cells). Outcomes expected fewer than 5 times are taken together.
    """
    src, dst, a = zip(*PROOF, strict=True)
    graph = Graph.from_edges(
        src, dst, num_nodes=6, edata={"w": torch.tensor(a, dtype=torch.float32)}
    )
    nodes, scores = candidates_of(kind, score)
    order = None
    if kind is FastGCNSampler and draw == "systematic":  # one order for good
        order = in_order(
            [u for u in nodes if 0 < inclusion(scores, size)[u] < 1], key_of("fastgcn", 5, 0)
        )
        order += [u for u in nodes if u not in order]
    table = law(nodes, scores, size, draw, order)
    mean = means(nodes, scores, size, draw)
    assert sum(table.values()) == 1

    def weights(outcome) -> dict[int, Fraction]:
        times = dict(outcome)
        into = [(e, u, a) for e, (u, v, a) in enumerate(PROOF) if v in (4, 5) and u in times]
        return {e: Fraction(a * times[u]) / mean[u] for e, u, a in into}

    for v in (4, 5):
        estimates = [
            (
                p,
                sum(
                    (w * H[PROOF[e][0]] for e, w in weights(s).items() if PROOF[e][1] == v),
                    Fraction(0),
                ),
            )
            for s, p in table.items()
        ]
        gives = Counter[int]()
        for u, w, a in PROOF:
            if w == v and mean.get(u):
                gives[u] += a * H[u]
        assert sum(p * x for p, x in estimates) == sum(gives.values())
        variance = sum(p * x * x for p, x in estimates) - sum(gives.values()) ** 2
        if draw == "replacement":
            q = {u: mean[u] / size for u in gives}
            assert (
                variance
                == (sum(x * x / q[u] for u, x in gives.items()) - sum(gives.values()) ** 2) / size
            )
        elif draw == "poisson":
            assert variance == sum(x * x * (1 / mean[u] - 1) for u, x in gives.items())

    def seen(edges) -> tuple[tuple[int, float], ...]:
        return tuple(sorted((e, round(float(w), 3)) for e, w in edges))

    expected = Counter[object]()
    for outcome, p in table.items():
        expected[seen(weights(outcome).items())] += float(p)
    options = {} if score is None else {"score": score}
    sampler = viewed(kind, graph, [size], draw=draw, weight="w", seed=5, **options)
    calls = 1000
    observed = Counter(
        seen(itertools.chain(*drawn_edges(sampler([4, 5], epoch=k), 0))) for k in range(calls)
    )
    assert set(observed) <= set(expected)
    rare = {key for key, p in expected.items() if p * calls < 5}
    cells = [([key], p) for key, p in expected.items() if key not in rare]
    rest = sum(expected[key] for key in rare)
    cells += [(list(rare), rest)] if rest * calls > 1 else []
    if len(cells) > 1:
        counts = np.array([sum(observed[key] for key in keys) for keys, _ in cells])
        chances = np.array([p for _, p in cells])
        assert chi_square(counts, chances * counts.sum() / chances.sum()) < 1


# ---- the draws

some_graphs = graphs(min_nodes=1, edge_columns={"w": ()})


@examples(40)
@given(some_graphs, st.data())
def test_a_batch_is_what_the_reference_says(graph, data):
    kind = data.draw(st.sampled_from(KINDS))
    draw = data.draw(st.sampled_from(DRAWS))
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    left_out = data.draw(edge_ids(graph))
    mask = data.draw(masks(graph))
    run = data.draw(calls)
    options = {
        "draw": draw,
        "include_dst": data.draw(st.booleans()),
        "seed": data.draw(st.integers(-(2**63), 2**63)),
    }
    options |= {"direction": data.draw(st.sampled_from(["in", "out"])), "edge_filter": mask}
    options["weight"] = data.draw(st.sampled_from([None, "w"]))
    assert_equals_reference(kind, graph, sizes, data.draw(seeds(graph)), left_out, options, run)


# ---- options and corner cases


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", ["poisson", "systematic"])
def test_layers_larger_than_the_candidates_keep_all(kind, draw):
    src, dst, a = zip(*PROOF, strict=True)
    graph = Graph.from_edges(
        src, dst, num_nodes=6, edata={"w": torch.tensor(a, dtype=torch.float32)}
    )
    for size in (6, 10**18):
        flow = viewed(kind, graph, [size], draw=draw, weight="w")([4, 5]).flows[0]
        assert sorted(flow.parent_eid.tolist()) == [0, 1, 2, 3, 4, 5, 6]
        assert torch.equal(flow.weight, graph.edata["w"][flow.parent_eid])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", DRAWS)
def test_where_there_is_nothing_to_draw(kind, draw):
    """All weights are 0."""
    graph = Graph.from_edges([0], [1], num_nodes=3, edata={"w": torch.zeros(1)})
    for include_dst in (True, False):
        batch = viewed(kind, graph, [2, 2], draw=draw, weight="w", include_dst=include_dst)([1])
        batch.validate()
        if kind is not LayerSampler:
            assert batch.flow_sizes == (0, 0)
        assert batch.flows[0].weight.sum() == 0


@pytest.mark.parametrize("draw", DRAWS)
def test_normalized_weights_add_up_to_the_row(draw):
    rng = np.random.default_rng(0)
    weights = rng.random(300) + 0.1
    columns = {"w": torch.from_numpy(weights), "tiny": torch.from_numpy(weights * 1e-25)}
    graph = Graph.from_edges(
        rng.integers(40, size=300), rng.integers(40, size=300), num_nodes=40, edata=columns
    )
    for name, left_out in ((None, []), ("w", []), ("w", list(range(0, 300, 3))), ("tiny", [])):
        a = torch.ones(300) if name is None else graph.edata[name]
        a = a.double().clone()
        a[left_out] = 0
        rows = torch.zeros(40, dtype=torch.float64).index_add_(0, graph.edges()[1], a)
        sampler = LadiesSampler(
            graph.view(weight=name), [15], draw=draw, normalize=True
        ).without_edges(left_out)
        flow = sampler(range(40)).flows[0]
        has = flow.in_degrees > 0
        assert 10 < has.sum() <= 40
        sums = flow.aggregate_edges(flow.weight.double().unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(sums[has], rows[has], rtol=1e-5, atol=0)
    plain = LadiesSampler(graph.view(weight="w"), [15], draw=draw)(range(40))
    scaled = LadiesSampler(graph.view(weight="w"), [15], draw=draw, normalize=True)(range(40))
    assert torch.equal(plain.flows[0].parent_eid, scaled.flows[0].parent_eid)
    with pytest.raises(AssertionError, match="biased"):
        assert_unbiased(
            LadiesSampler(graph.view(weight="w"), [3], normalize=True), range(40), draws=250
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("power", [-97, 97])
def test_the_smallest_and_largest_weights(power, dtype):
    values = torch.tensor([1.0, 2.0, 3.0, -1.0], dtype=dtype)
    near = Graph.from_edges([0, 1, 2, 3], [4] * 4, edata={"w": values})
    far = Graph.from_edges([0, 1, 2, 3], [4] * 4, edata={"w": values * 2.0**power})
    for kind in (LadiesSampler, FastGCNSampler):
        for draw in DRAWS:
            for k in range(20):
                one, other = (
                    viewed(kind, g, [2], draw=draw, weight="w")([4], epoch=k).flows[0]
                    for g in (near, far)
                )
                assert torch.equal(one.parent_eid, other.parent_eid)
