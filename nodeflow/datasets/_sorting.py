"""Edges sorted by destination in bounded memory: counted, put into buckets on the disk, each sorted
in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._files.disk.arrays import ArrayFile, numpy_type
from nodeflow._files.disk.streams import ArrayWriter, stream_array

Pairs = NDArray[np.int64]
"""Sources and destinations, ``[edges, 2]``."""

BYTES_PER_EDGE = 80  # memory for sorting one edge
BYTES_PER_NODE = 16
MOST_BUCKETS = 500  # files open at a time
_PIECE = 2**17  # edges read at a time
_BUFFER = 2**9  # bytes of memory of each file of a bucket


class Spool:
    """Edges in the order appended, in a temporary file that ``close`` removes, with what must be
    known to sort them.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "edges.spool"
        self.num_edges = 0
        self.largest = -1
        self.is_sorted = True
        self._last = -1
        self._file = self.path.open("wb")

    def append(self, src: Ints, dst: Ints) -> None:
        if not len(src):
            return
        self._file.write(np.stack([src, dst], 1).data)
        self.num_edges += len(src)
        self.largest = max(self.largest, int(src.max()), int(dst.max()))
        self.is_sorted = (
            self.is_sorted and int(dst[0]) >= self._last and bool((dst[1:] >= dst[:-1]).all())
        )
        self._last = int(dst[-1])

    def pieces(self, size: int | None = None) -> Iterator[Pairs]:
        self._file.flush()
        count = 2 * (_PIECE if size is None else size)
        with self.path.open("rb") as file:
            while len(piece := np.fromfile(file, np.int64, count)):
                yield piece.reshape(-1, 2)

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


def sorted_by_destination(
    spool: Spool, draft: Path, num_nodes: int, memory: int, done: Callable[[int], object]
) -> dict[str, ArrayFile]:
    """Write the arrays indptr, indices and edge_ids of the edges of a spool, and return their
    descriptions.

    Edge ids are left out where they are the positions. ``memory`` bounds the bytes held; ``done``
    is called with numbers of edges that are written. Raises ValueError for a memory that is too
    small, and says which would do.
    """
    # Edges are counted by destination, which gives indptr. Then they go into buckets on the disk,
    # each of a range of destinations that fits into memory, and one bucket after another is sorted.
    left = memory - BYTES_PER_NODE * num_nodes - 2 * _PIECE * BYTES_PER_EDGE
    # two buckets side by side hold more edges than fit
    least_edges = 2 * spool.num_edges // MOST_BUCKETS + 1
    if left < BYTES_PER_EDGE * least_edges:
        need = BYTES_PER_NODE * num_nodes + BYTES_PER_EDGE * (2 * _PIECE + least_edges)
        raise ValueError(
            f"memory must be at least {-(-need // 10**6)} MB for {num_nodes} nodes and "
            f"{spool.num_edges} edges, got {memory} bytes"
        )
    indptr = np.zeros(num_nodes + 1, np.int64)
    for piece in spool.pieces():
        # In place, since a count of each piece by bincount would be as long as all nodes.
        np.add.at(indptr, piece[:, 1] + 1, 1)
    np.cumsum(indptr, out=indptr)
    arrays = {"indptr": stream_array(draft, "indptr", indptr)}
    indices, edge_ids = (
        ArrayWriter(draft / f"{name}.npy", torch.int32 if size < 2**31 else torch.int64)
        for name, size in (("indices", num_nodes), ("edge_ids", spool.num_edges))
    )
    # files of edges are often written by destination: nothing is to be sorted, and ids are positions
    if spool.is_sorted:
        for piece in spool.pieces():
            indices.append(piece[:, 0].astype(numpy_type(indices.dtype)))
            done(len(piece))
        edge_ids.file.unlink()
    else:
        for src, ids in _sorted_ranges(spool, indptr, draft, left // BYTES_PER_EDGE):
            indices.append(src.astype(numpy_type(indices.dtype)))
            edge_ids.append(ids.astype(numpy_type(edge_ids.dtype)))
            done(len(src))
        arrays["edge_ids"] = edge_ids.finish()
    return {**arrays, "indices": indices.finish()}


def _sorted_ranges(
    spool: Spool, indptr: Ints, draft: Path, most: int
) -> Iterator[tuple[Ints, Ints]]:
    """Yield sources and ids of the edges by destination, inside each in the order of the ids."""
    bounds = ranges_of(indptr, most)
    if len(bounds) == 2 and spool.num_edges <= most:
        # All fit into memory: nothing goes to the disk a second time.
        pairs = next(spool.pieces(spool.num_edges))
        spool.close()
        yield _sorted(_with_ids(pairs, 0), 0, len(indptr) - 1)
        return
    paths = [draft / f"bucket{k}.spool" for k in range(len(bounds) - 1)]
    # a piece is sorted by bucket first, so that every bucket gets one write and not one per edge
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("wb", buffering=_BUFFER)) for path in paths]
        first = 0
        for piece in spool.pieces():
            rows = _with_ids(piece, first)
            bucket = np.searchsorted(bounds, rows[:, 1], side="right") - 1
            ends, order = kernels.csr.sort_by_destination(bucket, len(paths))
            rows = rows[order]
            for k in np.flatnonzero(np.diff(ends)).tolist():
                files[k].write(rows[ends[k] : ends[k + 1]].data)
            first += len(piece)
    # The spool goes before the buckets are read: the disk holds the edges twice, and not three
    # times.
    spool.close()
    for k, path in enumerate(paths):
        low = int(bounds[k])
        high = int(bounds[k + 1])
        # all edges have one destination, perhaps more of them than memory holds
        if high - low == 1:
            with path.open("rb") as file:
                while len(part := np.fromfile(file, np.int64, 3 * _PIECE)):
                    yield part.reshape(-1, 3)[:, 0], part.reshape(-1, 3)[:, 2]
        else:
            rows = np.fromfile(path, np.int64).reshape(-1, 3)
            yield _sorted(rows, low, high)
        path.unlink()


def _with_ids(pairs: Pairs, first: int) -> Ints:
    """Return edges with their ids from ``first`` on, ``[edges, 3]``."""
    return np.column_stack([pairs, np.arange(first, first + len(pairs))])


def _sorted(rows: Ints, low: int, high: int) -> tuple[Ints, Ints]:
    """Return sources and ids of edges, by their destinations, which are from ``low`` to ``high``."""
    _, order = kernels.csr.sort_by_destination(rows[:, 1] - low, high - low)
    return rows[order, 0], rows[order, 2]


def ranges_of(indptr: Ints, most: int) -> Ints:
    """Return bounds of ranges of nodes with ``most`` edges each, or a single node that has more."""
    bounds = [0]
    size = len(indptr) - 1
    while bounds[-1] < size:
        start = bounds[-1]
        # as many nodes as have ``most`` edges together, but one at least
        stop = int(np.searchsorted(indptr, indptr[start] + most, side="right")) - 1
        bounds.append(min(max(stop, start + 1), size))
    return np.array(bounds, np.int64)
