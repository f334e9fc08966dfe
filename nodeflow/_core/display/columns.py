"""Columns of frames: summaries of them, without reading anything far away, and numbers to draw
by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from nodeflow._core.base.checks import check_num_rows, check_type, describe, titles
from nodeflow._core.base.sizes import bytes_text
from nodeflow._core.display import html
from nodeflow._core.rows.base import stored, type_words
from nodeflow._core.rows.rows import Rows, column_bytes

T = TypeVar("T")

HEAD = ("column", "type", "shape", "bytes", "first rows")
# of a column that are shown
_ROWS = 3
_NUMBERS = 4


def column_table(frames: Iterable[tuple[str, Mapping[str, Tensor]]], owner: str = "") -> str:
    """Return a table with a row per column of every ``(name of the frame, columns)``; "" where
    there is no column.

    ``owner``: the word above the names of the frames; "" leaves them out.

    A column that is no tensor is never asked for rows: they may lie on a disk or in other
    processes. A tensor that is not in main memory shows its device in place of rows, so that
    nothing waits for an accelerator.
    """
    rows = ((name, *row) for name, columns in frames for row in _rows(columns))
    if not owner:
        return html.table(HEAD, (row[1:] for row in rows), numbers=[3])
    return html.table((owner, *HEAD), rows, numbers=[4])


def _rows(columns: Mapping[str, Tensor | Rows]) -> Iterator[tuple[str, str, str, str, str]]:
    for name, column in list(columns.items()):  # a thread may set columns meanwhile
        shape = " × ".join(f"{size:,}" for size in column.shape)
        yield (
            name,
            type_words(column),
            shape,
            bytes_text(column_bytes(stored(column))),
            _first(column),
        )


def _first(column: Tensor | Rows) -> str:
    if not isinstance(column, Tensor):
        return f"fetched by {type(column).__name__}"
    if column.device.type != "cpu":
        return f"on {column.device}"
    if column.layout != torch.strided:
        return f"{column.values().numel():,} entries"
    if type(column) not in (Tensor, torch.nn.Parameter):
        # a subclass may stand for values that are elsewhere
        return type(column).__name__
    if column.ndim == 1:
        return ", ".join(short_text(value, 4) for value in column[:_ROWS].tolist())
    words = []
    width = math.prod(column.shape[1:])
    top = column[:_ROWS]
    for row in top.reshape(len(top), width)[:, :_NUMBERS].tolist():
        more = " …" * (width > _NUMBERS)
        words.append(f"[{' '.join(short_text(value, 4) for value in row)}{more}]")
    return ", ".join(words)


def short_text(value: Any, digits: int) -> str:
    """Return the text of a value, with some digits of a fraction."""
    if isinstance(value, (float, complex)):
        return f"{value:.{digits}g}"
    return str(value)


def chosen(
    choice: str | Callable[[T], Any] | None,
    argument: str,
    owners: Sequence[T],
    frames: Sequence[Mapping[str, Tensor]],
    rows: Sequence[int],
    fetch: Callable[[Tensor], Tensor] = lambda column: column,
) -> list[list[float] | None]:
    """Return a list of numbers for every owner of rows; None for an owner without the column, or
    without a choice.

    ``frames`` and ``rows`` are the columns of the owners and their numbers of rows; ``fetch`` makes
    the rows that are drawn of a column. Raises KeyError for a column that no frame has, TypeError
    and ValueError for anything but a number per row; ``argument`` is its name.
    """
    if choice is None:
        return [None] * len(owners)
    if callable(choice):
        pairs = zip(owners, rows, strict=True)
        return [_numbers_of(choice(owner), argument, size) for owner, size in pairs]
    check_type(choice, argument, str, "the name of a column or a function")
    names = sorted(set().union(*frames))
    if choice not in names:
        raise KeyError(f"{argument}: no column {choice!r}; there are {titles(names) or 'none'}")
    numbers: list[list[float] | None] = []
    for frame, size in zip(frames, rows, strict=True):
        values = None
        if choice in frame:
            values = _numbers_of(fetch(frame[choice]), argument, size)
        numbers.append(values)
    return numbers


def _numbers_of(values: Any, argument: str, size: int) -> list[float]:
    numbers = torch.as_tensor(values).detach().cpu()
    if numbers.layout != torch.strided or numbers.ndim != 1 or numbers.is_complex():
        raise ValueError(f"{argument} must have one number per row, got {describe(numbers)}")
    check_num_rows(numbers.shape, argument, size, "node or edge")
    return numbers.tolist()


def names_of(ids: list[str], labels: list[float] | None) -> list[str]:
    """Return the texts of nodes: their labels, with three digits of fractions, or their ids."""
    return ids if labels is None else [short_text(label, 3) for label in labels]
