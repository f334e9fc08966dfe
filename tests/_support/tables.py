"""Tables of a database for tests of ``convert.from_tables``, from their columns."""

from __future__ import annotations

from typing import Any

import pandas
import torch

from nodeflow.convert import from_tables


def times_of(*columns: Any, **options: Any) -> list[torch.Tensor]:
    """Return the times of tables that have one column each."""
    tables = {f"t{i}": pandas.DataFrame({"at": column}) for i, column in enumerate(columns)}
    graph, _ = from_tables(tables, times=dict.fromkeys(tables, "at"), **options)
    return [graph.nodes[name].data["time"] for name in tables]


def one(column: Any, **options: Any) -> tuple[list[str], torch.Tensor]:
    """Return the names and the rows that the column "c" of a table "t" becomes."""
    graph, names = from_tables({"t": pandas.DataFrame({"c": column})}, **options)
    return names["t"], graph.ndata["x"]


def linked(own: Any, foreign: Any, **options: Any) -> list[list[int]]:
    """Return the ends of the edges of table "b", whose keys "to" refer to the keys "id" of "a"."""
    tables = {"a": pandas.DataFrame({"id": own}), "b": pandas.DataFrame({"to": foreign})}
    keyed: Any = {"keys": {"a": "id"}, "links": {"b": {"to": "a"}}, "reverse": False}
    graph, _ = from_tables(tables, **{**keyed, **options})
    ends = graph.find_edges(list(graph.relations["to"].ids))
    return [end.tolist() for end in ends]
