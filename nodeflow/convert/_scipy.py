"""Graphs from and to sparse matrices of scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nodeflow._base.checks import describe
from nodeflow._base.types import ColumnsLike
from nodeflow._rows.rows import whole_column
from nodeflow.graph import Graph

if TYPE_CHECKING:
    import scipy.sparse


def from_scipy(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix, *, weight: str | None = None, ndata: ColumnsLike | None = None
) -> Graph:
    """Return the graph of a square scipy sparse matrix, in which entry (i, j) is the edge i -> j.

    Edge ids follow the stored entries (row by row in a CSR matrix). Entries stored several times are several edges, and
    stored zeros are edges too (but not those that fill up the blocks of a BSR matrix).

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
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
    coo = matrix.tocoo()  # CSR would add up repeated entries
    if matrix.format == "bsr":  # its blocks are filled up with zeros that nobody stored
        coo = scipy.sparse.coo_array(coo)
        coo.eliminate_zeros()
    edata = None if weight is None else {weight: coo.data.copy()}
    return Graph.from_edges(coo.row, coo.col, num_nodes=coo.shape[0], ndata=ndata, edata=edata)


def to_scipy(graph: Graph, *, weight: str | None = None) -> scipy.sparse.coo_array:
    """Return the adjacency as a scipy COO array ``[num_nodes, num_nodes]``: entry (i, j) is the edge i -> j.

    Entries are in edge id order, repeated edges stay apart; they are a copy of the edge column ``weight``, or ones
    (float32). Raises ValueError for a column with more than one number per edge, TypeError for bfloat16 and other types
    that numpy does not have.

    >>> to_scipy(Graph.from_edges([0, 1, 1], [1, 2, 2])).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    import scipy.sparse

    src, dst = (end.numpy() for end in graph.edges())
    if weight is None:
        values = np.ones(graph.num_edges, np.float32)
    else:
        column = whole_column(graph.edata[weight])
        if column.ndim != 1:
            raise ValueError(f"weight must be a column with one number per edge, {weight!r} is {tuple(column.shape)}")
        # a copy, because a matrix is easily changed in place, and the graph's column must not be
        try:
            values = column.detach().cpu().numpy().copy()
        except TypeError:
            raise TypeError(
                f"scipy has no numbers of type {column.dtype}, which {weight!r} has; convert it with .float()"
            ) from None
    return scipy.sparse.coo_array((values, (src, dst)), shape=(graph.num_nodes, graph.num_nodes))
