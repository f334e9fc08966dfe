"""Sparse matrices of torch, and edge index tensors."""

from __future__ import annotations

import pytest
import torch
from _support.conversions import assert_same_column, assert_same_graph, ends, filled
from hypothesis import given, settings

from nodeflow import Graph
from nodeflow.convert import from_torch_sparse, to_torch_sparse
from nodeflow.testing import graphs


@settings(max_examples=25)
@given(graphs())
def test_a_matrix_and_back_keeps_every_edge_its_id_and_its_entry(graph: Graph) -> None:
    filled(graph)
    for name in graph.edata:
        matrix = to_torch_sparse(graph, weight=name)
        assert matrix.shape[:2] == (graph.num_nodes, graph.num_nodes)
        back = from_torch_sparse(matrix, weight=name)
        assert_same_graph(
            back, Graph.from_edges(*graph.edges(), num_nodes=graph.num_nodes, edata={name: graph.edata[name]})
        )


@settings(max_examples=25)
@given(graphs(edge_columns={"w": ()}))
def test_the_dense_matrix_adds_up_the_edges(graph: Graph) -> None:
    dense = torch.zeros(graph.num_nodes, graph.num_nodes)
    for u, v, w in zip(*ends(graph), graph.edata["w"].tolist(), strict=True):
        dense[u, v] += w
    assert torch.equal(to_torch_sparse(graph, weight="w").to_dense(), dense)
    ones = to_torch_sparse(graph).to_dense()
    assert ones.sum() == graph.num_edges


@settings(max_examples=25)
@given(graphs(multi_edges=False, edge_columns={"w": ()}))
def test_csr_and_csc_have_the_same_edges(graph: Graph) -> None:
    matrix = to_torch_sparse(graph, weight="w").coalesce()
    expected = sorted(zip(*ends(graph), graph.edata["w"].tolist(), strict=True))
    for given_, key in (
        (matrix.to_sparse_csr(), lambda edge: edge[:2]),
        (matrix.to_sparse_csc(), lambda edge: edge[1::-1]),
    ):
        back = from_torch_sparse(given_, weight="w")
        edges = list(zip(*ends(back), back.edata["w"].tolist(), strict=True))
        assert edges == sorted(expected, key=key)


def test_repeated_entries_of_csr_and_stored_zeros_are_edges() -> None:
    parts = torch.tensor([0, 3, 3]), torch.tensor([1, 0, 1]), torch.tensor([5.0, 0.0, 7.0])
    graph = from_torch_sparse(torch.sparse_csr_tensor(*parts, size=(2, 2), check_invariants=False), weight="w")
    assert ends(graph) == [[0, 0, 0], [1, 0, 1]]
    assert graph.edata["w"].tolist() == [5, 0, 7]


def test_matrix_and_graph_share_no_memory() -> None:
    graph = Graph.from_edges([0], [1], edata={"w": torch.ones(1, requires_grad=True)})
    matrix = to_torch_sparse(graph, weight="w")
    assert not matrix.requires_grad
    back = from_torch_sparse(matrix, weight="w", ndata={"x": torch.ones(2)})
    matrix.coalesce().values().mul_(5)
    matrix._values().mul_(5)
    assert (graph.edata["w"].item(), back.edata["w"].item(), list(back.ndata)) == (1, 1, ["x"])


def test_matrix_mistakes() -> None:
    for wrong in (torch.eye(2), [[0]], torch.eye(4).to_sparse_bsr((2, 2))):
        with pytest.raises(TypeError, match="matrix must be a sparse COO, CSR or CSC tensor, got"):
            from_torch_sparse(wrong)
    for wrong in (torch.ones(2, 3).to_sparse(), torch.ones(3, 3, 3).to_sparse(), torch.ones(2).to_sparse()):
        with pytest.raises(ValueError, match="must be square, got shape"):
            from_torch_sparse(wrong)
    with pytest.raises(ValueError, match="not a batch of them"):
        from_torch_sparse(torch.ones(2, 2, 2).to_sparse_csr())
    graph = Graph.from_edges([0], [1], edata={"s": torch.ones(1, 2).to_sparse_csr()})
    with pytest.raises(KeyError, match="no column 'w'"):
        to_torch_sparse(graph, weight="w")
    with pytest.raises(ValueError, match=r"weight must be a dense column, 's' has layout torch.sparse_csr"):
        to_torch_sparse(graph, weight="s")


@settings(max_examples=25)
@given(graphs())
def test_an_edge_index_needs_no_converter(graph: Graph) -> None:
    edge_index = torch.stack(graph.edges())
    back = Graph.from_edges(*edge_index, num_nodes=graph.num_nodes)
    assert_same_column(torch.stack(back.edges()), edge_index, "edge_index")
