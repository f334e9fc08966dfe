"""The kinds of GraphSAINT's draws of nodes, and the probabilities that a node, or both ends of an edge, are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Floats
from nodeflow._edges.edges import Edges
from nodeflow.graph import Graph
from nodeflow.random import Random
from nodeflow.sampling._distributed import norms_of_sources
from nodeflow.sampling._reader import Reader
from nodeflow.sampling._subgraph import Subgraph


class Kind(ABC):
    """A way to draw nodes, in ``budget`` independent draws.

    The two probabilities are in closed form, from ``rate``: a subclass without ``rate`` has none.

    Attributes:
        budget: number of draws.
        rate: the probability that a draw takes the node, float64 ``[num_nodes]``.
        several: whether the draws can take more than one node.
    """

    rate: Floats

    def __init__(self, budget: int, several: bool) -> None:
        self.budget, self.several = budget, several

    @abstractmethod
    def draw(self, random: Random) -> Ints:
        """Return the nodes drawn, repeats included."""

    def possible(self, part: Subgraph) -> NDArray[np.bool_]:
        """Return for which edges of a subgraph both ends can be drawn, ``[E]``."""
        possible: NDArray[np.bool_] = (part.indices == part.dst) | self.several
        return possible

    def joint_rate(self, part: Subgraph) -> Floats | float:
        """Return the probabilities that one draw takes both ends, two nodes, of the edges of a subgraph, ``[E]``."""
        return 0.0

    def node_probability(self, nodes: Ints) -> Floats:
        """Return the probabilities that nodes are drawn."""
        return _at_least_once(self.rate[nodes], self.budget)

    def edge_probability(self, part: Subgraph) -> Floats:
        """Return the probabilities that both ends of the edges of an induced subgraph are drawn, ``[E]``."""
        src, dst = part.indices, part.dst
        a, b = self.rate[part.nodes[src]], self.rate[part.nodes[dst]]
        return _both(a, b, np.where(src == dst, a, self.joint_rate(part)), self.budget)


class NodeKind(Kind):
    """``budget`` nodes with replacement, in proportion to the squared norms of the columns of A.

    Raises ValueError where all norms are 0.
    """

    def __init__(self, graph: Graph, reader: Reader, budget: int) -> None:
        edges, weights = reader.edges, reader.weights
        norms = norms_of_sources(graph, edges, None if weights is None else edges.by_position(weights))
        self._ends = np.cumsum(norms)
        total = float(self._ends[-1]) if len(norms) else 0.0
        if total == 0:
            raise ValueError("kind='node' draws nodes in proportion to squared edge weights, but all are 0")
        super().__init__(budget, several=budget > 1)
        self.rate, self._last = norms / total, int(np.flatnonzero(norms)[-1])

    def draw(self, random: Random) -> Ints:
        """Return the nodes drawn, repeats included."""
        drawn = random.uniform(np.arange(self.budget)).numpy() * self._ends[-1]
        # rounding may put a number at the very end
        nodes: Ints = np.minimum(np.searchsorted(self._ends, drawn, side="right"), self._last)
        return nodes

    def possible(self, part: Subgraph) -> NDArray[np.bool_]:
        """Return for which edges both ends can be drawn, ``[E]``."""
        drawn = self.rate[part.nodes] > 0
        return super().possible(part) & drawn[part.indices] & drawn[part.dst]


class EdgeKind(Kind):
    """Both ends of ``budget`` edges with replacement, P(u, v) in proportion to 1/deg(u) + 1/deg(v).

    ``back`` are the edges along the other direction. Raises ValueError where there are no edges.
    """

    def __init__(self, edges: Edges, back: Edges, budget: int) -> None:
        super().__init__(budget, several=True)
        self._edges, self._back = edges, back
        self._degree = np.diff(edges.indptr) + np.diff(back.indptr)
        self._joined = np.flatnonzero(self._degree)
        if len(self._joined) == 0:
            raise ValueError("kind='edge' draws edges, but there are none")
        rates = kernels.subgraph.touch_rates(edges.indptr, edges.indices, self._degree) / len(self._joined)
        self.rate: Floats = np.minimum(rates, 1.0)  # of the draws that have the node as an end

    def draw(self, random: Random) -> Ints:
        """Return the ends of the edges drawn, repeats included."""
        ends = np.empty(2 * self.budget, np.int64)
        arrays = (self._edges.indptr, self._edges.indices, self._back.indptr, self._back.indices, self._joined)
        kernels.subgraph.edge_ends(*arrays, np.uint64(random.key), ends)
        return ends

    def joint_rate(self, part: Subgraph) -> Floats:
        """Return the probabilities that one draw takes both ends, two nodes, of the edges of a subgraph, ``[E]``.

        Cost: sorting the edges, since all edges that join two nodes count.
        """
        src, dst = part.indices, part.dst
        pairs = np.minimum(src, dst) * len(part.nodes) + np.maximum(src, dst)
        _, index, times = np.unique(pairs, return_inverse=True, return_counts=True)
        u, v = part.nodes[src], part.nodes[dst]
        rate: Floats = times[index] * (1 / self._degree[u] + 1 / self._degree[v]) / len(self._joined)
        return rate


class WalkKind(Kind):
    """The nodes of walks of ``length`` uniform steps from ``budget`` roots, uniform with replacement.

    Their probabilities have no closed form. Raises ValueError where there are no nodes.
    """

    def __init__(self, edges: Edges, budget: int, length: int) -> None:
        if edges.num_rows == 0:
            raise ValueError("kind='walk' starts at nodes, but the graph has none")
        super().__init__(budget, several=budget > 1 or length > 0)
        self._edges, self._length = edges, length

    def draw(self, random: Random) -> Ints:
        """Return the nodes visited, repeats included."""
        nodes = np.empty(self.budget * (self._length + 1), np.int64)
        kernels.subgraph.walks(self._edges.indptr, self._edges.indices, self._length, np.uint64(random.key), nodes)
        return nodes


def _at_least_once(rate: Floats, draws: int) -> Floats:
    """1 - (1 - rate)^draws, to full precision for small rates."""
    with np.errstate(divide="ignore"):  # a rate of 1
        probability: Floats = -np.expm1(draws * np.log1p(-rate))
    return probability


def _both(a: Floats, b: Floats, joint: Floats, draws: int) -> Floats:
    """The probability that in ``draws`` draws one thing and another occur, of rates a and b, and together ``joint``.

    That is 1 - (1 - a)^m - (1 - b)^m + (1 - a - b + joint)^m, of which small rates would leave rounding errors only. So
    it is computed as P(first) P(second | first never), plus the rest of the probability of the second:

        f(a) f(c) + (1 - b)^m (r^m - 1),  f(x) = 1 - (1 - x)^m,  c = (b - joint) / (1 - a),
        r = (1 - a - b + joint) / ((1 - a) (1 - b))
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # rates of 1 are dealt with below
        second = np.minimum((b - joint) / (1 - a), 1.0)
        excess = np.maximum((joint - a * b) / ((1 - a) * (1 - b)), -1.0)
        apart = _at_least_once(a, draws) * _at_least_once(second, draws)
        both = apart + np.exp(draws * np.log1p(-b)) * np.expm1(draws * np.log1p(excess))
    both = np.where(a >= 1, _at_least_once(b, draws), np.where(b >= 1, _at_least_once(a, draws), both))
    return np.where(joint >= np.minimum(a, b), _at_least_once(np.minimum(a, b), draws), both)
