"""Columns and edges of a graph, read in order in pieces and split over the files of its parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, check_num_rows, check_type, describe
from nodeflow._core.base.types import Array
from nodeflow._core.rows.base import like, stored
from nodeflow._core.rows.rows import (
    Rows,
    as_array,
    fetch_rows,
    is_sparse,
    row_bytes,
    slice_rows,
    take_rows,
    zero_rows,
)
from nodeflow._files.disk.arrays import ArrayFile, checksum, create_array, numpy_type
from nodeflow._files.disk.streams import ArrayWriter, column_writer
from nodeflow.distributed._cut import Masters
from nodeflow.distributed._partitions import chosen_columns
from nodeflow.graph import Graph, own_parts

Column = Tensor | Rows
NewColumn = Column | Callable[[Tensor], Tensor]
_BYTES = 2**23  # bytes of the rows of a piece, about


class SplitColumn:
    """A column of the type of ``like`` whose rows are appended to a file per part; sparse rows lie
    in three, beside it.

    ``file`` is the name of a file in the folder of its part, with "{part}" for the number.
    ``sizes`` are the rows of each part, fixed in advance; those that are never appended are zeros.
    """

    def __init__(
        self, folders: Sequence[Path], file: str, like: Tensor | Rows, sizes: Ints
    ) -> None:
        self._folders = folders
        self._writers = [
            column_writer(folder / file.format(part=p), like, int(sizes[p]))
            for p, folder in enumerate(folders)
        ]
        self.dtype = like.dtype

    def append(self, rows: Tensor | Array, begin: Ints) -> None:
        """Append the rows ``begin[p]`` to ``begin[p + 1]`` of ``rows`` to part p, for every p."""
        if isinstance(rows, np.ndarray):
            rows = torch.from_numpy(rows).to(self.dtype)
        for p in np.flatnonzero(np.diff(begin)).tolist():
            self._writers[p].append(slice_rows(rows, int(begin[p]), int(begin[p + 1])))

    def finish(self) -> list[ArrayFile]:
        """Flush the files to the disk, and describe the column of each part as one of its
        folder.
        """
        pairs = zip(self._writers, self._folders, strict=True)
        return [writer.finish(folder) for writer, folder in pairs]


class EdgeArrays:
    """Arrays ``[num_edges, ...]`` in files of a folder, whose entries are written in any order."""

    def __init__(self, folder: Path, num_edges: int) -> None:
        self._folder = folder
        self._num_edges = num_edges
        self._made: dict[str, tuple[np.memmap[Any, Any], str, torch.dtype]] = {}

    def add(self, name: str, dtype: torch.dtype, row: Sequence[int] = (), file: str = "") -> None:
        """Make an array, by default in the file of its name; ``row`` is the shape of an entry."""
        path = f"{file or name}.npy"
        array = create_array(self._folder / path, numpy_type(dtype), (self._num_edges, *row))
        self._made[name] = array, path, dtype

    def put(self, positions: Array, entries: Mapping[str, Array]) -> None:
        """Write the entries ``at`` of some arrays."""
        for name, values in entries.items():
            np.asarray(self._made[name][0])[positions] = values

    def finish(self) -> dict[str, ArrayFile]:
        """Flush the files, and describe them."""
        described = {}
        for name, (array, file, dtype) in self._made.items():
            if array.size:
                array.flush()
            kind = str(dtype).removeprefix("torch.")
            described[name] = ArrayFile(file, kind, array.shape, checksum(self._folder / file))
        return described


def split_rows(
    frame: str,
    columns: Mapping[str, NewColumn],
    owner: Array,
    types: Collection[range],
    folders: Sequence[Path],
    file: str,
    bar: Any,
    *,
    equal: bool = False,
) -> dict[str, list[ArrayFile]]:
    """Split columns over a file per part, and describe these by column, "ndata/x", and part.

    ``owner`` is the part of every row, ``file`` the name of a file, with "{column}" and
    "{part}" for their numbers. Rows are read in order, the ids of ``types``, some at a time, and appended to
    the files. ``equal``: after each range of ids, parts with fewer rows of it than others get rows
    of zeros.
    """
    num_parts = len(folders)
    of_types = [owner[ids.start : ids.stop] for ids in types]
    counts = np.array([np.bincount(parts, minlength=num_parts) for parts in of_types])
    # how many rows each part lacks of a type, beside the part that has the most of it
    short = np.zeros_like(counts)
    if equal:
        short = counts.max(1, keepdims=True) - counts
    sizes = (counts + short).sum(0)
    written = {}
    for i, (name, column) in enumerate(columns.items()):
        # One row says the type and shape of all. Functions of users may give others later, which
        # would shift all rows after them in the files: so every piece is compared.
        first_id = torch.zeros(min(len(owner), 1), dtype=torch.int64)
        sample = rows_of(stored(column), name, first_id)
        name_of_file = file.replace("{column}", str(i))
        out = SplitColumn(folders, name_of_file, like(column, sample), sizes)
        kind = (sample.dtype, sample.shape[1:], sample.layout)
        step = max(_BYTES // max(row_bytes(sample), 1), 1)
        if is_sparse(sample):
            step = 2**14
        # in order, since columns may be mapped files: rows at random would read each page many
        # times
        for all_ids, lacking in zip(types, short, strict=True):
            for first in all_ids[::step]:
                ids = np.arange(first, min(first + step, all_ids.stop))
                rows = rows_of(stored(column), name, torch.from_numpy(ids))
                if len(rows) != len(ids) or (rows.dtype, rows.shape[1:], rows.layout) != kind:
                    raise ValueError(
                        f"column {name!r} must give rows of {sample.dtype} "
                        f"{list(sample.shape[1:])} for every node, as for node 0, but for nodes "
                        f"{ids[0]} to {ids[-1]} it gave {describe(rows)}"
                    )
                # a stable sort: within a part rows stay in the order of ids, which readers search
                begin, order = kernels.csr.sort_by_destination(owner[ids], num_parts)
                out.append(take_rows(rows, torch.from_numpy(order)), begin)
                bar.update(len(ids))
            begin = sums(lacking)
            out.append(zero_rows(sample, int(begin[-1])), begin)
        written[f"{frame}/{name}"] = out.finish()
    return written


def write_arrays(folder: Path, arrays: Mapping[str, Array]) -> dict[str, ArrayFile]:
    """Write arrays into files of their names, and describe these."""
    written = {}
    for name, array in arrays.items():
        kind = torch.from_numpy(array[:0]).dtype
        writer = ArrayWriter(folder / f"{name}.npy", kind, array.shape[1:], len(array))
        writer.append(array)
        written[name] = writer.finish()
    return written


def rows_of(column: NewColumn, name: str, ids: Tensor) -> Tensor:
    """Return rows of a column, in main memory."""
    if isinstance(column, (Tensor, Rows)):
        return fetch_rows(column, ids).detach().cpu()
    values = column(ids)
    check_type(values, f"the result of columns[{name!r}]", Tensor, "a tensor")
    return values.detach().cpu()


class FrameColumns(NamedTuple):
    """Columns of the nodes or edges ``ids``: of all, or of one type or relation; those of all nodes
    may be functions of ids.
    """

    ids: range
    columns: dict[str, Any]


def chosen_frames(
    graph: Graph,
    ndata: Sequence[str] | None,
    edata: Sequence[str] | None,
    more: Mapping[str, NewColumn] | None,
) -> dict[str, FrameColumns]:
    """Return the columns that were chosen, and ``more`` of all nodes; see ``write_partitions``.

    Those of all are "ndata" and "edata", those of types and relations are by their name in
    ``own_parts``: so what begins with "n" is of nodes.
    """
    frames = {
        "ndata": (range(graph.num_nodes), graph.ndata),
        "edata": (range(graph.num_edges), graph.edata),
    }
    for name, part in own_parts(graph).items():
        frames[name] = (part.ids, part.data)
    chosen = {name: FrameColumns(ids, {}) for name, (ids, _) in frames.items()}
    for kind, names in (("n", ndata), ("e", edata)):
        of_kind = [name for name in frames if name.startswith(kind)]
        # each name once: types may share one, and a caller who names it means all of them
        every = dict.fromkeys(itertools.chain(*(frames[name][1] for name in of_kind)))
        wanted = chosen_columns(every, names, f"{kind}data", "the graph")
        for frame in of_kind:
            columns = frames[frame][1]
            chosen[frame].columns.update(
                (name, columns[name]) for name in wanted if name in columns
            )
    for name, given in (more or {}).items():
        check_type(name, "a column name", str, "a str")
        column = torch.from_numpy(given) if isinstance(given, np.ndarray) else given
        if isinstance(column, (Tensor, Rows)):
            check_num_rows(column.shape, f"columns[{name!r}]", graph.num_nodes, "node")
        else:
            check_type(
                column, f"columns[{name!r}]", Callable, "a tensor, Rows or a function of ids"
            )
        chosen["ndata"].columns[name] = column
    return chosen


EDGES = ("in", "out")
_EDGES = 2**19  # edges of a piece


class EdgePiece(NamedTuple):
    """Some edges, in the order in which they are read: ends, ids, groups and places among all edges
    of their groups.

    ``starts``, bool ``[k]``, says where a group comes to another destination.
    """

    src: Array
    dst: Ints
    ids: Array
    group: Ints
    place: Ints
    starts: Array

    def sorted(self, size: int) -> tuple[Ints, EdgePiece]:
        """Return where each of ``size`` groups begins, and the edges sorted by group."""
        begin, order = kernels.csr.sort_by_destination(self.group, size)
        return begin, EdgePiece(*(array[order] for array in self))


class GroupedEdges:
    """The edges of a graph by group, in the order of its arrays: by destination.

    ``layout`` says what is a group. "in": the edges to nodes of a part; "out": those from nodes of
    a part; "buckets": those of one relation from part i to part j, of which bucket
    ``j * num_parts + i`` has a group for each. ``owner`` is the part of every node. After a pass
    over the edges, ``edges`` and ``rows``, int64 ``[size]``, are the numbers of edges and
    destinations of each group, and ``cut`` that of edges whose ends have different masters.
    """

    def __init__(self, graph: Graph, owner: Array, num_parts: int, layout: str) -> None:
        self.graph = graph
        self._owner = owner
        self._kinds = len(graph.schema.relations) if layout == "buckets" else 1
        # The group of an edge is a sum of what its source's part adds, what its destination's part
        # adds, and, with several kinds, the number of its relation: so one loop places all layouts.
        part = np.arange(num_parts)
        steps = {"in": (0, 1), "out": (1, 0), "buckets": (self._kinds, num_parts * self._kinds)}
        of_source, of_destination = steps[layout]
        self._from_source = part * of_source
        self._from_destination = part * of_destination
        self.size = (num_parts - 1) * (of_source + of_destination) + self._kinds

    def count(self, advance: Callable[[int], object] = lambda _: None) -> Ints:
        """Count the edges of every group; ``advance`` is called with the number of edges of each
        piece.
        """
        for piece in self.pieces():
            advance(len(piece.src))
        return self.edges

    def pieces(self, most: int | None = None) -> Iterator[EdgePiece]:
        """Yield all edges in pieces of at most ``most`` edges."""
        indptr, indices, edge_ids = self.graph.csc()
        self.edges = np.zeros(self.size, np.int64)
        self.rows = np.zeros(self.size, np.int64)
        self.cut = 0
        reached = np.full(self.size, -1, np.int64)  # the destination where each group is
        step = min(most or _EDGES, _EDGES)
        for first in range(0, self.graph.num_edges, step):
            last = min(first + step, self.graph.num_edges)
            # destinations of the piece, of which the first and the last may have edges beyond it
            low = int(np.searchsorted(indptr, first, side="right")) - 1
            high = int(np.searchsorted(indptr, last))
            ends: Ints = np.clip(indptr[low : high + 1], first, last)
            dst = np.repeat(np.arange(low, high), np.diff(ends))
            src = np.asarray(indices[first:last])
            group = np.empty(len(src), np.int64)
            place = np.empty(len(src), np.int64)
            starts = np.empty(len(src), np.bool_)
            ids = np.arange(first, last) if edge_ids is None else edge_ids[first:last]
            kind = np.zeros(len(src), np.int64)
            if self._kinds > 1:
                kind = self.graph.schema.relations_of(np.asarray(ids))
            self.cut += kernels.buckets.place_edges(
                owner=self._owner,
                src=src,
                dst=dst,
                kind=kind,
                from_source=self._from_source,
                from_destination=self._from_destination,
                last=reached,
                edges=self.edges,
                rows=self.rows,
                group=group,
                place=place,
                starts=starts,
            )
            yield EdgePiece(src, dst, ids, group, place, starts)


def write_buckets(
    draft: Path,
    graph: Graph,
    frames: Mapping[str, FrameColumns],
    masters: Masters,
    row: Array,
    bar: Any,
) -> dict[str, ArrayFile]:
    """Write the edges by buckets: their ends as rows of parts, their ids and columns; describe the
    files.

    ``frames`` has the columns of edges, ``row`` the row of every node in its part.
    """
    num_parts = len(masters.sizes)
    edges = GroupedEdges(graph, masters.owner, num_parts, "buckets")
    sizes = edges.count(bar.update)
    bucket_ptr = sums(sizes)
    ends = EdgeArrays(draft, graph.num_edges)
    ends.add("src", torch.int32)
    ends.add("dst", torch.int32)
    ends.add("edge_ids", id_type(graph.num_edges))
    # files of all edges have bucket after bucket; those of a relation have its edges only
    of_buckets = sizes.reshape(num_parts**2, len(graph.schema.relations))
    # where a bucket begins among the edges of its relation: those of the buckets before
    in_relations = (of_buckets.cumsum(0) - of_buckets).reshape(-1)
    outs = [
        _BucketColumns(draft, name, frame, bucket_ptr if name == "edata" else in_relations)
        for name, frame in frames.items()
    ]
    for piece in edges.pieces():
        ends.put(
            bucket_ptr[piece.group] + piece.place,
            {"src": row[piece.src], "dst": row[piece.dst], "edge_ids": piece.ids},
        )
        for out in outs:
            out.put_piece(piece)
        bar.update(len(piece.src))
    described = ends.finish()
    for out in outs:
        described |= out.finish()
    return described | write_arrays(draft, {"bucket_ptr": bucket_ptr})


class _BucketColumns(EdgeArrays):
    """Columns of all edges or those of a relation, in files by bucket; ``begin`` is where each
    group begins there.
    """

    def __init__(self, draft: Path, name: str, frame: FrameColumns, begin: Ints) -> None:
        super().__init__(draft, len(frame.ids))
        self._frame = frame
        self._name = name
        self._begin = begin
        prefix = "edges-" if name == "edata" else name
        for i, (column_name, column) in enumerate(frame.columns.items()):
            if is_sparse(column):
                raise TypeError(
                    f"edge column {column_name!r} is sparse, and buckets hold dense rows; leave it "
                    "out of edata="
                )
            self.add(f"{name}/{column_name}", column.dtype, column.shape[1:], f"{prefix}{i}")

    def put_piece(self, piece: EdgePiece) -> None:
        """Write the rows of those edges of a piece that have the columns."""
        ids, columns = self._frame
        if not columns:
            return
        inside = (piece.ids >= ids.start) & (piece.ids < ids.stop)
        local = torch.from_numpy(piece.ids[inside].astype(np.int64) - ids.start)
        entries = {}
        for name, column in columns.items():
            rows = fetch_rows(column, local).detach().cpu()
            entries[f"{self._name}/{name}"] = as_array(rows.contiguous())
        self.put(self._begin[piece.group[inside]] + piece.place[inside], entries)


def sums(sizes: Array) -> Ints:
    """Return where each of several pieces begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def id_type(upper: int) -> torch.dtype:
    """Return the type of ids below ``upper``."""
    return torch.int32 if upper < 2**31 else torch.int64
