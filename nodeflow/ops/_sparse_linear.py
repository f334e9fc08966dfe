"""A linear map of sparse rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow.ops._autograd import Spmm
from nodeflow.ops._structure import Structure


def sparse_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T + bias`` for dense or sparse CSR rows, dense ``[n, out]``.

    Args:
        x: ``[n, k]``, dense or torch sparse CSR (then a constant: no gradient flows into it).
        weight: ``[out, k]``, as in torch.nn.Linear.
        bias: ``[out]`` or None.

    For sparse rows the cost is that of their nonzeros, forward and backward. Raises TypeError for another layout or
    sparse rows that require a gradient, ValueError when the columns of x and weight differ in number.

    >>> x = torch.eye(2)
    >>> sparse_linear(x, torch.tensor([[1.0, 2.0]]))
    tensor([[1.],
            [2.]])
    """
    check_linear(x, weight)
    if x.layout == torch.strided:
        return F.linear(x, weight, bias)
    if x.requires_grad:
        raise TypeError("x is sparse and requires a gradient, which sparse features do not get: pass x.detach()")
    parts = x.crow_indices().to(torch.int64), x.col_indices().to(torch.int64)
    structure = Structure(*parts, x.shape[1])
    out: Tensor = Spmm.apply(structure, weight.t().contiguous(), x.values().to(weight.dtype))
    return out if bias is None else out + bias


def check_linear(x: object, weight: object) -> None:
    """Raise what ``sparse_linear`` raises for rows and a weight that do not fit."""
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr):
        raise TypeError(f"x must be a dense or a sparse CSR tensor, got {_layout(x)}")
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise ValueError(f"weight must be a tensor of shape [out, columns of x], got {describe(weight)}")
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has {x.shape[-1]} columns (shape {tuple(x.shape)}), but weight {tuple(weight.shape)} takes "
            f"{weight.shape[1]}: weight is [out, columns of x], as in torch.nn.Linear"
        )


def _layout(x: object) -> str:
    return f"layout {x.layout}" if isinstance(x, Tensor) else describe(x)
