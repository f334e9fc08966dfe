"""Frame: named columns with one row per node of a layer, per edge of a flow, or per node or edge of
a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    as_count,
    check_num_rows,
    check_type,
    describe,
    pinned,
    short,
    titles,
)
from nodeflow._core.base.dtypes import COLUMN_TYPES
from nodeflow._core.base.types import ColumnLike, ColumnsLike
from nodeflow._core.display.columns import column_table
from nodeflow._core.display.html import page
from nodeflow._core.rows.base import summary
from nodeflow._core.rows.columns import as_column, check_numbers
from nodeflow._core.rows.packing import Piece, Pool, restored
from nodeflow._core.rows.rows import Rows

Initializer = Callable[[tuple[int, ...], torch.dtype, torch.device], Tensor]
"""Makes values of a shape, a type and on a device, such as
``lambda shape, dtype, device: torch.ones(shape, ...)``.
"""


class Frame(MutableMapping[str, Tensor]):
    """Named columns, all with the same number of rows.

    A column is a dense tensor ``[num_rows, ...]`` or a sparse CSR tensor ``[num_rows, columns]``.
    Numpy arrays, columns of pandas, polars and Arrow, data frames and scipy sparse matrices are
    converted when they are set; arrays share their memory, and unsigned integers become signed
    ones. The rows of a pandas Series are taken in their order: its index is ignored. Columns can be
    set, replaced and deleted, but the number of rows is fixed. Setting a column stores the tensor
    itself, not a copy.

    A pickle holds the columns by value and without gradient, except those that map a file read-only
    (``numpy.load(path, mmap_mode="r")``): of these it holds the file's path, and opens the file
    again.

    Args:
        num_rows: number of rows of every column.
        columns: columns by name: a dict, or a pandas data frame.

    Raises ValueError for a wrong number of rows, KeyError for an unknown column, TypeError for a
    value that cannot be a column (a type that torch computes little with, a missing entry),
    ValueError for an integer beyond 64 bits.

    >>> frame = Frame(3)
    >>> frame["h"] = torch.ones(3, 2)
    >>> frame
    Frame(3 rows: h float32 [3, 2])
    """

    __slots__ = ("_columns", "_initializers", "_num_rows")
    _hint: ClassVar[str] = (
        " (batches get columns of their graph with copy_from_parent, or ndata= and edata= of a "
        "loader; those of a type are in layer.of(type).data)"
    )

    def __init__(self, num_rows: int, columns: ColumnsLike | None = None) -> None:
        self._num_rows = as_count(num_rows, "num_rows")
        self._columns: dict[str, Tensor] = {}
        self._initializers: dict[str | None, Initializer] = {}
        if columns is not None:
            self.update(columns)

    @property
    def num_rows(self) -> int:
        """Number of rows of every column."""
        return self._num_rows

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(
                f"no column {short(name)}; the frame has {self._names()}{self._hint}"
            ) from None

    def __setitem__(self, name: str, column: ColumnLike) -> None:
        self._columns[name] = self._checked(name, column)

    def __delitem__(self, name: str) -> None:
        if name not in self._columns:
            raise KeyError(f"no column {short(name)}; the frame has {self._names()}")
        del self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    # == on a mapping would compare tensors, whose == has no single answer: frames are equal when
    # they are the same
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        return len(self._columns)

    def update(self, columns: ColumnsLike | None = None, /, **more: ColumnLike) -> None:  # type: ignore[override]
        """Set several columns at once: all of them, or none when one is refused."""
        if columns is None:
            columns = {}
        if not hasattr(columns, "items"):
            raise TypeError(
                "columns must be a dict from names to columns, or a data frame, got "
                f"{describe(columns)}"
            )
        # one dict, so that a name that is given twice is set once
        new = {**columns, **more}
        # all are checked before one is set
        checked = {name: self._checked(name, column) for name, column in new.items()}
        self._columns.update(checked)

    def copy(self) -> Frame:
        """Return a new Frame with the same column tensors: setting a column in one is not seen in
        the other.
        """
        return self._with(dict(self._columns))

    def snapshot(self) -> dict[str, Tensor]:
        """Return the columns as they are now, for ``restore``. The tensors are shared, not
        copied.
        """
        return self._columns.copy()

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Set the columns back to a ``snapshot`` of this frame: later columns go, deleted ones come
        back.

        Raises what setting these columns raises; then the frame is as it was.
        """
        check_type(snapshot, "snapshot", dict, "a snapshot of this frame")
        columns = {name: self._checked(name, column) for name, column in snapshot.items()}
        self._columns.clear()
        self._columns.update(columns)

    def set_initializer(self, initializer: Initializer | None, name: str | None = None) -> None:
        """Set what fills the rows of a new column that nobody computes; without an initializer
        these rows are 0.

        Such rows are left where a function is applied to some nodes or edges only and makes a new
        column, where a user-defined reduce function meets nodes without messages, and where
        ``copy_to_parent`` makes a column.

        Args:
            initializer: called with a shape ``(rows, ...)``, a dtype and a device; returns a tensor
                of these. None takes an initializer away. Copies of the frame have it too, pickles
                do not.
            name: the column that it is for; None: all columns without one of their own.

        Raises TypeError for what cannot be called.

        >>> frame = Frame(3)
        >>> frame.set_initializer(lambda shape, dtype, device: torch.full(shape, -1.0, dtype=dtype, device=device))
        >>> frame.initial("h", 2, torch.zeros(1, 2))
        tensor([[-1., -1.],
                [-1., -1.]])
        """
        if initializer is None:
            self._initializers.pop(name, None)
            return
        check_type(initializer, "initializer", Callable, "a function of (shape, dtype, device)")
        self._initializers[name] = initializer

    def has_initializer(self, name: str) -> bool:
        """Whether an initializer makes the rows of a column that nobody computes."""
        return name in self._initializers or None in self._initializers

    def initial(self, name: str, num_rows: int, like: Tensor) -> Tensor:
        """Return rows that nobody computes of a new column, ``[num_rows, ...]``: those of its
        initializer, or zeros.

        ``like`` has the shape of a row (after its first dimension), the type and the device. Raises
        ValueError for an initializer that returns something else.
        """
        # rows without a function that makes them are zeros
        shape = (num_rows, *like.shape[1:])
        initializer = self._initializers.get(name, self._initializers.get(None))
        if initializer is None:
            return like.new_zeros(shape)
        rows = initializer(shape, like.dtype, like.device)
        if not isinstance(rows, Tensor) or rows.shape != shape or rows.dtype != like.dtype:
            raise ValueError(
                f"the initializer of column {name!r} must return a Tensor of dtype {like.dtype} and "
                f"shape {shape}, got {describe(rows)}"
            )
        return rows

    @checked
    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Frame:
        """Return a Frame with every column on ``device``."""
        return self._each(lambda column: column.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Frame:
        """Return a Frame with every dense column in page-locked memory (sparse columns stay as they
        are).

        Raises ValueError where there is no GPU.
        """
        return self._each(pinned)

    def __repr__(self) -> str:
        words = ", ".join(
            f"{titles([name])} {summary(column)}" for name, column in self._columns.items()
        )
        return f"Frame({self._num_rows} rows: {words or 'no columns'})"

    def _repr_html_(self) -> str:
        return page("Frame", f"{self._num_rows:,} rows", column_table([("", self)]))

    def __reduce__(self) -> tuple[Any, ...]:
        # a column that is a view of a large tensor leaves the rest of it behind
        pool = Pool()
        columns = pool.add(self._columns)
        # frames of other kinds, as one that gathers columns of a graph, come back as plain ones
        kind = Frame
        if isinstance(self, GraphFrame):
            kind = GraphFrame
        return _restore, (kind, self._num_rows, columns, pool.memory())

    def _each(self, change: Callable[[Tensor], Tensor]) -> Frame:
        """A frame of changed tensors; rows that are fetched by id stay as they are."""
        columns = dict(self._columns)
        for name, column in columns.items():
            if isinstance(column, Tensor):
                columns[name] = change(column)
        return self._with(columns)

    def _with(self, columns: dict[str, Tensor]) -> Frame:
        frame = Frame(self._num_rows)
        frame._columns = columns
        frame._initializers = self._initializers.copy()
        return frame

    def _names(self) -> str:
        return ", ".join(map(short, self._columns)) or "no columns"

    def _fits(self, column: Tensor) -> bool:
        return (
            column.layout is torch.strided
            and column.dtype in COLUMN_TYPES
            and not column.is_nested
            and column.ndim > 0
            and column.size(0) == self._num_rows
        )

    def _checked(self, name: str, column: ColumnLike) -> Tensor:
        # the usual case, quickly
        if type(column) is Tensor and type(name) is str and self._fits(column):
            return column
        check_type(name, "a column name", str, "a str")
        column = self._converted(name, column)
        check_num_rows(column.shape, f"column {short(name)}", self._num_rows, "node or edge")
        return column

    def _converted(self, name: str, column: ColumnLike) -> Tensor:
        return as_column(column, f"column {short(name)}")


class GraphFrame(Frame):
    """A frame of a graph, whose columns may also be ``Rows``: objects that fetch rows by id.

    Batches copy the rows that they need. ``to`` and ``pin_memory`` leave such a column as it is.
    """

    __slots__ = ()
    _hint = (
        " (columns of one type are in graph.nodes[type].data, of one relation in "
        "graph.relations[name].data)"
    )

    def _fits(self, column: Tensor) -> bool:
        return super()._fits(column) and not column.is_meta

    def _converted(self, name: str, column: ColumnLike) -> Tensor:
        if isinstance(column, Tensor) and column.is_meta:
            raise TypeError(f"column {short(name)} is on the meta device, which has no numbers")
        if not isinstance(column, Tensor) and isinstance(column, Rows):
            check_numbers(column.dtype, f"column {short(name)}")
            # most code reads tensors only, and keeps their type; ``_core/rows`` takes both
            return cast(Tensor, column)
        return super()._converted(name, column)


def _restore(
    kind: type[Frame], num_rows: int, columns: dict[str, Any], memory: list[Piece]
) -> Frame:
    return kind(num_rows, restored(memory, columns))
