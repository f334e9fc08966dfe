"""Flows of relations into the nodes of one type, from the sources that their edges read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nodeflow._core.base.frozen import Lazy
from nodeflow._core.schema import Relation
from nodeflow.flow._flow import Flow, FlowParts
from nodeflow.flow._full_flow import EdgeColumns
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame
from nodeflow.ops import Structure


def entering(
    flow: Flow, relations: Sequence[Relation], data: Frame | None = None
) -> tuple[Flow, list[int]]:
    """Return the edges of relations as one flow into nodes of the type that each enters.

    Its destinations are those of the first relation, of the second, and so on; their numbers are
    the second result. Its sources are those of ``flow``. Raises ValueError for edges into nodes of
    another type.
    """
    layer = flow.dst_layer
    groups = flow.by_relation
    edges_of = []
    rows_of = []
    degrees = [flow.indptr[:1]]
    # the rows of a relation lie beside each other, in the order of relations: a split finds
    # them
    for relation in relations:
        number = layer.schema.number(relation)
        rows = layer.of(relation[2]).rows
        edges_of.append(groups.edges(number))
        rows_of.append(rows)
        degrees.append(groups.indptr(number).diff()[rows])
    edges = torch.cat(edges_of)
    dst = torch.cat(rows_of)
    indptr = torch.cat(degrees).cumsum(0)
    if int(indptr[-1]) < len(edges):
        raise ValueError(
            "edges of a relation enter nodes of another type than its destinations, as with "
            "direction='out': layers of several types need flows along the edges; Graph.typed(..., "
            "reverse=True) has relations in both directions"
        )
    parts = flow.lazy_parts_at(edges)
    parts["data"] = data
    parts["rows"] = Lazy.of(flow.dst_in_src[dst])
    structure = Structure._trusted(indptr, flow.indices[edges], flow.num_src)
    target = _rows_of(layer, dst)
    narrowed = type(flow)._trusted(structure, flow.src_layer, target, (0, 1), **parts)
    return narrowed, [len(rows) for rows in rows_of]


def without_unread(flow: Flow) -> tuple[Flow, Tensor]:
    """Return a flow with only those sources that edges or destinations read, and their old ids."""
    rows = flow.dst_in_src
    read = torch.zeros(flow.num_src, dtype=torch.bool, device=flow.indptr.device)
    present = rows[rows >= 0]
    read[flow.indices] = True
    read[present] = False
    # destinations come first, so that they stay a prefix of the sources
    src = torch.cat([present, read.nonzero().flatten()])
    # the last entry is for destinations that are no sources, whose row is -1
    new_id = src.new_full((flow.num_src + 1,), -1)
    new_id[src] = torch.arange(len(src), device=src.device)
    parts: FlowParts = {**flow.lazy_parts(), "data": flow.data, "rows": Lazy.of(new_id[rows])}
    parts["prefix"] = len(present) == len(rows)
    structure = Structure._trusted(flow.indptr, new_id[flow.indices], len(src))
    source = _rows_of(flow.src_layer, src)
    return type(flow)._trusted(structure, source, flow.dst_layer, (0, 1), **parts), src


def _rows_of(layer: Layer, rows: Tensor) -> Layer:
    columns = EdgeColumns(len(rows), layer.data, Lazy.of(rows))
    if layer.context is None:
        context = None
    else:
        context = layer.context[rows]
    return Layer._trusted(
        len(rows), layer.parent_nid[rows], columns, context=context, schema=layer.schema
    )
