"""Layer-wise samplers: all destinations of a flow share one drawn set of sources, and get all edges
from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_flag, check_one_of, check_type
from nodeflow._core.base.types import Array, Floats, PerFlow
from nodeflow._core.edges.columns import check_edges
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import COMPILED
from nodeflow._core.edges.view import EdgeView, Reader
from nodeflow._core.random import derive_key
from nodeflow.graph import Graph
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._distributed import squared_norms
from nodeflow.sampling._keys import Step
from nodeflow.sampling._layer_draws import DRAWN, EDGES_FROM, PICK, SOURCES, joined
from nodeflow.sampling._pps import LayerCandidates, Picked, Scores, draw_columns, read_scores
from nodeflow.sampling._reached_types import DrawnByKind
from nodeflow.sampling._relations import as_fanout, by_kind, numbers_of
from nodeflow.sampling._sampler import Sampler, check_draws

LayerSizes: TypeAlias = "PerFlow | Sequence[int | Mapping[str, int]]"
"""A number of draws per flow, in flow order; each may be a dict by node type."""


class LayerSampler(Sampler):
    """All destinations of a flow share one drawn set of their neighbours, and get all edges from
    it.

    The candidates are the nodes that have an edge to one of the destinations; candidate u has the
    probability q_u = score / sum of the scores: the same for all without ``score``, else what
    ``score`` says (adaptive sampling, Huang, Zhang, Rong, Huang 2018). With A the ``weight`` column
    (1 without) the estimator weight of an edge e from u is ``A_e * times / mean``: the number of
    times that u was drawn over its mean. Weighted sums over the drawn edges are then unbiased for
    the sum over all edges of the destination, but for candidates with score 0. With replacement
    their variance is ``(sum_u (A_vu h_u)^2 / q_u - (sum_u A_vu h_u)^2) / t`` for destination v,
    with "poisson" it is ``sum_u (A_vu h_u)^2 (1 / pi_u - 1)``.

    Args:
        layer_sizes: number of draws t per flow **in flow order**: ``layer_sizes[-1]`` is for the
            sources of the seeds. In a graph of several node types the candidates of each type have
            draws of their own, t for each; a dict gives each type its number, and types that it
            leaves out are not drawn (Hu, Dong, Wang, Sun 2020, section 4.2, has such budgets by
            type).
        score: ``score(candidates, step)`` gets ``LayerCandidates`` and the ``Step``
            (``step.inputs`` is what the sampler was called with as ``inputs=``). It returns a score
            per candidate, ``[n]``, finite and not negative. It may be an ``nn.Module``, and
            gradients are kept. It must be a pure function. It may change between calls, as a module
            does in training; then the draws change too. It is not called without candidates. None:
            equal scores.
        draw: "replacement": t draws with replacement (with ``mean = t * q_u``). "poisson": every
            candidate on its own, with probability pi_u = min(1, c q_u), t of them on average
            (Balin, Catalyurek 2023). "systematic": exactly t distinct ones, with the same
            probabilities (Deville 1998). In both c makes the pi_u add up to t; with no more than t
            candidates all are kept, with weight A.
        graph, include_dst, seed: see ``Sampler``. With
            ``include_dst`` the destinations are in the layer before, but are sources of edges only
            where they were drawn.

    With ``score`` the frame of layer i, the sources of flow i, gets two columns: ``draws``, how
    often the node was drawn, float32; and ``log_prob``, differentiable in the scores: log q_u with
    replacement, else log pi_u (0 for one that is certain); both 0 for nodes that were not drawn.
    With replacement ``(log_prob * draws).sum()`` is the log-likelihood of the set up to the
    multinomial coefficient; with "poisson" and "systematic" it is not, since nodes that were not
    drawn count there too. Estimator weights have no gradient (see docs/samplers/adaptive.md).

    Destinations without neighbours get no edges. A parent's repeated edges are all kept, each with
    its own weight.

    Cost: proportional to the number of edges of the destinations.

    Raises TypeError or ValueError for sizes below 1, another ``draw``, or a score that is not a
    function. A call raises them for scores of another shape, negative or infinite scores, and
    scores that are 0 for all candidates.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [4, 4, 4, 4, 5, 5])
    >>> batch = LayerSampler(graph, [2], draw="systematic", seed=1)([4, 5])
    >>> batch, batch.flows[0].weight
    (NodeFlow(4 -> 2 nodes, 3 edges), tensor([2., 2., 2.]))
    """

    draws_as = "layer"
    draws_together = True
    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        layer_sizes: LayerSizes,
        *,
        score: Callable[[LayerCandidates, Step], Tensor] | None = None,
        draw: str = "replacement",
        include_dst: bool = True,
        seed: int = 0,
    ) -> None:
        self.layer_sizes = by_kind(
            layer_sizes, "layer_sizes", partial(as_fanout, every=False), "[64, 64]", "node type"
        )
        check_one_of(draw, "draw", ("replacement", "poisson", "systematic"))
        self.draw = draw
        check_type(score, "score", Callable | None, "a function of (candidates, step) or a module")
        self.score = score
        super().__init__(graph, len(self.layer_sizes), include_dst=include_dst, seed=seed)

    def read_graph(self) -> None:
        super().read_graph()
        schema = self.graph.schema
        self._sizes = [
            numbers_of(size, schema.nodes, schema.node_type, "layer_sizes")
            for size in self.layer_sizes
        ]
        if self.draw == "replacement":
            most = int(np.concatenate(self._sizes).max())
            check_draws(most, "layer_sizes with replacement", schema.num_nodes)
        self.read_rows()

    def _drawn_by_kind(self) -> DrawnByKind:
        return DrawnByKind("layer_sizes", self.graph.schema.nodes, self._sizes)

    def read_rows(self) -> None:
        """Set what depends on the rows in ``reader``: the weights by position; empty where all are
        1.
        """
        # their squares and the sums of squares are finite: columns of weights have sizes up to
        # about 1e38
        weights = self.reader.weights
        self._column: Array = np.zeros(0, np.float32)
        if weights is not None:
            self._column = self.reader.edges.by_position(weights)

    def with_reader(self, reader: Reader) -> Self:
        other = super().with_reader(reader)
        if reader.weights is not self.reader.weights:
            other.read_rows()
        return other

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.reader.edges
        rows = edges.rows_of(self._nodes_of(dst))
        ids, picked, columns = self._drawn(dst, rows, step)
        # the means are known, so no squared weights are added up
        unweighted = self._column[:0]
        indptr, positions, source, _ = edges.form.of(EDGES_FROM)(
            edges, rows, self.graph.num_nodes, ids, unweighted
        )
        return self._chosen(rows, indptr, positions, source, ids, picked, columns)

    def _drawn(
        self, dst: Tensor, rows: Ints, step: Step
    ) -> tuple[Ints, Picked, dict[str, Tensor] | None]:
        """The ids of the nodes that are drawn, how often and how often in the mean, and their
        columns.
        """
        form = self.reader.edges.form
        scores = None
        if self._has_scores:
            candidates = LayerCandidates(self.candidates(dst), self.graph.num_nodes)
            nid = candidates.nid.numpy()
            scores = self._scores(candidates, step)
        else:
            nid = form.of(SOURCES)(self.reader.edges, rows, self.graph.num_nodes)
        picked, columns = self._picked(nid, scores, step)
        return form.take(nid, picked.places), picked, columns

    @property
    def _has_scores(self) -> bool:
        return self.score is not None

    def _loops_only(self) -> bool:
        return self.score is not None

    def estimand(self) -> Tensor:
        """Return the numbers of ``BoundSampler.estimand``, and 0 for edges from node types that no
        flow draws.
        """
        number = super().estimand()
        edges = self.reader.edges.in_form(COMPILED)
        unused = np.all([sizes == 0 for sizes in self._sizes], axis=0)
        if unused.any():
            positions = np.flatnonzero(unused[self.graph.schema.types_of(edges.indices)])
            number[edges.parent_eid(positions)] = 0
        return number

    def _picked(
        self, nid: Ints, scores: Scores | None, step: Step
    ) -> tuple[Picked, dict[str, Tensor] | None]:
        """The candidates that are drawn, type by type, and their columns."""
        form = self.reader.edges.form
        parts: list[Picked] = []
        columns: dict[str, list[Tensor]] = {"log_prob": [], "draws": []}
        places = self._by_type(nid, step)
        for number, key, _, size in self._draws(step, places):
            of_type = places[number]
            values: Any = None
            if scores is not None:
                values = scores.numbers[of_type]
            picked = form.of(PICK)(form.take(nid, of_type), values, size, self.draw, key)
            if scores is not None and scores.tensor is not None:
                tensor = scores.tensor[torch.from_numpy(of_type)]
                made = draw_columns(tensor, values, picked, size, self.draw)
                for name, column in made.items():
                    columns[name].append(column)
            picked_places = form.array(picked.places)
            parts.append(picked._replace(places=form.take(of_type, picked_places)))
        if self.score is None:
            return joined(form, parts), None
        return joined(form, parts), {name: torch.cat(drawn) for name, drawn in columns.items()}

    def _by_type(self, nid: Ints, step: Step) -> dict[int, Ints]:
        """Return the places of the candidates of each node type that has some, by its number."""
        form = self.reader.edges.form
        num_types = len(self.graph.schema.nodes)
        if num_types == 1:
            return {0: form.array(np.arange(len(nid)))}
        # types are ranges of ids, so this is a search, not a look-up in a column
        types = self.graph.schema.types_of(form.tensor(nid).numpy(force=True))
        first, order = kernels.csr.sort_by_destination(types, num_types)
        # without candidates a type draws nothing of nothing, for columns of no rows
        if len(nid):
            present = np.flatnonzero(np.diff(first))
        else:
            present = np.flatnonzero(self._sizes[step.flow])[:1]
        return {i: form.array(order[first[i] : first[i + 1]]) for i in present.tolist()}

    def _draws(self, step: Step, numbers: Iterable[int]) -> Iterator[tuple[int, int, range, int]]:
        """Yield for each node type of ``numbers`` that is drawn its number, the random key, its
        ids, and its draws.
        """
        key = step.random.key
        types = list(self.graph.schema.nodes.values())
        sizes = self._sizes[step.flow]
        for i in numbers:
            # type 0 keeps the key of graphs without types, which draw as they always did
            if sizes[i] > 0:
                yield i, key if i == 0 else derive_key(key, i), types[i], int(sizes[i])

    def _scores(self, candidates: LayerCandidates, step: Step) -> Scores:
        """The scores of the candidates."""
        if self.score is None or not len(candidates):
            return Scores(np.zeros(0), torch.zeros(0))
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
        form = self.reader.edges.form
        needed = self._needs_weight
        factor = form.array(picked.times / picked.mean)
        # one factor per drawn node; edges take theirs when weights are asked for
        weight = self._weight(rows, indptr, positions, lambda: form.take(factor, source))
        if columns is None:
            nodes = None
        else:
            nodes = form.tensor(ids)
        src = form.take(ids, source)
        return Choice.of_kernel(
            indptr, positions, src, weight, needs_weight=needed, nodes=nodes, ndata=columns
        )

    def _weight(
        self, rows: Ints, indptr: Ints, positions: Ints, factor: Callable[[], Floats]
    ) -> Callable[[], Tensor]:
        reader = self.reader

        def made() -> Tensor:
            weights = reader.weighted(positions, factor())
            return reader.estimator_weight(self._finished(rows, indptr, weights))

        return made

    @property
    def _needs_weight(self) -> bool:
        """Whether weights may vary within a destination."""
        return self.score is not None or self.draw == "replacement" or self.view.weight is not None

    def _finished(self, rows: Ints, indptr: Ints, weight: Floats) -> Floats:
        """Return the estimator weights of the flow; a subclass may scale them."""
        return weight


class LadiesSampler(LayerSampler):
    """LADIES: a layer is drawn among the neighbours of the next one, in proportion to their squared
    weights.

    Candidate u is drawn in proportion to the sum of A_e^2 over its edges to the destinations of
    this flow (Zou, Hu, Wang, Jiang, Sun, Gu 2019, algorithm 1). Estimator weights are
    ``A_e * times / mean`` and unbiased, as for ``LayerSampler``. The authors' program is biased: it
    draws without replacement but weights as if with it, and puts the destinations into the set.

    Args:
        graph, layer_sizes, draw, include_dst, seed: see
            ``LayerSampler``.
        normalize: scale the weights of each destination so that they add up to the sum of A over
            all its edges, as the paper does for an A whose rows add up to 1. **Such sums are
            biased**, in exchange for a smaller variance; A must not be negative.

    Edges with A = 0 do not count: if all are 0, nothing is drawn, and the estimate 0 is exact.
    Parallel edges count one by one.

    Cost: with replacement, one pass over the edges of the destinations, or two with weights. The
    other draws number all candidates, which takes about ten times as long.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [4, 4, 4, 4, 5, 5])
    >>> LadiesSampler(graph, [2, 3], seed=2)([4, 5])
    NodeFlow(6 -> 5 -> 2 nodes, 1 + 5 edges)
    """

    draws_as = "ladies"
    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        layer_sizes: LayerSizes,
        *,
        draw: str = "replacement",
        normalize: bool = False,
        include_dst: bool = True,
        seed: int = 0,
    ) -> None:
        self.normalize = as_flag(normalize, "normalize")
        super().__init__(graph, layer_sizes, draw=draw, include_dst=include_dst, seed=seed)

    def read_graph(self) -> None:
        super().read_graph()
        if self.normalize and (weights := self.reader.weights) is not None:
            check_edges(
                self.graph.for_sampling,
                weights,
                weights < 0,
                "normalize=True needs weights that are not negative",
            )

    def read_rows(self) -> None:
        super().read_rows()
        # squared norm of every row; rows of which edges are left out are added up again in each
        # draw
        rows = np.arange(self.reader.edges.num_rows if len(self._column) else 0)
        self._norms = kernels.layerwise.row_sums(
            self.reader.edges.indptr, rows, self._column, NOTHING, squared=True
        )

    def choose(self, dst: Tensor, step: Step) -> Choice:
        sizes = self._sizes[step.flow]
        if self.draw != "replacement" or len(sizes) > 1:
            return super().choose(dst, step)
        # an edge in proportion to A^2, uniform over all edges of the destinations, has a source in
        # proportion to the sum over its edges: so no candidate needs to be known before, and one
        # pass finds the edges and the sums
        edges = self.reader.edges
        form = edges.form
        rows = edges.rows_of(self._nodes_of(dst))
        if len(self._column):
            drawn = self._drawn_by_weight
        else:
            drawn = form.of(DRAWN)
        ids, times, total = drawn(edges, rows, int(sizes[0]), step.random.key)
        indptr, positions, source, norm = form.of(EDGES_FROM)(
            edges, rows, self.graph.num_nodes, ids, self._column
        )
        if total:
            mean = norm * (int(sizes[0]) / total)
        else:
            mean = norm
        return self._chosen(rows, indptr, positions, source, ids, Picked(ids, times, mean))

    def _drawn_by_weight(
        self, edges: Edges, rows: Ints, size: int, key: int
    ) -> tuple[Ints, Ints, float]:
        """Do what ``DRAWN`` does, in proportion to squared weights; the last result is their
        sum.
        """
        norms = self._norms[rows]
        column = self._column
        left_out = edges.left_out
        if edges.patch is not None:
            hit = COMPILED.contains(edges.patch.rows, rows)
            norms[hit] = kernels.layerwise.row_sums(
                edges.indptr, rows[hit], column, left_out, squared=True
            )
        sources, total = kernels.layerwise.draw_edges_weighted(
            edges.indptr, edges.indices, rows, norms, column, left_out, size, np.uint64(key)
        )
        ids, times = np.unique(sources, return_counts=True)
        return ids, times, total

    def _loops_only(self) -> bool:
        is_plain = self.draw == "replacement" and self.view.weight is None and not self.normalize
        return not is_plain or len(self.graph.schema.nodes) > 1

    _needs_weight = True
    _has_scores = True

    def _scores(self, candidates: LayerCandidates, step: Step) -> Scores:
        weights = None
        if len(self._column):
            weights = self._column[candidates.positions]
        return Scores(
            squared_norms(candidates.structure.indices.numpy(), weights, len(candidates)), None
        )

    def _finished(self, rows: Ints, indptr: Ints, weight: Floats) -> Floats:
        if not self.normalize:
            return weight
        edges = self.reader.edges
        wanted = kernels.layerwise.row_sums(
            edges.indptr, rows, self._column, edges.left_out, squared=False
        )
        # ``reduceat`` gives the next entry for an empty row, and fails behind the last one: so one
        # 0 is appended, and empty rows are multiplied away
        sums = np.add.reduceat(np.append(weight, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
        scale = np.divide(wanted, sums, out=np.zeros(len(rows)), where=sums > 0)
        return cast("Floats", weight * np.repeat(scale, np.diff(indptr)))
