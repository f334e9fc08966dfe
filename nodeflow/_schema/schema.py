"""Schema: the types of nodes and the relations of a graph, as ranges of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, chain, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_count, check_type, describe
from nodeflow._base.frozen import Frozen
from nodeflow._display.axes import axes_for
from nodeflow._display.html import page, table
from nodeflow._display.plain import draw_plain, layout
from nodeflow._edges.node_rows import NodeRows

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
    _by_name: dict[str, list[Relation]]
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
        self._set(
            nodes=_ranges(
                (name, as_count(size, f"nodes[{name!r}]")) for name, size in nodes.items()
            )
        )
        for relation in relations:
            self._check_relation(relation)
        sizes = (
            (relation, as_count(size, f"relations[{relation}]"))
            for relation, size in relations.items()
        )
        self._set(relations=_ranges(sizes))
        # made once, so that a call about a few types or edges costs no pass over a schema of
        # thousands
        by_name: dict[str, list[Relation]] = {}
        by_end: dict[tuple[str, int], list[Relation]] = {}
        for relation in self.relations:
            for name in (relation[1], " ".join(relation)):
                by_name.setdefault(name, []).append(relation)
            for end in (0, 2):
                by_end.setdefault((relation[end], end), []).append(relation)
        numbers = {
            name: number
            for names in (self.nodes, self.relations)
            for number, name in enumerate(names)
        }
        parts = {"nodes": self.nodes.values(), "edges": self.relations.values()}
        starts = {
            kind: np.array([ids.start for ids in ranges], np.int64)
            for kind, ranges in parts.items()
        }
        self._set(_by_name=by_name, _by_end=by_end, _numbers=numbers, _starts=starts)

    @classmethod
    def of_one_type(cls, num_nodes: int, num_edges: int) -> Schema:
        """Return the schema of a graph without types."""
        return cls({"node": num_nodes}, {("node", "edge", "node"): num_edges})

    def _check_relation(self, relation: object) -> None:
        if not isinstance(relation, tuple) or len(relation) != 3:
            raise TypeError(
                "a relation must be a triple (type of sources, name, type of destinations), got "
                f"{describe(relation)}"
            )
        _check_name(relation[1], "the name of a relation")
        for end in (relation[0], relation[2]):
            self.ids(end)

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
        named = self._by_name.get(relation, []) if isinstance(relation, str) else []
        if len(named) == 1:
            return named[0]
        if named:
            raise ValueError(
                f"{len(named)} relations have the name {name!r}: name it by a triple, "
                f"{_listed(named)}"
            )
        same = (
            self._by_name.get(relation[1], [])
            if isinstance(relation, tuple) and len(relation) == 3
            else []
        )
        raise KeyError(f"no relation {name!r}; there are {_listed(same or self.relations)}")

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
        parts = [
            self._by_end.get((self.node_type(name), end), []) for name in types for end in ends
        ]
        return tuple(sorted({*chain.from_iterable(parts)}, key=self.number))

    def node_rows(self, direction: str) -> NodeRows:
        """Return the rows of edges of a graph in which every node has one for each relation of its
        edges.

        ``direction`` "in": the relations that enter its type; "out": those that leave it; "both":
        either.
        """
        ends = {"in": (2,), "out": (0,), "both": (0, 2)}[direction]
        kinds = [[*map(self.number, self.touching([node_type], *ends))] for node_type in self.nodes]
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
        return Schema(
            dict(zip(self.nodes, nodes, strict=True)), dict(zip(self.relations, edges, strict=True))
        )

    def ends(self) -> Ints:
        """Return the numbers of the types of sources and destinations of each relation, int64
        ``[relations, 2]``.
        """
        number = self._numbers
        return np.array([(number[a], number[b]) for a, _, b in self.relations], np.int64).reshape(
            -1, 2
        )

    def reversals(self) -> Ints:
        """Return a number that each relation shares with its reverse, called ``rev_`` and its name;
        -1 without.
        """
        index = {relation: i for i, relation in enumerate(self.relations)}
        kinds = np.full(len(index), -1)
        for (a, name, b), i in index.items():
            if (b, REVERSE + name, a) in index:
                kinds[[i, index[b, REVERSE + name, a]]] = i
        return kinds

    def reverses_of(self, relation: Relation) -> list[Relation]:
        """Return the relations that are reverses of one: those with ``rev_`` more or less in their
        name.
        """
        names = (REVERSE + relation[1], relation[1].removeprefix(REVERSE))
        back = [(relation[2], name, relation[0]) for name in names if name != relation[1]]
        return [each for each in back if each in self.relations]

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
        if schema.to_json() != words:
            raise ValueError("it names a type or a relation twice")
        return schema

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return [*self.nodes.items(), *self.relations.items()] == [
            *other.nodes.items(),
            *other.relations.items(),
        ]

    def __hash__(self) -> int:
        return hash((*self.nodes.items(), *self.relations.items()))

    def __reduce__(self) -> tuple[Callable[[Any], Schema], tuple[Any, ...]]:
        return Schema.from_json, (self.to_json(),)

    def plot(self, ax: Axes | Figure | None = None) -> Axes:
        """Draw node types as dots and relations as arrows, with names and sizes; returns the axes.

        ``ax`` is as for ``NodeFlow.plot``; raises TypeError for no axes, ImportError without
        matplotlib.
        """
        types = list(self.nodes)
        axis = axes_for(ax, (6, 5))
        src, dst = ([types.index(relation[end]) for relation in self.relations] for end in (0, 2))
        draw_plain(axis, [""] * len(types), src, dst, set(), None, "", None, "")
        place = layout(len(types), src, dst)
        words = dict[tuple[int, int], list[str]]()
        for i, (name, ids) in enumerate(self.nodes.items()):
            words[i, i] = [f"{name} {len(ids):,}"]
        for (_, name, _), ids, u, v in zip(
            self.relations, self.relations.values(), src, dst, strict=True
        ):
            words.setdefault((min(u, v), max(u, v)), []).append(f"{name} {len(ids):,}")
        for (u, v), lines in words.items():
            shift, va = (-12, "top") if u == v else (0, "center")
            middle = tuple((place[u] + place[v]) / 2)
            axis.annotate(
                "\n".join(lines),
                middle,
                (0, shift),
                textcoords="offset points",
                ha="center",
                va=va,
                fontsize=8,
            )
        return axis

    def __repr__(self) -> str:
        nodes = ", ".join(f"{name} {len(ids):,}" for name, ids in self.nodes.items())
        relations = ", ".join(
            f"{a} -{name}-> {b} {len(ids):,}" for (a, name, b), ids in self.relations.items()
        )
        return f"Schema({nodes}; {relations})" if relations else f"Schema({nodes})"

    def _repr_html_(self) -> str:
        words = f"{len(self.nodes)} node types, {len(self.relations)} relations"
        nodes = {name: f"{len(ids):,} nodes" for name, ids in self.nodes.items()}
        relations = {
            " ".join(relation): f"{len(ids):,} edges" for relation, ids in self.relations.items()
        }
        return page("Schema", words, table(("type", "size"), (nodes | relations).items()))


def _ranges(sizes: Iterable[tuple[Any, int]]) -> Mapping[Any, range]:
    pairs = list(sizes)
    ends = accumulate((size for _, size in pairs), initial=0)
    return MappingProxyType(
        {name: range(*ids) for (name, _), ids in zip(pairs, pairwise(ends), strict=True)}
    )


def _check_name(name: object, what: str) -> None:
    check_type(name, what, str, "a string")
    if not name:
        raise ValueError(f"{what} must not be empty")


def sizes(counts: Mapping[Any, int]) -> str:
    """Return " (author 3, paper 2)", the sizes of several types; "" where there is only one."""
    return (
        ""
        if len(counts) < 2
        else f" ({', '.join(f'{name} {count:,}' for name, count in counts.items())})"
    )


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(repr, names)) or "none"
