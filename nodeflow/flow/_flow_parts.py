"""The parts of a flow that its makers may leave out, and its edges by relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Lazy
from nodeflow._schema.schema import Relation
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from nodeflow.flow._flow import Flow


class FlowParts(TypedDict, total=False):
    """The parts of a flow besides its structure and layers, as ``Flow._trusted`` takes them. All
    are optional.

    Attributes:
        parent_eid: parent id of every edge.
        weight: estimator weight of every edge.
        needs_weight: see ``Flow.needs_weight``; None: the weights are compared when it is asked
            for.
        data: the frame.
        rows: local id of every destination in the source layer, holding None where the destinations
            are the first nodes in order. Left out: looked up when first needed.
        prefix: True: the destinations are the first nodes of the source layer, in order; instead of
            ``rows``.
        frames: frames of the edges of each relation that has one already.
        relations: number of the relation of every edge, int32. Left out: by its parent id.
    """

    parent_eid: Lazy[Tensor] | None
    weight: Lazy[Tensor] | None
    needs_weight: bool | None
    prefix: bool
    data: Frame | None
    rows: Lazy[Tensor | None]
    frames: dict[Relation, Frame]
    relations: Lazy[Tensor] | None


class ByRelation(NamedTuple):
    """The edges of a flow grouped by relation, without a table of relations by destinations.

    Attributes:
        order: the edges of the first relation, ascending, then those of the second, and so on,
            int64.
        first: where the edges of each relation begin there, int64 ``[relations + 1]``.
        begins: where the edges of each destination begin among all, int64 ``[num_dst + 1]``.
    """

    order: Tensor
    first: Ints
    begins: Ints

    def edges(self, number: int) -> Tensor:
        """Return the edges of the relation of a number, ascending."""
        return self.order[self.first[number] : self.first[number + 1]]

    def indptr(self, number: int) -> Tensor:
        """Return where those of each destination begin among them, int64 ``[num_dst + 1]``."""
        edges = self.edges(number)
        ends = kernels.csr.indptr_among(self.begins, edges.numpy(force=True))
        return torch.from_numpy(ends).to(edges.device)


def by_relation(flow: Flow, numbers: Lazy[Tensor] | None) -> ByRelation:
    """Return the edges of a flow by relation; ``numbers``: the number of each edge's relation,
    None: by parent id.
    """
    schema = flow.dst_layer.schema
    if numbers is None:
        # -1 for an edge without a parent edge
        kinds = schema.relations_of(flow.parent_eid.numpy(force=True))
    else:
        kinds = numbers.get().numpy(force=True)
    order, first = kernels.csr.by_kind(kinds, len(schema.relations))
    return ByRelation(
        torch.from_numpy(order).to(flow.indptr.device), first, flow.indptr.numpy(force=True)
    )
