"""Which edges there are to draw (``edge_filter``, ``without_edges``), and what they count in sums
(``weight``).
"""

from __future__ import annotations

import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import (
    FAMILIES,
    LAYERED,
    MODES,
    call_of,
    fingerprint,
    graph_of_all,
    sampled,
)
from _support.sampler_reference import assert_same_edges, random_graph, star
from _support.views import viewed

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    TemporalNeighborSampler,
)
from nodeflow.testing import assert_unbiased

# ---- edge_filter

# a family that has a filter already, and one whose seeds are edges, are left out
CASES: list[tuple[str, dict[str, Any]]] = [
    (n, {}) for n in FAMILIES if n not in ("neighbor, filter", "link")
]
CASES += [("neighbor", options) for options in MODES[1:]]
CASES += [("neighbor, prob", options) for options in MODES[2:]]
CASES += [("neighbor, types", {"prob": "p"}), ("neighbor, types", {"replace": True})]


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_a_filter_gives_what_the_graph_of_the_edges_left_gives(name, options, direction):
    """Fanouts stay full, and degrees and probabilities are those of the edges left."""
    graph = graph_of_all()
    src, dst = graph.edges()
    mask = torch.from_numpy(np.random.default_rng(1).random(graph.num_edges) < 0.5)
    edata = {column: values[mask] for column, values in graph.edata.items()}
    part = Graph.from_edges(src[mask], dst[mask], num_nodes=graph.num_nodes, edata=edata)
    options = (
        {"direction": direction} | options | ({} if name == "random walk" else {"weight": "w"})
    )
    one = FAMILIES[name](graph, edge_filter=mask, **options)
    other = FAMILIES[name](part, **options)
    for epoch in range(3):
        assert_same_edges(
            sampled(name, one, epoch=epoch),
            sampled(name, other, epoch=epoch),
            mask.nonzero().flatten(),
        )
    if name in LAYERED or name.startswith("saint"):
        assert one.estimand()[mask].equal(other.estimand())
        assert not one.estimand()[~mask].any()


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize(
    ("name", "options"),
    [case for case in CASES if not case[0].startswith(("fastgcn", "saint"))],
    ids=str,
)
def test_edges_left_out_for_a_while_are_as_if_filtered(name, options, direction):
    """FastGCN and GraphSAINT are left out: their probabilities stay those of the whole graph.

    Some edges are ones that a filter has left out before; the last are all edges of some nodes.
    """
    graph = graph_of_all()
    number = np.arange(500)
    seeds, more = call_of(name)
    kept = torch.arange(500) % 7 > 0
    options = (
        {"direction": direction} | options | ({} if name == "random walk" else {"weight": "w"})
    )
    plain = FAMILIES[name](graph, edge_filter=kept, **options)
    all_of_some = (
        torch.isin(graph.edges()[direction == "in"], torch.tensor([5, 11]))
        .nonzero()
        .flatten()
        .numpy()
    )
    for out in (
        number[:0],
        number[3:4],
        number[::50],
        np.random.default_rng(2).permutation(500)[:200],
        all_of_some,
    ):
        mask = kept.numpy() & ~np.isin(number, out)
        less = plain.without_edges(out)
        wanted = FAMILIES[name](graph, edge_filter=mask, **options)
        for sampler in (less, pickle.loads(pickle.dumps(less))):
            assert_same_edges(sampler(seeds, **more), wanted(seeds, **more), torch.arange(500))
        if name in LAYERED:
            assert less.estimand().equal(wanted.estimand())


def test_kinds_of_filters():
    graph = random_graph(4)
    mask = torch.arange(200) % 3 == 0
    graph.edata["keep"] = mask
    graph.edata["x"] = torch.arange(200.0)
    expected = fingerprint(NeighborSampler(graph.view(where=mask), [2, 2])(range(9)))
    by_hand = [
        mask,
        mask.numpy(),
        mask.tolist(),
        "keep",
        lambda edata: edata["x"] % 3 == 0,
        lambda edata: mask.numpy(),
    ]
    for value in by_hand:
        assert fingerprint(NeighborSampler(graph.view(where=value), [2, 2])(range(9))) == expected


def test_a_filter_is_read_once():
    graph = random_graph(4)
    mask = torch.arange(200) % 3 == 0
    graph.edata["keep"] = mask.clone()
    samplers = [NeighborSampler(graph.view(where=value), [2]) for value in (mask, "keep")]
    expected = fingerprint(samplers[0](range(9)))
    mask[:] = True
    graph.edata["keep"] = mask
    for sampler in samplers:
        assert fingerprint(sampler(range(9))) == expected
        assert fingerprint(pickle.loads(pickle.dumps(sampler))(range(9))) == expected


def test_filters_show_and_tell_samplers_apart():
    graph = random_graph(4)
    masks = [torch.arange(200) % 2 == k for k in (0, 1)]
    texts = [repr(NeighborSampler(graph.view(where=mask), [2])) for mask in masks]
    assert "where=EdgeMask(100 of 200 edges, 0x" in texts[0]
    assert texts[0] != texts[1]
    assert "where" not in repr(NeighborSampler(graph, [2]))


# ---- weight

OWN_DRAWS = [
    (name, {}) for name in (*LAYERED, "labor, hajek") if not name.startswith(("fastgcn", "ladies"))
]
"""Families in which a weight does not change what is drawn."""


@pytest.mark.parametrize(
    ("name", "options"), [*OWN_DRAWS, *(("neighbor", options) for options in MODES[1:])], ids=str
)
def test_estimator_weights_are_those_of_the_column_times_those_without(name, options):
    graph = graph_of_all()
    graph.edata["a"] = torch.linspace(-2, 2, 500)
    plain, weighted = (
        sampled(name, FAMILIES[name](graph, weight=w, **options)) for w in (None, "a")
    )
    for one, two in zip(plain.flows, weighted.flows, strict=True):
        assert one.parent_eid.equal(two.parent_eid)
        expected = one.weight.double() * graph.edata["a"][one.parent_eid]
        torch.testing.assert_close(two.weight.double(), expected, rtol=1e-6, atol=0)
        assert two.weight.dtype == torch.float32


# ---- without_edges


def test_left_out_edges_add_up_and_travel():
    graph = random_graph(10, 30, 500)
    graph.edata["w"] = torch.rand(500, generator=torch.Generator().manual_seed(0))
    for options in (
        {},
        {"prob": "w"},
        {"edge_filter": torch.arange(500) % 7 > 0},
        {"direction": "out"},
    ):
        sampler = viewed(NeighborSampler, graph, [3, 2], **options)
        once = sampler.without_edges(range(0, 500, 2))
        steps = sampler.without_edges(range(0, 250, 2)).without_edges(torch.arange(250, 500, 2))
        expected = fingerprint(once(range(9)))
        assert fingerprint(steps(range(9))) == expected
        assert fingerprint(pickle.loads(pickle.dumps(steps))(range(9))) == expected
        assert [fingerprint(b) for b in NodeFlowLoader(once, range(9), 9, num_workers=2)] == [
            expected
        ]


RARER = [name for name in LAYERED if "," in name and name not in ("neighbor, prob", "labor, 1")]
BOUND = [name for name in FAMILIES if name != "link"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in RARER else name for name in LAYERED],
)
def test_the_estimand_lacks_them(name):
    sampler = LAYERED[name](graph_of_all(), weight="w").without_edges([7, 8, 9])
    assert not sampler.estimand()[[7, 8, 9]].any()
    sampler.estimand().zero_()
    assert sampler.estimand().any()  # that was a copy
    # whose probabilities stay those of the whole graph: unbiased too, but rarer
    if not name.startswith("fastgcn"):
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
    many = (
        NeighborSampler(graph, [20_000], replace=replace)
        .without_edges(np.arange(0, size, 4))([0])
        .flows[0]
    )
    assert whole.parent_eid.equal(torch.from_numpy(left))
    assert bool((many.parent_eid % 4 != 0).all())
    # neighbours belong to the positions
    assert many.src_layer.parent_nid[many.indices].equal(many.parent_eid + 1)


def test_a_temporal_sampler_on_threads_at_once():
    """Threads that make the excerpt at the same time must not take it for the whole."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(50, size=600), rng.integers(50, size=600), num_nodes=50)
    graph.edata["time"] = torch.from_numpy(rng.integers(100, size=600))
    sampler = TemporalNeighborSampler(graph, [3])
    seeds = list(range(50))
    times = [60] * 50
    expected = fingerprint(sampler.without_edges(range(0, 600, 2))(seeds, times=times))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            fresh = sampler.without_edges(range(0, 600, 2))
            barrier = threading.Barrier(4)
            found = list[NodeFlow]()

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
