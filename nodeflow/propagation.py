"""Full propagation: weighted sums over all edges of some nodes, or of all, straight from the parent graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._check import Ints, as_count, as_ids
from nodeflow._frozen import Frozen, Lazy
from nodeflow.columns import EdgeMask, edge_mask, edge_numbers
from nodeflow.features import fetch_rows, from_scipy
from nodeflow.flow import Flow, Layer
from nodeflow.frame import Frame
from nodeflow.graph import Graph
from nodeflow.kernels.rows import csr_rows
from nodeflow.ops.spmm import bag
from nodeflow.random import derive_key, hash_ids
from nodeflow.sampling.edges import edges_along
from nodeflow.sampling.numbering import Numbering
from nodeflow.structure import Structure

_EDGES = 2**20  # edges whose indices are held at a time


class FullFlow(Flow):
    """The flow of all edges into some nodes, so that a weighted sum over it is no estimate.

    Its frame has the edge columns of the parent graph; each is gathered when first asked for.
    """

    __slots__ = ()


class _Columns(Frame):
    """A frame that has the columns of a graph's edges too, gathered when first asked for."""

    __slots__ = ("_edges", "_parent")

    def __init__(self, num_rows: int, parent: Frame, edges: Lazy[Tensor]) -> None:
        super().__init__(num_rows)
        self._parent, self._edges = parent, edges

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._columns and name in self._parent:
            edges = self._edges.get()
            self._columns[name] = fetch_rows(self._parent[name], edges).to(edges.device)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._parent), **self._columns})

    def __len__(self) -> int:
        return len({*self._parent, *self._columns})


class Propagation(Frozen):
    """The linear map ``out[v] = sum over all edges u -> v of P_uv h[u]``, with P an edge column, or 1.

    Args:
        graph: the parent graph.
        weight: name of the edge column P, finite numbers; None: 1. ``transform.edge_norm`` makes those of a mean and
            of a GCN. It is read once: do not write to it in place afterwards.
        direction: "out" sums over the edges v -> u instead.
        edge_filter: edges that do not count, as for a ``Sampler``.

    Raises KeyError for an unknown column, ValueError for one that is not finite, what a sampler raises for a filter.

    >>> graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 2], edata={"p": torch.full((4,), 0.5)})
    >>> mean = Propagation(graph, weight="p")
    >>> mean(torch.tensor([[0.5], [0.0], [1.0]]), rows=[2, 1])
    tensor([[0.2500],
            [0.7500]])
    """

    __slots__ = ("_all", "_edges", "_print", "_weights", "direction", "edge_filter", "graph", "weight")
    graph: Graph
    weight: str | None
    direction: str
    edge_filter: EdgeMask | None
    _edges: Any
    _weights: Any
    _all: Lazy[Tensor]
    _print: Lazy[int]

    def __init__(
        self, graph: Graph, *, weight: str | None = None, direction: str = "in", edge_filter: Any = None
    ) -> None:
        mask = edge_mask(graph, edge_filter)
        edges = edges_along(graph, direction)
        edges = edges if mask is None else edges.keep(mask.mask)
        weights = None if weight is None else edges.by_position(edge_numbers(graph, weight, "weight"))
        self._set(
            graph=graph, weight=weight, direction=direction, edge_filter=mask, _edges=edges, _weights=weights,
            _all=Lazy(lambda: torch.from_numpy(np.arange(graph.num_nodes))), _print=Lazy(self._hash),
        )  # fmt: skip

    def __deepcopy__(self, memo: Any) -> Propagation:
        return self  # it never changes, and belongs to the very graph that it was made with

    @property
    def fingerprint(self) -> int:
        """A hash of edges and weights, int64, which tells propagations apart in files and checkpoints."""
        return self._print.get()

    def _hash(self) -> int:
        parts = [len(self._edges.near)]
        for array in (self._edges.indptr, self._edges.near, self._weights):
            for start in range(0, 0 if array is None else len(array), _EDGES):  # arrays may be larger than memory
                piece = array[start : start + _EDGES]
                exact = piece.astype(np.int64) if piece.dtype.kind in "iu" else piece.astype(np.float64).view(np.int64)
                parts.append(hash_ids(exact))
        return derive_key(self.graph.num_nodes, *parts) >> 1

    @property
    def degrees(self) -> Tensor:
        """Number of edges that count, of every node, int64 ``[num_nodes]``."""
        return torch.from_numpy(np.diff(self._edges.indptr))

    @property
    def weights(self) -> Any:
        """The column P in the order of the edges, grouped by node; None for 1."""
        return self._weights

    def __call__(self, h: Tensor, rows: Any = None) -> Tensor:
        """Return the sums at ``rows``, ``[len(rows), ...]``.

        Args:
            h: ``[num_nodes, ...]`` floats, dense, or sparse CSR (then the result is sparse CSR).
            rows: parent ids, repeats allowed; None: all nodes in order.

        float16 and bfloat16 give float32. Memory beside the result: about ten MB (on another device than the CPU, the
        gathered rows too). Not recorded for gradients.

        Raises ValueError for a wrong number of rows.
        """
        size = self.graph.num_nodes
        if len(h) != size:
            raise ValueError(f"h must have a row per node of the graph ({size}), got shape {tuple(h.shape)}")
        h = h.detach()
        if h.layout != torch.strided:
            return self._sparse(h, None if rows is None else as_ids(rows, "rows", size))
        nodes = None if rows is None else as_ids(rows, "rows", size)
        exact = h.dtype if h.dtype == torch.float64 else torch.float32
        out = torch.zeros((size if nodes is None else len(nodes), *h.shape[1:]), dtype=exact, device=h.device)
        for start, stop, indptr, positions in self._pieces(nodes):
            near = torch.from_numpy(self._edges.near[positions].astype(np.int64)).to(h.device)
            weights = None
            if self._weights is not None:
                weights = torch.from_numpy(np.ascontiguousarray(self._weights[positions])).to(h.device, exact)
            ends = torch.from_numpy(indptr).to(h.device)
            if h.dtype == exact:
                out[start:stop] = bag(ends, near, h, weights)
            else:  # sums of narrow numbers are made of wide ones
                used, near = torch.unique(near, return_inverse=True)
                out[start:stop] = bag(ends, near, h[used].to(exact), weights)
        return out

    def flow(self, start: int, stop: int, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges into the nodes ``start`` to ``stop - 1``, from all nodes; its weights are P.

        Its source layer holds all nodes of the graph in order, so that ``conv(flow, h)`` computes a range of rows from
        the rows ``h`` of all nodes.
        """
        indptr = self._edges.indptr
        first, last = int(indptr[start]), int(indptr[stop])
        indices = self._edges.near[first:last].astype(np.int64)
        ids, edges = self._all.get().to(device), slice(first, last)
        ends = Layer(len(ids), ids), Layer(stop - start, ids[start:stop])
        whole = start == 0 and stop == self.graph.num_nodes
        return self._full(indptr[start : stop + 1] - first, indices, edges, ends, device, whole)

    def num_edges(self, start: int, stop: int) -> int:
        """Return the number of edges that ``flow(start, stop)`` has."""
        return int(self._edges.indptr[stop] - self._edges.indptr[start])

    def flow_into(self, nodes: Ints, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges into ``nodes``, from these and their neighbours only; its weights are P.

        ``nodes`` are distinct parent ids, int64; they are trusted. The source layer begins with them, and goes on with
        the others in order of first appearance.
        """
        indptr, positions = csr_rows(self._edges.indptr, nodes)
        with Numbering(self.graph.num_nodes) as numbering:
            numbering.extend(nodes.copy())
            indices = numbering.extend(self._edges.near[positions].astype(np.int64))
            ids = torch.from_numpy(numbering.nodes).to(device)
        ends = Layer(len(ids), ids), Layer(len(nodes), ids[: len(nodes)])
        return self._full(indptr, indices, positions, ends, device, True)

    def _full(
        self, indptr: Ints, indices: Ints, positions: Any, ends: tuple[Layer, Layer], device: Any, prefix: bool
    ) -> FullFlow:
        structure = Structure(torch.from_numpy(indptr), torch.from_numpy(indices), ends[0].num_nodes).to(device)
        if isinstance(positions, slice):
            eid = Lazy(lambda: self._edges.parent_eid(np.arange(positions.start, positions.stop)).to(device))
        else:
            eid = Lazy(lambda: self._edges.parent_eid(positions).to(device))
        weight = None
        if self._weights is not None:
            weight = Lazy.of(torch.from_numpy(self._weights[positions].astype(np.float32)).to(device))
        data = _Columns(len(indices), self.graph.edata, eid)
        return FullFlow(structure, *ends, (0, 1), parent_eid=eid, weight=weight, data=data, prefix=prefix)

    def needed(self, nodes: Ints) -> Ints:
        """Return ``nodes`` and all neighbours that have edges into them: parent ids, int64, ascending, once each."""
        found = np.zeros(self.graph.num_nodes, np.bool_)
        found[nodes] = True
        for _, _, _, positions in self._pieces(nodes):
            found[self._edges.near[positions]] = True
        return np.flatnonzero(found)

    def ranges(self, rows: int | None = None, size: int | None = None) -> list[tuple[int, int]]:
        """Return ranges of ``rows`` that cover ``size`` nodes, by default all; None: one range."""
        size = self.graph.num_nodes if size is None else size
        step = max(size, 1) if rows is None else as_count(rows, "rows", 1)
        return [(start, min(start + step, size)) for start in range(0, max(size, 1), step)]

    def _pieces(self, nodes: Any) -> Iterator[tuple[int, int, Any, Any]]:
        """Ranges of rows with about a million edges each, their indptr, and positions of their edges."""
        indptr = self._edges.indptr
        sizes = np.diff(indptr) if nodes is None else indptr[nodes + 1] - indptr[nodes]
        upto = np.concatenate([[0], np.cumsum(sizes)])
        start = 0
        while start < len(sizes):
            stop = max(start + 1, int(np.searchsorted(upto, upto[start] + _EDGES, side="right")) - 1)
            if nodes is None:
                yield start, stop, indptr[start : stop + 1] - indptr[start], slice(indptr[start], indptr[stop])
            else:
                yield start, stop, *csr_rows(indptr, nodes[start:stop])
            start = stop

    def _sparse(self, h: Tensor, nodes: Any) -> Tensor:
        import scipy.sparse

        indptr, near, weights = self._edges.indptr, self._edges.near, self._weights
        if nodes is not None:
            indptr, positions = csr_rows(indptr, nodes)
            near, weights = near[positions], None if weights is None else weights[positions]
        kind = np.float64 if h.dtype == torch.float64 else np.float32
        values = np.ones(len(near), kind) if weights is None else weights.astype(kind)
        matrix = scipy.sparse.csr_array((values, near, indptr), shape=(len(indptr) - 1, self.graph.num_nodes))
        parts = (h.values().cpu().numpy(), h.col_indices().cpu().numpy(), h.crow_indices().cpu().numpy())
        return from_scipy(matrix @ scipy.sparse.csr_array(parts, shape=tuple(h.shape))).to(h.device)
