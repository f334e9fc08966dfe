"""Full propagation: weighted sums over all edges of some nodes, or of all, straight from the parent
graph.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, check_num_rows
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.edges.columns import is_float64
from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.edges.view import EdgeView, as_view, graph_of
from nodeflow._core.peers.peers import collective_call
from nodeflow._core.random import derive_key, hash_ids
from nodeflow._core.rows.rows import Rows, is_sparse, put_rows, take_rows
from nodeflow.flow import EdgeColumns, FullFlow, Layer
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure
from nodeflow.propagation._edge_sums import EdgeSums
from nodeflow.propagation._exchange_plan import ExchangePlan
from nodeflow.transform import DEGREES


class Propagation(Frozen):
    """The linear map ``out[v] = sum over all edges u -> v of P_uv h[u]``, with P an edge column, or
    1.

    Where several processes hold the graph, making one and calling it are collective. Every process
    sums over the edges that it holds, and sums at nodes that others own travel to these, which add
    them. So all ways to place edges work, also a vertex-cut. Rows and sums are then those of the
    nodes that the process owns, ``graph.masters``.

    Args:
        graph: the parent graph, or a view of it (``Graph.view``), whose weights are P;
            ``transform.edge_norm`` makes those of a mean and of a GCN. With the direction "out"
            sums are over the edges v -> u instead.

    ``weights`` is the column P in the order of the edges held here, grouped by node; None for 1.
    ``plan`` says which rows travel: its ``nodes`` are those that have edges here.

    Raises ValueError for the direction "both", and what reading the view raises.

    >>> graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 2], edata={"p": torch.full((4,), 0.5)})
    >>> mean = Propagation(graph.view(weight="p"))
    >>> mean(torch.tensor([[0.5], [0.0], [1.0]]), nodes=[2, 1])
    tensor([[0.2500],
            [0.7500]])
    """

    __slots__ = ("_columns", "_leaving", "_sums", "graph", "plan", "view")
    graph: Graph
    view: EdgeView
    plan: ExchangePlan
    _sums: EdgeSums
    _leaving: Lazy[Tensor]
    _columns: Lazy[Mapping[str, Tensor | Rows]]

    @checked
    def __init__(self, graph: Graph | EdgeView) -> None:
        parent = graph_of(graph)
        with parent.peers.together("making a Propagation"):
            view = as_view(graph)
            plan = ExchangePlan(parent)
            part = parent.held_part
            edges, weights = view.among(plan.edges(view.direction))
            self._set(
                graph=parent,
                view=view,
                plan=plan,
                _sums=EdgeSums(edges, weights),
                _leaving=Lazy(self._count_leaving),
                _columns=Lazy(
                    lambda: {
                        n: part.of_all_nodes(parent.ndata[n]) for n in DEGREES if n in parent.ndata
                    }
                ),
            )
            # these are exchanges, and flows make none; a process alone need not read all edges
            # before it makes flows
            if parent.peers.size > 1:
                self._leaving.get(), self._columns.get()

    def __repr__(self) -> str:
        return f"Propagation({self.view!r})"

    def __deepcopy__(self, memo: object) -> Propagation:
        # it never changes, and belongs to the very graph that it was made with
        return self

    @property
    def weights(self) -> Array | None:
        """P of the edges held here, grouped by node; None: 1."""
        return self._sums.weights

    @property
    def fingerprint(self) -> int:
        """A hash of edges and weights, int64, which tells propagations apart in files and
        checkpoints.
        """
        hashed = self._sums.fingerprint
        # files and checkpoints of one process have the hash alone
        if self.graph.peers.size == 1:
            return hashed
        return derive_key(self.plan.num_masters, hash_ids(self.plan.nodes), hashed) >> 1

    @collective_call("numbers of edges")
    def degrees_of(self, nodes: Tensor) -> Tensor:
        """Return the number of edges of any ``nodes``, trusted parent ids, int64; collective.

        For edges that lie with their destinations. Nodes may differ between processes.
        """
        peers = self.graph.peers
        words = "numbers of edges"
        places = self.graph.held_part.whole.rows_of
        ids = nodes.cpu().numpy()
        degrees = peers.fetch(
            words, ids, peers.owners, lambda own: self._sums.degrees_at(places(own))
        )
        return degrees.to(nodes.device)

    @collective_call("sums over all edges")
    def __call__(self, h: Tensor | Rows, nodes: IdsLike | None = None) -> Tensor:
        """Return the sums at ``nodes``, ``[len(nodes), ...]``.

        Args:
            h: a row per node that this process owns, floats, dense, or sparse CSR (then the result
                is sparse CSR); or an object with ``shape``, ``dtype`` and ``fetch(ids, out=None)``,
                whose rows are fetched for a million edges at a time.
            nodes: parent ids, repeats allowed; None: all nodes that this process owns, in order.

        The sums are float64 for float64 rows, else float32. They are not recorded for gradients.
        Memory beside the result: about ten MB; on another device than the CPU the gathered rows
        too. Those of several processes are equal to those of one up to rounding: where edges lie
        with their destinations, bit for bit.

        Raises ValueError for a wrong number of rows.
        """
        has_all = self.plan.num_masters == self.graph.num_nodes
        owner = "node that this process owns"
        if has_all:
            owner = "node of the graph"
        check_num_rows(h.shape, "h", self.plan.num_masters, owner)
        if nodes is not None:
            return self.sums_at(h, as_ids(nodes, "nodes", self.graph.num_nodes))
        return self.plan.reduced(self._sums.at(self.plan.gathered(h), None))

    def sums_of_column(self, h: Tensor | Rows) -> Tensor:
        """Return the sums at the nodes owned here from rows of all nodes; sparse ones need edges at
        destinations.
        """
        if is_sparse(h):
            self.plan.check_together(self.view.direction)
        check_num_rows(h.shape, "h", self.graph.num_nodes, "node of the graph")
        return self.plan.reduced(self._sums.at(self.graph.held_part.of_all_nodes(h), None))

    def sums_at(self, h: Tensor | Rows, nodes: Ints) -> Tensor:
        """Return the sums at any ``nodes``, trusted parent ids, computed by their owners; in five
        exchanges.

        ``h`` are the rows of the nodes that this process owns; nodes may differ between processes.
        For edges that lie with their destinations. Rows of neighbours travel, each once to a
        process.
        """
        peers = self.graph.peers
        places = self.graph.held_part.whole.rows_of
        # all rows are here: below, those of the neighbours are copied
        if peers.size == 1:
            return self._sums.at(h, nodes)
        places_here = np.sort(places(peers.asked("ids of sums", nodes, peers.owners)))
        # owners of nodes compute, as they have all edges: only rows of neighbours travel
        near = self._sums.needed(places_here)
        own_places = near[near < self.plan.num_masters]
        others = near[near >= self.plan.num_masters]

        def own_rows(ids: Ints) -> Tensor:
            return take_rows(h, torch.from_numpy(places(ids)))

        brought = peers.fetch("rows of neighbours", self.plan.nodes[others], peers.owners, own_rows)
        parts = [(take_rows(h, torch.from_numpy(own_places)).cpu(), own_places), (brought, others)]
        # rows that are not needed are never touched, so they take no memory
        sums = self._sums.at(put_rows(parts, len(self.plan.nodes)), places_here)

        def held(ids: Ints) -> Tensor:
            rows = np.searchsorted(places_here, places(ids))
            return take_rows(sums, torch.from_numpy(rows))

        fetched = peers.fetch("sums", nodes, peers.owners, held)
        if isinstance(h, Tensor):
            return fetched.to(h.device)
        return fetched

    def flow(self, start: int, stop: int, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges held here into the nodes ``plan.nodes[start:stop]``, from
        ``plan.nodes``.

        In one process these are the nodes of the graph in order. Its weights are P: float64 where
        the column is float64, else float32. So ``conv(flow, h)`` computes a range of rows from the
        rows ``h`` of all nodes. Its layers have the columns "in_degree" and "out_degree" where the
        graph has them.
        """
        indptr = self._sums.edges.indptr
        first = int(indptr[start])
        last = int(indptr[stop])
        indices = self._sums.edges.indices[first:last].astype(np.int64)
        ends = indptr[start : stop + 1] - first
        return self._full(
            ends,
            indices,
            slice(first, last),
            slice(None),
            slice(start, stop),
            device,
            prefix=start == 0,
        )

    def num_edges(self, start: int, stop: int) -> int:
        """Return the number of edges that ``flow(start, stop)`` has."""
        return int(self._sums.edges.indptr[stop] - self._sums.edges.indptr[start])

    def flow_into(self, places: Ints, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges held here into some nodes, from these and their neighbours
        only.

        ``places`` are distinct places in ``plan.nodes``, int64, in one process ids; they are
        trusted. The source layer begins with them, and goes on with the others in order of first
        appearance. Its weights are P.
        """
        indptr, positions = kernels.csr.csr_rows(self._sums.edges.indptr, places)
        with Numbering(self._sums.edges.num_rows) as numbering:
            numbering.extend(places.copy())
            indices = numbering.extend(self._sums.edges.indices[positions].astype(np.int64))
            src = torch.from_numpy(numbering.nodes.copy())
        return self._full(indptr, indices, positions, src, src[: len(places)], device, prefix=True)

    def _full(
        self,
        indptr: Ints,
        indices: Ints,
        positions: Ints | slice,
        src: Tensor | slice,
        dst: Tensor | slice,
        device: torch.device | str,
        *,
        prefix: bool,
    ) -> FullFlow:
        """The flow of edges at ``positions`` from the nodes at the places ``src`` to those at
        ``dst``.
        """
        edges = self._sums.edges
        weights = self._sums.weights
        ends = self._layer(src, device), self._layer(dst, device)
        structure = Structure._trusted(
            torch.from_numpy(indptr), torch.from_numpy(indices), len(ends[0])
        ).to(device)
        weight = None
        if weights is not None:
            exact = is_float64(self.graph, str(self.view.weight))
            # as in sampled flows
            kind = np.float64 if exact else np.float32
            entries = torch.from_numpy(weights[positions].astype(kind))
            weight = Lazy.of(entries.to(device))

        # made when asked for: np.r_ makes numbers of a slice, and leaves numbers as they are
        def parent_eid() -> Tensor:
            return edges.parent_eid(np.r_[positions]).to(device)

        def edges_here() -> Tensor:
            ids = edges.ids(np.r_[positions])
            return torch.from_numpy(ids).to(device)

        data = EdgeColumns(len(indices), self.graph.held_part.edata, Lazy(edges_here))
        flow = FullFlow._trusted(
            structure,
            *ends,
            (0, 1),
            parent_eid=Lazy(parent_eid),
            weight=weight,
            needs_weight=weight is not None,
            data=data,
            prefix=prefix,
        )
        flow.set_parent(Lazy(lambda: self._leaving.get()[src]), self.graph.held_part.relations)
        return flow

    def _layer(self, places: Tensor | slice, device: torch.device | str) -> Layer:
        """A layer of the nodes at ``places`` with the degree columns that the graph has."""
        nodes = torch.from_numpy(self.plan.nodes)[places].to(device)
        columns = {}
        if self._columns.get():
            numbers = torch.arange(len(self.plan.nodes))[places]
            columns = {
                name: take_rows(rows, numbers).to(device)
                for name, rows in self._columns.get().items()
            }
        return Layer._trusted(
            len(nodes), nodes, Frame(len(nodes), columns), schema=self.graph.schema
        )

    def _count_leaving(self) -> Tensor:
        """The number of edges from each node at ``plan.nodes``."""
        counts = np.bincount(self._sums.edges.indices, minlength=self._sums.edges.num_rows)
        return self.plan.gathered(self.plan.reduced(torch.from_numpy(counts)))

    def needed(self, places: Ints) -> Ints:
        """Return ``places`` and the places of all in-neighbours, int64, ascending, once each."""
        return self._sums.needed(places)

    def ranges(
        self, chunk_size: int | None = None, size: int | None = None
    ) -> list[tuple[int, int]]:
        """Return ranges of ``chunk_size`` that cover ``size`` nodes, by default all owned here;
        None: one range.
        """
        if size is None:
            size = self.plan.num_masters
        if chunk_size is None:
            step = max(size, 1)
        else:
            step = as_count(chunk_size, "chunk_size", 1)
        return [(start, min(start + step, size)) for start in range(0, max(size, 1), step)]
