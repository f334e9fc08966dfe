"""LABOR once more, in plain Python and from the paper: what the kernels must equal, and what the
proofs integrate over.

Balin and Catalyurek, "Layer-Neighbor Sampling", NeurIPS 2023 (arXiv:2210.13339), section 3.
Sequential Poisson sampling is Ohlsson's (1998), its weights those of priority sampling (Duffield,
Lund, Thorup 2007).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import torch

from _support.sampler_reference import (
    GOLDEN,
    MASK,
    assert_structure,
    ends_of,
    key_of,
    key_of_batch,
    layered,
    mix,
    stream,
)
from nodeflow import Graph, NodeFlow

LOW = 2**32 - 1

Number = Callable[[int, int], Any]
"""The number of a source, by its id and how often the destination has had it before."""


# ---- numbers of sources


def hash32(key: int, t: int) -> int:
    """32 bits of id ``t`` under a 64-bit key."""
    first = mix((key + GOLDEN) & MASK)
    second = mix((key + 2 * GOLDEN) & MASK)
    x = (t & LOW) ^ ((t >> 32) * 0x9E3779B9 & LOW)
    for word, one, two in (
        (first & LOW, 0x21F0AAAD, 0xD35A2D97),
        (first >> 32, 0x7FEB352D, 0x846CA68B),
    ):
        x ^= word
        x = (x ^ (x >> 16)) * one & LOW
        x = (x ^ (x >> 15)) * two & LOW
        x ^= x >> 15
    return x ^ (second & LOW)


class Keys(NamedTuple):
    """Where numbers come from: node t has the key ``later`` in ``early`` of 2**32 cases, else
    ``now``.
    """

    now: int
    later: int
    phase: int
    early: int

    def of(self, t: int) -> int:
        return self.later if hash32(self.phase, t) < self.early else self.now

    def bits32(self, t: int, copy: int) -> int:
        key = self.of(t)
        return hash32(key, t) if copy == 0 else mix((stream(key, t) + copy * GOLDEN) & MASK) >> 32

    def uniform(self, t: int, copy: int) -> float:
        return (mix((stream(self.of(t), t) + (copy + 1) * GOLDEN) & MASK) >> 11) * 2.0**-53


def keys_of(
    flow: int, seed: int, epoch: int, batch_number: int | None, seeds: Sequence[int], **options: Any
) -> Keys:
    shared = options.get("layer_dependency", False)
    period = options.get("batch_dependency", 1)
    if period == 1:
        root = key_of_batch("labor", seeds, seed, epoch, batch_number)
        key = key_of(root, -1) if shared else key_of(root, flow)
        return Keys(key, key, key, 0)
    epoch_key = key_of("labor", seed, epoch, 2)
    base = key_of(epoch_key, -1 if shared else flow)
    if period is None:
        return Keys(base, base, base, 0)
    window, passed = divmod(batch_number, period)
    return Keys(
        key_of(base, window),
        key_of(base, window + 1),
        key_of(epoch_key, -2),
        math.ceil(Fraction(passed * 2**32, period)),
    )


# ---- importance


def solve(pi: Sequence[float], k: int) -> float:
    """The c with ``sum(1 / min(1, c pi)) == d * d / k``; for d <= k the smallest with all
    probabilities 1.

    By trying, for every m, that the m largest pi have probability 1.
    """
    d = len(pi)
    if d <= k or k < 0:
        return max((1 / p for p in pi), default=0.0)
    inverse = [1 / p for p in pi]
    for m in range(d):
        full = set(sorted(range(d), key=lambda j: inverse[j])[:m])
        rest = 0.0
        for j in range(d):
            if j not in full:
                rest += inverse[j]
        c = rest / (d * d / k - m)
        if sum(c >= one for one in inverse) <= m:
            return c
    raise AssertionError("there is always a solution")


def importance(
    rows: Sequence[Sequence[int]], k: int, iterations: int | str
) -> tuple[dict[int, float], list[float]]:
    """pi of every source and c of every destination; ``rows`` are the sources of each
    destination.
    """
    pi = {t: 1.0 for row in rows for t in row}
    c = [k / len(row) if 0 <= k < len(row) else 1.0 for row in rows]
    before = math.inf
    for _ in range(100 if iterations == "converged" else iterations):
        largest = needed(rows, c)
        pi = {t: pi[t] * largest[t] for t in pi}
        sources = sum(min(1.0, p) for p in pi.values())
        c = [solve([pi[t] for t in row], k) for row in rows]
        if iterations == "converged" and sources >= before * (1 - 1e-4):
            break
        before = sources
    return pi, c


def needed(rows: Sequence[Sequence[int]], c: Sequence[float]) -> dict[int, float]:
    largest: dict[int, float] = {}
    for row, one in zip(rows, c, strict=True):
        for t in row:
            largest[t] = max(largest.get(t, 0.0), one)
    return largest


def expected_sources(rows: Sequence[Sequence[int]], k: int, iterations: int | str) -> float:
    """Expected number of distinct sources with Poisson sampling."""
    pi, c = importance(rows, k, iterations)
    return sum(min(1.0, pi[t] * one) for t, one in needed(rows, c).items())


# ---- one flow


def poisson_probability(
    rows: Sequence[Sequence[int]], k: int, iterations: int | str
) -> list[list[Fraction]]:
    """Probability of every edge; multiples of 2**-32 for LABOR-0."""
    if iterations == 0:
        chance = [
            Fraction(math.ceil(k / len(row) * 2.0**32), 2**32) if 0 <= k < len(row) else 1
            for row in rows
        ]
        return [[Fraction(one)] * len(row) for one, row in zip(chance, rows, strict=True)]
    pi, c = importance(rows, k, iterations)
    return [
        [Fraction(min(1.0, one * pi[t])) if 0 <= k < len(row) else Fraction(1) for t in row]
        for one, row in zip(c, rows, strict=True)
    ]


def draw_poisson(
    rows: Sequence[Sequence[int]], k: int, iterations: int | str, number: Number
) -> list[dict[int, Any]]:
    """For every destination, the drawn places of its row with 1 / probability; numbers are in [0,
    1).
    """
    chance = poisson_probability(rows, k, iterations)
    return [
        {j: 1 / p for j, (t, p) in enumerate(zip(row, ps, strict=True)) if number(t, 0) < p}
        for row, ps in zip(rows, chance, strict=True)
    ]


def draw_sequential(
    rows: Sequence[Sequence[int]], k: int, iterations: int | str, number: Number
) -> list[dict[int, Any]]:
    """The same for order sampling."""
    pi, _ = importance(rows, k, iterations)
    found = []
    for row in rows:
        if k < 0 or len(row) <= k:
            found.append(dict.fromkeys(range(len(row)), 1))
            continue
        order = sorted((number(t, list(row[:j]).count(t)) / pi[t], j) for j, t in enumerate(row))
        tau = order[k][0]
        found.append({
            j: Fraction(len(row), k) if iterations == 0 else 1 / min(1, pi[row[j]] * tau)
            for j in sorted(j for _, j in order[:k])
        })  # fmt: skip
    return found


def cells(
    rows: Sequence[Sequence[int]], k: int, iterations: int | str
) -> Iterator[tuple[Fraction, list[dict[int, Any]]]]:
    """All outcomes of Poisson sampling: probability and draw, for every combination of where the
    numbers lie.

    The draw changes only where the number of a source passes one of its probabilities.
    """
    chance = poisson_probability(rows, k, iterations)
    ends = {t: {Fraction(0), Fraction(1)} for row in rows for t in row}
    for row, ps in zip(rows, chance, strict=True):
        for t, p in zip(row, ps, strict=True):
            ends[t].add(p)
    spans = [list(itertools.pairwise(sorted(ends[t]))) for t in ends]
    for combination in itertools.product(*spans):
        numbers = {t: low for t, (low, _) in zip(ends, combination, strict=True)}
        probability = math.prod(high - low for low, high in combination)
        yield probability, draw_poisson(rows, k, iterations, lambda t, _, n=numbers: n[t])


# ---- a batch


def sample(
    graph: Graph,
    fanouts: Sequence[int],
    seeds: Sequence[int],
    *,
    iterations: int | str = 0,
    method: str = "poisson",
    estimator: str = "horvitz-thompson",
    direction: str = "in",
    include_dst: bool = True,
    reuse: bool = False,
    seed: int = 0,
    epoch: int = 0,
    batch_number: int | None = None,
    **dependency: Any,
) -> tuple[list[list[int]], list[list[list[tuple[int, float]]]]]:
    """Return the layers (parent ids), and per flow the edge ids drawn by every destination, with
    their weights.
    """
    edges = ends_of(graph)
    near, end = (0, 1) if direction == "in" else (1, 0)
    draw = draw_poisson if method == "poisson" else draw_sequential

    def draw_rows(flow: int, dst: list[int]) -> list[list[tuple[int, float]]]:
        keys = keys_of(flow, seed, epoch, batch_number, seeds, **dependency)
        ids = [[e for e, ends in enumerate(edges) if ends[end] == v] for v in dst]
        rows = [[edges[e][near] for e in row] for row in ids]

        def number(t: int, copy: int) -> Any:
            if iterations == 0:
                return Fraction(keys.bits32(t, copy), 2**32)
            return keys.uniform(t, copy)

        drawn = []
        for row, picks in zip(ids, draw(rows, fanouts[flow], iterations, number), strict=True):
            scale = 1.0
            if estimator == "hajek" and picks:
                scale = len(row) / float(sum(picks.values()))
            drawn.append([(row[j], float(one) * scale) for j, one in picks.items()])
        return drawn

    return layered(
        seeds, len(fanouts), draw_rows, lambda one, _: edges[one[0]][near], include_dst, reuse
    )


def assert_is_reference(
    batch: NodeFlow, graph: Graph, fanouts: list[int], seeds: list[int], /, **options: Any
) -> None:
    layers, flows = sample(graph, fanouts, seeds, **options)
    assert_structure(batch, layers, [[[e for e, _ in row] for row in rows] for rows in flows])
    for flow, rows in zip(batch.flows, flows, strict=True):
        weights = torch.tensor([weight for row in rows for _, weight in row])
        torch.testing.assert_close(flow.weight, weights, rtol=3e-7, atol=0)
    assert batch.seeds[batch.seed_index].tolist() == seeds
