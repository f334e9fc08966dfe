"""A flow as sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nodeflow._base.checks import check_one_of
from nodeflow._rows.csr import csr_tensor

if TYPE_CHECKING:
    import scipy.sparse

    from nodeflow.flow._flow import Flow


def to_scipy(flow: Flow, weight: Tensor | None = None) -> scipy.sparse.csr_array:
    """Return the adjacency as a scipy CSR array ``[num_dst, num_src]``, entries ``weight``
    ``[num_edges]`` or 1.

    Repeated edges stay separate entries, in edge order; products and sums treat them as their sum.
    Nothing is shared with the flow. Raises ValueError for a weight of another shape.
    """
    import scipy.sparse

    values = _entries(flow, weight).detach().cpu().numpy()
    parts = (values, flow.indices.cpu().numpy(), flow.indptr.cpu().numpy())
    # a copy, because methods such as sort_indices() change the matrix in place
    return scipy.sparse.csr_array(parts, shape=(flow.num_dst, flow.num_src), copy=True)


def to_torch_sparse(flow: Flow, weight: Tensor | None = None) -> Tensor:
    """Return the adjacency as a torch sparse CSR tensor ``[num_dst, num_src]``, entries ``weight``
    or 1.

    It shares memory with the flow: do not write to it. Raises ValueError for a weight of another
    shape.
    """
    return csr_tensor(
        flow.indptr, flow.indices, _entries(flow, weight), (flow.num_dst, flow.num_src)
    )


def _entries(flow: Flow, weight: Tensor | None) -> Tensor:
    if weight is None:
        return torch.ones(flow.num_edges, dtype=torch.float32, device=flow.structure.device)
    if weight.shape != (flow.num_edges,):
        raise ValueError(
            f"weight must have shape ({flow.num_edges},), one per edge, got {tuple(weight.shape)}"
        )
    return weight


def incidence(flow: Flow, end: str) -> Tensor:
    """Return the incidence matrix as a torch sparse CSR tensor of ones.

    ``end="in"`` gives ``[num_dst, num_edges]`` (entry (v, e): edge e ends in v), ``end="out"``
    gives ``[num_src, num_edges]`` (edge e leaves u). Raises ValueError for another ``end``.
    """
    check_one_of(end, "end", ("in", "out"))
    device = flow.structure.device
    size = flow.num_edges
    values = torch.ones(size, device=device)
    by, edges = flow.structure.grouped("v" if end == "in" else "u")
    edges = torch.arange(size, device=device) if edges is None else edges
    return csr_tensor(by.indptr, edges, values, (by.num_dst, size))
