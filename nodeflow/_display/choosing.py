"""Numbers to draw by, which a user names: a column of a frame, or a function that gives a number per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from nodeflow._base.checks import check_num_rows, describe

T = TypeVar("T")

Choose: TypeAlias = "str | Callable[[T], Any] | None"
"""The name of a column, or a function of the object that has the rows (a layer, a flow, a graph)."""


def chosen(
    choice: str | Callable[[T], Any] | None,
    argument: str,
    owners: Sequence[T],
    frames: Sequence[Mapping[str, Tensor]],
    rows: Sequence[int],
    fetch: Callable[[Tensor], Tensor] = lambda column: column,
) -> list[list[float] | None]:
    """Return a list of numbers for every owner of rows; None for an owner without the column, or without a choice.

    ``frames`` and ``rows`` are the columns of the owners and their numbers of rows; ``fetch`` makes the rows that are
    drawn of a column. Raises KeyError for a column that no frame has, TypeError and ValueError for anything but a
    number per row; ``argument`` is its name.
    """
    if choice is None:
        return [None] * len(owners)
    if isinstance(choice, str):
        names = sorted({name for frame in frames for name in frame})
        if choice not in names:
            raise KeyError(f"{argument}: no column {choice!r}; there are {', '.join(map(repr, names)) or 'no columns'}")
        columns = [fetch(frame[choice]) if choice in frame else None for frame in frames]
    elif callable(choice):
        columns = [choice(owner) for owner in owners]
    else:
        raise TypeError(f"{argument} must be the name of a column or a function, got {describe(choice)}")
    return [None if f is None else _numbers(f, argument, size) for f, size in zip(columns, rows, strict=True)]


def _numbers(values: Any, argument: str, size: int) -> list[float]:
    numbers = torch.as_tensor(values).detach().cpu()
    if numbers.layout != torch.strided or numbers.ndim != 1 or numbers.is_complex():
        raise ValueError(f"{argument} must have one number per row, got {describe(numbers)}")
    check_num_rows(numbers.shape, argument, size, "node or edge")
    values_of_rows: list[float] = numbers.tolist()
    return values_of_rows


def names_of(ids: list[str], labels: list[float] | None) -> list[str]:
    """Return the texts of nodes: their labels, of three digits where these are fractions, or else their ids."""
    return ids if labels is None else [f"{x:.3g}" if isinstance(x, float) else str(x) for x in labels]
