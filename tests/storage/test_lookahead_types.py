"""Reading ahead in graphs of several node types."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, storage


def test_columns_of_node_types_are_copied_and_not_planned() -> None:
    nodes: dict[str, Any] = {"a": {"x": torch.rand(3, 2)}, "b": {"x": torch.rand(2, 4)}}
    graph = Graph.typed(nodes, {("a", "to", "b"): ([0, 2], [1, 1])})
    graph.ndata["of_all"] = storage.Tiered([torch.eye(5)])
    loader = NodeFlowLoader(NeighborSampler(graph, [2]), [4], batch_size=1, ndata={0: ["x", "of_all"]})
    (batch,) = storage.Lookahead(loader, "1 KB")
    for name, part in graph.nodes.items():
        of = batch.layers[0].of(name)
        assert torch.equal(of.data["x"], part.data["x"][of.parent_nid])
    assert torch.equal(batch.inputs["of_all"], torch.eye(5)[batch.layers[0].parent_nid])
    graph.nodes["b"].data["x"] = storage.Tiered([torch.rand(2, 4)])
    with pytest.raises(
        TypeError, match="column 'x' of 'b' is fetched by id, and only columns of all nodes are planned"
    ):
        storage.Lookahead(loader, "1 KB")
