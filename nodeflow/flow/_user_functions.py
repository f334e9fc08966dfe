"""User-defined functions: the edges and nodes they see, checks of what they return, frames restored
when one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn

from torch import Tensor

from nodeflow._core.base.checks import describe
from nodeflow._core.rows.base import summary

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


class Columns(Mapping[str, Tensor]):
    """Columns that are read when asked for: those named in ``names``, each made by ``read(name)``
    and then kept.

    ``where`` says in error messages what they belong to.
    """

    __slots__ = ("_names", "_read", "_seen", "where")

    def __init__(
        self, names: Mapping[str, object], where: str, read: Callable[[str], Tensor]
    ) -> None:
        self._names = names
        self._read = read
        self.where = where
        self._seen: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._seen:
            if name not in self._names:
                has = ", ".join(map(repr, self._names)) or "no columns"
                raise KeyError(f"no column {name!r} in {self.where}, which has {has}")
            self._seen[name] = self._read(name)
        return self._seen[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def keep(self, columns: Mapping[str, Tensor]) -> None:
        """Set columns that need not be read."""
        self._seen.update(columns)

    def __setitem__(self, name: str, value: object) -> NoReturn:
        raise TypeError(
            f"columns cannot be set in here: return {{{name!r}: ...}} from the function instead"
        )

    def __repr__(self) -> str:
        return f"{self.where}: {', '.join(map(self._describe, self._names)) or 'no columns'}"

    def _describe(self, name: str) -> str:
        # printing must not read a column: making it may be slow
        if name in self._seen:
            return f"{name} {summary(self._seen[name])}"
        return name


class EdgeBatch:
    """Edges of one flow, as a message function sees them; every column has one row per edge.

    Attributes:
        src: columns of the source of each edge.
        dst: columns of its destination.
        data: columns of the edge itself.

    Columns are gathered when asked for; an unknown name raises KeyError that lists the known ones.

    >>> import torch
    >>> from nodeflow import create_full_node_flow, fn, Graph
    >>> batch = create_full_node_flow(Graph.from_edges([0, 1], [1, 1]), 1)
    >>> batch.inputs["h"] = torch.tensor([1.0, 2.0])
    >>> batch.flow_compute(0, lambda edges: {"m": -edges.src["h"]}, fn.sum("m", "s"))
    >>> batch.outputs["s"]
    tensor([ 0., -3.])
    """

    __slots__ = ("_count", "_ends", "_ids", "data", "dst", "src")

    def __init__(
        self,
        src: Columns,
        dst: Columns,
        data: Columns,
        ends: Callable[[], tuple[Tensor, Tensor]],
        ids: Callable[[], Tensor],
        count: int,
    ) -> None:
        self.src = src
        self.dst = dst
        self.data = data
        self._ends = ends
        self._ids = ids
        self._count = count

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``: local ids of the ends, int64 ``[len(edges)]`` each."""
        return self._ends()

    def edge_ids(self) -> Tensor:
        """Return the local ids of the edges, int64 ``[len(edges)]``."""
        return self._ids()

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return (
            f"EdgeBatch({len(self)} edges; src from {self.src}; dst from {self.dst}; data from "
            f"{self.data})"
        )


class NodeBatch:
    """Nodes of one layer, as a reduce or update function sees them; every column has one row per
    node.

    Attributes:
        data: columns of the nodes. In an update function after a reduction they include the reduced
            columns.
        mailbox: in reduce functions, the messages: ``mailbox[name]`` is ``[nodes, degree, ...]``.

    >>> import torch
    >>> from nodeflow import create_full_node_flow, fn, Graph
    >>> batch = create_full_node_flow(Graph.from_edges([0, 1], [1, 1]), 1)
    >>> batch.inputs["h"] = torch.tensor([1.0, 2.0])
    >>> batch.flow_compute(0, fn.copy_u("h", "m"), lambda nodes: {"s": nodes.mailbox["m"].median(1).values})
    >>> batch.outputs["s"]
    tensor([0., 1.])
    """

    __slots__ = ("_count", "_mailbox", "_nodes", "data")

    def __init__(
        self, data: Columns, nodes: Callable[[], Tensor], count: int, mailbox: Columns | None = None
    ) -> None:
        self.data = data
        self._nodes = nodes
        self._count = count
        self._mailbox = mailbox

    @property
    def mailbox(self) -> Columns:
        """The messages, ``[nodes, degree, ...]`` each; AttributeError outside reduce functions."""
        if self._mailbox is None:
            raise AttributeError(
                "only reduce functions have nodes.mailbox; here the messages are already reduced"
            )
        return self._mailbox

    def nodes(self) -> Tensor:
        """Return the local ids of the nodes, int64 ``[len(nodes)]``."""
        return self._nodes()

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"NodeBatch({len(self)} nodes; data from {self.data})"


# both of these are classes, not generators: they are entered for every call, however small
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
    """Add a note to what is raised inside: the function, where it ran (said by ``str``), and the
    columns it saw.
    """

    __slots__ = ("_function", "_role", "_seen", "_where")

    def __init__(self, function: object, role: str, where: object, *seen: object) -> None:
        self._function = function
        self._role = role
        self._where = where
        self._seen = seen

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            # of each column read: type and shape
            lines = "".join(f"\n  {columns!r}" for columns in self._seen)
            error.add_note(
                f"in the {self._role} {name_of(self._function)} on "
                f"{self._where}{', which saw' if self._seen else ''}{lines}"
            )


def name_of(function: object) -> str:
    """Name of a function for messages."""
    return getattr(function, "__name__", None) or repr(function).split("\n", 1)[0]


def columns_of(
    returned: object, rows: int, function: object, role: str, what: str
) -> dict[str, Tensor]:
    """Return the columns a user-defined function returned, checked: a dict of tensors with a row
    per node or edge.

    Raises TypeError for what is no dict of tensors, ValueError for a wrong number of rows.
    """
    # the first is quick
    if type(returned) is not dict and not isinstance(returned, Mapping):
        raise TypeError(
            f"the {role} {name_of(function)} must return a dict of columns, got "
            f"{describe(returned)}"
        )
    for name, column in returned.items():
        if isinstance(name, str) and isinstance(column, Tensor):
            if column.ndim and column.size(0) == rows:
                continue
            raise ValueError(
                f"the {role} {name_of(function)} must return one row per {what}, here {rows}, but "
                f"column {name!r} has shape {tuple(column.shape)}"
            )
        raise TypeError(
            f"the {role} {name_of(function)} must return tensors and name them by str, but column "
            f"{name!r} is {describe(column)}"
        )
    return dict(returned)
