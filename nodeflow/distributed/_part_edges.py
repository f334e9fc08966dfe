"""The edges of a graph, split over the files of parts in two passes: one that counts, one that writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, create_array, describe_array, write_array
from nodeflow._rows.rows import fetch_rows
from nodeflow.distributed._grid import part_of_edges
from nodeflow.graph import Graph
from nodeflow.partitions import Column, Masters, SplitColumn, edge_ranges, part_type

_EDGES = 2**19  # edges of a piece
_BYTES = 2**25  # bytes of the columns of a piece, about


class Piece(NamedTuple):
    """Some edges, sorted by part: those of part p are ``begin[p]`` to ``begin[p + 1]``.

    ``src``, ``dst`` and ``ids`` ``[k]`` are ends and ids; ``row_begins`` ``[k]`` says where a row of a part begins;
    ``cut`` is the number of edges whose masters lie in different parts.
    """

    begin: Ints
    src: Array
    dst: Ints
    ids: Ints
    row_begins: Array
    cut: int


class Counts(NamedTuple):
    """Edges and rows of in-edges of each part, int64 ``[num_parts]``, and the edges between different masters."""

    edges: Ints
    rows: Ints
    cut: int


class EdgeSplit:
    """The edges of a graph and the parts that they go to.

    Args:
        graph: the graph.
        masters: of its nodes.
        edges: "in", "out" or "grid".
        renumber: whether the files have new ids. Rows then come in the order of the new ids of their nodes, and the
            arrays of the graph are read part by part.
    """

    def __init__(self, graph: Graph, masters: Masters, edges: str, renumber: bool) -> None:
        self.graph, self.masters, self.edges, self.renumber = graph, masters, edges, renumber
        self.num_parts = len(masters.sizes)
        by_part = renumber and edges != "in"  # with "in" the rows of a part come in this order anyway
        self._order = masters.order if by_part else None

    def count(self, bar: Any) -> Counts:
        """Count edges and rows."""
        edges, rows, cut = np.zeros(self.num_parts, np.int64), np.zeros(self.num_parts, np.int64), 0
        for piece in self._pieces(_EDGES):
            edges += np.diff(piece.begin)
            rows += np.diff(_sums(piece.row_begins)[piece.begin])
            cut += piece.cut
            bar.update(len(piece.src))
        return Counts(edges, rows, cut)

    def write(
        self, draft: Path, folders: list[Path], columns: dict[str, Column], counts: Counts, bar: Any
    ) -> tuple[list[dict[str, ArrayFile]], dict[str, ArrayFile]]:
        """Write the arrays of all parts and the book of the edges; return both with their descriptions."""
        num_nodes, num_edges = self.graph.num_nodes, self.graph.num_edges
        row, sizes = self.masters.begin, counts.edges
        outs = {
            "src": _split(folders, "src", _ids_type(num_nodes), sizes),
            "edge_ids": _split(folders, "edge_ids", _ids_type(num_edges), sizes),
        }
        if self.edges != "in":
            outs["rows"] = _split(folders, "rows", torch.int64, counts.rows)
            outs["indptr"] = _split(folders, "indptr", torch.int64, counts.rows + 1)
        for i, (name, column) in enumerate(columns.items()):
            files = [folder / f"edge-{i}.npy" for folder in folders]
            outs[f"edata/{name}"] = SplitColumn(files, column, sizes)
        edge_begin, book = _sums(sizes), _Book(draft, num_edges, sizes, self.renumber)
        done = np.zeros(self.num_parts, np.int64)
        widest = max((column.dtype.itemsize * int(np.prod(column.shape[1:])) for column in columns.values()), default=1)
        for piece in self._pieces(min(_EDGES, max(_BYTES // max(widest, 1), 1))):
            length = np.diff(piece.begin)
            part = np.repeat(np.arange(self.num_parts), length)
            place = np.arange(len(part)) + np.repeat(done - piece.begin[:-1], length)
            src = self.masters.renumbered(piece.src) if self.renumber else piece.src
            outs["src"].append(src, piece.begin)
            ids = edge_begin[part] + place if self.renumber else piece.ids
            outs["edge_ids"].append(ids, piece.begin)
            if self.edges != "in":
                first = piece.row_begins
                rows = self.masters.renumbered(piece.dst[first]) if self.renumber else piece.dst[first]
                begin = _sums(first)[piece.begin]
                outs["rows"].append(rows, begin)
                outs["indptr"].append(place[first], begin)
            for name, column in columns.items():
                outs[f"edata/{name}"].append(fetch_rows(column, torch.from_numpy(piece.ids)), piece.begin)
            book.put(piece.ids, part, place)
            done += length
            bar.update(len(part))
        if self.edges != "in":
            outs["indptr"].append(sizes, np.arange(self.num_parts + 1))
        described: list[dict[str, ArrayFile]] = [{} for _ in folders]
        for name, out in outs.items():
            for k, array in enumerate(out.finish(folders)):
                described[k][name] = array
        if self.edges == "in":
            degrees = np.diff(self.graph.indptr)
            for k, folder in enumerate(folders):
                write_array(folder / "indptr.npy", _sums(degrees[self.masters.order[row[k] : row[k + 1]]]))
                described[k]["indptr"] = describe_array(folder, "indptr.npy")
        return described, book.finish()

    def _pieces(self, size: int) -> Iterator[Piece]:
        """All edges in the order of their destinations, sorted by part within a piece."""
        indptr, indices, edge_ids = self.graph.csc()
        owner, last = self.masters.owner, np.full(self.num_parts, -1, np.int64)
        for at, dst in self._positions(indptr, size):
            src = np.asarray(indices[at])
            ends = owner[src], owner[dst]
            part = part_of_edges(self.edges, self.num_parts, *ends)
            begin, order = kernels.csr.sort_by_destination(part, self.num_parts)
            dst = dst[order]
            row_begins = np.empty(len(dst), np.bool_)
            row_begins[1:] = dst[1:] != dst[:-1]
            there = np.flatnonzero(np.diff(begin))
            row_begins[begin[there]] = dst[begin[there]] != last[there]
            last[there] = dst[begin[there + 1] - 1]
            ids = at if edge_ids is None else edge_ids[at]
            ids = np.arange(ids.start, ids.stop) if isinstance(ids, slice) else ids.astype(np.int64)
            yield Piece(begin, src[order], dst, ids[order], row_begins, int(np.count_nonzero(ends[0] != ends[1])))

    def _positions(self, indptr: Ints, size: int) -> Iterator[tuple[slice | Ints, Ints]]:
        """Positions and destinations of the edges, ``size`` at a time."""
        order = self._order
        if order is None:
            for first, last, v in edge_ranges(self.graph, size):
                stop = int(np.searchsorted(indptr, last))
                ends = np.clip(indptr[v : stop + 1], first, last)
                yield slice(first, last), np.repeat(np.arange(v, stop), np.diff(ends))
            return
        starts = _sums(np.diff(indptr)[order])
        for first in range(0, self.graph.num_edges, size):
            last = min(first + size, self.graph.num_edges)
            i, stop = int(np.searchsorted(starts, first, side="right")) - 1, int(np.searchsorted(starts, last))
            ends, nodes = np.clip(starts[i : stop + 1], first, last), order[i:stop]
            length = np.diff(ends)
            yield np.arange(first, last) + np.repeat(indptr[nodes] - starts[i:stop], length), np.repeat(nodes, length)


class _Book:
    """The place of every edge: tables by edge id, or with new ids where those of each part begin, and the old ids."""

    def __init__(self, draft: Path, num_edges: int, sizes: Ints, renumber: bool) -> None:
        self._draft, self._renumber, self._begin = draft, renumber, _sums(sizes)
        if renumber:
            write_array(draft / "edge_begin.npy", self._begin)
            kinds: dict[str, Any] = {"original_edges": np.int64}
        else:
            place = np.int32 if sizes.max(initial=0) < 2**31 else np.int64
            kinds = {"edge_owner": part_type(len(sizes)), "edge_place": place}
        self._arrays = {name: create_array(draft / f"{name}.npy", kind, (num_edges,)) for name, kind in kinds.items()}

    def put(self, ids: Ints, part: Ints, place: Ints) -> None:
        """Note where edges are."""
        if self._renumber:
            np.asarray(self._arrays["original_edges"])[self._begin[part] + place] = ids
        else:
            np.asarray(self._arrays["edge_owner"])[ids] = part
            np.asarray(self._arrays["edge_place"])[ids] = place

    def finish(self) -> dict[str, ArrayFile]:
        """Flush the files to the disk; return their descriptions."""
        for array in self._arrays.values():
            if array.size:
                array.flush()
        names = [*self._arrays, *(["edge_begin"] if self._renumber else [])]
        return {name: describe_array(self._draft, f"{name}.npy") for name in names}


def _split(folders: list[Path], name: str, dtype: torch.dtype, sizes: Ints) -> SplitColumn:
    return SplitColumn([folder / f"{name}.npy" for folder in folders], torch.empty(0, dtype=dtype), sizes)


def _ids_type(count: int) -> torch.dtype:
    return torch.int32 if count < 2**31 else torch.int64


def _sums(sizes: Array) -> Ints:
    """Return where each of several pieces begins, and where the last one ends."""
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    return begin
