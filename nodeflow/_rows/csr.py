"""Sparse CSR tensors: made of their parts or of a scipy matrix, and the entries of chosen rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import check_indptr, check_length, check_range
from nodeflow._runtime.process import ignored_warnings

_CHECKED = "_nodeflow_checked"


def csr_tensor(
    indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int], *, checked: bool = False
) -> Tensor:
    """Return a torch sparse CSR tensor of the given parts; torch's warning that sparse CSR is in beta is suppressed.

    ``indptr`` is int64 ``[rows + 1]``, ``indices`` int64 ``[nnz]``, ``values`` ``[nnz]``. Shares their memory.
    ``checked`` says that the parts are known to be right, as entries of a matrix that was checked are.
    """
    _silence_beta_note()
    matrix = torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)
    if checked:
        setattr(matrix, _CHECKED, True)
    return matrix


def is_checked(matrix: Tensor) -> bool:
    """Return whether the parts of a sparse CSR tensor are known to be right."""
    return getattr(matrix, _CHECKED, False)


def check_csr(matrix: Tensor, name: str) -> None:
    """Raise ValueError or IndexError unless the parts of a sparse CSR tensor fit each other; looks at them once.

    torch builds such tensors of any parts, and compiled loops would follow them to foreign memory.
    """
    if is_checked(matrix):
        return
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got shape {tuple(matrix.shape)}")
    indptr, indices = (part.cpu().numpy() for part in (matrix.crow_indices(), matrix.col_indices()))
    try:
        check_length(indptr, "indptr", matrix.shape[0] + 1, "row and one more")
        check_indptr(indptr, len(indices))
        check_length(matrix.values(), "values", len(indices), "index of a column")
        check_range(indices, "indices", matrix.shape[1], "column")
    except (ValueError, IndexError) as error:
        raise type(error)(f"{name} is a damaged sparse CSR matrix: {error}") from None
    setattr(matrix, _CHECKED, True)


@cache
def _silence_beta_note() -> None:
    """Let torch warn, with warnings ignored, that sparse CSR is in beta: it warns once in a process.

    Filters of warnings belong to all threads, so they are changed this once only.
    """
    with ignored_warnings():
        indptr, none = torch.from_numpy(np.zeros(1, np.int64)), torch.from_numpy(np.zeros(0, np.int64))
        torch.sparse_csr_tensor(indptr, none, none, size=(0, 0), check_invariants=False)


def from_scipy(matrix: object) -> Tensor:
    """Return a scipy sparse matrix ``[rows, columns]`` as a torch sparse CSR tensor, usable as a frame column.

    Values become float32 unless they are float64. Raises TypeError for anything that is not a scipy sparse matrix,
    ValueError or IndexError for one whose parts do not fit each other.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.eye(3, format="csr")).shape
    torch.Size([3, 3])
    """
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"matrix must be a scipy sparse matrix, got {type(matrix).__name__}")
    csr = scipy.sparse.csr_array(matrix)
    values = csr.data if csr.data.dtype == np.float64 else csr.data.astype(np.float32)
    check_indptr(csr.indptr, len(csr.indices))  # scipy builds matrices of any parts too
    check_range(csr.indices, "indices", csr.shape[1], "column")
    parts = (csr.indptr.astype(np.int64), csr.indices.astype(np.int64), values.copy())
    indptr, indices, data = (torch.from_numpy(part) for part in parts)
    return csr_tensor(indptr, indices, data, (int(csr.shape[0]), int(csr.shape[1])), checked=True)


def csr_positions(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``(indptr of the chosen rows, positions of their entries)`` of a CSR structure, int64.

    Raises IndexError for a number that is no row.
    """
    if indptr.device.type == "cpu":
        check_range(rows.numpy(), "rows", len(indptr) - 1, "row")
        counts, position = kernels.csr.csr_rows(indptr.numpy(), rows.numpy())
        return torch.from_numpy(counts), torch.from_numpy(position)
    sizes = (indptr[1:] - indptr[:-1])[rows]
    chosen = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    shift = torch.repeat_interleave(indptr[rows] - chosen[:-1], sizes)
    return chosen, shift + torch.arange(len(shift), device=shift.device)
