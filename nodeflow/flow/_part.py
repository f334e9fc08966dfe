"""The edges and destinations of a flow that one call computes, and what functions see of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nodeflow import ops
from nodeflow._core.base.checks import Ints
from nodeflow._core.in_torch.ragged import ends_of
from nodeflow._core.rows.rows import take_rows
from nodeflow.flow._flow import Flow
from nodeflow.flow._user_functions import Columns, EdgeBatch
from nodeflow.graph import Frame
from nodeflow.ops import Structure


class Part:
    """All of a flow, or some destinations with all their edges, or some edges with the destinations
    they reach.

    Attributes:
        structure: the edges, over all sources and the chosen destinations.
        rows: local ids of the destinations, or None for all.
        edges: local ids of the structure's edges, or None for all.
        order: where the edges asked for are in the structure, or None when they are in its order.
        src, dst, data: columns of all sources, of the destinations, of the edges.
    """

    __slots__ = ("data", "dst", "edges", "flow", "order", "rows", "src", "structure")

    def __init__(
        self,
        flow: Flow,
        structure: Structure | None = None,
        rows: Tensor | None = None,
        edges: Tensor | None = None,
        order: Tensor | None = None,
    ) -> None:
        self.structure = flow.structure if structure is None else structure
        self.flow = flow
        self.rows = rows
        self.edges = edges
        self.order = order
        i, j = flow.layers
        self.src = columns_at(flow.src_layer.data, f"layer {i}")
        self.dst = columns_at(flow.dst_layer.data, f"layer {j}", rows)
        self.data = columns_at(flow.data, f"flow {i}->{j}", edges)

    @classmethod
    def of_destinations(cls, flow: Flow, rows: Ints) -> Part:
        """The destinations ``rows`` (distinct local ids), in that order, with all their edges."""
        chosen = torch.from_numpy(rows).to(flow.structure.device)
        structure, edges = flow.structure.select_rows(chosen)
        return cls(flow, structure, chosen, edges)

    @classmethod
    def of_edges(cls, flow: Flow, edges: Ints) -> Part:
        """The edges ``edges`` (distinct local ids, any order) and the destinations they reach,
        ascending.
        """
        all_edges = flow.structure
        # a structure has its edges in order; ``order`` brings rows back to the order
        # asked for
        ids, back = torch.sort(torch.from_numpy(edges).to(all_edges.device))
        order = torch.empty_like(back)
        order[back] = torch.arange(len(back), device=all_edges.device)
        rows, counts = torch.unique_consecutive(all_edges.dst[ids], return_counts=True)
        structure = Structure._trusted(ends_of(counts), all_edges.indices[ids], all_edges.num_src)
        return cls(flow, structure, rows, ids, order)

    @property
    def destinations(self) -> Tensor:
        """Local ids of the destinations."""
        if self.rows is None:
            return torch.arange(self.structure.num_dst, device=self.structure.device)
        return self.rows

    def edge_batch(self) -> EdgeBatch:
        """The edges as message functions see them, in the order asked for."""
        s = self.structure

        def ends() -> tuple[Tensor, Tensor]:
            return self.as_asked(s.indices), self.as_asked(self.destinations.index_select(0, s.dst))

        def ids() -> Tensor:
            if self.edges is None:
                edges = torch.arange(s.num_edges, device=s.device)
            else:
                edges = self.edges
            return self.as_asked(edges)

        data = Columns(self.data, self.data.where, lambda name: self.as_asked(self.data[name]))
        src = self._along(self.src, s.indices, ops.gather_src)
        dst = self._along(self.dst, s.dst, ops.gather_dst)
        return EdgeBatch(src, dst, data, ends, ids, s.num_edges)

    def _along(
        self, nodes: Columns, rows: Tensor, gather: Callable[[Structure, Tensor], Tensor]
    ) -> Columns:
        """The columns of an end of the edges, in the order asked for; ``rows`` has each end."""

        def read(name: str) -> Tensor:
            column = nodes[name]
            if column.layout != torch.strided:
                return self.as_asked(take_rows(column, rows))
            return self.as_asked(gather(self.structure, column))

        return Columns(nodes, nodes.where, read)

    def as_asked(self, values: Tensor) -> Tensor:
        """Rows in the structure's order put in the order asked for."""
        if self.order is None:
            return values
        return take_rows(values, self.order)

    def as_stored(self, values: Tensor) -> Tensor:
        """Rows in the order asked for put in the structure's order."""
        if self.order is None:
            return values
        return take_rows(values, torch.argsort(self.order))

    def __str__(self) -> str:
        i, j = self.flow.layers
        return (
            f"flow {i}->{j} ({self.structure.num_src} -> {self.structure.num_dst} nodes, "
            f"{self.structure.num_edges} edges)"
        )


def columns_at(frame: Frame, where: str, rows: Tensor | None = None) -> Columns:
    """Return the columns of a frame at ``rows`` (None: all)."""
    if rows is None:
        return Columns(frame, where, frame.__getitem__)
    return Columns(frame, where, lambda name: take_rows(frame[name], rows))


def written(
    frame: Frame, columns: dict[str, Tensor], rows: Tensor | None, where: str
) -> dict[str, Tensor]:
    """Return the columns to store so that ``rows`` of them become those of ``columns`` (None: all
    rows).

    The other rows keep what the frame has, or are initial in a new column
    (``Frame.set_initializer``; 0 without). Writes nothing; old columns are left as they are.
    """
    if rows is None:
        return columns
    complete = {}
    for name, column in columns.items():
        if column.layout != torch.strided:
            raise TypeError(
                f"column {name!r} of {where} is sparse, and only some rows are to be written: call "
                ".to_dense() on them"
            )
        if name in frame:
            base = frame[name]
        else:
            base = frame.initial(name, frame.num_rows, column)
        if base.layout != torch.strided:
            raise TypeError(
                f"column {name!r} of {where} is sparse: set the whole column, or make it dense "
                "first"
            )
        if (base.shape[1:], base.dtype) != (column.shape[1:], column.dtype):
            raise ValueError(
                f"column {name!r} of {where} has rows of shape {tuple(base.shape[1:])} and dtype "
                f"{base.dtype}; rows of shape {tuple(column.shape[1:])} and dtype {column.dtype} "
                "cannot be written into it: delete the column first, or give the new one another "
                "name"
            )
        # not in place: autograd or another frame may hold the old column
        complete[name] = base.index_copy(0, rows, column)
    return complete
