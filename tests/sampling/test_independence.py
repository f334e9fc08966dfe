"""Samplers of different classes have random numbers of their own, and so have all seeds, epochs and batch numbers."""

from __future__ import annotations

import itertools

import pytest
import torch
from _support.sampler_families import FAMILIES, graph_of_all
from _support.sampler_reference import picked_positions, star

from nodeflow.random import Random, derive_key
from nodeflow.sampling import FastGCNSampler, LaborSampler, LadiesSampler, NeighborSampler, RandomWalkSampler, Sampler
from nodeflow.sampling.base import SamplerBase

GRAPH = graph_of_all()
EXTREME = [0, 1, -1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**64 + 1, -(2**64), -(2**64) - 1, 2**128]


class EveryThird(Sampler):
    """A sampler of a user's own."""

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 1 / 3, prob=1 / 3)


def numbers(sampler: SamplerBase, **which: int) -> tuple[int, int]:
    draw = sampler._draw(which.get("epoch", 0), which.get("batch_number", 0))
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
