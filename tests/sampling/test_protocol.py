"""The protocol: samplers of one's own, in few lines, with every option the built-in ones have."""

from __future__ import annotations

import itertools

import pytest
import torch
from _support.protocol_tools import MODES, Bernoulli, With
from _support.sampler_reference import fingerprint, random_graph, star
from _support.views import viewed
from torch import Tensor

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, Sampler
from nodeflow.sampling.base import Choice, Step

# ---- a Bernoulli sampler in every mode


@pytest.mark.parametrize("options", MODES, ids=str)
def test_processes_draw_the_same_as_a_call(options):
    graph = random_graph(0, 60, 900)
    sampler = viewed(Bernoulli, graph, 2, 0.5, **options)
    alone = [fingerprint(sampler(seeds)) for seeds in torch.arange(60).split(16)]
    for workers in (0, 2):
        assert [
            fingerprint(b) for b in NodeFlowLoader(sampler, range(60), 16, num_workers=workers)
        ] == alone


# ---- what choose is called with


def test_choose_sees_flows_from_the_last_and_distinct_destinations():
    graph = random_graph(3)
    seen: list[tuple[int, list[int]]] = []

    def note(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        assert dst.dtype == torch.int64
        seen.append((step.flow, dst.tolist()))
        edges = sampler.candidates(dst)
        return edges.select(torch.ones(len(edges), dtype=torch.bool))

    batch = With(graph, note, 3)([7, 3, 7])
    assert [flow for flow, _ in seen] == [2, 1, 0]
    assert [dst for _, dst in seen] == [layer.parent_nid.tolist() for layer in batch.layers][:0:-1]
    seen.clear()
    batch = With(graph, note, 3, reuse=True)([7, 3, 7])
    assert [flow for flow, _ in seen] == [2, 1, 0]
    # together once each, in the order of the layers
    assert [v for _, dst in seen for v in dst] == batch.layers[1].parent_nid.tolist()


def test_random_numbers_of_a_step():
    """Fixed by seed, epoch, batch and flow, and different where one of these is."""
    graph = star(3)
    keys: list[int] = []

    def note(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        keys.append(step.random.key)
        return Choice([0] * (len(dst) + 1), [])

    calls = list(itertools.product([0, 1], [0, 1], [None, 0, 1, 5]))
    for seed, epoch, batch in calls * 2:
        With(graph, note, 2, seed=seed)([0], epoch=epoch, batch_number=batch)
    half = len(keys) // 2
    assert keys[:half] == keys[half:]
    assert len(set(keys[:half])) == half == 2 * len(calls)


# ---- samplers inside samplers


def test_nested_samplers():
    """One that calls another, whole batches of it, while its own numbering is under way."""
    graph = random_graph(4, 200, 3000)
    inner = NeighborSampler(graph, [4, -1], seed=9)

    def nested(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        batch = inner(dst[:1].tolist() * 2 + [0])
        batch.validate()
        assert fingerprint(batch) == expected.setdefault(
            int(dst[0]), fingerprint(inner(dst[:1].tolist() * 2 + [0]))
        )
        edges = sampler.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 0.3, weight=1 / 0.3)

    expected: dict[int, str] = {}
    plain = [Bernoulli(graph, 3, 0.3, include_dst=dst)([5, 6, 5]) for dst in (True, False)]
    for include_dst, other in zip((True, False), plain, strict=True):
        assert fingerprint(
            With(graph, nested, 3, include_dst=include_dst)([5, 6, 5])
        ) == fingerprint(other)


def test_a_sampler_that_delegates_its_choice():
    graph = random_graph(5)

    class Delegating(Sampler):
        draws_as = NeighborSampler.draws_as

        def __init__(self, graph: Graph) -> None:
            super().__init__(graph, 2)
            self.inner = NeighborSampler(graph, [3, 2])

        def choose(self, dst: Tensor, step: Step) -> Choice:
            return self.inner.choose(dst, step)

    assert fingerprint(Delegating(graph)([1, 2])) == fingerprint(
        NeighborSampler(graph, [3, 2])([1, 2])
    )


def test_an_exception_in_choose_reaches_the_caller_and_leaves_no_trace():
    class OwnError(Exception):
        pass

    def fail(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        if step.flow == 0:
            raise OwnError("not today")
        return sampler.candidates(dst).select([0])

    graph = random_graph(6)
    expected = fingerprint(NeighborSampler(graph, [3, 3])(range(40)))
    with pytest.raises(OwnError, match="not today"):
        With(graph, fail, 2)(range(40))
    assert fingerprint(NeighborSampler(graph, [3, 3])(range(40))) == expected


def test_a_sampler_without_choose_cannot_be_made():
    class Nothing(Sampler):
        pass

    with pytest.raises(TypeError, match="choose"):
        Nothing(star(2), 1)
