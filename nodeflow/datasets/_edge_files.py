"""Files of edges of all kinds: text with numbers or names of nodes, Parquet, arrays. Some are read
whole, all piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nodeflow._core.base.arrays import array_of
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import LARGEST, Ints, as_count, blaming, check_type, first_true
from nodeflow._core.base.dates import exact_seconds
from nodeflow._core.base.files import is_file
from nodeflow._core.base.types import Array, FileLike
from nodeflow._core.rows.columns import as_column
from nodeflow._files.disk.arrays import map_file
from nodeflow._files.text.edges import (
    EdgeRows,
    EdgeTable,
    TextOptions,
    column_names,
    layout,
    names_of_columns,
)
from nodeflow._files.text.matrix_market import read_matrix_market
from nodeflow._files.text.table import Table, reading, rows_of_words
from nodeflow._files.text.titles import ENDS, places_of_ends, titled_columns
from nodeflow._files.text.words import as_names, is_number
from nodeflow.graph import Graph


@checked
def read_edge_list(
    path: FileLike,
    *,
    delimiter: str | None = None,
    num_nodes: int | None = None,
    columns: Sequence[str] | None = None,
    header: bool = False,
    comments: str | None = "#",
) -> Graph:
    """Read a graph from a text file with one edge per line: CSV, TSV, columns set apart by white
    space, Matrix Market.

    Args:
        path: the file, UTF-8; one whose name ends in ``.gz`` is unpacked on the way. ``.mtx`` is a
            square sparse matrix in Matrix Market format, read whole by scipy, whose entry (i, j) is
            an edge from i - 1 to j - 1, and of a symmetric matrix also one back; values become the
            column ``weight``, and the options below but ``num_nodes`` are not read.
        delimiter: the text between two columns. None: a comma or else ``::`` if the first row has
            one, else any white space.
        num_nodes: number of nodes; None takes the largest id plus one.
        columns: name of each column of the file, in order. ``"src"`` and ``"dst"`` must be among
            them, a column named ``"_"`` is skipped. None: the names in the header, in which ``src``
            and ``dst``, ``source`` and ``target``, ``from`` and ``to``, ``head`` and ``tail`` and
            other usual titles are the ends wherever they stand, else the only two columns, or the
            first two of more that differ in a number or letter at the end, ``protein1`` and
            ``protein2``; without a header ``src``, ``dst``, ``c2``, ``c3``, ...
        header: whether the first row holds names of columns.
        comments: the text that begins a comment, at the start of a line or after a row; None: there
            are no comments. With "#", lines at the top that begin with "%" are comments too, as
            KONECT writes them.

    Ids are integers from 0, written without a plus or zeros in front. Edge ids follow the order of
    the lines. Every further column becomes an edge column under its name: int64 if all its entries
    are written as integers, else float64; bool of True and False; dates in ISO 8601 as seconds
    since 1970.

    Raises FileNotFoundError, TypeError or ValueError for a wrong argument, and ValueError with the
    name of the file and the line for an id that is not an integer from 0 to ``num_nodes`` - 1, an
    entry that is not a value as the first of its column, a number such as ``007``, which is a name,
    a header that is an edge or of three titles or more that name no ends, edges between nodes of
    two kinds that are numbered apart (KONECT's ``% bip``, ratings of MovieLens), and a row with too
    few or too many columns (where columns are skipped, too many go unseen).

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "edges.csv"
    >>> _ = file.write_text("from,to,weight\\n0,1,0.5\\n2,1,2\\n")
    >>> graph = read_edge_list(file, header=True)
    >>> graph.edges()
    (tensor([0, 2]), tensor([1, 1]))
    >>> graph.edata["weight"]
    tensor([0.5000, 2.0000], dtype=torch.float64)
    """
    if num_nodes is not None:
        num_nodes = as_count(num_nodes, "num_nodes")
    check_delimiter(delimiter)
    table = Table(Path(path), delimiter, comments or None)
    if not is_file(table.path):
        raise FileNotFoundError(
            f"there is no file {table.path}; expected a text file with one edge per line"
        )
    if ".mtx" in table.path.suffixes:
        size, values = read_matrix_market(table.path)
        size = size if num_nodes is None else num_nodes
        return Graph.from_edges(values.pop("src"), values.pop("dst"), num_nodes=size, edata=values)
    table, names, first = layout(table, columns, header)
    if first is None:
        if num_nodes is None:
            raise ValueError(
                f"{table.path} has no edges; pass num_nodes if the graph is meant to have none"
            )
        return Graph.from_edges([], [], num_nodes=num_nodes)
    values = EdgeTable(table, names, first, num_nodes).whole()
    return Graph.from_edges(values.pop("src"), values.pop("dst"), num_nodes=num_nodes, edata=values)


_ROWS = 2**15  # rows read at a time


def check_delimiter(delimiter: str | None) -> None:
    """Raise ValueError for a delimiter without letters."""
    if delimiter == "":
        raise ValueError(
            "delimiter must be text such as ',' or '::', or None for a comma or white space, got ''"
        )


class PieceOfFile(NamedTuple):
    """Some edges of a file: int64 ids or names, and the other columns.

    ``num_nodes`` is the number of nodes where the file states it, else 0. ``begin`` is the place of
    the first edge in its file where that, a row of two words, may be one of titles.
    """

    src: Ints | list[str]
    dst: Ints | list[str]
    columns: dict[str, Array]
    num_nodes: int = 0
    begin: str = ""


def numbered_text(path: Path, options: TextOptions, upper: int | None) -> Iterator[PieceOfFile]:
    """Yield the edges of a text file whose nodes are integers, below ``upper`` where that is
    known.
    """
    table = Table(path, options.delimiter, options.comments or None)
    table, names, first = layout(table, options.columns, options.header)
    if first is not None:
        for columns in EdgeTable(table, names, first, upper).pieces(_ROWS):
            yield PieceOfFile(columns.pop("src"), columns.pop("dst"), columns)


def named_text(path: Path, options: TextOptions) -> Iterator[PieceOfFile]:
    """Yield the edges of a CSV or TSV file whose nodes have names."""
    rows = rows_of_words(path, options.delimiter, options.comments or "")
    begin = next(rows, None)
    if begin is None:
        return
    line, fields = begin
    titled = options.header
    if titled is None:
        titled = places_of_ends(fields) is not None
    titles = None
    # the first row of edges says what the columns hold, so it is read before the others
    waiting = [begin]
    if titled:
        titles = fields
        waiting = list(islice(rows, 1))
    first = waiting[0][1] if waiting else []
    where = f"{path}, line {line}"
    names = names_of_columns(where, options.columns, titles, first, Table(path, options.delimiter))
    columns = EdgeRows(path, names, first, named=True)
    # a row of titles would have no number, and a word above numbers is refused
    has_numbers = len(columns.kinds) > 2 or any(map(is_number, fields))
    unclear = ""
    if options.header is None and not titled and not has_numbers:
        unclear = where
    while waiting := waiting + list(islice(rows, _ROWS)):
        piece = columns.columns(waiting)
        yield PieceOfFile(piece.pop("src"), piece.pop("dst"), piece, begin=unclear)
        waiting = []


_EDGES = 2**18  # edges read at a time
_TEXT = (".csv", ".tsv", ".txt", ".dat")


def listed_files(edges: FileLike | Iterable[FileLike]) -> list[Path]:
    """Return the files of edges in their order.

    Raises TypeError or ValueError for what is no list of such files, FileNotFoundError for the
    first that is missing.
    """
    listed: Any = [edges] if isinstance(edges, (str, PathLike)) else edges
    check_type(listed, "edges", Iterable, "a file or a list of files")
    files = [Path(file) for file in listed]
    for path in files:
        kind = kind_of(path)
        if kind not in (*_TEXT, ".mtx", ".npy", ".parquet"):
            raise ValueError(
                "edges must be files .csv, .tsv, .txt, .dat, .mtx (or packed, .gz), .npy or "
                f".parquet, got {path}"
            )
        if not is_file(path):
            raise FileNotFoundError(f"there is no file {path}; edges must be files of edges")
        if kind == ".parquet" and find_spec("pyarrow") is None:
            raise ImportError("Parquet files need pyarrow; install it with: pip install pyarrow")
    if not files:
        raise ValueError("edges must hold one file at least, got none")
    return files


def kind_of(path: Path) -> str:
    """Return the ending of a file, without ".gz"."""
    if path.suffix == ".gz":
        path = path.with_suffix("")
    return path.suffix


def pieces_of_edges(
    path: Path, options: TextOptions, upper: int | None, *, named: bool
) -> Iterator[PieceOfFile]:
    """Yield the edges of a file in pieces; raises ValueError with the line or row of the first
    wrong one.
    """
    kind = kind_of(path)
    if kind in _TEXT and named:
        return named_text(path, options)
    if kind in _TEXT:
        return numbered_text(path, options, upper)
    if kind == ".parquet":
        return _of_parquet(path, options.columns, upper, named=named)
    if named:
        raise ValueError(
            f"{path} holds numbers, but named=True says that nodes have names; leave it out"
        )
    if kind == ".mtx":
        return _of_matrix(path, upper)
    return _of_array(path, upper)


def _of_matrix(path: Path, upper: int | None) -> Iterator[PieceOfFile]:
    num_nodes, columns = read_matrix_market(path)
    src, dst = (_ids(columns.pop(end), end, path, 0, upper) for end in ENDS)
    yield PieceOfFile(src, dst, columns, num_nodes)


def mapped(path: Path, where: str) -> Array:
    """Return the array of a ``.npy`` file of numbers, mapped; ValueError, which begins with
    ``what``, for another file.
    """
    with blaming(where, ValueError):
        return map_file(path)


def _of_array(path: Path, upper: int | None) -> Iterator[PieceOfFile]:
    pairs = mapped(path, f"{path} must be a .npy file of edges")
    # An array [2, edges], as PyG has it, would be read as two edges.
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        hint = "; save edge_index.T.copy()" if pairs.ndim == 2 and len(pairs) == 2 else ""
        got = f"{pairs.dtype} {list(pairs.shape)}"
        raise ValueError(f"{path} must hold integers [edges, 2], got {got}{hint}")
    for first in range(0, len(pairs), _EDGES):
        ends = pairs[first : first + _EDGES].T
        src, dst = (_ids(of, end, path, first, upper) for of, end in zip(ends, ENDS, strict=True))
        yield PieceOfFile(src, dst, {})


def _ids(values: Array, name: str, path: Path, first: int, upper: int | None) -> Ints:
    """Return ids of nodes as int64; ``first`` is the number of the first row in its file."""
    # Compared in the type of the file: unsigned numbers beyond 63 bits would be negative as
    # int64.
    wrong = (values < 0) | (values >= (LARGEST if upper is None else upper))
    if (row := first_true(wrong)) is not None:
        below = "" if upper is None else f" and below num_nodes, {upper}"
        raise ValueError(
            f"{path}, row {first + row}: {name} must be an integer from 0{below}, got {values[row]}"
        )
    return np.ascontiguousarray(values, np.int64)


def _of_parquet(
    path: Path, columns: Sequence[str] | None, upper: int | None, *, named: bool
) -> Iterator[PieceOfFile]:
    from pyarrow import parquet

    # The file is opened by itself, so that a fault of ours later on is not blamed on it.
    with reading(path, "a Parquet file of edges"):
        file = parquet.ParquetFile(path)
    with file:
        titles = [str(title) for title in file.schema_arrow.names]
        names = titled_columns(titles, str(path)) if columns is None else column_names(columns)
        if len(names) != len(titles):
            raise ValueError(
                f"{path} has {len(titles)} columns ({', '.join(titles)}), but columns names "
                f"{len(names)}"
            )
        # Columns that are skipped are not even read from the disk.
        title_of = {name: title for name, title in zip(names, titles, strict=True) if name != "_"}
        first = 0
        # row groups may be as large as the file: batches bound the memory
        batches = file.iter_batches(batch_size=_EDGES, columns=[*title_of.values()])
        while True:
            with reading(path, "a Parquet file of edges"):
                batch = next(batches, None)
            if batch is None:
                return
            table: dict[str, Any] = {}
            for name, values in zip(title_of, batch.columns, strict=True):
                where = f"{path}: column {name!r}"
                if name not in ENDS:
                    table[name] = _parquet_numbers(values, where, first)
                elif named:
                    table[name] = _parquet_names(values, where, first)
                else:
                    ids = _parquet_ids(values, where, first)
                    table[name] = _ids(ids, name, path, first, upper)
            first += batch.num_rows
            yield PieceOfFile(table.pop("src"), table.pop("dst"), table)


def _parquet_array(values: Any, where: str, first: int) -> Array:
    """Return a column of ends, of which no entry is missing or NaN."""
    is_missing = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if (row := first_true(is_missing)) is not None:
        raise ValueError(f"{where} has no entry in row {first + row}")
    array: Array = values.to_numpy(zero_copy_only=False)
    return array


def _parquet_names(values: Any, where: str, first: int) -> list[str]:
    array = _parquet_array(values, where, first)
    words = []
    for value in as_names(array, where, first):
        word = str(value)
        # a day, and the time at which it begins, are one moment with one name
        if isinstance(value, datetime):
            word = word.removesuffix(" 00:00:00")
        words.append(word)
    return words


def _parquet_ids(values: Any, where: str, first: int) -> Array:
    array = _parquet_array(values, where, first)
    if array.dtype.kind == "f":
        array = np.array(as_names(array, where, first))
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"{where} must hold integers (named=True numbers names), got "
            f"{values.type}; code them as numbers first"
        )
    return array


def _parquet_numbers(values: Any, where: str, first: int) -> Array:
    begin = f"{where} from row {first} on" if first else where
    array = array_of(values, begin, ValueError)
    if array.dtype.kind == "M":
        array = exact_seconds(array, begin)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{where} must hold numbers or times, got {values.type}; code them as numbers first, "
            "or skip it by naming it '_' in columns"
        )
    return as_column(array, begin).numpy()
