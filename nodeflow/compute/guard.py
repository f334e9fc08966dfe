"""Around user-defined functions: frames restored when one fails, notes on its error, and checks of what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor

from nodeflow._check import describe

if TYPE_CHECKING:
    from nodeflow.node_flow import NodeFlow


@contextmanager
def atomic(batch: NodeFlow) -> Iterator[None]:
    """Restore the columns of every frame of ``batch`` when anything raises inside."""
    flows = (*batch._consecutive, *batch._skips.values())  # not through the views: this is done for every small batch
    columns = [part.data._columns for part in batch._layers] + [flow.data._columns for flow in flows]
    before = [dict(held) for held in columns]
    try:
        yield
    except BaseException:
        for held, old in zip(columns, before, strict=True):
            held.clear()
            held.update(old)
        raise


@contextmanager
def explained(function: Any, role: str, where: object, *seen: object) -> Iterator[None]:
    """Add a note to what is raised inside: the function, where it ran (said by ``str``), and the columns it saw."""
    try:
        yield
    except Exception as error:
        lines = "".join(f"\n  {columns!r}" for columns in seen)  # of each column read: type and shape
        error.add_note(f"in the {role} {name_of(function)} on {where}{', which saw' if seen else ''}{lines}")
        raise


def name_of(function: Any) -> str:
    """Words for a function in messages."""
    return getattr(function, "__name__", None) or repr(function).split("\n", 1)[0]


def columns_of(returned: Any, rows: int, function: Any, role: str, what: str) -> dict[str, Tensor]:
    """Return the columns a user-defined function returned, checked: a dict of tensors with a row per node or edge.

    Raises TypeError for what is no dict of tensors, ValueError for a wrong number of rows.
    """
    if not isinstance(returned, Mapping):
        raise TypeError(f"the {role} {name_of(function)} must return a dict of columns, got {describe(returned)}")
    for name, column in returned.items():
        if not isinstance(name, str):
            raise TypeError(f"the {role} {name_of(function)} must name its columns by str, got {describe(name)}")
        if not isinstance(column, Tensor):
            raise TypeError(
                f"the {role} {name_of(function)} must return tensors, but column {name!r} is {describe(column)}"
            )
        if column.ndim == 0 or column.shape[0] != rows:
            raise ValueError(
                f"the {role} {name_of(function)} must return one row per {what}, here {rows}, but column {name!r} has "
                f"shape {tuple(column.shape)}"
            )
    return dict(returned)
