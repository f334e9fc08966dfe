"""The parts of a flow that its makers may leave out."""

from __future__ import annotations

from typing import TypedDict

from torch import Tensor

from nodeflow._base.frozen import Lazy
from nodeflow._schema.schema import Relation
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
