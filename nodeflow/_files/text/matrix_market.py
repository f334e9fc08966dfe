"""Sparse matrices in Matrix Market files, as edges."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import numpy as np

from nodeflow._core.base.sizes import check_memory
from nodeflow._core.base.types import Array
from nodeflow._files.text.table import Table, reading
from nodeflow._files.text.words import is_kept, short

# what is after the row and the column of an entry, by the word of the header
_NUMBERS = {
    "pattern": "",
    "integer": r"[ \t]+-?[0-9]+",
    "unsigned-integer": r"[ \t]+[0-9]+",
    "real": r"[ \t]+[-+]?(?i:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf|infinity|nan)",
}


def read_matrix_market(path: Path) -> tuple[int, dict[str, Array]]:
    """Return the size of the square matrix of a file, and its entries: ``src`` (rows), ``dst`` and
    ``weight``.

    An entry of a symmetric matrix that is not on the diagonal is two edges, and a matrix of pattern
    has no weights. Raises ValueError for a file that is damaged or holds another matrix.
    """
    import scipy.io

    with reading(path, "a sparse matrix in Matrix Market format"):
        # The header first: a damaged one may state more entries than memory holds.
        rows, columns, entries, layout, numbers, _ = scipy.io.mminfo(path)
    if layout != "coordinate" or numbers == "complex" or rows != columns:
        raise ValueError(
            f"{path} must hold a square sparse matrix of real numbers, got {layout} {numbers} "
            f"[{rows}, {columns}]; a matrix that joins two kinds of nodes is no graph of one kind: "
            "give Graph.typed its rows and columns"
        )
    check_memory(
        12 * entries, f"{path}: {entries:,} entries", "check its third number, that of entries"
    )
    _check_lines(path, numbers)
    with reading(path, "a sparse matrix in Matrix Market format"):
        matrix = scipy.io.mmread(path).tocoo()
    edges = {"src": matrix.row.astype(np.int64), "dst": matrix.col.astype(np.int64)}
    if numbers != "pattern":
        edges["weight"] = matrix.data
        if np.isinf(matrix.data).any():
            _check_written_infinite(path)
    return rows, edges


def _check_written_infinite(path: Path) -> None:
    """Raise ValueError for a number such as 1e400, which scipy reads as infinite."""
    for line, fields in islice(Table(path, None, "%").rows(), 1, None):
        if not is_kept(fields[2]):
            raise ValueError(
                f"{path}, line {line}: {short(fields[2])} is beyond the largest float64; write a "
                "smaller number, or inf"
            )


def _check_lines(path: Path, numbers: str) -> None:
    """Raise ValueError for a line that is no entry, with a number of the header's kind: scipy reads
    1.9 as 1.
    """
    entry = rf"[ \t]*[0-9]+[ \t]+[0-9]+{_NUMBERS[numbers]}"
    size_line, _ = next(Table(path, None, "%").rows())
    for first, lines in Table(path, None, skip=size_line).blocks(2**16):
        text = "".join(lines)
        if wrong := re.search(rf"^(?!(?:{entry})?[ \t]*$|%).*$", text, re.MULTILINE):
            line = first + text.count("\n", 0, wrong.start())
            raise ValueError(
                f"{path}, line {line}: expected an entry of the kind of the header, {numbers}, got "
                f"{wrong[0][:60]!r}"
            )
