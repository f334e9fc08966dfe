"""The graph of the tests of histories."""

from __future__ import annotations

import pytest

from nodeflow import Graph
from nodeflow.transform import edge_norm


@pytest.fixture
def ring() -> Graph:
    graph = Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3], num_nodes=7)
    graph.edata["p"] = edge_norm(graph, "right")
    return graph
