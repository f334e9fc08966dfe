"""Layer-wise samplers and walks on graphs of several node types: each type has draws of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_relations import TYPES, typed_graph

from nodeflow import FastGCNSampler, Graph, LadiesSampler, LayerSampler
from nodeflow.testing import assert_reproducible, assert_unbiased

SIZES: list[Any] = [{"a": 2, "c": 3}, {"a": 3, "c": 1}]
SEEDS = [*range(0, 20, 3), 7]
KINDS = {"layer": LayerSampler, "ladies": LadiesSampler, "fastgcn": FastGCNSampler}


def of_all(candidates: Any, step: Any) -> torch.Tensor:
    return candidates.flow.out_degrees.double() + 1


def drawn_by_type(graph: Graph, flow: Any) -> dict[str, int]:
    nodes = flow.src_layer.parent_nid[flow.edges()[0]].unique()
    return {name: int(((nodes >= ids.start) & (nodes < ids.stop)).sum()) for name, ids in graph.schema.nodes.items()}


@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"include_dst": False}], ids=str)
@pytest.mark.parametrize("draw", ["replacement", "poisson", "systematic"])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sizes", [SIZES, [3, 4]], ids=str)
def test_sums_over_the_types_that_are_drawn_are_unbiased(sizes: Any, name: str, draw: str, options: Any) -> None:
    graph = typed_graph(2, edges=20)
    sampler = KINDS[name](graph, sizes, draw=draw, seed=4, **options)
    assert_reproducible(sampler, SEEDS)
    assert_unbiased(sampler, SEEDS)


@pytest.mark.parametrize("draw", ["replacement", "systematic"])
@pytest.mark.parametrize("kind", [LayerSampler, LadiesSampler])
def test_every_type_has_its_number_of_draws(kind: Any, draw: str) -> None:
    graph = typed_graph(2)
    for epoch in range(20):
        batch = kind(graph, SIZES, draw=draw)(range(20), epoch=epoch)
        for flow, sizes in zip(batch.flows, SIZES, strict=True):
            drawn = drawn_by_type(graph, flow)
            for name, size in TYPES.items():
                most = min(size, sizes.get(name, 0))
                assert drawn[name] <= most if draw == "replacement" else drawn[name] == most


def test_scores_have_columns_of_the_draws_of_their_type() -> None:
    graph = typed_graph(2)
    batch = LayerSampler(graph, [{"a": 2, "c": 3}], score=of_all, draw="systematic")(range(20))
    drawn = batch.layers[0].data["draws"] > 0
    assert {name: int(drawn[batch.layers[0].of(name).rows].sum()) for name in TYPES} == {
        "a": 2,
        "b": 0,
        "empty": 0,
        "c": 3,
    }


def test_types_draw_on_their_own() -> None:
    # what one type draws does not depend on the number of draws of another
    graph = typed_graph(2)
    for kind in KINDS.values():
        both = kind(graph, [{"a": 2, "c": 3}], draw="systematic")(range(20))
        for name, size in (("a", 2), ("c", 3)):
            alone = kind(graph, [{name: size}], draw="systematic")(range(20))
            flow = both.flows[0]
            types = graph.schema.types_of(flow.src_layer.parent_nid[flow.edges()[0]].numpy())
            assert flow.parent_eid[types == list(TYPES).index(name)].tolist() == alone.flows[0].parent_eid.tolist()


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ([{"d": 1}], KeyError, "no node type 'd'; there are 'a', 'b', 'empty', 'c'"),
        ([{"a": -1}], ValueError, r"layer_sizes\[0\]\['a'\] must be at least 1, got -1"),
        ([{"a": 1.5}], TypeError, r"layer_sizes\[0\]\['a'\] must be an integer"),
        ([{"a": 2**40}], ValueError, "layer_sizes with replacement must be at most"),
        ({"a": 1}, TypeError, "layer_sizes must be a list with one number per flow, .* or a dict of them by node type"),
    ],
)
@pytest.mark.parametrize("kind", KINDS.values())
def test_bad_sizes(kind: Any, sizes: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        kind(typed_graph(0), sizes)
