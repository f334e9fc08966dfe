"""Sparse CSR columns in a file, of which only the entries of the rows that are fetched are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_count, as_ids, check_indptr
from nodeflow._base.types import FileLike
from nodeflow._rows.csr import csr_tensor, from_scipy
from nodeflow.storage._files import FileReader, ReadRows, safetensors_header, tensor_in

_PARTS = "indptr", "indices", "values"


class SparseFileRows(ReadRows):
    """Rows of a sparse CSR column in a file. See ``open_sparse`` for its making.

    It follows the protocol ``Rows``, but its rows are sparse: batches get sparse CSR columns. ``indptr`` is kept in
    memory, 8 bytes per row; indices and values are read when they are fetched.

    Attributes:
        path: of the file.
        shape, dtype: of the whole column, ``[n, columns]``.
        bytes_read: how many bytes the file gave so far.

    >>> import tempfile
    >>> import scipy.sparse
    >>> from nodeflow import storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage.save_sparse(folder + "/x.safetensors", scipy.sparse.eye_array(3, format="csr", dtype="float32"))
    ...     rows = storage.open_sparse(folder + "/x.safetensors")
    ...     print(rows.shape, rows.fetch(torch.tensor([2, 0])).to_dense().tolist())
    (3, 3) [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    def __init__(self, reader: FileReader, indptr: Tensor, starts: tuple[int, int], dtype: torch.dtype, columns: int):
        super().__init__(reader)
        self._indptr, self._starts = indptr, starts
        self.shape, self.dtype = (len(indptr) - 1, columns), dtype

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as a sparse CSR tensor ``[k, columns]``.

        Raises IndexError for an id that is no row, TypeError for an ``out``: the number of entries is not known before.
        """
        if out is not None:
            raise TypeError("sparse rows cannot be written into out: their number of entries is not known before")
        wanted = as_ids(ids, "ids", self.shape[0], "row")
        indptr = self._indptr.numpy()
        begin, sizes = indptr[wanted], indptr[wanted + 1] - indptr[wanted]
        chosen = np.concatenate([[0], np.cumsum(sizes)])
        parts = []
        for start, dtype in zip(self._starts, (torch.int64, self.dtype), strict=True):
            item = dtype.itemsize
            part = torch.empty(int(chosen[-1]), dtype=dtype)
            some = sizes > 0
            if some.any():
                target = part.view(torch.uint8).numpy()
                pieces = start + begin[some] * item, sizes[some] * item, chosen[:-1][some] * item
                self._reader.read(*pieces, target)
            parts.append(part)
        return csr_tensor(torch.from_numpy(chosen), parts[0], parts[1], (len(wanted), self.shape[1]))

    def __repr__(self) -> str:
        return f"SparseFileRows({str(self.path)!r}, {self.dtype} {list(self.shape)})"


def save_sparse(path: FileLike, column: object) -> None:
    """Write a sparse column into a ``.safetensors`` file for ``open_sparse``.

    Args:
        path: of the file; one that is there is replaced.
        column: a sparse CSR tensor ``[n, columns]`` or a scipy sparse matrix.

    Raises TypeError for anything else, OSError where the file cannot be written.

    >>> import tempfile
    >>> import scipy.sparse
    >>> from nodeflow import storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage.save_sparse(folder + "/x.safetensors", scipy.sparse.eye_array(3, format="csr", dtype="float32"))
    ...     rows = storage.open_sparse(folder + "/x.safetensors")
    ...     print(rows.shape, rows.fetch(torch.tensor([2, 0])).to_dense().tolist())
    (3, 3) [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    from safetensors.torch import save_file

    tensor = column if isinstance(column, Tensor) else from_scipy(column)
    if tensor.layout != torch.sparse_csr:
        raise TypeError(f"column must be sparse CSR, got layout {tensor.layout}")
    parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
    found = {name: part.detach().cpu().contiguous() for name, part in zip(_PARTS, parts, strict=True)}
    found["indptr"], found["indices"] = found["indptr"].long(), found["indices"].long()
    save_file(found, path, metadata={"columns": str(tensor.shape[1])})


def open_sparse(path: FileLike, *, direct: bool = False, threads: int = 8) -> SparseFileRows:
    """Open a sparse CSR column in a ``.safetensors`` file that ``save_sparse`` wrote.

    Args:
        path: of the file.
        direct, threads: as for ``open``.

    Raises FileNotFoundError and OSError where it cannot be opened, ValueError for a file of something else, or one
    that is damaged.

    >>> import scipy.sparse
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_sparse(f"{folder}/x.safetensors", scipy.sparse.eye(3, format="csr"))
    ...     open_sparse(f"{folder}/x.safetensors").fetch(torch.tensor([2])).to_dense()
    tensor([[0., 0., 1.]], dtype=torch.float64)
    """
    place = Path(path).absolute()
    header, begin = safetensors_header(place)
    if missing := [name for name in _PARTS if name not in header]:
        raise ValueError(f"{place} holds no sparse column: it has no tensor {missing[0]!r}; save_sparse writes one")
    (start, (size,), _), indices, values = (tensor_in(place, header, begin, name) for name in _PARTS)
    indptr = torch.from_numpy(np.fromfile(place, np.int64, size, offset=start))
    try:
        check_indptr(indptr.numpy(), indices[1][0])
        columns = int(header["__metadata__"]["columns"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{place} is damaged, or was not written by save_sparse: {error}") from None
    reader = FileReader(place, direct=bool(direct), threads=as_count(threads, "threads", 1))
    return SparseFileRows(reader, indptr, (indices[0], values[0]), values[2], columns)
