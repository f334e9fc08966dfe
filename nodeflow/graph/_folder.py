"""Graph folders: a graph with all its columns in files, mapped when it is opened."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from nodeflow._core.base.checks import blaming, check_indptr, check_range
from nodeflow._core.base.types import Array, FileLike
from nodeflow._core.edges.stored import permutation
from nodeflow._core.rows.rows import Rows
from nodeflow._core.runtime.mapped import FilePart, part_of_file
from nodeflow._core.schema import Schema
from nodeflow._files.disk.arrays import ArrayFile, map_array, map_column
from nodeflow._files.disk.checked import check_ends, check_ids
from nodeflow._files.disk.manifest import Manifest, kind_of
from nodeflow._files.disk.streams import stream_array, stream_column
from nodeflow.graph._frame import Frame, GraphFrame
from nodeflow.graph._types import Types, columns_of, own_parts

if TYPE_CHECKING:
    from nodeflow.graph._graph import Graph

KIND = "graph"
VERSION = 1
_WRONG = (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError, RuntimeError)
# further arrays that a graph folder may have
NAMES = "names"
SPLIT = ("train", "val", "test")


@dataclass
class Contents:
    """The manifest of a graph folder that is being written.

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
        described = self.facts.setdefault(kind, [])
        for name, column in columns.items():
            try:
                self.add_column(
                    kind, name, stream_column(draft / f"{kind}{len(described)}.npy", column)
                )
            except (TypeError, ValueError) as error:
                raise type(error)(f"column {name!r}: {error}") from None

    def add_column(self, kind: str, name: str, array: ArrayFile) -> None:
        """Add a column whose files have been written."""
        described = self.facts.setdefault(kind, [])
        key = f"{kind}{len(described)}"
        self.arrays[key] = array
        described.append({"name": name, "width": None, "arrays": [key]})

    def write(self, draft: Path) -> None:
        """Write the manifest."""
        Manifest(KIND, VERSION, self.arrays, self.facts).write(draft)


def write_graph(graph: Graph, draft: Path) -> Contents:
    """Write the arrays and columns of a graph into a draft, and return what the manifest shall
    say.
    """
    contents = Contents()
    for name, array in zip(("indptr", "indices", "edge_ids"), graph.csc(), strict=True):
        if array is not None:
            contents.arrays[name] = stream_array(draft, name, array)
    contents.add_columns(draft, "ndata", graph.ndata)
    contents.add_columns(draft, "edata", graph.edata)
    contents.facts["schema"] = graph.schema.to_json()
    for kind, part in own_parts(graph).items():
        contents.add_columns(draft, kind, part.data)
    return contents


def read_manifest(folder: FileLike, *, verify: bool | None = None) -> Manifest:
    """Return the manifest of a graph folder; see ``Graph.open`` for what it checks and raises."""
    path = Path(folder)
    return Manifest.read(path, KIND, VERSION, verify=verify, check=partial(_check, path, verify))


def _check(folder: Path, verify: bool | None, manifest: Manifest) -> None:
    """Check what compiled loops rely on: where rows of edges begin, and the ids of nodes and
    edges.
    """
    arrays = manifest.arrays
    if not {"indptr", "indices"} <= set(arrays):
        raise ValueError(
            f"{folder} is damaged: its manifest must name the arrays indptr and indices"
        )
    indptr = arrays["indptr"]
    indices = arrays["indices"]
    edge_ids = arrays.get("edge_ids")
    size = math.prod(indices.shape)
    shapes = {array.shape for array in (indices, edge_ids) if array is not None}
    # the manifest is checked before any array is mapped, since compiled loops trust both
    is_pointer = indptr.dtype == "int64" and len(indptr.shape) == 1 and all(indptr.shape)
    if not is_pointer or shapes != {(size,)}:
        raise ValueError(
            f"{folder} is damaged: indptr, indices and edge_ids in its manifest do not make a graph"
        )
    check_ends(folder, indptr, size)
    check_ids(folder, indices, indptr.shape[0] - 1)
    if edge_ids is not None:
        check_ids(folder, edge_ids, size, "edge")
        # takes a byte per edge of memory, and no compiled loop relies on it
        if verify:
            with blaming(f"{folder / edge_ids.file} is damaged", ValueError):
                permutation(map_array(folder, edge_ids), size)


def check_reopened(
    parts: Sequence[Array | FilePart | None], arrays: Sequence[Array | None]
) -> None:
    """Check the arrays of an unpickled graph that were mapped again, ``parts`` as the pickle has
    them.

    Those of a graph folder are checked as ``Graph.open`` does, so that nothing is read until a file
    changes; of other files, all numbers are compared with their bounds. Raises ValueError for
    damaged ones.
    """
    files = [part.file for part in parts if isinstance(part, FilePart)]
    if not files:
        return
    folder = Path(files[0]).parent
    # a graph of a folder whose arrays are all those of the folder, else it may be any files
    in_files = len(files) == sum(part is not None for part in parts)
    if in_files and kind_of(folder) == KIND:
        manifest = read_manifest(folder)
        described = [manifest.arrays.get(name) for name in ("indptr", "indices", "edge_ids")]
        if list(parts) == [
            array if array is None else part_of_file(map_array(folder, array))
            for array in described
        ]:
            return
    indptr, indices, edge_ids = arrays
    assert indptr is not None
    assert indices is not None
    with blaming(
        f"{', '.join(files)}: not the graph that was pickled, or damaged", ValueError, IndexError
    ):
        check_indptr(indptr, len(indices))
        check_range(indices, "indices", len(indptr) - 1, "node")
        if edge_ids is not None:
            check_range(edge_ids, "edge_ids", len(indices), "edge")


def open_graph(
    folder: Path, manifest: Manifest
) -> tuple[tuple[Array, Array, Array | None], Frame, Frame, Types]:
    """Map the arrays of a graph folder, and the columns of nodes and edges; see ``Graph.open``."""
    arrays = manifest.arrays
    indptr = map_array(folder, arrays["indptr"])
    indices = map_array(folder, arrays["indices"])
    ids = None
    if "edge_ids" in arrays:
        ids = map_array(folder, arrays["edge_ids"])
    ndata = _frame(folder, manifest, "ndata", len(indptr) - 1)
    edata = _frame(folder, manifest, "edata", len(indices))
    return (indptr, indices, ids), ndata, edata, _types(folder, manifest, ndata, edata)


def _types(folder: Path, manifest: Manifest, ndata: Frame, edata: Frame) -> Types:
    """Return the types of nodes and edges; a folder that ``build_graph`` wrote has one of each, and
    no schema.
    """
    if "schema" not in manifest.facts:
        return Types.of_one(ndata, edata)
    with blaming(
        f"{folder} is damaged: its manifest has no right schema",
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ):
        schema = Schema.from_json(manifest.facts["schema"])
    if (schema.num_nodes, schema.num_edges) != (ndata.num_rows, edata.num_rows):
        raise ValueError(
            f"{folder} is damaged: its manifest has a schema of another size: {schema}"
        )
    return Types.of(
        schema,
        ndata,
        edata,
        lambda kind, i, num_rows: _frame(folder, manifest, columns_of(kind, i), num_rows),
    )


def _frame(folder: Path, manifest: Manifest, kind: str, num_rows: int) -> GraphFrame:
    # a manifest may come from anywhere: whatever is wrong in it is said of the folder
    columns = {}
    with blaming(f"{folder} is damaged: its manifest describes wrong columns in {kind}", *_WRONG):
        described = manifest.facts.get(kind, [])
        for column in described:
            (array,) = column["arrays"]
            columns[column["name"]] = map_column(folder, manifest.arrays[array])
        if len(columns) < len(described):
            raise ValueError("two have one name")
        return GraphFrame(num_rows, columns)
