"""Graphs from and to sparse matrices of scipy and of torch: entry (i, j) is the edge i -> j."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import describe
from nodeflow._core.base.types import ColumnsLike
from nodeflow._core.rows.rows import whole_column
from nodeflow.convert._columns import as_array
from nodeflow.graph import Graph

if TYPE_CHECKING:
    import scipy.sparse


def from_scipy(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
    *,
    weight: str | None = None,
    ndata: ColumnsLike | None = None,
) -> Graph:
    """Return the graph of a square scipy sparse matrix, in which entry (i, j) is the edge i -> j.

    Edge ids follow the stored entries (row by row in a CSR matrix). Entries stored several times
    are several edges, and stored zeros are edges too (but not those that fill up the blocks of a
    BSR matrix).

    Args:
        matrix: ``[num_nodes, num_nodes]``.
        weight: name of an edge column that receives the entries; None drops them.
        ndata: node columns.

    Raises TypeError for anything but a scipy sparse matrix, ValueError for one that is not square.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.csr_array([[0, 1], [1, 0]]))
    Graph(2 nodes, 2 edges)
    """
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"matrix must be a scipy sparse matrix, got {describe(matrix)}")
    _check_square(matrix, matrix.ndim == 2)
    # COO keeps repeated entries apart, where CSR would add them up
    coo = matrix.tocoo()
    # blocks of a BSR matrix are padded with zeros that were never stored
    if matrix.format == "bsr":
        coo = scipy.sparse.coo_array(coo)
        coo.eliminate_zeros()
    if weight is None:
        edata = None
    else:
        edata = {weight: coo.data.copy()}
    return Graph.from_edges(coo.row, coo.col, num_nodes=coo.shape[0], ndata=ndata, edata=edata)


@checked
def to_scipy(graph: Graph, *, weight: str | None = None) -> scipy.sparse.coo_array:
    """Return the adjacency as a scipy COO array ``[num_nodes, num_nodes]``: entry (i, j) is the
    edge i -> j.

    Entries are in edge id order, repeated edges stay apart; they are a copy of the edge column
    ``weight``, or ones (float32). Raises ValueError for a column with more than one number per
    edge, TypeError for bfloat16 and other types that numpy does not have.

    >>> to_scipy(Graph.from_edges([0, 1, 1], [1, 2, 2])).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    import scipy.sparse

    src, dst = (end.numpy() for end in graph.edges())
    values = _values(graph, weight)
    if values.ndim != 1 or values.layout != torch.strided:
        raise ValueError(
            f"weight must be a column with one number per edge, {weight!r} is {tuple(values.shape)}"
        )
    array = as_array(values, weight or "")
    return scipy.sparse.coo_array((array, (src, dst)), shape=(graph.num_nodes, graph.num_nodes))


def from_torch_sparse(
    matrix: Tensor, *, weight: str | None = None, ndata: ColumnsLike | None = None
) -> Graph:
    """Return the graph of a square sparse tensor of torch, in which entry (i, j) is the edge i ->
    j.

    Edge ids follow the stored entries: as listed in a COO tensor, row by row in CSR, column by
    column in CSC. Entries stored several times are several edges, and stored zeros are edges too.

    Args:
        matrix: COO, CSR or CSC, ``[num_nodes, num_nodes]``, or ``[num_nodes, num_nodes, ...]`` with
            dense entries.
        weight: name of an edge column that receives a copy of the entries, ``[num_edges, ...]``;
            None drops them.
        ndata: node columns.

    Raises TypeError for anything but a COO, CSR or CSC tensor, ValueError for one that is not
    square.

    >>> from_torch_sparse(torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), weight="w").edata["w"]
    tensor([2., 3.])
    """
    layouts = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
    if not isinstance(matrix, Tensor) or matrix.layout not in layouts:
        raise TypeError(
            "matrix must be a sparse COO, CSR or CSC tensor, got "
            f"{describe(matrix)}; x.to_sparse() makes one"
        )
    coo = matrix.to_sparse_coo()
    if coo.sparse_dim() > 2 and matrix.layout != torch.sparse_coo:
        raise ValueError(
            f"matrix must be one matrix, not a batch of them, got shape {tuple(matrix.shape)}"
        )
    _check_square(matrix, coo.sparse_dim() == 2)
    # indices() and values() want repeated entries added up
    src, dst = coo._indices()  # noqa: SLF001
    edata = None if weight is None else {weight: coo._values().detach().clone()}  # noqa: SLF001
    return Graph.from_edges(src, dst, num_nodes=matrix.shape[0], ndata=ndata, edata=edata)


@checked
def to_torch_sparse(graph: Graph, *, weight: str | None = None) -> Tensor:
    """Return the adjacency as a sparse COO tensor ``[num_nodes, num_nodes]``: entry (i, j) is the
    edge i -> j.

    Entries are in edge id order, and repeated edges stay apart: ``.coalesce()`` adds them up. They
    are a copy of the edge column ``weight``, whose rows may be dense (then the tensor is
    ``[num_nodes, num_nodes, ...]``), or ones (float32). The matrix whose product with features sums
    over in-edges is its transpose; ``Flow.to_torch_sparse`` and ``nodeflow.propagation`` have that
    one.

    Raises KeyError for an unknown column, ValueError for a sparse one.

    >>> to_torch_sparse(Graph.from_edges([0, 0], [1, 1])).to_dense()
    tensor([[0., 2.],
            [0., 0.]])
    """
    values = _values(graph, weight)
    if values.layout != torch.strided:
        raise ValueError(f"weight must be a dense column, {weight!r} has layout {values.layout}")
    shape = (graph.num_nodes, graph.num_nodes, *values.shape[1:])
    ends = torch.stack(graph.edges()).to(values.device)
    return torch.sparse_coo_tensor(ends, values, shape, is_coalesced=False, check_invariants=False)


def _values(graph: Graph, weight: str | None) -> Tensor:
    """Return a copy of the edges' numbers, because matrices are easily changed in place."""
    if weight is None:
        return torch.ones(graph.num_edges, dtype=torch.float32, device="cpu")
    return whole_column(graph.edata[weight]).detach().clone()


def _check_square(matrix: Any, plain: bool) -> None:
    if not plain or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
