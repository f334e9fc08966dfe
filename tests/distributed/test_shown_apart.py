"""A graph that lies on several processes: looking at it asks no other process for anything."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from _support.ranks import Parts, ThreadTransport, run_ranks

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, distributed

RING = Graph.from_edges([0, 1, 2], [1, 2, 0], ndata={"x": torch.rand(3, 4)}, edata={"w": torch.rand(3)})
PARTS = Parts(RING, [0, 0, 1], 2)


def test_tables_make_no_collective_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(transport: ThreadTransport) -> None:
        graph = PARTS.on(transport)
        sampler = NeighborSampler(graph, [2])
        loader = NodeFlowLoader(sampler, [0, 1], batch_size=1)
        before = graph.peers.counters.exchanges
        text = graph._repr_html_()
        assert "DistributedGraph" in text
        assert "3 × 4" in text
        assert "fetched by DistributedRows" in text
        sampler._repr_html_()
        loader._repr_html_()
        assert graph.peers.counters.exchanges == before

    run_ranks(2, shown)


def test_pictures_say_why_not() -> None:
    def refused(transport: ThreadTransport) -> None:
        graph = PARTS.on(transport)
        with pytest.raises(TypeError, match="a graph that lies on several processes is not plotted"):
            graph.plot()

    run_ranks(2, refused)


@pytest.mark.parametrize("edges", ["in", "out"])
def test_one_part_is_the_graph_itself(tmp_path: Path, edges: str) -> None:
    distributed.partition_graph(RING, tmp_path, 1, method="ranges", edges=edges, progress=False)
    graph = distributed.DistributedGraph.open(tmp_path)
    assert type(graph) is Graph
    assert graph.masters.tolist() == [0, 1, 2]
    assert all(a.equal(b) for a, b in zip(graph.edges(), RING.edges(), strict=True))
    assert graph.ndata["x"].equal(RING.ndata["x"])
    assert graph.edata["w"].equal(RING.edata["w"])
    assert graph.peers.counters.exchanges == 0
