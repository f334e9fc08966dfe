"""Sparse CSR tensors: made of their parts or of a scipy matrix, and the entries of chosen rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._runtime.process import ignored_warnings


def csr_tensor(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return a torch sparse CSR tensor of the given parts; torch's warning that sparse CSR is in beta is suppressed.

    ``indptr`` is int64 ``[rows + 1]``, ``indices`` int64 ``[nnz]``, ``values`` ``[nnz]``. Shares their memory.
    """
    _silence_beta_note()
    return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


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

    Values become float32 unless they are float64. Raises TypeError for anything that is not a scipy sparse matrix.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.eye(3, format="csr")).shape
    torch.Size([3, 3])
    """
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"matrix must be a scipy sparse matrix, got {type(matrix).__name__}")
    csr = scipy.sparse.csr_array(matrix)
    values = csr.data if csr.data.dtype == np.float64 else csr.data.astype(np.float32)
    parts = (csr.indptr.astype(np.int64), csr.indices.astype(np.int64), values.copy())
    indptr, indices, data = (torch.from_numpy(part) for part in parts)
    return csr_tensor(indptr, indices, data, (int(csr.shape[0]), int(csr.shape[1])))


def csr_positions(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``(indptr of the chosen rows, positions of their entries)`` of a CSR structure, int64."""
    if indptr.device.type == "cpu":
        counts, position = kernels.csr.csr_rows(indptr.numpy(), rows.numpy())
        return torch.from_numpy(counts), torch.from_numpy(position)
    sizes = (indptr[1:] - indptr[:-1])[rows]
    chosen = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    shift = torch.repeat_interleave(indptr[rows] - chosen[:-1], sizes)
    return chosen, shift + torch.arange(len(shift), device=shift.device)
