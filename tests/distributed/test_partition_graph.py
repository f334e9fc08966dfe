"""Graphs cut into parts, against slow references; and what becomes of mistakes and damaged files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _support.partition_tools import random_graph
from _support.parts_tools import check_parts, cut_into, renumbered
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import Graph
from nodeflow.distributed import GraphParts, _part_edges, _partition_graph

METHODS = ["random", "ranges", "hash", "given", "metis"]


@given(
    st.integers(0, 30), st.integers(0, 70), st.integers(1, 12), st.sampled_from(METHODS),
    st.sampled_from(["in", "out", "grid"]), st.booleans(), st.booleans(), st.integers(0, 5),
)  # fmt: skip
def test_a_folder_holds_the_graph(
    tmp_path_factory: pytest.TempPathFactory, num_nodes: int, num_edges: int, num_parts: int, method: Any, edges: str,
    renumber: bool, identity: bool, seed: int,
) -> None:  # fmt: skip
    """With repeats, self-loops, nodes without edges, parts without nodes, and edges in many pieces."""
    graph = random_graph(num_nodes, num_edges if num_nodes else 0, seed)
    if identity:  # edge ids are positions
        graph = Graph(*graph.csc()[:2], ndata=dict(graph.ndata), edata=dict(graph.edata))
    if method == "metis":
        pytest.importorskip("pymetis")
        num_parts = min(num_parts, max(num_nodes, 1))
    elif method == "given":
        method = np.random.default_rng(seed).integers(0, num_parts, num_nodes)
    train = list(range(0, num_nodes, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_part_edges, "_EDGES", 7)
        patch.setattr(_partition_graph, "_BYTES", 50)
        patch.setattr(_partition_graph, "_IDS", 5)
        folder = tmp_path_factory.mktemp("parts") / "a"
        parts = cut_into(
            graph, folder, num_parts, method=method, edges=edges, renumber=renumber, train=train, seed=seed
        )
    assert parts.train is not None
    assert parts.val is None
    if renumber:
        assert parts.original_nodes is not None
        assert sorted(parts.original_nodes[parts.train].tolist()) == train
        assert parts.train.tolist() == sorted(parts.train.tolist())
        check_parts(renumbered(graph, parts), parts)
        assert (np.diff(parts.owners(np.arange(num_nodes))) >= 0).all()
        assert (np.diff(parts.edge_owners(np.arange(graph.num_edges))) >= 0).all()
    else:
        assert parts.train.tolist() == train
        check_parts(graph, parts)
    assert GraphParts.open(folder, verify=True).part(0).identity == parts.identity
