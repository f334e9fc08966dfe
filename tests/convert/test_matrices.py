"""Sparse matrices of scipy and of torch, and edge index tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.conversions import assert_same_graph, filled
from _support.graphs import ends_of
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.convert import from_scipy, from_torch_sparse, to_scipy, to_torch_sparse
from nodeflow.testing import graphs

WAYS = {"scipy": (to_scipy, from_scipy), "torch": (to_torch_sparse, from_torch_sparse)}
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]
both = pytest.mark.parametrize("library", WAYS)


def entries(matrix: Any) -> list[tuple[int, int, float]]:
    """Row, column and value of the stored entries, in their order."""
    if isinstance(matrix, torch.Tensor):
        return list(zip(*matrix._indices().tolist(), matrix._values().tolist(), strict=True))
    return list(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True))


@both
@given(graph=graphs())
def test_a_matrix_and_back_keeps_every_edge_its_id_and_its_entry(library, graph):
    to, back = WAYS[library]
    filled(graph).edata["whole"] = torch.arange(graph.num_edges)
    graph.edata["precise"] = torch.rand(graph.num_edges, dtype=torch.float64)
    columns = {
        name: column
        for name, column in graph.edata.items()
        if library == "torch" or column.ndim == 1
    }
    for name, column in columns.items():
        matrix = to(graph, weight=name)
        assert tuple(matrix.shape[:2]) == (graph.num_nodes, graph.num_nodes)
        wanted = Graph.from_edges(*graph.edges(), num_nodes=graph.num_nodes, edata={name: column})
        assert_same_graph(back(matrix, weight=name), wanted)
    ones = to(graph)
    assert entries(ones) == [(u, v, 1.0) for u, v in ends_of(graph)]
    assert not back(ones).edata
    assert back(ones, ndata={"y": np.arange(graph.num_nodes)}).ndata["y"].tolist() == list(
        range(graph.num_nodes)
    )


@given(graphs(multi_edges=False, edge_columns={"w": ()}), st.sampled_from(FORMATS))
def test_every_format_has_the_same_edges(graph, format):
    made = to_scipy(graph).asformat("csr" if graph.num_nodes == 0 and format == "bsr" else format)
    assert sorted(ends_of(from_scipy(made))) == sorted(ends_of(graph))
    matrix = to_torch_sparse(graph, weight="w").coalesce()
    expected = sorted(
        (*ends, w) for ends, w in zip(ends_of(graph), graph.edata["w"].tolist(), strict=True)
    )
    for made, key in (
        (matrix.to_sparse_csr(), lambda edge: edge[:2]),
        (matrix.to_sparse_csc(), lambda edge: edge[1::-1]),
    ):
        back = from_torch_sparse(made, weight="w")
        edges = [
            (*ends, w) for ends, w in zip(ends_of(back), back.edata["w"].tolist(), strict=True)
        ]
        assert edges == sorted(expected, key=key)


def test_zeros_that_fill_up_blocks_are_no_edges():
    dense = np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]])
    matrix = scipy.sparse.bsr_array(dense, blocksize=(2, 2))
    assert matrix.data.size == 8
    graph = from_scipy(matrix, weight="w")
    assert (ends_of(graph), graph.edata["w"].tolist()) == ([(0, 1), (2, 3)], [1, 2])


CSR = [5.0, 0.0, 7.0], [1, 0, 1], [0, 3, 3]
REPEATED: dict[str, Callable[[], Any]] = {
    "csr": lambda: scipy.sparse.csr_array(CSR, shape=(2, 2)),
    "coo": lambda: scipy.sparse.coo_array((np.array(CSR[0]), ([0, 0, 0], CSR[1])), shape=(2, 2)),
    "torch": lambda: torch.sparse_csr_tensor(
        *map(torch.tensor, CSR[::-1]), size=(2, 2), check_invariants=False
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_entries_stored_twice_and_stored_zeros_are_edges(name):
    back = WAYS["torch" if name == "torch" else "scipy"][1]
    graph = back(REPEATED[name](), weight="w")
    assert (ends_of(graph), graph.edata["w"].tolist()) == ([(0, 1), (0, 0), (0, 1)], [5, 0, 7])


@both
def test_matrix_and_graph_share_no_memory(library):
    to, back = WAYS[library]
    graph = Graph.from_edges(
        [0, 0], [1, 1], edata={"w": torch.tensor([1.0, 2.0], requires_grad=True)}
    )
    matrix = to(graph, weight="w")
    other = back(matrix, weight="w")
    if library == "torch":
        assert not matrix.requires_grad
        matrix._values().mul_(5)
    else:
        matrix.data[:] = 9
        matrix.row[:] = 1
    for own in (graph, other):
        assert (ends_of(own), own.edata["w"].tolist()) == ([(0, 1), (0, 1)], [1, 2])
