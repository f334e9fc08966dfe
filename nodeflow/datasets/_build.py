"""Graph folders from lists of edges on the disk, which may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, blaming, check_one_of
from nodeflow._core.base.files import is_file
from nodeflow._core.base.progress import progress_bar
from nodeflow._core.base.sizes import as_bytes
from nodeflow._core.base.types import Array, FileLike
from nodeflow._core.rows.narrowing import WIDTHS, narrowed
from nodeflow._core.rows.rows import Rows, from_numpy
from nodeflow._files.disk.folders import new_folder
from nodeflow._files.disk.streams import ArrayWriter, stream_array
from nodeflow._files.disk.texts import map_texts, write_texts
from nodeflow._files.text.edges import TextOptions
from nodeflow._files.text.words import whole_numbers
from nodeflow.datasets._edge_files import (
    PieceOfFile,
    check_delimiter,
    listed_files,
    mapped,
    pieces_of_edges,
)
from nodeflow.datasets._sorting import Spool, sorted_by_destination
from nodeflow.graph import NAMES, SPLIT, Contents, Graph, GraphFrame, read_manifest


@checked
def build_graph(
    edges: FileLike | Iterable[FileLike],
    folder: FileLike,
    *,
    num_nodes: int | None = None,
    named: bool = False,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    comments: str | None = "#",
    ndata: Mapping[str, Any] | None = None,
    edata: Mapping[str, Any] | None = None,
    split: Mapping[str, Any] | None = None,
    store: str | None = None,
    memory: int | str = "1 GB",
    overwrite: bool = False,
    progress: bool = True,
) -> Graph:
    """Build a graph folder from files of edges, in bounded memory, and open it.

    The graph is that of ``Graph.from_edges`` for the edges of all files in their order: the id of
    an edge is its position among them. It may be larger than memory.

    Args:
        edges: a file, or several: ``.csv``, ``.tsv``, ``.txt``, ``.dat`` or ``.mtx`` (which is held
            in memory), as ``datasets.read_edge_list`` reads them, also packed (``.csv.gz``);
            ``.parquet``; ``.npy``, integers ``[edges, 2]``.
            Further columns become columns of ``edata``; timestamps of Parquet are seconds since
            1970, and lists of one length rows; words, and times finer than microseconds, are
            refused. All files have the same ones.
        folder: where the graph goes; see ``Graph.save``.
        num_nodes: number of nodes; None takes the rows of the node columns, or without any the
            largest id plus one.
        named: nodes have names, in CSV or TSV (as ``datasets.read_folder`` reads them) or Parquet.
            They are numbered in the order in which they first occur, and kept in the folder for
            ``node_names``. A word is its own name (``007`` and ``7`` are two nodes); bytes in
            Parquet are UTF-8, floats that are whole are integers, and dates and times are words
            such as ``2021-03-01`` or ``2021-03-01 12:00:00``, of UTC, whatever their unit. While it
            builds, memory holds all names.
        columns: the name of each column of a text or Parquet file, "_" for one to skip, "src" and
            "dst" among them.
        header: whether the first row of a text file has titles; None: if neither of its first two
            entries is a number, or with ``named`` if usual titles of ends are among them, such as
            "src" and "dst" or "from" and "to"; a row of two other words, which no further row has,
            is refused.
        delimiter, comments: see ``datasets.read_edge_list``. With ``named`` a comment is a line
            that begins so, with a blank after it; None for ``delimiter`` is a comma in ``.csv``,
            where quotes count, else a tab.
        ndata, edata: further columns by name: a ``.npy`` file, which is copied piece by piece, or a
            column as a graph takes it.
        split: ids of nodes by part, "train", "val" and "test", for ``datasets.read_folder``:
            ``.npy`` files or ids.
        store: keep the node columns of rows of floating-point numbers, but for "label", in fewer
            bytes: a width of ``storage.narrow``, "int8", "float16", "bfloat16" or "auto". They are
            read once more before anything else.
        memory: bytes that sorting may hold, as an integer or "2 GB"; at least 21 MB + 16 bytes per
            node + 0.32 bytes per edge. Beyond it are the compiled loops (about 120 MB), all names,
            and cached pages of files. The disk holds up to 40 bytes per edge beside the graph for a
            while.
        overwrite: replace a folder that is there.
        progress: show bars.

    Raises ValueError with the file and line (or row) of the first wrong edge, for files without
    edges, of other columns than the first, a memory that is too small, and columns that cannot be
    stored so (see ``storage.narrow``); FileNotFoundError, FileExistsError, ImportError for Parquet
    without pyarrow, OSError where the disk cannot hold the graph. No folder is left then.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "cites.csv").write_text("src,dst,year\\n0,1,1999\\n2,1,2005\\n")
    >>> graph = build_graph(place / "cites.csv", place / "papers", progress=False)
    >>> graph, graph.edata["year"]
    (Graph(3 nodes, 2 edges, edata: year), tensor([1999, 2005]))
    """
    # All arguments are checked before the first file is read, which may take hours.
    files = listed_files(edges)
    options = TextOptions(delimiter, columns, header, comments)
    check_delimiter(delimiter)
    limit = as_bytes(memory, "memory")
    if named and num_nodes is not None:
        raise ValueError(
            "num_nodes cannot be given with named=True, which counts the names; leave it out"
        )
    of_nodes = _columns(ndata, "ndata")
    if store is not None:
        of_nodes = stored_as(of_nodes, store)
    of_edges = _columns(edata, "edata")
    # The rows of a node column say how many nodes there are, and so which ids are wrong, before
    # the first edge is read.
    if num_nodes is None and not named and of_nodes:
        num_nodes = next(int(column.shape[0]) for column in of_nodes.values())
    upper = None if num_nodes is None else as_count(num_nodes, "num_nodes")
    # The draft becomes the folder when all is written, so that no half of a graph is ever opened.
    with new_folder(Path(folder), overwrite=overwrite) as draft, closing(Spool(draft)) as spool:
        table = _EdgeWriter(draft, spool)
        # how many edges there will be, no file says before it is read
        with progress_bar("reading", 0, " edges", shown=progress, unit_scale=True) as bar:
            for file in files:
                for piece in pieces_of_edges(file, options, upper, named=named):
                    table.append(piece, file)
                    bar.update(len(piece.src))
                table.end_file(file, named=named, may_be_empty=num_nodes is not None)
        table.check_names(files[0])
        size = max(spool.largest + 1, table.stated) if upper is None else upper
        # columns are checked before the edges are sorted, which takes the time
        contents = Contents()
        node_frame = GraphFrame(size, of_nodes)
        edge_frame = GraphFrame(spool.num_edges, of_edges)
        parts = _split(split or {}, size)
        with progress_bar(
            "sorting", spool.num_edges, " edges", shown=progress, unit_scale=True
        ) as bar:
            contents.arrays |= sorted_by_destination(spool, draft, size, limit, bar.update)
        contents.add_columns(draft, "ndata", node_frame)
        table.write(contents, edge_frame)
        contents.add_columns(draft, "edata", edge_frame)
        if named:
            contents.arrays |= write_texts(draft, NAMES, table.names)
        for part, ids in parts.items():
            contents.arrays[part] = stream_array(draft, part, ids)
        spool.close()
        contents.write(draft)
    return Graph.open(folder, verify=False)  # it has just been written


def stored_as(
    columns: Mapping[str, Tensor | Rows | Array], width: str
) -> dict[str, Tensor | Rows | Array]:
    """Return columns of which those of rows of floating-point numbers, but for labels, are narrow.

    Their codes are made when they are written. Raises the errors of ``storage.narrow``, and
    ValueError where there is no such column.
    """
    check_one_of(width, "store", WIDTHS)
    stored = dict(columns)
    is_stored = False
    for name, column in columns.items():
        rows = from_numpy(column) if isinstance(column, np.ndarray) else column
        if len(rows.shape) > 1 and rows.dtype.is_floating_point and name != "label":
            stored[name] = narrowed(rows, width, name=f"column {name!r}")
            is_stored = True
    if not is_stored:
        raise ValueError(
            f"store={width!r} needs a node column of rows of floating-point numbers, such as "
            "features"
        )
    return stored


@checked
def node_names(folder: FileLike) -> Sequence[str] | None:
    """Return the names of the nodes of a graph folder, by id, read on access; None where it has
    none.

    Raises the errors of ``Graph.open``.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "knows.csv").write_text("ann,bob\\nbob,cid\\n")
    >>> graph = build_graph(place / "knows.csv", place / "people", named=True, progress=False)
    >>> node_names(place / "people")
    Texts(3: 'ann', 'bob', 'cid')
    """
    return map_texts(Path(folder), read_manifest(folder).arrays, NAMES)


class _EdgeWriter:
    """The edges of all files as they come: ends go into the spool, and further columns into files,
    of which row e belongs to edge e.

    ``names`` has the id of each name of a node, ``stated`` the largest number of nodes that a file
    states, else 0.
    """

    def __init__(self, draft: Path, spool: Spool) -> None:
        self.writers: dict[str, ArrayWriter] = {}
        self.names: dict[str, int] = {}
        self.stated = 0
        self._draft = draft
        self._spool = spool
        self._unclear = ""
        self._is_first = True
        self._num_edges_before = 0

    def append(self, piece: PieceOfFile, path: Path) -> None:
        """Write some edges of a file; raises ValueError for columns that do not fit those before."""
        # The type of torch, found without a copy: numbers of numpy that torch has under another
        # name are equal then.
        kinds = {name: from_numpy(column[:0]).dtype for name, column in piece.columns.items()}
        if self._is_first:
            self._unclear = piece.begin
            for number, (name, kind) in enumerate(kinds.items()):
                row = piece.columns[name].shape[1:]
                self.writers[name] = ArrayWriter(self._draft / f"edata{number}.npy", kind, row)
        self._is_first = False
        if set(self.writers) != set(kinds):
            raise ValueError(
                f"{path} must have the columns of the first file beside src and dst "
                f"({', '.join(self.writers) or 'none'}), got {', '.join(kinds) or 'none'}"
            )
        for name, writer in self.writers.items():
            _append(piece.columns[name], kinds[name], writer, f"{path}: column {name!r}")
        self.stated = max(self.stated, piece.num_nodes)
        src, dst = self._ids(piece)
        # titles that are not known have the ids 0 and 1, in every file that begins with them
        if self._unclear and ((np.minimum(src, dst) < 2) & ((src != 0) | (dst != 1))).any():
            self._unclear = ""
        self._spool.append(src, dst)

    def _ids(self, piece: PieceOfFile) -> tuple[Ints, Ints]:
        """Return the ends of edges as ids; new names get the next ones, source before destination."""
        if isinstance(piece.src, np.ndarray) and isinstance(piece.dst, np.ndarray):
            return piece.src, piece.dst
        # Names are numbered edge by edge, the source first: the order in which a reader of the
        # file meets them, whatever the size of a piece.
        pairs = chain.from_iterable(zip(piece.src, piece.dst, strict=True))
        numbers = (self.names.setdefault(name, len(self.names)) for name in pairs)
        ids = np.fromiter(numbers, np.int64)
        return ids[::2], ids[1::2]

    def end_file(self, path: Path, *, named: bool, may_be_empty: bool) -> None:
        """Raise ValueError for a file without edges, where no number of nodes is known."""
        is_empty = self._spool.num_edges == self._num_edges_before
        if is_empty and not may_be_empty and not self.stated:
            hint = "leave it out" if named else "pass num_nodes if that is meant"
            raise ValueError(f"{path} has no edges; {hint}")
        self._num_edges_before = self._spool.num_edges

    def check_names(self, path: Path) -> None:
        """Raise ValueError where the first names may be titles, or names are numbers in two forms."""
        if self._unclear and len(self.names) > 2:
            raise ValueError(
                f"{self._unclear}: {list(self.names)[:2]} may be titles or an edge, because no "
                "other row has these names; say header=True or header=False (in the command "
                "--header or --no-header)"
            )
        whole_numbers(
            self.names, lambda place, words: ValueError(f"{path}: names of nodes: {words}")
        )

    def write(self, contents: Contents, others: GraphFrame) -> None:
        """Add the further columns to a graph; raises ValueError for one that others have too."""
        if both := set(self.writers) & set(others):
            raise ValueError(
                f"edata must not name column {min(both)!r}, which the files of edges have"
            )
        for name, writer in self.writers.items():
            contents.add_column("edata", name, writer.finish())


def _append(column: Array, kind: torch.dtype, writer: ArrayWriter, where: str) -> None:
    """Write rows of a column; integers and floats become floats where both occur."""
    if kind != writer.dtype:
        if {kind, writer.dtype} != {torch.int64, torch.float64}:
            raise ValueError(f"{where} must be {writer.dtype} as before, got {kind}")
        if kind == torch.float64:  # all pieces before held integers
            writer.convert(torch.float64)
        column = column.astype(np.float64)
    if column.shape[1:] != writer.row:
        words = f"rows {list(writer.row)} as before, got {list(column.shape[1:])}"
        raise ValueError(f"{where} must have {words}")
    writer.append(column)


def _columns(values: Mapping[str, Any] | None, argument: str) -> dict[str, Tensor | Rows | Array]:
    """Return columns, checked."""
    columns = {}
    for name, value in (values or {}).items():
        column = _mapped_or_given(value, f"{argument}[{name!r}]")
        # A frame converts what users have, lists and columns of other libraries, and names the
        # column in its errors.
        if column is value and not isinstance(value, Rows):
            column = GraphFrame(len(value), {"x": value})["x"]
        columns[name] = column
    return columns


def _mapped_or_given(value: Any, argument: str) -> Any:
    """Return the array of a ``.npy`` file, mapped; another value as it is."""
    if not isinstance(value, (str, Path)):
        return value
    path = Path(value)
    if not is_file(path):
        raise FileNotFoundError(f"{argument}: there is no file {path}")
    array = mapped(path, f"{argument}: {path} must be a .npy file of numbers")
    if not array.ndim:
        raise ValueError(
            f"{argument}: {path} must have one row per node or edge, got a single number"
        )
    words = f"{argument}: {path} holds {array.dtype}; convert it to numbers that torch has"
    with blaming(words, TypeError, ValueError):
        torch.from_numpy(np.empty(0, array.dtype))
    return array


def _split(split: Mapping[str, Any], num_nodes: int) -> dict[str, Ints]:
    """Return the ids of every part, checked."""
    if unknown := sorted(set(split) - set(SPLIT)):
        raise ValueError(f"split must have the parts train, val and test, got {unknown[0]!r}")
    parts: dict[str, Ints] = {}
    for part in SPLIT if split else ():
        argument = f"split[{part!r}]"
        parts[part] = as_ids(_mapped_or_given(split.get(part, []), argument), argument, num_nodes)
        ids = np.concatenate(list(parts.values()))
        nodes, counts = np.unique(ids, return_counts=True)
        if len(repeated := nodes[counts > 1]):
            raise ValueError(
                f"{argument} holds node {repeated[0]}, which is in the split before; keep it once"
            )
    return parts
