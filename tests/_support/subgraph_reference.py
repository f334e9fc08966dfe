"""Subgraphs in plain Python: induced edges, and the draws of the subgraph samplers, from their
descriptions.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from _support.sampler_reference import (
    Stream,
    bits,
    draw,
    ends_of,
    key_of,
    key_of_batch as key_of_batch,
)
from nodeflow import Graph, NodeFlow


def rows_of(
    graph: Graph, direction: str = "in", keep: Callable[[int], bool] = lambda e: True
) -> list[list[tuple]]:
    """For every node its edges in the graph's order, as (neighbour, edge id)."""
    rows: list[list[tuple]] = [[] for _ in range(graph.num_nodes)]
    if direction == "in":
        ends = graph.indptr.tolist()
        for v, (first, end) in enumerate(itertools.pairwise(ends)):
            rows[v] = list(
                zip(
                    graph.indices[first:end].tolist(),
                    graph.stored_edge_ids[first:end].tolist(),
                    strict=True,
                )
            )
    else:
        for e, (u, v) in enumerate(ends_of(graph)):
            rows[u].append((v, e))
    return [[(u, e) for u, e in row if keep(e)] for row in rows]


def induced(rows: Sequence[Sequence[tuple]], nodes: Sequence[int]) -> list[list[tuple]]:
    """For every node of a subgraph its edges there, as (row of the neighbour, edge id)."""
    place = {v: i for i, v in enumerate(nodes)}
    return [[(place[u], e) for u, e in rows[v] if u in place] for v in nodes]


def edges_in(batch: NodeFlow, flow: int) -> list[list[tuple]]:
    """The edges of a flow in the form of ``induced``."""
    one = batch.flows[flow]
    pairs = list(zip(one.indices.tolist(), one.parent_eid.tolist(), strict=True))
    ends = one.indptr.tolist()
    return [pairs[a:b] for a, b in itertools.pairwise(ends)]


def assert_is_induced(
    batch: NodeFlow, rows: Sequence[Sequence[tuple]], nodes: Sequence[int]
) -> None:
    """All layers hold ``nodes``, all flows all edges among them."""
    batch.validate()
    for layer in batch.layers:
        assert layer.parent_nid.tolist() == list(nodes)
    for i in range(batch.num_flows):
        assert edges_in(batch, i) == induced(rows, nodes)


def node_law(
    graph: Graph, rows: Sequence[Sequence[tuple]], weights: Sequence[float] | None = None
) -> list[float]:
    """Squared norm of the column of A that belongs to every node."""
    norms = [0.0] * graph.num_nodes
    for row in rows:
        for u, e in row:
            norms[u] += 1 if weights is None else weights[e] ** 2
    return norms


def saint_nodes(norms: Sequence[float], budget: int, key: int) -> list[int]:
    ends = list(itertools.accumulate(norms))
    points = [(bits(key, j) >> 11) * 2.0**-53 * ends[-1] for j in range(budget)]
    return sorted({bisect.bisect_right(ends, point) for point in points})


def saint_edges(
    rows: Sequence[Sequence[tuple]], back: Sequence[Sequence[tuple]], budget: int, key: int
) -> list[int]:
    joined = [v for v in range(len(rows)) if rows[v] or back[v]]
    found = set()
    for j in range(budget):
        rng = Stream(key, j)
        v = joined[rng.below(len(joined))]
        ends = [*rows[v], *back[v]]
        found |= {v, ends[rng.below(len(ends))][0]}
    return sorted(found)


def saint_walks(rows: Sequence[Sequence[tuple]], budget: int, length: int, key: int) -> list[int]:
    found = set()
    for j in range(budget):
        rng = Stream(key, j)
        v = rng.below(len(rows))
        found.add(v)
        for _ in range(length):
            if rows[v]:
                v = rows[v][rng.below(len(rows[v]))][0]
            found.add(v)
    return sorted(found)


def shadow(
    rows: Sequence[Sequence[tuple]],
    seeds: Sequence[int],
    depth: int,
    fanout: int,
    key: int,
    replace: bool = False,
) -> list[tuple[int, int]]:
    """The rows of ShaDow, as (node, number of the seed): a node draws when it is first reached."""
    found = [(v, i) for i, v in enumerate(dict.fromkeys(seeds))]
    newest = found
    for hop in range(depth):
        reached = []
        for v, i in newest:
            picked = draw(
                list(range(len(rows[v]))),
                fanout,
                replace,
                key_of(key, depth - 1 - hop),
                v + i * len(rows),
            )
            reached += [(rows[v][p][0], i) for p in picked]
        newest = [row for row in dict.fromkeys(reached) if row not in set(found)]
        found = [*found, *newest]
    return found


def subsets_by_chance(
    once: Iterable[tuple[frozenset, Fraction]], times: int
) -> dict[frozenset, Fraction]:
    """The law of the union of ``times`` independent draws of law ``once``, by enumeration of all of
    them.
    """
    once = list(once)
    found: dict[frozenset, Fraction] = defaultdict(Fraction)
    for draws in itertools.product(once, repeat=times):
        chance = Fraction(1)
        for _, p in draws:
            chance *= p
        found[frozenset().union(*(nodes for nodes, _ in draws))] += chance
    assert sum(found.values()) == 1
    return dict(found)


def law_of_node(graph: Graph, squares: Sequence[Fraction]) -> list[tuple[frozenset, Fraction]]:
    """One draw of kind "node"; ``squares`` are the squared weights of the edges (the paper's ||A[:,
    u]||^2).
    """
    norms = [Fraction(0)] * graph.num_nodes
    for e, (u, _) in enumerate(ends_of(graph)):
        norms[u] += squares[e]
    return [(frozenset([u]), norm / sum(norms)) for u, norm in enumerate(norms) if norm]


def law_of_edge(graph: Graph) -> list[tuple[frozenset, Fraction]]:
    """One draw of kind "edge": P(u, v) in proportion to 1/deg(u) + 1/deg(v)."""
    pairs = ends_of(graph)
    degree = [sum((a == v) + (b == v) for a, b in pairs) for v in range(graph.num_nodes)]
    rates = [Fraction(1, degree[u]) + Fraction(1, degree[v]) for u, v in pairs]
    return [(frozenset(pair), rate / sum(rates)) for pair, rate in zip(pairs, rates, strict=True)]


def law_of_walk(graph: Graph, length: int) -> list[tuple[frozenset, Fraction]]:
    """One walk of kind "walk": every root, every path."""
    rows = rows_of(graph)
    found: list[tuple[frozenset, Fraction]] = []

    def go(v: int, left: int, seen: frozenset, chance: Fraction) -> None:
        if left == 0 or not rows[v]:
            found.append((seen, chance))
            return
        for u, _ in rows[v]:
            go(u, left - 1, seen | {u}, chance / len(rows[v]))

    for v in range(graph.num_nodes):
        go(v, length, frozenset([v]), Fraction(1, graph.num_nodes))
    return found
