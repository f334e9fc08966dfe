"""The base of the package's own rows: checks of ids and of ``out``, length and repr.

A new kind of rows is a subclass in ``storage``, which writes ``_read``; ``storage/_files.py`` is
a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_ids, check_type, describe
from nodeflow._core.base.types import IdsLike
from nodeflow._core.rows.pieces import Piece
from nodeflow._core.rows.rows import Rows, fetch_rows, is_sparse, new_rows

T = TypeVar("T")


class RowsBase(ABC):
    """Rows that are fetched by id. A subclass sets ``shape`` and ``dtype``, and reads rows in
    ``_read``.

    ``layout`` is ``torch.strided``, or ``torch.sparse_csr`` for a column whose rows come as a CSR
    tensor. ``collective`` says whether all processes must call ``fetch`` together. ``_kind`` names
    the ids in errors.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    layout: torch.layout = torch.strided
    collective: bool = False
    _kind = "row"

    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as a tensor ``[k, ...]``; with ``out`` they are
        written there.

        Raises IndexError for an id that is no row, TypeError or ValueError for an ``out`` of
        another type or shape, or for sparse rows, whose number of entries is not known before; and
        the errors of reading.
        """
        wanted = as_ids(ids, "ids", self.shape[0], self._kind)
        if out is not None:
            self._check_out(out, len(wanted))
        rows = self._read(wanted, out)
        if out is None or rows is out:
            return rows
        return out.copy_(rows)

    @abstractmethod
    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        """Return rows by checked ids; they may be written into ``out`` if it is not None."""

    def pieces(self, ids: Ints) -> list[Piece]:
        """Return the rows ``ids`` where they lie."""
        return [Piece(self.fetch(torch.from_numpy(ids)), None, np.arange(len(ids)))]

    def here(self, ids: Ints) -> NDArray[np.bool_]:
        """Return which of the rows ``ids`` this one of several processes holds, a bool each."""
        return np.zeros(len(ids), np.bool_)

    @property
    def stored(self) -> Tensor | Rows:
        """The rows as they lie and travel: codes of a narrow column, else the column."""
        return self

    def like(self, rows: Tensor | Rows) -> Tensor | Rows:
        """Return the column that has ``rows`` for its stored ones."""
        return rows

    def decoded(self, rows: Tensor) -> Tensor:
        """Return what is read for stored rows."""
        return rows

    def _room(self, count: int, out: Tensor | None) -> Tensor:
        """Return ``out``, or a new tensor that takes ``count`` rows."""
        return new_rows(count, self.shape[1:], self.dtype) if out is None else out

    def _check_out(self, out: Tensor, count: int) -> None:
        check_type(out, "out", Tensor, "a tensor")
        if self.layout != torch.strided:
            raise TypeError(
                "sparse rows cannot be written into out: their number of entries is not known "
                "before"
            )
        shape = (count, *self.shape[1:])
        fits = out.shape == shape and out.dtype == self.dtype
        if not fits or not out.is_contiguous() or out.device.type != "cpu":
            raise ValueError(
                f"out must be a contiguous CPU tensor {self.dtype} {list(shape)}, got "
                f"{describe(out)}"
            )

    def _details(self) -> str:
        """Return what ``repr`` says beside type and shape."""
        return ""

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        details = self._details()
        return f"{type(self).__name__}({summary(self)}{details and ', '}{details})"


def stored(column: T) -> T | Tensor | Rows:
    """Return the rows of a column as they lie and travel: codes of a narrow one, else itself."""
    return column.stored if isinstance(column, RowsBase) else column


def decoded(column: Tensor | Rows, rows: Tensor) -> Tensor:
    """Return what is read for rows of ``stored(column)``."""
    return column.decoded(rows) if isinstance(column, RowsBase) else rows


def like(column: object, rows: Tensor | Rows) -> Tensor | Rows:
    """Return the column that is ``column`` but for its stored rows, which are ``rows``."""
    return column.like(rows) if isinstance(column, RowsBase) else rows


def pieces_of(column: Tensor | Rows, ids: Ints) -> list[Piece]:
    """Return the rows ``ids`` of a column where they lie."""
    if isinstance(column, RowsBase):
        return column.pieces(ids)
    rows = fetch_rows(column, torch.from_numpy(ids))
    return [Piece(rows.cpu(), None, np.arange(len(ids)))]


def elsewhere_first(column: Tensor | Rows, ids: Tensor) -> Tensor:
    """Return ids with those last whose rows a column on several processes has in this one."""
    if not isinstance(column, RowsBase):
        return ids
    order = np.argsort(column.here(ids.numpy()), kind="stable")
    return ids[torch.from_numpy(order)]


def with_stored(
    column: Tensor | Rows, change: Callable[[Tensor | Rows], Tensor | Rows]
) -> Tensor | Rows:
    """Return the column with its stored rows changed."""
    return like(column, change(stored(column)))


def type_words(column: Tensor | Rows) -> str:
    """Return the type of a column's numbers in words, and of its stored rows if it is another."""
    words, lies = (str(rows.dtype).removeprefix("torch.") for rows in (column, stored(column)))
    if words != lies:
        words += f" as {lies}"
    if is_sparse(column):
        words = f"sparse {words}"
    return words


def summary(column: Tensor | Rows) -> str:
    """Return the type and shape of a column in words."""
    return f"{type_words(column)} {list(column.shape)}"
