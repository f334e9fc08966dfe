"""Frames in the way of DGL 0.4: schemes, initialisers, rows of some ids, and writing in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from nodeflow._rows.rows import take_rows
from nodeflow.flow import written
from nodeflow.graph import Frame

Initializer: TypeAlias = Callable[..., Tensor]
"""A function of shape, dtype, device and range of ids that makes rows of a column."""


class Scheme(NamedTuple):
    """Shape of a row and dtype of a column."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Space(NamedTuple):
    """Result of ``g.nodes[v]`` and ``g.edges[e]``: their columns ``data``."""

    data: MutableMapping[str, Tensor]


class Rows(MutableMapping[str, Tensor]):
    """The rows ``ids`` of the columns of a frame. Setting a column sets these rows, in a new tensor."""

    def __init__(self, frame: Frame, ids: Tensor, where: str) -> None:
        self._frame, self._ids, self._where = frame, ids, where

    def __getitem__(self, name: str) -> Tensor:
        return take_rows(self._frame[name], self._ids)

    def __setitem__(self, name: str, values: Any) -> None:
        column = Frame(len(self._ids), {name: values})[name]
        self._frame.update(written(self._frame, {name: column}, self._ids, self._where))

    def __delitem__(self, name: str) -> None:
        raise ValueError(f"column {name!r} cannot be deleted for some rows only: delete it from the whole frame")

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame)

    def __len__(self) -> int:
        return len(self._frame)


def schemes(frame: Frame) -> dict[str, Scheme]:
    """Return the scheme of every column."""
    return {name: Scheme(tuple(column.shape[1:]), column.dtype) for name, column in frame.items()}


def as_initializer(function: Initializer) -> Initializer:
    """Return DGL's initialiser, which takes a range of ids too, as a Frame takes it."""
    return lambda shape, dtype, device: function(shape, dtype, device, slice(0, shape[0]))


@contextmanager
def in_place(frame: Frame, wanted: bool) -> Iterator[None]:
    """Put columns that are replaced inside into the memory of the old ones, without gradient, where that is wanted."""
    before = frame.snapshot() if wanted else {}
    yield
    for name, old in before.items():
        new = frame.get(name)
        if new is not None and new is not old and new.shape == old.shape and new.dtype == old.dtype:
            with torch.no_grad():
                old.copy_(new)
            frame[name] = old
