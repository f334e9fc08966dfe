"""The nodes of each type and the edges of each relation of a graph: their ids, and columns of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import (
    Ints,
    as_count,
    as_flag,
    as_ids,
    check_pairs,
    check_range,
    check_type,
    describe,
    titles,
    unmasked,
)
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import ColumnsLike, IdsLike, MaskLike
from nodeflow._core.edges.stored import integers
from nodeflow._core.rows.rows import take_rows
from nodeflow._core.schema import REVERSE, Relation, Schema, sizes
from nodeflow.graph._frame import Frame, GraphFrame

if TYPE_CHECKING:
    from nodeflow.graph._graph import Graph

Name = TypeVar("Name", str, Relation)
TypedNodes: TypeAlias = "Mapping[str, int | ColumnsLike]"
"""Per node type the number of its nodes, or their columns."""
TypedEdges: TypeAlias = "Mapping[Relation, Any]"
"""Per relation the ends of its edges, ``(src, dst)`` or ``(src, dst, columns)``, in ids of their
types.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfType(Frozen):
    """The nodes of one type, or the edges of one relation: their ids in the graph, and their own
    columns.

    ``ids`` is their range of ids in the graph, ``data`` a frame with a row for each. Local ids
    count from 0 within the type. ``graph.nodes[name]`` and ``graph.relations[name]`` give them.

    >>> from nodeflow import Graph
    >>> graph = Graph.typed({"author": 3, "paper": {"year": torch.tensor([1999, 2004])}}, {})
    >>> papers = graph.nodes["paper"]
    >>> papers, papers.to_graph([1, 0]), papers.to_local([4])
    (OfType('paper': ids 3 to 4, columns year), tensor([4, 3]), tensor([1]))
    """

    name: str | Relation
    ids: range
    data: Frame

    def to_graph(self, local: IdsLike | MaskLike, *, name: str = "local") -> Tensor:
        """Return the ids in the graph of local ids, or of a bool mask of the type, int64 ``[k]``;
        errors use ``name``.

        Raises IndexError for an id out of range, ValueError for a mask of another length.
        """
        of_type = name, len(self.ids), self._what
        return torch.from_numpy(as_ids(unmasked(local, *of_type), *of_type) + self.ids.start)

    def to_local(self, ids: IdsLike) -> Tensor:
        """Return the local ids of ids in the graph, int64 ``[k]``. Raises IndexError for one of
        another type.
        """
        of_graph = as_ids(ids, "ids", self.ids.stop, self._what, lower=self.ids.start)
        return torch.from_numpy(of_graph - self.ids.start)

    @property
    def _what(self) -> str:
        if isinstance(self.name, str):
            return f"{self.name} node"
        return f"{self.name[1]} edge"

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        words = "empty"
        if self.ids:
            words = f"ids {self.ids.start} to {self.ids.stop - 1}"
        if self.data:
            words += f", columns {titles(self.data)}"
        return f"OfType({self.name!r}: {words})"


@dataclass(eq=False, repr=False)
class ByName(Mapping[Name, OfType], Generic[Name]):
    """Parts of a graph by the name of their type; an unknown name raises KeyError with those that
    there are.
    """

    _ranges: Mapping[Name, range]
    _frames: Sequence[Frame]
    _find: Callable[[Any], Name]
    _number: Callable[[Name], int]

    def __getitem__(self, name: Any) -> OfType:
        # made when asked for: a graph of thousands of types is often asked for one
        known = self._find(name)
        return OfType(known, self._ranges[known], self._frames[self._number(known)])

    def __iter__(self) -> Iterator[Name]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.values()))}]"


class Types(NamedTuple):
    """The schema of a graph, and a frame for each node type and each relation, in its order.

    In a graph without types these are the frames of all nodes and of all edges.
    """

    schema: Schema
    nodes: tuple[Frame, ...]
    relations: tuple[Frame, ...]

    @classmethod
    def of_one(cls, ndata: Frame, edata: Frame) -> Types:
        """Return the types of a graph without any."""
        return cls(Schema.of_one_type(ndata.num_rows, edata.num_rows), (ndata,), (edata,))

    @classmethod
    def of(
        cls, schema: Schema, ndata: Frame, edata: Frame, frame_of: Callable[[str, int, int], Frame]
    ) -> Types:
        """Return the types of a schema, with the frames that ``frame_of(kind, number, rows)``
        makes.

        ``kind`` is "nodes" or "edges". Where there is only one type, or relation, its frame is that
        of the graph.
        """

        def frames(kind: str, ranges: Collection[range], frame_of_all: Frame) -> tuple[Frame, ...]:
            if len(ranges) == 1:
                return (frame_of_all,)
            return tuple(frame_of(kind, i, len(ids)) for i, ids in enumerate(ranges))

        nodes = frames("nodes", schema.nodes.values(), ndata)
        return cls(schema, nodes, frames("edges", schema.relations.values(), edata))

    def sizes(self) -> tuple[str, str]:
        """Return the sizes of node types, and of relations, in words; "" where there is only
        one.
        """
        nodes = {name: len(ids) for name, ids in self.schema.nodes.items()}
        relations = {" ".join(name): len(ids) for name, ids in self.schema.relations.items()}
        return sizes(nodes), sizes(relations)

    def frames(self, ndata: Frame, edata: Frame) -> list[tuple[str, Frame]]:
        """Return the frames of all nodes and all edges, then those of single types and relations,
        with their names.
        """
        frames = [("nodes", ndata), ("edges", edata)]
        names = [*self.schema.nodes, *map(" ".join, self.schema.relations)]
        for name, frame in zip(names, (*self.nodes, *self.relations), strict=True):
            if frame is not ndata and frame is not edata:
                frames.append((name, frame))
        return frames


def columns_of(kind: str, number: int) -> str:
    """Return what a graph folder calls the columns of a type of nodes, or of a relation of
    edges.
    """
    return f"{kind}{number}_"


def own_parts(graph: Graph) -> dict[str, OfType]:
    """Return the types and relations that have frames of their own, by what a graph folder calls
    their columns.
    """
    parts = {}
    kinds = (("nodes", graph.nodes, graph.ndata), ("edges", graph.relations, graph.edata))
    for kind, of_types, frame_of_all in kinds:
        for number, part in enumerate(of_types.values()):
            if part.data is not frame_of_all:
                parts[columns_of(kind, number)] = part
    return parts


def with_types_of(graph: Graph, parent: Graph, nodes: Ints, edges: Ints) -> Graph:
    """Return ``graph``, which has some nodes and edges (ascending) of ``whole``, with its types.

    Frames of types have the rows of these nodes and edges. Raises ValueError for nodes of a type
    that do not follow each other in the order of the types.
    """
    types = parent.schema.types_of(nodes)
    if (np.diff(types) < 0).any():
        names = ", ".join(map(repr, parent.schema.nodes))
        raise ValueError(
            f"nodes must come type after type, {names}, since a type is a range of ids"
        )
    schema = parent.schema.counted(types, parent.schema.relations_of(edges))
    old = {"nodes": list(parent.nodes.values()), "edges": list(parent.relations.values())}
    new = {"nodes": list(schema.nodes.values()), "edges": list(schema.relations.values())}
    ids_in_whole = {"nodes": nodes, "edges": edges}

    def frame(kind: str, number: int, num_rows: int) -> Frame:
        of_type = old[kind][number]
        ids = new[kind][number]
        rows = ids_in_whole[kind][ids.start : ids.stop] - of_type.ids.start
        # no new rows: columns are shared
        if np.array_equal(rows, np.arange(len(of_type))):
            return GraphFrame(num_rows, of_type.data)
        return GraphFrame(num_rows, _taken(of_type.data, torch.from_numpy(rows)))

    return with_schema(graph, schema, frame)


def _taken(columns: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    return {name: take_rows(column, rows) for name, column in columns.items()}


def with_schema(graph: Graph, schema: Schema, frame: Callable[[str, int, int], Frame]) -> Graph:
    """Return a graph of the same edges and columns, with types; ``frame`` is as for
    ``Types.of``.
    """
    return graph._trusted(
        graph.csc(), graph.ndata, graph.edata, Types.of(schema, graph.ndata, graph.edata, frame)
    )


def with_reverses(graph: Graph, *, keep: bool) -> Graph:
    """Return a graph with the reverse of each relation: in its place, or with ``keep`` of those
    that have none yet.

    A reverse has the name of its relation with ``rev_`` before it, and the columns of its edges.
    """
    src, dst = graph.edges()
    nodes = graph.nodes
    edges = {}
    reverses = {}
    rows = []
    if keep:
        rows.append(torch.arange(graph.num_edges))
    pairs = graph.schema.reversals().tolist()
    for (relation, part), pair in zip(graph.relations.items(), pairs, strict=True):
        ids = torch.arange(part.ids.start, part.ids.stop)
        sources = nodes[relation[0]].to_local(src[ids])
        destinations = nodes[relation[2]].to_local(dst[ids])
        if keep:
            edges[relation] = (sources, destinations, part.data)
        # a relation that has a reverse already gets no second one
        if not keep or pair < 0:
            reverse = (relation[2], REVERSE + relation[1], relation[0])
            reverses[reverse] = (destinations, sources, part.data)
            rows.append(ids)
    sizes_of_types = {name: len(part) for name, part in nodes.items()}
    both = type(graph).typed(sizes_of_types, edges | reverses)
    for name, part in nodes.items():
        both.nodes[name].data.update(part.data)
    of_edges = torch.cat([torch.arange(0), *rows])
    return with_frames(both, graph.ndata, _taken(graph.edata, of_edges))


def with_frames(graph: Graph, ndata: ColumnsLike, edata: ColumnsLike) -> Graph:
    """Return a graph of the same edges, types and columns of types, with other columns of all nodes
    and edges.
    """
    parts = {"nodes": list(graph.nodes.values()), "edges": list(graph.relations.values())}
    nodes = GraphFrame(graph.num_nodes, ndata)
    edges = GraphFrame(graph.num_edges, edata)

    types = Types.of(
        graph.schema, nodes, edges, lambda kind, i, size: GraphFrame(size, parts[kind][i].data)
    )
    return type(graph)._trusted(graph.held_part.structure, nodes, edges, types)


TypedParts: TypeAlias = "tuple[Schema, dict[str, list[ColumnsLike | None]], Ints, Ints]"
"""The schema of a graph, the columns of each type by kind, "nodes" or "edges", and the ends of its
edges in ids of the graph.
"""


def typed_parts(nodes: TypedNodes, edges: TypedEdges, reverse: bool) -> TypedParts:
    """Check the arguments of ``Graph.typed``, which says what they are and what is raised."""
    check_type(nodes, "nodes", Mapping, "a dict from names of types to sizes or columns")
    check_type(
        edges,
        "edges",
        Mapping,
        "a dict from triples (source type, name, destination type) to edges",
    )
    sizes = {name: _size(value, f"nodes[{name!r}]") for name, value in nodes.items()}
    ends = {relation: _ends(value, f"edges[{relation}]") for relation, value in edges.items()}
    if as_flag(reverse, "reverse"):
        for (a, name, b), (src, dst, columns) in list(ends.items()):
            back = (b, REVERSE + name, a)
            if back in ends:
                raise ValueError(f"reverse=True makes the relation {back}, which edges has already")
            ends[back] = dst, src, columns
    schema = Schema(sizes, {relation: len(src) for relation, (src, _, _) in ends.items()})
    # ids within a type become ids in the graph by the begin of the type
    all_src = [np.zeros(0, np.int64)]
    all_dst = [np.zeros(0, np.int64)]
    for relation, (src, dst, _) in ends.items():
        a, _, b = relation
        check_range(src, f"src of edges[{relation}]", sizes[a], f"{a} node")
        check_range(dst, f"dst of edges[{relation}]", sizes[b], f"{b} node")
        all_src.append(src + schema.ids(a).start)
        all_dst.append(dst + schema.ids(b).start)
    of_types = {
        "nodes": [None if isinstance(value, int) else value for value in nodes.values()],
        "edges": [columns for _, _, columns in ends.values()],
    }
    return schema, of_types, np.concatenate(all_src), np.concatenate(all_dst)


def _size(value: object, name: str) -> int:
    """Return the number of nodes of a type that is given by its size or its columns."""
    if not isinstance(value, Mapping) and not hasattr(value, "items"):
        return as_count(value, name)
    for key, column in value.items():
        if not hasattr(column, "shape") and not hasattr(column, "__len__"):
            raise TypeError(
                f"{name} must be a number of nodes, or a dict of columns, but {key!r} is no column"
            )
        shape = getattr(column, "shape", ())
        # which raises for a single number; the frame compares the others
        if shape:
            return int(shape[0])
        return len(column)
    raise ValueError(
        f"{name} has no columns, so it does not say how many nodes there are; give their number"
    )


def _ends(value: Any, name: str) -> tuple[Ints, Ints, ColumnsLike | None]:
    """Return sources, destinations and columns of the edges of a relation."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 2 and len(value) == 2:
        value = tuple(value)
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise TypeError(f"{name} must be (src, dst) or (src, dst, columns), got {describe(value)}")
    src = integers(value[0], f"src of {name}").astype(np.int64, copy=False)
    dst = integers(value[1], f"dst of {name}").astype(np.int64, copy=False)
    check_pairs(src, dst, f"src and dst of {name}", "edge")
    return src, dst, value[2] if len(value) == 3 else None
