"""Draws with probability proportional to size (pps), a weight or a user's score: per row, and from
one list.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import (
    Ints,
    as_array,
    check_indptr,
    describe,
    first_true,
)
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array, Floats, IdsLike, NumbersLike
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.forms import Placed, TwoForms
from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.edges.stored import integers, narrow
from nodeflow._core.in_torch import alias
from nodeflow._core.in_torch.ragged import spread
from nodeflow._core.random import derive_key
from nodeflow.flow import Flow, Layer
from nodeflow.ops import Structure
from nodeflow.sampling._bound import Candidates
from nodeflow.sampling._rows import DrawingRows, Drawn


class Picked(NamedTuple):
    """The k drawn candidates; sums over them, weighted by ``times / mean``, are unbiased."""

    places: Ints  # their indices in the list of candidates, ascending
    times: Ints  # how often each was drawn; 1 without replacement
    # the mean of ``times``: ``size * q`` with replacement, else the probability of being drawn
    mean: Floats

    @classmethod
    def once(cls, places: Ints, prob: Floats) -> Picked:
        """Return distinct candidates, which were drawn with these probabilities, ``[k]``."""
        return cls(places, np.ones(len(places), np.int64), prob)


def check_weights(values: Floats, name: str) -> None:
    """Raise ValueError for the first of some numbers that is negative, or not finite."""
    if (i := first_true(~(np.isfinite(values) & (values >= 0)))) is not None:
        raise ValueError(f"{name} must be finite and not negative, but entry {i} is {values[i]}")


def scale_of(values: NDArray[np.floating]) -> float:
    """Return the power of two that brings the largest absolute value to between 1/2 and 1; 1 where
    all are 0.

    Multiplied by it, values neither overflow nor vanish when they are squared and added, and none
    loses a digit.
    """
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    # a subnormal number would need a factor that is no number
    return 2.0 ** -max(math.frexp(largest)[1], -1000) if largest > 0 else 1.0


def list_probabilities(scores: Floats, size: int) -> Floats:
    """Return ``min(1, c * score)`` with the c for which the probabilities add up to ``size``,
    float64 ``[n]``.

    Scores are finite and not negative. Where no more candidates than ``size`` have one above 0,
    each of those gets 1; with ``size`` 0 all get 0.

    Source: Sarndal, Swensson, Wretman 1992, section 3.6.1. Cost: proportional to n, and to size *
    log(size).
    """
    scores = scores * scale_of(scores)
    positive = scores > 0
    prob = positive.astype(np.float64) * (size > 0)
    if int(np.count_nonzero(prob)) <= size:
        return prob
    # only the ``size`` largest scores can be certain: the others need a sum, but no order
    start = len(scores) - size
    top = np.sort(np.partition(scores, start)[start:])[::-1]
    remainder, below = kernels.pps.sum_below(scores, top[-1])
    certain = kernels.pps.count_certain(top, remainder + (start - below) * top[-1])
    # ties with the last certain score are certain too, so the sum is made again below it
    if certain:
        cut = top[certain - 1]
    else:
        cut = np.inf
    left, number = kernels.pps.sum_below(scores, cut)
    others = scores < cut
    prob[others] = np.minimum(scores[others] / left * (size - (len(scores) - number)), 1.0)
    return prob


class Line(NamedTuple):
    """Candidates in the order of a systematic draw."""

    certain: Ints  # places of the candidates with probability 1
    order: Ints  # places of the others, in the order of the draw
    ends: Floats  # running sums of the probabilities in that order; the last one is ``size``
    size: int  # the sum of the probabilities of the others


def laid_out(prob: Floats, ids: Ints, key: int | None) -> Line:
    """Lay candidates with these probabilities (which add up to an integer) in the order that
    ``key`` gives ``ids``.

    None: in the order in which they are given.
    """
    certain = np.flatnonzero(prob >= 1)
    others = np.flatnonzero((prob > 0) & (prob < 1))
    if key is None:
        order = others
    else:
        order = others[kernels.pps.hash_order(ids[others], np.uint64(key))]
    ends = np.cumsum(prob[order])
    size = 0
    if len(ends):
        size = round(float(ends[-1]))
    ends = np.minimum(ends, size)  # rounding may have gone slightly above
    ends[-1:] = size
    return Line(certain, order, ends, size)


def pick_systematic(line: Line, prob: Floats, key: int) -> Picked:
    """Draw exactly as many distinct candidates as the probabilities add up to, each with its own
    (Deville 1998).
    """
    if line.size:
        drawn = kernels.pps.draw_systematic(line.ends, line.size, np.uint64(key))
    else:
        drawn = line.order[:0]
    places = np.sort(np.concatenate([line.certain, line.order[drawn]]))
    return Picked.once(places, prob[places])


class Ladder(NamedTuple):
    """Candidates prepared for draws with replacement: scores, their running sums, and a guide for
    faster search.
    """

    scores: NDArray[np.floating]
    ends: Floats
    guide: NDArray[np.signedinteger]


def ladder(scores: NDArray[np.floating], bits: int = 0) -> Ladder:
    """Prepare scores ``[n]``, at least one positive. A 2**bits near n makes draws fast. Cost:
    proportional to n.
    """
    ends = np.cumsum(scores, dtype=np.float64)
    guide = np.empty(2**bits + 1, narrow(len(ends) + 1))
    kernels.pps.guide_to(ends, guide)
    return Ladder(scores, ends, guide)


def pick_with_replacement(steps: Ladder, size: int, key: int) -> Picked:
    """Draw ``size`` times in proportion to the scores."""
    drawn = kernels.pps.draw_with_replacement(steps.ends, steps.guide, size, np.uint64(key))
    places, times = np.unique(drawn, return_counts=True)
    return Picked(places, times, steps.scores[places].astype(np.float64) * (size / steps.ends[-1]))


def pick(scores: Floats, ids: Ints, size: int, draw: str, key: int) -> Picked:
    """Draw ``size`` candidates in proportion to their ``scores``; none where all scores are 0.

    ``ids`` ``[n]`` are distinct numbers of the candidates, to which random numbers belong; ``draw``
    see ``LayerSampler``.
    """
    scores = scores * scale_of(scores)
    if not scores.any():
        return Picked.once(np.zeros(0, np.int64), np.zeros(0))
    if draw == "replacement":
        return pick_with_replacement(ladder(scores), size, key)
    prob = list_probabilities(scores, size)
    if draw == "systematic":
        return pick_systematic(laid_out(prob, ids, derive_key(key, 1)), prob, key)
    places = kernels.pps.keep_poisson(prob, ids, np.uint64(key))
    return Picked.once(places, prob[places])


class Proportional:
    """Weights of the edges of every row, by edge id and by position, and alias tables to draw in
    proportion to them.

    The tables take ``8 num_edges + 24 num_rows`` bytes (see ``_kernels/draw/alias.py``), and a pass
    over all edges. On a device they, the weights, and how many are above 0 take ``20 num_edges``
    there (weights of 4 bytes).
    """

    def __init__(self, edges: Edges, column: Array) -> None:
        self.column = column
        self.weights = np.ascontiguousarray(edges.by_position(column))
        # made here, since numpy asks for large pages where it can: random access to small ones
        # takes twice the time
        self.table = np.zeros(len(self.weights), np.uint64)
        self.sums = np.zeros((edges.num_rows, 3), np.float64)
        kernels.alias.build_tables(edges.indptr, self.weights, self.table, self.sums)
        # copies for devices are made for the first draw there: most samplers stay on the host
        self._placed = Lazy(self._placed_later)

    def draw(
        self, edges: Edges, rows: DrawingRows, fanouts: Ints, key: int, *, replace: bool
    ) -> Drawn:
        """Draw ``fanouts`` edges for each of ``rows``: one number per kind of row, -1 for all
        edges.

        Only draws with replacement have a form in torch.
        """
        loop: Any = edges.form.of(_PROPORTIONAL)
        return cast("Drawn", loop(self, edges, rows, fanouts, key, replace=replace))

    def _placed_later(self) -> Placed:
        positive = np.concatenate([[0], np.cumsum(self.weights > 0)])
        return Placed(
            self.table.view(np.int64),
            self.sums[:, kernels.alias.TOTAL].copy(),
            positive,
            self.weights,
        )

    def in_torch(self, edges: Edges, rows: Any, fanouts: Ints, key: int, *, replace: bool) -> Any:
        """Do what ``draw`` does, with replacement, in operations of torch."""
        assert replace
        *tables, weights = self._placed.get().at(edges.form)
        indptr, positions, src, unit = alias.draw(
            edges.arrays.indptr,
            edges.arrays.indices,
            alias.Tables(*tables),
            rows.numbers,
            rows.ident,
            key,
            fanouts.tolist(),
            rows.kinds,
        )

        def inverse() -> Any:
            of_edge = spread(unit, indptr, len(src))
            return torch.where(of_edge == 0, 1.0, of_edge / weights.index_select(0, positions))

        factor: Any = inverse if (fanouts >= 0).any() else None
        return Drawn._make((indptr, positions, src, factor, True))

    def compiled(
        self, edges: Edges, rows: DrawingRows, fanouts: Ints, key: int, *, replace: bool
    ) -> Drawn:
        """Do what ``draw`` does in compiled kernels.weighted."""
        weights = self.weights
        indptr, begin, degree, unit, top, ways, sizes = kernels.weighted.plan_weighted(
            edges.indptr, self.sums, weights, rows.numbers, rows.kinds, fanouts, replace=replace
        )
        positions = np.empty(indptr[-1], edges.position_type)
        src = np.empty(indptr[-1], np.int64)
        table, scan, keep = (
            ways[way, : sizes[way]]
            for way in (kernels.weighted.TABLE, kernels.weighted.SCAN, kernels.weighted.KEEP)
        )
        keys = (edges.indices, rows.ident, np.uint64(key))
        result = (indptr, positions, src)
        # of the ways to draw, each row has the one that ``plan_weighted`` gave it
        if replace:
            kernels.alias.draw_alias(table, begin, degree, self.table, *keys, *result)
        elif len(table):
            kernels.weighted.draw_sampford(
                table, begin, degree, self.table, weights, *keys, unit, top, *result
            )
        if len(scan):
            kernels.systematic.draw_systematic(
                scan, begin, degree, weights, *keys, unit, top, *result
            )
        if len(keep):
            kernels.weighted.keep_nonzero(keep, begin, weights, edges.indices, *result)
        inverse = None
        if (fanouts >= 0).any():
            inverse = partial(
                kernels.weighted.inverse_probability,
                weights,
                positions,
                indptr,
                unit,
                replace=replace,
            )
        return Drawn(indptr, positions, src, inverse, varies=True)


_PROPORTIONAL = TwoForms(Proportional.compiled, Proportional.in_torch)


def inclusion_probabilities(weight: NumbersLike, indptr: IdsLike, k: int | IdsLike) -> Tensor:
    """Return the probabilities ``min(1, c weight)`` that add up to k in every row, float64 ``[E]``.

    They are the probabilities with which exactly k edges of a destination are drawn without
    replacement, in proportion to their weights. c belongs to the row. Edges for which c times the
    weight would exceed 1 are certain, and the others share what remains of k. In a row with no more
    than k weights above 0, each of those gets 1.

    Args:
        weight: a number per edge, finite and at least 0, ``[E]``, grouped by row.
        indptr: where the edges of each row begin and end, integers ``[num_rows + 1]``, such as
            ``Candidates.indptr``.
        k: a number of edges for all rows, or one per row ``[num_rows]``, at least 0, or -1 for all
            edges.

    Raises TypeError for an ``indptr`` or ``k`` that is not integers, ValueError for arrays that do
    not fit each other, a weight that is negative or not finite, and a k below -1.

    Cost: some passes over the edges, one per round in which an edge is found certain, and one more.

    Source: Sarndal, Swensson, Wretman 1992, section 3.6.1.

    >>> weight = torch.tensor([8.0, 1.0, 1.0, 0.0, 2.0, 3.0, 1.0])  # five edges of one row, two of another
    >>> inclusion_probabilities(weight, [0, 5, 7], 2).tolist()
    [1.0, 0.25, 0.25, 0.0, 0.5, 1.0, 1.0]
    >>> inclusion_probabilities(weight, [0, 5, 7], [-1, 1]).tolist()
    [1.0, 1.0, 1.0, 0.0, 1.0, 0.75, 0.25]
    """
    values = as_array(weight, "weight", "numbers")
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise TypeError(f"weight must be one-dimensional numbers, got {describe(values)}")
    values = values.astype(np.float64)
    check_weights(values, "weight")
    ends = integers(indptr, "indptr")
    counts = as_array(k, "k")
    if counts.size and counts.dtype.kind not in "iu":
        raise TypeError(f"k must be an integer, or one per row, got {describe(k)}")
    check_indptr(ends, len(values))
    rows = len(ends) - 1
    if counts.shape not in ((), (rows,)):
        raise ValueError(f"k must be an integer, or one per row ({rows}), got shape {counts.shape}")
    numbers = np.broadcast_to(counts, rows).astype(np.int64)
    if (i := first_true(numbers < -1)) is not None:
        raise ValueError(
            f"k must be at least 0, or -1 for all edges, but k of row {i} is {numbers[i]}"
        )
    return torch.from_numpy(kernels.pps.row_probabilities(ends.astype(np.int64), values, numbers))


class LayerCandidates(Frozen):
    """The nodes that a flow may draw, and their edges to the destinations: the argument of a score.

    Attributes:
        flow: a full flow from the candidates (its sources) to the destinations: a module can
            aggregate over it. Its weights are the sampler's ``weight`` column, or 1.
        structure: that of ``flow``: the edges from candidates, by their index in ``nid``, to
            destinations.
        nid: parent ids of the candidates, int64 ``[n]``.
        dst_nid: parent ids of the destinations, int64 ``[num_dst]``.
        positions: positions of the edges in the sampler's edge arrays, int64 ``[E]``.

    >>> from nodeflow import Graph, LayerSampler
    >>> def by_degree(candidates: LayerCandidates, step):
    ...     print(candidates.nid.tolist(), "for", candidates.dst_nid.tolist())
    ...     return candidates.flow.out_degrees.float()
    >>> batch = LayerSampler(Graph.from_edges([0, 1, 2, 0], [3, 3, 3, 4]), [1], score=by_degree)([3, 4])
    [0, 1, 2] for [3, 4]
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
        structure = Structure._trusted(edges.indptr, torch.from_numpy(local), len(nid))
        ends = Layer._trusted(len(nid), nid), Layer._trusted(len(edges.dst_nid), edges.dst_nid)
        eid = Lazy(lambda: edges.eid)
        weight = Lazy(lambda: edges.edge_weight.float())
        flow = Flow._trusted(structure, *ends, (0, 1), parent_eid=eid, weight=weight)
        self._set(
            flow=flow,
            structure=structure,
            nid=nid,
            dst_nid=edges.dst_nid,
            positions=edges.positions,
        )

    @property
    def edge_weight(self) -> Tensor:
        """Number by which each edge counts in the sum that is estimated, float32 ``[E]``."""
        return self.flow.weight

    def __repr__(self) -> str:
        return f"LayerCandidates({len(self)} nodes for {len(self.dst_nid)} destinations)"

    def __len__(self) -> int:
        return self.flow.num_src


class Scores(NamedTuple):
    """The scores of n candidates, float64 ``[n]``, and the tensor that a user's ``score`` returned;
    None: no score.
    """

    numbers: Floats
    tensor: Tensor | None


def read_scores(value: Any, nid: Tensor, flow: int) -> Scores:
    """Return what ``score`` returned for the candidates ``nid``, at least one, checked."""
    scores = value
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        scores = torch.as_tensor(value)
    is_dense = isinstance(scores, Tensor) and scores.layout == torch.strided
    if not is_dense or scores.dtype.is_complex or scores.dtype == torch.bool:
        raise TypeError(
            f"score must return a dense tensor of numbers, one per candidate, got {describe(value)}"
        )
    if scores.shape != (len(nid),):
        raise ValueError(
            f"score must return one number per candidate, shape ({len(nid)},), got shape "
            f"{tuple(scores.shape)}"
        )
    values = scores.detach().to("cpu", torch.float64).numpy()
    check_weights(values, f"the score of candidates of flow {flow}")
    if not values.any():
        raise ValueError(
            f"score gives 0 to all {len(nid)} candidates of flow {flow}, so none of them can be "
            "drawn"
        )
    return Scores(values, scores)


def draw_columns(
    scores: Tensor, values: Floats, picked: Picked, size: int, draw: str
) -> dict[str, Tensor]:
    """Return the columns ``log_prob`` and ``draws`` of the picked candidates, ``[k]`` each.

    ``log_prob`` is differentiable in ``scores`` and has its floating type.
    """
    draws = torch.from_numpy(picked.times.astype(np.float32))
    kind = scores.dtype if scores.is_floating_point() else torch.float32
    # by the scaled scores, of which the sampler drew, so that sums neither overflow nor vanish
    exact = scores.to("cpu", torch.float64) * scale_of(values)
    places = torch.from_numpy(picked.places)
    if draw == "replacement":
        log_prob = exact[places].log() - exact.sum().log()
    else:
        prob = torch.from_numpy(list_probabilities(values, size))
        # has a gradient, 0, where all are certain too
        log_prob = exact[places] * 0
        chance = (prob[places] < 1).nonzero().squeeze(1)
        # pi = number of draws that are not certain * score / sum of the scores that are not certain
        if len(chance):
            number = round(float(prob[prob < 1].sum()))
            some = exact[places[chance]].log() - exact[prob < 1].sum().log() + math.log(number)
            log_prob = log_prob.index_put((chance,), some)
    return {"log_prob": log_prob.to(kind), "draws": draws}
