"""Full propagation: weighted sums over all edges of some nodes, or of all, straight from the parent graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_count, as_ids, check_num_rows
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import Array, EdgeFilter, IdsLike
from nodeflow._rows.csr import from_scipy
from nodeflow._rows.rows import Rows, take_rows
from nodeflow._runtime.threads import run_all
from nodeflow.flow import Layer
from nodeflow.flow._full_flow import EdgeColumns, FullFlow
from nodeflow.graph import Frame, Graph
from nodeflow.graph._columns import EdgeMask, edge_mask, edge_numbers
from nodeflow.graph._edges import Edges, edges_along
from nodeflow.graph._numbering import Numbering
from nodeflow.graph._storage import read_only
from nodeflow.ops import Structure
from nodeflow.ops._autograd import bag
from nodeflow.random import derive_key, hash_ids
from nodeflow.transform import DEGREES

_EDGES = 2**20  # edges whose indices are held at a time
_AT_ONCE = 2**14  # rows that are not worth a look at the number of their edges
_SHARED = 2**16  # numbers in a result from which on threads share the work
_WORDS = {
    torch.float64: torch.float64, torch.float32: torch.float32, torch.bfloat16: torch.uint16, torch.float16: torch.int16
}  # fmt: skip
"""The type in which ``sum_rows`` reads rows of each type."""


class Propagation(Frozen):
    """The linear map ``out[v] = sum over all edges u -> v of P_uv h[u]``, with P an edge column, or 1.

    Args:
        graph: the parent graph.
        weight: name of the edge column P, finite numbers; None: 1. ``transform.edge_norm`` makes the weights of a mean
            and of a GCN. The column is read once: do not write to it in place afterwards.
        direction: "out" sums over the edges v -> u instead.
        edge_filter: the edges that are summed, in the forms that a ``Sampler`` takes; None: all.

    ``weights`` is the column P in the order of the edges, grouped by node; None for 1.

    Raises KeyError for an unknown column, ValueError for one that is not finite; for a filter the errors of a sampler.

    >>> graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 2], edata={"p": torch.full((4,), 0.5)})
    >>> mean = Propagation(graph, weight="p")
    >>> mean(torch.tensor([[0.5], [0.0], [1.0]]), nodes=[2, 1])
    tensor([[0.2500],
            [0.7500]])
    """

    __slots__ = ("_all", "_edges", "_leaving", "_print", "direction", "edge_filter", "graph", "weight", "weights")
    graph: Graph
    weight: str | None
    weights: Array | None
    direction: str
    edge_filter: EdgeMask | None
    _edges: Edges
    _all: Lazy[Tensor]
    _leaving: Lazy[Tensor]
    _print: Lazy[int]

    def __init__(
        self, graph: Graph, *, weight: str | None = None, direction: str = "in", edge_filter: EdgeFilter | None = None
    ) -> None:
        if graph.peers is not None:
            raise TypeError(
                "a graph that lies on several processes is summed over by nodeflow.propagation.PartPropagation"
            )
        mask = edge_mask(graph, edge_filter)
        edges = edges_along(graph, direction)
        edges = edges if mask is None else edges.keep(mask.mask)
        weights = None if weight is None else read_only(edges.by_position(edge_numbers(graph, weight, "weight")))
        self._set(
            graph=graph, weight=weight, direction=direction, edge_filter=mask, weights=weights, _edges=edges,
            _all=Lazy(lambda: torch.from_numpy(np.arange(graph.num_nodes))), _print=Lazy(self._hash),
            _leaving=Lazy(lambda: torch.from_numpy(np.bincount(edges.indices, minlength=graph.num_nodes))),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Propagation({self.graph!r}, weight {self.weight}, direction {self.direction})"

    def __deepcopy__(self, memo: object) -> Propagation:
        return self  # it never changes, and belongs to the very graph that it was made with

    @property
    def fingerprint(self) -> int:
        """A hash of edges and weights, int64, which tells propagations apart in files and checkpoints."""
        return self._print.get()

    def _hash(self) -> int:
        parts = [len(self._edges.indices)]
        arrays: list[Array] = [self._edges.indptr, self._edges.indices]
        for array in arrays if self.weights is None else [*arrays, self.weights]:
            for start in range(0, len(array), _EDGES):  # arrays may be larger than memory
                piece = array[start : start + _EDGES]
                exact = piece.astype(np.int64) if piece.dtype.kind in "iu" else piece.astype(np.float64).view(np.int64)
                parts.append(hash_ids(exact))
        return derive_key(self.graph.num_nodes, *parts) >> 1

    @property
    def degrees(self) -> Tensor:
        """Number of edges of every node that pass the filter, int64 ``[num_nodes]``."""
        return torch.from_numpy(np.diff(self._edges.indptr))

    def degrees_of(self, nodes: Tensor) -> Tensor:
        """Return ``degrees`` at ``nodes``, parent ids that are trusted."""
        ids = nodes.cpu().numpy()
        return torch.from_numpy(self._edges.indptr[ids + 1] - self._edges.indptr[ids]).to(nodes.device)

    def __call__(self, h: Tensor | Rows, nodes: IdsLike | None = None) -> Tensor:
        """Return the sums at ``nodes``, ``[len(nodes), ...]``.

        Args:
            h: ``[num_nodes, ...]`` floats, dense, or sparse CSR (then the result is sparse CSR); or an object with
                ``shape``, ``dtype`` and ``fetch(ids, out=None)``, whose rows are fetched for a million edges at a time.
            nodes: parent ids, repeats allowed; None: all nodes in order.

        The sums are float64 for float64 rows, else float32. They are not recorded for gradients. Memory beside the
        result: about ten MB; on another device than the CPU the gathered rows too.

        Raises ValueError for a wrong number of rows.
        """
        size = self.graph.num_nodes
        check_num_rows(h.shape, "h", size, "node of the graph")
        return self.sums_at(h, None if nodes is None else as_ids(nodes, "nodes", size))

    def flow(self, start: int, stop: int, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges into the nodes ``start`` to ``stop - 1``, from all nodes.

        Its weights are P: float64 where the column is float64, else float32.

        Its source layer holds all nodes of the graph in order, so that ``conv(flow, h)`` computes a range of rows from
        the rows ``h`` of all nodes. Its layers have the columns "in_degree" and "out_degree" where the graph has them.
        """
        indptr = self._edges.indptr
        first, last = int(indptr[start]), int(indptr[stop])
        indices = self._edges.indices[first:last].astype(np.int64)
        ids, whole = self._all.get().to(device), start == 0 and stop == self.graph.num_nodes
        return self._full(indptr[start : stop + 1] - first, indices, slice(first, last), ids, ids[start:stop], whole)

    def num_edges(self, start: int, stop: int) -> int:
        """Return the number of edges that ``flow(start, stop)`` has."""
        return int(self._edges.indptr[stop] - self._edges.indptr[start])

    def flow_into(self, nodes: Ints, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges into ``nodes``, from these and their neighbours only. Its weights are P.

        ``nodes`` are distinct parent ids, int64; they are trusted. The source layer begins with them, and goes on with
        the others in order of first appearance.
        """
        indptr, positions = kernels.csr.csr_rows(self._edges.indptr, nodes)
        with Numbering(self.graph.num_nodes) as numbering:
            numbering.extend(nodes.copy())
            indices = numbering.extend(self._edges.indices[positions].astype(np.int64))
            ids = torch.from_numpy(numbering.nodes).to(device)
        return self._full(indptr, indices, positions, ids, ids[: len(nodes)], True)

    def _full(
        self, indptr: Ints, indices: Ints, positions: Ints | slice, src: Tensor, dst: Tensor, prefix: bool
    ) -> FullFlow:
        """The flow of edges at ``positions`` from the nodes ``src`` to ``dst``, on the device of these."""
        device = src.device
        structure = Structure(torch.from_numpy(indptr), torch.from_numpy(indices), len(src)).to(device)
        if isinstance(positions, slice):
            eid = Lazy(lambda: self._edges.parent_eid(np.arange(positions.start, positions.stop)).to(device))
        else:
            eid = Lazy(lambda: self._edges.parent_eid(positions).to(device))
        weight = None
        if self.weights is not None:
            exact = self.graph.edata[self.weight].dtype == torch.float64 if self.weight is not None else False
            kind = np.float64 if exact else np.float32  # as in sampled flows
            weight = Lazy.of(torch.from_numpy(self.weights[positions].astype(kind)).to(device))
        ends = self._layer(src), self._layer(dst)
        data = EdgeColumns(len(indices), self.graph.edata, eid)
        cells: dict[str, Any] = {"parent_eid": eid, "weight": weight, "needs_weight": weight is not None}
        flow = FullFlow.trusted(structure, *ends, (0, 1), **cells, data=data, prefix=prefix)
        flow.set_leaving(Lazy(lambda: self._leaving.get()[src.cpu()]))
        return flow

    def _layer(self, nodes: Tensor) -> Layer:
        """A layer of ``nodes`` with the degree columns that the graph has."""
        columns = {name: self.graph.ndata[name] for name in DEGREES if name in self.graph.ndata}
        known = {name: take_rows(column, nodes).to(nodes.device) for name, column in columns.items()}
        return Layer.trusted(len(nodes), nodes, Frame(len(nodes), known))

    def needed(self, nodes: Ints) -> Ints:
        """Return ``nodes`` and all neighbours that have edges into them: parent ids, int64, ascending, once each."""
        found = np.zeros(self.graph.num_nodes, np.bool_)
        found[nodes] = True
        for start, stop in self._pieces(nodes):
            found[self._edges.indices[self._positions(start, stop, nodes)[1]]] = True
        return np.flatnonzero(found)

    def ranges(self, chunk_size: int | None = None, size: int | None = None) -> list[tuple[int, int]]:
        """Return ranges of ``chunk_size`` that cover ``size`` nodes, by default all; None: one range."""
        size = self.graph.num_nodes if size is None else size
        step = max(size, 1) if chunk_size is None else as_count(chunk_size, "chunk_size", 1)
        return [(start, min(start + step, size)) for start in range(0, max(size, 1), step)]

    def sums_at(self, h: Tensor | Rows, nodes: Ints | None) -> Tensor:
        """Return the same sums as a call, for arguments that are trusted: rows of all nodes, and int64 parent ids."""
        if isinstance(h, Tensor):
            h = h.detach()
            if h.layout != torch.strided:
                return self._sparse(h, nodes)
        device = h.device if isinstance(h, Tensor) else torch.device("cpu")
        exact = h.dtype if h.dtype == torch.float64 else torch.float32
        out = torch.zeros((h.shape[0] if nodes is None else len(nodes), *h.shape[1:]), dtype=exact, device=device)
        if 0 in out.shape:
            return out
        flat = _as_words(h) if isinstance(h, Tensor) else None
        if flat is not None:
            self._sum_rows(*flat, nodes, out)
            return out
        for start, stop in self._pieces(nodes):
            indptr, positions = self._positions(start, stop, nodes)
            near = torch.from_numpy(self._edges.indices[positions].astype(np.int64)).to(device)
            weights = None
            if self.weights is not None:
                weights = torch.from_numpy(np.array(self.weights[positions])).to(device, exact)
            ends = torch.from_numpy(indptr).to(device)
            if isinstance(h, Tensor) and h.dtype == exact:
                out[start:stop] = bag(ends, near, h, weights)
            else:  # sums of narrow numbers are made of wide ones
                used, near = torch.unique(near, return_inverse=True)
                out[start:stop] = bag(ends, near, take_rows(h, used).to(device, exact), weights)
        return out

    def _pieces(self, nodes: Ints | None, threads: int = 1) -> list[tuple[int, int]]:
        """Ranges of rows with about a million edges each, or fewer where several threads share them."""
        indptr = self._edges.indptr
        sizes = np.diff(indptr) if nodes is None else indptr[nodes + 1] - indptr[nodes]
        upto = np.concatenate([[0], np.cumsum(sizes)])
        step = _EDGES if threads == 1 else min(_EDGES, int(upto[-1]) // (4 * threads) + 1)
        start, pieces = 0, []
        while start < len(sizes):
            stop = max(start + 1, int(np.searchsorted(upto, upto[start] + step, side="right")) - 1)
            pieces.append((start, stop))
            start = stop
        return pieces

    def _positions(self, start: int, stop: int, nodes: Ints | None) -> tuple[Ints, Ints | slice]:
        """Indptr of a range of rows, and the positions of their edges."""
        indptr = self._edges.indptr
        if nodes is None:
            return indptr[start : stop + 1] - indptr[start], slice(indptr[start], indptr[stop])
        return kernels.csr.csr_rows(indptr, nodes[start:stop])

    def _sum_rows(self, words: Array, stride: int, nodes: Ints | None, out: Tensor) -> None:
        """Write the sums at ``nodes`` into ``out``, straight from the arrays of the graph and the memory of ``h``."""
        width, sums, edges = out.numel() // len(out), out.numpy().reshape(-1), self._edges
        rows = read_only(np.arange(len(out)) if nodes is None else nodes)  # compiled once, for these

        def work(k: int) -> None:
            kernels.row_sums.sum_rows(
                edges.indptr, edges.indices, None, rows, words, stride, self.weights, 1, width, False, False, False,
                sums, *pieces[k],
            )  # fmt: skip

        threads = torch.get_num_threads() if out.numel() >= _SHARED else 1
        pieces = [(0, len(out))] if threads == 1 and len(out) <= _AT_ONCE else self._pieces(nodes, threads)
        run_all(work, len(pieces), threads)  # a row is the work of one thread: sums do not depend on their number

    def _sparse(self, h: Tensor, nodes: Ints | None) -> Tensor:
        import scipy.sparse

        indptr, near, weights = self._edges.indptr, self._edges.indices, self.weights
        if nodes is not None:
            indptr, positions = kernels.csr.csr_rows(indptr, nodes)
            near, weights = near[positions], None if weights is None else weights[positions]
        kind = np.float64 if h.dtype == torch.float64 else np.float32
        values = np.ones(len(near), kind) if weights is None else weights.astype(kind)
        matrix = scipy.sparse.csr_array((values, near, indptr), shape=(len(indptr) - 1, self.graph.num_nodes))
        parts = (h.values().cpu().numpy(), h.col_indices().cpu().numpy(), h.crow_indices().cpu().numpy())
        return from_scipy(matrix @ scipy.sparse.csr_array(parts, shape=tuple(h.shape))).to(h.device)


def _as_words(h: Tensor) -> tuple[Array, int] | None:
    """Flat memory of the rows of ``h`` for ``sum_rows``, and the distance between rows; None: unreadable."""
    if h.device.type != "cpu" or h.dtype not in _WORDS:
        return None
    h = h.resolve_neg()
    width = h.shape[1:].numel()
    if not (h.is_contiguous() or h[0].is_contiguous()):
        h = h.contiguous()
    stride = h.stride(0)
    words = h.as_strided(((len(h) - 1) * stride + width,), (1,)).view(_WORDS[h.dtype]).numpy()
    return (words, stride) if words.flags.aligned else None
