"""Samplers whose rows draw on their own, on graphs of several relations: each relation has a law of
its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import few_or_many_draws
from _support.graphs import RELATIONS, typed_graph
from _support.sampler_families import fingerprint
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import (
    BernoulliSampler,
    ControlVariateSampler,
    FastGCNSampler,
    Graph,
    History,
    LaborSampler,
    NeighborSampler,
    RandomWalkSampler,
    ShadowSampler,
    TemporalNeighborSampler,
)
from nodeflow._core.edges.forms import COMPILED, Placed
from nodeflow.sampling.base import Drawn, RowSampler
from nodeflow.testing import (
    CheckError,
    assert_reproducible,
    assert_unbiased,
    check_sampler,
    seeds,
    typed_graphs,
)

FANOUTS: list[Any] = [
    {("a", "x", "c"): 1, "w": 2, ("c", "y", "c"): -1},
    {("a", "x", "c"): 2, "w": 1, ("c", "y", "c"): 3},
]
RATES: list[Any] = [{"w": 0.4, ("c", "y", "c"): 1.0}, {"w": 0.6, ("c", "y", "c"): 0.5}]
SEEDS = [*range(0, 20, 3), 7]
MAKE = {
    "bernoulli": lambda graph, **options: viewed(BernoulliSampler, graph, FANOUTS, **options),
    "rates": lambda graph, **options: viewed(BernoulliSampler, graph, rates=RATES, **options),
    "labor": lambda graph, **options: viewed(LaborSampler, graph, FANOUTS, **options),
    "labor, sequential": lambda graph, **options: viewed(
        LaborSampler, graph, FANOUTS, method="sequential", **options
    ),
    "labor, two rounds": lambda graph, **options: viewed(
        LaborSampler, graph, FANOUTS, iterations=2, **options
    ),
    "labor, both": lambda graph, **options: viewed(
        LaborSampler, graph, FANOUTS, iterations=1, method="sequential", **options
    ),
}


def relations_of(graph: Graph, flow: Any) -> np.ndarray[Any, Any]:
    return graph.schema.relations_of(flow.parent_eid.numpy())


@few_or_many_draws
@pytest.mark.parametrize(
    "direction", ["in", *(pytest.param(each, marks=pytest.mark.slow) for each in ("out", "both"))]
)
@pytest.mark.parametrize("name", MAKE)
def test_sums_of_the_relations_that_are_drawn_are_unbiased(name, direction, draws):
    graph = typed_graph(3, edges=25)
    sampler = MAKE[name](graph, seed=5, direction=direction)
    assert_unbiased(sampler, SEEDS, draws=draws)
    assert_reproducible(sampler, SEEDS)
    names = {i for i, relation in enumerate(RELATIONS) if relation[1] in ("x", "w", "z", "y")}
    assert set(np.unique(relations_of(graph, sampler(SEEDS).flows[-1]))) <= names


@pytest.mark.cases(1)
@few_or_many_draws
@pytest.mark.parametrize("name", MAKE)
def test_edges_left_out_are_left_out_of_their_relation(name, draws):
    graph = typed_graph(4, edges=25)
    sampler = MAKE[name](graph, seed=5)
    left_out = torch.arange(0, graph.num_edges, 3)
    assert not np.isin(sampler.without_edges(left_out)(SEEDS).flows[-1].parent_eid, left_out).any()
    assert_unbiased(sampler.without_edges(left_out), SEEDS, draws=draws)


@pytest.mark.parametrize("method", ["poisson", "sequential"])
@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_each_relation_draws_what_it_draws_alone(iterations, method):
    # a source has one number for all relations; with one row per source and relation, rounds do not
    # mix them
    graph = typed_graph(5)
    options = {"iterations": iterations, "method": method, "seed": 3}
    alone = [
        viewed(LaborSampler, graph, [{relation: 2}], **options)(range(20)) for relation in RELATIONS
    ]
    every = viewed(LaborSampler, graph, [2], **options)(range(20))
    drawn = torch.cat([batch.flows[0].parent_eid for batch in alone])
    if iterations == 0:
        assert torch.equal(every.flows[0].parent_eid.sort()[0], drawn.sort()[0])
    else:  # the importance of a source is that of all its relations
        assert every.layers[0].num_nodes <= len(
            torch.cat([b.layers[0].parent_nid for b in alone]).unique()
        )


def test_a_row_sampler_of_ones_own_draws_per_relation():
    class First(RowSampler):
        def draw_rows(self, edges: Any, rows: Any, step: Any) -> Drawn:
            begin = edges.indptr[rows.numbers]
            end = edges.indptr[rows.numbers + 1]
            some = np.flatnonzero(end > begin)
            indptr = np.searchsorted(some, np.arange(len(begin) + 1))
            return Drawn(indptr, begin[some], edges.indices[begin[some]].astype(np.int64), None)

    graph = typed_graph(6)
    flow = First(graph, 1)(range(20)).flows[0]
    firsts: dict[tuple[int, int], int] = {}
    dst = graph.find_edges(range(graph.num_edges))[1].tolist()
    for edge, pair in enumerate(
        zip(dst, graph.schema.relations_of(np.arange(graph.num_edges)), strict=True)
    ):
        firsts.setdefault(pair, edge)
    assert sorted(flow.parent_eid.tolist()) == sorted(firsts.values())


# ---- times


def timed(seed: int, *, of_nodes: bool) -> tuple[Graph, dict[int, float]]:
    """A typed graph with times of types "a" and "c" only, or of two relations too; and the time of
    each edge.
    """
    graph = typed_graph(seed, edges=40)
    rng = np.random.default_rng(seed)
    for name in ("a", "c"):
        graph.nodes[name].data["t"] = torch.from_numpy(rng.integers(0, 20, len(graph.nodes[name])))
    if not of_nodes:
        for name in (("a", "x", "c"), ("b", "x", "a")):
            graph.relations[name].data["t"] = torch.from_numpy(
                rng.integers(0, 20, len(graph.relations[name]))
            )
    times = {}
    src, _ = graph.find_edges(range(graph.num_edges))
    for name, part in graph.relations.items():
        for edge in part.ids:
            source = graph.nodes[name[0]]
            own = float(part.data["t"][edge - part.ids.start]) if "t" in part.data else -np.inf
            born = (
                float(source.data["t"][int(src[edge]) - source.ids.start])
                if "t" in source.data
                else -np.inf
            )
            times[edge] = max(own, born)
    return graph, times


@pytest.mark.parametrize(
    "options",
    [{}, {"strategy": "recent"}, {"replace": True}, {"since": 5}, {"strict": True}],
    ids=str,
)
@pytest.mark.parametrize("of_nodes", [True, False])
@pytest.mark.parametrize(
    "fanouts", [2, {("c", "y", "c"): 1, "w": -1, ("b", "x", "a"): 2, ("a", "x", "c"): 2}], ids=str
)
def test_nothing_is_later_than_the_seed(fanouts, of_nodes, options):
    for seed in range(3):
        graph, times = timed(seed, of_nodes=of_nodes)
        seeds = [*range(20), 8, 9]
        when = torch.arange(22) % 17
        batch = viewed(
            TemporalNeighborSampler, graph, [fanouts, fanouts], time="t", seed=seed, **options
        )(seeds, times=when)
        batch.validate()
        for flow in batch.flows:
            limit = flow.dst_layer.data["time"][flow.edges()[1]].tolist()
            for edge, now in zip(flow.parent_eid.tolist(), limit, strict=True):
                assert times[edge] < now if options.get("strict") else times[edge] <= now
                assert times[edge] >= now - options.get("since", np.inf) or times[edge] == -np.inf
            _check_counts(graph, times, flow, fanouts, options)


def _check_counts(
    graph: Graph, times: dict[int, float], flow: Any, fanouts: Any, options: Any
) -> None:
    """Every node has as many edges of each relation as its past allows."""
    counts = np.full(len(RELATIONS), -1)
    for i, name in enumerate(RELATIONS):
        counts[i] = (
            fanouts if isinstance(fanouts, int) else fanouts.get(name, fanouts.get(name[1], 0))
        )
    when = np.array([times[edge] for edge in range(graph.num_edges)])
    relations = graph.schema.relations_of(np.arange(graph.num_edges))
    entered = graph.edges()[1].numpy()
    dst = flow.dst_layer
    drawn = flow.parent_eid.split(flow.in_degrees.tolist())
    for v, now, eid in zip(dst.parent_nid, dst.data["time"].tolist(), drawn, strict=True):
        seen = when < now if options.get("strict") else when <= now
        # edges without a time are in every window
        seen &= (when >= now - options.get("since", np.inf)) | (when == -np.inf)
        past = np.bincount(relations[seen & (entered == int(v))], minlength=len(counts))
        most = np.where(counts < 0, past, np.minimum(past, counts))
        if options.get("replace"):
            most = np.where((counts > 0) & (past > 0), counts, most)
        assert np.bincount(relations[eid.numpy()], minlength=len(counts)).tolist() == most.tolist()


@few_or_many_draws
@pytest.mark.parametrize("options", [{}, {"replace": True}, {"since": 8}])
def test_sums_over_the_past_are_unbiased(options, draws):
    graph, _ = timed(1, of_nodes=True)
    sampler = viewed(
        TemporalNeighborSampler, graph, [{"w": 1, ("c", "y", "c"): 2}], time="t", **options
    )
    assert_unbiased(sampler, SEEDS, times=[12] * 8, draws=draws)


def test_a_node_without_a_time_is_always_there():
    graph = Graph.typed(
        {"v": {"t": torch.tensor([float("nan"), 3.0, 9.0])}},
        {("v", "e", "v"): ([0, 1, 2], [1, 1, 1])},
    )
    sampler = TemporalNeighborSampler(graph, [-1], time="t")
    assert sampler([1], times=[-1e300]).layers[0].parent_nid.tolist() == [1, 0]
    assert sampler([1], times=[3.0]).layers[0].parent_nid.tolist() == [1, 0]
    assert sampler([1], times=[9.0]).flows[0].parent_eid.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({}, KeyError, "neither edges nor nodes have a column 't'"),
        (
            {"a": [1] * 7, "c": [1.0] * 12},
            TypeError,
            "all columns 't' must hold integers, or all of them floats",
        ),
        ({"a": [[1]] * 7}, TypeError, "the column 't' must hold an integer or a float per row"),
        (
            {"c": [float("inf")] * 12},
            ValueError,
            "the column 't' must be finite, but row 0 has inf",
        ),
    ],
)
def test_bad_times_of_nodes(columns, error, words):
    graph = typed_graph(0)
    for name, values in columns.items():
        graph.nodes[name].data["t"] = torch.tensor(values)
    with pytest.raises(error, match=words):
        TemporalNeighborSampler(graph, [1], time="t")


def test_scopes_grow_by_relation():
    graph = typed_graph(2)
    batch = ShadowSampler(graph, 2, depth=1, fanout={"w": 2, ("a", "x", "c"): 1})([7, 8])
    scope = {"b": 0, "c": 0, "a": 0} | {
        name: batch.layers[0].of(name).data.num_rows for name in ("a", "b", "c")
    }
    assert scope == {"a": 1, "b": 1, "c": 3}
    with pytest.raises(KeyError, match="no relation 'q'"):
        ShadowSampler(graph, 2, depth=1, fanout={"q": 2})
    with pytest.raises(TypeError, match=r"fanout\['w'\] must be an integer"):
        ShadowSampler(graph, 2, depth=1, fanout={"w": 2.5})


@few_or_many_draws
def test_sums_with_history_are_unbiased_on_relations(draws):
    graph = typed_graph(3, edges=25)
    history = History(graph, {1: 2})
    sampler = ControlVariateSampler(history, [2, 1])
    assert_unbiased(sampler, SEEDS, draws=draws)
    assert sampler(SEEDS).ldata[1]["h_1"].shape[1] == 2


@pytest.mark.parametrize(
    "name",
    [
        "rates",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("bernoulli", "labor, sequential")
        ),
    ],
)
def test_checks_of_samplers_know_relations(name):
    graph = typed_graph(3)
    report = check_sampler(
        MAKE[name](graph), SEEDS, checks=["structure", "fanouts", "marginals", "pickles"]
    )
    assert report.passed


def test_a_reader_without_kinds_is_laid_out_by_them():
    graph = typed_graph(2)
    plain = FastGCNSampler(graph, [1]).without_edges(range(0, 300, 7)).reader
    sampler = NeighborSampler(graph, [{"w": -1, ("c", "y", "c"): 2}])
    same = sampler.with_reader(plain)(range(20)).flows[0]
    assert torch.equal(
        same.parent_eid, sampler.without_edges(range(0, 300, 7))(range(20)).flows[0].parent_eid
    )


@given(typed_graphs(), st.data())
def test_batches_have_all_edges_that_the_fanouts_allow(graph, data):
    nodes = data.draw(seeds(graph))
    fanouts = data.draw(st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=2))
    batch = NeighborSampler(graph, fanouts, seed=1)(nodes)
    batch.validate()
    relations = graph.schema.relations_of(np.arange(graph.num_edges))
    for fanout, flow in zip(fanouts, batch.flows, strict=True):
        for name, cut in ((name, flow.of(name)) for name in graph.schema.relations):
            assert set(relations[cut.parent_eid.numpy()]) <= {
                list(graph.schema.relations).index(name)
            }
            ids = set(graph.schema.relations[name])
            nodes = flow.dst_layer.parent_nid.tolist()
            own = [len(set(graph.in_edges([v])[2].tolist()) & ids) for v in nodes]
            assert cut.in_degrees.tolist() == [n if fanout < 0 else min(n, fanout) for n in own]
        assert sum(flow.of(name).num_edges for name in graph.schema.relations) == flow.num_edges
    for layer in batch.layers:
        assert sum(len(layer.of(name)) for name in graph.schema.nodes) == layer.num_nodes


def test_a_graph_of_types_that_fails_is_printed_small():
    class Less(NeighborSampler):
        def draw_rows(self, edges: Any, rows: Any, step: Any) -> Drawn:
            drawn = super().draw_rows(edges, rows, step)
            return Drawn(drawn.indptr, drawn.positions, drawn.src, None, drawn.varies)

    graph = typed_graph(3, edges=25)
    graph.nodes["a"].data["t"] = torch.arange(7)
    with pytest.raises(CheckError, match=r"Graph.typed\(\{") as error:
        check_sampler(Less(graph, [1]), SEEDS, checks=["marginals"])
    (line,) = [
        line.strip() for line in str(error.value).splitlines() if "graph = Graph.typed" in line
    ][:1]
    names: dict[str, Any] = {"Graph": Graph, "torch": torch}
    exec(line, names)
    assert list(names["graph"].schema.relations) == RELATIONS
    assert 0 < names["graph"].num_edges < 40


@pytest.mark.parametrize("of_nodes", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_checks_of_samplers_know_times_of_nodes(of_nodes):
    class Late(TemporalNeighborSampler):
        def read_graph(self) -> None:
            super().read_graph()
            self._stamps = Placed(self._stamps.at(COMPILED)[0] - 1)

    graph, _ = timed(2, of_nodes=of_nodes)
    sampler = TemporalNeighborSampler(graph, [2, 2], time="t")
    report = check_sampler(sampler, SEEDS, checks=["structure", "future", "marginals"])
    assert [outcome.status for outcome in report.outcomes] == ["passed"] * 3
    with pytest.raises(CheckError, match="sees the future"):
        check_sampler(
            Late(graph, [2, 2], time="t"), range(20), times=[7] * 20, checks=["future"], budget=0
        )


@pytest.mark.parametrize(
    ("make", "number", "by_name"),
    [
        (NeighborSampler, [2, 1], [{"edge": 2}, 1]),
        (
            lambda graph, rates: BernoulliSampler(graph, rates=rates),
            [0.5, 1.0],
            [{"edge": 0.5}, 1.0],
        ),
        (LaborSampler, [2, 1], [{"edge": 2}, {("node", "edge", "node"): 1}]),
        (lambda graph, fanout: ShadowSampler(graph, 2, 1, fanout), 2, {"edge": 2}),
        (lambda graph, path: RandomWalkSampler(graph, 2, metapath=path), None, ["edge"]),
    ],
)
def test_a_graph_without_types_has_one_relation(make, number, by_name):
    edges = np.random.default_rng(0).integers(0, 9, (2, 50))
    graph = Graph.from_edges(*edges, num_nodes=9)
    typed = Graph.typed({"node": 9}, {("node", "edge", "node"): tuple(edges)})
    samplers = make(graph, number), make(graph, by_name), make(typed, by_name)
    prints = {fingerprint(sampler([1, 2, 8])) for sampler in samplers}
    assert len(prints) == 1
    assert all(repr(sampler) and sampler._repr_html_() for sampler in samplers)


def test_a_node_that_is_not_there_yet_has_no_edges():
    nodes = {"u": 2, "e": {"t": torch.tensor([5, 7, 9])}}
    edges = {("e", "d", "u"): ([0, 1, 2], [0, 0, 0], {"t": torch.tensor([1, 20, 9])})}
    sampler = TemporalNeighborSampler(Graph.typed(nodes, edges), [-1], time="t")
    for time, there in ((3, []), (5, [0]), (9, [0, 2]), (20, [0, 1, 2])):
        assert sorted(sampler([0], times=[time]).flows[0].parent_eid.tolist()) == there
    graph = Graph.from_edges([0, 1], [2, 2], edata={"t": torch.tensor([1, 4])})
    graph.ndata["t"] = torch.tensor([3, 0, 9])
    assert TemporalNeighborSampler(graph, [-1], time="t")([2], times=[2]).flows[0].num_edges == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda graph: NeighborSampler(graph, [2, 1]),
        lambda graph: RandomWalkSampler(graph, 1, metapath=["w", ("a", "x", "c"), ("b", "x", "a")]),
    ],
)
def test_samplers_of_types_pass_all_checks(make):
    assert check_sampler(make(typed_graph(3)), [7]).passed


def test_a_relation_is_named_by_its_three_words():
    schema = Graph.typed(
        {"a": 1, "b": 1}, {("a", "x", "b"): ([0], [0]), ("b", "x", "a"): ([0], [0])}
    ).schema
    assert schema.relation("b x a") == ("b", "x", "a")
    with pytest.raises(ValueError, match="2 relations have the name 'x'"):
        schema.relation("x")
    with pytest.raises(KeyError, match="no relation 'b y a'"):
        schema.relation("b y a")


def test_a_relation_with_more_edges_than_its_fanout_is_told():
    class More(NeighborSampler):
        def read_graph(self) -> None:
            super().read_graph()
            self._counts = [counts + 1 for counts in self._counts]

    with pytest.raises(
        CheckError, match=r"flow 0 has more than \d edges of type \('\w', '\w', '\w'\)"
    ):
        check_sampler(More(typed_graph(3), [{"w": 1}]), SEEDS, checks=["fanouts"])
