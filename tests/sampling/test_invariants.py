"""Properties of every sampled NodeFlow, on generated graphs, seeds and options."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, LAYERED, graph_of_all
from _support.sampler_reference import fingerprint, picked_positions, sample, star
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nodeflow import Graph
from nodeflow.random import Random, derive_key
from nodeflow.sampling import FastGCNSampler, LaborSampler, LadiesSampler, NeighborSampler, RandomWalkSampler, Sampler
from nodeflow.sampling._base import Call
from nodeflow.sampling.base import Choice, SamplerBase
from nodeflow.testing import graphs, seeds


@st.composite
def cases(draw: st.DrawFn):
    nodes = draw(st.integers(1, 12))
    ids = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(ids, ids), max_size=60))
    include_dst = draw(st.booleans())
    options = {
        "replace": draw(st.booleans()),
        "direction": draw(st.sampled_from(["in", "out"])),
        "include_dst": include_dst,
        "reuse": include_dst and draw(st.booleans()),
        "seed": draw(st.integers(-(2**63), 2**63)),
    }
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3, 40]), min_size=1, max_size=4))
    seeds = draw(st.lists(ids, max_size=8))
    src, dst = ([end[i] for end in edges] for i in (0, 1))
    graph = Graph.from_edges(src, dst, num_nodes=nodes)
    if draw(st.booleans()):  # the same edges, ids in the order of storage, and 64 bits wide
        order = np.asarray(graph.stored_edge_ids)
        edges = [edges[e] for e in order]
        graph = Graph(np.asarray(graph.indptr), graph.indices.astype(np.int64), copy=False)
    run = {"epoch": draw(st.integers(0, 2**40)), "batch_number": draw(st.none() | st.integers(0, 2**40))}
    return graph, edges, fanouts, seeds, options, run


@settings(max_examples=80, deadline=None)
@given(cases())
def test_a_batch_is_what_the_reference_says(case):
    graph, edges, fanouts, seeds, options, run = case
    batch = NeighborSampler(graph, fanouts, **options)(seeds, **run)
    layers, flows = sample(edges, fanouts, seeds, **options, **run)
    assert [layer.parent_nid.tolist() for layer in batch.layers] == layers
    assert [picked_positions(batch, i) for i in range(batch.num_flows)] == flows


@settings(max_examples=80, deadline=None)
@given(cases())
def test_every_batch_is_valid(case):
    graph, edges, fanouts, seeds, options, run = case
    before = [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)]
    batch = NeighborSampler(graph, fanouts, **options)(seeds, **run)
    batch.validate()
    assert batch.seeds.tolist() == list(dict.fromkeys(seeds))
    assert batch.seeds[batch.seed_index].tolist() == seeds
    near, end = (0, 1) if options["direction"] == "in" else (1, 0)
    degrees = np.bincount([e[end] for e in edges], minlength=graph.num_nodes)
    for i, flow in enumerate(batch.flows):
        above, below = flow.dst_layer.parent_nid, flow.src_layer.parent_nid
        if options["include_dst"]:
            assert below[: len(above)].equal(above)
            assert flow.take_dst(below).equal(above)
            assert flow.take_dst(below).data_ptr() == below.data_ptr()  # a prefix, not a copy
        else:
            assert below.equal(below.unique())
        for v, picked in zip(above.tolist(), picked_positions(batch, i), strict=True):
            assert all(edges[e][end] == v for e in picked)
            if not options["reuse"]:
                full = fanouts[i] < 0 or (degrees[v] <= fanouts[i] and not options["replace"])
                assert len(picked) == (degrees[v] if full or degrees[v] == 0 else fanouts[i])
            if not options["replace"]:
                assert len(set(picked)) == len(picked)
        src, dst = flow.edges()
        assert below[src].tolist() == [edges[e][near] for e in flow.parent_eid.tolist()]
        assert above[dst].tolist() == [edges[e][end] for e in flow.parent_eid.tolist()]
        # weights of a destination add up to its degree
        total = torch.zeros(len(above)).index_add_(0, dst, flow.weight)
        torch.testing.assert_close(total, torch.from_numpy(degrees[above.numpy()]).float())
    assert [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)] == before


@settings(max_examples=50, deadline=None)
@given(cases())
def test_a_batch_is_the_same_again_and_elsewhere(case):
    graph, _, fanouts, seeds, options, run = case
    sampler = NeighborSampler(graph, fanouts, **options)
    expected = fingerprint(sampler(seeds, **run))
    assert fingerprint(sampler(torch.tensor(seeds, dtype=torch.int32), **run)) == expected
    assert fingerprint(pickle.loads(pickle.dumps(sampler))(seeds, **run)) == expected
    copied = pickle.loads(pickle.dumps(sampler(seeds, **run)))
    assert fingerprint(copied) == expected
    assert copied.parent is graph


class Scripted(Sampler):
    """Chooses what hypothesis says: any subset, in any order, edges repeated."""

    def __init__(self, graph: Graph, num_flows: int, numbers: list[int], **options) -> None:
        super().__init__(graph, num_flows, **options)
        self.numbers = numbers

    def choose(self, dst, step):
        numbers = itertools.cycle(self.numbers)
        edges = self.candidates(dst)
        indptr, positions = [0], []
        ends = edges.indptr.tolist()
        for begin, end in itertools.pairwise(ends):
            wanted = next(numbers) if begin < end else 0
            positions += [begin + next(numbers) % (end - begin) for _ in range(wanted)]
            indptr.append(len(positions))
        places = edges.positions[np.array(positions, np.int64)]
        return Choice(indptr, places)


@settings(max_examples=50, deadline=None)
@given(cases(), st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_any_choice_is_assembled_right(case, numbers):
    graph, edges, fanouts, seeds, options, _ = case
    del options["replace"], options["seed"]
    batch = Scripted(graph, len(fanouts), numbers, **options)(seeds)
    batch.validate()
    near, end = (0, 1) if options["direction"] == "in" else (1, 0)
    for flow in batch.flows:
        src, dst = flow.edges()
        assert flow.src_layer.parent_nid[src].tolist() == [edges[e][near] for e in flow.parent_eid.tolist()]
        assert flow.dst_layer.parent_nid[dst].tolist() == [edges[e][end] for e in flow.parent_eid.tolist()]


@pytest.mark.parametrize("name", LAYERED)
@settings(max_examples=15)
@given(data=st.data())
def test_the_edges_of_every_family_are_those_of_the_graph(name, data):
    graph = data.draw(graphs(edge_columns={"w": ()}))
    graph.edata["w"] = graph.edata["w"].abs() * (graph.edata["w"] > -4)
    numbers = torch.tensor(data.draw(st.lists(st.integers(0, 5), min_size=graph.num_edges, max_size=graph.num_edges)))
    graph.edata["p"], graph.edata["type"], graph.edata["old"] = graph.edata["w"], numbers.long() % 3, numbers > 1
    assume(name != "neighbor, types" or {0, 1, 2} <= set(graph.edata["type"].tolist()))
    options = {"direction": data.draw(st.sampled_from(["in", "out"]))}
    if not any(word in name for word in ("reuse", "disjoint", "dependent")):
        options["include_dst"] = data.draw(st.booleans())
    batch = LAYERED[name](graph, **options)(data.draw(seeds(graph)))
    batch.validate()
    ends = torch.stack(graph.edges())
    for flow in batch.flows:
        src, dst = flow.edges()
        pairs = torch.stack([flow.src_layer.parent_nid[src], flow.dst_layer.parent_nid[dst]])
        assert ends[:, flow.parent_eid].equal(pairs if options["direction"] == "in" else pairs.flip(0))
        if "replace" not in name:
            assert len(set(zip(dst.tolist(), flow.parent_eid.tolist(), strict=True))) == flow.num_edges
        if "prob" in name:
            assert (graph.edata["p"][flow.parent_eid] > 0).all()
        if "filter" in name:
            assert graph.edata["old"][flow.parent_eid].all()


GRAPH = graph_of_all()
EXTREME = [0, 1, -1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**64 + 1, -(2**64), -(2**64) - 1, 2**128]


class EveryThird(Sampler):
    """A sampler of a user's own."""

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 1 / 3, prob=1 / 3)


def numbers(sampler: SamplerBase, **which: int) -> tuple[int, int]:
    draw = sampler._draw_of(Call(which.get("epoch", 0), which.get("batch_number", 0)), np.zeros(0, np.int64))
    return draw.key, draw.epoch_key


def test_families_of_different_classes_have_keys_of_their_own():
    made = [make(GRAPH) for make in FAMILIES.values()] + [EveryThird(GRAPH, 2)]
    for one, other in itertools.combinations(made, 2):
        related = issubclass(type(one), type(other)) or issubclass(type(other), type(one))
        same = one.draws_as == other.draws_as
        assert same == (numbers(one) == numbers(other))
        assert same == (type(one) is type(other) or (related and isinstance(one, NeighborSampler)))
        assert same or set(numbers(one)).isdisjoint(numbers(other))


def test_walks_of_one_step_are_not_the_draws_of_neighbors():
    # with one step per walk both draw neighbours with replacement; equal keys gave equal draws at every hub
    graph = star(8, 200)
    hubs = range(8, 208) if graph.in_degrees()[0] == 0 else range(200)
    hubs = graph.in_degrees().nonzero().squeeze(1)[: len(hubs)]
    walks = RandomWalkSampler(graph, 1, num_walks=2, walk_length=1, restart=0)(hubs, batch_number=0).flows[0]
    draws = NeighborSampler(graph, [2], replace=True)(hubs, batch_number=0).flows[0]
    equal = 0
    for v in range(len(hubs)):
        sets = []
        for flow in (walks, draws):
            row = flow.indices[flow.indptr[v] : flow.indptr[v + 1]]
            sets.append(set(flow.src_layer.parent_nid[row].tolist()))
        equal += sets[0] == sets[1]
    # two of 8: equal with probability 1/64 * 8 * ... below 1/16; of 200 hubs more than 40 has probability below 1e-9
    assert equal <= 40


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda g: LaborSampler(g, [40], iterations=1), lambda g: LadiesSampler(g, [40], draw="poisson")),
        (lambda g: LaborSampler(g, [40], iterations=1), lambda g: FastGCNSampler(g, [40], draw="poisson")),
        (lambda g: LadiesSampler(g, [40], draw="poisson"), lambda g: FastGCNSampler(g, [40], draw="poisson")),
    ],
)
def test_poisson_draws_of_different_classes_are_independent(one, other):
    # every one keeps each of the 200 neighbours with probability 1/5; with common numbers they keep the same ones
    graph = star(200)
    hub = [int(graph.in_degrees().argmax())]
    kept = [set(picked_positions(make(graph)(hub, batch_number=0))[0]) for make in (one, other)]
    assert 15 < len(kept[0]) < 70
    assert len(kept[0] & kept[1]) < 0.6 * min(map(len, kept))  # about 8 of 40; above 24 with probability below 1e-7


def test_labor_samplers_share_their_numbers():
    graph = star(50)
    hub = [int(graph.in_degrees().argmax())]
    poisson, sequential = (LaborSampler(graph, [10], method=method) for method in ("poisson", "sequential"))
    for epoch in range(20):
        sets = [set(picked_positions(s(hub, epoch=epoch))[0]) for s in (poisson, sequential)]
        assert sets[0] <= sets[1] or sets[1] <= sets[0]  # the smallest r_t, about ten or exactly ten


@pytest.mark.parametrize("what", ["seed", "epoch", "batch_number"])
def test_all_bits_count(what):
    made = []
    for value in EXTREME:
        sampler = NeighborSampler(GRAPH, [2], seed=value if what == "seed" else 0)
        made.append(numbers(sampler, **({} if what == "seed" else {what: value}))[0])
        if what != "seed":
            sampler([1, 2, 3], **{what: value})
    assert len(set(made)) == len(EXTREME)


def test_keys_of_any_size_differ():
    assert len({Random(key).key for key in EXTREME}) == len(EXTREME)
    assert Random(2**64 - 1).key == 2**64 - 1
    assert len({derive_key(key) for key in EXTREME}) == len(EXTREME)
    assert derive_key(1, 0) != derive_key(2**64) != derive_key(0, 1)
    assert not torch.equal(Random(0).uniform([1]), Random(2**64).uniform([1]))
