"""Weighted sums of rows over edges, by compiled loops, threads, or products of matrices."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.stored import read_only
from nodeflow._core.random import derive_key, hash_ids
from nodeflow._core.rows.csr import check_csr, from_scipy
from nodeflow._core.rows.rows import Rows, is_sparse, take_rows, whole_column
from nodeflow._core.runtime.threads import run_all
from nodeflow.ops import bag

# edges whose indices are held at a time
_EDGES = 2**20
# rows that are not worth a look at the number of their edges
_AT_ONCE = 2**14
# numbers in a result from which on threads share the work
_SHARED = 2**16
_WORDS = {torch.bfloat16: torch.uint16, torch.float16: torch.int16}
"""The type in which ``sum_rows`` reads rows of narrow numbers; it reads float32 and float64 as they
are.
"""


class EdgeSums(Frozen):
    """The sums ``out[v] = sum over the edges of row v of weights[e] h[u]``; rows and neighbours
    have the same numbers.

    ``edges`` have a row for each of ``h``; ``weights`` are by position, None for 1.
    """

    __slots__ = ("_print", "edges", "weights")
    edges: Edges
    weights: Array | None
    _print: Lazy[int]

    def __init__(self, edges: Edges, weights: Array | None) -> None:
        self._set(
            edges=edges,
            weights=None if weights is None else read_only(weights),
            _print=Lazy(self._hash),
        )

    @property
    def fingerprint(self) -> int:
        return self._print.get()

    def _hash(self) -> int:
        # numbers of any width hash alike
        parts = [len(self.edges.indices)]
        arrays = [self.edges.indptr, self.edges.indices]
        for array in arrays if self.weights is None else [*arrays, self.weights]:
            # arrays may be larger than memory
            for start in range(0, len(array), _EDGES):
                piece = array[start : start + _EDGES]
                if piece.dtype.kind in "iu":
                    exact = piece.astype(np.int64)
                else:
                    exact = piece.astype(np.float64).view(np.int64)
                parts.append(hash_ids(exact))
        return derive_key(self.edges.num_rows, *parts) >> 1

    def degrees_at(self, rows: Ints) -> Tensor:
        """Return the number of edges of some rows, int64 ``[len(rows)]``."""
        return torch.from_numpy(self.edges.indptr[rows + 1] - self.edges.indptr[rows])

    def needed(self, nodes: Ints) -> Ints:
        """Return ``nodes`` and all neighbours that have edges into them: int64, ascending, once
        each.
        """
        is_needed = np.zeros(self.edges.num_rows, np.bool_)
        is_needed[nodes] = True
        for start, stop in self._pieces(nodes):
            is_needed[self.edges.indices[self._positions(start, stop, nodes)[1]]] = True
        return np.flatnonzero(is_needed)

    def at(self, h: Tensor | Rows, nodes: Ints | None) -> Tensor:
        """Return the sums at ``nodes``, int64 numbers of rows; None: at all."""
        if is_sparse(h):
            column = whole_column(h)
            check_csr(column, "h")
            return self._sparse(column.detach(), nodes)
        # plain memory goes to a compiled loop; rows on devices, and rows that are
        # fetched, in pieces
        device = torch.device("cpu")
        if isinstance(h, Tensor):
            h = h.detach()
            device = h.device
        exact = h.dtype if h.dtype == torch.float64 else torch.float32
        size = h.shape[0] if nodes is None else len(nodes)
        out = torch.zeros((size, *h.shape[1:]), dtype=exact, device=device)
        if 0 in out.shape:
            return out
        flat = _as_words(h) if isinstance(h, Tensor) else None
        if flat is not None:
            self._sum_rows(*flat, nodes, out)
            return out
        for start, stop in self._pieces(nodes):
            indptr, positions = self._positions(start, stop, nodes)
            near = torch.from_numpy(self.edges.indices[positions].astype(np.int64)).to(device)
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
        """Ranges of rows with about a million edges each, or fewer where several threads share
        them.
        """
        indptr = self.edges.indptr
        if nodes is None:
            sizes = np.diff(indptr)
        else:
            sizes = indptr[nodes + 1] - indptr[nodes]
        upto = np.concatenate([[0], np.cumsum(sizes)])
        step = _EDGES
        if threads != 1:
            step = min(_EDGES, int(upto[-1]) // (4 * threads) + 1)
        start = 0
        pieces = []
        while start < len(sizes):
            stop = max(start + 1, int(np.searchsorted(upto, upto[start] + step, side="right")) - 1)
            pieces.append((start, stop))
            start = stop
        return pieces

    def _positions(self, start: int, stop: int, nodes: Ints | None) -> tuple[Ints, Ints | slice]:
        """Indptr of a range of rows, and the positions of their edges."""
        indptr = self.edges.indptr
        if nodes is None:
            return indptr[start : stop + 1] - indptr[start], slice(indptr[start], indptr[stop])
        chosen: tuple[Ints, Ints] = kernels.csr.csr_rows(indptr, nodes[start:stop])
        return chosen

    def _sum_rows(self, words: Array, stride: int, nodes: Ints | None, out: Tensor) -> None:
        """Write the sums at ``nodes`` into ``out``, straight from the arrays of the graph and the
        memory of ``h``.
        """
        width = out.numel() // len(out)
        sums = out.numpy().reshape(-1)
        edges = self.edges
        # compiled once, for these
        rows = read_only(np.arange(len(out)) if nodes is None else nodes)

        def work(k: int) -> None:
            first, last = pieces[k]
            kernels.row_sums.sum_rows(
                edges.indptr,
                edges.indices,
                None,
                rows,
                words,
                stride,
                self.weights,
                groups=1,
                width=width,
                mean=False,
                own=False,
                streamed=False,
                out=sums,
                first=first,
                last=last,
            )

        threads = 1
        if out.numel() >= _SHARED:
            threads = torch.get_num_threads()
        if threads == 1 and len(out) <= _AT_ONCE:
            pieces = [(0, len(out))]
        else:
            pieces = self._pieces(nodes, threads)
        # a row is the work of one thread: sums do not depend on their number
        run_all(work, len(pieces), threads)

    def _sparse(self, h: Tensor, nodes: Ints | None) -> Tensor:
        import scipy.sparse

        indptr = self.edges.indptr
        near = self.edges.indices
        weights = self.weights
        if nodes is not None:
            indptr, positions = kernels.csr.csr_rows(indptr, nodes)
            near = near[positions]
            if weights is not None:
                weights = weights[positions]
        kind = np.float64 if h.dtype == torch.float64 else np.float32
        if weights is None:
            weights = np.ones(len(near))
        values = weights.astype(kind)
        matrix = scipy.sparse.csr_array((values, near, indptr), shape=(len(indptr) - 1, h.shape[0]))
        parts = (
            h.values().cpu().numpy(),
            h.col_indices().cpu().numpy(),
            h.crow_indices().cpu().numpy(),
        )
        rows = scipy.sparse.csr_array(parts, shape=tuple(h.shape))
        return from_scipy(matrix @ rows).to(h.device)


def _as_words(h: Tensor) -> tuple[Array, int] | None:
    """Flat memory of the rows of ``h`` for ``sum_rows``, and the distance between rows; None:
    unreadable.
    """
    kind = _WORDS.get(h.dtype, h.dtype)
    if h.device.type != "cpu" or (h.dtype == kind and kind not in (torch.float32, torch.float64)):
        return None
    h = h.resolve_neg()
    width = h.shape[1:].numel()
    if not (h.is_contiguous() or h[0].is_contiguous()):
        h = h.contiguous()
    stride = h.stride(0)
    size = (len(h) - 1) * stride + width
    words = h.as_strided((size,), (1,)).view(kind).numpy()
    if words.flags.aligned:
        return (words, stride)
    return None
