"""Kinds of edges of which every node draws on its own: the relations of a graph, or the types in an
edge column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nodeflow._core.base.checks import Ints, as_int
from nodeflow._core.base.types import Array
from nodeflow._core.edges.columns import edge_integers
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.node_rows import NodeRows
from nodeflow.graph import Graph
from nodeflow.sampling._sampler import as_list, check_size

Number = TypeVar("Number", int, float)
Check = Callable[..., Number]
"""Checks a number, from ``(value, name, of_kind=...)``."""
Fanout = int | dict[Any, int]
"""One number for all kinds of edges, or one by kind."""


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

    def numbers(self, value: float | Mapping[Any, float], of: str = "fanouts") -> Array:
        """Return the number of every kind, see ``numbers_of``."""
        return numbers_of(value, self.names, self.find, of)

    def lay_out(self, edges: Edges, graph: Graph) -> Edges:
        """Return edges of a graph with a row for every node and kind that it can have."""
        near_rows = self.rows.restricted(graph.for_sampling.held_part.masters.numpy())
        return edges.by_kind(self.of_edges, node_rows=near_rows, whole_rows=self.rows)


def relations(graph: Graph, direction: str) -> Kinds:
    """Return the relations of the schema of a graph as kinds."""
    schema = graph.schema
    held = graph.for_sampling.held_part

    def find(name: Any) -> Any:
        if isinstance(name, int):
            raise TypeError(
                f"fanouts per edge type ({name}) need edge_type=, the name of an edge column of "
                "integers"
            )
        return schema.relation(name)

    def of_edges() -> Ints:
        return schema.relations_of(held.whole.edge_ids_of(np.arange(held.num_edges)))

    return Kinds(list(schema.relations), schema.node_rows(direction), of_edges, find)


def types_in(graph: Graph, name: str) -> Kinds:
    """Return the types in an edge column of integers as kinds. Collective. Raises what
    ``NeighborSampler`` says.
    """
    column = edge_integers(graph.for_sampling, name, "edge_type")
    types = np.unique(column)
    # a type may occur on other processes only
    types = np.unique(np.concatenate([t for (t,) in graph.peers.gather("types of edges", [types])]))
    if graph.num_nodes * len(types) > 16 * (graph.num_nodes + graph.num_edges):
        raise ValueError(
            f"edge_type: the column {name!r} has {len(types)} types, and every node gets a row for "
            "each; group them into fewer types"
        )
    # Python's integers: they are keys of the dicts that users pass
    names = [int(kind) for kind in types]

    def find(kind: int) -> int:
        if kind not in names:
            raise ValueError(f"fanouts name the edge type {kind}, but the types there are: {names}")
        return kind

    def of_edges() -> Ints:
        # read once more, so that no copy of the column is kept
        return np.searchsorted(types, edge_integers(graph.for_sampling, name, "edge_type"))

    num_types = max(len(names), 1)
    rows = NodeRows([graph.num_nodes], [range(num_types)])
    return Kinds(names, rows, of_edges, find)


def numbers_of(
    value: float | Mapping[Any, float], names: Iterable[Any], find: Callable[[Any], Any], of: str
) -> Array:
    """Return a number for each name, from one for all, or a dict by what ``find`` turns into names;
    else 0.
    """
    every = list(names)
    if not isinstance(value, Mapping):
        return np.full(max(len(every), 1), value)
    by_name = {find(key): number for key, number in value.items()}
    if len(by_name) < len(value):
        raise ValueError(f"{of} name one relation twice: {list(value)}")
    return np.array([by_name.get(name, 0) for name in every] or [0])


def by_kind(
    value: Any, name: str, check: Check[Number], example: str, kind: str
) -> tuple[Number | dict[Any, Number], ...]:
    """Check a number per flow, each by ``of_kinds``."""
    words = f"one number per flow, as in {example}, or a dict of them by {kind}"
    numbers = enumerate(as_list(value, name, words))
    return tuple(of_kinds(number, f"{name}[{i}]", check, kind) for i, number in numbers)


def of_kinds(value: Any, name: str, check: Check[Number], kind: str) -> Number | dict[Any, Number]:
    """Check one number for all kinds, or a dict from kind to number.

    ``kind`` is "relation", "node type", or "edge type", which is an integer, or one as text.
    ``check(number, name, of_kind)`` checks a number; one of a kind may be 0, for none.
    """
    if not isinstance(value, Mapping):
        return check(value, name, of_kind=False)
    by_name = {}
    # settings in JSON have words for keys: '3' is edge type 3
    for word, number in value.items():
        key = word
        if kind == "edge type":
            is_text = isinstance(word, str) and word.isdecimal()
            key = as_int(int(word) if is_text else word, f"an edge type in {name}")
        by_name[key] = check(number, f"{name}[{key!r}]", of_kind=True)
    return by_name


def check_fanouts(
    fanouts: Any, num_neighbors: Any = None, *, edge_type: str | None = None
) -> tuple[Fanout, ...]:
    """Check fanouts (see ``by_kind``), or ``num_neighbors``, and return them in flow order."""
    if (fanouts is None) == (num_neighbors is None):
        raise TypeError(
            "either fanouts in flow order, the last for the seeds, are needed, or num_neighbors "
            "in the order of PyTorch Geometric, the first for the seeds; got "
            f"fanouts={fanouts} and num_neighbors={num_neighbors}"
        )
    kind = "edge type"
    if edge_type is None:
        kind = "relation"
    if num_neighbors is None:
        return by_kind(fanouts, "fanouts", as_fanout, "[10, 25]", kind)
    seeds_first = by_kind(_by_flow(num_neighbors), "num_neighbors", as_fanout, "[25, 10]", kind)
    return seeds_first[::-1]


def _by_flow(num_neighbors: Any) -> Any:
    """Return a list per relation, as PyTorch Geometric has it, as a dict by relation per flow;
    others as they are.
    """
    if not isinstance(num_neighbors, Mapping):
        return num_neighbors
    words = "one number per flow, as in [25, 10]"
    lists = [
        as_list(value, f"num_neighbors[{kind!r}]", words) for kind, value in num_neighbors.items()
    ]
    if len(set(map(len, lists))) > 1:
        raise ValueError(
            f"num_neighbors must have as many numbers for every relation, got {dict(num_neighbors)}"
        )
    return [dict(zip(num_neighbors, numbers, strict=True)) for numbers in zip(*lists, strict=True)]


def as_fanout(value: object, name: str, *, of_kind: bool, every: bool = True) -> int:
    """Return a checked fanout; one of a kind may be 0. ``every``: -1 is allowed, for all."""
    number = as_int(value, name)
    return 0 if of_kind and number == 0 else check_size(number, name, every=every)
