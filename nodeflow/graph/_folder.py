"""Graph folders: a graph with all its columns in files, mapped when it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import check_indptr, check_range
from nodeflow._base.types import Array, FileLike
from nodeflow._disk.arrays import ArrayFile, map_array, map_tensor
from nodeflow._disk.folders import new_folder
from nodeflow._disk.manifest import Manifest
from nodeflow._disk.streams import ArrayWriter, pieces_of, stream_array
from nodeflow._rows.csr import csr_tensor
from nodeflow._rows.rows import Rows
from nodeflow.graph._frame import GraphFrame
from nodeflow.graph._storage import permutation

if TYPE_CHECKING:
    from nodeflow.graph._graph import Graph

KIND, VERSION = "graph", 1
NAMES, SPLIT = "names", ("train", "val", "test")  # further arrays that a graph folder may have
_PARTS = ("indptr", "indices", "values")  # of a sparse column


class Opened(NamedTuple):
    """The parts of an opened graph: arrays that are mapped, and frames."""

    arrays: tuple[Array, Array, Array | None]
    ndata: GraphFrame
    edata: GraphFrame


@dataclass
class Contents:
    """What the manifest of a graph folder will say.

    Args:
        arrays: descriptions of the arrays written so far, by name.
        facts: what it says beside them.
    """

    arrays: dict[str, ArrayFile] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def add_columns(self, draft: Path, kind: str, columns: Mapping[str, Tensor | Rows]) -> None:
        """Write the columns of a frame, ``kind`` "ndata" or "edata".

        Files have numbers, because a name of a column may be no name of a file.
        """
        known = self.facts.setdefault(kind, [])
        for name, column in columns.items():
            file = f"{kind}{len(known)}"
            if isinstance(column, Tensor) and column.layout == torch.sparse_csr:
                parts = column.crow_indices(), column.col_indices(), column.values()
                written = {f"{file}.{word}": stream_array(draft, f"{file}.{word}", part)
                           for word, part in zip(_PARTS, parts, strict=True)}  # fmt: skip
                self.arrays |= written
                known.append({"name": name, "width": column.shape[1], "arrays": list(written)})
            else:
                self.add_column(kind, name, write_rows(draft, file, name, column))

    def add_column(self, kind: str, name: str, array: ArrayFile) -> None:
        """Add a dense column whose file has been written."""
        known = self.facts.setdefault(kind, [])
        key = f"{kind}{len(known)}"
        self.arrays[key] = array
        known.append({"name": name, "width": None, "arrays": [key]})

    def write(self, draft: Path) -> None:
        """Write the manifest."""
        Manifest(KIND, VERSION, self.arrays, self.facts).write(draft)


def write_rows(draft: Path, file: str, name: str, column: Tensor | Rows) -> ArrayFile:
    """Write a dense column in pieces of bounded memory.

    Raises TypeError or ValueError where rows that are fetched are not as their ``shape`` and ``dtype`` say.
    """
    if isinstance(column, Tensor):
        return stream_array(draft, file, column)
    with ArrayWriter(draft, file, column.dtype, tuple(column.shape[1:])) as writer:
        for piece in _fetched(column, name):
            writer.append(piece)
        return writer.finish()


def _fetched(column: Rows, name: str) -> Iterator[Tensor]:
    for start, stop in pieces_of(tuple(column.shape), column.dtype):
        rows = column.fetch(torch.from_numpy(np.arange(start, stop)))
        if not isinstance(rows, Tensor) or rows.dtype != column.dtype:
            got = rows.dtype if isinstance(rows, Tensor) else type(rows).__name__
            raise TypeError(f"column {name!r}: fetch of {type(column).__name__} must return {column.dtype}, got {got}")
        if rows.layout != torch.strided:
            raise TypeError(
                f"column {name!r} has sparse rows that are fetched by id, which a folder cannot take piece by piece: "
                "put a sparse CSR tensor in its place, or delete it and open its file beside the graph"
            )
        if tuple(rows.shape) != (stop - start, *column.shape[1:]):
            wanted = [stop - start, *column.shape[1:]]
            raise ValueError(
                f"column {name!r}: fetch of {type(column).__name__} must return {wanted} for {stop - start} ids, got "
                f"{list(rows.shape)}"
            )
        yield rows


def save_graph(graph: Graph, folder: FileLike, *, overwrite: bool) -> None:
    """Write a graph into a folder; see ``Graph.save``."""
    with new_folder(Path(folder), overwrite=overwrite) as draft:
        write_graph(graph, draft).write(draft)


def write_graph(graph: Graph, draft: Path) -> Contents:
    """Write the arrays and columns of a graph into a draft, and return what the manifest shall say."""
    contents = Contents()
    for name, array in zip(("indptr", "indices", "edge_ids"), graph.csc(), strict=True):
        if array is not None:
            contents.arrays[name] = stream_array(draft, name, array)
    contents.add_columns(draft, "ndata", graph.ndata)
    contents.add_columns(draft, "edata", graph.edata)
    return contents


def read_manifest(folder: FileLike, *, verify: bool = False) -> Manifest:
    """Return the manifest of a graph folder; see ``Graph.open`` for what it raises."""
    return Manifest.read(Path(folder), KIND, VERSION, contents=verify)


def open_graph(folder: Path, manifest: Manifest, *, verify: bool) -> Opened:
    """Map the arrays of a graph folder; see ``Graph.open``.

    Without ``verify`` only sizes, types and the two ends of ``indptr`` are looked at.
    """
    known = manifest.arrays
    if not {"indptr", "indices"} <= set(known):
        raise ValueError(f"{folder} is damaged: its manifest must name the arrays indptr and indices")
    indptr, indices = (map_array(folder, known[name]) for name in ("indptr", "indices"))
    ids = map_array(folder, known["edge_ids"]) if "edge_ids" in known else None
    kinds = [(indptr, ("int64",)), (indices, ("int32", "int64")), (ids, ("int32", "int64"))]
    wrong = any(a is not None and (a.dtype.name not in kind or a.ndim != 1) for a, kind in kinds)
    size = len(indices)
    if wrong or not len(indptr) or indptr[0] != 0 or indptr[-1] != size or (ids is not None and len(ids) != size):
        raise ValueError(f"{folder} is damaged: indptr, indices and edge_ids in its manifest do not make a graph")
    if verify:
        try:
            check_indptr(indptr, size)
            check_range(indices, "indices", len(indptr) - 1, "node")
            if ids is not None:
                permutation(ids, size)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{folder} is damaged: {error}") from None
    ndata, edata = (
        _frame(folder, manifest, kind, rows, verify=verify)
        for kind, rows in (("ndata", len(indptr) - 1), ("edata", size))
    )
    return Opened((indptr, indices, ids), ndata, edata)


def _frame(folder: Path, manifest: Manifest, kind: str, num_rows: int, *, verify: bool) -> GraphFrame:
    columns: dict[str, Tensor] = {}
    try:
        for one in manifest.facts.get(kind, []):
            tensors = [map_tensor(folder, manifest.arrays[array]) for array in one["arrays"]]
            if one["width"] is None:
                (columns[one["name"]],) = tensors
            else:
                columns[one["name"]] = _sparse(*tensors, width=int(one["width"]), verify=verify)
        return GraphFrame(num_rows, columns)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{folder} is damaged: its manifest describes wrong columns in {kind}: {error}") from None


def _sparse(indptr: Tensor, indices: Tensor, values: Tensor, *, width: int, verify: bool) -> Tensor:
    ends = (indptr, indices)
    if any(part.ndim != 1 for part in (*ends, values)) or {part.dtype for part in ends} - {torch.int64, torch.int32}:
        raise ValueError("the parts of a sparse column are of wrong types")
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(indices) or len(indices) != len(values):
        raise ValueError("the parts of a sparse column do not fit one another")
    if verify:
        check_indptr(indptr.numpy(), len(indices))
        check_range(indices.numpy(), "the columns of a sparse column", width, "column")
    return csr_tensor(indptr, indices, values, (len(indptr) - 1, width))
