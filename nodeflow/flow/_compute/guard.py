"""Around user-defined functions: frames restored when one fails, notes on its error, and checks of what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from nodeflow._base.checks import describe

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


# Both are classes, not generators: they are entered for every call, however small.


class atomic:  # noqa: N801
    """Restore the columns of every frame of ``batch`` when anything raises inside."""

    __slots__ = ("_before", "_frames")

    def __init__(self, batch: NodeFlow) -> None:
        self._frames = batch.frames()

    def __enter__(self) -> None:
        self._before = [frame.snapshot() for frame in self._frames]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for frame, columns in zip(self._frames, self._before, strict=True):
                frame.restore(columns)


class explained:  # noqa: N801
    """Add a note to what is raised inside: the function, where it ran (said by ``str``), and the columns it saw."""

    __slots__ = ("_function", "_role", "_seen", "_where")

    def __init__(self, function: object, role: str, where: object, *seen: object) -> None:
        self._function, self._role, self._where, self._seen = function, role, where, seen

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            lines = "".join(f"\n  {columns!r}" for columns in self._seen)  # of each column read: type and shape
            which = f"{self._role} {name_of(self._function)}"
            error.add_note(f"in the {which} on {self._where}{', which saw' if self._seen else ''}{lines}")


def name_of(function: object) -> str:
    """Name of a function for messages."""
    return getattr(function, "__name__", None) or repr(function).split("\n", 1)[0]


def columns_of(returned: object, rows: int, function: object, role: str, what: str) -> dict[str, Tensor]:
    """Return the columns a user-defined function returned, checked: a dict of tensors with a row per node or edge.

    Raises TypeError for what is no dict of tensors, ValueError for a wrong number of rows.
    """
    if type(returned) is not dict and not isinstance(returned, Mapping):  # the first is quick
        raise TypeError(f"the {role} {name_of(function)} must return a dict of columns, got {describe(returned)}")
    for name, column in returned.items():
        if not isinstance(name, str):
            raise TypeError(f"the {role} {name_of(function)} must name its columns by str, got {describe(name)}")
        if not isinstance(column, Tensor):
            raise TypeError(
                f"the {role} {name_of(function)} must return tensors, but column {name!r} is {describe(column)}"
            )
        if column.ndim == 0 or column.size(0) != rows:
            raise ValueError(
                f"the {role} {name_of(function)} must return one row per {what}, here {rows}, but column {name!r} has "
                f"shape {tuple(column.shape)}"
            )
    return dict(returned)
