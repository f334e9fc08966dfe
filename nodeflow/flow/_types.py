"""Names for the types that calls of a NodeFlow take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from nodeflow._core.base.checks import _All
from nodeflow._core.base.types import IdsLike
from nodeflow.flow._user_functions import EdgeBatch, NodeBatch
from nodeflow.fn import MessageFunction, ReduceFunction

FlowLike: TypeAlias = "int | tuple[int, int]"
"""A flow: its number, or the pair of layers it joins."""

RangeLike: TypeAlias = "int | slice | _All"
"""Some layers or flows: a number, a slice or ``ALL``."""

SomeIds: TypeAlias = "IdsLike | _All"
"""Local ids, or ``ALL``."""

NamesLike: TypeAlias = "_All | Sequence[str] | Mapping[Any, _All | Sequence[str]] | None"
"""Names of columns for all layers or flows, or by layer or flow; see
``NodeFlow.copy_from_parent``.
"""

ColumnsOfEdges: TypeAlias = Callable[[EdgeBatch], Mapping[str, Tensor]]
ColumnsOfNodes: TypeAlias = Callable[[NodeBatch], Mapping[str, Tensor]]
"""A reduce or an update function."""

# a function or several of them, for one flow; in the plural also one per flow
MessageLike: TypeAlias = (
    "MessageFunction | ColumnsOfEdges | Sequence[MessageFunction | ColumnsOfEdges]"
)
ReduceLike: TypeAlias = (
    "ReduceFunction | ColumnsOfNodes | Sequence[ReduceFunction | ColumnsOfNodes]"
)
MessagesLike: TypeAlias = "MessageLike | Sequence[MessageLike]"
ReducesLike: TypeAlias = "ReduceLike | Sequence[ReduceLike]"
Computation: TypeAlias = "tuple[MessageLike | None, ReduceLike | None, ColumnsOfNodes | None]"
UpdatesLike: TypeAlias = "ColumnsOfNodes | Sequence[ColumnsOfNodes | None] | None"
