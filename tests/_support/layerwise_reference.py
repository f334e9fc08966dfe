"""Layer-wise sampling once more, in plain Python and exact fractions, written from the papers.

Laws (which sets are drawn, with which probability), and the draws themselves from the same random
numbers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from _support import weighted_reference
from _support.sampler_reference import (
    Stream,
    bits,
    ends_of,
    fingerprint,
    key_of,
    key_of_batch,
    layered,
)
from _support.views import viewed
from _support.weighted_reference import inclusion
from nodeflow import Graph, NodeFlow
from nodeflow.sampling import FastGCNSampler, LadiesSampler, LayerSampler

Edges = Sequence[tuple[int, int, int]]
"""Source, destination, and the integer A of every edge; None for an edge that does not exist (left
out).
"""
Law = dict[tuple[tuple[int, int], ...], Fraction]
"""Probability of every outcome: the drawn candidates and how often each was drawn."""

DRAWS = ["replacement", "poisson", "systematic"]


def pivotal(prob: Mapping[int, Fraction]) -> Law:
    """Law of ordered pivotal sampling, which Deville's systematic method has too (Chauvet 2012)."""
    nodes = list(prob)
    law = weighted_reference.pivotal(list(prob.values()))
    return {tuple(sorted((nodes[i], 1) for i in subset)): p for subset, p in law.items()}


def law(
    nodes: Sequence[int],
    scores: Sequence[int],
    size: int,
    draw: str,
    order: Sequence[int] | None = None,
) -> Law:
    """The law of a draw; "systematic" over all orders of the candidates alike, or for one
    ``order``.
    """
    if draw == "replacement":
        total = Fraction(sum(scores))
        found = Counter[Any]()
        q = {u: s / total for u, s in zip(nodes, scores, strict=True) if s}
        for picks in itertools.product(q, repeat=size):
            p = Fraction(1)
            for u in picks:
                p *= q[u]
            found[tuple(sorted(Counter(picks).items()))] += p
        return dict(found)
    prob = {u: p for u, p in zip(nodes, inclusion(scores, size), strict=True) if p}
    if draw == "poisson":
        result: Law = {}
        for kept in itertools.product([False, True], repeat=len(prob)):
            p = Fraction(1)
            for keep, chance in zip(kept, prob.values(), strict=True):
                p *= chance if keep else 1 - chance
            if p:
                result[tuple((u, 1) for u, keep in zip(prob, kept, strict=True) if keep)] = p
        return result
    orders = [order] if order is not None else list(itertools.permutations(prob))
    mixed: Counter[Any] = Counter()
    for one in orders:
        for outcome, p in pivotal({u: prob[u] for u in one if u in prob}).items():
            mixed[outcome] += p / len(orders)
    return dict(mixed)


def means(nodes: Sequence[int], scores: Sequence[int], size: int, draw: str) -> dict[int, Fraction]:
    """How often each candidate is drawn in the mean."""
    if draw == "replacement":
        return {u: Fraction(size * s, sum(scores)) for u, s in zip(nodes, scores, strict=True) if s}
    return dict(zip(nodes, inclusion(scores, size), strict=True))


def unit(word: int) -> Fraction:
    return Fraction(word >> 11, 2**53)


def systematic(prob: Mapping[int, Fraction], key: int) -> list[int]:
    """Deville's method, stratum by stratum, over units in their order: each draws one point of its
    unit interval.
    """
    units = []
    start = Fraction(0)
    for u, p in prob.items():
        units.append((u, start, start + p))
        start += p
    rng = Stream(key, 0)
    drawn = []
    for j in range(round(start)):
        point = unit(rng.word())
        across = [(u, j - low, high - j) for u, low, high in units if low < j < high]
        behind = across[0][2] if across else Fraction(0)
        chance = (
            behind / (1 - across[0][1]) if across and across[0][0] not in drawn else Fraction(0)
        )
        if point < chance:
            drawn.append(across[0][0])
            continue
        x = j + behind + (point - chance) / (1 - chance) * (1 - behind)
        drawn.append(next(u for u, low, high in units if low <= x < high))
    return drawn


def in_order(nodes: Sequence[int], key: int) -> list[int]:
    return sorted(nodes, key=lambda u: (bits(key, u), u))


def drawn(
    nodes: Sequence[int],
    scores: Sequence[int],
    size: int,
    draw: str,
    key: int,
    order: int | None = None,
) -> Counter[int]:
    """How often each candidate is drawn, from the random numbers of ``key``."""
    if not any(scores):
        return Counter()
    if draw == "replacement":
        rng = Stream(key, 0)
        ends = list(itertools.accumulate(scores))
        points = [unit(rng.word()) * ends[-1] for _ in range(size)]
        return Counter(
            next(u for u, end in zip(nodes, ends, strict=True) if end > x) for x in points
        )
    prob = dict(zip(nodes, inclusion(scores, size), strict=True))
    if draw == "poisson":
        return Counter(u for u in nodes if unit(bits(key, u)) < prob[u])
    sure = [u for u in nodes if prob[u] == 1]
    rest = in_order(
        [u for u in nodes if 0 < prob[u] < 1], key_of(key, 1) if order is None else order
    )
    return Counter([*sure, *systematic({u: prob[u] for u in rest}, key)])


def sample(
    kind: type[LayerSampler],
    edges: Sequence[tuple[int, int, int] | None],
    num_nodes: int,
    sizes: Sequence[int],
    seeds: Sequence[int],
    *,
    draw: str = "replacement",
    weighted: bool = True,
    include_dst: bool = True,
    all_edges: Sequence[tuple[int, int, int] | None] | None = None,
    seed: int = 0,
    epoch: int = 0,
    batch_number: int | None = None,
) -> tuple[list[list[int]], list[list[list[tuple[int, float]]]]]:
    """Return the layers (parent ids), and per flow and destination the drawn edges: ids and
    estimator weights.

    ``all_edges`` are what FastGCN's probabilities are of (those that ``without_edges`` leaves out
    are among them).
    """
    name = {LadiesSampler: "ladies", FastGCNSampler: "fastgcn"}.get(kind, "layer")
    root = key_of_batch(name, seeds, seed, epoch, batch_number)

    def draw_rows(flow: int, dst: list[int]) -> list[list[tuple[int, float]]]:
        key = key_of(root, flow)
        size = sizes[flow]
        rows = [
            [(e, edge[0], edge[2]) for e, edge in enumerate(edges) if edge and edge[1] == v]
            for v in dst
        ]
        into = [edge for row in rows for edge in row]
        order = None
        if kind is FastGCNSampler:
            norm = Counter[int]()
            for edge in edges if all_edges is None else all_edges:
                if edge:
                    norm[edge[0]] += edge[2] ** 2
            nodes = list(range(num_nodes))
            scores = [norm[u] for u in nodes]
            order = key_of("fastgcn", seed, 0)
        else:
            nodes = list(dict.fromkeys(u for _, u, _ in into))
            scores = [1] * len(nodes)
            if kind is LadiesSampler:
                scores = [sum(a * a for _, w, a in into if w == u) for u in nodes]
        # it draws edges, and takes their sources
        if kind is LadiesSampler and draw == "replacement":
            rng = Stream(key, 0)
            line = list(itertools.accumulate(a * a for _, _, a in into))
            times: Counter[int] = Counter()
            for _ in range(size if line and line[-1] else 0):
                x = unit(rng.word()) * line[-1] if weighted else rng.below(line[-1])
                times[next(u for (_, u, _), end in zip(into, line, strict=True) if end > x)] += 1
        else:
            times = drawn(nodes, scores, size, draw, key, order)
        mean = means(nodes, scores, size, draw) if any(scores) else {}
        return [[(e, float(a * times[u] / mean[u])) for e, u, a in row if times[u]] for row in rows]

    return layered(seeds, len(sizes), draw_rows, lambda one, _: edges[one[0]][0], include_dst)


def drawn_edges(batch: NodeFlow, flow: int) -> list[list[tuple[int, float]]]:
    """Parent edge ids and weights of every destination of a flow."""
    one = batch.flows[flow]
    pairs = list(zip(one.parent_eid.tolist(), one.weight.tolist(), strict=True))
    return [pairs[a:b] for a, b in itertools.pairwise(one.indptr.tolist())]


def assert_equals_reference(
    kind: type[LayerSampler],
    graph: Graph,
    sizes: list[int],
    nodes: list[int],
    left_out: list[int],
    options: dict[str, Any],
    run: dict[str, Any],
) -> None:
    """Compare batches with and without the edges ``left_out`` with those of ``sample``."""
    weighted = options["weight"] is not None
    mask = options["edge_filter"]
    values = graph.edata["w"].tolist() if weighted else [1] * graph.num_edges
    every = [(u, v, int(a)) for (u, v), a in zip(ends_of(graph), values, strict=True)]
    order = np.asarray(graph.stored_edge_ids).tolist()
    # the out-edges of a node come by edge id, the in-edges as they are stored
    if options.get("direction") == "out":
        every, order = [(v, u, a) for u, v, a in every], list(range(len(every)))
    filtered = [every[e] if mask[e] else None for e in order]
    more = {name: options[name] for name in ("draw", "include_dst", "seed") if name in options}
    sampler = viewed(kind, graph, sizes, **options)
    for one, gone in ((sampler, []), (sampler.without_edges(left_out), left_out)):
        batch = one(nodes, **run)
        batch.validate()
        there = [None if order[i] in gone else edge for i, edge in enumerate(filtered)]
        every_edge = {"weighted": weighted, "all_edges": filtered, **more, **run}
        layers, flows = sample(kind, there, graph.num_nodes, sizes, nodes, **every_edge)
        assert [layer.parent_nid.tolist() for layer in batch.layers] == layers
        for i, rows in enumerate(flows):
            found = drawn_edges(batch, i)
            assert [[e for e, _ in row] for row in found] == [
                [order[e] for e, _ in row] for row in rows
            ]
            for row, wanted in zip(found, rows, strict=True):
                np.testing.assert_allclose([w for _, w in row], [w for _, w in wanted], rtol=1e-6)
    assert fingerprint(sampler.without_edges([])(nodes, **run)) == fingerprint(
        sampler(nodes, **run)
    )
