"""Layer-wise samplers and walks on graphs of several node types: each type has draws of its own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import few_or_many_draws
from _support.graphs import TYPES, typed_graph
from _support.views import viewed

from nodeflow import FastGCNSampler, Graph, LadiesSampler, LayerSampler, RandomWalkSampler
from nodeflow.testing import assert_reproducible, assert_unbiased

SIZES: list[Any] = [{"a": 2, "c": 3}, {"a": 3, "c": 1}]
SEEDS = [*range(0, 20, 3), 7]
OPTIONS: list[Any] = [{}, {"weight": "w"}, {"include_dst": False}]
KINDS = {"layer": LayerSampler, "ladies": LadiesSampler, "fastgcn": FastGCNSampler}


def of_all(candidates: Any, step: Any) -> torch.Tensor:
    return candidates.flow.out_degrees.double() + 1


def drawn_by_type(graph: Graph, flow: Any) -> dict[str, int]:
    nodes = flow.src_layer.parent_nid[flow.edges()[0]].unique()
    return {
        name: int(((nodes >= ids.start) & (nodes < ids.stop)).sum())
        for name, ids in graph.schema.nodes.items()
    }


@few_or_many_draws
@pytest.mark.parametrize(
    ("sizes", "name", "draw", "options"),
    [  # every pair of name, draw and options; all together are slow
        pytest.param(
            sizes,
            name,
            draw,
            OPTIONS[k],
            id=f"{i}-{name}-{draw}-{k}",
            marks=[pytest.mark.slow] * ((k, i) != ((m + n) % 3, (m + n) % 2)),
        )
        for i, sizes in enumerate([SIZES, [3, 4]])
        for m, name in enumerate(KINDS)
        for n, draw in enumerate(["replacement", "poisson", "systematic"])
        for k in range(3)
    ],
)
def test_sums_over_the_types_that_are_drawn_are_unbiased(sizes, name, draw, options, draws):
    graph = typed_graph(2, edges=20)
    sampler = viewed(KINDS[name], graph, sizes, draw=draw, seed=4, **options)
    assert_reproducible(sampler, SEEDS)
    assert_unbiased(sampler, SEEDS, draws=draws)


@pytest.mark.parametrize("draw", ["replacement", "systematic"])
@pytest.mark.parametrize("kind", [LayerSampler, LadiesSampler])
def test_every_type_has_its_number_of_draws(kind, draw):
    graph = typed_graph(2)
    for epoch in range(20):
        batch = kind(graph, SIZES, draw=draw)(range(20), epoch=epoch)
        for flow, sizes in zip(batch.flows, SIZES, strict=True):
            drawn = drawn_by_type(graph, flow)
            for name, size in TYPES.items():
                most = min(size, sizes.get(name, 0))
                assert drawn[name] <= most if draw == "replacement" else drawn[name] == most


def test_scores_have_columns_of_the_draws_of_their_type():
    graph = typed_graph(2)
    batch = LayerSampler(graph, [{"a": 2, "c": 3}], score=of_all, draw="systematic")(range(20))
    drawn = batch.layers[0].data["draws"] > 0
    assert {name: int(drawn[batch.layers[0].of(name).rows].sum()) for name in TYPES} == {
        "a": 2,
        "b": 0,
        "empty": 0,
        "c": 3,
    }


def test_types_draw_on_their_own():
    # what one type draws does not depend on the number of draws of another
    graph = typed_graph(2)
    for kind in KINDS.values():
        both = kind(graph, [{"a": 2, "c": 3}], draw="systematic")(range(20))
        for name, size in (("a", 2), ("c", 3)):
            alone = kind(graph, [{name: size}], draw="systematic")(range(20))
            flow = both.flows[0]
            types = graph.schema.types_of(flow.src_layer.parent_nid[flow.edges()[0]].numpy())
            assert (
                flow.parent_eid[types == list(TYPES).index(name)].tolist()
                == alone.flows[0].parent_eid.tolist()
            )


# ---- walks along a metapath

PATHS: list[Any] = [
    [("c", "y", "c")],
    ["w", ("a", "x", "c"), ("b", "x", "a")],
    [("a", "x", "c"), ("b", "x", "a"), "w"],
]


def chances(graph: Graph, path: list[Any], start: int, direction: str) -> np.ndarray[Any, Any]:
    """The probability that one pass of the path from a node ends at each node; at its start where
    no edge goes on.
    """
    near, far = graph.find_edges(range(graph.num_edges))[:: -1 if direction == "in" else 1]
    at = np.zeros(graph.num_nodes)
    lost = 0.0
    at[start] = 1
    for name in path:
        ids = graph.relations[name].ids
        after = np.zeros(graph.num_nodes)
        own = np.isin(np.arange(graph.num_edges), ids)
        for v in np.flatnonzero(at):
            to = far.numpy()[own & (near.numpy() == v)]
            lost += at[v] * (len(to) == 0)
            np.add.at(after, to, at[v] / max(len(to), 1))
        at = after
    at[start] += lost
    return at


@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_passes_of_a_metapath_end_where_their_chances_say(path, direction):
    graph = typed_graph(5, edges=14)
    path = path if direction == "in" else path[::-1]
    walks = 4000
    begin = graph.schema.relation(path[0])[2 if direction == "in" else 0]
    sampler = RandomWalkSampler(
        graph.view(direction), 1, num_walks=walks, walk_length=1, metapath=path, seed=3
    )
    seeds = torch.arange(graph.num_nodes)[
        graph.nodes[begin].ids.start : graph.nodes[begin].ids.stop
    ]
    flow = sampler(seeds).flows[0]
    for i, v in enumerate(seeds.tolist()):
        law = chances(graph, path, v, direction)
        row = slice(*flow.indptr[i : i + 2].tolist())
        visits = np.zeros(graph.num_nodes)
        visits[flow.src_layer.parent_nid[flow.indices[row]]] = flow.data["visits"][row]
        law[v] = 0
        # an error of 1e-9 over at most 12 x 20 x 12 numbers: 7 deviations
        assert (np.abs(visits - walks * law) <= 7 * np.sqrt(walks * law * (1 - law)) + 1e-9).all()


def test_layers_of_a_metapath_hold_the_type_where_it_begins():
    graph = typed_graph(5)
    sampler = RandomWalkSampler(
        graph, 2, metapath=[("a", "x", "c"), ("b", "x", "a"), "w"], num_walks=20, walk_length=3
    )
    seeds = graph.nodes["c"].to_graph(range(12))
    batch = sampler(seeds)
    assert all(layer.of("c").data.num_rows == layer.num_nodes for layer in batch.layers)
    for cut in pairwise([0, 5, 12]):
        part = sampler.without_edges(graph.relations["w"].ids[: cut[1]])(seeds[slice(*cut)])
        part.validate()
