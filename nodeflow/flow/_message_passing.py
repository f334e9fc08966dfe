"""Message passing: calls of a NodeFlow that run functions on edges and nodes, and store columns.

``_part`` holds the edges and nodes that one call computes, ``_messages`` makes messages and reduces
them, ``_user_functions`` shows batches of nodes and edges to functions of users, checks what they
return, and restores the frames when one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    ALL,
    Ints,
    _All,
    as_ids,
    as_index,
    check_type,
    describe,
    first_true,
)
from nodeflow.flow._flow import Flow
from nodeflow.flow._messages import Messages, reduce_messages
from nodeflow.flow._part import Part, columns_at, written
from nodeflow.flow._user_functions import Columns, NodeBatch, atomic, columns_of, explained
from nodeflow.fn import MessageFunction, ReduceFunction
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from nodeflow._core.base.types import ColumnsLike
    from nodeflow.flow._layer import Layer
    from nodeflow.flow._node_flow import NodeFlow
    from nodeflow.flow._types import (
        ColumnsOfEdges,
        ColumnsOfNodes,
        FlowLike,
        MessageLike,
        MessagesLike,
        RangeLike,
        ReduceLike,
        ReducesLike,
        SomeIds,
        UpdatesLike,
    )


def flow_compute(
    batch: NodeFlow,
    flow: FlowLike,
    message: MessageLike,
    reduce: ReduceLike,
    update: ColumnsOfNodes | None = None,
    v: SomeIds = ALL,
) -> None:
    """Send messages along a flow, reduce them per destination, and update the destinations.

    Args:
        flow: flow number, or the pair ``(i, j)`` of the layers it joins.
        message: a built-in of ``nodeflow.fn``, a function of ``edges`` that returns columns, or a
            list of them.
        reduce: a built-in of ``nodeflow.fn``, a function of ``nodes`` (with ``nodes.mailbox``) that
            returns columns, or a list of them. A function is called once per distinct in-degree;
            destinations without edges get 0. When no destination has an edge it is called once,
            with no nodes and degree 1, to learn the columns.
        update: any callable or module that takes ``nodes`` and returns columns; None for none.
        v: distinct local ids of the destinations to compute; the other rows stay (initial in a new
            column, see
        ``Frame.set_initializer``).

    The reduced columns and those returned by ``update`` are stored in the destination layer's
    frame. If anything raises, no frame has changed. Raises ValueError or TypeError for functions
    that do not fit together, KeyError for unknown columns, IndexError for unknown flows or nodes.
    An error in one of the functions gets notes that say where.
    """
    chosen = _flow(batch, flow)
    if v is ALL:
        part = Part(chosen)
    else:
        part = Part.of_destinations(chosen, distinct(v, "v", chosen.num_dst, "node"))
    with atomic(batch):
        run(part, message, reduce, update)


def flow_send_and_recv(
    batch: NodeFlow,
    flow: FlowLike,
    edges: SomeIds,
    message: MessageLike,
    reduce: ReduceLike,
    update: ColumnsOfNodes | None = None,
) -> None:
    """Like ``flow_compute`` with messages on the given edges only (distinct local edge ids, or
    ``ALL``), in any order.

    Only destinations that receive a message are computed and updated. Message functions see the
    edges in the order given.
    """
    chosen = _flow(batch, flow)
    if edges is ALL:
        ids = np.arange(chosen.num_edges)
    else:
        ids = distinct(edges, "edges", chosen.num_edges, "edge")
    with atomic(batch):
        run(Part.of_edges(chosen, ids), message, reduce, update)


def apply_layers(batch: NodeFlow, layer: RangeLike, func: ColumnsOfNodes, v: SomeIds = ALL) -> None:
    """Apply ``func`` to the nodes of a layer (a number, a slice or ``ALL``) and store the columns
    it returns.

    ``v``: distinct local ids of the nodes to apply it to; the other rows stay (initial in a new
        column, see ``Frame.set_initializer``).
    """
    numbers = _numbers(layer, "layer", batch.num_layers)
    with atomic(batch):
        for i in numbers:
            apply_to_layer(batch.layers[i], f"layer {i}", func, v, batch.device)


def apply_flows(
    batch: NodeFlow,
    flow: RangeLike | tuple[int, int],
    func: MessageFunction | ColumnsOfEdges,
    edges: SomeIds = ALL,
) -> None:
    """Apply ``func`` to the edges of a flow (a number, a pair of layers, a slice or ``ALL``), store
    what it returns.

    ``func`` takes ``edges`` and returns columns, or is a built-in message function, whose messages
    become the column named by its ``out``. ``edges``: distinct local edge ids, seen in this order;
    the other rows stay (0 in a new column).
    """
    keys = [flow] if isinstance(flow, tuple) else _numbers(flow, "flow", batch.num_flows)
    with atomic(batch):
        for chosen in [batch.flows[key] for key in keys]:
            if edges is ALL:
                part = Part(chosen)
            else:
                part = Part.of_edges(chosen, distinct(edges, "edges", chosen.num_edges, "edge"))
            columns = dict(Messages(part, [func]))
            chosen.data.update(written(chosen.data, columns, part.edges, part.data.where))


def forward(
    batch: NodeFlow,
    message: MessagesLike,
    reduce: ReducesLike,
    update: UpdatesLike = None,
    flows: RangeLike = ALL,
) -> None:
    """Run ``flow_compute`` over a range of flows (a number, a slice or ``ALL``), in order.

    Each of ``message``, ``reduce`` and ``update`` is one function for all flows, or a list with one
    entry per flow. Raises ValueError for a list of another length. If anything raises, no frame has
    changed.
    """
    numbers = _numbers(flows, "flows", batch.num_flows)
    count = len(numbers)
    messages = _per_flow(message, "message", count)
    reduces = _per_flow(reduce, "reduce", count)
    updates = _per_flow(update, "update", count)
    with atomic(batch):
        for i, *functions in zip(numbers, messages, reduces, updates, strict=True):
            run(Part(batch.flows[i]), *functions)


def register_layer_computation(
    batch: NodeFlow,
    layer: int,
    message: MessageLike | None = None,
    reduce: ReduceLike | None = None,
    update: ColumnsOfNodes | None = None,
) -> None:
    """Set how a layer is computed from the one before it; ``compute`` runs all such computations in
    layer order.

    Arguments are those of ``flow_compute``. With ``update`` alone, which is all that layer 0 takes,
    ``compute`` applies it to the layer as ``apply_layers`` does. Another call for the same layer
    replaces the first.

    Raises ValueError for functions that are missing or too many.
    """
    i = as_index(layer, "layer", batch.num_layers)
    if (message is None) != (reduce is None) or (message is None and update is None):
        raise ValueError(
            f"layer {i} needs a message and a reduce function, or an update function alone"
        )
    if i == 0 and message is not None:
        raise ValueError(
            "layer 0 has no flow into it, so it takes an update function only: leave out message "
            "and reduce"
        )
    batch.computations[i] = message, reduce, update


def compute(batch: NodeFlow) -> None:
    """Compute every layer that has a registered computation, in layer order: layer i through flow i
    - 1.

    Raises ValueError when nothing is registered. If anything raises, no frame has changed.
    """
    if not batch.computations:
        raise ValueError(
            "no layer has a computation: call register_layer_computation(layer, ...) first"
        )
    with atomic(batch):
        for layer in sorted(batch.computations):
            message, reduce, update = batch.computations[layer]
            if message is None or reduce is None:
                apply_to_layer(batch.layers[layer], f"layer {layer}", update, ALL, batch.device)
            else:
                run(Part(batch.flows[layer - 1]), message, reduce, update)


def run(
    part: Part, message: MessageLike, reduce: ReduceLike, update: ColumnsOfNodes | None
) -> dict[str, Tensor]:
    """Run message, reduce and update functions on a part of a flow, store the columns, and return
    them.
    """
    messages = Messages(part, _functions(message, "message", ReduceFunction))
    columns = {}
    for reducer in _functions(reduce, "reduce", MessageFunction):
        columns.update(reduce_messages(messages, reducer))
    frame = part.flow.dst_layer.data
    where = part.dst.where
    if update is not None:
        # an update sees reduced columns in place of stored ones of that name
        seen = Columns({**dict.fromkeys(part.dst), **columns}, where, part.dst.__getitem__)
        seen.keep(columns)
        nodes = NodeBatch(seen, lambda: part.destinations, part.structure.num_dst)
        with explained(update, "update function", part, nodes.data):
            columns.update(columns_of(update(nodes), len(nodes), update, "update function", "node"))
    frame.update(written(frame, columns, part.rows, where))
    return columns


@checked
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
    """Do what ``NodeFlow.flow_compute`` does, with the columns given, and return the columns
    computed.

    No frame is read but that of the flow, and none is changed.

    Args:
        flow: the edges.
        message, reduce, update: as for ``flow_compute``.
        src: columns of the sources, ``[num_src, ...]`` each.
        dst: columns of the destinations, ``[num_dst, ...]`` each; a Frame brings its initializers
            too.
        edge: columns of the edges, ``[num_edges, ...]`` each, beside those of ``flow.data``.

    Returns the columns that ``reduce`` and ``update`` make, ``[num_dst, ...]`` each. Raises what
    ``flow_compute`` raises, and ValueError for columns of another number of rows.

    >>> import torch
    >>> from nodeflow import flow_from_edges, fn
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> def middle(nodes):
    ...     return {"mid": nodes.mailbox["m"].mean(1)}
    >>> message_passing(flow, fn.copy_u("h", "m"), middle, src={"h": torch.eye(2)})
    {'mid': tensor([[0.5000, 0.5000]])}
    """
    source = flow.src_layer.with_frame(Frame(flow.num_src, src))
    # raises for columns of another length
    columns = Frame(flow.num_dst, dst)
    target = flow.dst_layer.with_frame(dst.copy() if isinstance(dst, Frame) else columns)
    inner = flow.between(source, target, flow.layers)
    inner.data.update(edge or {})
    return run(Part(inner), message, reduce, update)


def apply_to_layer(
    layer: Layer, where: str, func: Any, v: SomeIds, device: torch.device | str = "cpu"
) -> None:
    """Apply a function to nodes of a layer, which errors call ``where``, and store its columns."""
    check_type(func, "func", Callable, "a function or module that takes nodes")
    part_rows = None
    if v is not ALL:
        part_rows = torch.from_numpy(distinct(v, "v", layer.num_nodes, "node")).to(device)
    rows = torch.arange(layer.num_nodes, device=device) if part_rows is None else part_rows
    nodes = NodeBatch(columns_at(layer.data, where, part_rows), lambda: rows, len(rows))
    with explained(func, "function", f"{where} ({layer.num_nodes} nodes)", nodes.data):
        columns = columns_of(func(nodes), len(nodes), func, "function", "node")
    layer.data.update(written(layer.data, columns, part_rows, where))


def _flow(batch: NodeFlow, flow: FlowLike | RangeLike) -> Flow:
    if isinstance(flow, (slice, _All)):
        raise TypeError(
            "one flow is computed at a time: give its number or a pair of layers, or call forward()"
        )
    return batch.flows[flow]


def distinct(value: object, name: str, upper: int, what: str) -> Ints:
    """Return ``value`` as ids; raises ValueError for an id that occurs twice."""
    ids = as_ids(value, name, upper, what)
    again = np.ones(len(ids), np.bool_)
    again[np.unique(ids, return_index=True)[1]] = False
    if (index := first_true(again)) is not None:
        raise ValueError(
            f"{name}[{index}] names {what} {ids[index]} again: every {what} may be given once"
        )
    return ids


def _numbers(value: RangeLike, name: str, size: int) -> Sequence[int]:
    if value is ALL:
        return range(size)
    if isinstance(value, slice):
        return range(size)[value]
    return [as_index(value, name, size)]


def _per_flow(functions: Any, name: str, count: int) -> Sequence[Any]:
    if not isinstance(functions, (list, tuple)):
        return [functions] * count
    if len(functions) != count:
        raise ValueError(
            f"{name} has {len(functions)} functions, but {count} flows are run: give one, or one "
            "per flow"
        )
    return functions


def _functions(value: Any, role: str, other: type) -> Sequence[Any]:
    """One function or a list of them, as a list of functions of the right kind."""
    built_ins = (MessageFunction, ReduceFunction)
    # the usual case, quickly
    if type(value) in built_ins and type(value) is not other:
        return (value,)
    functions = value if isinstance(value, (list, tuple)) else [value]
    if not functions:
        raise ValueError(f"{role} is an empty list: give at least one {role} function")
    for function in functions:
        if isinstance(function, other) or not (callable(function) or type(function) in built_ins):
            raise TypeError(
                f"{role} must be a built-in {role} function of nodeflow.fn or a function of your "
                f"own, got {describe(function)}"
            )
    return functions
