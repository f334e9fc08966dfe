"""A graph that lies on several processes: each holds a part, and all draw from the whole."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import ALL, Ints, _All, as_ids, as_number
from nodeflow._core.base.frozen import Lazy
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._core.base.version import __version__
from nodeflow._core.edges.stored import Between
from nodeflow._core.peers.held_part import HeldPart
from nodeflow._core.peers.peers import collective_call
from nodeflow._core.peers.routes import Routes
from nodeflow._core.rows.base import with_stored
from nodeflow._core.rows.rows import Rows, take_rows
from nodeflow._core.runtime import process
from nodeflow._core.schema import Relation
from nodeflow._processes.default_group import new_group
from nodeflow._processes.group import PeerGroup
from nodeflow.distributed._graph_parts import GraphPart, GraphParts
from nodeflow.distributed._halo import part_with_halo
from nodeflow.distributed._held_part import PartOfFolder
from nodeflow.distributed._rows import DistributedRows
from nodeflow.distributed._split import sums
from nodeflow.graph import Frame, Graph, GraphFrame, Types, columns_of, with_schema

HALO = 1.0
"""Edges of other processes' nodes that a process keeps by default, at most, for each edge of its
own.
"""


class DistributedGraph(Graph):
    """A graph of which every process of a group holds a part. ``open`` opens it.

    It is used like the whole graph: ``num_nodes``, ids and columns are those of the whole, and a
    sampler that is bound to it gives the NodeFlows that it gives on the whole graph in one process,
    bit for bit. Only, some calls are *collective*: every process must make them, in the same order,
    with arguments of its own. These are binding a sampler, drawing, fetching rows of columns (so
    ``copy_from_parent`` and batches of a loader), ``in_degrees``, ``out_degrees``, ``find_edges``,
    ``edge_ids`` and ``has_edges``.
    Arguments may differ between processes, and be empty.

    ``parts`` is the folder, ``held_part`` what this process holds, ``peers`` the processes, whose
    ``peers.counters`` count what was sent.
    """

    __slots__ = ("_own_part", "_with_halo", "held_part", "parts", "peers")
    parts: GraphParts
    held_part: HeldPart
    peers: PeerGroup
    _own_part: PartOfFolder
    _with_halo: Lazy[DistributedGraph] | None

    def __init__(
        self,
        parts: GraphParts,
        part: GraphPart,
        peers: PeerGroup,
        halo: float = HALO,
        frames: tuple[Frame, Frame, Types] | None = None,
    ) -> None:
        nodes, edges, types = frames_of(parts, part, peers) if frames is None else frames
        self._set(
            parts=parts, peers=peers, ndata=nodes, edata=edges, _types=types, uid=str(uuid.uuid4())
        )
        own_part = PartOfFolder(self, part, halo)
        self._set(held_part=own_part, _own_part=own_part, _with_halo=None)
        process.graphs[self.uid] = self
        if halo:
            # The halo is fetched when the first sampler asks for it: programs that draw nothing
            # need none, and fetching it is collective. It reads the graph without a halo.
            bare = self._reading(own_part)
            most_edges = int(min(halo * own_part.num_edges, self.num_edges))

            def with_halo() -> DistributedGraph:
                return bare._reading(part_with_halo(bare, own_part, most_edges))  # noqa: SLF001

            self._set(_with_halo=Lazy(with_halo))

    def _reading(self, held_part: HeldPart) -> DistributedGraph:
        """This graph, read by other means; it is not found by its ``uid``."""
        other = object.__new__(type(self))
        for name in ("parts", "peers", "ndata", "edata", "_types", "uid", "_own_part"):
            other._set(**{name: getattr(self, name)})
        other._set(held_part=held_part, _with_halo=None)
        return other

    @classmethod
    def _trusted(cls, arrays: Any, ndata: Frame, edata: Frame, types: Types | None = None) -> Graph:
        parts, part, peers, halo = arrays
        return cls(parts, part, peers, halo, (ndata, edata, types or Types.of_one(ndata, edata)))

    @classmethod
    @checked
    def open(
        cls,
        folder: FileLike,
        *,
        halo: float = HALO,
        timeout: float = 300.0,
        verify: bool | None = None,
    ) -> Graph:
        """Open the part of a graph that belongs to this process, of a folder from
        ``partition_graph``; collective.

        Rank r of the default process group holds part r. Exchanges use a gloo group of their own,
        so the default group may be of any backend. A process alone opens a folder of one part, as
        an ordinary ``Graph``.

        Args:
            folder: the folder. On a machine that does not share it, a copy of its own files and of
                its part's folder.
            halo: how many edges of nodes of other processes this one keeps in memory, at most, for
                each edge of its own. Draws need not ask for them. They are fetched when the first
                sampler is made, those first that own edges lead to most often; edges of own nodes
                are then in memory too. 0: none, and edges stay mapped.
            timeout: seconds after which an exchange that has not ended is an error, on all
                processes that wait for it.
            verify: which files of this process are compared with their checksums, as for
                ``Graph.open``.

        Raises RuntimeError for several parts without a process group, ValueError for another number
        of processes than parts, for folders, versions, timeouts or halos that differ between
        processes, for a halo below 0, and for files that are missing or damaged; PeerError where
        another process raises one of these.

        >>> import tempfile
        >>> from nodeflow import NeighborSampler, distributed
        >>> folder, ring = tempfile.mkdtemp(), Graph.from_edges([0, 1, 2], [1, 2, 0])
        >>> parts = distributed.partition_graph(ring, folder, 1, method="ranges", progress=False)
        >>> graph = DistributedGraph.open(folder)
        >>> NeighborSampler(graph, [2, 2])([1])
        NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
        """
        alone = not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1
        share = as_number(halo, "halo", least=0)
        if alone:
            return open_whole(folder, verify=verify)
        return cls(*open_part(folder, timeout, share, verify=verify), share)

    @property
    def in_parts(self) -> bool:
        """Whether the graph lies on several processes, of which each holds a part: it does."""
        return True

    @property
    def for_sampling(self) -> DistributedGraph:
        """The graph as samplers read it: with the halo, which is fetched when this is first asked
        for; collective.
        """
        return self if self._with_halo is None else self._with_halo.get()

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return int(self.parts.num_nodes)

    @property
    def num_edges(self) -> int:
        """Number of edges of the whole graph."""
        return int(self.parts.num_edges)

    @collective_call("in-degrees")
    def in_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of in-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``;
        collective.
        """
        part = self._own_part.part
        return self._degrees("in-degrees", part.rows, np.diff(part.indptr), v)

    @collective_call("out-degrees")
    def out_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of out-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``;
        collective.
        """
        nodes, counts = np.unique(self._own_part.part.src, return_counts=True)
        return self._degrees("out-degrees", nodes.astype(np.int64), counts, v)

    @collective_call("edges by id")
    def find_edges(self, eid: IdsLike) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[k]`` each, of the edges with the ids ``eid``;
        collective.
        """
        ids = as_ids(eid, "eid", self.num_edges, "edge")
        owners = partial(self.peers.owners, kind="edge")
        src, dst = self.peers.fetch("ends of edges", ids, owners, self._own_part.ends_of).T
        return src.contiguous(), dst.contiguous()

    @collective_call("edges between nodes")
    def _between(self, u: IdsLike, v: IdsLike) -> Between:
        return super()._between(u, v)

    def _edges_between(self, u: Ints, v: Ints) -> Between:
        peers = self.peers
        near_end = int(self.parts.edges == "in")
        # a pair goes to the process where the edges of its near end lie, each distinct pair once
        distinct, index = np.unique(np.stack([u, v]), axis=1, return_inverse=True)
        routes = Routes(peers.owners(distinct[near_end]), peers.size)
        pairs = routes.parcels(*distinct)
        answers = peers.ask("edges between nodes", pairs, self._own_part.edges_between)
        parcels = [arrays for arrays in answers if arrays]
        none = np.zeros(0, np.int64)
        counts = np.concatenate([none, *(of_pairs for of_pairs, _ in parcels)])
        ids = np.concatenate([none, *(edges for _, edges in parcels)])
        # a pair that is asked for twice travelled once
        indptr, positions = kernels.csr.csr_rows(sums(counts), routes.back()[index.reshape(-1)])
        return Between(u, v, indptr, ids[positions])

    def _degrees(self, name: str, nodes: Ints, counts: Ints, v: IdsLike | _All) -> Tensor:
        """Degrees: the owner of each node adds up the counts of its edges from all processes."""
        peers = self.peers
        parts = self.parts
        wanted = np.arange(self.num_nodes)
        if not isinstance(v, _All):
            wanted = as_ids(v, "v", self.num_nodes)
        # Edges of a node may lie on any process, by the cut: each sends its counts to the owner,
        # which adds them up and answers.
        sent = Routes(peers.owners(nodes), peers.size).parcels(nodes, counts)
        degrees = np.zeros(self._own_part.num_masters, np.int64)
        for arrays in peers.exchange(f"numbers of edges for {name}", sent):
            if arrays:
                degrees[parts.places(arrays[0])] += arrays[1]
        return peers.fetch(
            name, wanted, peers.owners, lambda ids: torch.from_numpy(degrees[parts.places(ids)])
        )

    def __repr__(self) -> str:
        words = super().__repr__()
        words = words.removeprefix("Graph(").removesuffix(")")
        return (
            f"DistributedGraph({words}; rank {self.peers.rank} of {self.peers.size}, "
            f"{len(self._own_part.part.masters)} nodes and {self._own_part.num_edges} edges here)"
        )

    def __reduce__(self, *_: object) -> NoReturn:
        raise TypeError(
            "a DistributedGraph is not pickled and not copied: every process opens the folder itself"
        )

    __deepcopy__: Any = __reduce__

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "this needs all edges of the graph, and this process holds a part of them "
            "(graph.held_part); distributed graphs answer in_degrees, out_degrees, find_edges, "
            "edge_ids, has_edges, and samplers"
        )

    csc = csr = in_edges = out_edges = edges = save = _refuse
    indptr = indices = stored_edge_ids = property(_refuse)


def frames_of(parts: GraphParts, part: GraphPart, peers: PeerGroup) -> tuple[Frame, Frame, Types]:
    """Return the frames of all nodes and all edges, and those of types, of the columns in the
    folder.
    """
    ranges: dict[str, list[tuple[str | Relation, range]]] = {
        "nodes": list(parts.schema.nodes.items()),
        "edges": list(parts.schema.relations.items()),
    }

    def frame(
        kind: str, num_rows: int, columns: Mapping[str, Tensor | Rows], suffix: str = "", *ids: Any
    ) -> Frame:
        def held_by_all(name: str) -> Tensor | Rows:
            return with_stored(
                columns[name],
                lambda rows: DistributedRows(peers, parts, kind, name + suffix, rows, *ids),
            )

        return GraphFrame(num_rows, {name: held_by_all(name) for name in columns})

    def of_type(kind: str, number: int, num_rows: int) -> Frame:
        name, ids = ranges[kind][number]
        columns = part.frames[columns_of(kind, number)]
        return frame(kind[:-1], num_rows, columns, f" of {name}", ids, part.ids_here(kind, ids))

    nodes = frame("node", parts.num_nodes, part.ndata)
    edges = frame("edge", parts.num_edges, part.edata)
    return nodes, edges, Types.of(parts.schema, nodes, edges, of_type)


def open_whole(folder: FileLike, *, verify: bool | None) -> Graph:
    """Open a folder of one part as the graph that it is; raises RuntimeError for several parts."""
    parts = GraphParts.open(folder, verify=verify)
    if parts.num_parts != 1:
        raise RuntimeError(
            f"{folder} has {parts.num_parts} parts, one for each of {parts.num_parts} processes, "
            "and this process is alone: start the program with torchrun, and call "
            "torch.distributed.init_process_group('gloo') first"
        )
    part = parts.part(0)
    indptr = np.zeros(parts.num_nodes + 1, np.int64)
    indptr[part.rows + 1] = np.diff(part.indptr)
    # columns of edges lie as the part has them; an ordinary graph has them by id
    order = torch.from_numpy(parts.places(np.arange(parts.num_edges), "edge"))
    edata = {name: take_rows(column, order) for name, column in part.edata.items()}
    plain = Graph(
        np.cumsum(indptr), part.src, edge_ids=part.edge_ids, ndata=part.ndata, edata=edata
    )
    return with_schema(
        plain,
        parts.schema,
        lambda kind, i, num_rows: GraphFrame(num_rows, part.frames[columns_of(kind, i)]),
    )


def open_part(
    folder: FileLike, timeout: float, halo: float, *, verify: bool | None
) -> tuple[GraphParts, GraphPart, PeerGroup]:
    """Return a folder of parts, the part of this process, and the processes; see
    ``DistributedGraph.open``.
    """
    seconds = as_number(timeout, "timeout", above=0)
    peers = new_group(str(next(process.openings)), seconds)
    with peers.together(f"opening {folder}"):
        parts = GraphParts.open(folder, verify=verify)
        if parts.num_parts != peers.size:
            raise ValueError(
                f"{folder} has {parts.num_parts} parts, but there are {peers.size} processes; "
                f"start {parts.num_parts} of them, or partition the graph again"
            )
        part = parts.part(peers.rank)
        facts = {"version of nodeflow": __version__, "identity of the cut": parts.identity}
        peers.agree("what is opened", {**facts, "timeout": repr(seconds), "halo": repr(halo)})
    peers.book = parts
    return parts, part, peers
