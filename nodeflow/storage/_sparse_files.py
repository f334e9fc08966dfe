"""Sparse CSR columns in files, of which only the entries of the rows that are fetched are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, check_type
from nodeflow._base.types import FileLike
from nodeflow._disk.folders import new_folder
from nodeflow._disk.manifest import Manifest
from nodeflow._disk.streams import stream_column
from nodeflow._rows.base import RowsBase
from nodeflow._rows.csr import csr_tensor, from_scipy
from nodeflow._rows.rows import Rows, is_sparse
from nodeflow.storage._files import FileRows

KIND, VERSION = "sparse rows", 1


class SparseFileRows(RowsBase):
    """Rows of a sparse CSR column in files. See ``open`` for its making.

    It follows the protocol ``Rows``, so it can be a column of a graph; batches get sparse CSR rows. ``indptr`` is kept
    in memory, 8 bytes per row; indices and values are read when they are fetched.

    Attributes:
        path: the folder or file.
        shape, dtype: of the whole column, ``[n, width]``.
        bytes_read: how many bytes the files gave so far.

    >>> import tempfile
    >>> import scipy.sparse
    >>> from nodeflow import storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage.save_sparse(folder + "/x", scipy.sparse.eye_array(3, format="csr", dtype="float32"))
    ...     rows = storage.open(folder + "/x")
    ...     print(rows.shape, rows.fetch(torch.tensor([2, 0])).to_dense().tolist())
    (3, 3) [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    layout = torch.sparse_csr

    def __init__(self, path: Path, indptr: Tensor, indices: FileRows, values: FileRows, width: int) -> None:
        self.path, self.shape, self.dtype = path, (len(indptr) - 1, width), values.dtype
        self._indptr, self._indices, self._values = indptr, indices, values

    @property
    def bytes_read(self) -> int:
        """How many bytes the files gave so far."""
        return sum(reader.bytes_read for reader in {self._indices.reader, self._values.reader})

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        indptr = self._indptr.numpy()
        begin, sizes = indptr[ids], indptr[ids + 1] - indptr[ids]
        indices, values = (part.ranges(begin, sizes) for part in (self._indices, self._values))
        # products trust the columns of a sparse matrix, and a file may be damaged
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < self.shape[1]:
            raise ValueError(f"{self._indices.path} is damaged: it names columns outside of 0 to {self.shape[1] - 1}")
        chosen = np.concatenate([[0], np.cumsum(sizes)])
        return csr_tensor(torch.from_numpy(chosen), indices.long(), values, (len(ids), self.shape[1]))

    def _details(self) -> str:
        return repr(str(self.path))


def save_sparse(path: FileLike, column: object, *, overwrite: bool = False) -> None:
    """Write a sparse column into a folder for ``open``: arrays and a manifest, as a graph folder has them.

    Args:
        path: the folder, which appears whole or not at all.
        column: a sparse CSR tensor ``[n, width]``, ``Rows`` that are sparse, or a scipy sparse matrix.
        overwrite: replace a folder that is there.

    Raises TypeError for anything else, FileExistsError for a folder that is there, OSError where the disk is full.

    >>> import tempfile
    >>> import scipy.sparse
    >>> from nodeflow import storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage.save_sparse(folder + "/x", scipy.sparse.eye_array(3, format="csr", dtype="float32"))
    ...     storage.open(folder + "/x").fetch(torch.tensor([2])).to_dense()
    tensor([[0., 0., 1.]])
    """
    rows = column if isinstance(column, Tensor | Rows) else from_scipy(column)
    check_type(rows, "column", Tensor | Rows, "a sparse CSR tensor, sparse rows or a scipy sparse matrix")
    if not is_sparse(rows):
        raise TypeError("column must be sparse CSR, got a dense one; storage.create makes a file for it")
    with new_folder(Path(path), overwrite=overwrite) as draft:
        Manifest(KIND, VERSION, {"rows": stream_column(draft / "rows.npy", rows)}).write(draft)
