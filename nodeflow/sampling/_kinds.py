"""Kinds of edges of which every node draws on its own: the relations of a graph, or the types in an edge column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nodeflow._base.checks import Ints, as_int
from nodeflow._edges.columns import edge_integers
from nodeflow._edges.node_rows import NodeRows
from nodeflow.graph import Graph
from nodeflow.sampling._sampler import as_list, check_size

Fanout = int | dict[Any, int]


class Kinds(NamedTuple):
    """The kinds of edges of a graph.

    Attributes:
        names: the names of the kinds, relations or numbers, in their order.
        rows: which kinds of edges each node can have.
        of_edges: returns the kind of every edge held here, by its id here.
        find: returns the name that a user's word for a kind stands for, or raises.
    """

    names: Sequence[Any]
    rows: NodeRows
    of_edges: Callable[[], Ints]
    find: Callable[[Any], Any]

    def counts(self, fanout: Fanout) -> Ints:
        """Return the fanout of every kind, of one number for all or a dict; kinds that a dict leaves out get 0."""
        if isinstance(fanout, int):
            return np.full(max(len(self.names), 1), fanout, np.int64)
        by_name = {self.find(key): number for key, number in fanout.items()}
        if len(by_name) < len(fanout):
            raise ValueError(f"fanouts name one relation twice: {list(fanout)}")
        return np.array([by_name.get(name, 0) for name in self.names] or [0], np.int64)


def relations(graph: Graph, direction: str) -> Kinds:
    """Return the relations of the schema of a graph as kinds."""
    schema, held = graph.schema, graph.held

    def find(name: Any) -> Any:
        if isinstance(name, int):
            raise TypeError(f"fanouts per edge type ({name}) need edge_type=, the name of an edge column of integers")
        return schema.relation(name)

    def of_edges() -> Ints:
        return schema.relations_of(held.whole.edge_ids_of(np.arange(held.num_edges)))

    return Kinds(list(schema.relations), schema.node_rows(direction), of_edges, find)


def types_in(graph: Graph, name: str) -> Kinds:
    """Return the types in an edge column of integers as kinds. Collective. Raises what ``NeighborSampler`` says."""
    column = edge_integers(graph, name, "edge_type")
    types = np.unique(column)
    # a type may occur on other processes only
    types = np.unique(np.concatenate([t for (t,) in graph.peers.gather("types of edges", [types])]))
    if graph.num_nodes * len(types) > 16 * (graph.num_nodes + graph.num_edges):
        raise ValueError(
            f"edge_type: the column {name!r} has {len(types)} types, and every node gets a row for each; "
            "group them into fewer types"
        )
    names = [int(kind) for kind in types]

    def find(kind: int) -> int:
        if kind not in names:
            raise ValueError(f"fanouts name the edge type {kind}, but the types there are: {names}")
        return kind

    rows = NodeRows([graph.num_nodes], [range(max(len(names), 1))])
    return Kinds(names, rows, lambda: np.searchsorted(types, column), find)


def check_fanouts(fanouts: object, *, numbered: bool) -> tuple[Fanout, ...]:
    """Check fanouts of which each may be a dict from kind to number; kinds are integers where they are ``numbered``."""
    values = as_list(fanouts, "fanouts", "a number or a dict per flow, as in [{0: 5, 1: 10}, {0: 10}]", "entry")
    checked: list[Fanout] = []
    for i, fanout in enumerate(values):
        if not isinstance(fanout, Mapping):
            checked.append(check_size(fanout, f"fanouts[{i}]"))
            continue
        counts = {}
        for key, number in fanout.items():
            kind = as_int(key, f"an edge type in fanouts[{i}]") if numbered else key
            count = as_int(number, f"fanouts[{i}][{kind!r}]")
            counts[kind] = 0 if count == 0 else check_size(count, f"fanouts[{i}][{kind!r}]")
        checked.append(counts)
    return tuple(checked)
