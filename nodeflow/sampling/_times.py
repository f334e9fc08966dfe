"""Times of edges and of seeds, as numbers that compare exactly: int64, or float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import as_array, check_type, describe, first_true
from nodeflow._core.base.dates import as_moments
from nodeflow._core.base.dtypes import digits_of
from nodeflow._core.base.types import Array, NumbersLike
from nodeflow._core.edges.columns import check_edges, columns_of_relations, edge_column
from nodeflow._core.edges.edges import Edges
from nodeflow._core.rows.rows import Rows, whole_column
from nodeflow.graph import Graph

_KINDS = "integers or floats"
NO_TIME = {"i": np.iinfo(np.int64).min, "f": -np.inf}
"""What stands for no time, by the kind of numbers: it is before all times."""
_FIRST_TIME = {"i": np.iinfo(np.int64).min + 1, "f": np.finfo(np.float64).min}
"""The first number that is a time."""
_STAMP = 10**8
"""Times as large as this are stamps rather than counts: it is the year 1973 in seconds."""
_END = 2**62
"""Times from here on stand for the end of all times: stamps in nanoseconds are below."""
_OTHER_UNIT = 500
"""Stamps that differ by such a factor have different units."""


class Span(NamedTuple):
    """The kind of the times of a graph, whether they are integers, and the first and the last, if
    there are any.
    """

    integers: bool
    ends: tuple[float, float] | None

    @classmethod
    def of(cls, stamps: Array) -> Span:
        """Return the span of times of edges, int64 or float64."""
        kind = stamps.dtype.kind
        last = stamps.max(initial=NO_TIME[kind])
        timed = last > NO_TIME[kind]
        first = stamps.min(initial=last, where=stamps > NO_TIME[kind])
        return cls(kind == "i", (first.item(), last.item()) if timed else None)


def times_of_edges(graph: Graph, name: str) -> Callable[[Edges], Array]:
    """Read the columns ``name`` of edges and of nodes; return what gives the time of every edge, by
    position.

    Times are int64 or float64. Reading is collective, and what is returned is not.

    It is the later of its own, in the column of all edges or of its relation, and that of the node
    that the edge leads to, in the column of all nodes or of its type: a node that is not there yet
    has no edges. What has neither has ``NO_TIME``, and so have nodes whose time is NaN.

    Raises KeyError where there is no such column, TypeError and ValueError for one that does not
    hold times.
    """
    check_type(name, "time", str, "the name of a column")
    of_nodes = times_of_nodes(graph, name)
    of_edges: Array | None
    if name in graph.edata:
        of_edges = time_column(graph.for_sampling, name)
    else:
        relations = columns_of_relations(graph.for_sampling, name)
        of_edges = _of_parts(relations, graph.for_sampling.held_part.num_edges, name)
    given = [column for column in (of_edges, of_nodes) if column is not None]
    if not given:
        raise KeyError(
            f"time: neither edges nor nodes have a column {name!r}, of all of them or of a type"
        )
    _one_kind(given, name)

    def stamps_of(edges: Edges) -> Array:
        stamps: list[Array] = []
        if of_edges is not None:
            stamps.append(edges.by_position(of_edges))
        if of_nodes is not None:
            stamps.append(of_nodes[edges.indices])
        return stamps[0] if len(stamps) == 1 else np.maximum(*stamps)

    return stamps_of


def times_of_nodes(graph: Graph, name: str) -> Array | None:
    """Return the time of every node, int64 or float64 ``[num_nodes]``, from the column of all
    nodes, or those of types.

    Nodes of types without the column have ``NO_TIME``. None: no type has it.
    """
    parts = [part for part in graph.nodes.values() if name in part.data]
    of_types: list[Any] = [
        (slice(part.ids.start, part.ids.stop), part.data[name]) for part in parts
    ]
    if name in graph.ndata:
        of_types = [(slice(None), graph.ndata[name])]
    return _of_parts(of_types, graph.num_nodes, name)


def _of_parts(parts: Sequence[tuple[Any, Any]], size: int, name: str) -> Array | None:
    """Return the times of columns at their places, and ``NO_TIME`` elsewhere; None without
    columns.
    """
    if not parts:
        return None
    columns = [_times_in(column, name) for _, column in parts]
    times = np.full(size, NO_TIME[_one_kind(columns, name)])
    for (places, _), column in zip(parts, columns, strict=True):
        times[places] = column
    return times


def _one_kind(columns: Sequence[Array], name: str) -> str:
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) > 1:
        raise TypeError(
            f"time: all columns {name!r} must hold integers, or all of them floats; there are both"
        )
    return kinds.pop()


def _times_in(column: Tensor | Rows, name: str) -> Array:
    """Return a column of times of nodes, or of a relation, as int64 or float64 ``[n]``; NaN becomes
    ``NO_TIME``.
    """
    array = as_array(whole_column(column), f"the column {name!r}", _KINDS)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise TypeError(
            f"time: the column {name!r} must hold an integer or a float per row, got "
            f"{describe(array)}"
        )
    is_missing = np.isnan(array)
    wrong, rule = no_times(np.where(is_missing, 0, array), column.dtype, integers=True)
    if (i := first_true(wrong)) is not None:
        raise ValueError(f"time: the column {name!r} must be {rule}, but row {i} has {array[i]}")
    if array.dtype.kind == "f":
        return np.where(is_missing, NO_TIME["f"], array)
    return array.astype(np.int64)


def time_column(graph: Graph, name: str) -> Array:
    """Return an edge column of times as int64 or float64 ``[num_edges]``, shared if it has this
    type already.
    """
    column = edge_column(graph, name, "time")
    if column.dtype.kind not in "iuf":
        raise TypeError(
            f"time: the edge column {name!r} must hold integers or floats, got dtype {column.dtype}"
        )
    wrong, rule = no_times(column, graph.edata[name].dtype, integers=True)
    check_edges(graph, column, wrong, f"time: the edge column {name!r} must be {rule}")
    return exact(column)


def exact(numbers: Array) -> Array:
    """Return times as float64, or as int64 where they are integers, shared where they are."""
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)


def starts_of(limits: Array, since: float) -> Array:
    """Start of the window before each limit, ``[n]``; it is a time, so ``NO_TIME`` is before every
    window.
    """
    first = _FIRST_TIME[limits.dtype.kind]
    if limits.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.maximum(limits - since, first)
    # compare first: limits - since may wrap around, and those entries are replaced
    return np.where(limits >= first + since, limits - np.int64(since), first)


def no_times(numbers: Array, dtype: Any, *, integers: bool) -> tuple[NDArray[np.bool_], str]:
    """A mask of numbers that are no times, and the rule for times; whole ones are compared as int64
    if ``integers``.

    ``dtype`` is the type that the numbers had when they were given.
    """
    if numbers.dtype.kind == "f":
        wrong = ~np.isfinite(numbers)
        digits = digits_of(dtype)
        if wrong.any() or digits == 53:
            return wrong, "finite"
        rule = (
            f"below 2**{digits} as {dtype}, which has rounded larger ones (take float64 or int64)"
        )
        return np.abs(numbers) >= 2**digits, rule.replace("torch.", "")
    if integers:
        return numbers > np.iinfo(np.int64).max, "below 2**63"
    wrong = (numbers > 2**53) | (numbers < -(2**53))
    return wrong, "integers that float64 can tell apart (up to 2**53)"


def as_times(value: NumbersLike | None, shape: tuple[int, ...], span: Span) -> Array:
    """A time for each of the seeds of this shape, as int64 or float64: the kind of the times they
    are compared with.

    A row of seeds may share one time. Dates become seconds since 1970.
    """
    if value is None:
        raise TypeError(
            "times is missing: pass a time for every seed, as in sampler(seeds, times=times)"
        )
    given = as_array(value, "times", _KINDS)
    array = as_moments(given, "times", f"seed or row of seeds {shape}", shape, shape[:1])
    if len(array) and span.integers and array.dtype.kind == "f":
        # floats are not rounded here: a seed at 1.5 is neither at 1 nor at 2
        raise TypeError(
            f"times must hold integers, as the time column does, got dtype {array.dtype}; round "
            "them down first, dates with .floor('s')"
        )
    # a row of seeds has one time: every seed of it gets it
    if array.shape == shape:
        array = array.reshape(-1)
    else:
        array = np.repeat(array, shape[1])
    wrong, rule = no_times(array, array.dtype, integers=span.integers)
    if span.integers and not wrong.any():
        wrong = array == NO_TIME["i"]
        rule = "above -2**63, which stands for no time"
    if (i := first_true(wrong)) is not None:
        raise ValueError(f"times must be {rule}, but times[{i}] is {array[i]}")
    # adding 0 makes -0.0 and 0.0, which are one time, one number
    times: Array = array.astype(np.int64 if span.integers else np.float64) + 0
    _check_unit(times, span, given.dtype.kind in "MO")
    return times


def _check_unit(times: Array, span: Span, dated: bool) -> None:
    """Raise ValueError for a time of a seed in another unit than the graph's: it would let every
    later edge in.
    """
    if span.ends is None:
        return
    first, last = span.ends
    # as seconds these lie in 1970 to 1973; they may be days such as 20240101, minutes, or seconds
    # since some start
    no_dates = first >= 0 and last < _STAMP
    is_other_unit = times // _OTHER_UNIT > max(last, 1)
    late = (times >= _STAMP) & (times < _END) & (is_other_unit | (dated and no_dates))
    early = (times > 0) & (times < first / _OTHER_UNIT) & (first >= _STAMP)
    if (i := first_true(late | early)) is not None:
        raise ValueError(
            f"times must be in the unit of the graph's times, {first} to {last}, but times[{i}] is "
            f"{times[i]} (dates are seconds since 1970); convert them, and for a time after all "
            "others pass 2**63 - 1, or 1e300 where times are floats"
        )
