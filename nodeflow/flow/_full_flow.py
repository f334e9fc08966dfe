"""FullFlow: all edges into some nodes, as a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from nodeflow._core.base.frozen import Lazy
from nodeflow._core.rows.rows import fetch_rows
from nodeflow._core.schema import Relation
from nodeflow.flow._flow import Flow
from nodeflow.graph import Frame, OfType


class FullFlow(Flow):
    """The flow of all edges into some nodes: sums over it are exact, not estimates.

    Its frame has the edge columns of the parent graph; each is gathered when first asked for.
    """

    __slots__ = ("_leaving", "_parents")
    _leaving: Lazy[Tensor]
    _parents: Mapping[Relation, OfType]

    def set_parent(self, leaving: Lazy[Tensor], relations: Mapping[Relation, OfType]) -> None:
        """Set the numbers of edges that leave each source, int64 ``[num_src]``, and the relations
        of the graph.
        """
        self._set(_leaving=leaving, _parents=relations)

    @property
    def all_out_degrees(self) -> Tensor:
        """Number of edges that leave each source, also for nodes that are no destinations here,
        int64 ``[num_src]``.
        """
        return self._leaving.get().to(self.structure.device)

    def _frame(self, name: Relation, edges: Tensor) -> Frame:
        parent = self._parents[name]
        local = Lazy(lambda: self.parent_eid[edges] - parent.ids.start)
        return EdgeColumns(len(edges), parent.data, local)


class EdgeColumns(Frame):
    """A frame that has some rows of the columns of a graph, or of another frame too, gathered when
    first asked for.
    """

    __slots__ = ("_edges", "_parent")

    def __init__(self, num_rows: int, parent: Mapping[str, Any], edges: Lazy[Tensor]) -> None:
        super().__init__(num_rows)
        self._parent = parent
        self._edges = edges

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._columns and name in self._parent:
            # kept once gathered, since every layer reads it
            edges = self._edges.get()
            self._columns[name] = fetch_rows(self._parent[name], edges).to(edges.device)
        return super().__getitem__(name)

    def copy(self) -> Frame:
        """Return a new frame with the same columns, gathered or not."""
        frame = EdgeColumns(self._num_rows, self._parent, self._edges)
        frame._columns = dict(self._columns)
        frame._initializers = self._initializers.copy()
        return frame

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._parent), **self._columns})

    def __len__(self) -> int:
        return len({*self._parent, *self._columns})
