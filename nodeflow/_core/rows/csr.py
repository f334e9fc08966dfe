"""Sparse CSR tensors: made of their parts or of a scipy matrix, checked, and the entries of chosen
rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import check_indptr, check_length, check_range, describe
from nodeflow._core.base.dtypes import as_floats
from nodeflow._core.in_torch.ragged import entries_of
from nodeflow._core.runtime.process import ignored_warnings

_SOUND = "_nodeflow_sound"


def csr_tensor(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return a torch sparse CSR tensor of the given parts; torch's warning that sparse CSR is in
    beta is suppressed.

    ``indptr`` is int64 ``[rows + 1]``, ``indices`` int64 ``[nnz]``, ``values`` ``[nnz]``. Shares
    their memory. They must fit one another: ``check_csr`` does not look at the result again.
    """
    _silence_beta_note()
    matrix = torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)
    setattr(matrix, _SOUND, True)
    return matrix


def check_csr(matrix: Tensor, name: str) -> Tensor:
    """Return a sparse CSR tensor after a look, once, at whether its parts fit one another: compiled
    loops trust them.

    Raises ValueError for one of other than two dimensions or with an ``indptr`` that does not fit,
    IndexError for a column out of range.
    """
    # other devices check what they read
    if getattr(matrix, _SOUND, False) or matrix.device.type != "cpu":
        return matrix
    values = matrix.values()
    if matrix.ndim != 2 or values.ndim != 1:
        raise ValueError(f"{name} must have two dimensions if it is sparse, got {describe(matrix)}")
    with _blamed(name):
        check_parts(
            matrix.crow_indices(), matrix.col_indices(), values, (matrix.shape[0], matrix.shape[1])
        )
    setattr(matrix, _SOUND, True)
    return matrix


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, IndexError) as error:
        raise type(error)(f"{name} is a damaged sparse CSR matrix: {error}") from None


def check_parts(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError or IndexError unless the parts make a sparse CSR matrix."""
    check_length(indptr, "indptr", shape[0] + 1, "row, and one more,")
    check_indptr(indptr.numpy(), len(indices))
    check_length(values, "values", len(indices), "column index")
    check_range(indices.numpy(), "indices", shape[1], "column")


@cache
def _silence_beta_note() -> None:
    """Let torch warn, with warnings ignored, that sparse CSR is in beta: it warns once in a
    process.

    Filters of warnings belong to all threads, so they are changed this once only.
    """
    with ignored_warnings():
        indptr = torch.from_numpy(np.zeros(1, np.int64))
        none = torch.from_numpy(np.zeros(0, np.int64))
        torch.sparse_csr_tensor(indptr, none, none, size=(0, 0), check_invariants=False)


def from_scipy(matrix: object, name: str = "matrix") -> Tensor:
    """Return a scipy sparse matrix ``[rows, columns]`` as a torch sparse CSR tensor, usable as a
    frame column.

    Values become float32; float64 stays, and integers that float32 does not have become float64.
    Raises TypeError for anything that is not a scipy sparse matrix of real numbers, ValueError for
    integers that no float has, and the errors of ``check_csr``.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.eye(3, format="csr")).shape
    torch.Size([3, 3])
    """
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"{name} must be a scipy sparse matrix, got {type(matrix).__name__}")
    csr = scipy.sparse.csr_array(matrix)
    if csr.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {csr.shape}")
    values = csr.data
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise TypeError(
            f"{name} must hold real numbers of at most 64 bits, got {values.dtype}; convert it "
            "first"
        )
    if values.dtype.kind == "f":
        values = values.astype(np.result_type(values, np.float32))
    else:
        values = as_floats(values, name)
    parts = (csr.indptr.astype(np.int64), csr.indices.astype(np.int64), values)
    indptr, indices, data = map(torch.from_numpy, parts)
    shape = int(csr.shape[0]), int(csr.shape[1])
    # scipy does not look at the parts that someone made a matrix of
    with _blamed(name):
        check_parts(indptr, indices, data, shape)
    return csr_tensor(indptr, indices, data, shape)


def csr_positions(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``(indptr of the chosen rows, positions of their entries)`` of a CSR structure,
    int64.
    """
    if indptr.device.type == "cpu":
        counts, position = kernels.csr.csr_rows(indptr.numpy(), rows.numpy())
        return torch.from_numpy(counts), torch.from_numpy(position)
    return entries_of(indptr, rows)
