"""Columns as lists of attributes and back, and undirected edges as pairs of directed ones, for several libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, _All, describe
from nodeflow._base.types import Array
from nodeflow._rows.rows import slice_rows, whole_column
from nodeflow.graph import Frame

Attributes: TypeAlias = Sequence[str] | Mapping[str, torch.dtype | None]
"""Attributes that become columns: names, or a dict from names to types of numbers."""


def library(name: str, title: str, how: str = "") -> Any:
    """Return a module that a converter needs; raises ImportError, which says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{title} is needed; {how or f'install it with: pip install {name}'}") from None


def as_array(column: Tensor, name: str) -> Array:
    """Return a column as an array; raises TypeError for types of numbers that numpy does not have."""
    try:
        return column.cpu().numpy()
    except TypeError:
        raise TypeError(
            f"numpy has no numbers of type {column.dtype}, which {name!r} has; convert it first, with .float()"
        ) from None


def chosen(names: Iterable[str] | _All, every: Iterable[str], argument: str) -> list[str]:
    """Return a list of names, ``every`` for ALL; raises TypeError for a single string."""
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of names, got the string {names!r}; write [{names!r}]")
    return list(every if isinstance(names, _All) else names)


def as_columns(
    names: Attributes, what: str, values_of: Callable[[str], Sequence[Any]], keys: Iterable[Any]
) -> dict[str, Tensor]:
    """Return attributes of all nodes or all edges (``what``) as columns; ``keys`` name these in errors.

    ``values_of`` returns the values of an attribute, or raises KeyError. TypeError for values that are no numbers, or
    lists of different lengths.
    """
    types = names if isinstance(names, Mapping) else dict.fromkeys(chosen(names, (), f"{what}_columns"))
    return {name: _column(name, values_of(name), keys, what, dtype) for name, dtype in types.items()}


def _column(name: str, values: Sequence[Any], keys: Iterable[Any], what: str, dtype: torch.dtype | None) -> Tensor:
    try:
        if len(values) and isinstance(values[0], (np.ndarray, Tensor)):
            rows = torch.stack([torch.as_tensor(value, device="cpu") for value in values])
            return rows if dtype is None else rows.to(dtype)
        return torch.tensor(values, dtype=dtype, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        words = f"the {what} attribute {name!r} must hold numbers, or lists of numbers of one length"
        for key, value in zip(keys, values, strict=True):
            if not _is_like(value, values[0]):
                raise TypeError(f"{words}, but {what} {key!r} has {describe(value)}") from None
        raise TypeError(f"{words}, of a type that torch has: {error}") from None


def _is_like(value: Any, first: Any) -> bool:
    """Whether a value consists of numbers, as many as the first value."""
    array, other = (np.asarray(v, dtype=object) for v in (value, first))
    return array.shape == other.shape and all(
        isinstance(v, (bool, int, float, complex, np.generic)) for v in array.flat
    )


def lists_of(frame: Frame, names: Sequence[str] | _All, what: str) -> dict[str, list[Any]]:
    """Return columns of nodes or edges (``what``) as lists with a number, or a list of numbers, per row."""
    columns = {name: whole_column(frame[name]).detach() for name in chosen(names, frame, f"{what}_columns")}
    return {name: (c if c.layout == torch.strided else c.to_dense()).tolist() for name, c in columns.items()}


def merged(frames: Iterable[tuple[Mapping[str, Tensor], str]]) -> dict[str, Tensor]:
    """Return every column once, from the first frame that has it.

    Raises ValueError with the words beside a later frame if the rows that it has of the column differ.
    """
    columns: dict[str, Tensor] = {}
    for frame, words in frames:
        for name, column in frame.items():
            if name in columns and not _same(slice_rows(columns[name], 0, len(column)), column):
                raise ValueError(f"column {name!r} of {words}")
            columns.setdefault(name, column)
    return columns


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout == torch.sparse_csr:
        parts = ("crow_indices", "col_indices", "values")
        return all(_same(getattr(one, part)(), getattr(other, part)()) for part in parts)
    return bool(((one == other) | ((one != one) & (other != other))).all())  # NaN is the same as NaN


def as_directed(ends: Sequence[tuple[int, int]], *, directed: bool) -> tuple[Ints, Ints, Ints]:
    """Return edges as directed ones: ``(src, dst, position in ends)``.

    The two directions of an undirected edge are next to each other; a self-loop becomes one edge.
    """
    src, dst = np.array(ends, np.int64).reshape(-1, 2).T
    copies = np.where(directed | (src == dst), 1, 2)
    edge = np.repeat(np.arange(len(src)), copies)
    turned = np.concatenate([np.zeros(1, bool), edge[1:] == edge[:-1]])[: len(edge)]
    return np.where(turned, dst[edge], src[edge]), np.where(turned, src[edge], dst[edge]), edge


def by_destination(src: Tensor, dst: Tensor, num_dst: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return ``indptr``, the sources by destination, and the order that sorts edges; None where they are sorted."""
    order = None if bool((dst[1:] >= dst[:-1]).all()) else torch.argsort(dst, stable=True)
    counts = torch.bincount(dst, minlength=num_dst) if len(dst) else dst.new_zeros(num_dst)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), src if order is None else src[order], order
