"""Graphs of thousands of node types and relations: what a batch costs, counted in calls and bytes,
not in seconds.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nodeflow import (
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    NodeFlow,
    transform as transforms,
)

FIRST = ("t0", "r0", "t1")
SECOND = ("t1", "r1", "t2")


def ring(size: int) -> Graph:
    """A graph of types t0, t1, ... of two nodes, in which relation i leads from both of type i to
    both of the next.
    """
    ends = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    edges = {(f"t{i}", f"r{i}", f"t{(i + 1) % size}"): ends for i in range(size)}
    return Graph.typed({f"t{i}": 2 for i in range(size)}, edges)


SAMPLERS: dict[str, Callable[[Graph], Any]] = {
    "a number": lambda graph: NeighborSampler(graph, [1, 1], seed=1),
    "a dict": lambda graph: NeighborSampler(graph, [{FIRST: 1}, {SECOND: 1}], seed=1),
    "LABOR": lambda graph: LaborSampler(graph, [1, 1], seed=1),
    "LABOR with importance": lambda graph: LaborSampler(graph, [1, 1], iterations=1, seed=1),
    "LADIES": lambda graph: LadiesSampler(graph, [1, 1], seed=1),
    "in torch": lambda graph: NeighborSampler(graph, [1, 1], seed=1).in_torch(),
    "LABOR in torch": lambda graph: LaborSampler(graph, [1, 1], seed=1).in_torch(),
}


def read(batch: NodeFlow) -> None:
    """Read the parts of a batch that belong to types and relations."""
    assert len(batch.layers[0].of("t0")) <= 2
    assert batch.flows[0].of(FIRST).num_edges <= 4
    assert batch.flows[1].of(SECOND).num_edges > 0
    assert batch.flows[1].of(FIRST).num_edges == 0


def work(run: Callable[[], object]) -> tuple[int, int]:
    """Return how many calls ``run`` makes, and the most bytes that numpy and Python hold for it."""
    calls = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    tracemalloc.start()
    try:
        run()
        return calls, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_work_of_a_batch_does_not_grow_with_the_schema(name):
    done = []
    for size in (40, 3000):
        sampler = SAMPLERS[name](ring(size))
        read(sampler([4, 5]))  # compiles loops, and makes what the sampler keeps
        done.append(work(lambda sampler=sampler: read(sampler([4, 5]))))
    (calls, few), (calls_of_many, many) = done
    # other numberings of nodes take a few calls more, a loop over the schema thousands
    assert calls_of_many < calls + 500
    # a few arrays of a number per type or relation, but no table and no object of each
    assert many < few + 20 * 8 * 3000


def test_a_batch_of_a_large_schema_has_the_right_parts():
    graph = ring(3000)
    graph.nodes["t1"].data["x"] = torch.tensor([5.0, 6.0])
    graph.relations[SECOND].data["w"] = torch.arange(4.0)
    batch = FullSampler(graph, 2)([4, 2999 * 2])
    assert batch.layers[0].of("t1").parent_nid.tolist() == [0, 1]
    assert batch.layers[0].of("t7").rows.tolist() == []
    assert batch.flows[1].of(SECOND).parent_eid.tolist() == [4, 5]
    assert batch.flows[0].of("r2997").parent_eid.tolist() == [*range(4 * 2997, 4 * 2998)]
    assert batch.flows[1].of("r7").num_edges == 0
    batch.copy_from_parent()
    assert batch.layers[0].of("t1").data["x"].tolist() == [5, 6]
    assert batch.flows[1].of(SECOND).data["w"].tolist() == [0, 1]


def test_reverses_of_a_large_schema():
    graph = ring(3000)
    back = transforms.reverse(graph)
    assert back.schema.relations["t1", "rev_r0", "t0"] == range(4)
    assert len(back.relations) == 3000
    both = FullSampler(transforms.add_reverse_edges(graph), 1)([2])
    assert both.flows[0].of("rev_r1").parent_eid.tolist() == [12000 + 4, 12000 + 6]
    assert both.flows[0].of("r0").parent_eid.tolist() == [0, 1]
    assert both.flows[0].num_edges == 4


def test_nodes_with_thousands_of_relations():
    ends = torch.tensor([0, 1]), torch.tensor([1, 2])
    graph = Graph.typed({"n": 3}, {("n", f"r{i}", "n"): ends for i in range(3000)})
    flow = NeighborSampler(graph, [{"r2999": 1, "r7": 1}], seed=1)([2]).flows[0]
    assert flow.parent_eid.tolist() == [2 * 7 + 1, 2 * 2999 + 1]
    assert [flow.of(name).num_edges for name in ("r7", "r8", "r2999")] == [1, 0, 1]
