"""Flows of relations whose destinations are of the right type only, and whose sources are those
that edges read.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nodeflow._base.frozen import Lazy
from nodeflow._schema.schema import Relation
from nodeflow.flow._flow import Flow
from nodeflow.flow._flow_parts import FlowParts
from nodeflow.flow._full_flow import EdgeColumns
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame
from nodeflow.ops import Structure


def entering(
    flow: Flow, relations: Sequence[Relation], data: Frame | None = None
) -> tuple[Flow, list[int]]:
    """Return the edges of relations as one flow into the nodes of the type that each enters, and
    the numbers of these.

    Its destinations are those of the first relation, of the second, and so on. Its sources are
    those of ``flow``. Raises ValueError for edges into nodes of another type.
    """
    layer = flow.dst_layer
    old = flow.lazy_parts()
    cut = flow.by_relation
    numbers = [layer.schema.number(relation) for relation in relations]
    each = [cut.edges(number) for number in numbers]
    rows = [layer.of(relation[2]).rows for relation in relations]
    degrees = [cut.indptr(number).diff()[at] for number, at in zip(numbers, rows, strict=True)]
    edges = torch.cat(each)
    dst = torch.cat(rows)
    indptr = torch.cat([flow.indptr[:1], *degrees]).cumsum(0)
    if int(indptr[-1]) < len(edges):
        raise ValueError(
            "edges of a relation enter nodes of another type than its destinations, as with "
            "direction='out': layers of several types need flows along the edges; Graph.typed(..., "
            "reverse=True) has relations in both directions"
        )
    parts: FlowParts = {
        "parent_eid": Lazy(lambda: flow.parent_eid[edges]),
        "rows": Lazy.of(flow.dst_in_src[dst]),
    }
    parts["weight"] = old["weight"] and Lazy(lambda: flow.weight[edges])
    parts["data"] = data
    # of several relations together, not of each
    parts["needs_weight"] = old["needs_weight"] and None
    structure = Structure._trusted(indptr, flow.indices[edges], flow.num_src)
    return type(flow)._trusted(structure, flow.src_layer, _rows_of(layer, dst), (0, 1), **parts), [
        *map(len, rows)
    ]


def without_unread(flow: Flow) -> tuple[Flow, Tensor]:
    """Return a flow from its destinations and the sources that edges read alone, and the old local
    ids of these.
    """
    rows = flow.dst_in_src
    read = torch.zeros(flow.num_src, dtype=torch.bool, device=flow.indptr.device)
    own = rows[rows >= 0]
    read[flow.indices] = True
    read[own] = False
    src = torch.cat([own, read.nonzero().flatten()])
    # the last one is that of destinations that are no sources, -1
    place = src.new_full((flow.num_src + 1,), -1)
    place[src] = torch.arange(len(src), device=src.device)
    parts: FlowParts = {**flow.lazy_parts(), "data": flow.data, "rows": Lazy.of(place[rows])}
    parts["prefix"] = len(own) == len(rows)
    structure = Structure._trusted(flow.indptr, place[flow.indices], len(src))
    return type(flow)._trusted(
        structure, _rows_of(flow.src_layer, src), flow.dst_layer, (0, 1), **parts
    ), src


def _rows_of(layer: Layer, rows: Tensor) -> Layer:
    columns = EdgeColumns(len(rows), layer.data, Lazy.of(rows))
    context = None if layer.context is None else layer.context[rows]
    return Layer._trusted(
        len(rows), layer.parent_nid[rows], columns, context=context, schema=layer.schema
    )
