"""A graph that lies on several processes: looking at it asks no other process for anything."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, distributed
from nodeflow.distributed._rows import DistributedRows


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    ring = Graph.from_edges([0, 1, 2], [1, 2, 0], ndata={"x": torch.rand(3, 4)})
    distributed.partition_graph(ring, tmp_path, 1, method="ranges", progress=False)
    return distributed.DistributedGraph.open(tmp_path)


def test_tables_make_no_collective_call(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = NeighborSampler(graph, [2])
    loader = NodeFlowLoader(sampler, [0, 1], batch_size=1)
    monkeypatch.setattr(DistributedRows, "fetch", lambda *_: pytest.fail("rows were fetched"))
    for name in ("gather", "together", "exchange", "agree"):
        monkeypatch.setattr(type(graph.peers), name, lambda *_, **__: pytest.fail("a collective call was made"))
    text = graph._repr_html_()
    assert "DistributedGraph" in text
    assert "3 × 4" in text
    assert "fetched by DistributedRows" in text
    sampler._repr_html_()
    loader._repr_html_()


def test_pictures_and_formulas_say_why_not(graph: Graph) -> None:
    with pytest.raises(TypeError, match="a graph that lies on several processes is not plotted"):
        graph.plot()
    sampler = NeighborSampler(graph, [2])
    with pytest.raises(TypeError, match=r"no formula .*its graph lies on several processes"):
        sampler.estimate([0])
    assert sampler.estimate([0], pilot=2).nodes == (2, 1)
