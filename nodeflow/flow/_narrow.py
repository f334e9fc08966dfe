"""Flows narrowed to some destinations, and to the sources that these read."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from nodeflow._base.frozen import Lazy
from nodeflow.flow._flow import Flow
from nodeflow.flow._flow_parts import FlowParts
from nodeflow.flow._full_flow import EdgeColumns
from nodeflow.flow._layer import Layer
from nodeflow.ops import Structure

WRONG_WAY: Final = (
    "edges of a relation enter nodes of another type than its destinations, as with direction='out': layers of several "
    "types need flows along the edges; Graph.typed(..., reverse=True) has relations in both directions"
)


def narrowed(flow: Flow, dst: Tensor) -> tuple[Flow, Tensor]:
    """Return the flow into the destinations ``dst``, local ids, and the rows of its sources in the source layer.

    The sources are the destinations themselves, where they are in the source layer, and those of the edges. The frame
    of edges is that of ``flow``. Raises ValueError for edges into other destinations.
    """
    structure, device = flow.structure, flow.structure.device
    if int(structure.in_degrees[dst].sum()) != flow.num_edges:
        raise ValueError(WRONG_WAY)
    rows = flow.dst_in_src[dst]
    own = rows[rows >= 0]
    others = torch.zeros(flow.num_src, dtype=torch.bool, device=device)
    others[structure.indices] = True
    others[own] = False
    src = torch.cat([own, others.nonzero().flatten()])
    place = src.new_full((flow.num_src + 1,), -1)  # the last one is that of a destination without a row, -1
    place[src] = torch.arange(len(src), device=device)
    indptr = torch.cat([structure.indptr[dst], structure.indptr[-1:]])
    new = Structure._trusted(indptr, place[structure.indices], len(src))
    parts: FlowParts = {**flow.lazy_parts(), "data": flow.data, "rows": Lazy.of(place[rows])}
    if len(own) == len(dst):
        parts["prefix"] = True
    return type(flow)._trusted(new, _rows_of(flow.src_layer, src), _rows_of(flow.dst_layer, dst), (0, 1), **parts), src


def _rows_of(layer: Layer, rows: Tensor) -> Layer:
    context = None if layer.context is None else layer.context[rows]
    frame = EdgeColumns(len(rows), layer.data, Lazy.of(rows))
    return Layer._trusted(len(rows), layer.parent_nid[rows], frame, context=context, schema=layer.schema)
