"""Moving the tensors of a NodeFlow to a device, each one once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from torch import Tensor

from nodeflow.ops import Structure

Move: TypeAlias = Callable[[Any], Any]
"""Moves a tensor, a structure of edges or a frame to a device, and returns it there."""


def once(change: Move) -> Move:
    """Return ``change`` with a memory: tensors that layers and flows share are moved once and stay shared.

    The tensors of a batch with ``reuse=True`` are prefixes of one array. They become prefixes of the longest one, that
    of the inputs, which is moved first.
    """
    moved: dict[int, tuple[Any, Any]] = {}
    longest: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}

    def move(value: Any) -> Any:
        if id(value) not in moved:
            moved[id(value)] = (value, moved_now(value))  # holding the value keeps its id from being used again
        return moved[id(value)][1]

    def moved_now(value: Any) -> Any:
        if isinstance(value, Structure):
            return Structure(move(value.indptr), move(value.indices), value.num_src)
        if not isinstance(value, Tensor):
            return change(value)
        start = (value.data_ptr(), value.dtype, value.shape[1:])  # empty tensors all lie at address 0
        if start not in longest or len(longest[start][0]) < len(value):
            longest[start] = (value, change(value))
        whole, whole_moved = longest[start]
        return whole_moved if len(whole) == len(value) else whole_moved[: len(value)]

    return move
