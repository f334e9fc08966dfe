"""Faults planted in the real code on purpose: each must fail the very checks that the real code
passes.

The checks themselves are quick. The faults are slow: a changed loop is compiled anew, without a
cache.

Kernels are compiled from their own source with one piece of text replaced; estimator weights and
orders are changed on their way. Where a check passes in spite of its fault, the check is worth
nothing.
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
from nodeflow._kernels.draw import systematic, uniform as draw_kernels, weighted as sampford
from nodeflow.flow import Flow
from nodeflow.sampling import _sampler as sampler
from nodeflow.testing import assert_unbiased


def plant(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, kernel: str, *changes: tuple[str, str]
) -> None:
    """Let draws run a kernel with a fault, until the test ends."""
    monkeypatch.setattr(module, kernel, mutated(module, *changes)[kernel])


def check_subsets() -> None:
    """Chi-square over the subsets that nodes draw, as in test_uniform."""
    for degree, fanout in ((7, 3), (5, 1)):
        assert chi_square(subset_counts(drawn(degree, fanout, hubs=50_000), degree, fanout)) < 1


def check_hub() -> None:
    """The same over 64 bins of the 70,000 edges of a hub."""
    many = NeighborSampler(star(70_000, hubs=20), [40])
    rows = (
        np.concatenate(
            [many(range(20), batch_number=k).flows[0].parent_eid.numpy() for k in range(250)]
        )
        % 70_000
    )
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
    "Floyd: a repeat is kept": (
        [("pick = pick + before * (U64(last) - pick)", "pass")],
        check_subsets,
    ),
    "one stream for all nodes": (
        [("state = stream(key, ident[i])", "state = stream(key, 0)")],
        check_subsets,
    ),
    "the neighbour of the next position": (
        [("indices[U64(positions[U64(w)])]", "indices[U64(positions[U64(w)] ^ 1)]")],
        check_edges,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_faults_in_the_draw(name, monkeypatch):
    changes, check = KERNELS[name]
    plant(monkeypatch, draw_kernels, "draw_without", *changes)
    with pytest.raises((AssertionError, ValueError)):
        check()


def check_weighted() -> None:
    """Chi-square over the subsets that nodes draw in proportion to weights, by each of the
    methods.
    """
    for weights, k in (([3, 1, 4, 4, 4], 2), ([3, 1, 4, 1, 5, 3], 3), ([8, 2, 5, 1, 1], 3)):
        law = law_of(weights, k)
        hubs = 40_000
        table = subset_table(
            NeighborSampler(crowd(weights, hubs), [k], prob="w")(range(hubs)), len(weights)
        )
        assert set(table) <= set(law)
        counts = np.array([table.get(subset, 0) for subset in law])
        assert chi_square(counts, np.array([float(p) * hubs for p in law.values()])) < 1


def test_the_real_weighted_draws_pass():
    check_weighted()


WEIGHTED: dict[str, tuple[ModuleType, str, list[tuple[str, str]]]] = {
    "Sampford: all stay": (sampford, "draw_sampford", [("bad |= not stays", "pass")]),
    "Sampford: repeats stay": (
        sampford,
        "draw_sampford",
        [("bad |= U64(positions[U64(v)]) == p", "pass")],
    ),
    "Sampford: one number twice": (
        sampford,
        "draw_sampford",
        [("- 1) + stop - start)", "- 1) + stop - start - 1)")],
    ),
    "systematic: no exchange": (
        systematic,
        "draw_systematic",
        [("elif chance < limit", "elif chance < 0")],
    ),
    "systematic: a border forgotten": (
        systematic,
        "draw_systematic",
        [("if upto > border:", "if upto < 0:")],
    ),
    "systematic: nothing certain": (
        systematic,
        "draw_systematic",
        [("if certain == before or", "if True or")],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHTED)
def test_faults_in_weighted_draws(name, monkeypatch):
    module, kernel, changes = WEIGHTED[name]
    plant(monkeypatch, module, kernel, *changes)
    with pytest.raises(AssertionError):
        check_weighted()


@pytest.mark.slow
def test_a_modulo_instead_of_a_bounded_draw(monkeypatch):
    """16 random bits modulo the degree: 4,464 of 70,000 edges are never drawn."""
    modulo = ("return product >> _HALF, state", "return (mix(state) & U64(0xFFFF)) % bound, state")
    plant(monkeypatch, random_kernels, "bounded", modulo)
    plant(monkeypatch, draw_kernels, "draw_without")
    with pytest.raises(AssertionError):
        check_hub()


def faulty(draw: str, degree: int, count: int, number: int = 20_000) -> np.ndarray:
    """Subsets from Floyd's method in Python, with one of the faults that are quick to plant."""
    rows = []
    for ident in range(number):
        rng = Stream(1, ident)
        picked = list[int]()
        for last in range(degree - count, degree):
            bound = {"one too few": max(last, 1), "right": last + 1}.get(draw, degree)
            t = rng.below(bound)
            while draw == "the next free one" and t in picked:
                t = (t + 1) % degree
            picked.append(last if t in picked else t)
        rows.append(picked)
    return np.array(rows)


@pytest.mark.parametrize("draw", ["right", "one too few", "the whole list", "the next free one"])
def test_faults_in_floyds_method(draw):
    rows = faulty(draw, 7, 3)
    repeats = any(len(set(row)) < 3 for row in rows.tolist())
    assert (repeats or chi_square(subset_counts(rows, 7, 3)) > 1) == (draw != "right")


def test_faults_in_numbers():
    """What rounding to float32 leaves out, few bits multiplied without a rejection, and a stream
    that two share.
    """
    words = np.array([Stream(3, ident).word() for ident in range(20_001)], np.uint64)
    rounded = (
        (words >> np.uint64(40)).astype(np.float32) / np.float32(2**24) * np.float32(3 * 2**23)
    )
    few_bits = ((words >> np.uint64(56)) * np.uint64(192)) >> np.uint64(8)
    exact = np.array([Stream(3, ident).below(3 * 2**23) for ident in range(20_000)])
    for numbers, wrong in (
        (rounded.astype(np.int64), True),
        (few_bits.astype(np.int64), True),
        (exact, False),
    ):
        assert (chi_square(np.bincount(numbers % 3, minlength=3)) > 1) == wrong
    sevens = np.array([Stream(4, ident).below(7) for ident in range(20_001)])
    for other, wrong in ((sevens[:-1], True), (sevens[1:], False)):
        assert (chi_square(np.bincount(sevens[:-1] * 7 + other, minlength=49)) > 1) == wrong


def test_seeds_reversed(monkeypatch):
    real = sampler.draw_node_flow
    monkeypatch.setattr(
        sampler, "draw_node_flow", lambda own, seeds, *rest: real(own, seeds[::-1], *rest)
    )
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


# what the planted faults below are measured against; the tests of each sampler look at its weights
@pytest.mark.slow
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
            change.setattr(
                Flow, "weight", property(lambda flow, fault=fault: FAULTS[fault](real(flow)))
            )
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
    """The published LADIES code: drawn without replacement, weighted 1 / probability, and the
    destinations added.
    """

    class Forced(Sampler):
        def choose(self, dst, step):
            edges = self.candidates(dst)
            nodes, place = edges.src.unique(return_inverse=True)
            q = torch.zeros(len(nodes), dtype=torch.float64).index_add_(
                0, place, edges.edge_weight**2
            )
            q = q / q.sum()
            size = min(6, len(nodes))
            # the smallest are a draw without replacement
            keys = -step.random.uniform(nodes).log() / q
            picked = torch.zeros(len(nodes), dtype=torch.bool)
            picked[keys.argsort()[:size]] = True
            picked |= torch.isin(nodes, dst)
            keep = picked[place]
            return edges.select(keep, weight=(edges.edge_weight / (size * q[place]))[keep].float())

    with pytest.raises(AssertionError, match="biased"):
        assert_unbiased(Forced(graph_of_all(), 1), range(12), draws=1000)
