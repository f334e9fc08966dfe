"""Scores of candidate nodes by a user's function: its argument, the checks of its result, log-probabilities."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, describe, first_true
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import Floats
from nodeflow._edges.numbering import Numbering
from nodeflow.flow import Flow, Layer
from nodeflow.ops import Structure
from nodeflow.sampling._bound import Candidates
from nodeflow.sampling._pps import Picked, list_probabilities, scale_of


class LayerCandidates(Frozen):
    """The nodes that a flow may draw, and their edges to the destinations: the argument of a score.

    Attributes:
        flow: a full flow from the candidates (its sources) to the destinations: a module can aggregate over it. Its
            weights are the sampler's ``weight`` column, or 1.
        structure: that of ``flow``: the edges from candidates, by their index in ``nid``, to destinations.
        nid: parent ids of the candidates, int64 ``[n]``.
        dst_nid: parent ids of the destinations, int64 ``[num_dst]``.
        positions: positions of the edges in the sampler's edge arrays, int64 ``[E]``.

    >>> import torch
    >>> from nodeflow import Graph, LayerSampler
    >>> def by_degree(candidates: LayerCandidates, step):
    ...     print(candidates.nid.tolist(), "for", candidates.dst_nid.tolist())
    ...     return candidates.flow.out_degrees.float()
    >>> graph = Graph.from_edges([0, 1, 2, 0], [3, 3, 3, 4])
    >>> flow = LayerSampler(graph, [1], score=by_degree)([3, 4]).flows[0]
    [0, 1, 2] for [3, 4]
    >>> flow.num_dst
    2
    """

    __slots__ = ("dst_nid", "flow", "nid", "positions", "structure")
    flow: Flow
    structure: Structure
    nid: Tensor
    dst_nid: Tensor
    positions: Ints

    def __init__(self, edges: Candidates, num_nodes: int) -> None:
        with Numbering(num_nodes) as numbering:
            local = numbering.extend(edges.src.numpy())
            nid = torch.from_numpy(np.array(numbering.nodes))
        structure = Structure(edges.indptr, torch.from_numpy(local), len(nid))
        ends = Layer._trusted(len(nid), nid), Layer._trusted(len(edges.dst_nid), edges.dst_nid)
        eid, weight = Lazy(lambda: edges.eid), Lazy(lambda: edges.edge_weight.float())
        flow = Flow._trusted(structure, *ends, (0, 1), parent_eid=eid, weight=weight)
        self._set(flow=flow, structure=structure, nid=nid, dst_nid=edges.dst_nid, positions=edges.positions)

    @property
    def edge_weight(self) -> Tensor:
        """Number by which each edge counts in the sum that is estimated, float32 ``[E]``."""
        return self.flow.weight

    def __repr__(self) -> str:
        return f"LayerCandidates({len(self)} nodes for {len(self.dst_nid)} destinations)"

    def __len__(self) -> int:
        return self.flow.num_src


def read_scores(value: object, nid: Tensor, flow: int) -> tuple[Floats, Tensor]:
    """Return the scores of the candidates ``nid`` (at least one) as float64 ``[n]``, and as a tensor.

    Raises TypeError for values that are not real numbers; ValueError for another shape, for a score that is negative or
    not finite, and for scores that are all 0.
    """
    scores = torch.as_tensor(value) if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" else value
    kinds = torch.bool, torch.complex64, torch.complex128, torch.complex32
    if not isinstance(scores, Tensor) or scores.layout != torch.strided or scores.dtype in kinds:
        raise TypeError(f"score must return a dense tensor of numbers, one per candidate, got {describe(value)}")
    if scores.shape != (len(nid),):
        raise ValueError(
            f"score must return one number per candidate, shape ({len(nid)},), got shape {tuple(scores.shape)}"
        )
    values = scores.detach().to("cpu", torch.float64).numpy()
    if (i := first_true(~(np.isfinite(values) & (values >= 0)))) is not None:
        raise ValueError(
            f"score must return finite numbers that are not negative, but candidate {i} (node {int(nid[i])}) of flow "
            f"{flow} has {values[i]}; a softplus or exp at the end of a module makes them positive"
        )
    if not values.any():
        raise ValueError(f"score gives 0 to all {len(nid)} candidates of flow {flow}, so none of them can be drawn")
    return values, scores


def draw_columns(scores: Tensor | None, values: Floats, picked: Picked, size: int, draw: str) -> dict[str, Tensor]:
    """Return the columns ``log_prob`` and ``draws`` of the picked candidates, ``[k]`` each.

    ``log_prob`` is differentiable in ``scores`` and has its floating type. ``scores`` None is for no candidates.
    """
    draws = torch.from_numpy(picked.times.astype(np.float32))
    if scores is None:
        return {"log_prob": torch.zeros(len(draws), dtype=torch.float32, device="cpu"), "draws": draws}
    kind = scores.dtype if scores.is_floating_point() else torch.float32
    exact = scores.to("cpu", torch.float64) * scale_of(values)
    places = torch.from_numpy(picked.places)
    if draw == "replacement":
        log_prob = exact[places].log() - exact.sum().log()
    else:
        prob = torch.from_numpy(list_probabilities(values, size))
        log_prob = exact[places] * 0  # has a gradient, 0, where all are certain too
        chance = (prob[places] < 1).nonzero().squeeze(1)
        if len(chance):  # pi = number of draws that are not certain * score / sum of the scores that are not certain
            number = round(float(prob[prob < 1].sum()))
            some = exact[places[chance]].log() - exact[prob < 1].sum().log() + math.log(number)
            log_prob = log_prob.index_put((chance,), some)
    return {"log_prob": log_prob.to(kind), "draws": draws}
