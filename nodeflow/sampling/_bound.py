"""Samplers that look up edges in a view of a graph, and the candidates that they find there."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_count, as_device, as_ids, unmasked
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import IdsLike, MaskLike
from nodeflow._core.edges.forms import InTorch
from nodeflow._core.edges.view import EdgeView, Reader, as_view, graph_of
from nodeflow._core.random import hash_ids
from nodeflow.graph import Graph
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._one_process import check_one_process
from nodeflow.sampling._options import arguments


class Candidates(Frozen):
    """All edges that a set of destinations could draw, grouped by destination, in the graph's
    order.

    Edges that a filter or ``without_edges`` leaves out are no candidates. All attributes are
    tensors on the CPU, except ``positions``, which is for compiled loops.

    Attributes:
        dst_nid: parent ids of the destinations, a tensor, int64 ``[num_dst]``.
        positions: positions of the candidates in the sampler's edge arrays, a numpy array, int64
            ``[E]``.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([0, 1, 2, 3], [4, 4, 4, 4]), [1])
    >>> edges: Candidates = sampler.candidates(torch.tensor([4]))
    >>> edges.src, edges.degrees
    (tensor([0, 1, 2, 3]), tensor([4]))
    """

    __slots__ = ("_indptr", "_reader", "dst_nid", "positions")
    _indptr: Ints
    _reader: Reader
    positions: Ints
    dst_nid: Tensor

    def __init__(self, reader: Reader, dst_nid: Tensor) -> None:
        edges = reader.edges
        first, end = edges.spans_of(dst_nid.numpy())
        indptr, positions = kernels.csr.csr_rows(edges.indptr, edges.rows_of(dst_nid.numpy()))
        # ``csr_rows`` counts by rows, of which a node may have several: candidates are by node
        indptr, positions = edges.staying(np.concatenate([[0], np.cumsum(end - first)]), positions)
        self._set(_indptr=indptr, _reader=reader, positions=positions, dst_nid=dst_nid)

    def __repr__(self) -> str:
        return f"Candidates({len(self.positions)} edges of {len(self.dst_nid)} destinations)"

    @property
    def indptr(self) -> Tensor:
        """Begin and end of the edges of each destination, int64 ``[num_dst + 1]``."""
        return torch.from_numpy(self._indptr)

    @property
    def degrees(self) -> Tensor:
        """Number of candidate edges of each destination, int64 ``[num_dst]``."""
        return torch.from_numpy(np.diff(self._indptr))

    @property
    def rows(self) -> Tensor:
        """Index of each edge's destination, from 0 to ``num_dst - 1``, int64 ``[E]``."""
        destinations = np.arange(len(self.dst_nid))
        return torch.from_numpy(np.repeat(destinations, np.diff(self._indptr)))

    @property
    def src(self) -> Tensor:
        """Parent id of the neighbour, int64 ``[E]``."""
        return torch.from_numpy(self._reader.edges.indices[self.positions].astype(np.int64))

    @property
    def dst(self) -> Tensor:
        """Parent id of the destination, int64 ``[E]``."""
        return self.dst_nid[self.rows]

    @property
    def eid(self) -> Tensor:
        """Parent id of the edge, int64 ``[E]``."""
        return self._reader.edges.parent_eid(self.positions)

    @property
    def edge_weight(self) -> Tensor:
        """Number by which the edge counts in the sum that is estimated, float64 ``[E]``.

        The sampler's ``weight`` column; 1 where the sampler has none.
        """
        return torch.from_numpy(self._reader.weighted(self.positions)).double()

    def select(
        self,
        keep: IdsLike | MaskLike,
        weight: Tensor | float | None = None,
        *,
        prob: Tensor | float | None = None,
    ) -> Choice:
        """Return the Choice of the edges ``keep``: a bool mask ``[E]``, or row numbers in ascending
        order.

        Args:
            keep: which candidate edges are chosen; a row number may be repeated.
            weight: estimator weight of the chosen edges, ``[chosen]`` or one number for all.
            prob: instead of ``weight``, the probability with which each edge was chosen, or the
                mean number of times that it is drawn, ``[chosen]`` or one number for all. Estimator
                weights are ``edge_weight / prob``. None: 1.

        Raises ValueError for row numbers that are not ascending, for both ``weight`` and ``prob``,
        and for a ``prob`` that is not positive; IndexError for a row number out of range.
        """
        size = len(self)
        chosen = unmasked(keep, "keep", size, "candidate")
        masked = chosen is not keep
        rows = as_ids(chosen, "keep", size, "candidate")
        if (np.diff(rows) < 0).any():
            raise ValueError(
                "keep must be ascending row numbers, so that the edges stay grouped by destination"
            )
        if weight is not None and prob is not None:
            raise ValueError("select takes weight or prob, not both")
        if isinstance(weight, (int, float)):
            weight = torch.full((len(rows),), float(weight), dtype=torch.float32, device="cpu")
        cell: Tensor | Lazy[Tensor] | None = weight
        # 1 / probability in float64: weights that float32 rounds are rounded once, at the end
        if weight is None and (prob is not None or self._reader.weights is not None):
            chance = torch.as_tensor(1.0 if prob is None else prob, dtype=torch.float64)
            if chance.ndim and chance.shape != (len(rows),):
                raise ValueError(
                    f"prob must have one number per chosen edge ({len(rows)}), got shape "
                    f"{tuple(chance.shape)}; of numbers per candidate pass those that were chosen, "
                    "prob[keep]"
                )
            if not bool((chance > 0).all()):
                raise ValueError("prob must be positive: what was chosen had a chance")
            if masked and bool((chance > 1 + 1e-6).any()):
                raise ValueError(
                    "prob must be at most 1 with a mask, which draws no edge twice; got "
                    f"{chance.max():g}"
                )
            precise = self.edge_weight[torch.from_numpy(rows)] / chance
            if self._reader.weight_type is np.float64:
                cell = Lazy.of(precise)
            else:
                cell = precise.float()
        # rows ascend, so those of a destination are found by the ends of its candidates
        return Choice(np.searchsorted(rows, self._indptr), self.positions[rows], weight=cell)

    def __len__(self) -> int:
        return len(self.positions)


class BoundSampler(SamplerBase):
    """Base of the samplers that look up edges: in a direction, through a filter, with weights.

    Draws look up edges and weights in ``reader``. A subclass that reads more of the graph, such as
    another column, overrides ``read_graph``; it sets the settings used there before it calls
    ``super().__init__``.

    Args:
        num_flows: number of flows, L.
        graph, seed: see ``Sampler``, also for errors.

    >>> from nodeflow import NeighborSampler
    >>> issubclass(NeighborSampler, BoundSampler)
    True
    """

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        *,
        seed: int = 0,
    ) -> None:
        with graph_of(graph).peers.together(f"making a {type(self).__name__}"):
            self.view = as_view(graph)
            super().__init__(self.view.graph, as_count(num_flows, "num_flows", 1), seed=seed)
            self.bind()

    reader: Reader

    def bind(self) -> None:
        super().bind()
        self.reader = self.reader.in_form(self.form)

    def in_torch(self, device: torch.device | str = "cpu") -> Self:
        # a subclass draws otherwise, perhaps: each class says so for itself
        has_form = vars(type(self)).get("has_torch_form", False)
        if not has_form or self.graph.in_parts or self._loops_only():
            return super().in_torch(device)  # raises
        form = InTorch(as_device(device))
        form.check()
        other = self.with_reader(self.reader.in_form(form))
        other.form = form
        return other

    def _loops_only(self) -> bool:
        """Return whether a class with a form in torch draws these settings in compiled loops
        only.
        """
        return False

    def read_graph(self) -> None:
        """Read the edges and their weights into ``reader``."""
        self.reader = self.view.reader

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; arguments left at None are not
        shown.
        """
        # so that states of loaders stay readable when a version adds an argument
        left = {name for name, p in arguments(type(self)).items() if p.default is None}
        settings = {k: v for k, v in super().settings.items() if v is not None or k not in left}
        settings |= self.view.settings
        if len(left_out := self.reader.left_out):
            settings["without_edges"] = f"{len(left_out)} edges, {hash_ids(left_out):#018x}"
        return settings

    def _made_of(self) -> tuple[str, Container[str]]:
        if self.view.is_plain:
            subject = repr(self.graph)
        else:
            subject = repr(self.view)
        return subject, self.view.settings

    def without_edges(self, eid: IdsLike) -> Self:
        """Return a sampler like this one that does not draw the edges ``eid`` (parent edge ids).

        They are left out before the draw, so fanouts stay full. If nodes draw on their own, nodes
        without such an edge draw the same as before; if a layer draws as a whole, all of it may
        change. Meant for one batch, such as the edges whose presence is to be predicted. To leave
        edges out for long, use
        ``graph.view(where=...)``: its draws are faster.

        Raises IndexError for an id out of range.
        """
        ids = as_ids(eid, "eid", self.graph.num_edges, "edge")
        return self.with_reader(self.reader.without(ids, self.graph.for_sampling.held_part))

    def with_reader(self, reader: Reader) -> Self:
        """Return a sampler like this one that looks up other edges."""
        # not a copy as pickle makes it, which reads the graph anew
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.reader = reader
        return other

    def estimand(self) -> Tensor:
        """Return the number by which every edge counts in the sums that are estimated, float64
        ``[num_edges]``.

        It is the ``weight`` column, or 1, and 0 for edges that the filter or ``without_edges``
        leaves out. A sampler of your own overrides this if it never draws some other edges, or
        counts edges otherwise: ``assert_unbiased`` compares its weighted sums with the sums by
        these numbers (example in docs/custom-samplers.md).
        """
        check_one_process(self.graph, "estimand()")
        number = self.view.numbers()
        number[torch.from_numpy(self.reader.left_out)] = 0
        return number

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_left_out": self.reader.left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        left_out = state.pop("_left_out")
        super().__setstate__(state)
        self.reader = self.reader.without(left_out, self.graph.for_sampling.held_part)
