"""Columns for the converters to and from all libraries: as arrays, chosen, and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import torch
from torch import Tensor

from nodeflow._core.base.checks import _All
from nodeflow._core.base.types import Array
from nodeflow._core.rows.rows import slice_rows, whole_column
from nodeflow._core.schema import Relation
from nodeflow.graph import Frame, Graph

Columns: TypeAlias = dict[str, Tensor]
Names: TypeAlias = Sequence[str] | _All
"""Names of columns, or ALL."""
PLAIN = {"node", ("node", "edge", "node")}
"""Types and relations of a graph without any, as ``Schema.of_one_type`` names them."""


def library(name: str, title: str, how: str = "") -> Any:
    """Return a module that a converter needs; raises ImportError, which says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f"{title} is needed; {how or f'install it with: pip install {name}'}"
        ) from None


def as_array(column: Tensor, name: str) -> Array:
    """Return a column as an array; raises TypeError for types of numbers that numpy does not
    have.
    """
    try:
        return column.cpu().numpy()
    except TypeError:
        raise TypeError(
            f"numpy has no numbers of type {column.dtype}, which {name!r} has; convert it first, "
            "with .float()"
        ) from None


def chosen(names: Iterable[str] | _All, every: Iterable[str], argument: str) -> list[str]:
    """Return a list of names, ``every`` for ALL; raises TypeError for a single string."""
    if isinstance(names, str):
        raise TypeError(
            f"{argument} must be a list of names, got the string {names!r}; write [{names!r}]"
        )
    return list(every if isinstance(names, _All) else names)


def merged(frames: Iterable[tuple[Mapping[str, Tensor], str]]) -> Columns:
    """Return every column once, from the first frame that has it; ValueError where a later one has
    other rows.
    """
    columns: Columns = {}
    for frame, words in frames:
        for name, column in frame.items():
            if name in columns and not _same(slice_rows(columns[name], 0, len(column)), column):
                raise ValueError(f"column {name!r} of {words}")
            # later frames are no larger: they have the first rows of this one
            columns.setdefault(name, column)
    return columns


def _same(one: Tensor, other: Tensor) -> bool:
    try:
        # types, shapes and layouts too; NaN is the same as NaN
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


def columns_of_type(
    whole: Frame, own: Frame, cut: Callable[[Tensor], Tensor], of: object
) -> Columns:
    """Return the columns of a type: its own, and its rows of those of all types, which ``cut``
    takes.
    """
    columns = {name: whole_column(column) for name, column in own.items()}
    if whole is own:
        return columns
    if both := sorted(set(whole) & set(own)):
        raise ValueError(
            f"column {both[0]!r} is one of {of!r} and one of all types; delete one, or rename it"
        )
    return {name: cut(whole_column(column)) for name, column in whole.items()} | columns


def of_types(
    graph: Graph,
) -> tuple[dict[str, tuple[int, Columns]], dict[Relation, tuple[Tensor, Tensor, Columns]]]:
    """Return the size and columns of each node type, and the ends, in ids of their types, and
    columns of relations.
    """
    nodes = {}
    edges = {}
    ends = graph.edges()
    for name, part in graph.nodes.items():
        cut = partial(slice_rows, start=part.ids.start, stop=part.ids.stop)
        nodes[name] = len(part), columns_of_type(graph.ndata, part.data, cut, name)
    for relation, of in graph.relations.items():
        cut = partial(slice_rows, start=of.ids.start, stop=of.ids.stop)
        src, dst = (
            cut(e) - graph.nodes[t].ids.start for e, t in zip(ends, relation[::2], strict=True)
        )
        edges[relation] = src, dst, columns_of_type(graph.edata, of.data, cut, relation)
    return nodes, edges


def by_destination(src: Tensor, dst: Tensor, num_dst: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return ``indptr``, the sources by destination, and the order that sorts edges; None where
    they are sorted.
    """
    order = None
    # samplers write edges by destination: sorting is for those of others
    if bool((dst[1:] < dst[:-1]).any()):
        order = torch.argsort(dst, stable=True)
        src = src[order]
    indptr = dst.new_zeros(num_dst + 1)
    # bincount gives none a count of another type
    if len(dst):
        indptr[1:] = torch.bincount(dst, minlength=num_dst).cumsum(0)
    return indptr, src, order
