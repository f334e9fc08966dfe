"""Reading ahead in graphs of several node types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.own_rows import OwnRows
from torch import Tensor

from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader, storage
from nodeflow.storage import Lookahead, degree_heat

SIZES = {"author": 150, "paper": 200, "venue": 6}


def papers() -> Graph:
    random = np.random.default_rng(4)
    nodes: dict[str, Any] = {
        "author": {"x": torch.rand(150, 3)},
        "paper": {"x": torch.rand(200, 5)},
        "venue": 6,
    }
    edges: dict[Any, Any] = {
        ("author", "writes", "paper"): (random.integers(0, 150, 600), random.integers(0, 200, 600)),
        ("paper", "at", "venue"): (np.arange(200), random.integers(0, 6, 200)),
    }
    graph = Graph.typed(nodes, edges, reverse=True)
    graph.nodes["venue"].data["x"] = torch.rand(6, 2)
    graph.nodes["paper"].data["y"] = torch.arange(200)
    graph.ndata["of_all"] = torch.rand(graph.num_nodes, 2)
    return graph


def loader_of(graph: Graph, disjoint: bool = False) -> NodeFlowLoader:
    seeds = torch.cat(
        [
            graph.nodes["paper"].to_graph(torch.arange(0, 200, 3)),
            graph.nodes["venue"].to_graph([1, 5]),
        ]
    )
    columns: Any = {0: ["x", "of_all"], 1: ["x"], -1: ["y"]}
    sampler = NeighborSampler(graph, [3, 2], disjoint=disjoint)
    return NodeFlowLoader(sampler, seeds, 16, shuffle=True, ndata=columns)


def batches(
    graph: Graph, memory: str = "", disjoint: bool = False, **options: Any
) -> list[NodeFlow]:
    """Return the batches of two epochs, of a ``Lookahead`` with ``memory``, or of the loader
    without.
    """
    loader = loader_of(graph, disjoint)
    source = Lookahead(loader, memory, **options) if memory else loader
    return [batch for _ in range(2) for batch in source]


def columns_of(batch: NodeFlow) -> list[Tensor]:
    frames = [
        frame
        for layer in batch.layers
        for frame in (layer.data, *(layer.of(name).data for name in SIZES))
    ]
    return [batch.seeds, *(frame[name] for frame in frames for name in sorted(frame))]


def in_files(graph: Graph, names: tuple[str, ...]) -> Graph:
    for name in names:
        graph.nodes[name].data["x"] = OwnRows(graph.nodes[name].data["x"])
    return graph


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("names", [("author", "paper", "venue"), ("paper",), ("venue", "author")])
@pytest.mark.parametrize("memory", ["8 B", "20 B", "900 B", "3 KB", "1 MB"])
def test_batches_are_those_of_the_loader(memory, names, disjoint):
    graph = papers()
    if memory == "8 B" and names == ("paper",):
        memory = "20 B"  # a row of it
    wanted = [columns_of(batch) for batch in batches(graph, disjoint=disjoint)]
    in_files(graph, names)
    for options in (
        {},
        {"window": 2, "heat": degree_heat(graph)},
        {"window": 0, "prefetch": 1},
        {"epochs": 1},
    ):
        drawn = [columns_of(batch) for batch in batches(graph, memory, disjoint, **options)]
        assert len(drawn) == len(wanted) == 10
        for ours, theirs in zip(drawn, wanted, strict=True):
            assert len(ours) == len(theirs)
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_columns_of_all_nodes_are_planned_beside_those_of_types():
    graph = papers()
    wanted = [columns_of(batch) for batch in batches(graph)]
    graph.ndata["of_all"] = storage.Tiered([graph.ndata["of_all"]])
    in_files(graph, ("paper",))
    for memory in ("16 B", "2 KB"):
        for ours, theirs in zip(map(columns_of, batches(graph, memory)), wanted, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    # one name for a column of all nodes in memory and for planned ones of a type
    graph = papers()
    rows = torch.rand(356, 4)
    graph.ndata["x"] = rows
    for batch in batches(in_files(graph, ("paper",)), "1 KB"):
        assert torch.equal(batch.inputs["x"], rows[batch.layers[0].parent_nid])


def test_a_row_is_read_once_where_all_fit():
    graph = in_files(papers(), (*SIZES,))
    seeds = graph.nodes["paper"].ids
    loader = NodeFlowLoader(NeighborSampler(graph, [-1, -1]), list(seeds), 20, ndata={0: ["x"]})
    bytes_of_all = 4 * (150 * 3 + 200 * 5 + 6 * 2)
    lookahead = Lookahead(loader, bytes_of_all)
    read = {name: set[int]() for name in SIZES}
    for batch in lookahead:
        for name, ids in read.items():
            ids.update(batch.layers[0].of(name).parent_nid.tolist())
    assert lookahead.reads.batches == 10
    assert lookahead.reads.read == sum(map(len, read.values()))
    assert lookahead.reads.bytes == 4 * (
        len(read["author"]) * 3 + len(read["paper"]) * 5 + len(read["venue"]) * 2
    )
    # with a tenth of the memory the venues, which every batch reads, stay
    small = Lookahead(loader, bytes_of_all // 10)
    assert len(list(small)) == 10
    assert lookahead.reads.read < small.reads.read < small.reads.rows


def test_memory_for_no_row_of_any_type():
    graph = in_files(papers(), ("author", "paper"))
    with pytest.raises(
        ValueError, match="memory is '11 B', but a row takes 12 bytes: nothing would fit"
    ):
        batches(graph, "11 B")


def test_an_iteration_that_is_left_early(tmp_path):
    graph = papers()
    wanted = [columns_of(batch) for batch in batches(graph)]
    in_files(graph, ("author", "venue"))
    lookahead = Lookahead(loader_of(graph), "1 KB")
    for _, _ in zip(range(2), lookahead, strict=False):
        pass
    lookahead.set_epoch(0)
    for ours, theirs in zip(
        [columns_of(batch) for _ in range(2) for batch in lookahead], wanted, strict=True
    ):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
