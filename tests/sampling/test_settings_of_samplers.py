"""Settings are the arguments of ``__init__``: shown by ``repr``, which makes the sampler again, and
set once.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, degrees, fingerprint, graph_of_all, sampled
from _support.sampler_reference import star

import nodeflow
from nodeflow import (
    BernoulliSampler,
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LinkSampler,
    NeighborSampler,
    RandomWalkSampler,
    Sampler,
    TemporalNeighborSampler,
)
from nodeflow.control_variates import ControlVariateSampler, History
from nodeflow.loader import NodeFlowLoader
from nodeflow.sampling.base import BoundSampler, RowSampler, SamplerBase

GRAPH = graph_of_all()
# by a hash or a name, from which nothing can be made again
SHOWN_IN_SHORT = ("edge_filter", "parts", "score")


def sampler_view(sampler: SamplerBase) -> dict[str, Any]:
    """What the settings of a sampler say of its view of edges."""
    return sampler.view.settings if isinstance(sampler, BoundSampler) else {}


@pytest.mark.parametrize("name", FAMILIES)
def test_settings_are_arguments(name):
    sampler = FAMILIES[name](GRAPH)
    parameters = inspect.signature(type(sampler)).parameters
    # shown if not the default
    later = {key for key, p in parameters.items() if p.default is None or key == "disjoint"}
    left_out = later - set(sampler.settings)
    own = [key for key in sampler.settings if key not in sampler_view(sampler)]
    assert [key for key in parameters if key in own] == own
    if name != "link":
        assert ["graph", *own] == [key for key in parameters if key not in left_out]


@pytest.mark.parametrize("name", FAMILIES)
def test_settings_stay(name):
    sampler = FAMILIES[name](GRAPH)
    before = repr(sampler)
    fixed = {"graph", *(sampler.settings.keys() - sampler_view(sampler))}
    if hasattr(sampler, "view"):
        fixed.add("view")
    for key in sorted(fixed):
        with pytest.raises(AttributeError, match=f"{key} of a sampler is fixed"):
            setattr(sampler, key, None)
    assert repr(sampler) == before


@pytest.mark.parametrize(
    "name", [n for n in FAMILIES if not set(SHOWN_IN_SHORT) & set(FAMILIES[n](GRAPH).settings)]
)
def test_repr_makes_the_sampler_again(name):
    sampler = FAMILIES[name](GRAPH)
    again = eval(repr(sampler).replace(repr(GRAPH), "GRAPH"), vars(nodeflow) | {"GRAPH": GRAPH})
    assert repr(again) == repr(sampler)
    assert fingerprint(sampled(name, again)) == fingerprint(sampled(name, sampler))


def test_a_full_sampler_shows_what_it_takes():
    graph = star(2)
    assert (
        repr(FullSampler(graph, 2))
        == f"FullSampler({graph}, num_flows=2, include_dst=True, reuse=False)"
    )
    with pytest.raises(AttributeError, match="fanouts of a sampler is fixed"):
        FullSampler(graph, 2).fanouts = (1, 1)


class Own(NeighborSampler):
    """Passes some arguments on, and has one of its own that may be left out."""

    def __init__(self, graph: Graph, k: int, *, scale: float | None = None, **options) -> None:
        super().__init__(graph, [k, k], replace=True, **options)
        self.k = k
        self.scale = scale
        self.words = ["a", 1]


def test_a_sampler_of_ones_own():
    graph = star(3)
    own = Own(graph, 2, seed=4)
    assert own.settings == {  # what is left at None is not shown
        "k": 2, "fanouts": (2, 2), "replace": True, "direction": "in", "include_dst": True, "reuse": False, "seed": 4,
        "words": ["a", 1],
    }  # fmt: skip
    assert list(own.settings)[:3] == ["k", "fanouts", "replace"]
    assert "Own(Graph(4 nodes, 3 edges), k=2, scale=0.5, " in repr(Own(graph, 2, scale=0.5))
    assert repr(pickle.loads(pickle.dumps(own))) == repr(own)
    for name in ("k", "scale", "fanouts", "seed", "graph"):
        with pytest.raises(AttributeError, match=f"{name} of a sampler is fixed"):
            setattr(own, name, 1)
    own.words = ["b"]  # no argument


def test_a_sampler_that_hides_the_arguments_of_its_base():
    class Two(NeighborSampler):
        def __init__(self, graph: Graph) -> None:
            super().__init__(graph, [2, 2])

    sampler = Two(star(3))
    assert sampler.text() == f"Two({sampler.graph})"
    state = NodeFlowLoader(sampler, [0]).state_dict()
    NodeFlowLoader(Two(star(3)), [0]).load_state_dict(state)
    state = NodeFlowLoader(Own(star(3), 2), [0]).state_dict()
    with pytest.raises(ValueError, match="the state is of a sampler with k=2, this one has 3"):
        NodeFlowLoader(Own(star(3), 3), [0]).load_state_dict(state)


def test_functions_are_shown_by_name():
    class Scored(SamplerBase):
        def __init__(self, graph: Graph, score, net, table) -> None:
            super().__init__(graph, 1)
            self.score = score
            self.net = net
            self.table = table

        def _sample(self, seeds, keys):
            raise NotImplementedError

    scored = Scored(star(2), degrees, torch.nn.Linear(1, 1), torch.ones(2))
    assert scored.settings == {"score": "degrees", "net": "Linear"}


def test_missing_of_a_control_variate_sampler_stays():
    history = History(GRAPH.view(weight="w"), {1: 3})
    sampler = ControlVariateSampler(history, [2, 2])
    assert list(sampler.settings) == [
        "history",
        "fanouts",
        "missing",
        "replace",
        "include_dst",
        "reuse",
        "seed",
    ]
    assert sampler.settings["history"] == {"widths": {1: 3}, "weight": "w", "direction": "in"}
    with pytest.raises(AttributeError, match="missing of a sampler is fixed"):
        sampler.missing = "nonsense"
    with pytest.raises(ValueError, match="missing must be"):
        ControlVariateSampler(history, [2, 2], missing="nonsense")


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_read_from_the_graph_is_not_pickled(name):
    sampler = FAMILIES[name](GRAPH)
    sampler.bind()  # a second time, as where a subclass binds too
    values = sampler.__getstate__().values()
    assert b"Edges" not in pickle.dumps(sampler)
    # no edges are left out
    assert sum(value.size for value in values if isinstance(value, np.ndarray)) == 0


class FromHeavyEdges(Sampler):
    """Takes the edges above the mean of a column."""

    def __init__(self, graph: Graph, column: str, **options) -> None:
        self.column = column
        super().__init__(graph, 1, **options)

    def read_graph(self) -> None:
        super().read_graph()
        self.heavy = self.graph.edata[self.column] > self.graph.edata[self.column].mean()

    def choose(self, dst, step):
        candidates = self.candidates(dst)
        return candidates.select(self.heavy[candidates.eid])


def test_a_sampler_of_ones_own_that_reads_a_column():
    sampler = FromHeavyEdges(GRAPH, "w")
    assert "heavy" not in sampler.__getstate__()
    assert "heavy" not in sampler.settings
    again = pickle.loads(pickle.dumps(sampler.without_edges([3])))
    assert again.heavy.equal(sampler.heavy)
    assert fingerprint(again(range(20))) == fingerprint(sampler.without_edges([3])(range(20)))


SHARED = ["include_dst", "reuse", "seed"]


def test_signatures_have_all_options_once():
    parameters = inspect.signature(NeighborSampler).parameters
    assert list(parameters) == [
        "graph",
        "fanouts",
        "num_neighbors",
        "replace",
        "prob",
        "disjoint",
        "edge_type",
        *SHARED,
    ]
    assert list(inspect.signature(RandomWalkSampler).parameters)[-3:] == SHARED
    # that of a call
    assert next(iter(inspect.signature(NeighborSampler(star(2), [1])).parameters)) == "seeds"


def test_all_arguments_may_be_named_and_annotations_unknown():
    class Own(NeighborSampler):
        def __init__(self, graph, **options: Unknown):  # noqa: F821
            super().__init__(graph, [2], **options)

    graph = Graph.from_edges([0, 1], [1, 0])
    assert NeighborSampler(graph=graph, fanouts=[2]).fanouts == Own(graph=graph, seed=3).fanouts


def test_options_of_a_sampler_of_ones_own():
    class Named(RowSampler):
        def __init__(self, graph: Graph, k: int, *, reuse: bool = True, seed: int = 0) -> None:
            super().__init__(graph, k, reuse=reuse, seed=seed)

        def draw_rows(self, edges, rows, step):
            raise NotImplementedError

    class PassesOn(Named):
        def __init__(self, graph: Graph, **options) -> None:
            super().__init__(graph, 2, **options)

    assert list(inspect.signature(Named).parameters) == ["graph", "k", "reuse", "seed"]
    assert list(inspect.signature(PassesOn).parameters) == ["graph", "options"]
    assert PassesOn(star(2), seed=5).settings == {"reuse": True, "seed": 5, "direction": "in"}
    with pytest.raises(
        TypeError,
        match="Named got an unexpected keyword argument 'include_dst'; it takes graph, k, reuse",
    ):
        Named(star(2), 2, include_dst=True)
    # it might have taken it
    with pytest.raises(TypeError, match="unexpected keyword argument 'fanout'"):
        PassesOn(star(2), fanout=1)


def test_a_sampler_says_what_a_seed_draws():
    graph = star(40)
    sampler = NeighborSampler(graph, [10, 5])
    assert repr(sampler).endswith("  # flow order: a seed draws 5")
    assert "a seed draws 5" in sampler._repr_html_()
    assert repr(NeighborSampler(graph, [10, -1])).endswith("a seed draws all its neighbours")
    assert repr(LaborSampler(graph, [10, 5])).endswith("# flow order: a seed draws about 5")
    for other in (LadiesSampler(graph, [5]), LinkSampler(sampler), FullSampler(graph, 2)):
        assert "#" not in repr(other)


TYPED = Graph.typed(
    {"a": 4, "b": 3},
    {("a", "to", "b"): ([0, 1, 2, 3], [0, 0, 1, 1]), ("b", "of", "a"): ([0, 2], [1, 1])},
)


@pytest.mark.parametrize(
    "kind", [NeighborSampler, LaborSampler, TemporalNeighborSampler, BernoulliSampler]
)
def test_num_neighbors_are_fanouts_from_the_seeds_on(kind):
    sampler = kind(GRAPH, num_neighbors=[5, 2, -1])
    same = kind(GRAPH, [-1, 2, 5])
    assert sampler.fanouts == same.fanouts == (-1, 2, 5)
    assert repr(sampler) == repr(same)
    assert sampler.settings == same.settings
    assert "num_neighbors" not in sampler.settings


def test_num_neighbors_by_relation():
    by_list = NeighborSampler(TYPED, num_neighbors={("a", "to", "b"): [3, 1], "of": [0, 2]})
    assert by_list.fanouts == ({("a", "to", "b"): 1, "of": 2}, {("a", "to", "b"): 3, "of": 0})
    assert (
        by_list.fanouts == NeighborSampler(TYPED, num_neighbors=list(by_list.fanouts[::-1])).fanouts
    )
    assert by_list([4]).flow_sizes[1] == 2


def test_num_neighbors_of_control_variates():
    sampler = ControlVariateSampler(History(GRAPH.view(weight="w"), {1: 3}), num_neighbors=[4, 1])
    assert sampler.fanouts == (1, 4)
    with pytest.raises(TypeError, match="history must be a History, got "):
        ControlVariateSampler(GRAPH, num_neighbors=[4, 1])
