"""Nodes and edges of the parts in memory, in slots; the files of a folder of parts that they come from."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, map_csr, numpy_type, read_header
from nodeflow._disk.streams import ArrayWriter
from nodeflow._rows.csr import check_parts
from nodeflow._rows.rows import as_array, concat_rows, from_numpy
from nodeflow.graph import Graph
from nodeflow.partitions._partitions import Partitions
from nodeflow.partitions._split import id_type, sums

NODES = "nodes"
"""The folder of the node columns."""


def node_file(column: int, part: int, generation: int) -> str:
    """Return the name of the file of a part of a node column. A part that is written anew gets a new name.

    Columns have numbers, in the order of ``Partitions.ndata``, because a name may be no name of a file, and some
    systems do not tell "X" from "x".
    """
    return f"{NODES}/{column}.{part}.{generation}.npy"


def read_rows(path: Path, out: Array, first: int = 0, *, page_cache: bool = True) -> int:
    """Fill ``out`` with the rows of a file from row ``first`` on; return the number of bytes read.

    Without ``page_cache`` the system forgets the file before and after, so that it is the disk that is read. Raises
    ValueError for a file that is too short or has rows of another type, FileNotFoundError.
    """
    try:
        dtype, shape, start = read_header(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: the folder is not whole, or was replaced while it was read"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged or was cut off: {error}") from None
    if dtype != out.dtype or shape[1:] != out.shape[1:] or shape[0] < first + len(out):
        raise ValueError(
            f"{path} holds {dtype} {list(shape)}, but {len(out)} rows of {out.dtype} {list(out.shape[1:])} from row "
            f"{first} on are to be read"
        )
    data = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
    with path.open("rb") as file:
        _forget(file.fileno(), page_cache)
        file.seek(start + first * math.prod(shape[1:]) * dtype.itemsize)
        if file.readinto(data) < len(data):
            raise ValueError(f"{path} was cut off while it was read")
        _forget(file.fileno(), page_cache)
    return len(data)


def read_sparse(folder: Path, array: ArrayFile, *, page_cache: bool = True) -> Tensor:
    """Return a sparse column read from its files into memory; raises as ``read_rows``, and for rows that are none."""
    parts = [torch.empty(plain.shape, dtype=plain.torch_type) for plain in array.plain]
    for part, plain in zip(parts, array.plain, strict=True):
        read_rows(folder / plain.file, as_array(part), page_cache=page_cache)
    try:
        check_parts(parts[0], parts[1], parts[2], array.shape)
    except (ValueError, IndexError) as error:
        files = ", ".join(str(folder / plain.file) for plain in array.plain)
        raise ValueError(f"{files}: damaged sparse rows: {error}") from None
    return map_csr(folder, array, *parts)


def _forget(descriptor: int, page_cache: bool) -> None:
    if not page_cache and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


_PIECE = 2**20  # bytes exchanged at a time


class NodeSlots:
    """Memory for the node columns of ``slots`` resident parts, and of ``spare`` parts that come or go.

    ``columns`` are the names of those to hold, ``writable`` of those that are written back. Places from ``slots`` on
    are the spare ones: parts are read into them, exchanged with those in slots, and written from them, into files of a
    new generation, which nobody else reads until they are committed. ``written`` are those of this epoch, by name.
    """

    def __init__(
        self,
        partitions: Partitions,
        columns: Sequence[str],
        writable: Collection[str],
        slots: int,
        spare: int,
        *,
        page_cache: bool,
    ) -> None:
        self._partitions, self._page_cache, self._slots, self.spare = partitions, page_cache, slots, spare
        self._writable = [name for name in columns if name in writable]
        self._arrays = {name: partitions.node_array(name, 0) for name in columns}
        for name in self._writable:
            if self._arrays[name].csr is not None:
                raise TypeError(f"writable names column {name!r}, whose rows are sparse; learned rows are dense")
        # places for dense rows; for sparse rows, whose size varies, empty places
        self._memory: dict[str, Any] = {
            name: np.zeros((slots + spare, *array.shape), numpy_type(array.torch_type))
            if array.csr is None
            else [None] * (slots + spare)
            for name, array in self._arrays.items()
        }
        self.written: dict[str, ArrayFile] = {}

    def begin_epoch(self, partitions: Partitions) -> None:
        """Forget the files of the last epoch; reads use those that the folder names."""
        self._partitions, self.written = partitions, {}

    def read(self, part: int, place: int) -> int:
        """Read a part into a place; return the number of bytes."""
        folder, bytes_read = self._partitions.folder, 0
        for name, memory in self._memory.items():
            key = f"ndata/{name}/{part}"
            array = self.written.get(key) or self._partitions.node_array(name, part)
            if array.csr is None:
                read_rows(folder / array.file, memory[place], page_cache=self._page_cache)
            else:
                memory[place] = read_sparse(folder, array, page_cache=self._page_cache)
            bytes_read += array.nbytes
        return bytes_read

    def write(self, part: int, place: int) -> int:
        """Write the writable columns of the part at a place into files of this epoch; return their bytes."""
        folder, bytes_written = self._partitions.folder, 0
        for name in self._writable:
            rows = self._memory[name][place]
            number = self._partitions.ndata.index(name)
            path = folder / node_file(number, part, self._partitions.epoch + 1)
            try:
                writer = ArrayWriter(path, self._arrays[name].torch_type, rows.shape[1:], len(rows))
                writer.append(rows)
                self.written[f"ndata/{name}/{part}"] = writer.finish(folder, flush=not self._page_cache)
            except OSError as error:
                why = f"{error.strerror}: part {part} of column {name!r}; the epoch is not committed"
                why += f", the folder stays as after epoch {self._partitions.epoch}"
                raise OSError(error.errno, why, str(path)) from error
            bytes_written += rows.nbytes
        return bytes_written

    def exchange(self, slot: int, place: int) -> None:
        """Put the rows at a spare place into a slot; the writable rows of the slot go to the spare place."""
        for name, memory in self._memory.items():
            inside, outside = memory[slot], memory[place]
            if self._arrays[name].csr:
                memory[slot], memory[place] = outside, None
            elif name not in self._writable:
                inside[:] = outside
            else:  # in pieces, so that no copy of a whole part is needed
                step = max(_PIECE // max(inside[:1].nbytes, 1), 1)
                for first in range(0, len(inside), step):
                    piece = slice(first, first + step)
                    kept = inside[piece].copy()
                    inside[piece] = outside[piece]
                    outside[piece] = kept

    def columns(self) -> dict[str, Tensor]:
        """Return new tensors ``[slots * size, ...]`` that share the memory of the slots; read-only unless writable.

        Sparse columns are copies.
        """
        columns = {}
        for name, memory in self._memory.items():
            if self._arrays[name].csr:
                columns[name] = concat_rows(memory[: self._slots])
            else:
                view: Array = memory[: self._slots].reshape(-1, *memory.shape[2:])
                view.flags.writeable = name in self._writable
                columns[name] = from_numpy(view, self._arrays[name].torch_type)
        return columns


Bucket = dict[str, Array]
"""``src`` and ``dst`` of its edges, rows within their parts, and the columns by their names in the manifest."""


class StateEdges(NamedTuple):
    """The graph of the edges of one state.

    The edges of bucket ``buckets[k]``, as ``EdgeGroups.of`` numbers them, have the ids from ``begin[k]`` on.
    """

    graph: Graph
    buckets: Ints
    begin: Ints


class EdgeSlots:
    """Reads the buckets between resident parts; those of two parts that stay are kept."""

    def __init__(self, partitions: Partitions, columns: Sequence[str], *, page_cache: bool) -> None:
        self._partitions, self._page_cache = partitions, page_cache
        arrays = {name: partitions.manifest.arrays[name] for name in ("src", "dst")}
        self._columns = {f"edata/{name}": name for name in columns}
        self._arrays: dict[str, ArrayFile] = arrays | {f"edata/{name}": partitions.edge_array(name) for name in columns}
        self._kept: dict[int, Bucket] = {}

    def load(self, held: Sequence[int]) -> tuple[StateEdges, int]:
        """Read what is missing of the edges between parts in slots; return their graph and the bytes read."""
        parts = self._partitions
        count, size = parts.num_parts, parts.size
        numbers = np.add.outer(np.array(held) * count, np.array(held)).ravel()  # by slots: destination, source
        kept = {bucket: self._kept[bucket] for bucket in numbers.tolist() if bucket in self._kept}
        self._kept = kept  # drop buckets no longer needed before reading others, to lower the peak of memory
        bytes_read = self._read(sorted(set(numbers.tolist()) - kept.keys()))
        buckets = [self._kept[bucket] for bucket in numbers.tolist()]
        begin = sums(np.array([len(bucket["src"]) for bucket in buckets]))
        indptr = np.zeros(len(held) * size + 1, np.int64)
        starts = [(dst * size, src * size) for dst in range(len(held)) for src in range(len(held))]
        # a counting sort by destination: count, sum up, then place each edge at the head of its row
        for bucket, (dst_start, _) in zip(buckets, starts, strict=True):
            kernels.buckets.count_bucket(bucket["dst"], dst_start, indptr)
        np.cumsum(indptr, out=indptr)
        indices = np.empty(begin[-1], numpy_type(id_type(len(indptr))))
        edge_ids = np.empty(begin[-1], numpy_type(id_type(begin[-1])))
        head = indptr[:-1].copy()
        for bucket, (dst_start, src_start), first in zip(buckets, starts, begin[:-1].tolist(), strict=True):
            ends = bucket["src"], bucket["dst"], src_start, dst_start
            kernels.buckets.place_bucket(*ends, first, head, indices, edge_ids)
        edata = {
            name: from_numpy(np.concatenate([bucket[key] for bucket in buckets]), self._arrays[key].torch_type)
            for key, name in self._columns.items()
        }
        graph = Graph(indptr, indices, edge_ids=edge_ids, edata=edata, copy=False)
        return StateEdges(graph, numbers, begin), bytes_read

    def _read(self, missing: list[int]) -> int:
        """Read buckets, adjacent ones in one read; return the number of bytes."""
        ptr, bytes_read = self._partitions.bucket_ptr, 0
        # number minus index is constant along a run of consecutive buckets, so a run is one read
        for _, run in groupby(enumerate(missing), lambda pair: pair[1] - pair[0]):
            buckets = [bucket for _, bucket in run]
            first, last = int(ptr[buckets[0]]), int(ptr[buckets[-1] + 1])
            whole: Bucket = {}
            for key, array in self._arrays.items():
                whole[key] = np.empty((last - first, *array.shape[1:]), numpy_type(array.torch_type))
                path = self._partitions.folder / array.file
                bytes_read += read_rows(path, whole[key], first, page_cache=self._page_cache)
            self._check(whole, first)
            for bucket in buckets:
                part = slice(int(ptr[bucket]) - first, int(ptr[bucket + 1]) - first)
                # copies, so that a bucket that is dropped leaves no memory behind that others share
                self._kept[bucket] = {key: array[part].copy() for key, array in whole.items()}
        return bytes_read

    def _check(self, whole: Bucket, first: int) -> None:
        """Raise ValueError for ends out of range: the compiled loops that place edges do not check them."""
        for end in ("src", "dst"):
            rows = whole[end].view(np.uint32)  # a negative number is a large one
            if rows.max(initial=0) >= self._partitions.size and self._partitions.size:
                at = int(rows.argmax())
                path = self._partitions.folder / self._arrays[end].file
                raise ValueError(
                    f"{path} is damaged: edge {first + at} ends at row {whole[end][at]} of a part that has "
                    f"{self._partitions.size}"
                )
