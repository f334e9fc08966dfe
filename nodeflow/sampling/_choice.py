"""The edges that a sampler may choose from, and the edges that it chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_array, as_ids, describe
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import Array, IdsLike, MaskLike
from nodeflow.graph._edges import Edges, contains


class Choice(Frozen):
    """The edges a sampler chose for its destinations, grouped by destination.

    Args:
        indptr: int64 ``[num_dst + 1]``: where the edges of each destination begin and end.
        positions: int64 ``[E]``: positions in the sampler's edge arrays, such as ``Candidates.positions``.
        src: int64 ``[E]``: instead of ``positions``, the parent ids of the sources of edges that the parent graph does
            not have.
        eid: int64 ``[E]``: with ``src``, parent ids of the edges, -1 for an edge without one. None: all -1.
        weight: estimator weights, float32 ``[E]``, or a function without arguments that makes them when first asked
            for. None: 1.
        edata: columns with a row per chosen edge, for the frame of the flow.
        nodes: parent ids that the rows of ``ndata`` belong to: distinct sources of chosen edges.
        ndata: columns with a row per node of ``nodes``, for the frame of the source layer; other nodes get zeros.

    Raises TypeError for arrays that are not integers, ValueError for arrays that do not fit each other.
    """

    __slots__ = (
        "_fresh", "edata", "eid", "indptr", "ndata", "needs_weight", "nodes", "positions", "src", "trusted", "weight",
    )  # fmt: skip
    indptr: Ints
    positions: Ints | None
    src: Ints | None
    eid: Tensor | None
    weight: Lazy[Tensor] | None
    needs_weight: bool | None
    edata: Mapping[str, Tensor]
    nodes: Tensor | None
    ndata: Mapping[str, Tensor]
    trusted: bool
    _fresh: list[Ints]

    def __init__(
        self,
        indptr: IdsLike,
        positions: IdsLike | None = None,
        *,
        src: IdsLike | None = None,
        eid: IdsLike | None = None,
        weight: Tensor | Callable[[], Tensor] | Lazy[Tensor] | None = None,
        edata: Mapping[str, Tensor] | None = None,
        nodes: IdsLike | None = None,
        ndata: Mapping[str, Tensor] | None = None,
    ) -> None:
        if (positions is None) == (src is None):
            raise ValueError("a Choice takes either positions or src")
        if eid is not None and src is None:
            raise ValueError("eid goes with src; edges given by positions have the ids of the parent's edges")
        ends = _int64(indptr, "indptr")
        chosen = None if positions is None else _int64(positions, "positions")
        sources = None if src is None else _int64(src, "src")
        edge = None if eid is None else torch.from_numpy(_int64(eid, "eid"))
        size = len(sources if chosen is None else chosen)  # type: ignore[arg-type]
        if len(ends) == 0 or ends[0] != 0 or ends[-1] != size or (np.diff(ends) < 0).any():
            raise ValueError(f"indptr must rise from 0 to the number of chosen edges {size}, got {describe(indptr)}")
        if edge is not None and len(edge) != size:
            raise ValueError(f"eid must have one entry per chosen edge ({size}), got {len(edge)}")
        if weight is not None and not callable(weight) and not isinstance(weight, Lazy):
            weight = _weight(weight, size).clone()
        if weight is None or isinstance(weight, Lazy):
            cell = weight
        elif isinstance(weight, Tensor):
            cell = Lazy.of(weight)
        else:
            cell = Lazy(lambda: _weight(weight(), size))
        if (nodes is None) != (ndata is None):
            raise ValueError("ndata goes with nodes, the parent ids that its rows belong to")
        named = None if nodes is None else torch.from_numpy(_int64(nodes, "nodes"))
        self._set(
            indptr=ends, positions=chosen, src=sources, eid=edge, weight=cell, trusted=False, _fresh=[],
            needs_weight=False if cell is None else None, edata=dict(edata or {}), nodes=named, ndata=dict(ndata or {}),
        )  # fmt: skip

    @classmethod
    def of_kernel(
        cls,
        indptr: Ints,
        positions: Ints | None,
        src: Ints,
        weight: Callable[[], Tensor] | None,
        *,
        needs_weight: bool | None,
        edata: Mapping[str, Tensor] | None = None,
        nodes: Tensor | None = None,
        ndata: Mapping[str, Tensor] | None = None,
    ) -> Choice:
        """Return a Choice of arrays that a compiled loop made, which are not checked.

        ``src`` are the sources of the edges at ``positions``; None is for edges that the parent graph does not have.
        ``needs_weight`` says whether weights may vary within a destination (see ``Flow.needs_weight``). None: unknown,
        so weights are compared.
        """
        self = cls.__new__(cls)
        cell = None if weight is None else Lazy(weight)
        self._set(
            indptr=indptr, positions=positions, src=src if positions is None else None, eid=None, weight=cell,
            needs_weight=False if cell is None else needs_weight, trusted=True,
            _fresh=[] if positions is None else [src], edata=edata or {}, nodes=nodes, ndata=ndata or {},
        )  # fmt: skip
        return self

    def take_sources(self, edges: Edges) -> Ints:
        """Return the parent ids of the chosen edges' sources, in an array that the caller may write to."""
        try:
            return self._fresh.pop()  # the kernel's own array, given away once
        except IndexError:
            src: Ints = np.array(self.src) if self.positions is None else edges.indices[self.positions].astype(np.int64)
            return src


def _int64(value: IdsLike, name: str) -> Ints:
    array = as_array(value, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be one-dimensional integers, got {describe(array)}")
    return np.array(array, np.int64)  # a copy: whoever made the array may write to it later


def _weight(value: Any, size: int) -> Tensor:
    weight = torch.as_tensor(value, dtype=torch.float32)
    if weight.shape != (size,):
        raise ValueError(f"weight must have shape ({size},), one per chosen edge, got {tuple(weight.shape)}")
    return weight


class Candidates(Frozen):
    """All edges that a set of destinations could draw, grouped by destination, in the graph's order.

    ``dst_nid`` are the destinations' parent ids ``[num_dst]``. ``positions`` are the positions of the candidates in the
    sampler's edge arrays, int64 ``[E]``. Edges that a filter or ``without_edges`` leaves out are no candidates.
    """

    __slots__ = ("_edges", "_exact", "_indptr", "_weights", "dst_nid", "positions")
    _edges: Edges
    _indptr: Ints
    positions: Ints
    _weights: Array | None
    _exact: bool
    dst_nid: Tensor

    def __init__(self, edges: Edges, dst_nid: Tensor, weights: Array | None = None, *, exact: bool = False) -> None:
        indptr, positions = kernels.csr.csr_rows(edges.indptr, edges.rows_of(dst_nid.numpy()))
        indptr = indptr[:: edges.rows_per_node]
        if edges.patch is not None:
            kept = np.flatnonzero(~contains(edges.patch.left_out, positions))
            indptr, positions = np.searchsorted(kept, indptr), positions[kept]
        self._set(_edges=edges, _indptr=indptr, positions=positions, _weights=weights, _exact=exact, dst_nid=dst_nid)

    @property
    def indptr(self) -> Tensor:
        """Where the edges of each destination begin and end, int64 ``[num_dst + 1]``."""
        return torch.from_numpy(self._indptr)

    @property
    def degrees(self) -> Tensor:
        """Number of candidate edges of each destination, int64 ``[num_dst]``."""
        return torch.from_numpy(np.diff(self._indptr))

    @property
    def rows(self) -> Tensor:
        """Index of each edge's destination, from 0 to ``num_dst - 1``, int64 ``[E]``."""
        return torch.from_numpy(np.repeat(np.arange(len(self.dst_nid)), np.diff(self._indptr)))

    @property
    def src(self) -> Tensor:
        """Parent id of the neighbour, int64 ``[E]``."""
        return torch.from_numpy(self._edges.indices[self.positions].astype(np.int64))

    @property
    def dst(self) -> Tensor:
        """Parent id of the destination, int64 ``[E]``."""
        return torch.from_numpy(np.repeat(self.dst_nid.numpy(), np.diff(self._indptr)))

    @property
    def eid(self) -> Tensor:
        """Parent id of the edge, int64 ``[E]``."""
        return self._edges.parent_eid(self.positions)

    @property
    def edge_weight(self) -> Tensor:
        """Number by which the edge counts in the sum that is estimated, float64 ``[E]``.

        The sampler's ``weight`` column; 1 where the sampler has none.
        """
        if self._weights is None:
            return torch.ones(len(self), dtype=torch.float64, device="cpu")
        return torch.from_numpy(self._weights[self._edges.ids(self.positions)]).double()

    def select(
        self, keep: IdsLike | MaskLike, weight: Tensor | float | None = None, *, prob: Tensor | float | None = None
    ) -> Choice:
        """Return the Choice of the edges ``keep``: a bool mask ``[E]``, or row numbers in ascending order.

        Args:
            keep: which candidate edges are chosen; a row number may be repeated.
            weight: estimator weight of the chosen edges, ``[chosen]`` or one number for all.
            prob: instead of ``weight``, the probability with which each edge was chosen, or the mean number of times
                that it is drawn, ``[chosen]`` or one number for all. Estimator weights are ``edge_weight / prob``.
                None: 1.

        Raises ValueError for row numbers that are not ascending, for both ``weight`` and ``prob``, and for a ``prob``
        that is not positive; IndexError for a row number out of range.
        """
        size = len(self.positions)
        if isinstance(keep, np.ndarray) and keep.dtype == np.bool_:
            keep = torch.from_numpy(keep)
        if getattr(getattr(keep, "dtype", None), "is_floating_point", False):
            raise TypeError(f"keep must be a bool mask or row numbers, got {describe(keep)}")
        mask = keep if isinstance(keep, Tensor) and keep.dtype == torch.bool else None
        if mask is not None:
            if mask.shape != (size,):
                raise ValueError(f"keep must have one entry per candidate ({size}), got shape {tuple(mask.shape)}")
            keep = mask.nonzero().squeeze(1)
        rows = as_ids(keep, "keep", size, "candidate")
        if (np.diff(rows) < 0).any():
            raise ValueError("keep must be ascending row numbers, so that the edges stay grouped by destination")
        if weight is not None and prob is not None:
            raise ValueError("select takes weight or prob, not both")
        precise = None
        if weight is None and (prob is not None or self._weights is not None):
            chance = torch.as_tensor(1.0 if prob is None else prob, dtype=torch.float64)
            if chance.ndim and chance.shape != (len(rows),):
                raise ValueError(
                    f"prob must have one number per chosen edge ({len(rows)}), got shape {tuple(chance.shape)}; of "
                    "numbers per candidate pass those that were chosen, prob[keep]"
                )
            if not bool((chance > 0).all()):
                raise ValueError("prob must be positive: what was chosen had a chance")
            if mask is not None and bool((chance > 1 + 1e-6).any()):
                raise ValueError(f"prob must be at most 1 with a mask, which draws no edge twice; got {chance.max():g}")
            precise = self.edge_weight[torch.from_numpy(rows)] / chance
            weight = precise.float()
        if isinstance(weight, (int, float)):
            weight = torch.full((len(rows),), float(weight), dtype=torch.float32, device="cpu")
        cell = Lazy.of(precise) if precise is not None and self._exact else weight
        return Choice(np.searchsorted(rows, self._indptr), self.positions[rows], weight=cell)

    def __len__(self) -> int:
        return len(self.positions)
