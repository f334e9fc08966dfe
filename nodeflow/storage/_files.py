"""Dense rows in a file, read in sorted order by several threads, through the page cache or past it."""

from __future__ import annotations

import json
import math
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_count, check_type
from nodeflow._base.types import Array
from nodeflow._disk.arrays import numpy_type, read_header
from nodeflow._rows.base import RowsBase
from nodeflow._rows.rows import row_bytes
from nodeflow._runtime.workers import Workers

_BLOCKS = 512, 4096  # bytes of which reads past the page cache must be multiples, by device
_SCRATCH = 2**20  # bytes of the largest single read
_SHARE = 16  # pieces that are worth a thread
_SAFETENSORS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class FileReader:
    """An open file whose pieces are read by several threads. It pickles as the path of the file.

    Args:
        path: of the file.
        direct: read past the page cache of the operating system.
        threads: how many read at a time.

    Raises OSError where the file cannot be opened, or not past the page cache.
    """

    def __init__(self, path: Path, *, direct: bool, threads: int) -> None:
        self.path, self.direct, self.threads = path, direct, threads
        self.bytes_read, self._lock = 0, threading.Lock()
        flags = os.O_RDONLY
        if direct:
            if not hasattr(os, "O_DIRECT"):
                raise OSError(f"this system cannot read past its page cache: open {path} with direct=False")
            flags |= os.O_DIRECT
        try:
            self._file = os.open(path, flags)
        except OSError as error:
            if direct and path.is_file():
                raise OSError(
                    error.errno, f"{error.strerror}: its file system cannot read past the page cache", str(path)
                ) from None
            raise
        weakref.finalize(self, os.close, self._file)
        self._block = _block_of(self._file, path) if direct else 1
        self._workers: tuple[int, Workers] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self.direct, self.threads)

    def read(self, offsets: Array, sizes: Array, to: Array, out: Array) -> None:
        """Copy the pieces of ``sizes[i]`` bytes at ``offsets[i]`` (int64) to the bytes ``to[i]`` of ``out`` (uint8).

        Raises OSError where they cannot be read, ValueError where the file ends before.
        """
        order = np.argsort(offsets, kind="stable")
        parts = max(1, min(self.threads, len(order) // _SHARE))
        cuts = [len(order) * k // parts for k in range(parts + 1)]
        most = -(-len(out) // _BLOCKS[-1]) * _BLOCKS[-1] + 2 * _BLOCKS[-1]  # bytes that one read can be worth
        tasks = [self._task(offsets, sizes, order, to, out, cuts[k], cuts[k + 1], most) for k in range(parts)]
        if parts > 1:
            waits = [self._pool().submit(task) for task in tasks[1:]]
            results = [tasks[0](), *(wait() for wait in waits)]
        else:
            results = [tasks[0]()]
        if (failed := min(results)) < 0:
            self._fail(-failed - 1)
        with self._lock:
            self.bytes_read += sum(results)

    def _task(self, *pieces: Any) -> Callable[[], int]:
        offsets, sizes, order, to, out, first, last, most = pieces

        def read() -> int:
            scratch, block = _aligned(min(_SCRATCH, most)), self._block
            return int(
                kernels.reading.read_pieces(self._file, offsets, sizes, order, to, block, scratch, out, first, last)
            )

        return read

    def _pool(self) -> Workers:
        if self._workers is None or self._workers[0] != os.getpid():  # threads do not live on in a forked process
            workers = Workers(self.threads - 1, "nodeflow-file")
            weakref.finalize(self, workers.stop).atexit = False
            self._workers = os.getpid(), workers
        return self._workers[1]

    def _fail(self, offset: int) -> None:
        start = offset // _BLOCKS[-1] * _BLOCKS[-1]
        buffer = _aligned(_BLOCKS[-1])
        os.preadv(self._file, [memoryview(buffer.data)], start)  # raises the error of the system, if it has one
        raise ValueError(f"{self.path} ends before byte {offset}: it was cut off after it was opened")


class FileRows(RowsBase):
    """Rows of a dense column in a file. See ``open`` for its making.

    It follows the protocol ``Rows``, so it can be a column of a graph. ``fetch`` sorts the ids, reads neighbours
    together, and spreads the reads over threads. Processes may share it: it pickles as the path of the file.

    Attributes:
        path: of the file.
        shape, dtype: of the whole column.
        bytes_read: how many bytes the file gave so far, whole blocks of the disk where it is read past the page cache.

    >>> import tempfile
    >>> import numpy as np
    >>> from nodeflow import storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(folder + "/x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    ...     rows = storage.open(folder + "/x.npy")
    ...     print(rows.shape, rows.fetch(torch.tensor([2, 0])).tolist())
    (3, 2) [[4.0, 5.0], [0.0, 1.0]]
    """

    def __init__(self, reader: FileReader, start: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.shape, self.dtype, self.reader, self._start = shape, dtype, reader, start
        self._row = row_bytes(self)

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.reader.path

    @property
    def bytes_read(self) -> int:
        """How many bytes the file gave so far."""
        return self.reader.bytes_read

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        out = self._room(len(ids), out)
        if len(ids) and self._row:
            target = out.view(-1).view(torch.uint8).numpy()
            sizes = np.full(len(ids), self._row)
            self.reader.read(self._start + ids * self._row, sizes, np.arange(len(ids)) * self._row, target)
        return out

    def ranges(self, begin: Ints, sizes: Ints) -> Tensor:
        """Return the rows ``begin[i]`` to ``begin[i] + sizes[i] - 1`` for every i, one range after another."""
        some, ends = sizes > 0, np.cumsum(sizes)
        out = self._room(int(sizes.sum()), None)
        if some.any():
            target, to = out.view(-1).view(torch.uint8).numpy(), (ends - sizes)[some]
            self.reader.read(self._start + begin[some] * self._row, sizes[some] * self._row, to * self._row, target)
        return out

    def _details(self) -> str:
        return repr(str(self.path)) + (", past the page cache" if self.reader.direct else "")


Extent = tuple[int, tuple[int, ...], torch.dtype]
"""Where numbers begin in a file, their shape and their type."""


def npy_extent(path: Path) -> Extent:
    try:
        kind, shape, start = read_header(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged, was cut off or is no .npy file: {error}") from None
    if not kind.isnative:
        raise ValueError(f"{path} has numbers of another byte order ({kind}); convert it once")
    return start, shape, torch.from_numpy(np.empty(0, kind)).dtype


def raw_extent(path: Path, shape: tuple[int, ...], dtype: torch.dtype, start: int) -> Extent:
    check_type(dtype, "dtype", torch.dtype, "a torch.dtype")
    numpy_type(dtype)
    sizes = tuple(as_count(size, "shape") for size in shape)
    expected, size = start + math.prod(sizes) * dtype.itemsize, path.stat().st_size
    if size < expected:
        raise ValueError(f"{path} has {size} bytes, but {dtype} {list(sizes)} from byte {start} on takes {expected}")
    return start, sizes, dtype


def tensor_in(path: Path, header: dict[str, Any], begin: int, name: str) -> Extent:
    """Return where a tensor lies in a ``.safetensors`` file; raises ValueError where the file is damaged."""
    try:
        facts = header[name]
        kind, shape = _SAFETENSORS.get(facts["dtype"]), tuple(int(size) for size in facts["shape"])
        first, last = (int(place) for place in facts["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: its header does not describe the tensor {name!r} ({error!r})") from None
    if kind is None:
        raise ValueError(f"{path}: numbers of type {facts['dtype']} cannot be read")
    if last - first != math.prod(shape) * kind.itemsize or begin + last > path.stat().st_size or first < 0:
        raise ValueError(f"{path} was cut off or is damaged: it does not hold all of the tensor {name!r}")
    return begin + first, shape, kind


def safetensors_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a ``.safetensors`` file, and the byte where its numbers begin; raises ValueError."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > path.stat().st_size:
                raise ValueError("its header is longer than the file")
            header = json.loads(file.read(size))
            if not isinstance(header, dict):
                raise ValueError("its header is no table")
    except ValueError as error:
        raise ValueError(f"{path} is damaged, was cut off or is no .safetensors file: {error}") from None
    return header, 8 + size


def _aligned(size: int) -> Array:
    memory = np.empty(size + _BLOCKS[-1], np.uint8)
    begin = -memory.ctypes.data % _BLOCKS[-1]
    return memory[begin : begin + size]


def _block_of(file: int, path: Path) -> int:
    """Return the size of the blocks that a file opened with O_DIRECT is read in."""
    for block in _BLOCKS:
        try:
            os.preadv(file, [memoryview(_aligned(block).data)], 0)
        except OSError:
            continue
        return block
    raise OSError(f"{path} cannot be read past the page cache: open it with direct=False")


def _reopened(path: Path, direct: bool, threads: int) -> FileReader:
    return FileReader(path, direct=direct, threads=threads)
