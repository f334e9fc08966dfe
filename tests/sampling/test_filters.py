"""Which edges there are to draw (``edge_filter``, ``without_edges``), and what they count in sums (``weight``)."""

from __future__ import annotations

import itertools
import pickle
import sys
import threading

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, LAYERED, MODES, fingerprint, graph_of_all, sampled
from _support.sampler_reference import (
    chi_square,
    draw,
    ends_of,
    hash_of,
    key_of,
    picked_positions,
    random_graph,
    star,
)
from _support.weighted_reference import draw_weighted

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlow, NodeFlowLoader, TemporalNeighborSampler
from nodeflow.sampling.base import BoundSampler
from nodeflow.testing import assert_reproducible, assert_unbiased


def part_of(graph: Graph, mask: torch.Tensor) -> Graph:
    """The graph of some edges, in the same order; their ids there count only them."""
    src, dst = graph.edges()
    return Graph.from_edges(src[mask], dst[mask], num_nodes=graph.num_nodes)


# ---- edge_filter


@pytest.mark.parametrize("options", MODES, ids=str)
def test_a_filter_gives_what_the_graph_of_the_edges_left_gives(options):
    for number in range(3):
        graph = random_graph(number, 30, 300)
        mask = torch.from_numpy(np.random.default_rng(number).random(300) < 0.4)
        kept = mask.nonzero().flatten()
        batch = NeighborSampler(graph, [2, 3], edge_filter=mask, seed=number, **options)(range(9))
        other = NeighborSampler(part_of(graph, mask), [2, 3], seed=number, **options)(range(9))
        batch.validate()
        for one, two in zip(batch.layers, other.layers, strict=True):
            assert one.parent_nid.equal(two.parent_nid)
        for one, two in zip(batch.flows, other.flows, strict=True):
            assert one.indices.equal(two.indices)
            assert one.parent_eid.equal(kept[two.parent_eid])
            assert one.weight.equal(two.weight)  # fanouts stay full, and degrees are those of the edges left


def test_kinds_of_filters():
    graph = random_graph(4)
    mask = torch.arange(200) % 3 == 0
    graph.edata["keep"], graph.edata["x"] = mask, torch.arange(200.0)
    expected = fingerprint(NeighborSampler(graph, [2, 2], edge_filter=mask)(range(9)))
    by_hand = [mask, mask.numpy(), mask.tolist(), "keep", lambda edata: edata["x"] % 3 == 0, lambda edata: mask.numpy()]
    for value in by_hand:
        assert fingerprint(NeighborSampler(graph, [2, 2], edge_filter=value)(range(9))) == expected


def test_a_filter_is_read_once():
    graph = random_graph(4)
    mask = torch.arange(200) % 3 == 0
    graph.edata["keep"] = mask.clone()
    samplers = [NeighborSampler(graph, [2], edge_filter=value) for value in (mask, "keep")]
    expected = fingerprint(samplers[0](range(9)))
    mask[:] = True
    graph.edata["keep"] = mask
    for sampler in samplers:
        assert fingerprint(sampler(range(9))) == expected
        assert fingerprint(pickle.loads(pickle.dumps(sampler))(range(9))) == expected


def test_nothing_and_everything_filtered():
    graph = random_graph(5)
    for options in MODES:
        none = NeighborSampler(graph, [2, -1], edge_filter=torch.zeros(200, dtype=torch.bool), **options)([3, 4])
        assert none.flow_sizes == (0, 0)
        none.validate()
        every = NeighborSampler(graph, [2, -1], edge_filter=torch.ones(200, dtype=torch.bool), **options)([3, 4])
        assert fingerprint(every) == fingerprint(NeighborSampler(graph, [2, -1], **options)([3, 4]))


def test_left_edges_are_drawn_uniformly():
    """Every pair of four left edges equally often; if one were drawn 5 % too often, 30,000 draws would show it."""
    hubs, d = 30_000, 7
    graph = Graph(np.arange(hubs + d + 1).clip(max=hubs) * d, np.tile(np.arange(hubs, hubs + d), hubs))
    left = [0, 2, 3, 6]
    mask = torch.zeros(d, dtype=torch.bool).index_fill(0, torch.tensor(left), True).repeat(hubs)
    rows = NeighborSampler(graph, [2], edge_filter=mask)(range(hubs)).flows[0].parent_eid.numpy().reshape(hubs, 2) % d
    table = {sum(1 << p for p in pair): 0 for pair in itertools.combinations(left, 2)}
    for code, number in zip(*np.unique((1 << rows).sum(1), return_counts=True), strict=True):
        table[int(code)] += int(number)
    assert len(table) == 6
    assert chi_square(np.array(list(table.values()))) < 1


def test_filters_show_and_tell_samplers_apart():
    graph = random_graph(4)
    masks = [torch.arange(200) % 2 == k for k in (0, 1)]
    texts = [repr(NeighborSampler(graph, [2], edge_filter=mask)) for mask in masks]
    assert "edge_filter=EdgeMask(100 of 200 edges, 0x" in texts[0]
    assert texts[0] != texts[1]
    assert "edge_filter" not in repr(NeighborSampler(graph, [2]))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (
            torch.ones(2, dtype=torch.bool),
            ValueError,
            r"edge_filter must have one entry per edge \(3\), got shape \(2,\)",
        ),
        (torch.ones(3, 1, dtype=torch.bool), ValueError, r"edge_filter must have one entry per edge \(3\)"),
        (torch.ones(3), TypeError, "edge_filter must give a bool for every edge, got Tensor of dtype torch.float32"),
        ([0, 2], TypeError, "edge_filter must give a bool for every edge.*and for ids make a mask"),
        ("x", TypeError, "edge_filter must give a bool for every edge"),
        ("nothing", KeyError, "edge_filter: graph.edata has no column 'nothing'; it has x"),
        (lambda edata: edata["x"], TypeError, "edge_filter must give a bool for every edge"),
        (lambda edata: None, TypeError, "edge_filter must give a bool"),
        (lambda edata: edata["x"][:2] > 0, ValueError, r"edge_filter must have one entry per edge \(3\)"),
    ],
)
def test_bad_filters(value, error, words):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"x": torch.ones(3)})
    with pytest.raises(error, match=words):
        NeighborSampler(graph, [1], edge_filter=value)


# ---- weight


@pytest.mark.parametrize("options", MODES, ids=str)
def test_estimator_weights_are_those_of_the_column_times_those_without(options):
    graph = random_graph(6)
    graph.edata["a"] = torch.linspace(-2, 2, 200)
    plain, weighted = (NeighborSampler(graph, [2, 3], weight=w, **options)(range(9)) for w in (None, "a"))
    for one, two in zip(plain.flows, weighted.flows, strict=True):
        assert one.parent_eid.equal(two.parent_eid)  # a weight does not change what is drawn
        expected = one.weight.double() * graph.edata["a"][one.parent_eid]
        torch.testing.assert_close(two.weight.double(), expected, rtol=1e-6, atol=0)
        assert two.weight.dtype == torch.float32


def test_full_neighbourhoods_have_the_column_itself():
    graph = random_graph(6)
    for dtype in (torch.float64, torch.float16, torch.int32, torch.float32):
        graph.edata["a"] = (torch.arange(200) % 9 - 4).to(dtype)
        for flow in FullSampler(graph, 2, weight="a")([3, 4]).flows:
            assert flow.weight.equal(graph.edata["a"][flow.parent_eid].float())
        for flow in FullSampler(graph, 2, weight="a", reuse=True)([3, 4]).flows:
            assert flow.weight.equal(graph.edata["a"][flow.parent_eid].float())


def test_weighted_sums_are_unbiased_whatever_the_signs():
    graph = random_graph(7, 30, 500)
    graph.edata["a"] = torch.from_numpy(np.random.default_rng(1).normal(size=500))
    graph.edata["keep"] = torch.arange(500) % 5 > 0
    for options in ({"include_dst": False}, {"replace": True, "edge_filter": "keep"}):
        sampler = NeighborSampler(graph, [3, 4], weight="a", **options)
        assert_unbiased(sampler, [0, 5, 9], draws=250)
        expected = graph.edata["a"] * (graph.edata["keep"] if "edge_filter" in options else 1)
        assert sampler.estimand().equal(expected)
        sampler.estimand().zero_()
        assert sampler.estimand().equal(expected)  # a copy


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("bad", ValueError, "weight: the edge column 'bad' must be finite, but edge 1 has nan"),
        ("wide", ValueError, "weight: the edge column 'wide' must have one number per edge"),
        ("none", KeyError, "weight: graph.edata has no column 'none'; it has bad, wide"),
        (3, TypeError, "weight must be the name of a column of graph.edata, got int 3"),
        (torch.ones(2), TypeError, "weight must be the name of a column"),
    ],
)
def test_bad_weights(name, error, words):
    edata = {"bad": torch.tensor([1.0, torch.nan]), "wide": torch.ones(2, 2)}
    with pytest.raises(error, match=words):
        NeighborSampler(Graph.from_edges([0, 1], [1, 0], edata=edata), [1], weight=name)


# ---- without_edges


def expected_draws(
    graph: Graph, fanout: int, ids: list[int], out: set[int], column: str | None = None, *, replace: bool = False
) -> list[list[int]]:
    """Draws from the lists without the edges ``out``, under the same random numbers."""
    key = key_of(key_of(0, 0, 0, hash_of(ids)), 0)
    found = []
    for v in ids:
        rows = [e for e, (_, dst) in enumerate(ends_of(graph)) if dst == v and e not in out]
        if column is None:
            found.append(draw(rows, fanout, replace, key, v))
        else:
            weights = graph.edata[column][rows].tolist()
            found.append([rows[p] for p in draw_weighted(weights, fanout, replace, key, v)])
    return found


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("column", [None, "w"])
@pytest.mark.parametrize("with_ids", [True, False])
def test_left_out_edges_equal_pure_python(column, replace, with_ids):
    rng = np.random.default_rng(2)
    for number, fanout in enumerate([1, 3, 8, -1]):
        graph = random_graph(number, 20, 250)
        if not with_ids:
            graph = Graph(graph.indptr, graph.indices)
        graph.edata["w"] = torch.from_numpy(rng.random(250) * (rng.random(250) < 0.8))
        sampler = NeighborSampler(graph, [fanout], prob=column, replace=replace)
        for size in (0, 1, 10, 120, 250):
            out = rng.permutation(250)[:size]
            ids = rng.permutation(20)[:8].tolist()
            batch = sampler.without_edges(out)(ids)
            batch.validate()
            assert picked_positions(batch) == expected_draws(
                graph, fanout, ids, set(out.tolist()), column, replace=replace
            )


def test_weights_after_edges_are_left_out():
    graph = star(6)
    graph.edata["w"], graph.edata["a"] = torch.tensor([1.0, 2, 3, 4, 5, 6]), torch.arange(6.0)
    sampler = NeighborSampler(graph, [2], weight="a").without_edges([5, 0])
    flow = sampler([0]).flows[0]
    assert flow.weight.equal(flow.parent_eid * 4 / 2)
    flow = NeighborSampler(graph, [2], prob="w", replace=True).without_edges([5, 0])([0]).flows[0]
    assert flow.weight.tolist() == pytest.approx([14 / (2 * w) for w in graph.edata["w"][flow.parent_eid].tolist()])
    # 5 of 2, 3, 4, 5 is certain once c = 3 / 14, and the others share two draws: 2 / 9 w
    flow = NeighborSampler(graph, [3], prob="w").without_edges([5, 0])([0]).flows[0]
    pi = {1: 4 / 9, 2: 6 / 9, 3: 8 / 9, 4: 1}
    assert flow.weight.tolist() == pytest.approx([1 / pi[e] for e in flow.parent_eid.tolist()])


def test_left_out_edges_are_left_out_of_every_flow_in_every_mode():
    graph = random_graph(8, 30, 500)
    graph.edata["w"] = torch.rand(500, generator=torch.Generator().manual_seed(0))
    out = torch.arange(0, 500, 3)
    for options, prob in itertools.product(MODES, [None, "w"]):
        sampler = NeighborSampler(graph, [3, -1, 2], prob=prob, seed=2, **options)
        batch = sampler.without_edges(out)([1, 5, 9])
        batch.validate()
        for flow in batch.flows:
            assert not torch.isin(flow.parent_eid, out).any()
        assert_reproducible(sampler.without_edges(out), [1, 5, 9])


def test_nodes_without_such_an_edge_draw_what_they_drew():
    graph = random_graph(9, 30, 500)
    sampler = NeighborSampler(graph, [3])
    plain = picked_positions(sampler(range(30)))
    for v in range(0, 30, 7):
        rows = graph.in_edges([v])[2]
        changed = picked_positions(sampler.without_edges(rows[:2])(range(30)))
        assert [p for i, p in enumerate(changed) if i != v] == [p for i, p in enumerate(plain) if i != v]
        assert len(changed[v]) == 3  # the fanout stays full
        assert picked_positions(sampler.without_edges(rows)(range(30)))[v] == []
    assert fingerprint(sampler.without_edges([])(range(30))) == fingerprint(sampler(range(30)))
    assert fingerprint(sampler(range(30))) == fingerprint(NeighborSampler(graph, [3])(range(30)))  # as it was


def test_left_out_edges_add_up_and_travel():
    graph = random_graph(10, 30, 500)
    graph.edata["w"] = torch.rand(500, generator=torch.Generator().manual_seed(0))
    for options in ({}, {"prob": "w"}, {"edge_filter": torch.arange(500) % 7 > 0}, {"direction": "out"}):
        sampler = NeighborSampler(graph, [3, 2], **options)
        once = sampler.without_edges(range(0, 500, 2))
        steps = sampler.without_edges(range(0, 250, 2)).without_edges(torch.arange(250, 500, 2))
        expected = fingerprint(once(range(9)))
        assert fingerprint(steps(range(9))) == expected
        assert fingerprint(pickle.loads(pickle.dumps(steps))(range(9))) == expected
        assert [fingerprint(b) for b in NodeFlowLoader(once, range(9), 9, num_workers=2)] == [expected]


def test_left_out_edges_that_a_filter_has_left_out_before():
    graph = random_graph(11)
    mask = torch.arange(200) % 2 == 0
    sampler = NeighborSampler(graph, [3], edge_filter=mask)
    odd = sampler.without_edges(range(1, 200, 2))
    assert fingerprint(odd(range(9))) == fingerprint(sampler(range(9)))
    assert sampler.without_edges([199, 198, 0])(range(40)).flow_sizes[0] > 0


def test_bad_ids_of_edges():
    sampler = NeighborSampler(random_graph(0), [2])
    with pytest.raises(IndexError, match=r"eid\[1\] is 200, but edge ids go from 0 to 199"):
        sampler.without_edges([3, 200])
    with pytest.raises(IndexError, match=r"eid\[0\] is -1"):
        sampler.without_edges([-1])
    with pytest.raises(TypeError, match="eid must hold edge ids, got a bool mask"):
        sampler.without_edges(torch.ones(200, dtype=torch.bool))
    with pytest.raises(TypeError, match="eid must hold integer edge ids"):
        sampler.without_edges([1.0])


RARER = [name for name in LAYERED if "," in name and name not in ("neighbor, prob", "labor, 1")]
BOUND = [name for name in FAMILIES if name != "link"]


@pytest.mark.parametrize("name", BOUND)
def test_nothing_is_read_from_the_graph_again(name, monkeypatch):
    """A batch that leaves edges out costs a batch, not another pass over the graph."""
    sampler = FAMILIES[name](graph_of_all())
    monkeypatch.setattr(BoundSampler, "read_graph", lambda self: pytest.fail("bound again"))
    batch = sampled(name, sampler.without_edges(range(0, 500, 3)))
    batch.validate()
    if name != "random walk":  # whose edges are not the graph's
        assert not any(bool((flow.parent_eid % 3 == 0).any()) for flow in batch.flows)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in RARER else name for name in LAYERED]
)
def test_the_estimand_lacks_them(name):
    sampler = LAYERED[name](graph_of_all(), weight="w").without_edges([7, 8, 9])
    assert not sampler.estimand()[[7, 8, 9]].any()
    if not name.startswith("fastgcn"):  # whose probabilities stay those of the whole graph: unbiased too, but rarer
        assert_unbiased(sampler, range(12), draws=200)


@pytest.mark.parametrize("name", BOUND)
def test_settings_tell(name):
    sampler = FAMILIES[name](graph_of_all())
    assert repr(sampler) != repr(sampler.without_edges([1])) != repr(sampler.without_edges([2]))


@pytest.mark.parametrize("replace", [False, True])
def test_many_edges_of_a_hub(replace):
    size = 400_000
    graph = star(size)
    left = np.arange(size)[np.arange(size) % 4 != 0]
    whole = FullSampler(graph, 1).without_edges(np.arange(0, size, 4))([0]).flows[0]
    many = NeighborSampler(graph, [20_000], replace=replace).without_edges(np.arange(0, size, 4))([0]).flows[0]
    assert whole.parent_eid.equal(torch.from_numpy(left))
    assert bool((many.parent_eid % 4 != 0).all())
    assert many.src_layer.parent_nid[many.indices].equal(many.parent_eid + 1)  # neighbours belong to the positions


def test_a_temporal_sampler_on_threads_at_once():
    """Threads that make the excerpt at the same time must not take it for the whole."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(50, size=600), rng.integers(50, size=600), num_nodes=50)
    graph.edata["time"] = torch.from_numpy(rng.integers(100, size=600))
    sampler, seeds, times = TemporalNeighborSampler(graph, [3]), list(range(50)), [60] * 50
    expected = fingerprint(sampler.without_edges(range(0, 600, 2))(seeds, times=times))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            fresh, barrier, found = sampler.without_edges(range(0, 600, 2)), threading.Barrier(4), list[NodeFlow]()

            def work(fresh=fresh, barrier=barrier, found=found) -> None:
                barrier.wait()
                found.append(fresh(seeds, times=times))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [fingerprint(batch) for batch in found] == [expected] * 4
    finally:
        sys.setswitchinterval(interval)


def test_columns_are_read_once():
    graph = Graph.from_edges([1, 2, 3, 4], [0] * 4, edata={"time": torch.tensor([10, 20, 30, 40])})
    sampler = TemporalNeighborSampler(graph, [-1])
    graph.edata["time"] = torch.tensor([100, 100, 100, 5])
    for one in (sampler, sampler.without_edges([2])):
        assert one([0], times=[20]).flows[0].parent_eid.tolist() == [0, 1]
