"""Graph: the immutable parent graph, in-edges first."""

from __future__ import annotations

import copy
import copyreg
import uuid
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, overload

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    ALL,
    Ints,
    _All,
    as_count,
    as_ids,
    check_indptr,
    check_pairs,
    check_range,
    titles,
)
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.habits import taught
from nodeflow._core.base.sizes import check_memory
from nodeflow._core.base.types import ColumnsLike, EdgeFilter, FileLike, IdsLike
from nodeflow._core.display.columns import column_table
from nodeflow._core.display.html import page
from nodeflow._core.edges.stored import (
    Between,
    OutEdges,
    Stored,
    by_id,
    degrees,
    edges_of,
    integers,
    permutation,
    read_only,
    stored,
    stored_indptr,
    transposed,
)
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.peers.held_part import HeldPart
from nodeflow._core.peers.peers import ALONE, Peers
from nodeflow._core.runtime import process
from nodeflow._core.runtime.mapped import FilePart, part_of_file
from nodeflow._core.schema import Relation, Schema
from nodeflow._files.disk.folders import new_folder
from nodeflow.graph._folder import check_reopened, open_graph, read_manifest, write_graph
from nodeflow.graph._frame import Frame, GraphFrame
from nodeflow.graph._names import NodeNames, check_all_or_none, listed
from nodeflow.graph._plot import plot
from nodeflow.graph._types import ByName, TypedEdges, TypedNodes, Types, typed_parts, with_schema

Arrays: TypeAlias = Sequence[Stored | None]
"""``indptr``, sources and edge ids of the in-edges."""


@taught
class Graph(Frozen):
    """An immutable directed graph; multi-edges and self-loops are allowed.

    The in-edges of node ``v`` are the positions ``indptr[v]`` to ``indptr[v + 1]``; at such a
    position ``indices`` holds the source and ``stored_edge_ids`` the edge's id. ``indptr`` is int64
    ``[num_nodes + 1]``, the other two are int32 or int64 ``[num_edges]``; all are read-only arrays.
    ``uid`` is the identity of the graph, kept by copies in other processes: batches find their
    graph by it.

    Args:
        indptr: int64 ``[num_nodes + 1]``, non-decreasing, from 0 to the number of edges.
        indices: integers ``[num_edges]``, the source node of each in-edge.
        edge_ids: integers ``[num_edges]``, a permutation of 0..num_edges-1; None means the position
            is the id.
        ndata, edata: columns of the node and edge frames; row ``e`` of an edge column belongs to
            edge id ``e``.
        copy: None (default) stores ids as int32 when they fit, which copies int64 ``indices`` and
            ``edge_ids``; what needs no conversion (an int64 ``indptr``, int32 ids) and
            memory-mapped arrays are shared. False shares all int32 and int64 arrays given (an int32
            ``indptr`` is converted); True always copies.

    Arrays that are shared are never written to; do not write to them either while the graph lives.
    The arrays are checked once, here: memory-mapped arrays are read in full for that, though they
    are not kept in memory. A pickled graph names the files of memory-mapped arrays, and of columns
    that map a file read-only, instead of holding them. Such a pickle opens the files again without
    another check: do not change them in between.

    Raises TypeError for ids that are not integers and for a graph or matrix of another library
    (``nodeflow.convert`` takes these), ValueError for an ``indptr`` that decreases, does not start
    at 0 or does not end at the number of edges and for ``edge_ids`` that are not a permutation,
    IndexError for a source that is not a node.

    >>> graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    >>> graph
    Graph(4 nodes, 5 edges)
    >>> graph.in_edges([2])
    (tensor([0, 1]), tensor([2, 2]), tensor([2, 3]))
    """

    __slots__: tuple[str, ...] = ("__weakref__", "_edge_ids", "_out", "_positions", "_types")
    __slots__ += ("edata", "indices", "indptr", "ndata", "uid")
    indptr: Ints
    indices: Stored
    uid: str
    ndata: Frame
    edata: Frame
    _edge_ids: Stored | None
    _out: OutEdges
    _positions: Lazy[Stored | None]
    _types: Types

    def __init__(
        self,
        indptr: IdsLike,
        indices: IdsLike | None = None,
        *,
        edge_ids: IdsLike | None = None,
        ndata: ColumnsLike | None = None,
        edata: ColumnsLike | None = None,
        copy: bool | None = None,
    ) -> None:
        _check_both(indices, "Graph takes indptr and indices of the in-edges")
        indptr = integers(indptr, "indptr")
        indices = integers(indices, "indices")
        check_indptr(indptr, len(indices))
        num_nodes = len(indptr) - 1
        check_range(indices, "indices", num_nodes, "node")
        ids = None
        if edge_ids is not None:
            ids = stored(permutation(edge_ids, len(indices)), copy, len(indices))
        arrays = (stored_indptr(indptr, copy), stored(indices, copy, num_nodes), ids)
        nodes = GraphFrame(num_nodes, ndata)
        edges = GraphFrame(len(indices), edata)
        self._start(arrays, nodes, edges, str(uuid.uuid4()))

    @classmethod
    def _trusted(
        cls, arrays: Arrays, ndata: Frame, edata: Frame, types: Types | None = None
    ) -> Graph:
        """Build a graph of arrays and frames that are known to be right; None for ``types``: all
        are of one.
        """
        graph = cls.__new__(cls)
        graph.__setstate__((arrays, ndata, edata, str(uuid.uuid4()), types))
        return graph

    def _start(
        self, arrays: Arrays, ndata: Frame, edata: Frame, uid: str, types: Types | None = None
    ) -> None:
        indptr, indices, edge_ids = arrays

        def positions() -> Stored | None:
            if edge_ids is None:
                return None
            return by_id(np.arange(len(edge_ids)), edge_ids)

        self._set(
            indptr=indptr,
            indices=indices,
            ndata=ndata,
            edata=edata,
            uid=uid,
            _edge_ids=edge_ids,
            _out=OutEdges(),
            _positions=Lazy(positions),
            _types=types or Types.of_one(ndata, edata),
        )
        process.graphs[uid] = self

    @classmethod
    def from_edges(
        cls,
        src: IdsLike,
        dst: IdsLike | None = None,
        *,
        num_nodes: int | None = None,
        edge_ids: IdsLike | None = None,
        ndata: ColumnsLike | None = None,
        edata: ColumnsLike | None = None,
    ) -> Graph:
        """Build a graph from its edges ``src[e] -> dst[e]``; edge ``e`` of the list gets id ``e``.

        Args:
            src, dst: integers ``[num_edges]``; for an ``edge_index`` of shape ``[2, num_edges]``
                write ``Graph.from_edges(*edge_index)``.
            num_nodes: number of nodes; None takes the largest id plus one.
            edge_ids: the id of every edge of the list, a permutation of 0..num_edges-1. The graph
                depends on the ids only, not on the order in which the edges are listed.
            ndata, edata: columns of the node and edge frames; row ``e`` of an edge column belongs
                to edge id ``e``.

        Raises the errors of ``Graph``, and ValueError when ``src`` and ``dst`` differ in length.

        >>> Graph.from_edges([0, 1], [1, 2], edge_ids=[1, 0]).edges()
        (tensor([1, 0]), tensor([2, 1]))
        """
        _check_both(dst, "Graph.from_edges takes src and dst, the ends of the edges")
        src = integers(src, "src")
        dst = integers(dst, "dst")
        check_pairs(src, dst, "src and dst", "edge")
        num_nodes = _size_of(num_nodes, src, dst)
        check_range(src, "src", num_nodes, "node")
        check_range(dst, "dst", num_nodes, "node")
        if edge_ids is not None:
            ids = permutation(edge_ids, len(src))
            src = by_id(src, ids)
            dst = by_id(dst, ids)
        # ids stay those of the list, while edges are stored by destination
        indptr, order = kernels.csr.sort_by_destination(dst, num_nodes)
        arrays = indptr, stored(src[order], None, num_nodes), stored(order, None, len(src))
        return cls._trusted(arrays, GraphFrame(num_nodes, ndata), GraphFrame(len(src), edata))

    @classmethod
    def from_named_edges(
        cls,
        src: Iterable[Hashable],
        dst: Iterable[Hashable],
        *,
        names: Iterable[Hashable] | None = None,
        ndata: ColumnsLike | None = None,
        edata: ColumnsLike | None = None,
    ) -> tuple[Graph, NodeNames]:
        """Build a graph from edges between named nodes; return it with the names of its ids.

        Args:
            src, dst: names of the ends of every edge ``[num_edges]``: strings, or other hashable
                keys such as the large ids of a database. Lists, arrays and pandas columns are
                taken.
            names: all names in the order of the ids, which may hold nodes without edges. None
                numbers nodes in the order in which they first occur: ``src[0]``, ``dst[0]``,
                ``src[1]``, ...
            ndata, edata: columns of the node and edge frames.

        Raises KeyError for a name that is not in ``names``, ValueError for a missing name (None,
        NaN), for bools beside other names, and when ``src`` and ``dst`` differ in length.

        >>> graph, names = Graph.from_named_edges(["ann", "cid"], ["bob", "ann"])
        >>> graph.in_edges(names.ids(["ann"])), names.at([0, 1, 2])
        ((tensor([2]), tensor([0]), tensor([1])), ['ann', 'bob', 'cid'])
        """
        sources = listed(src, "src")
        destinations = listed(dst, "dst")
        check_pairs(sources, destinations, "src and dst", "edge")
        # True and 1 would be one node
        if names is not None:
            names = listed(names, "names")
        words = chain(sources, destinations, names or ())
        check_all_or_none(words, bool | np.bool_, "True or False")
        if names is None:
            in_order = chain.from_iterable(zip(sources, destinations, strict=True))
            names = dict.fromkeys(in_order)
        named = NodeNames(names)
        ends = (named.ids(sources), named.ids(destinations))
        return cls.from_edges(*ends, num_nodes=len(named), ndata=ndata, edata=edata), named

    @classmethod
    @checked
    def typed(cls, nodes: TypedNodes, edges: TypedEdges, *, reverse: bool = False) -> Graph:
        """Build a graph of nodes of several types and edges of several relations.

        All nodes have ids in one space, type after type, and so have all edges; ``graph.schema``
        has the ranges. A column of a type may have another width than one of the same name of
        another type. ``graph.ndata`` and ``graph.edata`` are for columns of all nodes and of all
        edges, and are empty at first.

        Args:
            nodes: per type, by name, the number of its nodes, or their columns.
            edges: per relation, by (type of the sources, name, type of the destinations), its
                edges: ``(src, dst)``, integers ``[num_edges]`` that are ids within their types,
                ``(src, dst, columns)``, or an array ``[2, num_edges]``.
            reverse: add for each relation ("a", "name", "b") the relation ("b", "rev_name", "a"),
                with the same edges the other way and the same columns.

        Raises TypeError and ValueError for arguments that are something else, KeyError for a
        relation between types that are not in ``nodes``, IndexError for an id that is no node of
        its type.

        >>> graph = Graph.typed(
        ...     {"author": 3, "paper": {"year": torch.tensor([1999, 2004])}},
        ...     {("author", "writes", "paper"): ([0, 1, 2], [0, 0, 1])},
        ...     reverse=True,
        ... )
        >>> graph.schema
        Schema(author 3, paper 2; author -writes-> paper 3, paper -rev_writes-> author 3)
        >>> graph.in_edges(graph.nodes["paper"].to_graph([0]))
        (tensor([0, 1]), tensor([3, 3]), tensor([0, 1]))
        """
        schema, columns, src, dst = typed_parts(nodes, edges, reverse)
        plain = cls.from_edges(src, dst, num_nodes=schema.num_nodes)
        # a type that is the only one shares the frame of all nodes, or of all edges
        for kind, frame in (("nodes", plain.ndata), ("edges", plain.edata)):
            if len(columns[kind]) == 1:
                frame.update(columns[kind][0])
        return with_schema(
            plain, schema, lambda kind, number, size: GraphFrame(size, columns[kind][number])
        )

    @checked
    def save(self, folder: FileLike, *, overwrite: bool = False) -> None:
        """Write the graph with all its columns into a folder, for ``Graph.open``.

        The folder appears whole or not at all. Columns are written in pieces of bounded memory,
        also ``Rows`` that are fetched by id, and are dense or sparse again when they are opened.

        Args:
            folder: made when missing, and its parents too.
            overwrite: replace a folder that is there; also the one that this graph was opened from,
                which goes on with the files that it has mapped.

        Raises FileExistsError for a folder that exists, BlockingIOError where another process is
        writing it, OSError where the disk cannot hold it.

        >>> import tempfile
        >>> place = tempfile.mkdtemp() + "/papers"
        >>> Graph.from_edges([0, 1], [1, 2], ndata={"feat": torch.ones(3, 4)}).save(place)
        >>> Graph.open(place)
        Graph(3 nodes, 2 edges, ndata: feat)
        """
        with new_folder(Path(folder), overwrite=overwrite) as draft:
            write_graph(self, draft).write(draft)

    @classmethod
    @checked
    def open(cls, folder: FileLike, *, verify: bool | None = None) -> Graph:
        """Open a graph that ``save`` or ``datasets.build_graph`` wrote. Arrays and columns map the
        files, read-only.

        Files that have changed since they were last checked are read once, and compared with their
        checksums; indices are compared with their bounds, also by a pickle that another process
        loads: it names the files, and keeps the identity (``uid``). The file ``.checked`` in the
        folder remembers what was checked, where it can be written.

        Args:
            folder: the folder.
            verify: None checks files that have changed. True reads all files, and also checks that
                the edge ids are a permutation. False trusts the files, and compares indices with
                their bounds only, once.

        Raises FileNotFoundError for a folder without a graph, ValueError for files that are
        missing, damaged, or of another kind or version.
        """
        arrays, ndata, edata, types = open_graph(Path(folder), read_manifest(folder, verify=verify))
        return cls._trusted(
            [array if array is None else read_only(array) for array in arrays], ndata, edata, types
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self.indices)

    @property
    def schema(self) -> Schema:
        """The node types and relations; a graph without types has one of each."""
        return self._types.schema

    @property
    def nodes(self) -> ByName[str]:
        """The nodes of each type, by name: their ids and columns of their own. See ``OfType``."""
        schema = self.schema
        return ByName(schema.nodes, self._types.nodes, schema.node_type, schema.number)

    @property
    def relations(self) -> ByName[Relation]:
        """The edges of each relation, by triple, or by a name that only one relation has. See
        ``OfType``.
        """
        schema = self.schema
        return ByName(schema.relations, self._types.relations, schema.relation, schema.number)

    @property
    def stored_edge_ids(self) -> Stored:
        """Read-only integer array ``[num_edges]``: id of each in-edge, as stored."""
        if self._edge_ids is None:
            return read_only(np.arange(self.num_edges))
        return self._edge_ids

    def csc(self) -> tuple[Ints, Stored, Stored | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges as stored; edge ids None means the
        position.
        """
        return self.indptr, self.indices, self._edge_ids

    def csr(self) -> tuple[Ints, Stored, Stored]:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges, by source and id; made on
        first use.
        """
        return self._out.get(lambda: transposed(*self.csc()))

    def view(
        self,
        direction: str = "in",
        *,
        where: EdgeFilter | None = None,
        weight: str | None = None,
    ) -> EdgeView:
        """Return these edges as samplers, sums and histories take them.

        Args:
            direction: "in", "out" or "both": along which edges neighbours are looked up.
            where: which edges exist: the name of a bool edge column, a bool mask ``[num_edges]``,
                or a function of ``graph.edata`` that returns one; None: all.
            weight: name of the edge column by which edges count in sums; None: each counts 1.

        What takes a view takes a graph too, in place of ``graph.view()``. Samplers, histories and
        sums of one view share its arrays. For more, and errors, see ``graph.EdgeView``.

        >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 1], edata={"old": torch.tensor([True, False, True])})
        >>> graph.view("out", where="old").numbers()
        tensor([1., 0., 1.], dtype=torch.float64)
        """
        return EdgeView(self, direction, where=where, weight=weight)

    def in_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of in-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``."""
        return degrees(self.indptr, v, self.num_nodes)

    def out_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of out-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``."""
        if self._out.arrays:
            return degrees(self._out.arrays[0], v, self.num_nodes)
        counts = np.bincount(self.indices, minlength=self.num_nodes).astype(np.int64)
        return torch.from_numpy(
            counts if isinstance(v, _All) else counts[as_ids(v, "v", self.num_nodes)]
        )

    def in_edges(self, v: IdsLike) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, edge ids)``, int64 ``[k]`` each, of all in-edges of the nodes ``v``,
        node by node.
        """
        return edges_of(as_ids(v, "v", self.num_nodes), *self.csc())

    def out_edges(self, v: IdsLike) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, edge ids)``, int64 ``[k]`` each, of all out-edges of the nodes ``v``,
        node by node.
        """
        dst, src, edges = edges_of(as_ids(v, "v", self.num_nodes), *self.csr())
        return src, dst, edges

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[num_edges]`` each, in the order of the edge ids."""
        ids = slice(None) if self._edge_ids is None else self._edge_ids
        src = np.empty(self.num_edges, np.int64)
        dst = np.empty(self.num_edges, np.int64)
        # edges are stored by destination: each is put at its id
        src[ids] = self.indices
        dst[ids] = np.repeat(np.arange(self.num_nodes), np.diff(self.indptr))
        return torch.from_numpy(src), torch.from_numpy(dst)

    # ---- edges by their ends, and ends by the ids of edges

    def has_edges(self, u: IdsLike, v: IdsLike) -> Tensor:
        """Return whether there is an edge ``u[i] -> v[i]``, bool ``[k]``, for nodes ``u`` and
        ``v``, ``[k]`` each.

        Raises ValueError when ``u`` and ``v`` differ in length, IndexError for an id that is no
        node.

        >>> Graph.from_edges([0, 0], [1, 2]).has_edges([0, 1], [1, 0])
        tensor([ True, False])
        """
        return self._between(u, v).exist()

    @overload
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: Literal[False] = False) -> Tensor: ...
    @overload
    def edge_ids(
        self, u: IdsLike, v: IdsLike, *, return_uv: Literal[True]
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    @checked
    def edge_ids(
        self, u: IdsLike, v: IdsLike, *, return_uv: bool = False
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Return the id of the edge ``u[i] -> v[i]``, int64 ``[k]``, for nodes ``u`` and ``v``,
        ``[k]`` each.

        Where several edges join the pair, this is the lowest of their ids.

        Args:
            u, v: the nodes.
            return_uv: return ``(src, dst, edge ids)`` of all edges of every pair instead, pair by
                pair with ascending ids; a pair without edges then adds nothing.

        Raises ValueError when there is no edge for a pair (unless ``return_uv``) or when ``u`` and
        ``v`` differ in length, IndexError for an id that is no node.

        >>> graph = Graph.from_edges([0, 0, 1], [1, 1, 0])
        >>> graph.edge_ids([1, 0], [0, 1])
        tensor([2, 0])
        >>> graph.edge_ids([0, 1], [1, 1], return_uv=True)
        (tensor([0, 0]), tensor([1, 1]), tensor([0, 1]))
        """
        between = self._between(u, v)
        if return_uv:
            return between.every()
        return between.lowest()

    def find_edges(self, eid: IdsLike) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[k]`` each, of the edges with the ids ``eid``.

        The first call makes an array with the position of every edge id, unless edge ids are
        positions already. Raises IndexError for an id that is no edge.

        >>> Graph.from_edges([0, 2], [1, 0]).find_edges([1])
        (tensor([2]), tensor([0]))
        """
        ids = as_ids(eid, "eid", self.num_edges, "edge")
        stored_at = self._positions.get()
        positions = ids
        if stored_at is not None:
            positions = stored_at[ids]
        src = self.indices[positions].astype(np.int64)
        # the destination is the row whose range holds the position
        dst = np.searchsorted(self.indptr, positions, side="right") - 1
        return torch.from_numpy(src), torch.from_numpy(dst)

    def _between(self, u: IdsLike, v: IdsLike) -> Between:
        src = as_ids(u, "u", self.num_nodes)
        dst = as_ids(v, "v", self.num_nodes)
        check_pairs(src, dst, "u and v", "pair of nodes")
        return self._edges_between(src, dst)

    def _edges_between(self, u: Ints, v: Ints) -> Between:
        return Between.of(u, v, self.num_nodes, *self.csc())

    # ---- what this process holds of the graph: ``DistributedGraph`` has other answers

    @property
    def peers(self) -> Peers:
        """The processes that hold this graph together: this one alone."""
        return ALONE

    @property
    def in_parts(self) -> bool:
        """Whether the graph lies on several processes, of which each holds a part: it does not."""
        return False

    @property
    def held_part(self) -> HeldPart:
        """The part of the graph that this process holds: all of it."""
        return HeldPart(self)

    @property
    def for_sampling(self) -> Self:
        """The graph as samplers read it: this one."""
        return self

    @property
    def masters(self) -> Tensor:
        """Ids of the nodes that this process owns, ascending, int64: all."""
        return self.held_part.masters

    plot = plot

    def _repr_html_(self) -> str:
        of_nodes, of_edges = self._types.sizes()
        return page(
            type(self).__name__,
            f"{self.num_nodes:,} nodes{of_nodes}, {self.num_edges:,} edges{of_edges}",
            column_table(self._types.frames(self.ndata, self.edata), "frame"),
        )

    def __repr__(self) -> str:
        of_nodes, of_edges = self._types.sizes()
        words = f"{self.num_nodes} nodes{of_nodes}, {self.num_edges} edges{of_edges}"
        for kind, frame in (("ndata", self.ndata), ("edata", self.edata)):
            if frame:
                words += f", {kind}: {titles(frame)}"
        return f"Graph({words})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return a graph of its own with copied columns; the structure, which never changes, is
        shared.
        """
        return Graph._trusted(
            self.csc(), *copy.deepcopy((self.ndata, self.edata, self._types), memo)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # an array that maps a file travels as the name of the file
        parts = [array if array is None else part_of_file(array) or array for array in self.csc()]
        state = (parts, self.ndata, self.edata, self.uid, self._types)
        return copyreg.__newobj__, (Graph,), state  # type: ignore[attr-defined]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        arrays, ndata, edata, uid, types = state
        opened = [array.open() if isinstance(array, FilePart) else array for array in arrays]
        living_one = process.graphs.get(uid)
        # a process checks the files of a graph once
        if living_one is None:
            check_reopened(arrays, opened)
        frozen_arrays = [None if array is None else read_only(array) for array in opened]
        self._start(frozen_arrays, ndata, edata, uid, types)
        # in the process where the graph still lives, batches go on finding that very object
        if living_one is not None:
            process.graphs[uid] = living_one


def _check_both(second: object, expected: str) -> None:
    """Raise TypeError where one argument came in place of two arrays."""
    if second is None:
        raise TypeError(
            f"{expected}, in two one-dimensional arrays, and got one argument; of an edge_index of "
            "shape [2, num_edges] make a graph by Graph.from_edges(*edge_index), of a graph or "
            "table of another library by a function of nodeflow.convert"
        )


def _size_of(num_nodes: int | None, src: Ints, dst: Ints) -> int:
    """Return the number of nodes of a list of edges, the largest id + 1 for None; raises ValueError
    beyond memory.
    """
    subject = "num_nodes"
    if num_nodes is None:
        num_nodes = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
        subject = "num_nodes, the largest id + 1,"
    size = as_count(num_nodes, "num_nodes")
    check_memory(
        16 * size,
        f"{subject} of {size}",
        "ids count from 0 without large gaps: Graph.from_named_edges numbers others",
    )
    return size
