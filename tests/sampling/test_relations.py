"""NeighborSampler on graphs of several relations: every node draws for each relation that can reach
it, on its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _support.effort import few_or_many_draws
from _support.graphs import RELATIONS, TYPES, typed_graph
from _support.sampler_reference import picked_positions
from _support.views import viewed
from _support.weighted_reference import edges_by_kind

from nodeflow import FullSampler, Graph, NeighborSampler
from nodeflow.testing import assert_reproducible, assert_unbiased


def rows_of_nodes(direction: str) -> dict[tuple[int, int], int]:
    """The number of the row of every node and relation, one after another."""
    rows: dict[tuple[int, int], int] = {}
    v = 0
    for name, size in TYPES.items():
        for _ in range(size):
            for i, relation in enumerate(RELATIONS):
                ends = {"in": relation[2:], "out": relation[:1], "both": relation[::2]}[direction]
                if name in ends:
                    rows[v, i] = len(rows)
            v += 1
    return rows


def expected(graph: Graph, fanouts: Any, ids: list[int], **options: Any) -> Any:
    rows = rows_of_nodes(options["direction"])
    counts = [fanouts] * len(RELATIONS)
    if not isinstance(fanouts, int):
        counts = [fanouts.get(name, fanouts.get(name[1], 0)) for name in RELATIONS]
    kinds = graph.schema.relations_of(np.arange(graph.num_edges)).tolist()
    return edges_by_kind(graph, ids, counts, lambda e: kinds[e], lambda v, i: rows[v, i], **options)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize(
    "fanouts", [2, -1, {("a", "x", "c"): 1, "w": 3}, {("c", "y", "c"): -1, "z": 2}, {}], ids=str
)
def test_equals_pure_python(fanouts, prob, direction, replace):
    for number, ids in enumerate([[8], [7, 1, 19, 0], list(range(20))]):
        graph = typed_graph(number)
        options = {"replace": replace, "direction": direction, "seed": number, "prob": prob}
        batch = viewed(NeighborSampler, graph, [fanouts], **options)(ids, epoch=number)
        batch.validate()
        assert picked_positions(batch) == expected(graph, fanouts, ids, epoch=number, **options)


@few_or_many_draws
@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"prob": "w"}, {"direction": "both"}, {"disjoint": True}]
)
def test_sums_are_unbiased_for_every_relation(options, draws):
    graph = typed_graph(3, edges=25)
    fanouts = [
        {("a", "x", "c"): 2, "w": 1, ("c", "y", "c"): 3},
        {("a", "x", "c"): 1, "w": 2, ("c", "y", "c"): -1},
    ]
    sampler = viewed(NeighborSampler, graph, fanouts, seed=5, **options)
    seeds = [*range(0, 20, 3), 7]
    assert_unbiased(sampler, seeds, draws=draws)
    assert_reproducible(sampler, seeds)


def test_a_full_neighbourhood_keeps_all_edges_in_their_order():
    graph = typed_graph(1)
    batch = FullSampler(graph, 2)(range(20))
    assert batch.flows[-1].parent_eid.tolist() == graph.in_edges(range(20))[2].tolist()
