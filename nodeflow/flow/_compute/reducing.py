"""Messages of a part of a flow, and their reduction per destination, by built-in and by user-defined functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nodeflow import ops
from nodeflow.flow._compute.guard import columns_of, explained, name_of
from nodeflow.flow._compute.part import Part
from nodeflow.flow._compute.udf import Columns, NodeBatch, Words
from nodeflow.fn import MessageFunction, ReduceFunction

if TYPE_CHECKING:
    from nodeflow.flow._types import ColumnsOfEdges, ColumnsOfNodes


class Messages(Mapping[str, Tensor]):
    """The messages of a part, a row per edge in the structure's order.

    User-defined functions run at once; a built-in one makes its messages when they are asked for.
    """

    def __init__(self, part: Part, functions: Sequence[MessageFunction | ColumnsOfEdges]) -> None:
        self._part = part
        self._made: dict[str, Tensor] = {}
        self.builtin: dict[str, MessageFunction] = {}
        self.names: dict[str, None] = {}  # of all messages, none of them made by asking
        for function in functions:
            if isinstance(function, MessageFunction):
                self._claim(function.out)
                self.builtin[function.out] = function
                continue
            edges = part.edge_batch()
            with explained(function, "message function", part, edges.src, edges.dst, edges.data):
                columns = columns_of(function(edges), len(edges), function, "message function", "edge")
            for name, column in columns.items():
                self._claim(name)
                if column.layout != torch.strided:
                    raise TypeError(
                        f"message {name!r} is a sparse matrix, but messages are combined dense: .to_dense() it"
                    )
                self._made[name] = part.as_stored(column)

    def _claim(self, name: str) -> None:
        if name in self.names:
            raise ValueError(f"two message functions make message {name!r}: give one of them another name")
        self.names[name] = None

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._made:
            function = self.builtin[name]
            with explained(function, "message function", self._part):
                self._made[name] = ops.message(
                    self._part.structure, *operands(self._part, function), names=self.words(name)
                )
        return self._made[name]

    def words(self, name: str) -> tuple[Words, Words]:
        """Names of the operands of a built-in message function, for error messages."""
        function = self.builtin[name]
        left, right = function.lhs_kind, function.rhs_kind or function.lhs_kind
        return Words(_columns(self._part, left), function.lhs), Words(_columns(self._part, right), function.rhs or "")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def reduce_messages(part: Part, messages: Messages, reducer: ReduceFunction | ColumnsOfNodes) -> dict[str, Tensor]:
    """Reduce messages per destination with one reduce function: columns with a row per destination of the part."""
    if not isinstance(reducer, ReduceFunction):
        return _by_degree(part, messages, reducer)
    name, structure = reducer.message, part.structure
    if name not in messages:
        words = ", ".join(map(repr, messages)) or "none"
        raise ValueError(
            f"the reduce function {reducer.reduce} takes message {name!r}, but the messages made are {words}: the out "
            "of the message function and the message of the reduce function must be the same name"
        )
    if name not in messages.builtin:
        with explained(reducer, "reduce function", part):
            return {reducer.out: ops.segment_reduce(structure, messages[name], reducer.reduce)}
    function = messages.builtin[name]
    with explained(function, "message function", part):
        inputs = operands(part, function)
        return {reducer.out: ops.message_reduce(structure, *inputs, reducer.reduce, names=messages.words(name))}


def operands(part: Part, function: MessageFunction) -> tuple[str, str, Tensor, str | None, Tensor | None]:
    """Arguments of ``ops.message`` for a built-in function: its columns, read from the frames."""
    lhs = _columns(part, function.lhs_kind)[function.lhs]
    rhs = None
    if function.rhs_kind is not None and function.rhs is not None:
        rhs = _columns(part, function.rhs_kind)[function.rhs]
    return function.op, function.lhs_kind, lhs, function.rhs_kind, rhs


def _columns(part: Part, kind: str) -> Columns:
    return part.src if kind == "u" else part.dst if kind == "v" else part.data


def _at(columns: Callable[[str], list[Tensor]], k: int) -> Callable[[str], Tensor]:
    return lambda name: columns(name)[k]


def _by_degree(part: Part, messages: Messages, reducer: ColumnsOfNodes) -> dict[str, Tensor]:
    """Call a user-defined reduce function once per distinct in-degree."""
    structure = part.structure
    buckets = structure.buckets()
    rows = [bucket.rows for bucket in buckets]

    @cache
    def mailboxes(name: str) -> list[Tensor]:
        copied = _copied_from_sources(part, messages, name)
        if copied is not None:
            return ops.split_sources(structure, copied) or [copied[:0].unsqueeze(1)]
        return ops.split_messages(structure, messages[name]) or [messages[name][:0].unsqueeze(1)]

    @cache
    def columns(name: str) -> list[Tensor]:
        return ops.split_rows(structure, part.dst[name]) or [part.dst[name][:0]]

    if not buckets:  # a call without nodes gives the names and shapes of the columns
        rows = [torch.zeros(0, dtype=torch.int64, device=structure.device)]
    results: list[dict[str, Tensor]] = []
    for k, row in enumerate(rows):
        seen = Columns(part.dst, part.dst.where, _at(columns, k))
        box = Columns(messages.names, "the mailbox", _at(mailboxes, k))
        nodes = NodeBatch(seen, partial(part.some_destinations, row), len(row), box)
        degree = buckets[k].degree if buckets else 1
        with explained(reducer, "reduce function", f"{part}, {len(row)} nodes of degree {degree}", seen, box):
            results.append(columns_of(reducer(nodes), len(nodes), reducer, "reduce function", "node"))
            if results[-1].keys() != results[0].keys():
                raise ValueError(
                    f"the reduce function {name_of(reducer)} must return the same columns for every degree, got "
                    f"{sorted(results[0])} and {sorted(results[-1])}"
                )
            for name, values in results[-1].items():
                if values.shape[1:] != results[0][name].shape[1:]:
                    raise ValueError(
                        f"the reduce function {name_of(reducer)} must return rows of one shape for every degree, got "
                        f"{tuple(results[0][name].shape[1:])} for degree {buckets[0].degree} and "
                        f"{tuple(values.shape[1:])} for degree {degree} in column {name!r}: reduce over dimension 1"
                    )
    with explained(reducer, "reduce function", part):
        joined = {name: ops.join_rows(structure, [columns[name] for columns in results]) for name in results[0]}
        return {name: _initial_without_edges(part, name, column) for name, column in joined.items()}


def _copied_from_sources(part: Part, messages: Messages, name: str) -> Tensor | None:
    """Return the column that message ``name`` is a copy of, where it is one of the sources without gradient."""
    function = messages.builtin.get(name)
    if function is None or (function.op, function.lhs_kind) != ("copy", "u") or function.lhs not in part.src:
        return None
    column = part.src[function.lhs]
    plain = isinstance(column, Tensor) and column.layout == torch.strided and not column.requires_grad
    return column if plain else None


def _initial_without_edges(part: Part, name: str, column: Tensor) -> Tensor:
    """Return a reduced column in which destinations without edges are initial, where the frame says how."""
    frame = part.flow.dst_layer.data
    if not frame.has_initializer(name):
        return column
    alone = (part.structure.in_degrees == 0).nonzero().squeeze(1)
    return column.index_copy(0, alone, frame.initial(name, len(alone), column))
