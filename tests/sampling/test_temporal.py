"""TemporalNeighborSampler: nothing later than the seed's time, the right law over the past, and a
reference.
"""

from __future__ import annotations

import itertools
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.graphs import STAMPS, events
from _support.sampler_reference import (
    chi_square,
    draw,
    ends_of,
    hash_of,
    key_of,
    layered,
    picked_positions,
    random_graph,
)
from _support.strategies import calls, edge_ids, masks
from _support.views import viewed
from _support.weighted_reference import assert_unbiased_exactly, uniform_law
from hypothesis import given, strategies as st

from nodeflow import Graph, NodeFlow, NodeFlowLoader
from nodeflow.sampling import TemporalNeighborSampler
from nodeflow.testing import assert_reproducible, assert_same_node_flow, assert_unbiased, graphs

# ---- the reference


def past(
    graph: Graph,
    column: list[Any],
    v: int,
    t: Any,
    direction: str = "in",
    strict: bool = False,
    since: Any = None,
):
    """Edges of ``v`` up to time ``t`` and not before its window, in the order of time, by looking
    at every edge.
    """
    end = 1 if direction == "in" else 0
    seen = [
        e
        for e, ends in enumerate(ends_of(graph))
        if ends[end] == v and (column[e] < t if strict else column[e] <= t)
    ]
    seen = [e for e in seen if since is None or column[e] >= t - since]
    return sorted(seen, key=lambda e: (column[e], e))


def bits_of(times: list[Any]) -> list[int]:
    array = np.array(times)
    return array.view(np.int64).tolist() if array.dtype.kind == "f" else array.tolist()


def reference(
    graph: Graph,
    column: list[Any],
    fanouts: list[int],
    seeds: list[int],
    times: list[Any],
    options,
    which,
    out,
):
    """Layers as (time, node), and per flow and destination the edges drawn, with their weights."""
    number = which["batch_number"]
    rank = {t: i for i, t in enumerate(sorted(set(times)))}
    identity = (0, hash_of(seeds), hash_of(bits_of(times))) if number is None else (1, number)
    root = key_of("temporal", options["seed"], which["epoch"], *identity)
    ends = ends_of(graph)
    near = 0 if options["direction"] == "in" else 1

    def drawn(flow: int, t: Any, v: int) -> list[tuple[int, float]]:
        k = fanouts[flow]
        seen = past(graph, column, v, t, options["direction"], options["strict"], options["since"])
        seen = [e for e in seen if e not in out]
        if options["strategy"] == "recent":
            return [(e, 1.0) for e in (seen[max(0, len(seen) - k) :] if k >= 0 else seen)]
        ident = v + graph.num_nodes * rank[t]
        new = draw(seen, k, options["replace"], key_of(root, flow), ident)
        return [(e, len(seen) / len(new)) for e in new]

    return layered(
        list(zip(times, seeds, strict=True)),
        len(fanouts),
        lambda flow, dst: [drawn(flow, *row) for row in dst],
        lambda one, row: (row[0], ends[one[0]][near]),
        options["include_dst"],
        options["reuse"],
    )


@st.composite
def cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1))
    # of int64, whose smallest is no time
    ends = st.integers(2**62, 2**63 - 1) | st.integers(1 - 2**63, -(2**62))
    stamp = draw(st.sampled_from([st.integers(0, 4), ends, st.sampled_from([-0.5, 0.0, 0.1, 7.0])]))
    column = draw(st.lists(stamp, min_size=graph.num_edges, max_size=graph.num_edges))
    seeds = draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    kind = np.array(draw(st.lists(stamp, min_size=1, max_size=1))).dtype
    near = st.sampled_from(column) if column else stamp
    times = draw(st.lists(near | stamp, min_size=len(seeds), max_size=len(seeds)))
    graph.edata["time"] = torch.from_numpy(np.array(column, kind))
    strategy = draw(st.sampled_from(["uniform", "recent"]))
    include_dst = draw(st.booleans())
    options = {
        "strategy": strategy,
        "replace": strategy == "uniform" and draw(st.booleans()),
        "strict": draw(st.booleans()),
        "since": draw(
            st.none()
            | st.sampled_from(
                [0, 1, 3, 2**62, 2**63 - 1] if kind.kind == "i" else [0.0, 0.1, 0.5, 6.9, 7.1]
            )
        ),
        "direction": draw(st.sampled_from(["in", "out"])),
        "include_dst": include_dst,
        "reuse": include_dst and draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=3))
    mask = draw(masks(graph))
    return (
        graph,
        column,
        fanouts,
        seeds,
        times,
        options,
        draw(calls),
        mask,
        draw(edge_ids(graph, 3)),
    )


@examples(100)
@given(cases())
def test_a_batch_is_what_the_reference_says(case):
    graph, column, fanouts, seeds, times, options, which, mask, gone = case
    sampler = viewed(
        TemporalNeighborSampler, graph.view(where=mask), fanouts, **options
    ).without_edges(gone)
    batch = sampler(seeds, times=times, **which)
    batch.validate()
    layers, flows = reference(
        graph, column, fanouts, seeds, times, options, which, {*np.flatnonzero(~mask), *gone}
    )
    rank = {t: i for i, t in enumerate(sorted(set(times)))}
    for layer, rows in zip(batch.layers, layers, strict=True):
        assert layer.parent_nid.tolist() == [v for _, v in rows]
        assert layer.context.tolist() == [rank[t] for t, _ in rows]
        assert layer.data["time"].tolist() == [t for t, _ in rows]
    for i, rows in enumerate(flows):
        assert picked_positions(batch, i) == [[e for e, _ in row] for row in rows]
        weight = [weight for row in rows for _, weight in row]
        assert batch.flows[i].weight.tolist() == np.array(weight, np.float32).tolist()
    found = [
        batch.seeds[batch.seed_index].tolist(),
        batch.back.data["time"][batch.seed_index].tolist(),
    ]
    assert found == [seeds, times]


def assert_blind_to_the_future(batch: NodeFlow, column: torch.Tensor, strict: bool = False) -> None:
    for flow in batch.flows:
        src, dst = flow.edges()
        limit = flow.dst_layer.data["time"][dst]
        edge = column[flow.parent_eid]
        assert bool((edge < limit).all() if strict else (edge <= limit).all())
        assert flow.src_layer.data["time"][src].equal(limit)  # on all hops it is the seed's time


# ---- the estimate


@pytest.mark.parametrize(
    ("replace", "fanout", "since"),
    [(False, 2, None), (True, 2, None), (False, 4, None), (False, 2, 3)],
)
def test_weighted_sums_are_unbiased_for_the_past(replace, fanout, since):
    seen = [0, 1, 3, 4, 6] if since is None else [0, 3, 4, 6]
    sampler = TemporalNeighborSampler(events(1000), [fanout], replace=replace, since=since)
    batch = sampler(range(1000), times=[5] * 1000)
    assert_unbiased_exactly(batch, 7, uniform_law(seen, fanout, replace=replace))
    assert sampler.estimand(time=5)[:7].nonzero().flatten().tolist() == seen


def test_every_subset_of_the_past_is_equally_likely():
    """Ten pairs of five past edges, over nodes and over epochs: of 50,000 draws an imbalance of 4 %
    is surely found, of 2,000 one of 20 %.
    """
    subsets = {
        frozenset(pair): i for i, pair in enumerate(itertools.combinations([0, 1, 3, 4, 6], 2))
    }

    def counts(rows: np.ndarray) -> np.ndarray:
        return np.bincount([subsets[frozenset(row)] for row in (rows % 7).tolist()], minlength=10)

    hubs = 50_000
    over_nodes = (
        TemporalNeighborSampler(events(hubs), [2])(range(hubs), times=[5] * hubs)
        .flows[0]
        .parent_eid
    )
    assert chi_square(counts(over_nodes.numpy().reshape(-1, 2))) < 1
    one = TemporalNeighborSampler(events(), [2])
    rows = [one([0], times=[5], epoch=k).flows[0].parent_eid.tolist() for k in range(2000)]
    assert chi_square(counts(np.array(rows))) < 1


def test_one_node_draws_independently_at_different_times():
    """Joint tables of 5 x 5 cells, 20,000 nodes: if one draw in 20 copied the other, n r^2 = 200
    and it is found.
    """
    hubs = 20_000
    sampler = TemporalNeighborSampler(events(hubs), [1])

    def drawn(seeds: Any, times: Any) -> np.ndarray:
        picked = sampler(seeds, times=times).flows[0].parent_eid.numpy() % 7
        return np.array([3, 0, 9, 1, 4, 9, 2])[picked]

    # the same past at 5 and at 6
    one, other = drawn([*range(hubs)] * 2, [5] * hubs + [6] * hubs).reshape(2, -1)
    base = drawn(range(hubs), [5] * hubs)
    # the times tell batches apart
    for first, second in ((one, other), (base, drawn(range(hubs), [6] * hubs))):
        assert chi_square(np.bincount(first * 5 + second, minlength=25)) < 1


@pytest.mark.parametrize("replace", [False, True])
def test_hub_of_70_000_of_which_60_000_are_past(replace):
    """64 bins, 60,000 draws: a modulo of 16 bits, or a past that ends one bin too early or late, is
    found.
    """
    time = np.random.default_rng(0).permutation(70_000)
    graph = Graph.from_edges(
        np.arange(1, 70_001), np.zeros(70_000, np.int64), edata={"time": torch.from_numpy(time)}
    )
    sampler = TemporalNeighborSampler(graph, [40], replace=replace)
    flows = [sampler([0], times=[59_999], epoch=k).flows[0] for k in range(1500)]
    drawn = np.concatenate([time[flow.parent_eid.numpy()] for flow in flows])
    edges = np.linspace(0, 60_000, 65).astype(np.int64)
    assert drawn.max() < 60_000
    assert chi_square(np.histogram(drawn, edges)[0], np.diff(edges) / 60_000 * len(drawn)) < 1
    assert flows[0].weight.tolist() == [1500] * 40


# ---- cases one can work out


def test_seeds_of_different_times_see_different_pasts():
    sampler = TemporalNeighborSampler(events(), [-1])
    batch = sampler([0, 0, 0, 0], times=[3, 0, 3, 100])
    assert batch.seeds.tolist() == [0, 0, 0]
    assert batch.seed_index.tolist() == [0, 1, 0, 2]
    # ties in the graph's order
    assert picked_positions(batch) == [[1, 6, 3, 4], [], [1, 6, 3, 4, 0, 5, 2]]
    assert batch.back.data["time"].tolist() == [3, 0, 100]
    assert batch.back.data["time"].dtype == torch.int64
    assert batch.flows[0].weight.tolist() == [1] * 11
    assert picked_positions(
        TemporalNeighborSampler(events(), [-1], strict=True)([0], times=[3])
    ) == [[1, 6]]


def test_integers_are_compared_exactly():
    """Above 2**53 float64 cannot tell these apart."""
    big = 2**53
    graph = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([big + 1, big])})
    sampler = TemporalNeighborSampler(graph, [-1])
    for times in (
        [big, big + 1],
        np.array([big, big + 1], np.uint64),
        torch.tensor([big, big + 1]),
    ):
        batch = sampler([0, 0], times=times)
        assert picked_positions(batch) == [[1], [1, 0]]
        assert batch.back.data["time"].tolist() == [big, big + 1]


def test_times_of_every_kind():
    graph = events()
    expected = picked_positions(TemporalNeighborSampler(graph, [-1])([0], times=[5]))
    for dtype in (
        torch.int8,
        torch.uint8,
        torch.int32,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    ):
        graph.edata["t"] = STAMPS.to(dtype)
        sampler = TemporalNeighborSampler(graph, [-1], time="t")
        assert picked_positions(sampler([0], times=[5])) == expected
        kinds = (
            [[5.5], np.array([5], np.float32)]
            if dtype.is_floating_point
            else [np.array([5], np.uint8), (5,)]
        )
        assert all(picked_positions(sampler([0], times=times)) == expected for times in kinds)
    floats = TemporalNeighborSampler(graph, [-1], time="t")
    assert_same_node_flow(floats([0], times=[-0.0]), floats([0], times=[0.0]))
    assert floats([0], times=[5]).back.data["time"].dtype == torch.float64


def test_the_times_are_read_once():
    """Also where the edges are in order already, and nothing need be sorted."""
    for stamps in (torch.arange(7), torch.arange(7).flip(0)):
        graph = Graph.from_edges(range(1, 8), [0] * 7, edata={"time": stamps.clone()})
        for other in (
            graph,
            Graph(np.asarray(graph.indptr), np.asarray(graph.indices), edata=dict(graph.edata)),
        ):
            sampler = TemporalNeighborSampler(other, [-1])
            before = picked_positions(sampler([0], times=[3]))
            other.edata["time"].zero_()
            assert picked_positions(sampler([0], times=[3])) == before
            latest = stamps.argmax().view(1)
            assert picked_positions(sampler.without_edges(latest)([0], times=[3])) == before
            other.edata["time"].copy_(stamps)


def test_times_of_no_seeds_have_the_type_of_the_column():
    for column, dtype in (("time", torch.int64), ("w", torch.float64)):
        batch = TemporalNeighborSampler(events(), [2, 2], time=column)([], times=[])
        assert batch.front.data["time"].dtype == dtype


def test_times_with_fractions_through_a_loader():
    graph = random_graph(2)
    graph.edata["time"] = torch.arange(200.0).flip(0) / 3
    sampler = TemporalNeighborSampler(graph, [3, 2], seed=9)
    ids = np.arange(40).repeat(2)
    times = np.tile([20.5, 60.0], 40)
    at = partial(sampler, times=times)
    assert_reproducible(at, ids)
    copied = pickle.loads(pickle.dumps(sampler.without_edges([3, 4])))
    assert_same_node_flow(copied(ids, times=times), sampler.without_edges([3, 4])(ids, times=times))
    for batch in NodeFlowLoader(sampler, ids, 16, True, times=times, num_workers=2):
        assert_blind_to_the_future(batch, graph.edata["time"].double())


def test_a_loader_keeps_times_exact():
    """A list of floats is float64: in float32, 1,254,192,988.5 would be 1,254,193,024, later than
    the edge.
    """
    graph = Graph.from_edges(
        [1], [0], edata={"time": torch.tensor([1254193000.0], dtype=torch.float64)}
    )
    (batch,) = NodeFlowLoader(TemporalNeighborSampler(graph, [1]), [0], times=[1254192988.5])
    assert batch.flow_sizes == (0,)
    assert batch.back.data["time"].tolist() == [1254192988.5]


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"strict": True, "since": 60}, {"weight": "a"}]
)
def test_draws_in_proportion_to_a_column(options):
    rng = np.random.default_rng(4)
    graph = Graph.from_edges(rng.integers(0, 30, 400), np.repeat([30, 31, 0, 1], 100), num_nodes=32)
    graph.edata["time"] = torch.from_numpy(rng.integers(0, 100, 400))
    graph.edata["p"] = torch.from_numpy(
        np.where(rng.random(400) < 0.3, 0, rng.exponential(size=400))
    )
    graph.edata["a"] = torch.from_numpy(rng.random(400))
    sampler = viewed(TemporalNeighborSampler, graph, [6], prob="p", seed=3, **options)
    assert_unbiased(sampler, [30, 31], times=[70, 70], draws=800)
    assert_unbiased(sampler.without_edges(range(0, 100, 7)), [30], times=[70], draws=800)
    every = viewed(TemporalNeighborSampler, graph, [-1], prob="p", **options)(
        [30, 31], times=[70, 40]
    )
    counts = {time: every.flows[0].parent_eid[every.back.context[every.flows[0].edges()[1]] == i].tolist()
              for i, time in enumerate([40, 70])}  # fmt: skip
    for node, time in ((30, 70), (31, 40)):
        seen = past(graph, graph.edata["time"].tolist(), node, time, "in", options.get("strict", False),
                    options.get("since"))  # fmt: skip
        assert counts[time] == [e for e in seen if graph.edata["p"][e] > 0]
