"""Graph: the immutable parent graph, in-edges first."""

from __future__ import annotations

import copy
import copyreg
import threading
import uuid
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import ALL, Ints, _All, as_count, as_ids
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import ColumnsLike, IdsLike
from nodeflow._runtime.mapped import FilePart, part_of_file
from nodeflow.graph._frame import Frame, GraphFrame
from nodeflow.graph._storage import Stored, check_range, integers, permutation, read_only, stored, stored_indptr

_alive: weakref.WeakValueDictionary[str, Graph] = weakref.WeakValueDictionary()


def find_graph(uid: str | None) -> Graph | None:
    """Return the graph with this identity if it lives in this process (batches find their parent so after pickling)."""
    return _alive.get(uid) if uid is not None else None


class Graph(Frozen):
    """An immutable directed graph; multi-edges and self-loops are allowed.

    The in-edges of node ``v`` are the positions ``indptr[v]`` to ``indptr[v + 1]``; at such a position ``indices``
    holds the source and ``stored_edge_ids`` the edge's id.

    Args:
        indptr: int64 ``[num_nodes + 1]``, non-decreasing, from 0 to the number of edges.
        indices: integers ``[num_edges]``, the source node of each in-edge.
        edge_ids: integers ``[num_edges]``, a permutation of 0..num_edges-1; None means the position is the id.
        ndata, edata: columns of the node and edge frames; row ``e`` of an edge column belongs to edge id ``e``.
        copy: None (default) stores ids as int32 when they fit, which copies int64 ``indices`` and ``edge_ids``; what
            needs no conversion (an int64 ``indptr``, int32 ids) and memory-mapped arrays are shared. False shares
            all int32 and int64 arrays given (an int32 ``indptr`` is converted); True always copies.

    Arrays that are shared are never written to; do not write to them either while the graph lives. A pickled graph
    names the files of memory-mapped structure arrays instead of holding them; columns are pickled by value.

    Raises TypeError for ids that are not integers, ValueError for an ``indptr`` that decreases, does not start at 0 or
    does not end at the number of edges, and for ``edge_ids`` that are no permutation, IndexError for a source that is
    no node.

    >>> graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    >>> graph
    Graph(4 nodes, 5 edges)
    >>> graph.in_edges([2])
    (tensor([0, 1]), tensor([2, 2]), tensor([2, 3]))
    """

    __slots__ = ("__weakref__", "_edge_ids", "_indices", "_indptr", "_lock", "_out", "_uid", "edata", "ndata")
    _indptr: Ints
    _indices: Stored
    _edge_ids: Stored | None
    _out: list[tuple[Ints, Stored, Stored]]
    _uid: str
    ndata: Frame
    edata: Frame

    def __init__(
        self,
        indptr: IdsLike,
        indices: IdsLike,
        *,
        edge_ids: IdsLike | None = None,
        ndata: ColumnsLike | None = None,
        edata: ColumnsLike | None = None,
        copy: bool | None = None,
    ) -> None:
        indptr, indices = integers(indptr, "indptr"), integers(indices, "indices")
        if len(indptr) == 0:
            raise ValueError("indptr must have one entry more than there are nodes, got none")
        if indptr[0] != 0 or indptr[-1] != len(indices):
            raise ValueError(
                f"indptr must go from 0 to the number of edges {len(indices)}, got {indptr[0]} to {indptr[-1]}"
            )
        falls = indptr[1:] < indptr[:-1]
        if falls.any():
            at = int(falls.argmax())
            raise ValueError(
                f"indptr must not decrease, but indptr[{at}] is {indptr[at]} and indptr[{at + 1}] {indptr[at + 1]}"
            )
        num_nodes = len(indptr) - 1
        check_range(indices, "indices", num_nodes, "node")
        if edge_ids is not None:
            edge_ids = permutation(integers(edge_ids, "edge_ids"), "edge_ids", len(indices), "edge")
        arrays = (
            stored_indptr(indptr, copy),
            stored(indices, copy, num_nodes),
            None if edge_ids is None else stored(edge_ids, copy, len(indices)),
        )
        self._start(arrays, GraphFrame(num_nodes, ndata), GraphFrame(len(indices), edata), str(uuid.uuid4()))

    @classmethod
    def _trusted(cls, arrays: Sequence[Stored | None], ndata: Frame, edata: Frame) -> Graph:
        """Build a graph of arrays and frames that are known to be right."""
        graph = cls.__new__(cls)
        graph.__setstate__((arrays, ndata, edata, str(uuid.uuid4())))
        return graph

    def _start(self, arrays: Sequence[Stored | None], ndata: Frame, edata: Frame, uid: str) -> None:
        indptr, indices, edge_ids = arrays
        self._set(
            _indptr=indptr, _indices=indices, _edge_ids=edge_ids, ndata=ndata, edata=edata,
            _out=[], _lock=threading.Lock(), _uid=uid,
        )  # fmt: skip
        _alive[uid] = self

    @classmethod
    def from_edges(
        cls,
        src: IdsLike,
        dst: IdsLike,
        *,
        num_nodes: int | None = None,
        ndata: ColumnsLike | None = None,
        edata: ColumnsLike | None = None,
    ) -> Graph:
        """Build a graph from its edges ``src[e] -> dst[e]``; edge ``e`` gets id ``e``.

        Args:
            src, dst: integers ``[num_edges]``.
            num_nodes: number of nodes; None takes the largest id plus one.
            ndata, edata: columns of the node and edge frames.

        Raises what ``Graph`` raises, and ValueError when ``src`` and ``dst`` differ in length.
        """
        src, dst = integers(src, "src"), integers(dst, "dst")
        if len(src) != len(dst):
            raise ValueError(f"src and dst must have one entry per edge, got {len(src)} and {len(dst)}")
        if num_nodes is None:
            num_nodes = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
        num_nodes = as_count(num_nodes, "num_nodes")
        check_range(src, "src", num_nodes, "node")
        check_range(dst, "dst", num_nodes, "node")
        indptr, order = kernels.csr.sort_by_destination(dst, num_nodes)
        arrays = indptr, stored(src[order], None, num_nodes), stored(order, None, len(src))
        return cls._trusted(arrays, GraphFrame(num_nodes, ndata), GraphFrame(len(src), edata))

    @property
    def uid(self) -> str:
        """Identity of the graph, kept by copies in other processes: batches find their graph by it."""
        return self._uid

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self._indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self._indices)

    @property
    def indptr(self) -> Ints:
        """Read-only array ``[num_nodes + 1]``: where the in-edges of each node begin and end."""
        return self._indptr

    @property
    def indices(self) -> Stored:
        """Read-only int32 or int64 array ``[num_edges]``: source of each in-edge, as stored."""
        return self._indices

    @property
    def stored_edge_ids(self) -> Stored:
        """Read-only integer array ``[num_edges]``: id of each in-edge, as stored."""
        return read_only(np.arange(self.num_edges)) if self._edge_ids is None else self._edge_ids

    def csc(self) -> tuple[Ints, Stored, Stored | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges as stored; edge ids None means the position."""
        return self._indptr, self._indices, self._edge_ids

    def csr(self) -> tuple[Ints, Stored, Stored]:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges, by source and id; made on first use."""
        with self._lock:  # type: ignore[attr-defined]
            if not self._out:
                indptr, dst, position = kernels.csr.transpose(self._indptr, self._indices, self.num_nodes)
                edges = position if self._edge_ids is None else self._edge_ids[position].astype(np.int64)
                # by edge id inside each source, like the in-edges of a graph built from an edge list
                order = np.lexsort((edges, np.repeat(np.arange(self.num_nodes), np.diff(indptr))))
                dst, edges = dst[order], edges[order]
                self._out.append((stored_indptr(indptr, False), stored(dst, None, self.num_nodes),
                                  stored(edges, None, self.num_edges)))  # fmt: skip
            return self._out[0]

    def in_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of in-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``."""
        return _degrees(self._indptr, v, self.num_nodes)

    def out_degrees(self, v: IdsLike | _All = ALL) -> Tensor:
        """Return the number of out-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``."""
        if self._out:
            return _degrees(self._out[0][0], v, self.num_nodes)
        counts = np.bincount(self._indices, minlength=self.num_nodes).astype(np.int64)
        return torch.from_numpy(counts if isinstance(v, _All) else counts[as_ids(v, "v", self.num_nodes)])

    def in_edges(self, v: IdsLike) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, edge ids)``, int64 ``[k]`` each, of all in-edges of the nodes ``v``, node by node."""
        rows = as_ids(v, "v", self.num_nodes)
        return _edges_of(rows, *self.csc())

    def out_edges(self, v: IdsLike) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, edge ids)``, int64 ``[k]`` each, of all out-edges of the nodes ``v``, node by node."""
        rows = as_ids(v, "v", self.num_nodes)
        dst, src, edges = _edges_of(rows, *self.csr())
        return src, dst, edges

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[num_edges]`` each, in the order of the edge ids."""
        src, dst = np.empty(self.num_edges, np.int64), np.empty(self.num_edges, np.int64)
        at = slice(None) if self._edge_ids is None else self._edge_ids
        src[at] = self._indices
        dst[at] = np.repeat(np.arange(self.num_nodes), np.diff(self._indptr))
        return torch.from_numpy(src), torch.from_numpy(dst)

    def __repr__(self) -> str:
        columns = [f"{kind}: {', '.join(f)}" for kind, f in (("ndata", self.ndata), ("edata", self.edata)) if f]
        return f"Graph({', '.join([f'{self.num_nodes} nodes', f'{self.num_edges} edges', *columns])})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return a graph of its own with copied columns; the structure, which never changes, is shared."""
        ndata, edata = copy.deepcopy(self.ndata, memo), copy.deepcopy(self.edata, memo)
        return Graph._trusted(self.csc(), ndata, edata)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = tuple(array if array is None else part_of_file(array) or array for array in self.csc())
        return copyreg.__newobj__, (Graph,), (parts, self.ndata, self.edata, self._uid)  # type: ignore[attr-defined]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        arrays, ndata, edata, uid = state
        opened = [read_only(array.open() if isinstance(array, FilePart) else array) if array is not None else None
                  for array in arrays]  # fmt: skip
        living = find_graph(uid)
        self._start(opened, ndata, edata, uid)
        if living is not None:  # in the process where the graph still lives, batches go on finding that very object
            _alive[uid] = living


def _degrees(indptr: Ints, v: IdsLike | _All, num_nodes: int) -> Tensor:
    if isinstance(v, _All):
        return torch.from_numpy(np.diff(indptr))
    rows = as_ids(v, "v", num_nodes)
    return torch.from_numpy(indptr[rows + 1] - indptr[rows])


def _edges_of(rows: Ints, indptr: Ints, indices: Stored, edge_ids: Stored | None) -> tuple[Tensor, Tensor, Tensor]:
    chosen, position = kernels.csr.csr_rows(indptr, rows)
    row = np.repeat(rows, np.diff(chosen))
    edges = position if edge_ids is None else edge_ids[position]
    return tuple(torch.from_numpy(a.astype(np.int64, copy=False)) for a in (indices[position], row, edges))  # type: ignore[return-value]
