"""Names for the types that calls of a NodeFlow take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from nodeflow._base.checks import _All
from nodeflow._base.types import IdsLike
from nodeflow.flow._compute.udf import EdgeBatch, NodeBatch
from nodeflow.fn import MessageFunction, ReduceFunction

FlowLike: TypeAlias = "int | tuple[int, int]"
"""A flow: its number, or the pair of layers it joins."""

RangeLike: TypeAlias = "int | slice | _All"
"""Some layers or flows: a number, a slice or ``ALL``."""

SomeIds: TypeAlias = "IdsLike | _All"
"""Local ids, or ``ALL``."""

NamesLike: TypeAlias = "_All | Sequence[str] | Mapping[Any, _All | Sequence[str]] | None"
"""Names of columns for all layers or flows, or by layer or flow; see ``NodeFlow.copy_from_parent``."""

ColumnsOfEdges: TypeAlias = Callable[[EdgeBatch], Mapping[str, Tensor]]
"""A function of edges that returns columns."""

ColumnsOfNodes: TypeAlias = Callable[[NodeBatch], Mapping[str, Tensor]]
"""A function of nodes that returns columns: a reduce or an update function."""

MessageLike: TypeAlias = "MessageFunction | ColumnsOfEdges | Sequence[MessageFunction | ColumnsOfEdges]"
"""A message function, or several."""

ReduceLike: TypeAlias = "ReduceFunction | ColumnsOfNodes | Sequence[ReduceFunction | ColumnsOfNodes]"
"""A reduce function, or several."""

MessagesLike: TypeAlias = "MessageLike | Sequence[MessageLike]"
"""A message function for all flows, or one per flow."""

ReducesLike: TypeAlias = "ReduceLike | Sequence[ReduceLike]"
"""A reduce function for all flows, or one per flow."""

UpdatesLike: TypeAlias = "ColumnsOfNodes | Sequence[ColumnsOfNodes | None] | None"
"""An update function for all flows, or one per flow."""
