"""FastGCN: layers drawn among all nodes of the graph, whatever the destinations."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Floats
from nodeflow._core.edges.forms import Placed
from nodeflow._core.edges.view import EdgeView
from nodeflow.graph import Graph
from nodeflow.sampling import _pps as pps
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._distributed import norms_of_sources
from nodeflow.sampling._keys import Step, key_of
from nodeflow.sampling._layer_draws import BY_CHANCE, joined
from nodeflow.sampling._layerwise import LayerSampler, LayerSizes
from nodeflow.sampling._pps import Picked, list_probabilities


class FastGCNSampler(LayerSampler):
    """FastGCN: every layer is drawn among all nodes of the graph, in proportion to their squared
    weights.

    Node u has the probability q_u in proportion to the sum of A_e^2 over all its edges in the graph
    (Chen, Ma, Xiao 2018, algorithm 2), after the edge filter. These are computed when the sampler
    is made. Estimator weights are ``A_e * times / mean`` and unbiased, as for ``LayerSampler``. A
    drawn node without an edge to the destinations is not in the layer. So on sparse graphs few
    drawn nodes may be used, and many destinations get no edges.

    Args:
        graph, layer_sizes, include_dst, seed: see ``LayerSampler``.
        draw: see there. The order of "systematic" is fixed by ``seed``, one for all draws.

    A node whose edges all have A = 0 is never drawn. ``without_edges`` does not change q.

    Cost of a call: one pass over the edges of the destinations, and the draws; of making one: a
    pass over all edges.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 0, 1], [4, 4, 4, 4, 5, 5])
    >>> FastGCNSampler(graph, [2], draw="systematic", seed=1)([4, 5])
    NodeFlow(4 -> 2 nodes, 4 edges)
    """

    draws_as = "fastgcn"
    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        layer_sizes: LayerSizes,
        *,
        draw: str = "replacement",
        include_dst: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, layer_sizes, draw=draw, include_dst=include_dst, seed=seed)

    _needs_weight = True
    # a set is drawn from all nodes, whatever the destinations
    draws_together = False

    def read_graph(self) -> None:
        super().read_graph()
        if self.reader.weights is None:
            weights = None
        else:
            weights = self._column
        norms = norms_of_sources(self.graph, self.reader.edges, weights)
        order = key_of(self, 0)
        # by the number of the type, and of its draws: what the draws need
        self._prob: dict[tuple[int, int], Floats] = {}
        self._lines: dict[tuple[int, int], pps.Line] = {}
        self._steps: dict[int, pps.Ladder] = {}
        # probabilities are those of the whole graph, so all that can be computed before a batch is
        for i, ids in enumerate(self.graph.schema.nodes.values()):
            scores = norms[ids.start : ids.stop]
            if self.draw == "replacement" and scores.any():
                num_bits = len(scores).bit_length() - 2
                self._steps[i] = pps.ladder(scores, max(num_bits, 0))
            for size in {int(sizes[i]) for sizes in self._sizes if self.draw != "replacement"}:
                self._prob[i, size] = list_probabilities(scores, size)
                if self.draw == "systematic":
                    nodes = np.arange(ids.start, ids.stop)
                    self._lines[i, size] = pps.laid_out(self._prob[i, size], nodes, order)
        # by the numbers of draws the probability of every node, which flows of equal numbers share
        self._chances: dict[tuple[int, ...], Placed] = {}
        if self.draw == "poisson":
            for numbers in {tuple(sizes.tolist()) for sizes in self._sizes}:
                of_types = [self._prob[i, size] for i, size in enumerate(numbers)]
                self._chances[numbers] = Placed(np.concatenate(of_types))

    def choose(self, dst: Tensor, step: Step) -> Choice:
        if self.draw != "poisson":
            return super().choose(dst, step)
        edges = self.reader.edges
        form = edges.form
        # every node is drawn on its own by a hash of its id, so none but those that the
        # destinations reach need to be looked at
        rows = edges.rows_of(self._nodes_of(dst))
        (prob,) = self._chances[tuple(self._sizes[step.flow].tolist())].at(form)
        indptr, positions = edges.staying(*form.of(BY_CHANCE)(edges, rows, prob, step.random.key))
        src = form.take(edges.arrays.indices, positions)
        weight = self._weight(rows, indptr, positions, lambda: 1 / form.take(prob, src))
        # of a batch's sources an array of its own, which is overwritten
        return Choice.of_kernel(indptr, positions, form.wide(src + 0), weight, needs_weight=True)

    def _drawn(
        self, dst: Tensor, rows: Ints, step: Step
    ) -> tuple[Ints, Picked, dict[str, Tensor] | None]:
        parts = []
        for number, key, ids, size in self._draws(step, range(len(self.graph.schema.nodes))):
            if self.draw == "systematic":
                of_type = (number, size)
                picked = pps.pick_systematic(self._lines[of_type], self._prob[of_type], key)
            elif number in self._steps:
                picked = pps.pick_with_replacement(self._steps[number], size, key)
            else:
                continue
            parts.append(picked._replace(places=picked.places + ids.start))
        picked = joined(self.reader.edges.form, parts)
        return picked.places, picked, None
