"""The tools for users' tests: strategies reach the cases that matter, assertions see every difference."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import nodeflow
from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    Sampler,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.sampling import Choice, Step
from nodeflow.testing import (
    assert_reproducible,
    assert_same_node_flow,
    assert_unbiased,
    assert_valid,
    graphs,
    node_flows,
    seeds,
)

many = settings(max_examples=2_000, derandomize=True)


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(*(end.tolist() for end in graph.edges()), strict=True))


def isolated(graph: Graph) -> torch.Tensor:
    return (graph.in_degrees() == 0) & (graph.out_degrees() == 0)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda g: g.num_nodes == 0,
        lambda g: g.num_nodes > 2 and g.num_edges == 0,
        lambda g: g.num_edges > 3 and bool(isolated(g).any()),
        lambda g: len(set(edges_of(g))) < g.num_edges,
        lambda g: any(u == v for u, v in edges_of(g)),
        lambda g: g.csc()[2] is None and g.num_edges > 1,
        lambda g: g.csc()[2] is not None and g.num_edges > 1,
    ],
)
def test_graphs_of_all_kinds_occur(wanted: Callable[[Graph], bool]) -> None:
    find(graphs(), wanted, settings=many)


@given(
    graphs(
        min_nodes=2,
        max_nodes=4,
        max_edges=5,
        multi_edges=False,
        self_loops=False,
        node_columns={"x": (2, 3)},
        edge_columns={"w": ()},
    )
)
def test_graphs_keep_to_their_arguments(graph: Graph) -> None:
    edges = edges_of(graph)
    assert 2 <= graph.num_nodes <= 4
    assert len(edges) <= 5
    assert len(set(edges)) == len(edges)
    assert all(u != v for u, v in edges)
    assert graph.ndata["x"].shape == (graph.num_nodes, 2, 3)
    assert graph.edata["w"].shape == (graph.num_edges,)
    for column in (graph.ndata["x"], graph.edata["w"]):
        assert torch.equal(column, column.round())


@given(graphs(max_nodes=1, self_loops=False))
def test_graphs_that_can_have_no_edges_have_none(graph: Graph) -> None:
    assert graph.num_edges == 0


def test_seeds_of_all_kinds_occur() -> None:
    graph = Graph.from_edges([0], [1], num_nodes=3)
    for wanted in (lambda s: s == [], lambda s: len(set(s)) < len(s), lambda s: 2 in s, lambda s: s != sorted(s)):
        find(seeds(graph), wanted, settings=many)
    assert find(seeds(graph, min_size=2, max_size=2), lambda s: True) == [0, 0]
    assert find(seeds(Graph([0], [])), lambda s: True) == []


@pytest.mark.parametrize(
    "wanted",
    [
        lambda b: b.parent is not None and b.num_flows > 1,
        lambda b: b.parent is None and b.num_flows > 1,
        lambda b: len(b.flows.pairs()) > b.num_flows,
        lambda b: any(not layer.has_parent for layer in b.layers),
        lambda b: any(flow.num_edges for flow in b.flows) and any("h" in frame for frame in b.fdata),
        lambda b: any((flow.weight != 1).any() for flow in b.flows),
        lambda b: any(flow.has_parent and (flow.parent_eid < 0).any() for flow in b.flows),
        lambda b: any((flow.dst_in_src < 0).any() for flow in b.flows) and b.parent is not None,
        lambda b: len(b.seed_index) > len(b.back),
        lambda b: b.num_flows == 0,
    ],
)
def test_node_flows_of_all_kinds_occur(wanted: Callable[[NodeFlow], bool]) -> None:
    find(node_flows(), wanted, settings=many)


@given(st.data())
def test_node_flows_keep_to_their_arguments(data: st.DataObject) -> None:
    batch = data.draw(node_flows(max_layers=2, parents=False, skips=False, columns=False))
    assert batch.num_layers <= 2
    assert batch.parent is None
    assert len(batch.flows.pairs()) == batch.num_flows
    assert all(layer.has_parent and not layer.data for layer in batch.layers)
    assert data.draw(node_flows(parents=True)).parent is not None


def made(**change: Any) -> NodeFlow:
    parts: dict[str, Any] = {"src": [0, 1], "dst": [0, 0], "num_src": 2, "num_dst": 1, "parent_eid": [4, 5]}
    layers = change.pop("layers", [[7, 8], [7]])
    return create_node_flow([flow_from_edges(**{**parts, **change})], layers)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (made(num_src=3, layers=None), r"layer sizes differ: \(2, 1\) and \(3, 1\)"),
        (made(layers=[None, [7]]), r"layers\[0\].has_parent differ: True and False"),
        (made(layers=[[7, 9], [7]]), r"layers\[0\].parent_nid differs first at \[1\]: 8 and 9"),
        (made(src=[1, 0]), r"flows\[0, 1\].indices differs first at \[0\]: 0 and 1"),
        (made(src=[0], dst=[0], parent_eid=[4]), r"flows\[0, 1\].indptr differs first at \[1\]: 2 and 1"),
        (made(parent_eid=[4, -1]), r"flows\[0, 1\].parent_eid differs first at \[1\]: 5 and -1"),
        (made(parent_eid=None), r"flows\[0, 1\].has_parent differ: True and False"),
        (made(weight=torch.tensor([1.0, 2.0])), r"flows\[0, 1\].weight differs first at \[1\]: 1.0 and 2.0"),
        (made(data={"w": torch.ones(2)}), r"columns of flows\[0, 1\].data differ: \[\] and \['w'\]"),
    ],
)
def test_every_difference_is_seen(other: NodeFlow, words: str) -> None:
    assert_same_node_flow(made(), made())
    with pytest.raises(AssertionError, match=words):
        assert_same_node_flow(made(), other)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (
            torch.zeros(2, 2),
            torch.tensor([[0.0, 0.0], [-0.0, 0.0]]),
            r"\['h'\] differs first at \[1, 0\]: 0.0 and -0.0",
        ),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), r"type and shape of layers\[0\].data\['h'\] differ"),
        (torch.zeros(2), torch.zeros(2, 1), "type and shape"),
        (torch.zeros(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool), r"first at \[0\]: False and True"),
    ],
)
def test_columns_are_compared_bit_for_bit(a: torch.Tensor, b: torch.Tensor, words: str) -> None:
    x, y = made(), made()
    x.ldata[0]["h"], y.ldata[0]["h"] = a, b
    with pytest.raises(AssertionError, match=words):
        assert_same_node_flow(x, y)
    assert_same_node_flow(x, y, frames=False)
    y.ldata[0]["h"] = a.clone()
    assert_same_node_flow(x, y)
    x.ldata[0]["h"] = y.ldata[0]["h"] = torch.full((2,), float("nan"))
    assert_same_node_flow(x, y)


def test_sparse_columns_are_compared() -> None:
    import scipy.sparse

    x, y = made(), made()
    x.ldata[0]["s"] = y.ldata[0]["s"] = scipy.sparse.eye(2, format="csr")
    assert_same_node_flow(x, y)
    y.ldata[0]["s"] = scipy.sparse.eye(2, format="csr") * 2
    with pytest.raises(AssertionError, match=r"values\(\) differs first at \[0\]: 1.0 and 2.0"):
        assert_same_node_flow(x, y)


def test_seed_indices_are_compared(graph: Graph) -> None:
    sampler = FullSampler(graph, 1)
    with pytest.raises(AssertionError, match="type and shape of seed_index differ"):
        assert_same_node_flow(sampler([1]), sampler([1, 1]))


def test_assert_valid_says_what_is_broken(graph: Graph) -> None:
    batch = FullSampler(graph, 1)([1])
    assert_valid(batch)
    batch.flows[0].indices.fill_(9)
    with pytest.raises(AssertionError, match="an edge starts at a row that is no source"):
        assert_valid(batch)


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    # the package itself does not need it
    code = """
import sys
sys.modules["hypothesis"] = None
from nodeflow import FullSampler, Graph
from nodeflow.testing import assert_reproducible, assert_same_node_flow, assert_valid
sampler = FullSampler(Graph.from_edges([0], [1]), 1)
assert_valid(sampler([1]))
assert_reproducible(sampler, [1])
print("ready")
from nodeflow.testing import node_flows
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (1, "ready")
    how = "ImportError: nodeflow.testing.node_flows needs hypothesis; install it with: pip install hypothesis"
    assert how in ran.stderr
    assert "strategies.py" not in ran.stderr
    with pytest.raises(AttributeError, match="no attribute 'graph'"):
        nodeflow.testing.graph  # noqa: B018


def notes_of(strategy: st.SearchStrategy[Any], kept: list[Any]) -> list[str]:
    """Let a test fail on what the strategy draws, keep that, and return the notes of the failure."""

    @settings(derandomize=True, database=None, phases=[Phase.generate])
    @given(strategy)
    def fail(drawn: Any) -> None:
        kept[:] = [drawn]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failure:
        fail()
    return list(failure.value.__notes__)


def test_a_failing_test_prints_the_graph_and_the_sampler() -> None:
    drawn: list[Any] = []
    for by_ids in (True, False):
        strategy = graphs(min_nodes=2).filter(lambda g, by=by_ids: g.num_edges > 2 and (g.csc()[2] is None) == by)
        session: dict[str, Any] = {"Graph": Graph}
        exec(next(line for line in reversed(notes_of(strategy, drawn)) if line.startswith("graph = ")), session)
        for mine, theirs in zip(session["graph"].csc(), drawn[0].csc(), strict=True):
            assert (mine is None and theirs is None) or mine.tolist() == theirs.tolist()
    strategy = node_flows(parents=True, columns=False).filter(lambda b: b.num_flows and sum(b.flow_sizes) > 0)
    session = {"Graph": Graph, "NeighborSampler": NeighborSampler, "create_full_node_flow": create_full_node_flow}
    lines = notes_of(strategy, drawn)
    at = max(i for i, line in enumerate(lines) if line.startswith("graph = "))
    exec(lines[at], session)
    assert_same_node_flow(eval(lines[at + 1], session), drawn[0])


# assertions about samplers


class Fickle(Sampler):
    """Draws that depend on what they must not; ``why`` says on what."""

    def __init__(self, graph: Graph, why: str) -> None:
        super().__init__(graph, 1)
        self.why, self.calls = why, 0

    def choose(self, dst: torch.Tensor, step: Step) -> Choice:
        self.calls += 1
        edges = self.candidates(dst)
        bad = {
            "calls": self.calls == 2,
            "history": self.calls > 4,
            "thread": threading.current_thread() is not threading.main_thread(),
        }[self.why]
        return edges.select(torch.arange(len(edges)) > int(bad))


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("calls", "a second call with the same seeds and epoch gives another NodeFlow: layer sizes differ"),
        ("history", "a call after draws of other epochs with"),
        ("thread", "a call from another thread with"),
    ],
)
def test_a_sampler_that_is_not_reproducible(why: str, words: str, star: Graph) -> None:
    with pytest.raises(AssertionError, match=words):
        assert_reproducible(Fickle(star, why), [0])


class Global(Sampler):
    """A plain sampler over a global generator: the mistake people make."""

    def __init__(self, graph: Graph, draw: Callable[[], float]) -> None:
        super().__init__(graph, 1)
        self.draw = draw

    def choose(self, dst: torch.Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(torch.tensor([self.draw() < 0.5 for _ in range(len(edges))], dtype=torch.bool), weight=2.0)


@pytest.mark.parametrize(
    "draw", [random.random, np.random.random_sample, lambda: float(torch.rand(()))], ids=["python", "numpy", "torch"]
)
def test_a_sampler_over_global_random_state_is_not_reproducible(draw: Callable[[], float], star: Graph) -> None:
    with pytest.raises(AssertionError, match="with the same seeds and epoch gives another NodeFlow"):
        assert_reproducible(Global(star, draw), [0])


def test_reproducible_samplers_pass_and_global_state_is_put_back(star: Graph) -> None:
    states = [random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()]  # noqa: NPY002
    for options in ({}, {"replace": True}, {"include_dst": False}, {"reuse": True}):
        assert_reproducible(NeighborSampler(star, [2, 3], **options), [0, 5, 0])
    assert_reproducible(NeighborSampler(star, [2]), [])
    after = [random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()]  # noqa: NPY002
    assert after == states


@pytest.fixture
def star() -> Graph:
    """Node 0 has 30 in-neighbours, node 1 has 2, node 5 has 4, two of them by parallel edges; others have 1 or none."""
    src = [*range(1, 31), 3, 4, 7, 7, 8, 9, 0]
    dst = [0] * 30 + [1, 1, 5, 5, 5, 5, 2]
    return Graph.from_edges(src, dst, num_nodes=32)


OPTIONS = [{}, {"replace": True}, {"include_dst": False}, {"reuse": True}, {"direction": "out"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("fanouts", [[3, 2], [-1, 1], [1]], ids=str)
def test_unbiased_samplers_pass(options: dict[str, Any], fanouts: list[int], star: Graph) -> None:
    assert_unbiased(NeighborSampler(star, fanouts, **options), [0, 1, 5, 31, 5], draws=300)


def test_an_unbiased_sampler_of_ones_own_passes(star: Graph) -> None:
    assert_unbiased(Biased(star, 0, 0, 0.5), [0, 1, 5], draws=600)


class Biased(Sampler):
    """Keeps each edge with probability one half, but those of node ``node`` in flow ``flow`` with ``rate``."""

    def __init__(self, graph: Graph, node: int, flow: int, rate: float, **options: Any) -> None:
        super().__init__(graph, 2, **options)
        self.node, self.flow, self.rate = node, flow, rate

    def choose(self, dst: torch.Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        odd = (edges.dst == self.node) & (step.flow == self.flow)
        rate = torch.where(odd, self.rate, 0.5)
        return edges.select(step.random.uniform(edges.eid) < rate, weight=2.0)


@pytest.mark.parametrize("flow", [0, 1])
@pytest.mark.parametrize(("node", "rate"), [(0, 0.55), (5, 0.6), (1, 0.3)])
def test_a_biased_sampler_is_found(flow: int, node: int, rate: float, star: Graph) -> None:
    with pytest.raises(AssertionError, match=rf"weighted sums over flow {flow} are biased at seed {node}: their mean"):
        assert_unbiased(Biased(star, node, flow, rate), [0, 1, 5], draws=600)


def test_missing_weights_and_missing_edges_are_biases(star: Graph) -> None:
    class Unweighted(NeighborSampler):
        def choose(self, dst: torch.Tensor, step: Step) -> Choice:
            edges = self.candidates(dst)
            return edges.select(step.random.uniform(edges.eid) < 0.9)

    class Never(NeighborSampler):
        def choose(self, dst: torch.Tensor, step: Step) -> Choice:
            edges = self.candidates(dst)
            return edges.select(edges.src != 9)

    for kind in (Unweighted, Never):
        with pytest.raises(AssertionError, match=r"flow 0 are biased at seed 5: .* the two may differ by"):
            assert_unbiased(kind(star, [1]), [5], draws=200)


def test_the_error_rate_is_what_it_says() -> None:
    """Unbiased samplers with many seeds at a large rate: about as many alarms as promised, not many more."""
    src = np.random.default_rng(3).integers(0, 200, 4000)
    graph = Graph.from_edges(src, np.repeat(np.arange(40), 100), num_nodes=200)
    alarms = 0
    for seed in range(60):
        try:
            assert_unbiased(NeighborSampler(graph, [5], seed=seed), range(40), draws=100, false_alarm=0.2)
        except AssertionError:
            alarms += 1
    assert 2 <= alarms <= 26  # 12 are expected; 26 is 4.5 standard deviations more


def test_bad_arguments_of_assert_unbiased(star: Graph) -> None:
    sampler = NeighborSampler(star, [1])
    for seeds_, options, words in (
        ([], {}, "seeds must not be empty"),
        ([0], {"draws": 1}, "draws must be at least 2, got 1"),
        ([0], {"false_alarm": 0.0}, "false_alarm must be above 0"),
        ([0], {"false_alarm": 1.0}, "false_alarm must be above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            assert_unbiased(sampler, seeds_, **options)
