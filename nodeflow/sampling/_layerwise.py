"""Layer-wise samplers: all destinations of a flow share one drawn set of sources, and get all edges from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self, Unpack

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_flag, check_one_of, describe
from nodeflow._base.types import Array, Floats, PerFlow
from nodeflow._edges.columns import check_edges
from nodeflow._edges.edges import NOTHING, contains
from nodeflow.graph import Graph
from nodeflow.sampling import _pps as pps
from nodeflow.sampling._bound import Reader
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._distributed import norms_of_sources, squared_norms
from nodeflow.sampling._options import LayerOptions
from nodeflow.sampling._pps import LayerCandidates, Picked, draw_columns, list_probabilities, read_scores
from nodeflow.sampling._sampler import Sampler, Step, check_sizes


class LayerSampler(Sampler):
    """All destinations of a flow share one drawn set of their neighbours, and get all edges from it.

    The candidates are the nodes that have an edge to one of the destinations; candidate u has the probability
    q_u = score / sum of the scores: the same for all without ``score``, else what ``score`` says (adaptive sampling,
    Huang, Zhang, Rong, Huang 2018). With A the ``weight`` column (1 without) the estimator weight of an edge
    e from u is ``A_e * times / mean``: the number of times that u was drawn over its mean. Weighted sums over the drawn
    edges are then unbiased for the sum over all edges of the destination, but for candidates with score 0. With
    replacement their variance is ``(sum_u (A_vu h_u)^2 / q_u - (sum_u A_vu h_u)^2) / t`` for destination v, with
    "poisson" it is ``sum_u (A_vu h_u)^2 (1 / pi_u - 1)``.

    Args:
        layer_sizes: number of draws t per flow **in flow order**: ``layer_sizes[-1]`` is for the sources of the seeds.
        score: ``score(candidates, step)`` gets ``LayerCandidates`` and the ``Step`` (``step.inputs`` is what the
            sampler was called with as ``inputs=``). It returns a score per candidate, ``[n]``, finite and not negative.
            It may be an ``nn.Module``, and gradients are kept. It must be a pure function. It may change between calls,
            as a module does in training; then the draws change too. It is not called without candidates. None: equal
            scores.
        draw: "replacement": t draws with replacement (with ``mean = t * q_u``). "poisson": every candidate on its own,
            with probability pi_u = min(1, c q_u), t of them on average (Balin, Catalyurek 2023). "systematic": exactly
            t distinct ones, with the same probabilities (Deville 1998). In both c makes the pi_u add up to t; with no
            more than t candidates all are kept, with weight A.
        graph, direction, include_dst, edge_filter, weight, seed: see ``Sampler``. With ``include_dst`` the destinations
            are in the layer before, but are sources of edges only where they were drawn.

    With ``score`` the frame of layer i, the sources of flow i, gets two columns: ``draws``, how often the node was
    drawn, float32; and ``log_prob``, differentiable in the scores: log q_u with replacement, else log pi_u (0 for one
    that is certain); both 0 for nodes that were not drawn. With replacement ``(log_prob * draws).sum()`` is the
    log-likelihood of the set up to the multinomial coefficient; with "poisson" and "systematic" it is not, since nodes
    that were not drawn count there too. Estimator weights have no gradient (see docs/samplers/adaptive.md).

    Destinations without neighbours get no edges. A parent's repeated edges are all kept, each with its own weight.

    Cost: proportional to the number of edges of the destinations.

    Raises TypeError or ValueError for sizes below 1, another ``draw``, or a score that is not a function. A call raises
    them for scores of another shape, negative or infinite scores, and scores that are 0 for all candidates.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [4, 4, 4, 4, 5, 5])
    >>> batch = LayerSampler(graph, [2], draw="systematic", seed=1)([4, 5])
    >>> batch, batch.flows[0].weight
    (NodeFlow(4 -> 2 nodes, 3 edges), tensor([2., 2., 2.]))
    """

    draws_as = "layer"
    draws_together = True

    def __init__(
        self,
        graph: Graph,
        layer_sizes: PerFlow,
        *,
        score: Callable[[LayerCandidates, Step], Tensor] | None = None,
        draw: str = "replacement",
        **options: Unpack[LayerOptions],
    ) -> None:
        among, repeated = getattr(graph, "num_nodes", 0), draw == "replacement"
        self.layer_sizes = check_sizes(layer_sizes, "layer_sizes", every=False, repeated=repeated, num_nodes=among)
        check_one_of(draw, "draw", ("replacement", "poisson", "systematic"))
        self.draw = draw
        if score is not None and not callable(score):
            raise TypeError(f"score must be a function of (candidates, step) or a module, got {describe(score)}")
        self.score = score
        super().__init__(graph, len(self.layer_sizes), **options)

    def read_graph(self) -> None:
        super().read_graph()
        self.read_rows()

    def read_rows(self) -> None:
        """Set what depends on the rows in ``reader``: the weights by position; empty where all are 1."""
        # their squares and the sums of squares are finite: columns of weights have sizes up to about 1e38
        weights = self.reader.weights
        self._column: Array = np.zeros(0, np.float32) if weights is None else self.reader.edges.by_position(weights)

    def with_reader(self, reader: Reader) -> Self:
        other = super().with_reader(reader)
        if reader.weights is not self.reader.weights:
            other.read_rows()
        return other

    def choose(self, dst: Tensor, step: Step) -> Choice:
        candidates = LayerCandidates(self.candidates(dst), self.graph.num_nodes)
        values, scores = self._scores(candidates, step)
        size, nid = self.layer_sizes[step.flow], candidates.nid.numpy()
        picked = pps.pick(values, nid, size, self.draw, step.random.key)
        index_among_drawn = np.full(len(nid), -1)
        index_among_drawn[picked.places] = np.arange(len(picked.places))
        source = index_among_drawn[candidates.structure.indices.numpy()]
        kept = np.flatnonzero(source >= 0)
        indptr = np.searchsorted(kept, candidates.structure.indptr.numpy())
        columns = None if self.score is None else draw_columns(scores, values, picked, size, self.draw)
        rows, positions = self.reader.edges.rows_of(dst.numpy()), candidates.positions[kept]
        return self._chosen(rows, indptr, positions, source[kept], nid[picked.places], picked, columns)

    def _scores(self, candidates: LayerCandidates, step: Step) -> tuple[Floats, Tensor | None]:
        """The scores of the candidates as float64 numbers, and as the tensor that ``score`` returned."""
        if self.score is None or len(candidates) == 0:
            return np.ones(len(candidates)), None
        return read_scores(self.score(candidates, step), candidates.nid, step.flow)

    def _chosen(
        self,
        rows: Ints,
        indptr: Ints,
        positions: Ints,
        source: Ints,
        ids: Ints,
        picked: Picked,
        columns: Mapping[str, Tensor] | None = None,
    ) -> Choice:
        """The Choice of the edges at ``positions``, whose sources are ``ids[source]``."""
        factor, needed = picked.times / picked.mean, self._needs_weight
        weight = self._weight(rows, indptr, positions, lambda: factor[source])
        nodes = None if columns is None else torch.from_numpy(ids)
        return Choice.of_kernel(indptr, positions, ids[source], weight, needs_weight=needed, nodes=nodes, ndata=columns)

    def _weight(self, rows: Ints, indptr: Ints, positions: Ints, factor: Callable[[], Floats]) -> Callable[[], Tensor]:
        reader = self.reader
        return lambda: reader.estimator_weight(self._finished(rows, indptr, reader.weighted(positions, factor())))

    @property
    def _needs_weight(self) -> bool:
        """Whether weights may vary within a destination."""
        return self.score is not None or self.draw == "replacement" or self.weight is not None

    def _finished(self, rows: Ints, indptr: Ints, weight: Floats) -> Floats:
        """Return the estimator weights of the flow; a subclass may scale them."""
        return weight


class LadiesSampler(LayerSampler):
    """LADIES: a layer is drawn among the neighbours of the next one, in proportion to their squared weights.

    Candidate u is drawn in proportion to the sum of A_e^2 over its edges to the destinations of this flow (Zou, Hu,
    Wang, Jiang, Sun, Gu 2019, algorithm 1). Estimator weights are ``A_e * times / mean`` and unbiased, as for
    ``LayerSampler``. The authors' program is biased: it draws without replacement but weights as if with it, and puts
    the destinations into the set.

    Args:
        graph, layer_sizes, draw, direction, include_dst, edge_filter, weight, seed: see ``LayerSampler``.
        normalize: scale the weights of each destination so that they add up to the sum of A over all its edges, as the
            paper does for an A whose rows add up to 1. **Such sums are biased**, in exchange for a smaller variance; A
            must not be negative.

    Edges with A = 0 do not count: if all are 0, nothing is drawn, and the estimate 0 is exact. Parallel edges count one
    by one.

    Cost: with replacement, one pass over the edges of the destinations, or two with weights. The other draws number
    all candidates, which takes about ten times as long.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [4, 4, 4, 4, 5, 5])
    >>> LadiesSampler(graph, [2, 3], seed=2)([4, 5])
    NodeFlow(6 -> 5 -> 2 nodes, 1 + 5 edges)
    """

    draws_as = "ladies"

    def __init__(
        self,
        graph: Graph,
        layer_sizes: PerFlow,
        *,
        draw: str = "replacement",
        normalize: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        self.normalize = as_flag(normalize, "normalize")
        super().__init__(graph, layer_sizes, draw=draw, **options)

    def read_graph(self) -> None:
        super().read_graph()
        if self.normalize and (weights := self.reader.weights) is not None:
            check_edges(self.graph, weights, weights < 0, "normalize=True needs weights that are not negative")

    def read_rows(self) -> None:
        super().read_rows()
        # squared norm of every row; rows of which edges are left out are added up again in each draw
        rows = np.arange(self.reader.edges.num_rows if len(self._column) else 0)
        self._norms = kernels.layerwise.row_sums(self.reader.edges.indptr, rows, self._column, NOTHING, True)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        if self.draw != "replacement":
            return super().choose(dst, step)
        # an edge in proportion to A^2, uniform over all edges of the destinations, has a source in proportion to the
        # sum over its edges: so no candidate needs to be known before, and one pass finds the edges and the sums
        edges, column, left_out = self.reader.edges, self._column, self.reader.edges.left_out
        rows = edges.rows_of(self._nodes_of(dst, step))
        size, key, arrays = self.layer_sizes[step.flow], np.uint64(step.random.key), (edges.indptr, edges.indices, rows)
        if len(column):
            norms = self._norms[rows]
            if edges.patch is not None:
                hit = contains(edges.patch.rows, rows)
                norms[hit] = kernels.layerwise.row_sums(edges.indptr, rows[hit], column, left_out, True)
            drawn, total = kernels.layerwise.draw_edges_weighted(*arrays, norms, column, left_out, size, key)
        else:
            drawn, total = kernels.layerwise.draw_edges(*arrays, left_out, size, key)
        ids, times = np.unique(drawn, return_counts=True)
        indptr, positions, source, norm = kernels.layerwise.edges_from(*arrays, ids, column, left_out)
        mean = norm * (size / total) if total else norm
        return self._chosen(rows, indptr, positions, source, ids, Picked(ids, times, mean))

    _needs_weight = True

    def _scores(self, candidates: LayerCandidates, step: Step) -> tuple[Floats, Tensor | None]:
        weights = self._column[candidates.positions] if len(self._column) else None
        return squared_norms(candidates.structure.indices.numpy(), weights, len(candidates)), None

    def _finished(self, rows: Ints, indptr: Ints, weight: Floats) -> Floats:
        if not self.normalize:
            return weight
        edges = self.reader.edges
        wanted = kernels.layerwise.row_sums(edges.indptr, rows, self._column, edges.left_out, False)
        sums = np.add.reduceat(np.append(weight, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
        scale = np.divide(wanted, sums, out=np.zeros(len(rows)), where=sums > 0)
        scaled: Floats = weight * np.repeat(scale, np.diff(indptr))
        return scaled


class FastGCNSampler(LayerSampler):
    """FastGCN: every layer is drawn among all nodes of the graph, in proportion to their squared weights.

    Node u has the probability q_u in proportion to the sum of A_e^2 over all its edges in the graph (Chen, Ma, Xiao
    2018, algorithm 2), after the edge filter. These are computed when the sampler is made. Estimator weights
    are ``A_e * times / mean`` and unbiased, as for ``LayerSampler``. A drawn node without an edge to the destinations
    is not in the layer. So on sparse graphs few drawn nodes may be used, and many destinations get no edges.

    Args:
        graph, layer_sizes, direction, include_dst, edge_filter, weight, seed: see ``LayerSampler``.
        draw: see there. The order of "systematic" is fixed by ``seed``, one for all draws.

    A node whose edges all have A = 0 is never drawn. ``without_edges`` does not change q.

    Cost of a call: one pass over the edges of the destinations, and the draws; of making one: a pass over all edges.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [4, 4, 4, 4, 5, 5])
    >>> FastGCNSampler(graph, [2], draw="systematic", seed=1)([4, 5])
    NodeFlow(4 -> 2 nodes, 4 edges)
    """

    draws_as = "fastgcn"

    def __init__(
        self, graph: Graph, layer_sizes: PerFlow, *, draw: str = "replacement", **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(graph, layer_sizes, draw=draw, **options)

    _needs_weight = True
    draws_together = False  # a set is drawn from all nodes, whatever the destinations

    def read_graph(self) -> None:
        super().read_graph()
        weights = None if self.reader.weights is None else self._column
        norms = norms_of_sources(self.graph, self.reader.edges, weights)
        self._steps: pps.Ladder | None = None  # stays so where no node has a chance
        sizes = set() if self.draw == "replacement" else set(self.layer_sizes)
        self._prob = {size: list_probabilities(norms, size) for size in sizes}
        self._lines = {}
        if self.draw == "systematic":
            nodes, order = np.arange(self.graph.num_nodes), self._key(0)
            self._lines = {size: pps.laid_out(self._prob[size], nodes, order) for size in sizes}
        elif self.draw == "replacement" and norms.any():
            if weights is None and norms.max() < 2**24:
                norms = norms.astype(np.float32)  # exactly the same numbers: of edges
            self._steps = pps.ladder(norms, max(len(norms).bit_length() - 2, 0))

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.reader.edges
        rows = edges.rows_of(self._nodes_of(dst, step))
        size, key, arrays = self.layer_sizes[step.flow], step.random.key, (edges.indptr, edges.indices, rows)
        if self.draw == "poisson":
            prob = self._prob[size]
            indptr, positions = kernels.layerwise.edges_by_chance(*arrays, prob, np.uint64(key))
            indptr, positions = edges.staying(indptr, positions)
            src = edges.indices[positions].astype(np.int64)
            weight = self._weight(rows, indptr, positions, lambda: 1 / prob[edges.indices[positions]])
            return Choice.of_kernel(indptr, positions, src, weight, needs_weight=True)
        if self.draw == "systematic":
            picked = pps.pick_systematic(self._lines[size], self._prob[size], key)
        elif self._steps is not None:
            picked = pps.pick_with_replacement(self._steps, size, key)
        else:
            picked = Picked(NOTHING, NOTHING, np.zeros(0))
        indptr, positions, source, _ = kernels.layerwise.edges_from(
            *arrays, picked.places, self._column, edges.left_out
        )
        return self._chosen(rows, indptr, positions, source, picked.places, picked)
