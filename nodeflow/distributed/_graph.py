"""A graph that lies on several processes: each holds a part, and all draw from the whole."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Literal, NoReturn, overload

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import ALL, Ints, _All, as_ids, check_pairs, first_true
from nodeflow._base.types import IdsLike
from nodeflow._runtime import living
from nodeflow.distributed._between import edges_between
from nodeflow.distributed._held import HeldPart
from nodeflow.distributed._peers import PeerGroup
from nodeflow.distributed._rows import DistributedRows
from nodeflow.graph import Graph
from nodeflow.graph._frame import GraphFrame


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

    __slots__ = ("_held", "_peers", "parts")
    parts: Any
    _held: HeldPart
    _peers: PeerGroup

    def __init__(self, parts: Any, part: Any, peers: PeerGroup) -> None:
        ndata, edata = (
            {name: DistributedRows(peers, parts, kind, name, held) for name, held in columns.items()}
            for kind, columns in (("node", part.ndata), ("edge", part.edata))
        )
        edges = GraphFrame(parts.num_edges, edata)
        self._set(
            parts=parts, _peers=peers, ndata=GraphFrame(parts.num_nodes, ndata), edata=edges,
            _held=HeldPart(parts, part, edges), uid=str(uuid.uuid4()),
        )  # fmt: skip
        living.graphs[self.uid] = self

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return int(self.parts.num_nodes)

    @property
    def num_edges(self) -> int:
        """Number of edges of the whole graph."""
        return int(self.parts.num_edges)

    @property
    def peers(self) -> PeerGroup:
        """The processes that hold this graph together."""
        return self._peers

    @property
    def held(self) -> HeldPart:
        """What this process holds of the graph."""
        return self._held

    @property
    def masters(self) -> Tensor:
        """Ids of the nodes that this process owns, ascending, int64 ``[k]``."""
        return torch.from_numpy(np.array(self._held.part.masters))

    def in_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of in-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``; collective."""
        return self._degrees("in-degrees", lambda: self._held.csc()[0]).fetch(self._named(v))

    def out_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of out-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``; collective."""
        return self._degrees("out-degrees", lambda: self._held.csr()[0]).fetch(self._named(v))

    def find_edges(self, eid: IdsLike) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[k]`` each, of the edges with the ids ``eid``; collective."""
        ids = torch.from_numpy(as_ids(eid, "eid", self.num_edges, "edge"))
        found = DistributedRows(self._peers, self.parts, "edge", "ends", self._held.ends).fetch(ids)
        return found[:, 0].contiguous(), found[:, 1].contiguous()

    @overload
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: Literal[False] = False) -> Tensor: ...
    @overload
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: Literal[True]) -> tuple[Tensor, Tensor, Tensor]: ...
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: bool = False) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Return the lowest id of the edges ``u[i] -> v[i]``, or all of them; see ``Graph.edge_ids``. Collective.

        Raises also ValueError for a graph that was partitioned into a grid.
        """
        with self._peers.together("edges between nodes", exchanges=2):
            src, dst = as_ids(u, "u", self.num_nodes), as_ids(v, "v", self.num_nodes)
            check_pairs(src, dst, "u and v", "pair of nodes")
            indptr, edges = edges_between(self._peers, self._held, src, dst)
        counts = np.diff(indptr)
        if return_uv:
            found = np.repeat(src, counts), np.repeat(dst, counts), edges
            return torch.from_numpy(found[0]), torch.from_numpy(found[1]), torch.from_numpy(found[2])
        if (at := first_true(counts == 0)) is not None:
            raise ValueError(
                f"there is no edge {src[at]} -> {dst[at]} (pair {at} of {len(src)}); pass return_uv=True for the edges "
                "that there are"
            )
        return torch.from_numpy(edges[indptr[:-1]])

    def _degrees(self, name: str, indptr: Callable[[], Ints]) -> DistributedRows:
        held = torch.from_numpy(np.diff(indptr()))
        return DistributedRows(self._peers, self.parts, "node", name, held)

    def _named(self, v: IdsLike | _All) -> Tensor:
        return torch.from_numpy(np.arange(self.num_nodes) if isinstance(v, _All) else as_ids(v, "v", self.num_nodes))

    def __repr__(self) -> str:
        whole = super().__repr__().removeprefix("Graph(").removesuffix(")")
        here = f"{len(self._held.part.masters)} nodes and {self._held.num_edges} edges here"
        return f"DistributedGraph({whole}; rank {self._peers.rank} of {self._peers.size}, {here})"

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
