"""The edges that a sampler chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_array, check_indptr, check_length, describe
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import IdsLike
from nodeflow._edges.edges import Edges


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

    Attributes:
        indptr: a numpy array, int64 ``[num_dst + 1]``.
        positions: a numpy array, int64 ``[E]``; None where the choice was made of ``src``.
        src: a numpy array, int64 ``[E]``; None where it was made of ``positions``.
        eid: a tensor, int64 ``[E]``, or None.
        weight: a cell whose ``get()`` returns the estimator weights, float32 (or float64) ``[E]``; None: all are 1.
        edata, nodes, ndata: as given, with dicts for None and ``nodes`` as a tensor.

    ``Candidates.select`` makes a choice of candidates, so ``choose`` of a subclass can read that of its base class:
    ``np.isin(self.candidates(dst).positions, super().choose(dst, step).positions)`` are the candidates that it chose.

    Raises TypeError for arrays that are not integers, ValueError for arrays that do not fit each other.

    >>> choice = Choice(torch.tensor([0, 2, 3]), src=torch.tensor([5, 7, 5]), weight=torch.tensor([0.5, 0.5, 1.0]))
    >>> choice.indptr, choice.src
    (array([0, 2, 3]), array([5, 7, 5]))
    """

    __slots__ = (
        "_fresh",
        "edata",
        "eid",
        "indptr",
        "ndata",
        "needs_weight",
        "nodes",
        "positions",
        "src",
        "trusted",
        "weight",
    )
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
        if (nodes is None) != (ndata is None):
            raise ValueError("ndata goes with nodes, the parent ids that its rows belong to")
        arrays = {"indptr": indptr, "positions": positions, "src": src, "eid": eid, "nodes": nodes}
        ints = {name: _int64(value, name) for name, value in arrays.items() if value is not None}
        size = len(ints["src" if positions is None else "positions"])
        check_indptr(ints["indptr"], size)
        if eid is not None:
            check_length(ints["eid"], "eid", size, "chosen edge")
        if weight is None or isinstance(weight, Lazy):
            cell = weight
        elif callable(weight):
            cell = Lazy(lambda: _weight(weight(), size))
        else:
            cell = Lazy.of(_weight(weight, size).clone())
        self._set(indptr=ints["indptr"], positions=ints.get("positions"), src=ints.get("src"), trusted=False, _fresh=[])
        self._set(weight=cell, needs_weight=False if cell is None else None, edata=dict(edata or {}))
        self._set(eid=None if eid is None else torch.from_numpy(ints["eid"]), ndata=dict(ndata or {}))
        self._set(nodes=None if nodes is None else torch.from_numpy(ints["nodes"]))

    @classmethod
    def of_kernel(
        cls,
        indptr: Ints,
        positions: Ints | None,
        src: Ints,
        weight: Callable[[], Tensor] | None,
        *,
        needs_weight: bool | None,
        eid: Tensor | None = None,
        edata: Mapping[str, Tensor] | None = None,
        nodes: Tensor | None = None,
        ndata: Mapping[str, Tensor] | None = None,
    ) -> Choice:
        """Return a Choice of arrays that a compiled loop made, which are not checked.

        ``src`` are the sources of the edges at ``positions``; None is for edges that the parent graph does not have, or
        whose parent ids are ``eid``.
        ``needs_weight`` says whether weights may vary within a destination (see ``Flow.needs_weight``). None: unknown,
        so weights are compared.
        """
        self = cls.__new__(cls)
        cell = None if weight is None else Lazy(weight)
        self._set(
            indptr=indptr,
            positions=positions,
            src=src if positions is None else None,
            eid=eid,
            weight=cell,
            needs_weight=False if cell is None else needs_weight,
            edata=edata or {},
            nodes=nodes,
            ndata=ndata or {},
            trusted=True,
            _fresh=[] if positions is None else [src],
        )
        return self

    def __repr__(self) -> str:
        return f"Choice({int(self.indptr[-1])} edges of {len(self.indptr) - 1} destinations)"

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
