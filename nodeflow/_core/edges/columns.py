"""Columns of a graph that samplers read: weights, probabilities, types and times of edges, and edge
filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_array, check_type, describe, first_true
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array, EdgeFilter
from nodeflow._core.peers.held_part import GraphOfPeers, HeldPart
from nodeflow._core.random import hash_ids
from nodeflow._core.rows.rows import Rows, fetch_rows, whole_column


def edge_column(graph: GraphOfPeers, name: str, argument: str, other: float | None = None) -> Array:
    """Return the edge column ``name`` as an array ``[num_edges]``, shared; ``argument`` is what
    errors call it.

    It is a column of all edges or, where there is none, of relations; edges of the other relations
    have ``other``, None if they must not be. Of a graph that lies on several processes, this and
    the functions below return the entries of the edges held here.
    """
    check_type(name, argument, str, "the name of a column of graph.edata")
    if name in graph.edata:
        return _as_entries(graph.held_part.edata[name], name, argument)
    parts = graph.relations.values()
    without = [part.name for part in parts if name not in part.data]
    if len(without) == len(parts):
        names = {f"{column} of {part.name[1]}" for part in parts for column in part.data}
        raise KeyError(
            f"{argument}: graph.edata has no column {name!r}; it has "
            f"{', '.join(graph.edata) or 'none'}; relations have {', '.join(sorted(names))}"
        )
    if other is None and without:
        raise KeyError(
            f"{argument}: every relation must have the column {name!r}; without it are {without}"
        )
    columns = columns_of_relations(graph, name)
    numbers = [_as_entries(rows, name, argument) for _, rows in columns]
    entries = np.full(graph.held_part.num_edges, other or 0, np.result_type(*numbers))
    for (places, _), of_relation in zip(columns, numbers, strict=True):
        entries[places] = of_relation
    return entries


def columns_of_relations(graph: GraphOfPeers, name: str) -> list[tuple[Ints, Tensor]]:
    """Return which of the edges held here each relation with a column ``name`` has, ascending, and
    their rows.
    """
    held = graph.held_part
    parts = [part for part in held.relations.values() if name in part.data]
    if not parts:
        return []
    # a relation is a range of parent edge ids
    eid = held.whole.edge_ids_of(np.arange(held.num_edges))
    columns = []
    for part in parts:
        places = np.flatnonzero((eid >= part.ids.start) & (eid < part.ids.stop))
        rows = torch.from_numpy(eid[places] - part.ids.start)
        columns.append((places, fetch_rows(part.data[name], rows)))
    return columns


def _as_entries(column: Tensor | Rows, name: str, argument: str) -> Array:
    column = whole_column(column)
    if column.layout != torch.strided or column.ndim != 1:
        raise ValueError(
            f"{argument}: the edge column {name!r} must have one number per edge, got "
            f"{describe(column)}"
        )
    column = column.detach().cpu()
    if column.is_floating_point() and column.dtype not in (torch.float16, torch.float64):
        column = column.float()  # numpy has no bfloat16 and the like
    return column.numpy()


def is_float64(graph: GraphOfPeers, name: str) -> bool:
    """Whether an edge column, also of one relation, is float64: estimator weights then are, too."""
    frames = [graph.edata]
    if name not in graph.edata:
        frames = [part.data for part in graph.relations.values()]
    return any(frame[name].dtype == torch.float64 for frame in frames if name in frame)


def edge_numbers(graph: GraphOfPeers, name: str, argument: str, *, signed: bool = True) -> Array:
    """Return an edge column of finite numbers as float32 or float64 ``[num_edges]``, shared where
    it is one already.

    Raises ValueError for a value that is not finite or, unless ``signed``, negative; the error
    names the first such edge. Numbers must be 0 or have sizes from 1e-30 to 1e30; those without
    sign, 1e-280 to 1e280. Edges of relations without the column have 1.
    """
    column = edge_column(graph, name, argument, 1)
    if column.dtype.kind not in "biuf":
        raise TypeError(
            f"{argument}: the edge column {name!r} must hold real numbers, got dtype {column.dtype}"
        )
    if column.dtype not in (np.float32, np.float64):
        column = column.astype(np.float32 if column.dtype == np.float16 else np.float64)
    words = f"{argument}: the edge column {name!r} must"
    check_edges(graph, column, ~np.isfinite(column), f"{words} be finite")
    if not signed:
        check_edges(graph, column, column < 0, f"{words} not be negative")
    # Numbers of either sign are weights of sums, which layers and full passes round to the type of
    # the rows, as a rule float32. Others are probabilities, of which float64 is made: float32
    # numbers are all within its bounds.
    least, most = (1e-30, 1e30) if signed else (1e-280, 1e280)
    if signed or column.dtype == np.float64:
        sizes = np.abs(column)
        wrong = (sizes > most) | ((sizes < least) & (column != 0))
        rule = f"{words} hold 0 or sizes from {least} to {most}, so that sums neither overflow"
        check_edges(graph, column, wrong, f"{rule} nor vanish; multiply it by a constant")
    return column


def check_edges(graph: GraphOfPeers, column: Array, wrong: NDArray[np.bool_], rule: str) -> None:
    """Raise ValueError for the first of the edges held here whose entry in ``column`` is wrong, by
    its parent id.
    """
    if (i := first_true(wrong)) is not None:
        edge = graph.held_part.whole.edge_ids_of(np.array([i]))[0]
        raise ValueError(f"{rule}, but edge {edge} has {column[i]}")


def edge_integers(graph: GraphOfPeers, name: str, argument: str) -> Ints:
    """Return an edge column of integers as int64 ``[num_edges]``; raises TypeError for floats."""
    column = edge_column(graph, name, argument)
    if column.dtype.kind not in "iu":
        raise TypeError(
            f"{argument}: the edge column {name!r} must hold integers, got dtype {column.dtype}"
        )
    return column.astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeMask(Frozen):
    """The edges that a sampler may draw: a bool array ``[num_edges]`` by edge id. It prints as its
    size and a hash.

    On a distributed graph the mask covers the edges that ``held_part`` has; ``source`` is what it
    was made of, so that it can be made for others. ``words`` are the same on every rank.
    """

    mask: NDArray[np.bool_]
    words: Lazy[str]
    held_part: HeldPart | None = None
    source: EdgeFilter | None = None

    def __repr__(self) -> str:
        return f"EdgeMask({self.words.get()})"


def edge_mask(graph: GraphOfPeers, value: EdgeFilter | EdgeMask | None) -> EdgeMask | None:
    """Read a filter: the name of a bool column, a mask ``[num_edges]``, a function of
    ``graph.edata``, None for all.

    Of a column of some relations, edges of the others are kept.
    """
    if isinstance(value, EdgeMask):
        if value.held_part is None or value.held_part is graph.held_part:
            return value
        value = value.source
    if value is None:
        return None
    held = graph.held_part
    # a column or function gives the edges held here, a mask those of the whole graph
    is_held = isinstance(value, str) or callable(value)
    size = held.num_edges if is_held else graph.num_edges
    # what the mask is made of, so that other parts of the graph can make theirs
    source: EdgeFilter = value
    if isinstance(value, str):
        value = edge_column(graph, value, "where", other=1)
    elif callable(value):
        value = value(held.edata)
    mask = _as_mask(value, size)

    def words() -> str:
        kept = np.flatnonzero(mask)
        return f"{len(kept)} of {len(mask)} edges, {hash_ids(kept):#018x}"

    if not graph.in_parts:
        return EdgeMask(mask, Lazy(words))
    # Parts have masks of their own. Settings of processes are compared by words, so these are the
    # name of what every process makes its mask of, or of the mask of the whole graph.
    if is_held:
        name = getattr(source, "__qualname__", type(source).__qualname__)
        if isinstance(source, str):
            name = source
        return EdgeMask(mask, Lazy.of(name), held, source)
    return EdgeMask(held.edges_of_whole(mask), Lazy(words), held, mask)


def _as_mask(value: Any, size: int) -> NDArray[np.bool_]:
    """Return a copy of a mask of ``size`` edges: TypeError or ValueError for anything else."""
    mask = as_array(value, "where") if isinstance(value, Tensor) else np.asarray(value)
    if mask.dtype != np.bool_:
        raise TypeError(
            f"where must give a bool for every edge, got {describe(value)}; for the edges of "
            "one kind pass a function, as in lambda edata: edata['kind'] == 0, and for ids make a "
            "mask"
        )
    if mask.shape != (size,):
        raise ValueError(f"where must have one entry per edge ({size}), got shape {mask.shape}")
    return mask.copy()
