"""DGL, by a stand-in that keeps a contract: what the converters rely on. The contract was checked
on DGL 2.1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from typing import Any

import pytest
import torch
from _support import dgl_contract, dgl_double
from _support.conversions import (
    assert_same_batch,
    assert_same_graph,
    assert_same_typed_graph,
    below,
    filled,
    stored,
    typed_graphs,
)
from _support.dgl_contract import check
from _support.effort import examples
from hypothesis import HealthCheck, given

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    TemporalNeighborSampler,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.convert import from_dgl, from_dgl_blocks, to_dgl, to_dgl_blocks
from nodeflow.testing import graphs

ONCE = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dgl", dgl_double)


def test_the_stand_in_keeps_the_contract():
    check(dgl_double)


def test_dgl_keeps_the_contract():
    interpreter = os.environ.get("NODEFLOW_DGL_PYTHON")
    if not interpreter:
        pytest.skip("NODEFLOW_DGL_PYTHON names no interpreter with DGL")
    done = subprocess.run(
        [interpreter, dgl_contract.__file__], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "does what the converters rely on" in done.stdout


@ONCE
@given(graphs())
def test_dgl_and_back_is_the_same_graph(graph):
    made = to_dgl(filled(graph, sparse=True))
    assert (made.num_nodes(), made.num_edges()) == (graph.num_nodes, graph.num_edges)
    assert_same_graph(from_dgl(made), graph)


@ONCE
@given(typed_graphs())
def test_types_and_back_are_the_same_graph(graph):
    back = from_dgl(to_dgl(graph))
    assert list(back.schema.nodes) == sorted(graph.schema.nodes)
    assert list(back.schema.relations) == sorted(graph.schema.relations)
    nodes = {
        name: dict(back.nodes[name].data) or len(back.nodes[name]) for name in graph.schema.nodes
    }
    edges: dict[Any, Any] = {}
    for relation in graph.schema.relations:
        part = back.relations[relation]
        ends = back.find_edges(list(part.ids))
        local = [back.nodes[of].to_local(end) for of, end in zip(relation[::2], ends, strict=True)]
        edges[relation] = (*local, part.data)
    assert_same_typed_graph(Graph.typed(nodes, edges), graph)


def test_names_of_one_type_stay():
    graph = Graph.typed({"user": 3}, {("user", "knows", "user"): ([0], [2], {"w": torch.ones(1)})})
    graph.ndata["x"] = torch.ones(3)
    assert_same_typed_graph(from_dgl(to_dgl(graph)), graph)
    graph = Graph.typed({"a": 1, "b": {"x": torch.ones(2)}}, {("a", "to", "b"): ([0], [1])})
    graph.ndata["all"] = torch.arange(3)
    graph.edata["every"] = torch.ones(1)
    back = from_dgl(to_dgl(graph))
    assert (back.nodes["b"].data["all"].tolist(), back.nodes["a"].data["all"].tolist()) == (
        [1, 2],
        [0],
    )
    assert back.relations["to"].data["every"].tolist() == [1]
    graph.ndata["x"] = torch.ones(3)
    with pytest.raises(
        ValueError, match="column 'x' is one of 'b' and one of all types; delete one, or rename it"
    ):
        to_dgl(graph)


@ONCE
@given(graphs(min_nodes=2))
def test_blocks_and_back_are_the_same_node_flow(graph):
    for sampler in (
        NeighborSampler(filled(graph), [2, 1]),
        NeighborSampler(graph, [2, 2], include_dst=False),
        FullSampler(graph, 2),
    ):
        batch = sampler([1, 0])
        batch.copy_from_parent({0: ["x"], -1: ["label"]}, ["kind"])
        blocks = to_dgl_blocks(batch)
        assert [block.num_edges() for block in blocks] == list(batch.flow_sizes)
        assert_same_batch(from_dgl_blocks(blocks, parent=graph), batch)


@pytest.mark.parametrize("name", ["neighbor", "labor"])
def test_blocks_that_dgl_drew(name):
    """``_support/dgl_contract.py`` wrote them, with DGL 2.1."""
    arrays = stored("dgl_blocks.npz")
    graph = Graph.from_edges(arrays["src"], arrays["dst"], num_nodes=30)
    blocks = []
    for i in count():
        own = below(arrays, f"{name}.{i}.")
        if not own:
            break
        sizes = {"num_src_nodes": len(own["src_ids"]), "num_dst_nodes": len(own["dst_ids"])}
        block = dgl_double.create_block((own["src"], own["dst"]), **sizes)
        block.srcdata["_ID"] = own["src_ids"]
        block.dstdata["_ID"] = own["dst_ids"]
        block.edata["_ID"] = own["edge_ids"]
        if "weights" in own:
            block.edata["edge_weights"] = own["weights"]
        blocks.append(block)
    batch = from_dgl_blocks(blocks, parent=graph)
    batch.validate()  # parent ids and parent edges fit the graph
    assert batch.num_flows == 2
    assert batch.seeds.tolist() == [3, 17, 4]
    assert [flow.needs_weight for flow in batch.flows] == [name == "labor"] * 2
    for layer, flow in zip(batch.layers, batch.flows, strict=False):
        assert torch.equal(flow.dst_in_src, torch.arange(flow.num_dst))
        assert len(layer) == flow.num_src
    again = to_dgl_blocks(batch)
    for block, wanted in zip(again, blocks, strict=True):
        for own, other in zip(block.edges(), wanted.edges(), strict=True):
            assert torch.equal(own, other)
        assert torch.equal(block.edata["_ID"], wanted.edata["_ID"])


def test_blocks_of_a_node_flow_without_parents_have_no_ids():
    (block,) = to_dgl_blocks(
        create_node_flow([flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)])
    )
    assert "_ID" not in {**block.srcdata, **block.dstdata, **block.edata}


def test_dgl_mistakes(monkeypatch):
    block = dgl_double.create_block(([0], [0]), num_src_nodes=2, num_dst_nodes=1)
    with pytest.raises(TypeError, match=r"from_dgl_blocks makes a NodeFlow"):
        from_dgl(block)
    with pytest.raises(TypeError, match="graph must be a graph of DGL, got list"):
        from_dgl([])
    for wrong in ([], block, [dgl_double.graph(([0], [1]))]):
        with pytest.raises(TypeError, match="blocks must be a list of one or more blocks of DGL"):
            from_dgl_blocks(wrong)
    with pytest.raises(ValueError, match=r"layer 1 has different sizes in its flows .*: \[1, 2\]"):
        from_dgl_blocks([block, block])
    other = dgl_double.create_block(([0], [0]), num_src_nodes=1, num_dst_nodes=1)
    block.dstdata["x"] = torch.ones(1)
    other.srcdata["x"] = torch.zeros(1)
    with pytest.raises(
        ValueError, match="column 'x' of layer 1 differs between the destinations of block 0"
    ):
        from_dgl_blocks([block, other])
    graph = Graph.from_edges([0, 1], [1, 1], edata={"time": torch.tensor([1, 2])})
    batch = NeighborSampler(graph, [2])([1])
    batch.fdata[0]["edge_weights"] = torch.ones(2)
    with pytest.raises(ValueError, match="keep the column name 'edge_weights'"):
        to_dgl_blocks(batch)
    with pytest.raises(ValueError, match="a node in several contexts"):
        to_dgl_blocks(TemporalNeighborSampler(graph, [2], time="time")([1], times=[5]))
    low, skip = (flow_from_edges([0], [0], num_src=n, num_dst=1) for n in (1, 1))
    with pytest.raises(ValueError, match=r"cannot hold flows that skip layers"):
        to_dgl_blocks(create_node_flow({(0, 1): low, (1, 2): low, (0, 2): skip}))
    with pytest.raises(TypeError, match="batch must be a NodeFlow, got"):
        to_dgl_blocks(graph)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "dgl", None)
    for call in (lambda: to_dgl(graph), lambda: to_dgl_blocks(NeighborSampler(graph, [2])([1]))):
        with pytest.raises(ImportError, match=r"DGL is needed; see https://www.dgl.ai"):
            call()
