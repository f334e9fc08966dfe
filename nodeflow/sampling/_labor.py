"""LABOR: every source has one random number for all destinations, so that these choose the same
sources.

The probability of an edge is computed in ``_kernels/draw/labor.py`` (LABOR-0, with its twin in
``_core/in_torch/labor.py``) and ``_kernels/draw/labor_importance.py`` (with iterations);
``_labor_draws`` calls them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_flag, as_int, check_one_of
from nodeflow._core.base.types import Array, Fanouts, Floats, NumNeighbors
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import Placed
from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.random import derive_key
from nodeflow._core.runtime.memory import copied_outside, outside
from nodeflow.graph import Graph
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._keys import Step
from nodeflow.sampling._labor_draws import INVERSES, KEPT, fanouts_of
from nodeflow.sampling._relations import check_fanouts
from nodeflow.sampling._rows import DrawingRows, Drawn, RowSampler

_CONVERGED = "converged"
_MOST_ROUNDS = 100
_TOLERANCE = 1e-4
_WORDS = 2**32
_LONGEST = 2**31
# used in a key in place of the number of a flow
_SHARED = -1
_PHASE = -2


class _Layout(NamedTuple):
    """The edges of n destinations, as the rounds that solve for their importance pass them."""

    begin: Ints  # where the edges of each destination begin in ``indices``, ``[n]``
    degree: Ints  # how many they are, ``[n]``
    indices: Array  # the source of every edge, below ``size``
    size: int
    nodes: Ints = NOTHING  # the parent id of every source; empty where sources are parent ids
    # positions of the edges in the sampler's arrays; None: in ``indices``, plus ``ahead``
    candidates: Ints | None = None
    # what is added to the positions of each destination's edges, ``[n]``; None: nothing
    ahead: Ints | None = None

    def sources(self, kept: Ints) -> Ints:
        """Return the parent ids of the sources of edges at ``kept``, in an array of their own."""
        sources: Ints = copied_outside(self.indices[kept], np.int64)
        return self.nodes[sources] if len(self.nodes) else sources

    def positions(self, kept: Ints, indptr: Ints) -> Ints:
        """Return the positions in the sampler's arrays of edges at ``kept``, which is changed."""
        if self.ahead is not None:
            kept += np.repeat(self.ahead, np.diff(indptr)).astype(kept.dtype)
        return kept if self.candidates is None else self.candidates[kept]

    def numbered(self) -> _Layout:
        """Return the same with sources numbered in order of first appearance."""
        with Numbering(self.size) as numbering:
            numbers = numbering.extend(self.indices.astype(np.int64))
            nodes = numbering.nodes
        indices = numbers.astype(self.indices.dtype)
        return self._replace(indices=indices, nodes=nodes, size=len(nodes))

    def gathered(self) -> _Layout:
        """Return the same with copied edges, one destination after another, and so numbered."""
        begin = np.cumsum(self.degree) - self.degree
        numbers = outside(int(self.degree.sum()), np.int32)
        nodes = kernels.labor_importance.gather_local(
            self.begin, self.degree, self.indices, np.full(self.size, -1, np.int32), numbers
        )
        ahead = self.begin - begin
        return self._replace(
            begin=begin, indices=numbers, nodes=nodes, ahead=ahead, size=len(nodes)
        )


class LaborSampler(RowSampler):
    """Layer-neighbour sampling: as good as neighbour sampling for every destination, with fewer
    sources in all.

    LABOR of Balin and Catalyurek (NeurIPS 2023, arXiv:2210.13339). Every source t has one uniform
    random number r_t per flow, and the edge t -> s is drawn when ``r_t < c_s pi_t``. So
    destinations tend to draw the same sources. For k = fanout and d = degree of s, c_s is such that
    ``sum_t 1 / min(1, c_s pi_t) = d**2 / min(k, d)``, so that the variance of a mean over
    neighbours is that of k neighbours drawn without replacement, where their values are
    uncorrelated.

    Estimator weights: 1 / probability, times the ``weight`` column. With them the weighted sum over
    the drawn edges is unbiased for the weighted sum over all in-edges, for values fixed before the
    draw. Sums of different destinations are correlated, which does not bias them. A node with at
    most k neighbours keeps all of them, weight 1; one without neighbours gets no edges. With
    ``method="poisson"`` a node may happen to draw none.

    Args:
        fanouts: k, one number per flow **in flow order**: ``fanouts[-1]`` belongs to the seeds. It
            is the expected number of neighbours for ``iterations=0``; more iterations draw more
            edges to fewer nodes. -1 takes all. Each may be a dict by relation or type, as in
            ``NeighborSampler``; a source has one r_t for all of these.
        num_neighbors: instead of ``fanouts``, the same with the seeds' first, as in
            ``NeighborSampler``.
        iterations: 0 is LABOR-0: all pi are 1, and an edge is drawn with probability
            ``min(1, k / d)``. i is LABOR-i: i times, every pi_t is multiplied by the largest c_s of
            its destinations and the c_s are solved for again, which lowers the expected number of
            sources. "converged" (or -1) is ``LABOR-*``: until that number falls by less than 1 in
            10,000, at most 100 times.
        method: "poisson" decides every source on its own, so the number of neighbours varies;
            "sequential" takes exactly ``min(k, d)``, those with the smallest ``r_t / pi_t``
            (sequential Poisson sampling, Ohlsson 1998). Probabilities are then k / d for
            ``iterations=0``, and else, given the other sources' numbers, ``min(1, pi_t tau)``,
            where tau is the smallest ``r_t / pi_t`` not drawn (Duffield, Lund, Thorup 2007). With a
            fanout of 1 these weights have infinite variance (as 1 / the second smallest of d
            numbers has).
        estimator: "horvitz-thompson" is as said above. "hajek" scales the weights of every
            destination so that the inverse probabilities add up to its degree, as DGL does; the
            mean over neighbours is then a mean of drawn values. It trades bias for variance: sums
            are no longer unbiased.
        layer_dependency: all flows of a batch use the same r_t, so that flows draw the same nodes.
            Only the flow into the seeds stays unbiased. An inner node is in the batch because its
            number is small, and uses that number again as a source: sums of the flows below are
            biased.
        batch_dependency: number of batches for which a node keeps its r_t; 1 draws afresh in every
            batch, None once per epoch. Nodes renew theirs at batches of their own, so two batches
            at distance b in an epoch share a fraction ``max(0, 1 - b / batch_dependency)`` of the
            numbers, and each batch is a draw as good as any. Batches must then be numbered (a
            ``NodeFlowLoader`` does so).
        graph, edge_type, include_dst, reuse, seed: see
            ``RowSampler``; ``reuse`` needs ``iterations=0``. Probabilities do not depend on
            ``weight``.

    At equal seeds all LaborSamplers have the same r_t, whatever their ``method``, ``iterations``
    and fanouts: they can be compared on common random numbers. Samplers of other classes draw
    independently of them.

    Several edges from one source to a destination have one number with "poisson" (all or none are
    drawn); with "sequential" each has its own.

    Cost: proportional to the degrees of the destinations, not to what is drawn. Memory in
    proportion to what is drawn; ``iterations=1`` takes for a moment also 9 bytes per node of the
    graph ("sequential": 13), or where the degrees add up to less than a quarter of the nodes, in
    proportion to them; more iterations, in proportion to the degrees too. A sequential sampler with
    ``iterations=0`` reads all edges of the graph once when it is made.

    Raises TypeError or ValueError for arguments of another type or value.

    >>> import torch
    >>> graph = Graph.from_edges(torch.arange(100).repeat(5), torch.arange(100, 105).repeat_interleave(100))
    >>> batch = LaborSampler(graph, [10], include_dst=False, seed=1)(range(100, 105))
    >>> batch.flow_sizes, batch.layer_sizes  # five destinations draw the same neighbours
    ((45,), (9, 5))
    """

    draws_as = "labor"
    fixed_sizes = False
    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        fanouts: Fanouts | None = None,
        *,
        num_neighbors: NumNeighbors | None = None,
        iterations: int | str = 0,
        method: str = "poisson",
        estimator: str = "horvitz-thompson",
        layer_dependency: bool = False,
        batch_dependency: int | None = 1,
        edge_type: str | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.fanouts = check_fanouts(fanouts, num_neighbors, edge_type=edge_type)
        self.iterations = _iterations(iterations)
        check_one_of(method, "method", ("poisson", "sequential"))
        check_one_of(estimator, "estimator", ("horvitz-thompson", "hajek"))
        self.method = method
        self.estimator = estimator
        self.layer_dependency = as_flag(layer_dependency, "layer_dependency")
        period = None if batch_dependency is None else as_int(batch_dependency, "batch_dependency")
        if period is not None and not 1 <= period <= _LONGEST:
            raise ValueError(
                "batch_dependency must be a number of batches from 1 to 2**31, or None for all of "
                f"an epoch, got {period}"
            )
        self.batch_dependency = period
        if reuse and self.iterations != 0:
            raise ValueError(
                f"reuse=True needs iterations=0, got iterations={self.iterations!r}: the "
                "importance of a source belongs to one flow, not to draws that flows share"
            )
        self.numbered = period is not None and period > 1
        # else the importance of a source depends on all destinations
        self.by_row = self.iterations == 0
        super().__init__(
            graph,
            len(self.fanouts),
            edge_type=edge_type,
            include_dst=include_dst,
            reuse=reuse,
            seed=seed,
        )

    def read_graph(self) -> None:
        super().read_graph()
        self._read_counts(self.fanouts)
        self._repeats: Placed | None = None
        # parallel edges have a random number each
        if self.method == "sequential" and self.iterations == 0:
            edges = self.reader.edges
            size = self.graph.num_nodes
            self._repeats = Placed(*kernels.labor.find_repeats(edges.indptr, edges.indices, size))

    def _loops_only(self) -> bool:
        return self.iterations != 0 or self.estimator != "horvitz-thompson"

    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        form = edges.form
        repeats = self._repeats
        # of a copy of few rows, at a cost that does not depend on the size of the graph
        if repeats is not None and edges is not self.reader.edges:
            nodes, local = np.unique(edges.indices, return_inverse=True)
            repeats = Placed(*kernels.labor.find_repeats(edges.indptr, local, len(nodes)))
        counts = self._counts[step.flow]
        indptr, positions, src, fanout, degree = form.of(KEPT)(
            edges, rows, counts, self._numbers(step), self.graph.num_nodes, repeats
        )
        size = len(positions)

        def inverse() -> Any:
            if repeats is not None:
                return form.inverse_rate(degree, indptr, size)
            return self._scaled(form.of(INVERSES)(fanout, degree, indptr, size), indptr, degree)

        return Drawn(indptr, positions, src, inverse, varies=False)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        if self.iterations == 0:
            return super().choose(dst, step)

        rows, begins = self._rows_of(dst, step)
        layout = self._layout(rows)
        fanout, degree = fanouts_of(self._counts[step.flow], rows, layout.degree)
        layout = layout._replace(degree=degree)

        # a number per source, in memory that goes back to the system at once
        pi = outside(layout.size, np.float64)
        codes = outside(layout.size, np.uint8)
        scratch = np.empty(0 if layout.ahead is None else layout.size, np.float64)
        rates = self._importance(layout, fanout, pi, codes, scratch)

        # room for all edges, of which the kept ones are copied: their number is known only
        # afterwards
        num_edges = int(degree.sum())
        kept = outside(num_edges, self.reader.edges.position_type)
        # 1 / probability has the type of weights, where weights are nothing else
        plain = self.reader.weights is None and self.estimator == "horvitz-thompson"
        inverse = outside(num_edges, np.float32 if plain else np.float64)
        keys, early = self._numbers(step)
        keep = {
            "begin": layout.begin,
            "degree": degree,
            "indices": layout.indices,
            "nodes": layout.nodes,
            "fanout": fanout,
            "keys": keys,
            "early": early,
            "pi": pi,
            "codes": codes,
            "scratch": scratch,
            "kept": kept,
            "inverse": inverse,
        }
        if self.method == "poisson":
            indptr = kernels.labor_importance.keep_poisson(**keep, c=rates)
        else:
            indptr = kernels.labor_importance.keep_smallest(**keep)

        # large arrays go before others are made: together they would be the peak of a step's memory
        del keep, pi, codes, scratch
        num_kept = indptr[-1]
        kept = copied_outside(kept[:num_kept])
        scale = copied_outside(inverse[:num_kept])
        del inverse
        # sources before positions, which are written over ``kept``
        src = layout.sources(kept)
        positions = layout.positions(kept, indptr)

        def factor() -> Floats:
            return self._scaled(scale, indptr, degree)

        return self._choice(Drawn(indptr, positions, src, factor, varies=True), rows, begins, step)

    def _layout(self, rows: DrawingRows) -> _Layout:
        edges = self.reader.edges
        begin = edges.indptr[rows.numbers]
        degree = edges.indptr[rows.numbers + 1] - begin
        layout = _Layout(begin, degree, edges.indices, self.graph.num_nodes)

        # where the edges have a patch, some are left out for a while, and only candidates are
        # without them
        few = layout.size > max(4 * int(degree.sum()), 1024)
        if few or edges.patch is not None:
            ends, candidates = edges.staying(*kernels.csr.csr_rows(edges.indptr, rows.numbers))
            layout = layout._replace(
                begin=ends[:-1],
                degree=np.diff(ends),
                indices=edges.indices[candidates],
                candidates=candidates,
            )

        # Of few edges, arrays of an entry per node of the graph would take longer than to number
        # the sources. Several rounds over many edges: numbered by first appearance, nodes of many
        # edges lie side by side. Rounds are twice as fast then, at 4 bytes per edge, but to number
        # the sources takes as long as four rounds
        if few:
            layout = layout.numbered()
        elif self.iterations != 1 and layout.size < _LONGEST:
            layout = layout.gathered()
        # as those of the graph are, or the kernels would be compiled twice
        layout.indices.flags.writeable = False
        return layout

    def _importance(
        self, layout: _Layout, fanout: Ints, pi: Floats, seen: NDArray[np.uint8], scratch: Floats
    ) -> Floats:
        """Write pi of the sources, and return c of the destinations, after all rounds."""
        edges = (layout.begin, layout.degree, layout.indices)
        c: Floats = kernels.labor.labor0_rates(fanout, layout.degree)
        pi.fill(1)
        until = self.iterations == _CONVERGED
        before = np.inf
        for _ in range(_MOST_ROUNDS if until else int(self.iterations)):
            # destinations by falling c: a source gets its largest c from the first one that has it,
            # and is not looked at again
            sources = kernels.labor_importance.update(*edges, np.argsort(-c), c, pi, seen)
            kernels.labor_importance.solve(*edges, fanout, pi, c, scratch)
            if until and sources >= before * (1 - _TOLERANCE):
                break
            before = sources
        return c

    def _scaled(self, inverse: Floats, indptr: Ints, degree: Ints) -> Floats:
        """1 / probability, for the Hajek estimator scaled by degree / its sum over the row."""
        if self.estimator == "horvitz-thompson":
            return inverse
        drawn = np.diff(indptr)
        rows = np.repeat(np.arange(len(degree)), drawn)
        total = np.bincount(rows, inverse, len(degree))
        return inverse * np.repeat(degree / np.where(drawn > 0, total, 1), drawn)

    def _numbers(self, step: Step) -> tuple[NDArray[np.uint64], np.uint32]:
        """The keys that the loops make r_t from, and the share of nodes that use the second one,
        times 2**32.

        uint64 ``[3]``: two keys of numbers and the key that decides which of them a node uses.
        """
        period = self.batch_dependency
        shared = step.epoch_random.key
        # a number that lasts for several batches must not have the batch in its key
        base = derive_key(shared, _SHARED if self.layer_dependency else step.flow)
        if period == 1:
            base = (step.batch_random if self.layer_dependency else step.random).key
        if period is None or period == 1:
            return np.array([base] * 3, np.uint64), np.uint32(0)
        if step.batch_number is None:
            raise ValueError(
                f"batch_dependency={period} needs the number of the batch: call the sampler with "
                "batch_number=0, 1, 2, ..., or give it to a NodeFlowLoader, which numbers its "
                "batches"
            )
        # node t has number (batch + phase_t) // period of its own numbers, with phase_t uniform in
        # [0, period): it is at the later of two where a number of 32 bits is below the share of the
        # period that has passed
        window, passed = divmod(step.batch_number, period)
        keys = [derive_key(base, window), derive_key(base, window + 1), derive_key(shared, _PHASE)]
        return np.array(keys, np.uint64), np.uint32(-(-passed * _WORDS // period))


def _iterations(value: object) -> int | str:
    number = value if isinstance(value, str) else as_int(value, "iterations")
    if number in (_CONVERGED, -1):
        return _CONVERGED
    if isinstance(number, str) or not 0 <= number <= _MOST_ROUNDS:
        raise ValueError(
            f"iterations must be 0 to {_MOST_ROUNDS}, or {_CONVERGED!r} (or -1, the same), which "
            f"stops by itself; got {number!r}"
        )
    return number
