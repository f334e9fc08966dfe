"""Messages of a part of a flow, and their reduction per destination, by built-in and by
user-defined functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from nodeflow import ops
from nodeflow.flow._part import Part
from nodeflow.flow._types import ColumnsOfEdges, ColumnsOfNodes
from nodeflow.flow._user_functions import Columns, NodeBatch, columns_of, explained, name_of
from nodeflow.fn import MessageFunction, ReduceFunction


class Messages(Columns):
    """The messages of a part, a row per edge in the structure's order.

    User-defined functions run at once; a built-in one makes its messages when they are asked for.
    """

    __slots__ = ("builtin", "part")

    def __init__(self, part: Part, functions: Sequence[MessageFunction | ColumnsOfEdges]) -> None:
        # of all messages, none of them made by asking
        names: dict[str, object] = {}
        builtin: dict[str, MessageFunction] = {}
        # no reference to this object itself: such a circle would keep messages alive after the call
        super().__init__(
            names, "the mailbox", lambda name: built_in(part, builtin[name], ops.message)
        )
        self.part = part
        self.builtin = builtin

        def claim(name: str) -> None:
            if name in names:
                raise ValueError(
                    f"two message functions make message {name!r}: give one of them another name"
                )
            names[name] = None

        for function in functions:
            if isinstance(function, MessageFunction):
                claim(function.out)
                builtin[function.out] = function
                continue
            edges = part.edge_batch()
            with explained(function, "message function", part, edges.src, edges.dst, edges.data):
                columns = columns_of(
                    function(edges), len(edges), function, "message function", "edge"
                )
            for name, column in columns.items():
                claim(name)
                if column.layout != torch.strided:
                    raise TypeError(
                        f"message {name!r} is a sparse matrix, but messages are combined dense: "
                        ".to_dense() it"
                    )
                self._seen[name] = part.as_stored(column)


def built_in(
    part: Part, function: MessageFunction, compute: Callable[..., Tensor], *reduce: str
) -> Tensor:
    """Call ``ops.message``, or ``ops.message_reduce`` with a reduction, for the columns that a
    function combines.
    """
    sides = {"u": part.src, "v": part.dst, "e": part.data}
    left = sides[function.lhs_kind]
    right = sides[function.rhs_kind or "u"]
    names = f"column {function.lhs!r} of {left.where}", f"column {function.rhs!r} of {right.where}"
    with explained(function, "message function", part):
        lhs = left[function.lhs]
        if function.rhs is None:
            rhs = None
        else:
            rhs = right[function.rhs]
        kinds = (function.lhs_kind, lhs, function.rhs_kind, rhs)
        return compute(part.structure, function.op, *kinds, *reduce, names=names)


def reduce_messages(
    messages: Messages, reducer: ReduceFunction | ColumnsOfNodes
) -> dict[str, Tensor]:
    """Reduce messages per destination with one reduce function: columns with a row per destination
    of the part.
    """
    if not isinstance(reducer, ReduceFunction):
        return _by_degree(messages, reducer)
    part = messages.part
    name = reducer.message
    if name not in messages:
        words = ", ".join(map(repr, messages)) or "none"
        raise ValueError(
            f"the reduce function {reducer.reduce} takes message {name!r}, but the messages made "
            f"are {words}: the out of the message function and the message of the reduce function "
            "must be the same name"
        )
    if name in messages.builtin:
        return {
            reducer.out: built_in(part, messages.builtin[name], ops.message_reduce, reducer.reduce)
        }
    with explained(reducer, "reduce function", part):
        return {reducer.out: ops.segment_reduce(part.structure, messages[name], reducer.reduce)}


def _by_degree(messages: Messages, reducer: ColumnsOfNodes) -> dict[str, Tensor]:
    """Call a user-defined reduce function once per distinct in-degree."""
    part = messages.part
    structure = messages.part.structure
    groups = [(bucket.rows, bucket.degree) for bucket in structure.buckets()]
    # a call without nodes gives the names and shapes of the columns
    if not groups:
        groups = [(torch.zeros(0, dtype=torch.int64, device=structure.device), 1)]

    @cache
    def mailboxes(name: str) -> list[Tensor]:
        copied = _copied_from_sources(messages, name)
        if copied is not None:
            return ops.split_sources(structure, copied) or [copied[:0].unsqueeze(1)]
        return ops.split_messages(structure, messages[name]) or [messages[name][:0].unsqueeze(1)]

    @cache
    def columns(name: str) -> list[Tensor]:
        return ops.split_rows(structure, part.dst[name]) or [part.dst[name][:0]]

    results = []

    def call(k: int, rows: Tensor, degree: int) -> None:
        seen = Columns(part.dst, part.dst.where, lambda name: columns(name)[k])
        box = Columns(messages, messages.where, lambda name: mailboxes(name)[k])
        nodes = NodeBatch(seen, lambda: part.destinations.index_select(0, rows), len(rows), box)
        where = f"{part}, {len(rows)} nodes of degree {degree}"
        with explained(reducer, "reduce function", where, seen, box):
            reduced = columns_of(reducer(nodes), len(nodes), reducer, "reduce function", "node")
            results.append(reduced)
            first = results[0]
            same_names = reduced.keys() == first.keys()
            if not same_names or any(reduced[n].shape[1:] != first[n].shape[1:] for n in first):
                raise ValueError(
                    f"the reduce function {name_of(reducer)} must return the same columns for "
                    f"every degree, with rows of one shape, got others for degree {degree} than "
                    f"for degree {groups[0][1]}: reduce over dimension 1"
                )

    for k, (rows, degree) in enumerate(groups):
        call(k, rows, degree)
    with explained(reducer, "reduce function", part):
        columns_by_name = {}
        for name in results[0]:
            joined = ops.join_rows(structure, [reduced[name] for reduced in results])
            columns_by_name[name] = _initial_without_edges(part, name, joined)
        return columns_by_name


def _copied_from_sources(messages: Messages, name: str) -> Tensor | None:
    """Return the column that message ``name`` is a copy of, where it is one of the sources without
    gradient.
    """
    function = messages.builtin.get(name)
    sources = messages.part.src
    if function is None or (function.op, function.lhs_kind) != ("copy", "u"):
        return None
    column = sources.get(function.lhs)
    if column is None or column.layout != torch.strided or column.requires_grad:
        return None
    return column


def _initial_without_edges(part: Part, name: str, column: Tensor) -> Tensor:
    """Return a reduced column in which destinations without edges are initial, where the frame says
    how.
    """
    frame = part.flow.dst_layer.data
    if not frame.has_initializer(name):
        return column
    alone = (part.structure.in_degrees == 0).nonzero().squeeze(1)
    return column.index_copy(0, alone, frame.initial(name, len(alone), column))
