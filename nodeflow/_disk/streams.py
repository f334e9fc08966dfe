"""Arrays written piece by piece into ``.npy`` files, of any size, with little memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, checksum, numpy_type, write_header
from nodeflow._rows.rows import as_array

_PIECE = 2**20  # numbers that are converted at a time


class ArrayWriter:
    """A ``.npy`` file that grows by rows. Its number of rows need not be known before.

    Args:
        folder: where the file lies.
        name: its name, without ``.npy``.
        dtype: type of the numbers.
        row: shape of a row.

    A context manager, which closes the file. Raises OSError where the disk cannot hold what is written.
    """

    def __init__(self, folder: Path, name: str, dtype: torch.dtype, row: tuple[int, ...] = ()) -> None:
        self.folder, self.name, self.dtype, self.row, self.num_rows = folder, name, dtype, row, 0
        self._file = (folder / f"{name}.npy").open("wb+")
        self._write_header()

    def append(self, rows: Tensor | Array) -> None:
        """Append rows ``[k, *row]`` of the type of the file."""
        if isinstance(rows, Tensor):
            rows = as_array(rows.detach().cpu().resolve_conj().resolve_neg().contiguous())
        self._file.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        self.num_rows += len(rows)

    def convert(self, dtype: torch.dtype) -> None:
        """Change the type of the numbers, those written before too, to one of the same width."""
        before, after = numpy_type(self.dtype), numpy_type(dtype)
        size = self.num_rows * int(np.prod(self.row, dtype=np.int64))
        for start in range(0, size, _PIECE):
            at = self._start + start * before.itemsize
            self._file.seek(at)
            piece = np.frombuffer(self._file.read(min(_PIECE, size - start) * before.itemsize), before)
            self._file.seek(at)
            self._file.write(piece.astype(after).tobytes())
        self._file.seek(0, os.SEEK_END)
        self.dtype = dtype

    def finish(self) -> ArrayFile:
        """Complete the file, flush it to the disk, and name it by its contents: ``name-checksum.npy``.

        So a name that someone has kept never leads to other contents.
        """
        self._write_header()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        draft = self.folder / f"{self.name}.npy"
        value = checksum(draft)
        named = f"{self.name}-{value:08x}.npy"
        draft.replace(self.folder / named)
        return ArrayFile(named, str(self.dtype).removeprefix("torch."), (self.num_rows, *self.row), value)

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _write_header(self) -> None:
        self._file.seek(0)
        shape = (self.num_rows, *self.row)
        write_header(self._file, numpy_type(self.dtype), shape)  # of one length, whatever the shape
        self._start = self._file.tell()


def stream_array(folder: Path, name: str, values: Tensor | Array) -> ArrayFile:
    """Write a dense tensor or array, which may be mapped, on any device or have gaps, piece by piece."""
    dtype = values.dtype if isinstance(values, Tensor) else torch.from_numpy(np.empty(0, values.dtype)).dtype
    with ArrayWriter(folder, name, dtype, tuple(values.shape[1:])) as writer:
        for start, stop in pieces_of(tuple(values.shape), dtype):
            writer.append(values[start:stop])
        return writer.finish()


def pieces_of(shape: tuple[int, ...], dtype: torch.dtype, size: int = 2**24) -> list[tuple[int, int]]:
    """Return ranges of the rows of an array, about ``size`` bytes each."""
    row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    step = max(1, size // max(row, 1))
    return [(start, min(start + step, shape[0])) for start in range(0, shape[0], step)]
