"""Graphs from and to tables of edges and nodes: pandas, polars, Arrow, or a dict of columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.arrays import array_of, of_objects
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import ALL, _All, check_length, check_type, describe, plain_array
from nodeflow._core.base.types import Array
from nodeflow._core.rows.columns import as_column
from nodeflow._core.rows.rows import whole_column
from nodeflow._files.text.titles import ENDS, places_of_ends
from nodeflow._files.text.words import as_names
from nodeflow.convert._columns import Columns, Names, as_array, chosen, library
from nodeflow.graph import Frame, Graph, NodeNames, check_all_or_none

Column: TypeAlias = "Array | list[Any]"
"""A column of a table: an array of one number per row, or a list of names or of arrays."""


def from_edge_table(
    edges: Any,
    *,
    src: str = "src",
    dst: str = "dst",
    columns: Names = ALL,
    nodes: Any = None,
    name: str = "name",
    node_columns: Names = ALL,
) -> tuple[Graph, NodeNames]:
    """Return the graph of a table with a row per edge, and the names of its nodes.

    Tables are a pandas or polars ``DataFrame``, an Arrow ``Table``, a dict of columns, or any
    object that exports an Arrow stream (``__arrow_c_stream__``; reading that needs pyarrow). Edge
    ids follow the rows. Ends are strings, or numbers such as the ids of a database. Without
    ``nodes``, ids follow the order in which names first occur.

    Args:
        edges: a row per edge.
        src, dst: the columns with the names of the ends; where the table has no ``"src"`` and
            ``"dst"``, other usual titles are found: source and target, from and to, head and tail,
            subject and object, and so on. Bytes are read as UTF-8, floats that are whole as
            integers, as data frames write them beside a gap, dates and times of all units as
            ``datetime`` of UTC, and durations as ``timedelta``.
        columns: the columns that become columns of the graph; ``nodeflow.ALL`` for all others. They
            hold numbers, or lists of numbers of one length.
        nodes: a table with a row per node, in the order of the ids; nodes without edges are there
            too. None: the nodes are the ends of the edges.
        name: the column of ``nodes`` with the names.
        node_columns: the columns of ``nodes`` that become columns of the graph; ``nodeflow.ALL``
            for all others.

    Raises KeyError for a column that is not there and for an end that ``nodes`` does not name,
    TypeError for columns that hold no numbers and for an object that is no table, ValueError for
    missing entries, for a name that ``nodes`` has twice, for names of which some are strings or
    bools and some are not, for floats too large to tell integers apart, for times and durations
    finer than microseconds, and for lists of different lengths.

    >>> import pandas
    >>> edges = pandas.DataFrame({"src": ["ann", "cid"], "dst": ["bob", "ann"], "weight": [0.5, 2.0]})
    >>> graph, names = from_edge_table(edges)
    >>> graph, graph.edata["weight"], names.at([0, 1, 2])
    (Graph(3 nodes, 2 edges, edata: weight), tensor([0.5000, 2.0000], dtype=torch.float64), ['ann', 'bob', 'cid'])
    """
    table = _Table(edges, "edges")
    titles = table.ends(src, dst)
    ends = [table.names(end) for end in titles]
    edata = table.numbers(columns, "columns", {*titles})
    names = None
    ndata = None
    if nodes is not None:
        table = _Table(nodes, "nodes")
        ndata = table.numbers(node_columns, "node_columns", {name})
        names = table.names(name)
    # "2" and 2 would be two nodes
    check_all_or_none(chain(*ends, names or ()), str, "strings")
    return Graph.from_named_edges(*ends, names=names, ndata=ndata, edata=edata)


@checked
def to_edge_table(
    graph: Graph,
    names: Sequence[Hashable] | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    columns: Names = ALL,
) -> dict[str, Column]:
    """Return the edges as columns of a table with a row per edge, in the order of the ids.

    The dict is what the constructors of tables take: ``pandas.DataFrame(table)``,
    ``polars.DataFrame(table)``, ``pyarrow.table(table)``. ``from_edge_table`` reads it too, and
    ``to_node_table`` has the nodes.

    Args:
        graph: the graph.
        names: the name of every node id; None writes ids.
        src, dst: names of the columns of the ends.
        columns: the edge columns that are written; ``nodeflow.ALL`` for all. A column with several
            numbers per edge is a list with an array per row.

    Raises KeyError for an unknown column; ValueError for a column named like an end, names of
    another number than the nodes, and columns of more than two dimensions; TypeError for sparse
    columns and types unknown to numpy (bfloat16).

    >>> to_edge_table(Graph.from_edges([0, 1], [1, 1]), names=["ann", "bob"])
    {'src': ['ann', 'bob'], 'dst': ['bob', 'bob']}
    """
    graph.schema.check_one_type("to_edge_table")
    if src == dst:
        raise ValueError(f"src and dst must be two names, got {src!r} twice")
    sources, destinations = (_named(end, names, graph) for end in graph.edges())
    return {src: sources, dst: destinations, **_columns(graph.edata, columns, {src, dst})}


@checked
def to_node_table(
    graph: Graph,
    names: Sequence[Hashable] | None = None,
    *,
    name: str = "name",
    columns: Names = ALL,
) -> dict[str, Column]:
    """Return the nodes as columns of a table with a row per node, in the order of the ids.

    Arguments, the result and errors are those of ``to_edge_table``; ``name`` is the column of the
    names, or of the ids.

    >>> to_node_table(Graph.from_edges([0], [1]), names=["ann", "bob"])
    {'name': ['ann', 'bob']}
    """
    graph.schema.check_one_type("to_node_table")
    # on the CPU even where torch has another default device
    ids = torch.arange(graph.num_nodes, device="cpu")
    return {name: _named(ids, names, graph), **_columns(graph.ndata, columns, {name})}


class _Table:
    """A table of any library: its columns by name, as arrays."""

    def __init__(self, table: Any, argument: str) -> None:
        self.argument = argument
        if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "columns"):
            table = library("pyarrow", "pyarrow, which reads an Arrow stream,").table(table)
        self.table = table
        if isinstance(table, Mapping):
            columns: Any = table
        else:  # of Arrow ``columns`` are no names
            columns = getattr(table, "column_names", getattr(table, "columns", None))
        if columns is None or not hasattr(table, "__getitem__"):
            raise TypeError(
                f"{argument} must be a table (pandas, polars, Arrow, or a dict of columns), got "
                f"{describe(table)}"
            )
        self.columns = list(columns)
        if twice := [name for at, name in enumerate(self.columns) if name in self.columns[:at]]:
            raise ValueError(f"{argument} has more than one column named {twice[0]!r}")

    def ends(self, src: str, dst: str) -> tuple[str, str]:
        """Return the columns of the ends, which titles say where the table has no src and dst."""
        places = places_of_ends(list(map(str, self.columns)))
        if (src, dst) != ENDS or places is None:
            return src, dst
        return self.columns[places[0]], self.columns[places[1]]

    def names(self, title: str) -> list[Any]:
        """Return a column of names of nodes."""
        column = self._column(title)
        # numpy would make words of all entries where one is a word, and take zeros from their ends
        keeps_types = isinstance(column, Sequence) and {*map(type, column)} != {float}
        if keeps_types:
            values = np.fromiter(column, object, len(column))
        else:
            values = self.array(title)
        return as_names(values, self._title(title))

    def numbers(self, names: Names, argument: str, left_out: set[str]) -> Columns:
        """Return columns of numbers."""
        for name in self.columns if isinstance(names, _All) else []:
            check_type(name, "a column name", str, "a str")
        every = [name for name in self.columns if name not in left_out]
        return {name: self._rows(name) for name in chosen(names, every, argument)}

    def array(self, name: str) -> Array:
        """Return a column as an array; raises ValueError for missing entries where the library
        marks them.
        """
        column = self._column(name)
        if hasattr(column, "to_numpy"):
            return array_of(column, self._title(name), ValueError)
        if isinstance(column, Tensor):
            column = as_array(column.detach(), name)
        return plain_array(np.asanyarray(column), self._title(name))

    def _rows(self, name: str) -> Tensor:
        column = self._column(name)
        if isinstance(column, Sequence):
            column = of_objects(column, self._title(name))
        try:
            return as_column(column, self._title(name), ValueError)
        except TypeError as error:
            raise TypeError(f"{error}; or name the columns that are wanted") from None

    def _column(self, name: str) -> Any:
        if name not in self.columns:
            hint = ""
            if name in ENDS:
                hint = "; src= and dst= name the ends of edges"
            raise KeyError(
                f"{self.argument} has no column {name!r}; it has "
                f"{', '.join(map(repr, self.columns)) or 'none'}{hint}"
            )
        return self.table[name]

    def _title(self, name: str) -> str:
        return f"{self.argument}: column {name!r}"


def _named(ids: Tensor, names: Sequence[Hashable] | None, graph: Graph) -> Column:
    if names is None:
        return ids.numpy()
    check_length(names, "names", graph.num_nodes, "node")
    return [names[i] for i in ids.tolist()]


def _columns(frame: Frame, names: Names, taken: set[str]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for name in chosen(names, frame, "columns"):
        if name in taken:
            raise ValueError(
                f"a column is named {name!r}, as is the column of the names; give that one another "
                "name"
            )
        column = whole_column(frame[name]).detach().cpu()
        if column.layout != torch.strided:
            raise TypeError(
                f"a table cannot hold the sparse column {name!r}; leave it out with columns=, or "
                "make it dense"
            )
        if column.ndim > 2:
            raise ValueError(
                f"a table holds one list of numbers per row, but column {name!r} has shape "
                f"{list(column.shape)}"
            )
        array = as_array(column, name)
        columns[name] = array if array.ndim == 1 else list(array)
    return columns
