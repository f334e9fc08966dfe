"""Faults planted in the real code on purpose: each must fail the very checks that the real code passes.

The checks themselves are quick. The faults are slow: a changed loop is compiled anew, without a cache.

Kernels are compiled from their own source with one piece of text replaced; estimator weights and orders are changed on
their way. Where a check passes in spite of its fault, the check is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
from _support.mutation_tools import mutated
from _support.sampler_families import LAYERED, graph_of_all
from _support.sampler_reference import Stream, chi_square, star
from _support.weighted_reference import crowd, law_of, subset_table
from test_uniform import drawn, subset_counts

from nodeflow import Graph, NeighborSampler, Sampler
from nodeflow._kernels import rng as random_kernels
from nodeflow._kernels.draw import sampford, systematic
from nodeflow._kernels.draw import uniform as draw_kernels
from nodeflow.flow import Flow
from nodeflow.sampling import _sampler as sampler
from nodeflow.testing import assert_unbiased

MODULO = (
    "return product >> _HALF, state",
    "return (mix(state) & U64(0xFFFF)) % bound, state",
)


def check_subsets() -> None:
    """Chi-square over the subsets that nodes draw, as in test_uniform."""
    for degree, fanout in ((7, 3), (5, 1)):
        assert chi_square(subset_counts(drawn(degree, fanout, hubs=50_000), degree, fanout)) < 1


def check_hub() -> None:
    """The same over 64 bins of the 70,000 edges of a hub."""
    many = NeighborSampler(star(70_000, hubs=20), [40])
    rows = np.concatenate([many(range(20), batch_number=k).flows[0].parent_eid.numpy() for k in range(250)]) % 70_000
    edges = np.linspace(0, 70_000, 65).astype(np.int64)
    assert chi_square(np.histogram(rows, bins=edges)[0], np.diff(edges) / 70_000 * len(rows)) < 1


def check_order() -> None:
    """Seeds keep their order, and ``seed_index`` restores repeats."""
    seeds = [5, 11, 5, 30]
    batch = NeighborSampler(graph_of_all(), [2, 3])(seeds)
    assert batch.seeds[batch.seed_index].tolist() == seeds
    assert batch.seeds.tolist() == [5, 11, 30]


def check_edges() -> None:
    """Edges are edges of the graph, between the nodes that they join."""
    NeighborSampler(graph_of_all(), [2, 3])([5, 11, 30]).validate()


@pytest.mark.parametrize("check", [check_subsets, check_hub, check_order, check_edges])
def test_the_real_draws_pass(check):
    check()


FLOYD = "U64(last + 1)"
KERNELS: dict[str, tuple[list[tuple[str, str]], Callable[[], None]]] = {
    "Floyd: bound one too small": ([(FLOYD, "U64(max(last, 1))")], check_subsets),
    "Floyd: always the whole list": ([(FLOYD, "U64(degree[i])")], check_subsets),
    "Floyd: a repeat is kept": ([("pick = pick + before * (U64(last) - pick)", "pass")], check_subsets),
    "one stream for all nodes": ([("state = stream(key, ident[i])", "state = stream(key, 0)")], check_subsets),
    "the neighbour of the next position": (
        [("indices[U64(positions[U64(w)])]", "indices[U64(positions[U64(w)] ^ 1)]")],
        check_edges,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_faults_in_the_draw(name, monkeypatch):
    changes, check = KERNELS[name]
    monkeypatch.setattr(draw_kernels, "draw_without", mutated(draw_kernels, *changes)["draw_without"])
    with pytest.raises((AssertionError, ValueError)):
        check()


def check_weighted() -> None:
    """Chi-square over the subsets that nodes draw in proportion to weights, by each of the methods."""
    for weights, k in (([3, 1, 4, 4, 4], 2), ([3, 1, 4, 1, 5, 3], 3), ([8, 2, 5, 1, 1], 3)):
        law, hubs = law_of(weights, k), 40_000
        table = subset_table(NeighborSampler(crowd(weights, hubs), [k], prob="w")(range(hubs)), len(weights))
        assert set(table) <= set(law)
        counts = np.array([table.get(subset, 0) for subset in law])
        assert chi_square(counts, np.array([float(p) * hubs for p in law.values()])) < 1


def test_the_real_weighted_draws_pass():
    check_weighted()


WEIGHTED: dict[str, tuple[ModuleType, str, list[tuple[str, str]]]] = {
    "Sampford: all stay": (sampford, "draw_sampford", [("bad |= not stays", "pass")]),
    "Sampford: repeats stay": (sampford, "draw_sampford", [("bad |= U64(positions[U64(v)]) == p", "pass")]),
    "Sampford: one number twice": (sampford, "draw_sampford", [("- 1) + stop - start)", "- 1) + stop - start - 1)")]),
    "systematic: no exchange": (systematic, "draw_systematic", [("elif chance < limit", "elif chance < 0")]),
    "systematic: a border forgotten": (systematic, "draw_systematic", [("if upto > border:", "if upto < 0:")]),
    "systematic: nothing certain": (systematic, "draw_systematic", [("if certain == before or", "if True or")]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHTED)
def test_faults_in_weighted_draws(name, monkeypatch):
    module, kernel, changes = WEIGHTED[name]
    monkeypatch.setattr(module, kernel, mutated(module, *changes)[kernel])
    with pytest.raises(AssertionError):
        check_weighted()


@pytest.mark.slow
def test_a_modulo_instead_of_a_bounded_draw(monkeypatch):
    """16 random bits modulo the degree: 4,464 of 70,000 edges are never drawn."""
    fault = mutated(random_kernels, MODULO)["bounded"]
    monkeypatch.setattr(random_kernels, "bounded", fault)
    monkeypatch.setattr(draw_kernels, "draw_without", mutated(draw_kernels)["draw_without"])
    with pytest.raises(AssertionError):
        check_hub()


def test_seeds_reversed(monkeypatch):
    real = sampler.assemble
    monkeypatch.setattr(sampler, "assemble", lambda g, e, seeds, *a, **o: real(g, e, seeds[::-1], *a, **o))
    with pytest.raises(AssertionError):
        check_order()


# ---- estimator weights of every family


def weighted_graph() -> Graph:
    """Edge weights of many sizes, so that a weight at another edge is a wrong one."""
    graph = graph_of_all()
    graph.edata["w"] = torch.exp(torch.linspace(-2, 2, graph.num_edges))[torch.randperm(
        graph.num_edges, generator=torch.Generator().manual_seed(1)
    )]  # fmt: skip
    return graph


def check_unbiased(name: str) -> None:
    made = LAYERED[name](weighted_graph(), weight="w")
    assert isinstance(made, Sampler)
    assert_unbiased(made, range(12), draws=400)


FAULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "weights dropped": lambda w: torch.ones_like(w),
    "weights at the wrong edges": lambda w: w.roll(1),
}


@pytest.mark.slow  # what the planted faults below are measured against; the tests of each sampler look at its weights
@pytest.mark.parametrize("name", LAYERED)
def test_the_real_weights_pass(name):
    check_unbiased(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERED)
def test_faults_in_the_weights(name, monkeypatch):
    real = Flow.weight.fget
    assert real is not None
    for fault in ("weights dropped", "weights at the wrong edges"):
        with monkeypatch.context() as change:
            change.setattr(Flow, "weight", property(lambda flow, fault=fault: FAULTS[fault](real(flow))))
            with pytest.raises(AssertionError, match="biased"):
                check_unbiased(name)


@pytest.mark.slow
def test_a_bias_of_two_percent_is_found(monkeypatch):
    real = Flow.weight.fget
    assert real is not None
    monkeypatch.setattr(Flow, "weight", property(lambda flow: 1.02 * real(flow)))
    with pytest.raises(AssertionError, match="biased"):
        assert_unbiased(NeighborSampler(graph_of_all(), [3, 3]), range(12), draws=6000)


def test_the_destinations_forced_in_without_a_draw():
    """The published LADIES code: drawn without replacement, weighted 1 / probability, and the destinations added."""

    class Forced(Sampler):
        def choose(self, dst, step):
            edges = self.candidates(dst)
            nodes, place = edges.src.unique(return_inverse=True)
            q = torch.zeros(len(nodes), dtype=torch.float64).index_add_(0, place, edges.edge_weight**2)
            q = q / q.sum()
            size = min(6, len(nodes))
            keys = -step.random.uniform(nodes).log() / q  # the smallest are a draw without replacement
            picked = torch.zeros(len(nodes), dtype=torch.bool)
            picked[keys.argsort()[:size]] = True
            picked |= torch.isin(nodes, dst)
            keep = picked[place]
            return edges.select(keep, weight=(edges.edge_weight / (size * q[place]))[keep].float())

    with pytest.raises(AssertionError, match="biased"):
        assert_unbiased(Forced(graph_of_all(), 1), range(12), draws=1000)


Below = Callable[[Stream, int], int]


def fair(rng: Stream, bound: int) -> int:
    return rng.below(bound)


def modulo_of_16_bits(rng: Stream, bound: int) -> int:
    return (rng.word() & 0xFFFF) % bound


def float32_scaling(rng: Stream, bound: int) -> int:
    return min(int(np.float32(rng.word() >> 40) / np.float32(2**24) * np.float32(bound)), bound - 1)


def multiply_without_rejection(rng: Stream, bound: int, width: int = 8) -> int:
    # few bits, so that what 32 bits hide well is large enough to be seen
    return ((rng.word() >> (64 - width)) * bound) >> width


def floyd(rng: Stream, degree: int, count: int, below: Below = fair) -> list[int]:
    picked: list[int] = []
    for last in range(degree - count, degree):
        t = below(rng, last + 1)
        picked.append(last if t in picked else t)
    return picked


def one_too_few(rng: Stream, degree: int, count: int) -> list[int]:
    """The bound is ``last``, not ``last + 1``."""
    picked: list[int] = []
    for last in range(degree - count, degree):
        t = rng.below(max(last, 1))
        picked.append(last if t in picked else t)
    return picked


def always_the_whole_list(rng: Stream, degree: int, count: int) -> list[int]:
    """The bound is the degree in every step, so that a replacement may be an edge drawn before."""
    picked: list[int] = []
    for j in range(count):
        t = rng.below(degree)
        picked.append(degree - count + j if t in picked else t)
    return picked


def linear_probe(rng: Stream, degree: int, count: int) -> list[int]:
    """A pick made before is replaced by the next free edge."""
    picked: list[int] = []
    for _ in range(count):
        t = rng.below(degree)
        while t in picked:
            t = (t + 1) % degree
        picked.append(t)
    return picked


def counts(draw: Callable[[Stream, int, int], list[int]], degree: int, fanout: int, number: int = 20_000) -> np.ndarray:
    rows = np.array([draw(Stream(1, ident), degree, fanout) for ident in range(number)])
    return subset_counts(rows, degree, fanout)


def found(draw: Callable[[Stream, int, int], list[int]], degree: int, fanout: int) -> bool:
    try:
        return chi_square(counts(draw, degree, fanout)) > 1
    except AssertionError:  # an edge was drawn twice
        return True


def test_the_true_method_passes():
    assert chi_square(counts(floyd, 7, 3)) < 1
    assert chi_square(counts(floyd, 5, 1)) < 1


@pytest.mark.parametrize("fault", [one_too_few, always_the_whole_list, linear_probe])
def test_faults_in_floyds_method_are_found(fault):
    assert found(fault, 7, 3)


@pytest.mark.parametrize("below", [modulo_of_16_bits, multiply_without_rejection])
def test_biased_bounded_draws_are_found(below):
    degree = 70_000 if below is modulo_of_16_bits else 192
    numbers = np.array([below(Stream(2, ident), degree) for ident in range(20_000)])
    edges = np.linspace(0, degree, 65).astype(np.int64)
    by_place = chi_square(np.histogram(numbers, bins=edges)[0], np.diff(edges) / degree * len(numbers))
    by_residue = chi_square(np.bincount(numbers % 3, minlength=3))
    assert max(by_place, by_residue) > 1


def test_float32_scaling_is_found():
    """With 24 bits, a bound of 3 * 2**23 leaves every third number out of reach."""
    bound = 3 * 2**23
    numbers = np.array([float32_scaling(Stream(3, ident), bound) for ident in range(20_000)])
    assert chi_square(np.bincount(numbers % 3, minlength=3)) > 1
    numbers = np.array([fair(Stream(3, ident), bound) for ident in range(20_000)])
    assert chi_square(np.bincount(numbers % 3, minlength=3)) < 1


def test_a_shared_stream_is_found():
    """Two destinations that draw from one stream: the joint table sees it."""
    first = np.array([Stream(4, ident).below(7) for ident in range(20_000)])
    assert chi_square(np.bincount(first * 7 + first, minlength=49)) > 1
    second = np.array([Stream(4, ident + 1).below(7) for ident in range(20_000)])
    assert chi_square(np.bincount(first * 7 + second, minlength=49)) < 1
