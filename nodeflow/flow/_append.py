"""Appending one NodeFlow to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nodeflow._core.base.checks import describe
from nodeflow._core.rows.rows import take_rows
from nodeflow.flow._columns_of_parent import check_fits
from nodeflow.flow._layer import Layer, rows_between, same_nodes
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
    parents = [part.parent for part in (first, other) if part.parent is not None]
    if len({graph.uid for graph in parents}) > 1:
        raise ValueError(
            f"append needs NodeFlows of one parent graph, got one of {first.parent} and one of "
            f"another, {other.parent}"
        )
    rows = _match(first.back, other.front)
    graph = parents[0] if parents else None
    for part in (first, other):
        if graph is not None and part.parent is None:
            check_fits(part, graph)
    # the first part computes the joint layer, so its columns win
    data = first.back.data.copy()
    for name, column in other.front.data.items():
        if name not in data:
            data[name] = column if rows is None else take_rows(column, rows)
    layers = [layer.with_frame() for layer in first.layers[:-1]]
    layers.append(first.back.with_frame(data))
    layers += [layer.with_frame() for layer in other.layers[1:]]
    flows = [flow.between(layers[i], layers[j], (i, j)) for (i, j), flow in first.flows.items()]
    # the row in the joint layer of each node of the other's first layer
    joint_row = None if rows is None else torch.argsort(rows)
    index = other.seed_index
    # the joint layer is the last one
    if joint_row is not None and other.num_flows == 0:
        index = joint_row[index]
    for pair, flow in other.flows.items():
        i = pair[0] + first.num_flows
        j = pair[1] + first.num_flows
        structure = None
        if joint_row is not None and pair[0] == 0:
            # sources of the other's first layer take the order of the joint one
            sources = joint_row[flow.indices]
            structure = Structure._trusted(flow.indptr, sources, flow.num_src)
        flows.append(flow.between(layers[i], layers[j], (i, j), structure=structure))
    batch = type(first)._trusted(
        layers,
        flows,
        parent=graph,
        seed_index=index,
        seed_ids=other.seed_ids if other.has_seed_ids else None,
        seed_layout=other.seed_layout,
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
    if not back.has_parent or same_nodes(back, front):
        return None
    rows = rows_between(front, back)
    if bool((rows < 0).any()):
        node = int(back.parent_nid[(rows < 0).nonzero()[0, 0]])
        raise ValueError(
            f"append needs the same nodes in both layers, but parent node {node} is only in the "
            "first"
        )
    return rows
