"""Appending one NodeFlow to another."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow._rows.rows import take_rows
from nodeflow.flow._layer import Layer, rows_between
from nodeflow.flow._parent import check_fits
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


def append(first: NodeFlow, other: NodeFlow) -> NodeFlow:
    """Return a NodeFlow that continues after the last layer of this one with ``other``.

    The last layer of this one and the first of ``other`` must hold the same parent nodes, in any
    order; the joint layer keeps this one's order. Its frame has the columns of both, this one's
    where both have a column. Structure and columns are shared with both.

    Raises ValueError when the layers do not hold the same nodes or the two belong to different
    parent graphs, and IndexError when only one has a parent graph and an id of the other is not in
    it.
    """
    if not isinstance(other, type(first)):
        raise TypeError(f"append takes a NodeFlow, got {describe(other)}")
    if (
        first.parent is not None
        and other.parent is not None
        and first.parent.uid != other.parent.uid
    ):
        raise ValueError(
            f"append needs NodeFlows of one parent graph, got one of {first.parent} and one of "
            f"another, {other.parent}"
        )
    try:
        rows = _match(first.back, other.front)
    except ValueError as error:
        hint = ""
        with suppress(ValueError):
            if first.front.has_parent:
                _match(other.back, first.front)
                hint = (
                    "; the other's last layer is this one's first: call other.append(this) instead"
                )
        raise ValueError(f"{error}{hint}") from None
    graph = other.parent if first.parent is None else first.parent
    for part in (first, other):
        if graph is not None and part.parent is None:
            check_fits(part, graph)
    data = first.back.data.copy()
    for name, column in other.front.data.items():
        if name not in data:
            data[name] = column if rows is None else take_rows(column, rows)
    layers = [layer.with_frame() for layer in first.layers]
    layers[-1] = first.back.with_frame(data)
    layers += [layer.with_frame() for layer in other.layers[1:]]
    shift = first.num_flows
    row_of = (
        None
        if rows is None
        else torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))
    )
    flows = [flow.between(layers[i], layers[j], (i, j)) for (i, j), flow in first.flows.items()]
    for (i, j), flow in other.flows.items():
        a = i + shift
        b = j + shift
        turned = None
        if i == 0 and row_of is not None:  # sources are numbered as the joint layer numbers them
            s = flow.structure
            turned = Structure._trusted(s.indptr, row_of[s.indices], s.num_src)
        flows.append(flow.between(layers[a], layers[b], (a, b), structure=turned))
    index = other.seed_index
    if row_of is not None and other.num_flows == 0:  # the joint layer is the last one
        index = row_of[index]
    ids = other.seed_ids if other.has_seed_ids else None
    batch = type(first)._trusted(
        layers, flows, parent=graph, seed_index=index, seed_ids=ids, seed_layout=other.seed_layout
    )
    batch.seed_data.update(other.seed_data)
    return batch


def _match(back: Layer, front: Layer) -> Tensor | None:
    """Return the row of ``front`` for every row of ``back``; None when the order is the same."""
    if back.num_nodes != front.num_nodes or back.has_parent != front.has_parent:
        raise ValueError(
            f"append needs the same nodes in {back}, the last of this NodeFlow, and the other's "
            f"first, {front}"
        )
    if (back.context is None) != (front.context is None):
        raise ValueError(
            "append needs the same nodes in both layers, but only one of them has contexts"
        )
    same = not back.has_parent or torch.equal(back.parent_nid, front.parent_nid)
    if same and (
        back.context is None or front.context is None or torch.equal(back.context, front.context)
    ):
        return None
    rows = rows_between(front, back)
    if bool((rows < 0).any()):
        node = int(back.parent_nid[(rows < 0).nonzero()[0, 0]])
        raise ValueError(
            f"append needs the same nodes in both layers, but parent node {node} is only in the "
            "first"
        )
    return rows
