"""The parts of a flow that its makers may leave out, and its edges by relation."""

from __future__ import annotations

from typing import TypedDict

import torch
from torch import Tensor

from nodeflow._base.frozen import Lazy
from nodeflow._schema.schema import Relation, Schema
from nodeflow.graph import Frame


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
    """

    parent_eid: Lazy[Tensor] | None
    weight: Lazy[Tensor] | None
    needs_weight: bool | None
    prefix: bool
    data: Frame | None
    rows: Lazy[Tensor | None]
    frames: dict[Relation, Frame]


def edges_by_relation(schema: Schema, eid: Tensor) -> tuple[Tensor, ...]:
    """Return for each relation the edges of a flow that are of it, ascending, from the parent ids of all edges."""
    starts = torch.tensor([ids.start for ids in schema.relations.values()], dtype=torch.int64, device=eid.device)
    numbers = torch.bucketize(eid, starts, right=True)  # of ranges that begin at one id all but one are empty; 0: none
    # numbers of few bits are sorted in a quarter of the time
    order = torch.argsort(numbers.to(torch.int16) if len(starts) < 2**15 else numbers, stable=True)
    edges: tuple[Tensor, ...] = order.split(torch.bincount(numbers, minlength=len(starts) + 1).tolist())
    return edges[1:]
