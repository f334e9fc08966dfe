"""Graph: the immutable parent graph, in-edges first."""

from __future__ import annotations

import copy
import threading
import uuid
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import ALL, Ints, _All, as_array, as_count, as_ids, describe, id_range
from nodeflow._base.frozen import Frozen
from nodeflow.graph._frame import Frame

Stored = NDArray[Any]
"""A read-only int32 or int64 array of a graph."""

_alive: weakref.WeakValueDictionary[str, Graph] = weakref.WeakValueDictionary()


def find_graph(uid: str | None) -> Graph | None:
    """Return the graph with this identity if it lives in this process (batches find their parent so after pickling)."""
    return _alive.get(uid) if uid is not None else None


class Graph(Frozen):
    """An immutable directed graph; multi-edges and self-loops are allowed.

    The in-edges of node ``v`` are the positions ``indptr[v]`` to ``indptr[v + 1]``; at such a position ``indices``
    holds the source and ``edge_ids`` the edge's id.

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
        indptr: Any,
        indices: Any,
        *,
        edge_ids: Any = None,
        ndata: Mapping[str, Any] | None = None,
        edata: Mapping[str, Any] | None = None,
        copy: bool | None = None,
    ) -> None:
        indptr, indices = _integers(indptr, "indptr"), _integers(indices, "indices")
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
        _check_range(indices, "indices", num_nodes, "node")
        if edge_ids is not None:
            edge_ids = _permutation(_integers(edge_ids, "edge_ids"), len(indices))
        node_frame, edge_frame = Frame(num_nodes, ndata), Frame(len(indices), edata)
        self._set(
            _indptr=_stored(indptr, copy, np.int64),
            _indices=_stored(indices, copy, _narrow(num_nodes)),
            _edge_ids=None if edge_ids is None else _stored(edge_ids, copy, _narrow(len(indices))),
        )
        self._start(node_frame, edge_frame, str(uuid.uuid4()))

    def _start(self, ndata: Frame, edata: Frame, uid: str) -> None:
        ndata._of_graph = edata._of_graph = True
        self._set(ndata=ndata, edata=edata, _out=[], _lock=threading.Lock(), _uid=uid)
        _alive[uid] = self

    @classmethod
    def from_edges(
        cls,
        src: Any,
        dst: Any,
        *,
        num_nodes: int | None = None,
        ndata: Mapping[str, Any] | None = None,
        edata: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Build a graph from its edges ``src[e] -> dst[e]``; edge ``e`` gets id ``e``.

        Args:
            src, dst: integers ``[num_edges]``.
            num_nodes: number of nodes; None takes the largest id plus one.
            ndata, edata: columns of the node and edge frames.

        Raises what ``Graph`` raises, and ValueError when ``src`` and ``dst`` differ in length.
        """
        src, dst = _integers(src, "src"), _integers(dst, "dst")
        if len(src) != len(dst):
            raise ValueError(f"src and dst must have one entry per edge, got {len(src)} and {len(dst)}")
        if num_nodes is None:
            num_nodes = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
        num_nodes = as_count(num_nodes, "num_nodes")
        _check_range(src, "src", num_nodes, "node")
        _check_range(dst, "dst", num_nodes, "node")
        indptr, order = kernels.csr.sort_by_destination(dst, num_nodes)
        return cls(indptr, src[order], edge_ids=order, ndata=ndata, edata=edata)

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
    def edge_ids(self) -> Stored:
        """Read-only integer array ``[num_edges]``: id of each in-edge, as stored."""
        return _read_only(np.arange(self.num_edges)) if self._edge_ids is None else self._edge_ids

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
                self._out.append((_stored(indptr, False, np.int64), _stored(dst, None, _narrow(self.num_nodes)),
                                  _stored(edges, None, _narrow(self.num_edges))))  # fmt: skip
            return self._out[0]

    def in_degrees(self, v: Any = ALL) -> Tensor:
        """Return the number of in-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``."""
        return _degrees(self._indptr, v, self.num_nodes)

    def out_degrees(self, v: Any = ALL) -> Tensor:
        """Return the number of out-edges of the nodes ``v`` (default all) as int64 ``[len(v)]``."""
        if self._out:
            return _degrees(self._out[0][0], v, self.num_nodes)
        counts = np.bincount(self._indices, minlength=self.num_nodes).astype(np.int64)
        return torch.from_numpy(counts if isinstance(v, _All) else counts[as_ids(v, "v", self.num_nodes)])

    def in_edges(self, v: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, edge ids)``, int64 ``[k]`` each, of all in-edges of the nodes ``v``, node by node."""
        rows = as_ids(v, "v", self.num_nodes)
        return _edges_of(rows, *self.csc())

    def out_edges(self, v: Any) -> tuple[Tensor, Tensor, Tensor]:
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
        columns = {"ndata": copy.deepcopy(self.ndata, memo), "edata": copy.deepcopy(self.edata, memo)}
        indptr, indices, edge_ids = self.csc()
        return Graph(indptr, indices, edge_ids=edge_ids, copy=False, **columns)

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = tuple(map(_portable, (self._indptr, self._indices, self._edge_ids)))
        return _restore, (arrays, self.ndata, self.edata, self._uid)


def _restore(arrays: tuple[Any, ...], ndata: Frame, edata: Frame, uid: str) -> Graph:
    """Rebuild a pickled graph; in a process where it still lives, that very object stays the one that batches find."""
    graph = Graph.__new__(Graph)
    opened = [array if array is None or isinstance(array, np.ndarray) else np.memmap(**array) for array in arrays]
    indptr, indices, edge_ids = (None if array is None else _read_only(array) for array in opened)
    graph._set(_indptr=indptr, _indices=indices, _edge_ids=edge_ids)
    living = find_graph(uid)
    graph._start(ndata, edata, uid)
    if living is not None:
        _alive[uid] = living
    return graph


def _portable(array: Stored | None) -> Any:
    """A memory-mapped file travels to another process by name, not by content."""
    file = _file_of(array)
    if array is None or file is None or file.filename is None or file.mode == "c":  # "c": changes are not in the file
        return array
    offset = file.offset + array.ctypes.data - file.ctypes.data  # the array may be a slice of the file
    return {"filename": file.filename, "dtype": array.dtype, "mode": "r", "offset": offset, "shape": array.shape}


def _file_of(array: Any) -> np.memmap[Any, Any] | None:
    """The memory map whose memory an array is (part of); views do not say so themselves."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array if isinstance(array, np.memmap) else None


def _integers(value: Any, name: str) -> NDArray[Any]:
    """Return a one-dimensional integer array of ``value``, shared where it is an array or tensor already."""
    array = as_array(value, name)
    if array.size == 0 and array.dtype.kind != "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {describe(array)}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {tuple(array.shape)}")
    if array.dtype not in (np.int32, np.int64):
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise ValueError(f"{name} holds {int(array.max())}, beyond the largest 64-bit id")
        array = array.astype(np.int64)
    return array


def _check_range(ids: Stored, name: str, upper: int, what: str) -> None:
    # min and max first: they need no memory, unlike a comparison, and the error path may take its time
    if len(ids) and (ids.min() < 0 or ids.max() >= upper):
        at = int(((ids < 0) | (ids >= upper)).argmax())
        raise IndexError(f"{name}[{at}] is {ids[at]}, but {id_range(0, upper, what)}")


def _permutation(ids: Stored, size: int) -> Stored:
    if len(ids) != size:
        raise ValueError(f"edge_ids must have one entry per edge ({size}), got {len(ids)}")
    _check_range(ids, "edge_ids", size, "edge")
    seen = np.zeros(size, np.bool_)
    seen[ids] = True
    if not seen.all():
        raise ValueError(f"edge_ids must be a permutation, but no edge has id {int((~seen).argmax())}")
    return ids


def _narrow(bound: int) -> type[np.signedinteger[Any]]:
    return np.int32 if bound <= np.iinfo(np.int32).max else np.int64


def _stored(array: Stored, copy: bool | None, dtype: Any) -> Stored:
    if copy is None:
        shared = _file_of(array) is not None or array.dtype == dtype
    else:
        shared = not copy
    kept = array if shared else array.astype(dtype)
    if dtype == np.int64 and kept.dtype != np.int64:  # an indptr: its kernels are compiled for one width only
        kept = kept.astype(np.int64)
    return _read_only(np.ascontiguousarray(kept))


def _read_only(array: Stored) -> Stored:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _degrees(indptr: Ints, v: Any, num_nodes: int) -> Tensor:
    if isinstance(v, _All):
        return torch.from_numpy(np.diff(indptr))
    rows = as_ids(v, "v", num_nodes)
    return torch.from_numpy(indptr[rows + 1] - indptr[rows])


def _edges_of(rows: Ints, indptr: Ints, indices: Stored, edge_ids: Stored | None) -> tuple[Tensor, Tensor, Tensor]:
    chosen, position = kernels.csr.csr_rows(indptr, rows)
    near = np.repeat(rows, np.diff(chosen))
    edges = position if edge_ids is None else edge_ids[position]
    return tuple(torch.from_numpy(a.astype(np.int64, copy=False)) for a in (indices[position], near, edges))  # type: ignore[return-value]
