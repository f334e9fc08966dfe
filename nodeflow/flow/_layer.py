"""Layer: the nodes of one layer of a NodeFlow, with their frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nodeflow._base.checks import as_ids
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow.graph import Frame


class Layer(Frozen):
    """One layer of a NodeFlow: its nodes, their frame, and which parent nodes they are.

    Made by samplers and by ``create_node_flow``, which check its parts; the constructor trusts them.
    ``data`` is the frame with a row per node. ``has_parent`` is False for nodes that stand for no parent node (pooled
    clusters, say).

    ``context`` is None where every parent node is in the layer at most once. Samplers that see the graph in several
    ways at once (at the times of different seeds, or in the subgraph of each seed) number these ways: then a parent
    node is in the layer at most once per context, and ``context``, int64 ``[num_nodes]``, tells the copies apart.

    >>> Layer(2, torch.tensor([7, 3]))
    Layer(2 nodes)
    """

    __slots__ = ("_lookup", "_parent_nid", "context", "data", "num_nodes")
    num_nodes: int
    data: Frame
    context: Tensor | None
    _parent_nid: Tensor | None
    _lookup: Lazy[tuple[Tensor, Tensor]]

    def __init__(
        self,
        num_nodes: int,
        parent_nid: Tensor | None = None,
        data: Frame | None = None,
        *,
        context: Tensor | None = None,
    ) -> None:
        frame = Frame(num_nodes) if data is None else data
        lookup = Lazy(lambda: _sorted(parent_nid))
        self._set(num_nodes=num_nodes, data=frame, context=context, _parent_nid=parent_nid, _lookup=lookup)

    @property
    def has_parent(self) -> bool:
        """Whether the nodes of this layer are nodes of a parent graph."""
        return self._parent_nid is not None

    @property
    def parent_nid(self) -> Tensor:
        """Parent id of every node, int64 ``[num_nodes]``; raises ValueError for a layer without parent nodes."""
        if self._parent_nid is None:
            raise ValueError("this layer has no parent nodes: its nodes were made without parent ids")
        return self._parent_nid

    def rows_of(self, parent_nid: Any) -> Tensor:
        """Return the local ids of the given parent nodes, int64 ``[k]``; -1 where the layer does not hold one.

        Raises ValueError for a layer without parent nodes, or with copies of them in several contexts.
        """
        held = self.parent_nid  # raises the error that says why there are none
        if self.context is not None:
            raise ValueError(
                "this layer may hold a parent node in several contexts (seeds or times), so a parent id does not tell "
                "a row; compare layer.parent_nid and layer.context instead"
            )
        if not isinstance(parent_nid, Tensor) or parent_nid.dtype != torch.int64:
            largest = torch.iinfo(torch.int64).max
            parent_nid = torch.from_numpy(as_ids(parent_nid, "parent_nid", largest, lower=-largest)).to(held.device)
        ids, order = self._lookup.get()
        if len(ids) == 0:
            return torch.full_like(parent_nid, -1)
        at = torch.searchsorted(ids, parent_nid).clamp_(max=len(ids) - 1)
        return torch.where(ids[at] == parent_nid, order[at], -1)

    def __len__(self) -> int:
        return self.num_nodes

    def __repr__(self) -> str:
        columns = f": {', '.join(self.data)}" if self.data else ""
        return f"Layer({self.num_nodes} nodes{'' if self.has_parent else ' without parent ids'}{columns})"

    def _map(self, change: Callable[[Any], Any], data: Frame | None = None) -> Layer:
        """A Layer whose tensors went through ``change`` (a move to a device); its frame is new."""
        ids = None if self._parent_nid is None else change(self._parent_nid)
        context = None if self.context is None else change(self.context)
        layer = Layer(self.num_nodes, ids, self.data.copy() if data is None else data, context=context)
        if ids is self._parent_nid:
            layer._set(_lookup=self._lookup)
        return layer


def rows_between(held: Layer, wanted: Layer) -> Tensor:
    """Return the local ids in ``held`` of the nodes of ``wanted``, in the same context where there are contexts.

    int64 ``[wanted.num_nodes]``, -1 where ``held`` has no such node.
    """
    if held.context is None or wanted.context is None:
        return held.rows_of(wanted.parent_nid)
    pairs = [torch.stack([held.context, held.parent_nid], 1), torch.stack([wanted.context, wanted.parent_nid], 1)]
    number = torch.unique(torch.cat(pairs), dim=0, return_inverse=True)[1]  # one id for every pair
    return Layer(held.num_nodes, number[: held.num_nodes]).rows_of(number[held.num_nodes :])


def _sorted(ids: Tensor | None) -> tuple[Tensor, Tensor]:
    if ids is None:
        empty = torch.zeros(0, dtype=torch.int64, device="cpu")
        return empty, empty
    found = torch.sort(ids)
    return found.values, found.indices
