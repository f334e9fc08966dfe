"""Sparse matrices of scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.graphs import ends_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow import Graph
from nodeflow.convert import from_scipy, to_scipy
from nodeflow.testing import graphs

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


@settings(max_examples=25)
@given(graphs(edge_columns={"w": ()}))
def test_scipy_and_back_keeps_every_edge_its_id_and_its_value(graph: Graph) -> None:
    matrix = to_scipy(graph, weight="w")
    assert matrix.shape == (graph.num_nodes, graph.num_nodes)
    back = from_scipy(matrix, weight="w")
    assert ends_of(back) == ends_of(graph)
    assert back.num_nodes == graph.num_nodes
    assert torch.equal(back.edata["w"], graph.edata["w"])
    assert not from_scipy(to_scipy(graph)).edata
    ones = to_scipy(graph)
    assert ones.dtype == np.float32
    assert (ones.data == 1).all()


@settings(max_examples=25)
@given(graphs(multi_edges=False), st.sampled_from(FORMATS))
def test_every_scipy_format_has_the_same_edges(graph: Graph, format: str) -> None:
    if graph.num_nodes == 0 and format == "bsr":
        format = "csr"  # which has no blocks of no rows
    assert sorted(ends_of(from_scipy(to_scipy(graph).asformat(format)))) == sorted(ends_of(graph))


def test_zeros_that_fill_up_blocks_are_no_edges() -> None:
    matrix = scipy.sparse.bsr_array(
        np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]), blocksize=(2, 2)
    )
    assert matrix.data.size == 8
    graph = from_scipy(matrix, weight="w")
    assert ends_of(graph) == [(0, 1), (2, 3)]
    assert graph.edata["w"].tolist() == [1, 2]


def test_scipy_entry_i_j_is_the_edge_from_i_to_j_and_columns_come_along() -> None:
    matrix = scipy.sparse.csr_array(np.array([[0, 5, 0], [0, 0, 0], [7, 0, 9]]))
    graph = from_scipy(matrix, weight="w", ndata={"x": np.arange(3)})
    assert ends_of(graph) == [(0, 1), (2, 0), (2, 2)]
    assert graph.edata["w"].tolist() == [5, 7, 9]
    assert graph.ndata["x"].tolist() == [0, 1, 2]
    matrix.data[:] = 0
    assert graph.edata["w"].tolist() == [5, 7, 9]


def test_scipy_entries_stored_twice_and_stored_zeros_are_edges() -> None:
    coo = scipy.sparse.coo_array((np.array([1.0, 2.0, 0.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    graph = from_scipy(coo, weight="w")
    assert ends_of(graph) == [(0, 1), (0, 1), (1, 0)]
    assert graph.edata["w"].tolist() == [1, 2, 0]
    assert coo.nnz == 3


def test_a_matrix_shares_nothing_with_its_graph() -> None:
    graph = Graph.from_edges([0, 0], [1, 1], edata={"w": torch.tensor([1.0, 2.0], requires_grad=True)})
    matrix = to_scipy(graph, weight="w")
    matrix.data[:] = 9
    matrix.row[:] = 1
    assert graph.edata["w"].tolist() == [1, 2]
    assert ends_of(graph) == [(0, 1), (0, 1)]


def test_scipy_mistakes() -> None:
    with pytest.raises(TypeError, match="matrix must be a scipy sparse matrix, got ndarray"):
        from_scipy(np.eye(2))
    with pytest.raises(ValueError, match=r"must be square, got shape \(2, 3\)"):
        from_scipy(scipy.sparse.csr_array((2, 3)))
    graph = Graph.from_edges([0], [1], edata={"f": torch.ones(1, 2)})
    with pytest.raises(KeyError, match="no column 'w'"):
        to_scipy(graph, weight="w")
    with pytest.raises(ValueError, match=r"one number per edge, 'f' is \(1, 2\)"):
        to_scipy(graph, weight="f")


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int64, torch.float64])
def test_scipy_keeps_the_type_of_the_entries(dtype: torch.dtype) -> None:
    graph = Graph.from_edges([0, 0, 1], [1, 1, 1], edata={"w": torch.tensor([0, 1, 1]).to(dtype)})
    back = from_scipy(to_scipy(graph, weight="w"), weight="w").edata["w"]
    assert back.dtype == dtype
    assert torch.equal(back, graph.edata["w"])


def test_types_that_scipy_does_not_have_are_named() -> None:
    graph = Graph.from_edges([0], [1], edata={"w": torch.ones(1, dtype=torch.bfloat16)})
    with pytest.raises(
        TypeError, match=r"no numbers of type torch.bfloat16, which 'w' has; convert it with .float\(\)"
    ):
        to_scipy(graph, weight="w")
