"""Files of edges of all kinds, read piece by piece: text with numbers or names of nodes, Parquet,
arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nodeflow._base.arrays import NUMBERS
from nodeflow._base.checks import LARGEST, Ints, blaming, check_type, first_true
from nodeflow._base.dates import exact_seconds
from nodeflow._base.files import is_file
from nodeflow._base.types import Array, FileLike
from nodeflow._disk.arrays import read_header
from nodeflow._rows.columns import as_column
from nodeflow._text.edges import (
    EdgeTable,
    TextOptions,
    checked_rows,
    column_names,
    kinds_of,
    layout,
    untitled_columns,
)
from nodeflow._text.matrix_market import read_matrix_market
from nodeflow._text.table import Table, reading, rows_of_words
from nodeflow._text.titles import ENDS, places_of_ends, titled_columns
from nodeflow._text.words import as_names, is_number, values_of

_ROWS = 2**15  # rows read at a time


class Piece(NamedTuple):
    """Some edges of a file: int64 ids or names, the other columns, and the bytes of the file that
    have been read.

    ``num_nodes`` is the number of nodes where the file states it, else 0. ``begin`` is the place of
    the first edge in its file where that, a row of two words, may be one of titles.
    """

    src: Ints | list[str]
    dst: Ints | list[str]
    columns: dict[str, Array]
    read: int
    num_nodes: int = 0
    begin: str = ""


def numbered_text(path: Path, options: TextOptions, upper: int | None) -> Iterator[Piece]:
    """Yield the edges of a text file whose nodes are integers, below ``upper`` where that is
    known.
    """
    table = Table(path, options.delimiter, options.comments or None)
    table, names, first = layout(table, options.columns, options.header)
    if first is not None:
        for columns, read in EdgeTable(table, names, first, upper).pieces(_ROWS):
            yield Piece(columns.pop("src"), columns.pop("dst"), columns, read)


def named_text(path: Path, options: TextOptions) -> Iterator[Piece]:
    """Yield the edges of a CSV or TSV file whose nodes have names."""
    rows = rows_of_words(path, options.delimiter, options.comments or "")
    names: tuple[str, ...] | None = (
        None if options.columns is None else column_names(options.columns)
    )
    begin = next(rows, None)
    if begin is None:
        return
    titled = places_of_ends(begin[1]) is not None if options.header is None else options.header
    if names is None and titled:
        names = titled_columns(begin[1], f"{path}, line {begin[0]}: the header")
    elif names is None:
        names = untitled_columns(begin[1], path, options.delimiter)
    held = list(islice(rows, 1)) if titled else [begin]
    kinds = kinds_of(names, held[0][1] if held else [])
    # a row of titles would have no number, and a word above numbers is refused
    is_unclear = (
        options.header is None and not titled and not kinds and not any(map(is_number, begin[1]))
    )
    while held := held + list(islice(rows, _ROWS)):
        table = dict(
            zip(
                names,
                zip(*checked_rows(path, names, held, kinds, named=True), strict=True),
                strict=True,
            )
        )
        src = list(table.pop("src"))
        dst = list(table.pop("dst"))
        columns = {
            name: values_of(kinds[name], words) for name, words in table.items() if name != "_"
        }
        yield Piece(src, dst, columns, 0, begin=f"{path}, line {begin[0]}" * is_unclear)
        held = []


_EDGES = 2**18  # edges read at a time
_TEXT = (".csv", ".tsv", ".txt", ".dat")

EdgeFile: TypeAlias = "FileLike | tuple[FileLike, FileLike]"
"""A file of edges, or a pair of ``.npy`` files: sources and destinations."""


def listed_files(edges: EdgeFile | Iterable[EdgeFile]) -> list[tuple[Path, ...]]:
    """Return the files of edges in their order, each alone or a pair. A tuple by itself is a pair.

    Raises TypeError or ValueError for what is no list of such files, FileNotFoundError for the
    first that is missing.
    """
    listed: Any = [edges] if isinstance(edges, (str, PathLike, tuple)) else edges
    check_type(listed, "edges", Iterable, "a file or a list of files")
    files = []
    for one in listed:
        pair = one if isinstance(one, tuple) else (one,)
        paths = tuple(Path(part) for part in pair)
        ending = kind_of(paths[0])
        if len(paths) > 2 or (len(paths) == 2 and {kind_of(path) for path in paths} != {".npy"}):
            raise ValueError(
                "a tuple must be two .npy files, of sources and destinations; several files make "
                f"a list; got {pair}"
            )
        if ending not in (*_TEXT, ".mtx", ".npy", ".parquet"):
            raise ValueError(
                "edges must be files .csv, .tsv, .txt, .dat, .mtx (or packed, .gz), .npy or "
                f".parquet, got {paths[0]}"
            )
        for path in paths:
            if not is_file(path):
                raise FileNotFoundError(f"there is no file {path}; edges must be files of edges")
        files.append(paths)
    if not files:
        raise ValueError("edges must hold one file at least, got none")
    if any(kind_of(paths[0]) == ".parquet" for paths in files) and find_spec("pyarrow") is None:
        raise ImportError("Parquet files need pyarrow; install it with: pip install pyarrow")
    return files


def kind_of(path: Path) -> str:
    """Return the ending of a file, without ".gz"."""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def pieces_of_edges(
    paths: tuple[Path, ...], options: TextOptions, upper: int | None, *, named: bool
) -> Iterator[Piece]:
    """Yield the edges of a file in pieces; raises ValueError with the line or row of the first
    wrong one.
    """
    kind = kind_of(paths[0])
    if kind in _TEXT:
        return named_text(paths[0], options) if named else numbered_text(paths[0], options, upper)
    if kind == ".parquet":
        return _of_parquet(paths[0], options.columns, upper, named=named)
    if named:
        raise ValueError(
            f"{paths[0]} holds numbers, but named=True says that nodes have names; leave it out"
        )
    return _of_matrix(paths[0], upper) if kind == ".mtx" else _of_arrays(paths, upper)


def _of_matrix(path: Path, upper: int | None) -> Iterator[Piece]:
    num_nodes, columns = read_matrix_market(path)
    src, dst = (_ids(columns.pop(end), end, path, 0, upper) for end in ENDS)
    yield Piece(src, dst, columns, path.stat().st_size, num_nodes)


def _of_arrays(paths: tuple[Path, ...], upper: int | None) -> Iterator[Piece]:
    headers = []
    for path in paths:
        with blaming(f"{path} must be a .npy file of edges", ValueError):
            dtype, shape, start = read_header(path)
        wanted = (None, 2) if len(paths) == 1 else (None,)
        if len(shape) != len(wanted) or shape[1:] != wanted[1:] or dtype.kind not in "iu":
            what = "[edges, 2]" if len(paths) == 1 else "[edges]"
            hint = "; save edge_index.T.copy()" if len(paths) == 1 and shape[:1] == (2,) else ""
            raise ValueError(f"{path} must hold integers {what}, got {dtype} {list(shape)}{hint}")
        headers.append((dtype, shape, start))
    sizes = [shape[0] for _, shape, _ in headers]
    if len({*sizes}) > 1:
        raise ValueError(
            f"{paths[0]} and {paths[1]} must have one row per edge each, got {sizes[0]} and "
            f"{sizes[1]}"
        )
    for first in range(0, sizes[0], _EDGES):
        count = min(_EDGES, sizes[0] - first)
        read: list[Array] = []
        for path, (dtype, shape, start) in zip(paths, headers, strict=True):
            width = shape[1] if len(shape) == 2 else 1
            at = start + first * width * dtype.itemsize
            read += [*np.fromfile(path, dtype, count * width, offset=at).reshape(count, width).T]
        src, dst = (
            _ids(*end, first, upper) for end in zip(read, ENDS, (paths[0], paths[-1]), strict=True)
        )
        yield Piece(
            src, dst, {}, (first + count) * sum(path.stat().st_size for path in paths) // sizes[0]
        )


def _ids(values: Array, name: str, path: Path, first: int, upper: int | None) -> Ints:
    """Return ids of nodes as int64; ``first`` is the number of the first row in its file."""
    wrong = (values < 0) | (values >= (LARGEST if upper is None else upper))
    if (at := first_true(wrong)) is not None:
        below = "" if upper is None else f" and below num_nodes, {upper}"
        raise ValueError(
            f"{path}, row {first + at}: {name} must be an integer from 0{below}, got {values[at]}"
        )
    return np.ascontiguousarray(values, np.int64)


def _of_parquet(
    path: Path, columns: Sequence[str] | None, upper: int | None, *, named: bool
) -> Iterator[Piece]:
    from pyarrow import parquet

    with reading(path, "a Parquet file of edges"):
        file = parquet.ParquetFile(path)
    try:
        titles = [str(title) for title in file.schema_arrow.names]
        names = titled_columns(titles, str(path)) if columns is None else column_names(columns)
        if len(names) != len(titles):
            raise ValueError(
                f"{path} has {len(titles)} columns ({', '.join(titles)}), but columns names "
                f"{len(names)}"
            )
        used = [title for title, name in zip(titles, names, strict=True) if name != "_"]
        size = path.stat().st_size
        rows = max(file.metadata.num_rows, 1)
        first = 0
        batches = file.iter_batches(batch_size=_EDGES, columns=used)
        while True:
            with reading(path, "a Parquet file of edges"):
                batch = next(batches, None)
            if batch is None:
                return
            table: dict[str, Any] = {}
            for name, values in zip(
                [name for name in names if name != "_"], batch.columns, strict=True
            ):
                table[name] = _parquet_column(
                    path, name, values, first, named=named and name in ENDS
                )
            ends = [table.pop(name) for name in ENDS]
            if not named:
                ends = [
                    _ids(end, name, path, first, upper)
                    for end, name in zip(ends, ENDS, strict=True)
                ]
            first += batch.num_rows
            yield Piece(ends[0], ends[1], table, size * first // rows)
    finally:
        file.close()


def _parquet_column(path: Path, name: str, values: Any, first: int, *, named: bool) -> Any:
    is_list = name not in ENDS and hasattr(values.type, "value_field")
    if is_list and values.flatten().to_numpy(zero_copy_only=False).dtype.kind in NUMBERS:
        where = f"{path}: column {name!r}{f' from row {first} on' * (first > 0)}"
        return as_column(values, where, ValueError).numpy()
    array: Array = values.to_numpy(zero_copy_only=False)
    is_missing = np.asarray(values.is_null(nan_is_null=name in ENDS).to_numpy(zero_copy_only=False))
    if (at := first_true(is_missing)) is not None:
        raise ValueError(f"{path}, row {first + at}: column {name!r} has no entry")
    if array.dtype.kind == "M" and name not in ENDS:
        array = exact_seconds(array, f"{path}: column {name!r}")
    if named or (name in ENDS and array.dtype.kind == "f"):
        names = as_names(array, f"{path}: column {name!r}", first)
        if named:
            return list(map(str, names))
        array = np.array(names)
    if array.dtype.kind not in ("iu" if name in ENDS else "biuf"):
        words = (
            f"got {values.type}; code them as numbers first, or skip it by naming it '_' in columns"
        )
        what = "integers (named=True numbers names)" if name in ENDS else "numbers or times"
        raise ValueError(f"{path}: column {name!r} must hold {what}, {words}")
    return as_column(array, f"{path}: column {name!r}").numpy()
