"""GraphSAINT: random subgraphs, with weights that make sums over their edges and nodes unbiased."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_count, check_one_of
from nodeflow._core.base.types import Floats, SeedsLike
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import COMPILED
from nodeflow._core.edges.view import EdgeView, Reader, graph_of
from nodeflow._core.random import Random
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling._distributed import norms_of_sources
from nodeflow.sampling._keys import Call, key_of
from nodeflow.sampling._one_process import check_one_process
from nodeflow.sampling._sampler import check_draws
from nodeflow.sampling._subgraph import Subgraph, SubgraphSampler, induced_subgraph


class NodeDraws(NamedTuple):
    """A way to draw nodes, in ``budget`` independent draws."""

    draw: Callable[[Random], Ints]  # returns the nodes drawn, repeats included
    several: bool  # whether the draws can take more than one node
    # the probability that a draw takes the node, ``[num_nodes]``; None: no closed form
    rate: Floats | None = None
    # returns the probabilities that one draw takes both ends, two nodes, of the edges of a subgraph
    joint_rate: Callable[[Subgraph], Floats | float] = lambda part: 0.0


def node_kind(graph: Graph, reader: Reader, budget: int) -> NodeDraws:
    """Return the draws of nodes with replacement, in proportion to the squared norms of the columns
    of A.
    """
    edges = reader.edges
    weights = reader.weights
    norms = norms_of_sources(graph, edges, None if weights is None else edges.by_position(weights))
    if not norms.any():
        raise ValueError(
            "kind='node' draws nodes in proportion to squared edge weights, but all are 0"
        )
    ends = np.cumsum(norms)
    last = int(np.flatnonzero(norms)[-1])

    def draw(random: Random) -> Ints:
        drawn = random.uniform(np.arange(budget)).numpy() * ends[-1]
        # rounding may put a number at the very end
        return cast("Ints", np.minimum(np.searchsorted(ends, drawn, side="right"), last))

    return NodeDraws(draw, budget > 1, norms / ends[-1])


def edge_kind(edges: Edges, back: Edges, budget: int) -> NodeDraws:
    """Return the draws of both ends of edges, with replacement; ``back`` are the edges along the
    other direction.
    """
    degree = np.diff(edges.indptr) + np.diff(back.indptr)
    joined = np.flatnonzero(degree)
    if len(joined) == 0:
        raise ValueError("kind='edge' draws edges, but there are none")

    def draw(random: Random) -> Ints:
        ends = np.empty(2 * budget, np.int64)
        kernels.subgraph.edge_ends(
            edges.indptr,
            edges.indices,
            back.indptr,
            back.indices,
            joined,
            np.uint64(random.key),
            ends,
        )
        return ends

    def joint_rate(part: Subgraph) -> Floats:
        # the edges are sorted, since all that join two nodes count
        src = part.indices
        dst = part.dst
        # parallel edges and both directions add up: each may be the one that is drawn
        pairs = np.minimum(src, dst) * len(part.nodes) + np.maximum(src, dst)
        _, index, times = np.unique(pairs, return_inverse=True, return_counts=True)
        u = part.nodes[src]
        v = part.nodes[dst]
        return times[index] * (1 / degree[u] + 1 / degree[v]) / len(joined)

    # an edge is drawn from a uniform end, then uniformly: 1/deg(u) + 1/deg(v) without a table
    rates = kernels.subgraph.touch_rates(edges.indptr, edges.indices, degree) / len(joined)
    # rates of the draws that have the node as an end
    return NodeDraws(draw, several=True, rate=np.minimum(rates, 1.0), joint_rate=joint_rate)


def walk_kind(edges: Edges, budget: int, length: int) -> NodeDraws:
    """Return the draws of all nodes of walks of ``length`` uniform steps from roots, uniform with
    replacement.
    """
    if edges.num_rows == 0:
        raise ValueError("kind='walk' starts at nodes, but the graph has none")

    def draw(random: Random) -> Ints:
        nodes = np.empty(budget * (length + 1), np.int64)
        kernels.subgraph.walks(edges.indptr, edges.indices, length, np.uint64(random.key), nodes)
        return nodes

    return NodeDraws(draw, budget > 1 or length > 0)


def _at_least_once(rate: Floats, draws: int) -> Floats:
    """1 - (1 - rate)^draws, to full precision for small rates."""
    with np.errstate(divide="ignore"):  # a rate of 1
        probability: Floats = -np.expm1(draws * np.log1p(-rate))
    return probability


def _both(a: Floats, b: Floats, joint: Floats, draws: int) -> Floats:
    """The probability that in ``draws`` draws one thing and another occur, of rates a and b, and
    together ``joint``.

    That is 1 - (1 - a)^m - (1 - b)^m + (1 - a - b + joint)^m, of which small rates would leave
    rounding errors only. So it is computed as P(first) P(second | first never), plus the rest of
    the probability of the second:

        f(a) f(c) + (1 - b)^m (r^m - 1),  f(x) = 1 - (1 - x)^m,  c = (b - joint) / (1 - a),
        r = (1 - a - b + joint) / ((1 - a) (1 - b))
    """
    # rates of 1 are dealt with below
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        second = np.minimum((b - joint) / (1 - a), 1.0)
        excess = np.maximum((joint - a * b) / ((1 - a) * (1 - b)), -1.0)
        given_first = _at_least_once(a, draws) * _at_least_once(second, draws)
        both = given_first + np.exp(draws * np.log1p(-b)) * np.expm1(draws * np.log1p(excess))
    # where one is certain, or has the other with it, the rarer one decides
    rarer = np.minimum(a, b)
    is_simple = (np.maximum(a, b) >= 1) | (joint >= rarer)
    return np.where(is_simple, _at_least_once(rarer, draws), both)


# average number of counted subgraphs per node, at which counting stops
_COVERAGE = 50


class SaintSampler(SubgraphSampler):
    """Random subgraphs with the normalisation of GraphSAINT (Zeng et al. 2020, sections 3.2 to 3.4,
    algorithms 1, 2).

    A seed is the number of a subgraph: ``sampler([7])`` is subgraph 7 of the epoch, and
    ``NodeFlowLoader(sampler, range(50), batch_size=1)`` an epoch of 50. Its nodes, in ascending
    order, are drawn by ``kind``; its edges are all edges among them:

    - "node": ``budget`` nodes with replacement, P(u) proportional to the sum of squared weights of
      the edges that leave u in the flows: the squared norm of column u of A.
    - "edge": the ends of ``budget`` edges drawn with replacement, P(u, v) proportional to 1/deg(u)
      + 1/deg(v). The degree counts the edges at a node in both directions (a self-loop twice).
    - "walk": all nodes of walks from ``budget`` roots, uniform with replacement; a walk takes
      ``walk_length`` uniform steps along ``direction``, and stays at a node without edges.

    Estimator weights are ``A p_v / p_uv`` (A / alpha, proposition 3.1), with p the probabilities
    that v, or u and v, are in a subgraph: given that v is in it, the weighted sum over its edges
    there is unbiased for the sum over all its edges. Column ``loss_weight`` of the last layer,
    float32 ``[n]``, is 1 / p_v: the weighted sum of losses over the subgraph is unbiased for the
    sum over all nodes that can be drawn.

    Args:
        num_flows: number of flows, L.
        kind: "node", "edge" or "walk".
        budget: number of nodes, edges or roots that are drawn, repeats included.
        walk_length: steps of a walk; needed for "walk", refused for the other kinds.
        coefficients: "exact" computes p in closed form ("node" and "edge"); "presampled" counts in
            ``num_presamples`` subgraphs, drawn when the sampler is made, apart from those of
            training. None: "exact" for "node" and "edge".
        num_presamples: number of counted subgraphs. None: as many as it takes until nodes have been
            in 50 on average.
        graph, seed: see ``SubgraphSampler``.

    A node or an edge that was in none of the counted subgraphs counts as if it had been in one.
    Sums lack the nodes and edges that can never be drawn (see ``node_probability``): for "node"
    nodes without out-edges, for "edge" isolated nodes, and with a budget of 1 pairs that need two
    draws.

    Cost of a subgraph: the draws, sorting them, and the degrees of the chosen nodes. Counting costs
    as many subgraphs, and an int32 per node and per edge; "exact" a float64 per node.

    Raises ValueError for an unknown kind, arguments that do not go together, and a graph without
    anything to draw. A call raises ValueError unless it has exactly one seed.

    >>> graph = Graph.from_edges([0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3])
    >>> batch = SaintSampler(graph, 2, kind="node", budget=4)([3])
    >>> batch, batch.back.data["loss_weight"]
    (NodeFlow(3 -> 3 -> 3 nodes, 4 + 4 edges), tensor([1.4629, 1.4629, 1.4629]))
    """

    draws_as = "saint"
    # any number below it is the number of a subgraph
    num_seeds = 2**62
    seed_kind = "subgraph"
    most_seeds = 1

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        *,
        kind: str,
        budget: int,
        walk_length: int | None = None,
        coefficients: str | None = None,
        num_presamples: int | None = None,
        seed: int = 0,
    ) -> None:
        check_one_of(kind, "kind", ("node", "edge", "walk"))
        check_one_of(coefficients, "coefficients", ("exact", "presampled", None))
        if kind == "walk" and coefficients == "exact":
            raise ValueError(
                "coefficients='exact' has no closed form for kind='walk'; pass 'presampled'"
            )
        if (kind == "walk") != (walk_length is not None):
            raise ValueError(
                "walk_length, the steps of a walk, is needed for kind='walk' and for no other, got "
                f"walk_length={walk_length} with kind={kind!r}"
            )
        self.kind = kind
        self.budget = as_count(budget, "budget", 1)
        parent = graph_of(graph)
        self.walk_length = None if walk_length is None else as_count(walk_length, "walk_length")
        num_draws = self.budget * (1 + (self.walk_length or 0))
        check_draws(num_draws, "budget with all steps of walks", parent.num_nodes)
        self.coefficients = coefficients or ("presampled" if kind == "walk" else "exact")
        if num_presamples is not None and self.coefficients == "exact":
            raise ValueError(
                "num_presamples goes with coefficients='presampled', here they are 'exact'"
            )
        if num_presamples is not None:
            num_presamples = as_count(num_presamples, "num_presamples", 1)
        if kind != "node":
            check_one_process(parent, f"SaintSampler(kind={kind!r})")
        if self.coefficients == "presampled":
            check_one_process(parent, "SaintSampler(coefficients='presampled')")
        super().__init__(graph, num_flows, seed=seed)
        self._counts = None
        if self.coefficients == "presampled":
            self._counts = self._presampled(num_presamples)
        self.num_presamples = None if self._counts is None else self._counts.total

    def read_graph(self) -> None:
        super().read_graph()
        if self.kind == "node":
            self._kind = node_kind(self.graph, self.reader, self.budget)
        elif self.kind == "edge":
            back = self.view.backwards().reader.edges
            self._kind = edge_kind(self.reader.edges, back, self.budget)
        else:
            self._kind = walk_kind(self.reader.edges, self.budget, self.walk_length or 0)

    def draw_batch(self, seeds: SeedsLike, call: Call) -> NodeFlow:
        # a share of a step may have no subgraph
        if call.step is not None and len(super()._seeds(seeds)[0]) == 0:
            return self._of_nodes(NOTHING, NOTHING)
        # a subgraph is drawn on its own, whichever others are in the step
        return super().draw_batch(seeds, call._replace(step=None))

    def _seeds(self, seeds: SeedsLike) -> tuple[Ints, tuple[int, ...]]:
        ids, shape = super()._seeds(seeds)
        if len(ids) != 1:
            raise ValueError(
                f"seeds must be the number of one subgraph, as in sampler([7]), got {len(ids)}; in "
                "a NodeFlowLoader set batch_size=1"
            )
        return ids, shape

    def choose_nodes(self, seeds: Ints, random: Random) -> Ints:
        """Draw the nodes of a subgraph, ascending."""
        return np.unique(self._kind.draw(random))

    def node_probability(self) -> Tensor:
        """Return the probability that a node is in a subgraph, float64 ``[num_nodes]``.

        Exact, or the share of the counted subgraphs that had it (0 where none had).
        """
        if (counts := self._counts) is not None:
            return torch.from_numpy(counts.nodes / counts.total)
        return torch.from_numpy(self._exact_of_nodes(np.arange(self.graph.num_nodes)))

    def edge_probability(self) -> Tensor:
        """Return the probability that both ends of an edge are in a subgraph, float64
        ``[num_edges]``.

        As for ``node_probability``; 0 for edges outside the filter.
        """
        check_one_process(self.graph, "edge_probability()")
        every_edge = self._whole()
        probability = np.zeros(self.graph.num_edges)
        if (counts := self._counts) is None:
            chance = self._exact_of_edges(every_edge)
        else:
            chance = counts.edges / counts.total
        probability[self.reader.edges.ids(every_edge.positions)] = chance
        return torch.from_numpy(probability)

    def estimand(self) -> Tensor:
        """Return the numbers of ``BoundSampler.estimand``, and 0 for edges that no subgraph can
        have.
        """
        number = super().estimand()
        every_edge = self._whole()
        rate = self._kind.rate
        possible = (every_edge.indices == every_edge.dst) | self._kind.several
        if rate is not None:
            possible &= (rate[every_edge.indices] > 0) & (rate[every_edge.dst] > 0)
        number[self.reader.edges.parent_eid(every_edge.positions[~possible])] = 0
        return number

    def inverse(self, part: Subgraph, seeds: Ints) -> Floats:
        """Return p_v / p_uv for every edge u -> v, float64 ``[E]``."""
        if self._counts is not None:
            node = self._counts.nodes[part.nodes[part.dst]]
            edge = self._counts.edges[part.positions]
            return np.maximum(node, 1) / np.maximum(edge, 1)
        edges = self.reader.edges
        if edges.patch is None:
            pair = self._exact_of_edges(part)
        else:  # edges that are left out for a while were drawn from all the same
            every_edge = induced_subgraph(edges.intact(), part.nodes, self.graph.num_nodes)
            pair = self._exact_of_edges(every_edge)[
                ~COMPILED.contains(edges.left_out, every_edge.positions)
            ]
        return self._exact_of_nodes(part.nodes)[part.dst] / pair

    def _needs_weight(self, seeds: Ints) -> bool:
        return True

    def node_columns(self, part: Subgraph) -> dict[str, Tensor]:
        """Return ``loss_weight``, float32 ``[n]``: 1 / p_v."""
        if (counts := self._counts) is None:
            weight = 1 / self._exact_of_nodes(part.nodes)
        else:
            weight = counts.total / np.maximum(counts.nodes[part.nodes], 1)
        return {"loss_weight": torch.from_numpy(weight.astype(np.float32))}

    def _exact_of_nodes(self, nodes: Ints) -> Floats:
        assert self._kind.rate is not None
        return _at_least_once(self._kind.rate[nodes], self.budget)

    def _exact_of_edges(self, part: Subgraph) -> Floats:
        """The probabilities that both ends of the edges of an induced subgraph are drawn, ``[E]``,
        in closed form.
        """
        assert self._kind.rate is not None
        rate = self._kind.rate[part.nodes]
        of_src = rate[part.indices]
        joint = np.where(part.indices == part.dst, of_src, self._kind.joint_rate(part))
        return _both(of_src, rate[part.dst], joint, self.budget)

    def _whole(self) -> Subgraph:
        """The whole graph, with the edges that ``without_edges`` leaves out."""
        edges = self.reader.edges
        indices = edges.indices.astype(np.int64, copy=False)
        return Subgraph(np.arange(edges.num_rows), edges.indptr, indices, np.arange(len(indices)))

    def _presampled(self, count: int | None) -> _Counts:
        nodes = np.zeros(self.graph.num_nodes, np.int32)
        edges = np.zeros(len(self.reader.edges.indices), np.int32)
        total = 0
        seen = 0
        while total < count if count is not None else seen < _COVERAGE * len(nodes):
            # a word in the key that no batch has: counted subgraphs are not those of training
            random = Random(key_of(self, "presamp", 3, total))
            drawn = np.unique(self._kind.draw(random))
            part = induced_subgraph(self.reader.edges, drawn, len(nodes))
            nodes[part.nodes] += 1
            edges[part.positions] += 1
            total = total + 1
            seen = seen + len(part.nodes)
        return _Counts(nodes, edges, total)


class _Counts(NamedTuple):
    """The number of subgraphs, out of ``total``, that each node and each edge (by position) was
    in.
    """

    nodes: NDArray[np.int32]
    edges: NDArray[np.int32]
    total: int
