"""Estimates of the size of a batch: against the mean of many draws, against exact sizes, and who has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, call_of, graph_of_all
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import BernoulliSampler, FullSampler, Graph, LaborSampler, NeighborSampler, Sampler, testing
from nodeflow.sampling import Candidates, Estimate, Inclusion, RowSampler, SamplerBase, inclusion_probabilities

DRAWS = 400


def plain_graph(num_nodes: int = 400, num_edges: int = 2500) -> Graph:
    """A graph without parallel edges, with hubs, self-loops and isolated nodes."""
    rng = np.random.default_rng(1)
    ends = (num_nodes * rng.random((num_edges, 2)) ** (2.5, 1.5)).astype(int)
    src, dst = np.unique(ends, axis=0).T
    edata = {"type": torch.from_numpy((src + dst) % 3), "p": torch.from_numpy((src * 7 + dst) % 5 * (1.0 + src))}
    return Graph.from_edges(src, dst, num_nodes=num_nodes, edata=edata)


FORMULAS: dict[str, Callable[[Graph], SamplerBase]] = {
    "neighbor": lambda g: NeighborSampler(g, [4, 3, 2]),
    "out": lambda g: NeighborSampler(g, [2, -1, 3], direction="out"),
    "replace": lambda g: NeighborSampler(g, [4, 3, 2], replace=True),
    "reuse": lambda g: NeighborSampler(g, [4, 3, 2], reuse=True),
    "without destinations": lambda g: NeighborSampler(g, [4, 3, 2], include_dst=False),
    "filter": lambda g: NeighborSampler(g, [4, 3, 2], edge_filter=lambda edata: edata["type"] > 0),
    "types": lambda g: NeighborSampler(g, [{0: 1, 1: 2}, {0: 2, 1: -1, 2: 1}, {2: 2}], edge_type="type"),
    "prob": lambda g: NeighborSampler(g, [4, 3, 2], prob="p"),
    "prob, all": lambda g: NeighborSampler(g, [2, -1, 3], prob="p", direction="out"),
    "prob, replace": lambda g: NeighborSampler(g, [4, -1, 2], prob="p", replace=True),
    "prob, reuse": lambda g: NeighborSampler(g, [4, 3, 2], prob="p", reuse=True),
    "prob, types": lambda g: NeighborSampler(g, [{0: 1, 1: 2}, {0: 2, 1: -1}, {2: 2}], prob="p", edge_type="type"),
    "bernoulli": lambda g: BernoulliSampler(g, [4, 3, 2]),
    "rates": lambda g: BernoulliSampler(g, rates=[0.1, 1.0, 0.5]),
    "labor": lambda g: LaborSampler(g, [4, 3, 2]),
    "labor, out": lambda g: LaborSampler(g, [4, -1, 2], direction="out"),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_estimates_are_the_means_of_many_draws(name: str) -> None:
    """The last two layers and flows within 5 standard errors (a right formula fails once in a million), all within 3 %.

    Numbers of the layers before are approximate: nodes are in a layer together more often than independent ones.
    """
    graph = plain_graph()
    sampler, seeds = FORMULAS[name](graph), np.arange(5, 400, 13)
    estimate = sampler.estimate(seeds)
    batches = [sampler(seeds, epoch=epoch) for epoch in range(DRAWS)]
    for expected, sizes in (
        (estimate.nodes, [batch.layer_sizes for batch in batches]),
        (estimate.edges, [batch.flow_sizes for batch in batches]),
    ):
        found = np.array(sizes, float)
        error = 5 * found.std(0) / DRAWS**0.5 + 1e-9
        off = np.abs(found.mean(0) - expected)
        assert (off[-2:] <= error[-2:]).all(), (off, error)
        assert (off <= 0.03 * found.mean(0) + error).all()


def test_a_shared_draw_needs_fewer_sources_than_independent_ones() -> None:
    """By hand: two destinations with the same ten neighbours, of which each draws five in the mean."""
    graph = Graph.from_edges([*range(2, 12)] * 2, [0] * 10 + [1] * 10)
    apart = NeighborSampler(graph, [5], include_dst=False).estimate([0, 1])
    shared = LaborSampler(graph, [5], include_dst=False).estimate([0, 1])
    assert apart.nodes == pytest.approx((7.5, 2))
    assert shared.nodes == pytest.approx((5, 2))
    assert apart.edges == pytest.approx((10,))
    assert shared.edges == pytest.approx((10,))


@given(data=st.data(), graph=testing.graphs())
def test_full_neighbourhoods_are_exact(data: st.DataObject, graph: Graph) -> None:
    seeds = data.draw(testing.seeds(graph))
    for sampler in (
        FullSampler(graph, 3), FullSampler(graph, 3, direction="out"), FullSampler(graph, 2, reuse=True),
        FullSampler(graph, 2, include_dst=False), LaborSampler(graph, [-1, -1]), BernoulliSampler(graph, rates=[1, 1]),
    ):  # fmt: skip
        estimate, batch = sampler.estimate(seeds), sampler(seeds)
        assert estimate.nodes == pytest.approx(batch.layer_sizes, abs=1e-9)
        assert estimate.edges == pytest.approx(batch.flow_sizes, abs=1e-9)


@given(data=st.data(), graph=testing.graphs())
def test_estimates_grow_with_the_fanout_up_to_the_full_neighbourhood(data: st.DataObject, graph: Graph) -> None:
    seeds = data.draw(testing.seeds(graph))
    for make in (NeighborSampler, LaborSampler, BernoulliSampler):
        small, large, full = (make(graph, [k, k, k]).estimate(seeds) for k in (1, 3, -1))
        for a, b, c in zip(small.nodes + small.edges, large.nodes + large.edges, full.nodes + full.edges, strict=True):
            assert a <= b + 1e-9
            assert b <= c + 1e-9
        assert large == make(graph, [3, 3, 3]).estimate([*seeds, *seeds])


def test_bytes_are_those_of_a_batch() -> None:
    graph = plain_graph()
    graph.ndata["x"] = torch.zeros(400, 7, dtype=torch.float64)
    graph.ndata["sparse"] = torch.eye(400).to_sparse_csr()
    sampler = FullSampler(graph, 2)
    estimate = sampler.estimate([5, 7, 9], ndata={0: ["x", "sparse"], -1: ["x"]})
    batch = sampler([5, 7, 9])
    batch.copy_from_parent({0: ["x"], -1: ["x"]})
    ids = [layer.parent_nid.nbytes for layer in batch.layers]
    held = [sum(column.nbytes for column in frame.values()) for frame in batch.ldata]
    sparse = (401 * 8 + 400 * 12) / 400 * batch.layer_sizes[0]  # the mean row: an entry, and a place in indptr
    assert estimate.node_bytes == pytest.approx((ids[0] + held[0] + sparse, ids[1] + held[1], ids[2] + held[2]))
    assert estimate.edge_bytes == tuple(flow.indptr.nbytes + flow.indices.nbytes for flow in batch.flows)
    assert estimate.total_bytes == pytest.approx(sum(estimate.node_bytes) + sum(estimate.edge_bytes))


def test_columns_that_are_fetched_count_without_a_fetch() -> None:
    class Far:
        shape, dtype = (400, 5), torch.float16

        def fetch(self, ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
            raise AssertionError("an estimate reads no rows")

    graph = plain_graph()
    graph.ndata["far"] = Far()
    assert NeighborSampler(graph, [2]).estimate([5], ndata={-1: ["far"]}).node_bytes[-1] == 8 + 10


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_formula_or_says_why_not_and_has_a_pilot(name: str) -> None:
    sampler = FAMILIES[name](graph_of_all())
    seeds, more = call_of(name)
    pilot = sampler.estimate(seeds, pilot=3, **more)
    assert pilot.pilot == 3
    assert len(pilot.nodes) == len(pilot.edges) + 1 == sampler.num_flows + 1
    assert "mean of 3 draws" in repr(pilot)
    known = {"full", "neighbor", "neighbor, replace", "neighbor, reuse", "neighbor, filter", "neighbor, types"}
    known |= {"neighbor, prob", "neighbor, prob, replace"}
    if name in known | {"bernoulli", "bernoulli, rates", "labor", "labor, hajek"}:
        # the graph has parallel edges, and three draws vary
        assert sampler.estimate(seeds).nodes == pytest.approx(pilot.nodes, rel=0.4)
    else:
        with pytest.raises(TypeError, match=r"has no formula for the size of a batch: .*; pass pilot=5 to draw"):
            sampler.estimate(seeds, **more)


def test_a_pilot_is_the_mean_of_draws_that_training_does_not_make() -> None:
    sampler = NeighborSampler(plain_graph(), [2, 2])
    pilot = sampler.estimate([5, 7], pilot=2)
    assert pilot == sampler.estimate([5, 7], pilot=2)
    batches = [sampler([5, 7], epoch=-1 - i, batch_number=i) for i in range(2)]
    assert pilot.nodes == tuple(np.mean([batch.layer_sizes for batch in batches], 0))


class Own(NeighborSampler):
    """Draws in a way of its own, so that the formula of its base class does not hold."""

    def draw_rows(self, edges: Any, rows: Any, step: Any) -> Any:
        return super().draw_rows(edges, rows, step)


class OwnFormula(Own):
    def inclusion(self, rows: Any, degree: Any, flow: int) -> Inclusion:
        return Inclusion(np.full(len(rows), 2.0), np.ones(len(rows)))


def per_edge(found: Inclusion, degree: Any) -> Inclusion:
    """The same, said edge by edge."""
    return found._replace(prob=np.repeat(found.prob, degree), per_edge=True)


class NeighborByEdge(NeighborSampler):
    def inclusion(self, rows: Any, degree: Any, flow: int) -> Inclusion:
        found = super().inclusion(rows, degree, flow)
        return found if flow == 1 else per_edge(found, degree)  # flows may differ in how they say it


class LaborByEdge(LaborSampler):
    def inclusion(self, rows: Any, degree: Any, flow: int) -> Inclusion:
        return per_edge(super().inclusion(rows, degree, flow), degree)


@given(data=st.data(), graph=testing.graphs())
def test_a_number_per_edge_says_the_same_as_one_per_row(data: st.DataObject, graph: Graph) -> None:
    seeds = data.draw(testing.seeds(graph))
    for one, other, options in (
        (NeighborSampler, NeighborByEdge, {}), (NeighborSampler, NeighborByEdge, {"reuse": True}),
        (NeighborSampler, NeighborByEdge, {"include_dst": False}), (LaborSampler, LaborByEdge, {}),
    ):  # fmt: skip
        row, edge = (kind(graph, [2, 1, 2], **options).estimate(seeds) for kind in (one, other))
        assert edge.nodes == pytest.approx(row.nodes, abs=1e-12)
        assert edge.edges == pytest.approx(row.edges, abs=1e-12)


def test_equal_weights_are_no_weights() -> None:
    graph = plain_graph()
    graph.edata["one"] = torch.full((graph.num_edges,), 3.0)
    for options in ({}, {"replace": True}, {"reuse": True}):
        plain, weighted = (
            NeighborSampler(graph, [3, 2], prob=prob, **options).estimate(range(0, 400, 9)) for prob in (None, "one")
        )
        assert weighted.nodes == pytest.approx(plain.nodes)
        assert weighted.edges == pytest.approx(plain.edges)


def test_weighted_draws_by_hand() -> None:
    """Node 0 draws two of three edges of weights 1, 1 and 4: the last for certain, each of the others half the time."""
    graph = Graph.from_edges([1, 2, 3], [0, 0, 0], edata={"p": torch.tensor([1.0, 1.0, 4.0])})
    estimate = NeighborSampler(graph, [2, 2], prob="p").estimate([0])
    assert estimate.nodes == pytest.approx((1 + 1 + 2 * (1 - 0.5**2), 3, 1))
    assert estimate.edges == pytest.approx((2, 2))
    twice = NeighborSampler(graph, [2], prob="p", replace=True).estimate([0])
    assert twice.nodes == pytest.approx((1 + 2 * (1 - (5 / 6) ** 2) + 1 - (1 / 3) ** 2, 1))
    assert twice.edges == (2,)


def test_a_probability_per_edge_needs_every_edge() -> None:
    class Short(OwnFormula):
        def inclusion(self, rows: Any, degree: Any, flow: int) -> Inclusion:
            return Inclusion(np.full(len(rows), 2.0), np.ones(1), per_edge=True)

    graph = plain_graph()
    size = int(graph.in_degrees([5])[0])
    assert size > 1
    with pytest.raises(ValueError, match=rf"one entry per edge of the rows \({size}\), got 1"):
        Short(graph, [2]).estimate([5])


def test_a_formula_is_not_inherited_by_a_class_that_draws_otherwise() -> None:
    graph = plain_graph()
    with pytest.raises(TypeError, match=r"Own has no formula .*it draws in a way of its own"):
        Own(graph, [2]).estimate([5])
    assert OwnFormula(graph, [2]).estimate([5]).edges == (2,)
    with pytest.raises(TypeError, match="it does not say with what probability"):
        RowSampler.inclusion(Own(graph, [2]), np.zeros(1, np.int64), np.zeros(1, np.int64), 0)


class ByProbability(Sampler):
    """The edges of a flow with the probabilities min(1, c p), each on its own."""

    def __init__(self, graph: Graph, k: int, num_flows: int, **options: Any) -> None:
        super().__init__(graph, num_flows, **options)
        self.k = k

    def probabilities(self, edges: Candidates, flow: int) -> torch.Tensor:
        return inclusion_probabilities(self.graph.edata["p"][edges.eid], edges.indptr, self.k)

    def choose(self, dst: torch.Tensor, step: Any) -> Any:
        edges = self.candidates(dst)
        prob = self.probabilities(edges, step.flow)
        keep = step.random.uniform(edges.eid) < prob
        return edges.select(keep, prob=prob[keep])


@pytest.mark.parametrize("options", [{}, {"direction": "out"}, {"reuse": True}, {"include_dst": False}])
def test_probabilities_of_candidates_make_a_formula(options: dict[str, Any]) -> None:
    """That of the built-in sampler, which draws with the same probabilities."""
    graph, seeds = plain_graph(), np.arange(5, 400, 13)
    mine = ByProbability(graph, 3, 2, **options).estimate(seeds)
    other = NeighborSampler(graph, [3, 3], prob="p", **options).estimate(seeds)
    assert mine.nodes == pytest.approx(other.nodes, rel=1e-9)
    assert mine.edges == pytest.approx(other.edges, rel=1e-9)


def test_what_probabilities_must_be() -> None:
    class Wrong(ByProbability):
        answer: Any = 0.5

        def probabilities(self, edges: Candidates, flow: int) -> Any:
            return self.answer

    class Other(ByProbability):
        choose = FullSampler.choose

    graph = plain_graph()
    size = int(graph.in_degrees([5])[0])
    sampler = Wrong(graph, 3, 1)
    assert sampler.estimate([5]).edges == pytest.approx((0.5 * size,))
    for answer, message in (
        (torch.ones(size + 1), rf"must return \[{size}\] or one number, got \({size + 1},\)"),
        (torch.full((size,), 1.5), r"from 0 to 1, but that of candidate 0 is 1\.5"),
        (float("nan"), "from 0 to 1, but that of candidate 0 is nan"),
    ):
        Wrong.answer = answer
        with pytest.raises(ValueError, match=message):
            sampler.estimate([5])
    with pytest.raises(TypeError, match="it draws in a way of its own, and has no 'probabilities' of its own"):
        Other(graph, 3, 1).estimate([5])


def test_no_formula_where_edges_of_single_nodes_are_left_out() -> None:
    sampler = NeighborSampler(plain_graph(), [2]).without_edges([3])
    with pytest.raises(TypeError, match="it leaves out edges of single nodes"):
        sampler.estimate([5])
    assert sampler.estimate([5], pilot=1).nodes[-1] == 1


def test_mistakes_are_named() -> None:
    sampler = NeighborSampler(plain_graph(), [2])
    with pytest.raises(ValueError, match="pilot must be at least 0, got -1"):
        sampler.estimate([5], pilot=-1)
    with pytest.raises(IndexError, match=r"seeds\[0\] is 400"):
        sampler.estimate([400])
    with pytest.raises(KeyError, match="no column 'y'"):
        sampler.estimate([5], ndata=["y"])


def test_it_prints_as_a_table_and_has_no_seeds_when_there_are_none() -> None:
    graph = plain_graph()
    lines = repr(NeighborSampler(graph, [2, 2]).estimate([])).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["layer", "0", "1", "2"]
    assert {len(line) for line in lines[:3]} == {len(lines[0])}
    large = Estimate((1e9, 1e6), (1e10,), (8e9, 8e6), (8e10,))
    head, first, *_ = repr(large).splitlines()
    assert len(head) == len(first)
    assert large.total_bytes == 88.008e9
    assert "<td" in large._repr_html_()


def test_pieces_of_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = plain_graph()
    for sampler in (NeighborSampler(graph, [3, 3]), LaborSampler(graph, [3, 3])):
        whole = sampler.estimate(range(50))
        with monkeypatch.context() as patch:
            patch.setattr("nodeflow.sampling._frontier._CHUNK", 7)
            assert sampler.estimate(range(50)).nodes == pytest.approx(whole.nodes)
