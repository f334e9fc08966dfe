"""The tools for users' tests: strategies reach the cases that matter, assertions see every
difference.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from _support.graphs import ends_of
from hypothesis import Phase, find, given, settings, strategies as st

import nodeflow
from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.testing import assert_same_node_flow, assert_valid, graphs, node_flows, seeds

# what is found stays as it is
many = settings(max_examples=1_000, derandomize=True, phases=[Phase.generate])


def isolated(graph: Graph) -> torch.Tensor:
    return (graph.in_degrees() == 0) & (graph.out_degrees() == 0)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda g: g.num_nodes == 0,
        lambda g: g.num_nodes > 2 and g.num_edges == 0,
        lambda g: g.num_edges > 3 and bool(isolated(g).any()),
        lambda g: len(set(ends_of(g))) < g.num_edges,
        lambda g: any(u == v for u, v in ends_of(g)),
        lambda g: g.csc()[2] is None and g.num_edges > 1,
        lambda g: g.csc()[2] is not None and g.num_edges > 1,
    ],
)
def test_graphs_of_all_kinds_occur(wanted):
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
def test_graphs_keep_to_their_arguments(graph):
    edges = ends_of(graph)
    assert 2 <= graph.num_nodes <= 4
    assert len(edges) <= 5
    assert len(set(edges)) == len(edges)
    assert all(u != v for u, v in edges)
    assert graph.ndata["x"].shape == (graph.num_nodes, 2, 3)
    assert graph.edata["w"].shape == (graph.num_edges,)
    for column in (graph.ndata["x"], graph.edata["w"]):
        assert torch.equal(column, column.round())


@given(graphs(max_nodes=1, self_loops=False))
def test_graphs_that_can_have_no_edges_have_none(graph):
    assert graph.num_edges == 0


def test_seeds_of_all_kinds_occur():
    graph = Graph.from_edges([0], [1], num_nodes=3)
    for wanted in (
        lambda s: s == [],
        lambda s: len(set(s)) < len(s),
        lambda s: 2 in s,
        lambda s: s != sorted(s),
    ):
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
        lambda b: (
            any(flow.num_edges for flow in b.flows) and any("h" in frame for frame in b.fdata)
        ),
        lambda b: any((flow.weight != 1).any() for flow in b.flows),
        lambda b: any(flow.has_parent and (flow.parent_eid < 0).any() for flow in b.flows),
        lambda b: any((flow.dst_in_src < 0).any() for flow in b.flows) and b.parent is not None,
        lambda b: len(b.seed_index) > len(b.back),
        lambda b: b.num_flows == 0,
    ],
)
def test_node_flows_of_all_kinds_occur(wanted):
    find(node_flows(), wanted, settings=many)


@given(st.data())
def test_node_flows_keep_to_their_arguments(data):
    batch = data.draw(node_flows(max_layers=2, parents=False, skips=False, columns=False))
    assert batch.num_layers <= 2
    assert batch.parent is None
    assert len(batch.flows.pairs()) == batch.num_flows
    assert all(layer.has_parent and not layer.data for layer in batch.layers)
    assert data.draw(node_flows(parents=True)).parent is not None


def made(**change: Any) -> NodeFlow:
    parts: dict[str, Any] = {
        "src": [0, 1],
        "dst": [0, 0],
        "num_src": 2,
        "num_dst": 1,
        "parent_eid": [4, 5],
    }
    layers = change.pop("layers", [[7, 8], [7]])
    return create_node_flow([flow_from_edges(**{**parts, **change})], layers)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (made(num_src=3, layers=None), r"layer sizes differ: \(2, 1\) and \(3, 1\)"),
        (made(layers=[None, [7]]), r"only one of the NodeFlows has layers\[0\].parent_nid"),
        (made(layers=[[7, 9], [7]]), r"layers\[0\].parent_nid differs first at \[1\]: 8 and 9"),
        (made(src=[1, 0]), r"flows\[0, 1\].indices differs first at \[0\]: 0 and 1"),
        (
            made(src=[0], dst=[0], parent_eid=[4]),
            r"flows\[0, 1\].indptr differs first at \[1\]: 2 and 1",
        ),
        (made(parent_eid=[4, -1]), r"flows\[0, 1\].parent_eid differs first at \[1\]: 5 and -1"),
        (made(parent_eid=None), r"only one of the NodeFlows has flows\[0, 1\].parent_eid"),
        (
            made(weight=torch.tensor([1.0, 2.0])),
            r"flows\[0, 1\].weight differs first at \[1\]: 1.0 and 2.0",
        ),
        (
            made(data={"w": torch.ones(2)}),
            r"columns of flows\[0, 1\].data differ: \[\] and \['w'\]",
        ),
    ],
)
def test_every_difference_is_seen(other, words):
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
        (
            torch.zeros(2),
            torch.zeros(2, dtype=torch.float64),
            r"type and shape of layers\[0\].data\['h'\] differ",
        ),
        (torch.zeros(2), torch.zeros(2, 1), "type and shape"),
        (
            torch.zeros(2, dtype=torch.bool),
            torch.ones(2, dtype=torch.bool),
            r"first at \[0\]: False and True",
        ),
    ],
)
def test_columns_are_compared_bit_for_bit(a, b, words):
    x = made()
    y = made()
    x.ldata[0]["h"] = a
    y.ldata[0]["h"] = b
    with pytest.raises(AssertionError, match=words):
        assert_same_node_flow(x, y)
    assert_same_node_flow(x, y, frames=False)
    y.ldata[0]["h"] = a.clone()
    assert_same_node_flow(x, y)
    x.ldata[0]["h"] = y.ldata[0]["h"] = torch.full((2,), float("nan"))
    assert_same_node_flow(x, y)


def test_sparse_columns_are_compared():
    import scipy.sparse

    x = made()
    y = made()
    x.ldata[0]["s"] = y.ldata[0]["s"] = scipy.sparse.eye(2, format="csr")
    assert_same_node_flow(x, y)
    y.ldata[0]["s"] = scipy.sparse.eye(2, format="csr") * 2
    with pytest.raises(AssertionError, match=r"values\(\) differs first at \[0\]: 1.0 and 2.0"):
        assert_same_node_flow(x, y)


def test_seed_indices_are_compared(graph):
    sampler = FullSampler(graph, 1)
    with pytest.raises(AssertionError, match="type and shape of seed_index differ"):
        assert_same_node_flow(sampler([1]), sampler([1, 1]))


def test_assert_valid_says_what_is_broken(graph):
    batch = FullSampler(graph, 1)([1])
    assert_valid(batch)
    batch.flows[0].indices.fill_(9)
    with pytest.raises(AssertionError, match="an edge starts at a row that is no source"):
        assert_valid(batch)


def test_the_names_are_listed_and_hypothesis_may_be_missing(
    monkeypatch,
):
    assert dir(nodeflow.testing) == sorted(nodeflow.testing.__all__)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(
        ImportError,
        match=r"nodeflow\.testing\.flows needs hypothesis; install it with: pip install",
    ):
        nodeflow.testing.flows  # noqa: B018


@pytest.mark.slow
def test_without_hypothesis_the_error_says_what_to_install():
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
from nodeflow.testing import check_sampler
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (1, "ready")
    how = (
        "ImportError: nodeflow.testing.check_sampler needs hypothesis; install it with: pip "
        "install 'nodeflow-gnn[testing]'"
    )
    assert how in ran.stderr
    assert "_run.py" not in ran.stderr
    with pytest.raises(AttributeError, match="no attribute 'graph'"):
        nodeflow.testing.graph  # noqa: B018


def notes_of(strategy: st.SearchStrategy[Any], kept: list[Any]) -> list[str]:
    """Let a test fail on what the strategy draws, keep that, and return the notes of the
    failure.
    """

    @settings(derandomize=True, database=None, phases=[Phase.generate])
    @given(strategy)
    def fail(drawn: Any) -> None:
        kept[:] = [drawn]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as failure:
        fail()
    return list(failure.value.__notes__)


def test_a_failing_test_prints_the_graph_and_the_sampler():
    drawn: list[Any] = []
    for by_ids in (True, False):
        strategy = graphs(min_nodes=2).filter(
            lambda g, by=by_ids: g.num_edges > 2 and (g.csc()[2] is None) == by
        )
        session: dict[str, Any] = {"Graph": Graph}
        exec(
            next(
                line for line in reversed(notes_of(strategy, drawn)) if line.startswith("graph = ")
            ),
            session,
        )
        for mine, theirs in zip(session["graph"].csc(), drawn[0].csc(), strict=True):
            assert (mine is None and theirs is None) or mine.tolist() == theirs.tolist()
    strategy = node_flows(parents=True, columns=False).filter(
        lambda b: b.num_flows and sum(b.flow_sizes) > 0
    )
    session = {
        "Graph": Graph,
        "NeighborSampler": NeighborSampler,
        "create_full_node_flow": create_full_node_flow,
    }
    lines = notes_of(strategy, drawn)
    at = max(i for i, line in enumerate(lines) if line.startswith("graph = "))
    exec(lines[at], session)
    assert_same_node_flow(eval(lines[at + 1], session), drawn[0])


@given(st.data())
def test_layers_that_begin_with_the_next_layer(data):
    batch = data.draw(node_flows(include_dst=True))
    for i in range(batch.num_flows):
        upper = batch.layers[i + 1].parent_nid.tolist()
        lower = batch.layers[i].parent_nid.tolist()
        assert lower[: len(upper)] == upper


def test_layers_that_do_not_begin_with_the_next_layer_come_without_include_dst():
    find(node_flows(), lambda b: b.num_flows and b.front.has_parent and b.layers[1].has_parent and b.layer_sizes[1]
         and b.layers[0].parent_nid[: b.layer_sizes[1]].tolist() != b.layers[1].parent_nid.tolist())  # fmt: skip
    find(
        node_flows(include_dst=True),
        lambda b: b.num_flows > 1 and b.layer_sizes[0] > b.layer_sizes[1] > 1,
    )
    with pytest.raises(ValueError, match="include_dst must be True or None, got False"):
        find(node_flows(include_dst=False), lambda batch: True)
