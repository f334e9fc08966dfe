"""Rows in a file, read in sorted order by several threads, through the page cache or past it."""

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
from nodeflow._base.checks import as_count, as_ids, check_type, describe
from nodeflow._base.types import Array, FileLike
from nodeflow._disk.arrays import numpy_type, read_header
from nodeflow._rows.rows import Rows, as_array, new_rows
from nodeflow._runtime.mapped import find_map, part_of_file
from nodeflow._runtime.workers import Workers

_BLOCKS = 512, 4096  # bytes of which reads past the page cache must be multiples, by device
_SCRATCH = 2**20  # bytes of the largest single read
_SHARE = 16  # pieces that are worth a thread
_SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


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


class ReadRows:
    """Base of rows that a ``FileReader`` reads. Those who inherit set ``shape``."""

    shape: tuple[int, ...]

    def __init__(self, reader: FileReader) -> None:
        self._reader = reader

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self._reader.path

    @property
    def bytes_read(self) -> int:
        """How many bytes the file gave so far."""
        return self._reader.bytes_read

    def __len__(self) -> int:
        return self.shape[0]


class FileRows(ReadRows):
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
        super().__init__(reader)
        self.shape, self.dtype, self._start = shape, dtype, start
        self._row = math.prod(shape[1:]) * dtype.itemsize

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as a tensor ``[k, ...]``; with ``out`` they are written there.

        Raises IndexError for an id that is no row, TypeError or ValueError for an ``out`` of another type or shape,
        OSError where the file cannot be read, ValueError where it has been cut off.
        """
        wanted = as_ids(ids, "ids", self.shape[0], "row")
        out = room_for(len(wanted), self, out)
        if len(wanted) and self._row:
            target = out.view(-1).view(torch.uint8).numpy()
            sizes = np.full(len(wanted), self._row)
            self._reader.read(self._start + wanted * self._row, sizes, np.arange(len(wanted)) * self._row, target)
        return out

    def __repr__(self) -> str:
        how = ", past the page cache" if self._reader.direct else ""
        return f"FileRows({str(self.path)!r}, {self.dtype} {list(self.shape)}{how})"


def opened(column: Tensor, *, direct: bool = False, threads: int = 8) -> FileRows | None:
    """Return the rows of a dense tensor that maps a file read-only, None for a tensor in memory."""
    mapped = find_map(column.untyped_storage().data_ptr()) if column.layout == torch.strided else None
    part = part_of_file(as_array(column), mapped) if mapped is not None and column.is_contiguous() else None
    if part is None:
        return None
    reader = FileReader(Path(part.file), direct=direct, threads=threads)
    return FileRows(reader, part.offset, tuple(column.shape), column.dtype)


def open(
    path: FileLike | Tensor,
    name: str | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: torch.dtype | None = None,
    offset: int = 0,
    direct: bool = False,
    threads: int = 8,
) -> FileRows:
    """Open a dense column in a file: rows are read when they are fetched, and only those.

    Args:
        path: a ``.npy`` file; a ``.safetensors`` file; with ``shape`` and ``dtype``, any file of raw numbers; or a
            tensor that maps a file, such as a column of a graph that ``Graph.open`` gave.
        name: the tensor of a ``.safetensors`` file; None takes the only one.
        shape, dtype: of raw numbers, row by row, in the byte order of the machine.
        offset: the byte where raw numbers begin.
        direct: read past the page cache of the operating system, so that a measurement is of the disk, and other files
            stay in the cache. Reads are whole blocks of 512 or 4,096 bytes then, so that small rows cost more.
        threads: how many read at a time. A disk answers several requests at once; a hard disk with one head gains
            nothing.

    Raises FileNotFoundError and OSError where the file cannot be opened, ValueError for a file that is damaged or cut
    off, that holds no such tensor, or whose numbers do not fit ``shape`` and ``dtype``, and for a tensor in memory.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/feat.npy", np.arange(8.0).reshape(4, 2))
    ...     rows = open(f"{folder}/feat.npy")
    ...     rows.fetch(torch.tensor([2, 0]))
    tensor([[4., 5.],
            [0., 1.]], dtype=torch.float64)
    """
    if isinstance(path, Tensor):
        if name is not None or shape is not None or dtype is not None or offset:
            raise TypeError("name, shape, dtype and offset are those of a file: leave them out for a tensor")
        rows = opened(path, direct=bool(direct), threads=as_count(threads, "threads", 1))
        if rows is None:
            raise ValueError(f"path is a tensor in memory, {describe(path)}: only one that maps a file can be opened")
        return rows
    place = Path(path).absolute()
    if (shape is None) != (dtype is None):
        raise TypeError("shape and dtype belong together: pass both for raw numbers, or neither")
    as_count(threads, "threads", 1)
    if shape is not None and dtype is not None:
        found = _raw(place, shape, dtype, as_count(offset, "offset"))
    elif place.suffix == ".safetensors":
        found = _safetensors(place, name)
    elif place.suffix == ".npy":
        found = _npy(place)
    else:
        raise ValueError(f"{place.name} must end in .npy or .safetensors; for raw numbers pass shape and dtype")
    start, size, kind = found
    if not size:
        raise ValueError(f"{place} holds a single number, not rows")
    return FileRows(FileReader(place, direct=bool(direct), threads=threads), start, size, kind)


def room_for(count: int, rows: Rows, out: Tensor | None) -> Tensor:
    """Return a tensor that takes ``count`` rows: ``out``, if it can, else a new one, in memory that is used again.

    Raises TypeError or ValueError for an ``out`` that cannot take rows of that shape and type.
    """
    shape, dtype = (count, *rows.shape[1:]), rows.dtype
    if out is None:
        return new_rows(count, shape[1:], dtype)
    check_type(out, "out", Tensor, "a tensor")
    if out.shape != shape or out.dtype != dtype or not out.is_contiguous() or out.device.type != "cpu":
        raise ValueError(f"out must be a contiguous CPU tensor {dtype} {list(shape)}, got {describe(out)}")
    return out


Found = tuple[int, tuple[int, ...], torch.dtype]
"""Where numbers begin in a file, their shape and their type."""


def _npy(path: Path) -> Found:
    try:
        kind, shape, start = read_header(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged, was cut off or is no .npy file: {error}") from None
    if not kind.isnative:
        raise ValueError(f"{path} has numbers of another byte order ({kind}); convert it once")
    return start, shape, torch.from_numpy(np.empty(0, kind)).dtype


def _raw(path: Path, shape: tuple[int, ...], dtype: torch.dtype, start: int) -> Found:
    check_type(dtype, "dtype", torch.dtype, "a torch.dtype")
    numpy_type(dtype)
    sizes = tuple(as_count(size, "shape") for size in shape)
    expected, size = start + math.prod(sizes) * dtype.itemsize, path.stat().st_size
    if size < expected:
        raise ValueError(f"{path} has {size} bytes, but {dtype} {list(sizes)} from byte {start} on takes {expected}")
    return start, sizes, dtype


def _safetensors(path: Path, name: str | None) -> Found:
    header, begin = safetensors_header(path)
    names = [key for key in header if key != "__metadata__"]
    if name is None and len(names) != 1:
        raise ValueError(f"{path} holds {len(names)} tensors: pass name=, one of {', '.join(names)}")
    chosen = names[0] if name is None else name
    if chosen not in names:
        raise ValueError(f"{path} has no tensor {chosen!r}; it has {', '.join(names) or 'none'}")
    return tensor_in(path, header, begin, chosen)


def tensor_in(path: Path, header: dict[str, Any], begin: int, name: str) -> Found:
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
