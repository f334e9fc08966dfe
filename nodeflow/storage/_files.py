"""Rows in files, dense and sparse, read in sorted order by several threads, through the page cache
or past it.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.rows.base import RowsBase
from nodeflow._core.rows.csr import csr_tensor
from nodeflow._core.rows.rows import row_bytes
from nodeflow._core.runtime.workers import Workers

# alignment in bytes of reads past the page cache, by device
_BLOCKS = 512, 4096
_SCRATCH = 2**20  # bytes of the largest single read
_SHARE = 16  # pieces that are worth a thread

Extent = tuple[int, tuple[int, ...], torch.dtype]
"""Where numbers begin in a file, their shape and their type."""


class FileRows(RowsBase):
    """The ``Rows`` of a dense column in a file, as ``open`` makes them.

    ``fetch`` sorts the ids, reads neighbours together, and spreads the reads over threads.
    Processes may share it: it pickles as the path of the file.

    Attributes:
        path: of the file.
        direct, threads: see ``open``.
        bytes_read: how many bytes the file gave so far, whole blocks of the disk where it is read
            past the page cache.

    Raises OSError where the file cannot be opened, or not past the page cache.

    >>> import tempfile
    >>> from nodeflow import storage
    >>> path = tempfile.mkdtemp() + "/x.npy"
    >>> storage.create(path, (3, 2))[2] = torch.tensor([4.0, 5.0])
    >>> storage.open(path).fetch(torch.tensor([2, 0])).tolist()
    [[4.0, 5.0], [0.0, 0.0]]
    """

    @checked
    def __init__(
        self, path: Path, extent: Extent, *, direct: bool = False, threads: int = 8
    ) -> None:
        self.path = path
        self.direct = direct
        self.threads = threads
        self._start, self.shape, self.dtype = self._extent = extent
        self._row = row_bytes(self)
        self.bytes_read = 0
        self._lock = threading.Lock()
        self._block = 1
        if direct:
            self._file, self._block = _opened_direct(path)
        else:
            self._file = os.open(path, os.O_RDONLY)
        # Not in __del__, which may not run when the interpreter ends.
        weakref.finalize(self, os.close, self._file)
        self._workers: tuple[int, Workers] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(FileRows, direct=self.direct, threads=self.threads), (
            self.path,
            self._extent,
        )

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        out = self._room(len(ids), out)
        if len(ids) and self._row:
            self._read_pieces(ids, np.full(len(ids), 1), np.arange(len(ids)), out)
        return out

    def ranges(self, begin: Ints, sizes: Ints) -> Tensor:
        """Return the rows ``begin[i]`` to ``begin[i] + sizes[i] - 1`` for every i, one range after
        another.
        """
        some = sizes > 0
        ends = np.cumsum(sizes)
        out = self._room(int(sizes.sum()), None)
        if some.any():
            self._read_pieces(begin[some], sizes[some], (ends - sizes)[some], out)
        return out

    def _read_pieces(self, first: Ints, count: Ints, to: Ints, out: Tensor) -> None:
        """Copy ``count[i]`` rows from row ``first[i]`` on to the rows from ``to[i]`` on of ``out``,
        for all i.
        """
        offsets = self._start + first * self._row
        target = out.view(-1).view(torch.uint8).numpy()
        # In the order of the file: a disk reads forwards, and neighbours share a block.
        order = np.argsort(offsets, kind="stable")
        parts = max(1, min(self.threads, len(order) // _SHARE))
        cuts = [len(order) * k // parts for k in range(parts + 1)]
        # Blocks begin before the first byte that is wanted, and end after the last.
        room = min(_SCRATCH, -(-len(target) // _BLOCKS[-1]) * _BLOCKS[-1] + 2 * _BLOCKS[-1])

        sizes = count * self._row
        starts = to * self._row

        def read(k: int) -> int:
            pieces = {"offsets": offsets, "sizes": sizes, "order": order, "to": starts}
            where = {"out": target, "first": cuts[k], "last": cuts[k + 1]}
            if not hasattr(os, "pread"):
                return int(kernels.reading.copy_pieces(self._mapped, **pieces, **where))
            scratch = _aligned(room)
            read_pieces = kernels.reading.read_pieces
            return int(
                read_pieces(self._file, **pieces, align=self._block, scratch=scratch, **where)
            )

        waits = [self._pool().submit(partial(read, k)) for k in range(1, parts)]
        results = [read(0), *(wait() for wait in waits)]
        if (failed := min(results)) < 0:
            raise OSError(
                errno.EIO,
                f"byte {-failed - 1} cannot be read: the disk failed, or the file was cut off "
                "after it was opened",
                str(self.path),
            )
        with self._lock:
            self.bytes_read += sum(results)

    @cached_property
    def _mapped(self) -> Array:
        return np.asarray(np.memmap(self.path, np.uint8, "r"))

    def _pool(self) -> Workers:
        # threads do not live on in a forked process
        if self._workers is None or self._workers[0] != os.getpid():
            workers = Workers(self.threads - 1, "nodeflow-file")
            # At the end of the interpreter the threads are daemons, and waiting for them could
            # hang.
            weakref.finalize(self, workers.stop).atexit = False
            self._workers = os.getpid(), workers
        return self._workers[1]

    def _details(self) -> str:
        return repr(str(self.path)) + (", past the page cache" if self.direct else "")


class SparseFileRows(RowsBase):
    """The ``Rows`` of a sparse CSR column ``[n, width]`` in files, as ``open`` makes them; batches
    get CSR rows.

    ``indptr`` is kept in memory, 8 bytes per row; indices and values are read when they are
    fetched.

    Attributes:
        path: the folder, or the file of the values.
        bytes_read: how many bytes the files gave so far.

    >>> import tempfile
    >>> from nodeflow import storage
    >>> path = tempfile.mkdtemp() + "/x"
    >>> storage.save_sparse(path, torch.eye(3).to_sparse_csr())
    >>> storage.open(path).fetch(torch.tensor([2, 0])).to_dense().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    layout = torch.sparse_csr

    def __init__(
        self, path: Path, indptr: Tensor, indices: FileRows, values: FileRows, width: int
    ) -> None:
        self.path = path
        self.shape = (len(indptr) - 1, width)
        self.dtype = values.dtype
        self._indptr = indptr
        self._indices = indices
        self._values = values

    @property
    def bytes_read(self) -> int:
        """Number of bytes that the files gave so far."""
        return self._indices.bytes_read + self._values.bytes_read

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        indptr = self._indptr.numpy()
        begin = indptr[ids]
        sizes = indptr[ids + 1] - indptr[ids]
        indices = self._indices.ranges(begin, sizes)
        values = self._values.ranges(begin, sizes)
        # products trust the columns of a sparse matrix, and a file may be damaged
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < self.shape[1]:
            raise ValueError(
                f"{self._indices.path} is damaged: it names columns outside of 0 to "
                f"{self.shape[1] - 1}"
            )
        chosen = np.concatenate([[0], np.cumsum(sizes)])
        return csr_tensor(
            torch.from_numpy(chosen), indices.long(), values, (len(ids), self.shape[1])
        )

    def _details(self) -> str:
        return repr(str(self.path))


def _aligned(size: int) -> Array:
    memory = np.empty(size + _BLOCKS[-1], np.uint8)
    begin = -memory.ctypes.data % _BLOCKS[-1]
    return memory[begin : begin + size]


def _opened_direct(path: Path) -> tuple[int, int]:
    """Open a file past the page cache; return its descriptor, and the size of its blocks."""
    # not every system has the flag, and not every file system takes it, or says so at once
    with suppress(AttributeError, OSError):
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        for block in _BLOCKS:
            with suppress(OSError):
                os.preadv(file, [memoryview(_aligned(block).data)], 0)
                return file, block
        os.close(file)
    raise OSError(f"{path} cannot be read past the page cache: open it with direct=False")
