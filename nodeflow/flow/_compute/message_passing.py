"""Message passing on one flow, from tensors to tensors: for layers that need functions of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from nodeflow.flow._compute.part import Part
from nodeflow.flow._compute.run import run
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from nodeflow._base.types import ColumnsLike
    from nodeflow.flow._types import ColumnsOfNodes, MessageLike, ReduceLike


def message_passing(
    flow: Flow,
    message: MessageLike,
    reduce: ReduceLike,
    update: ColumnsOfNodes | None = None,
    *,
    src: ColumnsLike,
    dst: ColumnsLike | None = None,
    edge: ColumnsLike | None = None,
) -> dict[str, Tensor]:
    """Do what ``NodeFlow.flow_compute`` does, with the columns given, and return the columns computed.

    No frame is read but that of the flow, and none is changed.

    Args:
        flow: the edges.
        message, reduce, update: as for ``flow_compute``.
        src: columns of the sources, ``[num_src, ...]`` each.
        dst: columns of the destinations, ``[num_dst, ...]`` each.
        edge: columns of the edges, ``[num_edges, ...]`` each, beside those of ``flow.data``.

    Returns the columns that ``reduce`` and ``update`` make, ``[num_dst, ...]`` each. Raises what ``flow_compute``
    raises, and ValueError for columns of another number of rows.

    >>> import torch
    >>> from nodeflow import flow_from_edges, fn
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> def middle(nodes):
    ...     return {"mid": nodes.mailbox["m"].mean(1)}
    >>> message_passing(flow, fn.copy_u("h", "m"), middle, src={"h": torch.eye(2)})
    {'mid': tensor([[0.5000, 0.5000]])}
    """
    source, target = flow.src_layer, flow.dst_layer
    inner = flow.between(_holding(source, src), _holding(target, dst), flow.layers)
    inner.data.update(edge or {})
    return run(Part.whole(inner), message, reduce, update)


def _holding(layer: Layer, columns: ColumnsLike | None) -> Layer:
    return layer.with_frame(Frame(layer.num_nodes, columns))
