"""Adjacency and incidence as matrices: rows of an adjacency are destinations, as in DGL 0.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import check_one_of

if TYPE_CHECKING:
    import scipy.sparse

    from nodeflow.compat.dgl._queries import BaseGraph


def adjacency_matrix_scipy(
    g: BaseGraph, transpose: bool | None = None, fmt: str = "csr", return_edge_ids: bool | None = None
) -> scipy.sparse.spmatrix:
    """Return the scipy matrix whose entry (v, u) is the id of the edge u -> v, ``[num_nodes, num_nodes]``.

    With ``transpose`` the entry is (u, v), with ``return_edge_ids=False`` all entries are 1. ``fmt``: "csr" or "coo".
    Repeated edges stay apart.
    """
    import scipy.sparse

    check_one_of(fmt, "fmt", ("csr", "coo"))
    src, dst = (end.numpy() for end in g.graph.edges())
    rows, columns = (src, dst) if transpose else (dst, src)
    values = np.ones(len(rows), np.int64) if return_edge_ids is False else np.arange(len(rows))
    shape = (g.graph.num_nodes, g.graph.num_nodes)
    if fmt == "coo":
        return scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape)
    order = np.argsort(rows, kind="stable")  # scipy's own conversion would add up repeated edges
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    return scipy.sparse.csr_matrix((values[order], columns[order], indptr), shape=shape)


def adjacency_matrix(g: BaseGraph, transpose: bool | None = None, ctx: torch.device | str = "cpu") -> Tensor:
    """Return the sparse tensor of ones whose entry (v, u) is the edge u -> v; with ``transpose`` (u, v)."""
    src, dst = g.graph.edges()
    size = g.graph.num_nodes
    return ones(torch.stack((src, dst) if transpose else (dst, src)), (size, size), ctx)


def incidence_matrix(g: BaseGraph, typestr: str, ctx: torch.device | str = "cpu") -> Tensor:
    """Return the sparse tensor ``[num_nodes, num_edges]`` that is 1 where an edge enters ("in") a node.

    With "out" it is 1 where an edge leaves; with "both" 1 where one enters, -1 where it leaves, 0 for self-loops.
    """
    check_one_of(typestr, "typestr", ("in", "out", "both"))
    src, dst = g.graph.edges()
    shape, eid = (g.graph.num_nodes, len(src)), torch.arange(len(src))
    if typestr == "both":
        kept = eid[src != dst]
        entering, leaving = (ones(torch.stack((end[kept], kept)), shape, ctx) for end in (dst, src))
        return (entering - leaving).coalesce()
    return ones(torch.stack((dst if typestr == "in" else src, eid)), shape, ctx)


def ones(index: Tensor, shape: tuple[int, int], ctx: torch.device | str) -> Tensor:
    """Return the sparse tensor with a one, float32, at every entry of ``index`` ``[2, k]``."""
    return torch.sparse_coo_tensor(index, torch.ones(index.shape[1]), shape, check_invariants=False).to(ctx)
