"""Columns written piece by piece into ``.npy`` files, of any size, with little memory."""

from __future__ import annotations

import math
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.types import Array
from nodeflow._core.rows.base import stored
from nodeflow._core.rows.narrow import NarrowRows
from nodeflow._core.rows.rows import (
    Rows,
    as_array,
    fetch_rows,
    from_numpy,
    is_sparse,
    row_bytes,
    slice_rows,
)
from nodeflow._files.disk.arrays import ArrayFile, checksum, naming, numpy_type, write_header

_PIECE = 2**20  # numbers that are converted at a time
_BYTES = 2**24  # bytes that are written at a time


class ArrayWriter:
    """A ``.npy`` file that grows by rows of the shape ``row``.

    Where ``num_rows`` is known before, rows that were not appended at the end are zeros, and the
    checksum is computed as rows come, else by reading the file. Raises OSError, with the file,
    where the disk is full.
    """

    def __init__(
        self, file: Path, dtype: torch.dtype, row: tuple[int, ...] = (), num_rows: int | None = None
    ) -> None:
        self.file = file
        self.dtype = dtype
        self.row = row
        self.num_rows = 0
        self._total = num_rows
        file.parent.mkdir(parents=True, exist_ok=True)
        with naming(file), file.open("wb") as opened:
            write_header(opened, numpy_type(dtype), (num_rows or 0, *row))
            self._start = opened.tell()
        self._checksum = checksum(file)

    def append(self, rows: Tensor | Array) -> None:
        """Append rows ``[k, *row]`` of the type of the file."""
        if isinstance(rows, Tensor):
            numbers = rows.detach().cpu()
            plain = numbers.resolve_conj().resolve_neg()
            rows = as_array(plain.contiguous())
        self.num_rows += len(rows)
        # opened for each piece: a graph in many parts has more files than a process may hold open
        data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        with naming(self.file), self.file.open("ab") as opened:
            for first in range(0, len(data), _BYTES):
                piece = data[first : first + _BYTES]
                self._checksum = zlib.crc32(piece, self._checksum)
                opened.write(piece)

    def convert(self, dtype: torch.dtype) -> None:
        """Change the type of the numbers, those written before too, to one of the same width."""
        before = numpy_type(self.dtype)
        after = numpy_type(dtype)
        size = self.num_rows * math.prod(self.row)
        with naming(self.file), self.file.open("rb+") as opened:
            # In place, number by number of one width: the file keeps its size, and memory a
            # piece.
            for start in range(0, size, _PIECE):
                offset = self._start + start * before.itemsize
                count = min(_PIECE, size - start)
                opened.seek(offset)
                piece = np.frombuffer(opened.read(count * before.itemsize), before)
                opened.seek(offset)
                opened.write(piece.astype(after).tobytes())
        self.dtype = dtype

    def finish(self, folder: Path | None = None, *, flush: bool = True) -> ArrayFile:
        """Complete the file, flush it to the disk, and return its description as a file of
        ``folder``.

        A file whose number of rows was not known before is named by its contents,
        ``name-checksum.npy``, so that a name that someone has kept never leads to other contents.
        ``folder`` is by default the one where the file lies.
        """
        # Rows that nobody appended are zeros, as in a file that was made whole.
        if self._total is not None:
            self.append(np.zeros((self._total - self.num_rows, *self.row), numpy_type(self.dtype)))
        with naming(self.file), self.file.open("rb+") as opened:
            if self._total is None:
                # of one length for any shape
                write_header(opened, numpy_type(self.dtype), (self.num_rows, *self.row))
                opened.flush()
            if flush:
                os.fsync(opened.fileno())
        if self._total is None:
            self._checksum = checksum(self.file)
            self.file = self.file.replace(
                self.file.with_name(f"{self.file.stem}-{self._checksum:08x}.npy")
            )
        name = self.file.relative_to(folder or self.file.parent).as_posix()
        kind = str(self.dtype).removeprefix("torch.")
        return ArrayFile(name, kind, (self.num_rows, *self.row), self._checksum)


class SparseWriter:
    """Three ``.npy`` files that grow by sparse rows ``[k, width]``, with the methods of
    ``ArrayWriter``.
    """

    def __init__(
        self, file: Path, dtype: torch.dtype, width: int, num_rows: int | None = None
    ) -> None:
        self.width = width
        self.num_rows = 0
        self._total = num_rows

        def writer(part: str, kind: torch.dtype) -> ArrayWriter:
            return ArrayWriter(file.with_name(f"{file.stem}.{part}.npy"), kind)

        self._indptr = writer("indptr", torch.int64)
        self._indices = writer("indices", torch.int64)
        self._values = writer("values", dtype)
        self._indptr.append(np.zeros(1, np.int64))

    def append(self, rows: Tensor) -> None:
        ends = rows.crow_indices()[1:].cpu().long()
        # Rows of each piece count their entries from 0, those of the file from its beginning.
        self._indptr.append(ends + self._values.num_rows)
        self._indices.append(rows.col_indices().long())
        self._values.append(rows.values())
        self.num_rows += len(rows)

    def finish(self, folder: Path | None = None, *, flush: bool = True) -> ArrayFile:
        if self._total is not None:
            self._indptr.append(np.full(self._total - self.num_rows, self._values.num_rows))
            self.num_rows = self._total
        indptr = self._indptr.finish(folder, flush=flush)
        indices = self._indices.finish(folder, flush=flush)
        values = self._values.finish(folder, flush=flush)
        return replace(values, shape=(self.num_rows, self.width), csr=(indptr, indices))


class NarrowWriter(ArrayWriter):
    """Writes the codes of narrow rows into a ``.npy`` file, as they come, and the table of columns
    into another.
    """

    def __init__(self, file: Path, like: NarrowRows, num_rows: int | None = None) -> None:
        super().__init__(file, like.stored.dtype, tuple(like.stored.shape[1:]), num_rows)
        self._coding = like.coding
        self._columns = file.with_name(f"{file.stem}.columns.npy")

    def finish(self, folder: Path | None = None, *, flush: bool = True) -> ArrayFile:
        columns = ArrayWriter(self._columns, torch.float32, tuple(self._coding.table.shape[1:]))
        columns.append(self._coding.table)
        narrow = columns.finish(folder, flush=flush), self._coding.row
        return replace(super().finish(folder, flush=flush), narrow=narrow)


def column_writer(
    file: Path, like: Tensor | Rows, num_rows: int | None = None
) -> ArrayWriter | SparseWriter:
    """Return a writer of the stored rows of a column, dense, sparse or narrow."""
    if isinstance(like, NarrowRows):
        return NarrowWriter(file, like, num_rows)
    if is_sparse(like):
        return SparseWriter(file, like.dtype, like.shape[1], num_rows)
    return ArrayWriter(file, like.dtype, tuple(like.shape[1:]), num_rows)


def stream_column(file: Path, column: Tensor | Rows) -> ArrayFile:
    """Write a column, which may be mapped, on any device, have gaps, be sparse or fetched by id,
    piece by piece.
    """
    writer = column_writer(file, column)
    column = stored(column)
    for start, stop in pieces_of(column):
        if isinstance(column, Tensor):
            rows = slice_rows(column, start, stop)
        else:
            rows = fetch_rows(column, torch.arange(start, stop))
        writer.append(rows)
    return writer.finish()


def stream_array(folder: Path, name: str, values: Tensor | Array) -> ArrayFile:
    """Write an array or a tensor into the file ``name`` of a folder, as ``stream_column``."""
    column = values if isinstance(values, Tensor) else from_numpy(np.ascontiguousarray(values))
    return stream_column(folder / f"{name}.npy", column)


def pieces_of(column: Tensor | Rows, size: int = _BYTES) -> list[tuple[int, int]]:
    """Return ranges of the rows of a column, about ``size`` bytes each; sparse rows are taken to be
    mostly zeros.
    """
    bytes_of_row = 512 if is_sparse(column) else row_bytes(column)
    step = max(1, size // max(bytes_of_row, 1))
    num_rows = column.shape[0]
    return [(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]
