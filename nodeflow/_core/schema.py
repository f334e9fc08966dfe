"""Schema: the types of nodes and the relations of a graph, as ranges of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_count, check_type, describe
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.display.axes import axes_for
from nodeflow._core.display.html import page, table
from nodeflow._core.display.plain import draw_plain, layout
from nodeflow._core.edges.node_rows import NodeRows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Relation: TypeAlias = tuple[str, str, str]
"""Type of the sources, name, type of the destinations."""
REVERSE = "rev_"
"""The name of a reverse relation begins with it."""


class Schema(Frozen):
    """The types of nodes and the relations of a graph.

    All nodes of a graph have ids in one space, and so have all edges. The nodes of a type have
    consecutive ids, type after type in the order of ``nodes``, and the edges of a relation too. So
    a schema costs no memory per node or edge. A graph without types has the node type ``"node"``
    and the relation ``("node", "edge", "node")``.

    Args:
        nodes: number of nodes of each type, by name.
        relations: number of edges of each relation, by (type of the sources, name, type of the
            destinations).

    Attributes:
        nodes: the ids of each type, ``range`` objects by name.
        relations: the ids of the edges of each relation, ``range`` objects by triple.

    Raises TypeError for names that are not strings and sizes that are not integers, ValueError for
    an empty name, no node type or a negative size, KeyError for a relation between types that are
    not there.

    >>> schema = Schema({"author": 3, "paper": 2}, {("author", "writes", "paper"): 4})
    >>> schema
    Schema(author 3, paper 2; author -writes-> paper 4)
    >>> schema.ids("paper"), schema.relation("writes")
    (range(3, 5), ('author', 'writes', 'paper'))
    """

    __slots__ = ("_by_end", "_by_name", "_numbers", "_starts", "nodes", "relations")
    nodes: Mapping[str, range]
    relations: Mapping[Relation, range]
    _by_name: dict[Any, list[Relation]]
    _by_end: dict[tuple[str, int], list[Relation]]
    _numbers: dict[str | Relation, int]
    _starts: dict[str, Ints]

    def __init__(self, nodes: Mapping[str, int], relations: Mapping[Relation, int]) -> None:
        check_type(nodes, "nodes", Mapping, "a dict from names to numbers of nodes")
        check_type(relations, "relations", Mapping, "a dict from triples to numbers of edges")
        if not nodes:
            raise ValueError("nodes must have a type at least")
        for name in nodes:
            _check_name(name, "a node type")
        self._set(nodes=_ranges(nodes, "nodes"))
        for relation in relations:
            if not isinstance(relation, tuple) or len(relation) != 3:
                raise TypeError(
                    "a relation must be a triple (type of sources, name, type of destinations), "
                    f"got {describe(relation)}"
                )
            _check_name(relation[1], "the name of a relation")
            self.ids(relation[0])
            self.ids(relation[2])
        self._set(relations=_ranges(relations, "relations"))
        # made once, so that a call about a few types or edges costs no pass over a schema of
        # thousands
        by_name: dict[str, list[Relation]] = {}
        by_end: dict[tuple[str, int], list[Relation]] = {}
        numbers: dict[str | Relation, int] = {name: i for i, name in enumerate(self.nodes)}
        for i, relation in enumerate(self.relations):
            numbers[relation] = i
            for name in (relation[1], " ".join(relation)):
                by_name.setdefault(name, []).append(relation)
            for end in (0, 2):
                by_end.setdefault((relation[end], end), []).append(relation)
        starts = {"nodes": _starts(self.nodes), "edges": _starts(self.relations)}
        self._set(_by_name=by_name, _by_end=by_end, _numbers=numbers, _starts=starts)

    @classmethod
    def of_one_type(cls, num_nodes: int, num_edges: int) -> Schema:
        """Return the schema of a graph without types."""
        return cls({"node": num_nodes}, {("node", "edge", "node"): num_edges})

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all types."""
        return sum(map(len, self.nodes.values()))

    @property
    def num_edges(self) -> int:
        """Number of edges of all relations."""
        return sum(map(len, self.relations.values()))

    @property
    def has_several(self) -> bool:
        """Whether there are several node types, or several relations."""
        return len(self.nodes) > 1 or len(self.relations) > 1

    def check_one_type(self, what: str) -> None:
        """Raise TypeError where there are several types or relations, which ``what`` would lose."""
        if self.has_several:
            raise TypeError(
                f"{what} takes graphs of one node type and one relation, this one has "
                f"{len(self.nodes)} and {len(self.relations)}: {self}; Graph(graph.indptr, "
                "graph.indices, edge_ids=graph.stored_edge_ids) is the same graph without types "
                "and columns"
            )

    def ids(self, node_type: str) -> range:
        """Return the ids of the nodes of a type. Raises KeyError for a type that is not there.

        >>> Schema({"author": 3, "paper": 2}, {}).ids("author")
        range(0, 3)
        """
        return self.nodes[self.node_type(node_type)]

    def node_type(self, name: str) -> str:
        """Return the name of a node type. Raises KeyError for one that is not there."""
        if not isinstance(name, str) or name not in self.nodes:
            raise KeyError(f"no node type {name!r}; there are {_listed(self.nodes)}")
        return name

    def relation(self, name: str | Relation) -> Relation:
        """Return the relation of a name, a triple, or its three words, "author writes paper".

        Raises KeyError for one that is not there, ValueError for a name that several relations
        have.

        >>> schema = Schema({"a": 1, "b": 1}, {("a", "knows", "a"): 1, ("a", "knows", "b"): 1})
        >>> schema.relation(("a", "knows", "b"))
        ('a', 'knows', 'b')
        """
        relation = tuple(name) if isinstance(name, list) else name
        if relation in self.relations:
            return relation  # type: ignore[return-value]
        named = self._by_name.get(relation, [])
        if len(named) == 1:
            return named[0]
        if named:
            raise ValueError(
                f"{len(named)} relations have the name {name!r}: name it by a triple, "
                f"{_listed(named)}"
            )
        raise KeyError(f"no relation {name!r}; there are {_listed(self.relations)}")

    def entering(self, node_type: str) -> tuple[Relation, ...]:
        """Return the relations whose destinations are of a type, in the order of the edge ids."""
        return self.touching([node_type], 2)

    def leaving(self, node_type: str) -> tuple[Relation, ...]:
        """Return the relations whose sources are of a type, in the order of the edge ids."""
        return self.touching([node_type], 0)

    def number(self, name: str | Relation) -> int:
        """Return the place of a node type among ``nodes``, or of a relation, as a triple, among
        ``relations``.
        """
        return self._numbers[name]

    def touching(self, types: Iterable[str], *ends: int) -> tuple[Relation, ...]:
        """Return the relations with one of some types at one of ``ends``, 0 (sources) or 2, in
        their order.
        """
        relations = set()
        for name in types:
            for end in ends:
                relations.update(self._by_end.get((self.node_type(name), end), []))
        return tuple(sorted(relations, key=self.number))

    def node_rows(self, direction: str) -> NodeRows:
        """Return the rows of edges of a graph in which every node has one for each relation of its
        edges.

        ``direction`` "in": the relations that enter its type; "out": those that leave it; "both":
        either.
        """
        # sorted by relation, the edges of a node in one relation are one row
        ends = {"in": (2,), "out": (0,), "both": (0, 2)}[direction]
        kinds = []
        for node_type in self.nodes:
            kinds.append([self.number(relation) for relation in self.touching([node_type], *ends)])
        return NodeRows([ids.stop for ids in self.nodes.values()], kinds)

    def bounds(self) -> Ints:
        """Return where the ids of each type begin, and the end of the last."""
        return np.array([0, *(ids.stop for ids in self.nodes.values())], np.int64)

    def types_of(self, nodes: Ints | Tensor) -> Ints:
        """Return the number of the type of each node, in the order of ``nodes``; ids are checked by
        the caller.
        """
        return self._places("nodes", nodes)

    def relations_of(self, edges: Ints | Tensor) -> Ints:
        """Return the number of the relation of each edge, in the order of ``relations``."""
        return self._places("edges", edges)

    def _places(self, kind: str, ids: Ints | Tensor) -> Ints:
        # of ranges that begin at one id all but the last are empty
        return kernels.csr.ranges_of(np.asarray(ids), self._starts[kind])  # type: ignore[no-any-return]

    def counted(self, types: Ints, relations: Ints) -> Schema:
        """Return the schema with as many nodes of each type and edges of each relation as their
        numbers are there.
        """
        nodes = np.bincount(types, minlength=len(self.nodes)).tolist()
        edges = np.bincount(relations, minlength=len(self.relations)).tolist()
        sizes_of_types = dict(zip(self.nodes, nodes, strict=True))
        return Schema(sizes_of_types, dict(zip(self.relations, edges, strict=True)))

    def ends(self) -> Ints:
        """Return the numbers of the types of sources and destinations of each relation, int64
        ``[relations, 2]``.
        """
        ends = [(self._numbers[a], self._numbers[b]) for a, _, b in self.relations]
        return np.array(ends, np.int64).reshape(-1, 2)

    def reversals(self) -> Ints:
        """Return a number that each relation shares with its reverse, called ``rev_`` and its name;
        -1 without.
        """
        kinds = np.full(len(self.relations), -1)
        for i, (a, name, b) in enumerate(self.relations):
            reverse = (b, REVERSE + name, a)
            if reverse in self.relations:
                kinds[[i, self.number(reverse)]] = i
        return kinds

    def reverses_of(self, relation: Relation) -> list[Relation]:
        """Return the relations that are reverses of one: those with ``rev_`` more or less in their
        name.
        """
        src, name, dst = relation
        reverses = [(dst, REVERSE + name, src)]
        if name.startswith(REVERSE):
            reverses.append((dst, name.removeprefix(REVERSE), src))
        return [reverse for reverse in reverses if reverse in self.relations]

    def to_json(self) -> dict[str, Any]:
        """Return lists of names and sizes, as a manifest holds them."""
        nodes = [[name, len(ids)] for name, ids in self.nodes.items()]
        return {
            "nodes": nodes,
            "relations": [[*relation, len(ids)] for relation, ids in self.relations.items()],
        }

    @classmethod
    def from_json(cls, words: Any) -> Schema:
        """Return the schema that ``to_json`` wrote; raises TypeError, ValueError or KeyError for
        something else.
        """
        nodes = words["nodes"]
        relations = words["relations"]
        schema = cls(dict(nodes), {(a, name, b): size for a, name, b, size in relations})
        # a dict would drop a repeated name silently
        if schema.to_json() != words:
            raise ValueError("it names a type or a relation twice")
        return schema

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self._items() == other._items()

    def __hash__(self) -> int:
        return hash(tuple(self._items()))

    def _items(self) -> list[Any]:
        return [*self.nodes.items(), *self.relations.items()]

    def __reduce__(self) -> tuple[Callable[[Any], Schema], tuple[Any, ...]]:
        return Schema.from_json, (self.to_json(),)

    def plot(self, ax: Axes | Figure | None = None) -> Axes:
        """Draw node types as dots and relations as arrows, with names and sizes; returns the axes.

        ``ax`` is as for ``NodeFlow.plot``; raises TypeError for no axes, ImportError without
        matplotlib.
        """
        types = list(self.nodes)
        axis = axes_for(ax, (6, 5))
        src = [types.index(relation[0]) for relation in self.relations]
        dst = [types.index(relation[2]) for relation in self.relations]
        draw_plain(axis, [""] * len(types), src, dst, set())
        place = layout(len(types), src, dst)
        # lines of text at each dot, and on each arrow; arrows both ways share one place
        words = {(i, i): [f"{name} {len(self.nodes[name]):,}"] for i, name in enumerate(types)}
        for u, v, (relation, ids) in zip(src, dst, self.relations.items(), strict=True):
            lines = words.setdefault((min(u, v), max(u, v)), [])
            lines.append(f"{relation[1]} {len(ids):,}")
        for (u, v), lines in words.items():
            below = u == v
            axis.annotate(
                "\n".join(lines),
                tuple((place[u] + place[v]) / 2),
                (0, -12 * below),
                textcoords="offset points",
                ha="center",
                va="top" if below else "center",
                fontsize=8,
            )
        return axis

    def __repr__(self) -> str:
        words = ", ".join(f"{name} {len(ids):,}" for name, ids in self.nodes.items())
        if self.relations:
            named = self.relations.items()
            words += "; " + ", ".join(
                f"{a} -{name}-> {b} {len(ids):,}" for (a, name, b), ids in named
            )
        return f"Schema({words})"

    def _repr_html_(self) -> str:
        words = f"{len(self.nodes)} node types, {len(self.relations)} relations"
        rows = [(name, f"{len(ids):,} nodes") for name, ids in self.nodes.items()]
        rows += [(" ".join(name), f"{len(ids):,} edges") for name, ids in self.relations.items()]
        return page("Schema", words, table(("type", "size"), rows))


def _ranges(sizes: Mapping[Any, int], argument: str) -> Mapping[Any, range]:
    """Return consecutive ids, as many for each name as its size says."""
    ranges = {}
    start = 0
    for name, size in sizes.items():
        stop = start + as_count(size, f"{argument}[{name!r}]")
        ranges[name] = range(start, stop)
        start = stop
    return MappingProxyType(ranges)


def _starts(ranges: Mapping[Any, range]) -> Ints:
    return np.array([ids.start for ids in ranges.values()], np.int64)


def _check_name(name: object, what: str) -> None:
    check_type(name, what, str, "a string")
    if not name:
        raise ValueError(f"{what} must not be empty")


def sizes(counts: Mapping[Any, int]) -> str:
    """Return " (author 3, paper 2)", the sizes of several types; "" where there is only one."""
    if len(counts) < 2:
        return ""
    return f" ({', '.join(f'{name} {count:,}' for name, count in counts.items())})"


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(repr, names)) or "none"
