"""The parts of a flow that its makers may leave out, and its edges by relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.frozen import Lazy
from nodeflow._schema.schema import Relation
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from nodeflow.flow._flow import Flow


class FlowParts(TypedDict, total=False):
    """The parts of a flow besides its structure and layers, as ``Flow._trusted`` takes them. All are optional.

    Attributes:
        parent_eid: parent id of every edge.
        weight: estimator weight of every edge.
        needs_weight: see ``Flow.needs_weight``; None: the weights are compared when it is asked for.
        data: the frame.
        rows: local id of every destination in the source layer, holding None where the destinations are the first
            nodes in order. Left out: looked up when first needed.
        prefix: True: the destinations are the first nodes of the source layer, in order; instead of ``rows``.
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
    """The edges of each relation, ascending, int64, and where those of each destination begin among them."""

    edges: tuple[Tensor, ...]
    indptr: tuple[Tensor, ...]


def by_relation(flow: Flow, numbers: Lazy[Tensor] | None) -> ByRelation:
    """Return the edges of a flow by relation; ``numbers``: the number of each edge's relation, None: by parent id."""
    relations, device = flow.dst_layer.schema.relations, flow.indptr.device
    if numbers is None:
        # of ranges that begin at one id all but one are empty; -1 is for an edge without a parent edge
        starts = torch.tensor([ids.start for ids in relations.values()], dtype=torch.int64, device=device)
        eid = flow.parent_eid
        numbers = Lazy(lambda: torch.bucketize(eid, starts, right=True, out_int32=True) - 1)
    arrays = flow.indptr.numpy(force=True), numbers.get().numpy(force=True)
    order, first, indptrs = kernels.csr.by_kind(*arrays, len(relations))
    edges = torch.from_numpy(order).to(device).split(np.diff(first).tolist())
    return ByRelation(edges, torch.from_numpy(indptrs).to(device).unbind())
