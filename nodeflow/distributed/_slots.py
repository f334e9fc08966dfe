"""Nodes and edges of the parts in memory, in slots; the files of a folder of parts that they come
from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, blaming
from nodeflow._core.base.types import Array
from nodeflow._core.rows.csr import check_parts, csr_tensor
from nodeflow._core.rows.rows import Rows, as_array, concat_rows, from_numpy, slice_rows
from nodeflow._files.disk.arrays import ArrayFile, narrow_column, numpy_type, read_header
from nodeflow._files.disk.streams import ArrayWriter
from nodeflow.distributed._partitions import Partitions
from nodeflow.distributed._split import id_type, sums
from nodeflow.graph import Frame, Graph, GraphFrame, Schema, with_schema

NODES = "nodes"
"""The folder of the node columns."""


def node_file(column: str, part: int | str, generation: int) -> str:
    """Return the name of the file of a part of a node column. A part that is written anew gets a
    new name.

    Columns have numbers, in the order of ``Partitions.ndata``, because a name may be no name of a
    file, and some systems do not tell "X" from "x". Before those of a type is what ``columns_of``
    calls it.
    """
    return f"{NODES}/{column}.{part}.{generation}.npy"


def read_rows(path: Path, pieces: Iterable[tuple[int, Array]]) -> int:
    """Fill arrays with rows of a file, each from its first row on; return the number of bytes read.

    Raises ValueError for a file that is too short or has rows of another type, FileNotFoundError.
    """
    try:
        dtype, shape, start = read_header(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged or was cut off: {error}") from None
    bytes_read = 0
    with path.open("rb") as file:
        for first, out in pieces:
            if dtype != out.dtype or shape[1:] != out.shape[1:] or shape[0] < first + len(out):
                raise ValueError(
                    f"{path} holds {dtype} {list(shape)}, but {len(out)} rows of {out.dtype} "
                    f"{list(out.shape[1:])} from row {first} on are to be read"
                )
            data = memoryview(out.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
            file.seek(start + first * math.prod(shape[1:]) * dtype.itemsize)
            if file.readinto(data) < len(data):
                raise ValueError(f"{path} was cut off while it was read")
            bytes_read += len(data)
    return bytes_read


def read_sparse(folder: Path, array: ArrayFile) -> Tensor:
    """Return a sparse column read from its files into memory; raises as ``read_rows``, and for rows
    that are none.
    """
    parts = [torch.empty(plain.shape, dtype=plain.torch_type) for plain in array.plain]
    for part, plain in zip(parts, array.plain, strict=True):
        read_rows(folder / plain.file, [(0, as_array(part))])
    files = ", ".join(str(folder / plain.file) for plain in array.plain)
    with blaming(f"{files}: damaged sparse rows", ValueError, IndexError):
        check_parts(parts[0], parts[1], parts[2], array.shape)
    rows, width = array.shape
    return csr_tensor(parts[0], parts[1], parts[2], (rows, width))


_PIECE = 2**20  # bytes exchanged at a time


class NodeSlots:
    """Memory for the node columns of ``slots`` resident parts, and of ``spare`` parts that come or
    go.

    ``columns`` are the names of those to hold, ``writable`` of those that are written back. Places
    from ``slots`` on are the spare ones: parts are read into them, exchanged with those in slots,
    and written from them, into files of a new generation, which nobody else reads until they are
    committed. ``written`` are those of this epoch, by name.
    """

    def __init__(
        self,
        partitions: Partitions,
        columns: Sequence[str],
        writable: Collection[str],
        slots: int,
        spare: int,
    ) -> None:
        self._partitions = partitions
        self._slots = slots
        self.spare = spare
        self._columns = partitions.keys("nodes", columns)
        self._writable = partitions.keys("nodes", writable)
        self._arrays = {key: partitions.manifest.arrays[f"{key}/0"] for key in self._columns}
        of_types = list(partitions.part.nodes.values())
        # the rows of each type within a part
        self._types = dict.fromkeys(self._columns, of_types)
        for key, i in self._columns.items():
            if i >= 0:
                self._types[key] = [range(len(of_types[i]))]
        for key in self._writable:
            if (array := self._arrays[key]).csr or array.narrow:
                name = key.partition("/")[2]
                kind = "sparse; learned rows are dense" if array.csr else "narrow"
                raise TypeError(f"writable names column {name!r}, whose rows are {kind}")
        # places for dense rows; for sparse rows, whose size varies, empty places
        # Parts that come are read into spare places while the caller uses the slots.
        places = slots + spare
        self._memory: dict[str, Any] = {}
        for name, array in self._arrays.items():
            if array.csr is None:
                self._memory[name] = empty(array, places * array.shape[0])
            else:
                self._memory[name] = [None] * places
        self.written: dict[str, ArrayFile] = {}

    def begin_epoch(self, partitions: Partitions) -> None:
        """Forget the files of the last epoch; reads use those that the folder names."""
        self._partitions = partitions
        self.written = {}

    def read(self, part: int, place: int) -> int:
        """Read a part into a place; return the number of bytes."""
        folder = self._partitions.folder
        bytes_read = 0
        for name, memory in self._memory.items():
            key = f"{name}/{part}"
            array = self.written.get(key) or self._partitions.manifest.arrays[key]
            if array.csr is None:
                read_rows(folder / array.file, self._pieces(name, place))
            else:
                memory[place] = read_sparse(folder, array)
            bytes_read += array.nbytes
        return bytes_read

    def write(self, part: int, place: int) -> int:
        """Write the writable columns of the part at a place into files of this epoch; return their
        bytes.
        """
        folder = self._partitions.folder
        bytes_written = 0
        for name in self._writable:
            array = self._arrays[name]
            # a new name for every epoch: the file that the manifest names stays as it was until the
            # commit
            number = array.file.removeprefix(f"{NODES}/").partition(".")[0]
            path = folder / node_file(number, part, self._partitions.epoch + 1)
            writer = ArrayWriter(path, array.torch_type, array.shape[1:], array.shape[0])
            for _, rows in self._pieces(name, place):
                writer.append(rows)
                bytes_written += rows.nbytes
            self.written[f"{name}/{part}"] = writer.finish(folder, flush=False)
        return bytes_written

    def exchange(self, slot: int, place: int) -> None:
        """Put the rows at a spare place into a slot; the writable rows of the slot go to the spare
        place.
        """
        for name, memory in self._memory.items():
            if self._arrays[name].csr:
                memory[slot] = memory[place]
                memory[place] = None
                continue
            pairs = zip(self._pieces(name, slot), self._pieces(name, place), strict=True)
            for (_, inside), (_, outside) in pairs:
                if name not in self._writable:
                    inside[:] = outside
                    continue
                step = max(_PIECE // max(inside[:1].nbytes, 1), 1)
                # in pieces, so that no copy of a whole part is needed
                for first in range(0, len(inside), step):
                    piece = slice(first, first + step)
                    kept = inside[piece].copy()
                    inside[piece] = outside[piece]
                    outside[piece] = kept

    def fill(self, graph: Graph) -> None:
        """Set the columns of the graph of a state to new tensors that share the memory of the
        slots.

        They are read-only unless writable. Sparse columns are copies.
        """
        # number -1 is all nodes
        frames = [*(part.data for part in graph.nodes.values()), graph.ndata]
        for name, memory in self._memory.items():
            array = self._arrays[name]
            column: Tensor | Rows
            if array.csr:
                pieces = [
                    slice_rows(rows, ids.start, ids.stop)
                    for ids in self._types[name]
                    for rows in memory[: self._slots]
                ]
                column = concat_rows(pieces)
            else:
                view: Array = memory[: self._slots * array.shape[0]]
                view.flags.writeable = name in self._writable
                column = narrow_column(
                    self._partitions.folder, array, from_numpy(view, array.torch_type)
                )
            frames[self._columns[name]][name.partition("/")[2]] = cast(Tensor, column)

    def _pieces(self, name: str, place: int) -> Iterator[tuple[int, Array]]:
        """Yield the first row of each type in a part, and the memory of its rows at a place.

        In the slots the rows of a type follow each other slot after slot, as the ids of a state;
        spare places follow.
        """
        memory = self._memory[name]
        size = self._arrays[name].shape[0]
        slots = self._slots
        for ids in filter(len, self._types[name]):
            begin = place * size + ids.start
            if place < slots:
                begin = slots * ids.start + place * len(ids)
            yield ids.start, memory[begin : begin + len(ids)]


Bucket = dict[str, Array]
"""``src`` and ``dst`` of its edges, rows within their parts, and the columns by their names in the
manifest.
"""


class StateEdges(NamedTuple):
    """The graph of the edges of one state.

    The edges of group ``buckets[k]``, as ``GroupedEdges`` numbers buckets by relation, have the
    ids from ``begin[k]`` on.
    """

    graph: Graph
    buckets: Ints
    begin: Ints


def empty(array: ArrayFile, num_rows: int) -> Array:
    """Return memory for rows of an array, zeros, as numpy has its numbers."""
    return np.zeros((num_rows, *array.shape[1:]), numpy_type(array.torch_type))


class EdgeSlots:
    """Reads the buckets between resident parts; those of two parts that stay are kept."""

    def __init__(self, partitions: Partitions, columns: Sequence[str]) -> None:
        self._partitions = partitions
        self._columns = partitions.keys("edges", columns)
        keys = {"src": -1, "dst": -1, **self._columns}
        self._arrays: dict[str, tuple[int, ArrayFile]] = {
            key: (number, partitions.manifest.arrays[key]) for key, number in keys.items()
        }
        self._own_ptr = partitions.begin_in_relations()
        self._kept: dict[int, Bucket] = {}

    def load(self, resident: Sequence[int]) -> tuple[StateEdges, int]:
        """Read what is missing of the edges between parts in slots; return their graph and the
        bytes read.
        """
        kinds = len(self._partitions.schema.relations)
        # by slots: destination, source
        parts = np.array(resident)
        pairs = np.add.outer(parts * self._partitions.num_parts, parts).ravel()
        numbers = np.add.outer(np.arange(kinds), pairs * kinds).ravel()  # relation after relation
        # drop buckets no longer needed before reading others, to lower the peak of memory
        needed = set(numbers.tolist())
        self._kept = {group: bucket for group, bucket in self._kept.items() if group in needed}
        bytes_read = self._read(sorted(needed - self._kept.keys()))
        # relation after relation, as a schema has its edges, and within one by slots
        buckets = [self._kept[group] for group in numbers.tolist()]
        begin = sums(np.array([len(bucket["src"]) for bucket in buckets], np.int64))
        edata = self._columns_of(buckets, len(pairs))
        plain = self._placed(buckets, begin, len(resident), edata[-1])
        types = self._partitions.part.nodes.items()
        of_types = {name: len(resident) * len(ids) for name, ids in types}
        num_edges = np.diff(begin[:: len(pairs)]).tolist()
        relations = dict(zip(self._partitions.schema.relations, num_edges, strict=True))

        def frame(kind: str, number: int, num_rows: int) -> Frame:
            return GraphFrame(num_rows, edata[number] if kind == "edges" else None)

        graph = with_schema(plain, Schema(of_types, relations), frame)
        return StateEdges(graph, buckets=numbers, begin=begin), bytes_read

    def _placed(
        self, buckets: Sequence[Bucket], begin: Ints, num_slots: int, edata: Mapping[str, Tensor]
    ) -> Graph:
        """Return the graph of the edges of buckets, by local ids, without types."""
        bounds = self._partitions.part.bounds()
        slots = range(num_slots)
        # Where row 0 of the part in each slot would be among the ids of a state, if all rows of the
        # part were of one type: rows of that type then lie where they do.
        sizes = np.diff(bounds)[:, None]
        zero = ((num_slots - 1) * bounds[:-1, None] + sizes * np.array(slots)).tolist()
        ends = self._partitions.schema.ends().tolist()
        starts = [(zero[b][dst], zero[a][src]) for a, b in ends for dst in slots for src in slots]
        indptr = np.zeros(num_slots * self._partitions.size + 1, np.int64)
        # a counting sort by destination: count, sum up, then place each edge at the head of its row
        for bucket, (dst_start, _) in zip(buckets, starts, strict=True):
            kernels.buckets.count_bucket(bucket["dst"], dst_start, indptr)
        np.cumsum(indptr, out=indptr)
        num_edges = int(begin[-1])
        type_of_nodes = id_type(len(indptr))
        indices = np.empty(num_edges, numpy_type(type_of_nodes))
        edge_ids = np.empty(num_edges, numpy_type(id_type(num_edges)))
        # edges of a destination come bucket after bucket, relation after relation, as in the whole
        # graph
        head = indptr[:-1].copy()
        for k, (dst_start, src_start) in enumerate(starts):
            src = buckets[k]["src"]
            dst = buckets[k]["dst"]
            first = int(begin[k])
            kernels.buckets.place_bucket(
                src, dst, src_start, dst_start, first, head, indices, edge_ids
            )
        return Graph(indptr, indices, edge_ids=edge_ids, edata=edata, copy=False)

    def _columns_of(self, buckets: Sequence[Bucket], num_pairs: int) -> list[dict[str, Tensor]]:
        """Return the columns of the edges of each relation, and last those of all edges."""
        edata: list[dict[str, Tensor]] = [{} for _ in range(len(buckets) // num_pairs + 1)]
        for key, number in self._columns.items():
            array = self._arrays[key][1]
            # the buckets of a relation follow each other
            some = buckets if number < 0 else buckets[num_pairs * number :][:num_pairs]
            rows = np.concatenate([empty(array, 0), *(bucket[key] for bucket in some)])
            edata[number][key.partition("/")[2]] = from_numpy(rows, array.torch_type)
        return edata

    def _read(self, groups: list[int]) -> int:
        """Read buckets of relations, ascending; return the number of bytes."""
        kinds = len(self._partitions.schema.relations)
        for group in groups:
            self._kept[group] = {}
        bytes_read = 0
        # file by file, each in order: a disk reads large files best so
        for key, (number, array) in self._arrays.items():
            pieces = []
            for group in groups:
                pair, kind = divmod(group, kinds)
                # of all edges a file has a bucket relation after relation, else those of one relation
                if number < 0:
                    first, last = self._partitions.bucket_ptr[group : group + 2].tolist()
                elif number == kind:
                    first, last = self._own_ptr[pair : pair + 2, kind].tolist()
                else:
                    continue
                rows = empty(array, last - first)
                self._kept[group][key] = rows
                pieces.append((first, rows))
            bytes_read += read_rows(self._partitions.folder / array.file, pieces)
        for group in groups:
            self._check(self._kept[group], group)
        return bytes_read

    def _check(self, bucket: Bucket, group: int) -> None:
        """Raise ValueError for ends out of range: the compiled loops that place edges do not check
        them.
        """
        parts = self._partitions
        relation = list(parts.schema.relations)[group % len(parts.schema.relations)]
        for end, node_type in (("src", relation[0]), ("dst", relation[2])):
            ids = parts.part.ids(node_type)
            # a negative number is a large one
            # one comparison finds both too small and too large rows
            rows = (bucket[end] - np.int32(ids.start)).view(np.uint32)
            if len(rows) and rows.max() >= len(ids):
                row = int(rows.argmax())
                path = parts.folder / self._arrays[end][1].file
                raise ValueError(
                    f"{path} is damaged: edge {parts.bucket_ptr[group] + row} ends at row "
                    f"{bucket[end][row]} of a part that has {ids.stop}"
                )
