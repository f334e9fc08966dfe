"""The parts of a flow that its makers may leave out, and its edges by relation."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
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


def numbers_of_relations(schema: Schema, eid: Tensor) -> Tensor:
    """Return the number of the relation of every edge, int32, from its parent id; -1 for an edge without one."""
    starts = torch.tensor([ids.start for ids in schema.relations.values()], dtype=torch.int64, device=eid.device)
    # of ranges that begin at one id all but one are empty
    return torch.bucketize(eid, starts, right=True, out_int32=True) - 1


def by_relation(indptr: Tensor, numbers: Tensor, num_relations: int) -> ByRelation:
    """Return the edges of a flow by relation, from the number of the relation of each."""
    if numbers.device.type == "cpu":
        order, first, indptrs = kernels.csr.by_kind(indptr.numpy(), numbers.numpy(), num_relations)
        sizes = np.diff(first).tolist()
        return ByRelation(torch.from_numpy(order).split(sizes), torch.from_numpy(indptrs).unbind())
    # numbers of few bits are sorted in a quarter of the time
    order = torch.argsort(numbers.to(torch.int16) if num_relations < 2**15 else numbers, stable=True)
    edges = order.split(torch.bincount(numbers + 1, minlength=num_relations + 1).tolist())[1:]
    return ByRelation(edges, tuple(torch.searchsorted(each, indptr) for each in edges))
