"""A graph that lies on several processes: each holds a part, and all draw from the whole."""

from __future__ import annotations

import uuid
from typing import Any, Literal, NoReturn, overload

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import ALL, Ints, _All, as_ids, check_pairs, first_true
from nodeflow._base.types import FileLike, IdsLike
from nodeflow._peers.fetching import fetch_from_owners
from nodeflow._peers.routes import Routes
from nodeflow._runtime import living
from nodeflow.distributed._graph_parts import GraphPart, GraphParts
from nodeflow.distributed._held import HeldEnds, HeldPart
from nodeflow.distributed._open import open_part, open_whole
from nodeflow.distributed._peers import PeerGroup
from nodeflow.distributed._rows import DistributedRows
from nodeflow.graph import Graph, GraphFrame
from nodeflow.partitions import sums


class DistributedGraph(Graph):
    """A graph of which every process of a group holds a part. ``open`` opens it.

    It is used like the whole graph: ``num_nodes``, ids and columns are those of the whole, and a sampler that is bound
    to it gives the NodeFlows that it gives on the whole graph in one process, bit for bit. Only, some calls are
    *collective*: every process must make them, in the same order, with arguments of its own. These are binding a
    sampler, drawing, fetching rows of columns (so ``copy_from_parent`` and batches of a loader), ``in_degrees``,
    ``out_degrees``, ``find_edges`` and ``edge_ids``. Arguments may differ between processes, and be empty.

    ``parts`` is the folder, ``held`` what this process holds, ``peers`` the processes, whose ``peers.counters`` count
    what was sent.
    """

    __slots__ = ("held", "parts", "peers")
    parts: GraphParts
    held: HeldPart
    peers: PeerGroup

    def __init__(self, parts: GraphParts, part: GraphPart, peers: PeerGroup) -> None:
        ndata, edata = (
            {name: DistributedRows(peers, parts, kind, name, held) for name, held in columns.items()}
            for kind, columns in (("node", part.ndata), ("edge", part.edata))
        )
        edges = GraphFrame(parts.num_edges, edata)
        self._set(
            parts=parts, peers=peers, ndata=GraphFrame(parts.num_nodes, ndata), edata=edges,
            held=HeldPart(parts, part, edges), uid=str(uuid.uuid4()),
        )  # fmt: skip
        living.graphs[self.uid] = self

    @classmethod
    def open(cls, folder: FileLike, *, timeout: float = 300.0, verify: bool = False) -> Graph:
        """Open the part of a graph that belongs to this process, of a folder from ``partition_graph``; collective.

        Rank r of the default process group holds part r. Exchanges use a gloo group of their own, so the default group
        may be of any backend. A process alone opens a folder of one part, as an ordinary ``Graph``.

        Args:
            folder: the folder. On a machine that does not share it, a copy of its own files and of its part's folder.
            timeout: seconds after which an exchange that has not ended is an error, on all processes that wait for it.
            verify: check the checksums of all files that this process reads.

        Raises RuntimeError for several parts without a process group, ValueError for another number of processes than
        parts, for folders, versions or timeouts that differ between processes, and for files that are missing or
        damaged; PeerError where another process raises one of these.

        >>> import tempfile
        >>> from nodeflow import NeighborSampler, distributed
        >>> folder, ring = tempfile.mkdtemp(), Graph.from_edges([0, 1, 2], [1, 2, 0])
        >>> parts = distributed.partition_graph(ring, folder, 1, method="ranges", progress=False)
        >>> graph = DistributedGraph.open(folder)
        >>> NeighborSampler(graph, [2, 2])([1])
        NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
        """
        alone = not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1
        return open_whole(folder, verify=verify) if alone else cls(*open_part(folder, timeout, verify=verify))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return int(self.parts.num_nodes)

    @property
    def num_edges(self) -> int:
        """Number of edges of the whole graph."""
        return int(self.parts.num_edges)

    def in_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of in-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``; collective."""
        part = self.held.part
        return self._degrees("in-degrees", part.rows, np.diff(part.indptr), v)

    def out_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of out-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``; collective."""
        nodes, counts = np.unique(self.held.part.src, return_counts=True)
        return self._degrees("out-degrees", nodes.astype(np.int64), counts, v)

    def find_edges(self, eid: IdsLike) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[k]`` each, of the edges with the ids ``eid``; collective."""
        with self.peers.together("edges by id", exchanges=1):
            ids = torch.from_numpy(as_ids(eid, "eid", self.num_edges, "edge"))
        src, dst = DistributedRows(self.peers, self.parts, "edge", "ends", HeldEnds(self.held.part)).fetch(ids).T
        return src.contiguous(), dst.contiguous()

    @overload
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: Literal[False] = False) -> Tensor: ...
    @overload
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: Literal[True]) -> tuple[Tensor, Tensor, Tensor]: ...
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: bool = False) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Return the lowest id of the edges ``u[i] -> v[i]``, or all of them; see ``Graph.edge_ids``. Collective.

        Raises also ValueError for a graph that was partitioned into a grid.
        """
        with self.peers.together("edges between nodes", exchanges=2):
            src, dst = as_ids(u, "u", self.num_nodes), as_ids(v, "v", self.num_nodes)
            check_pairs(src, dst, "u and v", "pair of nodes")
            indptr, edges = self._edges_between(src, dst)
        counts = np.diff(indptr)
        if return_uv:
            ends = torch.from_numpy(np.repeat(np.stack([src, dst]), counts, axis=1))
            return ends[0], ends[1], torch.from_numpy(edges)
        if (at := first_true(counts == 0)) is not None:
            raise ValueError(
                f"there is no edge {src[at]} -> {dst[at]} (pair {at} of {len(src)}); pass return_uv=True for the edges "
                "that there are"
            )
        return torch.from_numpy(edges[indptr[:-1]])

    def _edges_between(self, u: Ints, v: Ints) -> tuple[Ints, Ints]:
        """``(indptr, edge ids)`` of all edges from ``u[i]`` to ``v[i]``, asked of those that hold them.

        A pair that is asked for repeatedly travels once. Raises ValueError for a graph that was cut into a grid.
        """
        peers, lie = self.peers, self.parts.edges
        if lie not in ("in", "out"):
            raise ValueError(
                f"edge_ids needs a graph that was partitioned with edges='in' or 'out'; this one has edges={lie!r}, so "
                "any process may hold an edge between two nodes"
            )
        distinct, index = np.unique(np.stack([u, v]), axis=1, return_inverse=True)
        routes = Routes(peers.owners(distinct[1 if lie == "in" else 0]), peers.size)
        questions = peers.exchange("pairs of nodes", routes.parcels(*distinct))
        answers = [list(self.held.edges_between(*arrays)) if arrays else [] for arrays in questions]
        parcels = [arrays for arrays in peers.exchange("edges between nodes", answers) if arrays]
        counts, ids = (np.concatenate([np.zeros(0, np.int64), *(arrays[i] for arrays in parcels)]) for i in range(2))
        indptr, at = kernels.csr.csr_rows(sums(counts), routes.back()[index.reshape(-1)])
        return indptr, ids[at]

    def _degrees(self, name: str, nodes: Ints, counts: Ints, v: IdsLike | _All) -> Tensor:
        """Degrees, from the numbers of edges that each process has at some nodes, which their owners add up."""
        peers, parts = self.peers, self.parts
        with peers.together(name, exchanges=3):
            wanted = np.arange(self.num_nodes) if isinstance(v, _All) else as_ids(v, "v", self.num_nodes)
            sent = Routes(peers.owners(nodes), peers.size).parcels(nodes, counts)
            degrees = np.zeros(len(self.held.part.masters), np.int64)
            for arrays in peers.exchange(f"numbers of edges for {name}", sent):
                if arrays:
                    degrees[parts.places(arrays[0])] += arrays[1]
            held = torch.from_numpy(degrees)
            return fetch_from_owners(
                peers, name, wanted, peers.owners, lambda ids: held[torch.from_numpy(parts.places(ids))]
            )

    def __repr__(self) -> str:
        whole = super().__repr__().removeprefix("Graph(").removesuffix(")")
        part = f"{len(self.held.part.masters)} nodes and {self.held.num_edges} edges here"
        return f"DistributedGraph({whole}; rank {self.peers.rank} of {self.peers.size}, {part})"

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise TypeError("a DistributedGraph is not copied; open the folder again")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a DistributedGraph is not pickled: every process opens the folder itself")

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "this needs all edges of the graph, and this process holds a part of them (graph.held); "
            "distributed graphs answer in_degrees, out_degrees, find_edges, edge_ids, and samplers that draw row by row"
        )

    csc = csr = in_edges = out_edges = edges = has_edges = save = _refuse
    indptr = indices = stored_edge_ids = property(_refuse)
