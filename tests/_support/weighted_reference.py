"""Draws in proportion to weights once more, in plain Python: exact laws in fractions, and the
package's very draws.

The laws are written from the papers, the draws from the rules in ``nodeflow/_kernels/draw``.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from _support.sampler_reference import MASK, Stream, draw, rows_drawn
from nodeflow import Graph, NodeFlow

Law = dict[tuple[int, ...], Fraction]
"""Probability of every subset (ascending) or sequence of edges."""


def inclusion(weights: Sequence[float | Fraction], count: int) -> list[Fraction]:
    """min(1, c w) with the c that makes these add up to ``count``; 1 for all non-zero weights if
    there are no more.
    """
    exact = [Fraction(w) for w in weights]
    if sum(w > 0 for w in exact) <= count:
        return [Fraction(w > 0) for w in exact]
    sure: set[int] = set()
    while True:
        c = (count - len(sure)) / sum(w for i, w in enumerate(exact) if i not in sure)
        more = {i for i, w in enumerate(exact) if i not in sure and c * w >= 1}
        if not more:
            return [Fraction(1) if i in sure else c * w for i, w in enumerate(exact)]
        sure |= more


def pivotal(pi: Sequence[Fraction]) -> Law:
    """The ordered pivotal method (Deville and Tillé 1998; Chauvet 2012): duels along the line.

    A unit with probability p meets the next one with q. If p + q < 1, one of them gets p + q and
    the other is out; else one is taken and the other goes on with p + q - 1.
    """
    states: dict[tuple[int, Fraction, tuple[int, ...]], Fraction] = {
        (-1, Fraction(0), ()): Fraction(1)
    }
    for new, q in enumerate(pi):
        after: dict[tuple[int, Fraction, tuple[int, ...]], Fraction] = defaultdict(Fraction)
        for (old, p, taken), chance in states.items():
            total = p + q
            if old < 0 or total == 0:
                after[new, q, taken] += chance
            elif total < 1:
                after[old, total, taken] += chance * p / total
                after[new, total, taken] += chance * q / total
            elif total == 2:
                after[new, q, (*taken, old)] += chance
            else:
                after[new, total - 1, (*taken, old)] += chance * (1 - q) / (2 - total)
                after[old, total - 1, (*taken, new)] += chance * (1 - p) / (2 - total)
        states = {state: chance for state, chance in after.items() if chance}
    law: Law = defaultdict(Fraction)
    for (unit, p, taken), chance in states.items():
        assert p in (0, 1)
        law[tuple(sorted([*taken, unit] if p == 1 else taken))] += chance
    return dict(law)


def sampford(weights: Sequence[float | Fraction], count: int) -> Law:
    """Sampford 1967: the first unit in proportion to pi, the others to pi / (1 - pi), given that
    all are distinct.
    """
    exact = [Fraction(w) for w in weights]
    pi = [count * w / sum(exact) for w in exact]
    law: Law = defaultdict(Fraction)
    for subset in itertools.combinations([i for i, p in enumerate(pi) if p > 0], count):
        for first in subset:
            law[subset] += pi[first] * math.prod(pi[i] / (1 - pi[i]) for i in subset if i != first)
    total = sum(law.values())
    return {subset: p / total for subset, p in law.items()}


def law_of(weights: Sequence[float], count: int) -> Law:
    """The law of the subset that a node draws without replacement."""
    return (
        sampford(weights, count)
        if by_rejection(weights, count)
        else pivotal(inclusion(weights, count))
    )


def marginals(law: Law, size: int) -> list[Fraction]:
    return [sum((p for subset, p in law.items() if i in subset), Fraction(0)) for i in range(size)]


# ---- the package's draws


def _uniform(rng: Stream) -> float:
    return (rng.word() >> 11) * 2.0**-53


class Table:
    """The alias table of one list of weights: ``cells`` are (part, alias) in units of which a cell
    has ``whole``.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        self.size = len(weights)
        self.whole = 1 << (46 - (self.size - 1).bit_length())
        self.total = 0.0
        upto = 0.0
        units = []
        for w in weights:
            self.total += w
        lift = 1.0 if self.total > 2.0**-900 else 2.0**600  # the quotient would overflow
        scale = float(self.size * self.whole) / (self.total * lift)
        for w in weights:
            before = int(upto + 0.5)
            upto += w * lift * scale
            units.append(int(upto + 0.5) - before)
        units[weights.index(max(weights))] += self.size * self.whole - sum(units)
        self.cells = [(self.whole, i) for i in range(self.size)]
        light = (i for i, u in enumerate(units) if u <= self.whole)
        heavy = (i for i, u in enumerate(units) if u > self.whole)
        giver = next(heavy, None)
        rest = 0
        while giver is not None:
            rest += units[giver]
            while rest > self.whole:
                i = next(light)
                self.cells[i] = (units[i], giver)
                rest -= self.whole - units[i]
            after = next(heavy, None)
            if after is not None:
                self.cells[giver] = (rest, after)
                rest -= self.whole
            giver = after

    def probability(self) -> list[Fraction]:
        """What the cells say that every edge is drawn with."""
        found = [0] * self.size
        for i, (part, alias) in enumerate(self.cells):
            found[i] += part
            found[alias] += self.whole - part
        return [Fraction(units, self.size * self.whole) for units in found]

    def pick(self, word: int) -> int:
        product = word * self.size
        cell = product >> 64
        low = product & MASK
        part, alias = self.cells[cell]
        return cell if low * self.whole < part << 64 else alias


def by_rejection(weights: Sequence[float], count: int) -> bool:
    """Whether Sampford's method draws, not Deville's."""
    *_, total = itertools.accumulate(weights)
    most = max(weights)
    squares = 0.0
    for w in weights:
        squares += (w / total) * (w / total)
    x = float(count - 1) * float(count) * (most / total + squares / 2)
    possible = count == 1 or 2 * count * most <= total
    return possible and (x <= 2 or (x <= 4 and len(weights) > 100 * count))


def draw_weighted(
    weights: Sequence[float], count: int, replace: bool, key: int, ident: int
) -> list[int]:
    """Places of the edges that one destination draws; -1 takes every non-zero one."""
    nonzero = [i for i, w in enumerate(weights) if w > 0]
    rng = Stream(key, ident)
    if count < 0 or not nonzero:
        return nonzero
    if replace:
        table = Table(weights)
        return [table.pick(rng.word()) for _ in range(count)]
    if count and by_rejection(weights, count):
        return sampford_draw(weights, count, rng)
    if len(nonzero) <= count:
        return nonzero
    pi = inclusion(weights, count)
    sure = [i for i in nonzero if pi[i] == 1]
    return sure + strata(
        [0.0 if pi[i] == 1 else w for i, w in enumerate(weights)], count - len(sure), rng
    )


def sampford_draw(weights: Sequence[float], count: int, rng: Stream) -> list[int]:
    """Sampford's method, all draws anew whenever one does not stay or comes twice."""
    table = Table(weights)
    unit = table.total / count
    top = max(weights) * count / table.total
    while True:
        picked = [table.pick(rng.word()) for _ in range(count)]
        stays = [_uniform(rng) * (1 - weights[i] / unit) < 1 - top for i in picked[1:]]
        if all(stays) and len(set(picked)) == count:
            return picked


def line(weights: Sequence[float]) -> list[float]:
    """Where edges end that lie one after another: sums are made in fours."""
    ends = []
    base = 0.0
    for i in range(0, len(weights), 4):
        w = [*weights[i : i + 4], 0.0, 0.0, 0.0][:4]
        two = w[0] + w[1]
        ends += [base + w[0], base + two, base + (two + w[2]), base + (two + (w[2] + w[3]))]
        base = ends[-1]
    return ends[: len(weights)]


def strata(weights: Sequence[float], count: int, rng: Stream) -> list[int]:
    """Deville's systematic method for weights none of which is certain to be drawn."""
    ends = line(weights)
    step = ends[-1] / count
    picked: list[int] = []
    upto = border = 0.0
    for j in range(count):
        stop = step * (j + 1) if j + 1 < count else ends[-1]
        u = _uniform(rng)
        chance = _uniform(rng)
        if upto > border:
            edge = bisect_right(ends, max(upto, upto + u * (stop - upto)))
        else:
            edge = bisect_right(ends, border + u * (stop - border))
            crossing = bisect_right(ends, border)
            if edge != crossing and crossing > 0:
                a = (border - ends[crossing - 1]) / step
                b = (ends[crossing] - border) / step
                if chance * (1 - a) * (1 - b) < a * b:
                    edge = crossing
        picked.append(edge)
        upto = ends[edge]
        border = stop
    return picked


def weighted_edges(
    graph: Graph, column: str, fanout: int, seeds: Sequence[int], *, replace: bool, **call: Any
) -> list[list[int]]:
    """The edges that distinct seeds draw through the only flow."""
    weights = graph.edata[column].tolist()

    def draw_row(rows: list[int], key: int, v: int) -> list[int]:
        return [rows[p] for p in draw_weighted([weights[e] for e in rows], fanout, replace, key, v)]

    return rows_drawn(graph, seeds, draw_row, **call)


def edges_by_kind(
    graph: Graph,
    ids: Sequence[int],
    fanouts: Sequence[int],
    kind_of: Callable[[int], int],
    row_of: Callable[[int, int], int],
    *,
    replace: bool,
    prob: str | None,
    **call: Any,
) -> list[list[int]]:
    """The edges that distinct seeds draw through the only flow: kind by kind, each with its fanout
    and from the stream of its own row.
    """

    def draw_row(rows: list[int], key: int, v: int) -> list[int]:
        drawn: list[int] = []
        for kind, count in enumerate(fanouts):
            own = [e for e in rows if kind_of(e) == kind]
            if not own or not count:
                continue
            if prob is None:
                drawn += draw(own, count, replace, key, row_of(v, kind))
            else:
                weights = graph.edata[prob][own].tolist()
                places = draw_weighted(weights, count, replace, key, row_of(v, kind))
                drawn += [own[p] for p in places]
        return drawn

    return rows_drawn(graph, ids, draw_row, **call)


def crowd(weights: Sequence[float], hubs: int, dtype: type = np.float32) -> Graph:
    """``hubs`` nodes with in-edges of these weights each, in this order: edge ids of node v begin
    at v times degree.
    """
    d = len(weights)
    column = np.tile(np.array(weights, dtype), hubs)
    near = np.tile(np.arange(hubs, hubs + d), hubs)
    return Graph(np.arange(hubs + d + 1).clip(max=hubs) * d, near, edata={"w": column})


def subset_table(batch: NodeFlow, degree: int) -> dict[tuple[int, ...], int]:
    """How often which subset of places was drawn by the nodes of a ``crowd``, all of them seeds."""
    flow = batch.flows[-1]
    place = flow.parent_eid.numpy() % degree
    dst = flow.edges()[1].numpy()
    codes = np.zeros(flow.num_dst, np.int64)
    np.add.at(codes, dst, 1 << place)
    found, counts = np.unique(codes, return_counts=True)
    subsets = (tuple(i for i in range(degree) if code >> i & 1) for code in found.tolist())
    return dict(zip(subsets, counts.tolist(), strict=True))


def uniform_law(places: Sequence[int], count: int, *, replace: bool = False) -> Law:
    """The law of ``count`` places of equal chances, as a sorted subset or multiset."""
    ways = (
        itertools.product(places, repeat=count)
        if replace
        else itertools.combinations(places, count)
    )
    counts = Counter(tuple(sorted(way)) for way in ways)
    return {subset: Fraction(n, counts.total()) for subset, n in counts.items()}


def assert_unbiased_exactly(batch: NodeFlow, degree: int, law: Law) -> None:
    """Fail unless the seeds of a ``crowd`` drew all that ``law`` has, and nothing else, and its
    chances times the sums, with the weights that the batch has for them, are the whole sum.
    """
    flow = batch.flows[-1]
    sizes = flow.in_degrees.tolist()
    value = torch.arange(1.0, degree + 1, dtype=torch.float64) ** 3 - 20
    places = (flow.parent_eid % degree).split(sizes)
    sums = {}
    for place, weight in zip(places, flow.weight.double().split(sizes), strict=True):
        sums[tuple(sorted(place.tolist()))] = float((weight * value[place]).sum())
    assert sums.keys() == law.keys()
    mean = sum(float(chance) * sums[subset] for subset, chance in law.items())
    whole = value[sorted({place for subset in law for place in subset})].sum()
    assert mean == pytest.approx(float(whole), rel=1e-6)  # float32 weights
