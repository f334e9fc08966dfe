"""FullFlow: all edges into some nodes, as a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from nodeflow._base.frozen import Lazy
from nodeflow._rows.rows import fetch_rows
from nodeflow.flow._flow import Flow
from nodeflow.graph import Frame


class FullFlow(Flow):
    """The flow of all edges into some nodes: sums over it are exact, not estimates.

    Its frame has the edge columns of the parent graph; each is gathered when first asked for.
    """

    __slots__ = ("_leaving",)
    _leaving: Lazy[Tensor]

    def set_leaving(self, leaving: Lazy[Tensor]) -> None:
        """Set the numbers of edges that leave each source, int64 ``[num_src]``."""
        self._set(_leaving=leaving)

    @property
    def all_out_degrees(self) -> Tensor:
        """Number of edges that leave each source, also for nodes that are no destinations here, int64 ``[num_src]``."""
        return self._leaving.get().to(self.structure.device)


class EdgeColumns(Frame):
    """A frame that has the columns of a graph's edges too, gathered when first asked for."""

    __slots__ = ("_edges", "_parent")

    def __init__(self, num_rows: int, parent: Mapping[str, Any], edges: Lazy[Tensor]) -> None:
        super().__init__(num_rows)
        self._parent, self._edges = parent, edges

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._columns and name in self._parent:
            edges = self._edges.get()
            self._columns[name] = fetch_rows(self._parent[name], edges).to(edges.device)
        return super().__getitem__(name)

    def copy(self) -> Frame:
        """Return a new frame with the same columns, gathered or not."""
        frame = EdgeColumns(self._num_rows, self._parent, self._edges)
        frame._columns, frame._initializers = dict(self._columns), self._initializers.copy()
        return frame

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._parent), **self._columns})

    def __len__(self) -> int:
        return len({*self._parent, *self._columns})
