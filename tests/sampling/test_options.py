"""Options that samplers share: in every signature, checked in one place, unknown names taught."""

from __future__ import annotations

import inspect
from typing import Unpack

import pytest
from _support.sampler_reference import star

from nodeflow import (
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LinkSampler,
    NeighborSampler,
    RandomWalkSampler,
    Sampler,
)
from nodeflow.sampling._options import SamplerOptions
from nodeflow.sampling.base import RowSampler

SHARED = ["direction", "include_dst", "reuse", "edge_filter", "weight", "seed"]


def test_signatures_have_all_options_once():
    parameters = inspect.signature(NeighborSampler).parameters
    assert list(parameters) == ["graph", "fanouts", "replace", "prob", "edge_type", "disjoint", *SHARED]
    assert parameters["direction"].default == "in"
    assert list(inspect.signature(RandomWalkSampler).parameters)[-5:] == [s for s in SHARED if s != "weight"]
    assert next(iter(inspect.signature(NeighborSampler(star(2), [1])).parameters)) == "seeds"  # that of a call


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (NeighborSampler, "num_neighbors", "called fanouts= here, one number per flow in flow order"),
        (LadiesSampler, "fanouts", "called layer_sizes= here"),
        (NeighborSampler, "random_state", "called seed= here"),
        (NeighborSampler, "includedst", "called include_dst= here"),
        (FullSampler, "seed", "it takes num_flows, direction"),
        (LadiesSampler, "reuse", "it takes layer_sizes, draw"),
        (Sampler, "colour", "it takes num_flows"),
    ],
)
def test_an_unknown_name_teaches(kind, name, words):
    with pytest.raises(TypeError, match=f"{kind.__name__} got an unexpected keyword argument '{name}'; .*{words}"):
        kind(star(2), **{name: 1})


def test_options_of_a_sampler_of_ones_own():
    class Typed(RowSampler):
        def __init__(self, graph: Graph, k: int, **options: Unpack[SamplerOptions]) -> None:
            super().__init__(graph, k, **options)

        def draw_rows(self, edges, rows, step):
            raise NotImplementedError

    class Untyped(Typed):
        def __init__(self, graph: Graph, **options) -> None:
            super().__init__(graph, 2, **options)

    assert list(inspect.signature(Typed).parameters) == ["graph", "k", *SHARED]
    assert list(inspect.signature(Untyped).parameters) == ["graph", *SHARED]
    assert Untyped(star(2), seed=5).seed == 5
    with pytest.raises(TypeError, match="Typed got an unexpected keyword argument 'fanout'"):
        Typed(star(2), 2, fanout=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'fanout'"):  # it might have taken it
        Untyped(star(2), fanout=1)


@pytest.mark.parametrize("name", ["replace", "disjoint", "include_dst", "reuse"])
def test_flags_are_true_or_false(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got str 'no'"):
        NeighborSampler(star(2), [1], **{name: "no"})


def test_a_sampler_says_what_a_seed_draws():
    graph = star(40)
    words = "  # flow order: a seed draws 5, and its batch has 66 nodes or fewer"
    assert repr(NeighborSampler(graph, [10, 5])).endswith(words)
    for options, most in (({"reuse": True}, 56), ({"include_dst": False}, 50)):
        assert f"{most} nodes or fewer" in repr(NeighborSampler(graph, [10, 5], **options))
    assert repr(NeighborSampler(graph, [10, -1])).endswith("# flow order: a seed draws all its neighbours")
    assert repr(LaborSampler(graph, [10, 5])).endswith("# flow order: a seed draws about 5")
    assert "#" not in repr(LadiesSampler(graph, [5])) + repr(LinkSampler(NeighborSampler(graph, [5])))
    assert "a seed draws 5" in NeighborSampler(graph, [10, 5])._repr_html_()
