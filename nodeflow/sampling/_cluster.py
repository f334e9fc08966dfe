"""Cluster-GCN: subgraphs that are unions of parts of a partition of the graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, as_int, check_length
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Floats, IdsLike
from nodeflow._core.edges.numbering import distinct_in_order
from nodeflow._core.edges.view import EdgeView, graph_of
from nodeflow._core.random import Random, derive_key, hash_ids
from nodeflow._core.runtime import process
from nodeflow.graph import Graph
from nodeflow.sampling._one_process import check_one_process
from nodeflow.sampling._subgraph import Subgraph, SubgraphSampler

_MOST = 2**31 - 1


@checked
def partition(graph: Graph, num_parts: int, seed: int = 0) -> Tensor:
    """Cut the nodes into parts of about equal size with few edges between them, by METIS (Karypis,
    Kumar 1998).

    Edges count once per pair of nodes, whatever their direction; self-loops do not count.

    Args:
        num_parts: number of parts, at most the number of nodes. Parts may be empty where nodes are
            few.
        seed: any integer. The same seed gives the same parts with the same build of METIS: save
            parts that you will need again. On small graphs all seeds may give the same parts.

    Returns the part of every node, int64 ``[num_nodes]``. Cost: about proportional to the number of
    edges.

    Raises ValueError for more parts than nodes, ImportError without pymetis.

    >>> ring = Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
    >>> partition(ring, 2).bincount()
    tensor([3, 3])
    """
    count = as_count(num_parts, "num_parts", 1)
    number = as_int(seed, "seed")
    if count > max(1, graph.num_nodes):
        raise ValueError(
            f"num_parts must be at most the number of nodes {graph.num_nodes}, got {count}"
        )
    try:
        import pymetis
    except ImportError:
        raise ImportError(
            "partitions are made by METIS; install it with: pip install pymetis"
        ) from None
    if count == 1:
        return torch.from_numpy(np.zeros(graph.num_nodes, np.int64))
    pairs = undirected_pairs(graph)
    adjacency = pymetis.CSRAdjacency(pairs.indptr.astype(np.int64), pairs.indices.astype(np.int64))
    options = pymetis.Options(seed=derive_key(number) >> 33)
    # METIS draws from a generator of the whole process
    with process.metis_lock:
        result = pymetis.part_graph(count, adjacency, options=options)
    return torch.from_numpy(np.array(result.vertex_part, np.int64))


def undirected_pairs(graph: Graph) -> Any:
    """Return which nodes are linked in either direction, a bool scipy CSR array, without
    self-loops.
    """
    import scipy.sparse  # a third of a second that only partitions need

    # METIS takes undirected graphs: a pair is linked if there is an edge either way
    indptr, src, _ = graph.csc()
    dst = np.repeat(np.arange(graph.num_nodes), np.diff(indptr))
    u = src[src != dst]
    v = dst[src != dst]
    pairs = (np.concatenate([u, v]), np.concatenate([v, u]))
    size = (graph.num_nodes, graph.num_nodes)
    # repeats are one
    entries = np.ones(len(pairs[0]), np.bool_)
    return scipy.sparse.coo_array((entries, pairs), shape=size).tocsr()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Parts(Frozen):
    """The part of every node: ``numbers`` int64 ``[num_nodes]`` from 0 to ``count - 1``. Prints as
    sizes and a hash.
    """

    numbers: Ints
    count: int

    def __repr__(self) -> str:
        return (
            f"Parts({self.count} parts of {len(self.numbers)} nodes, "
            f"{hash_ids(self.numbers):#018x})"
        )


class ClusterSampler(SubgraphSampler):
    """Subgraphs of whole parts of the graph (Cluster-GCN: Chiang et al. 2019, sections 3.1 and
    3.2).

    A seed is the number of a part: ``sampler([3, 5])`` is all nodes of the parts 3 and 5, with all
    edges among them, those between the parts included.
    ``NodeFlowLoader(sampler, range(sampler.num_seeds), batch_size=q, shuffle=True)`` joins q random
    parts at a time: the paper's stochastic multiple partitions. The nodes come part by part in the
    order of the seeds, ascending within a part.

    Estimator weights, for q parts out of p: an edge within a part is always in the subgraph of its
    destination and has the weight A, the ``weight`` column or 1. An edge between parts is in it
    with probability (q - 1) / (p - 1) and has the weight A (p - 1) / (q - 1). If every set of q >=
    2 parts is equally likely, then given that v is in the subgraph, the weighted sum over its edges
    there is unbiased for the sum over all its edges. With q = 1, edges between parts are never
    seen: the sum is that over the edges within the part.

    Args:
        num_flows: number of flows, L.
        parts: the part of every node, integers ``[num_nodes]`` from 0, or ``parts`` of another
            sampler of the graph; or a number of parts, into which ``partition`` then cuts the
            graph.
        graph, seed: see ``SubgraphSampler``. Only the partition is
            random: the seed is for it, and all epochs are alike.

    Parts named twice count once. A part without nodes adds nothing, but counts among the p parts.
    All nodes are equally likely to be in a batch of an epoch, so losses need no weights.

    Cost: the sum of the degrees of the nodes.

    Raises ValueError unless ``parts`` has one entry per node, IndexError for a negative one, and
    the errors of ``partition``.

    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> batch = ClusterSampler(graph, 2, parts=[0, 0, 1, 2])([2, 0])
    >>> batch.seeds, batch.flows[0].parent_eid, batch.flows[0].weight
    (tensor([3, 0, 1]), tensor([3, 0]), tensor([2., 1.]))
    """

    draws_as = "cluster"
    seed_kind = "part"

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        parts: int | IdsLike,
        *,
        seed: int = 0,
    ) -> None:
        self.parts = _parts(graph_of(graph), parts, seed)
        super().__init__(graph, num_flows, seed=seed)

    def read_graph(self) -> None:
        super().read_graph()
        self._begin, self._members = kernels.csr.sort_by_destination(
            self.parts.numbers, self.parts.count
        )

    @property
    def num_seeds(self) -> int:
        """Number of parts."""
        return self.parts.count

    def choose_nodes(self, seeds: Ints, random: Random) -> Ints:
        parts, _ = distinct_in_order(seeds)
        _, places = kernels.csr.csr_rows(self._begin, parts)
        return cast("Ints", self._members[places])

    def inverse(self, part: Subgraph, seeds: Ints) -> Floats | None:
        """Return (p - 1) / (q - 1) for edges between parts, 1 for the others, float64 ``[E]``; None
        for one part.
        """
        q = len(np.unique(seeds))
        if q < 2:
            return None
        part_of = self.parts.numbers[part.nodes]
        is_inner = part_of[part.indices] == part_of[part.dst]
        return np.where(is_inner, 1.0, (self.parts.count - 1) / (q - 1))

    def _needs_weight(self, seeds: Ints) -> bool:
        return self.reader.weights is not None or len(np.unique(seeds)) >= 2


def _parts(graph: Graph, parts: int | IdsLike | Parts, seed: int) -> Parts:
    if isinstance(parts, Parts):
        check_length(parts.numbers, "parts", graph.num_nodes, "node")
        return parts
    if not isinstance(parts, Iterable) or getattr(parts, "ndim", 1) == 0:
        count = as_count(parts, "parts", 1)
        check_one_process(graph, "ClusterSampler(parts=<a number>)")
        return Parts(partition(graph, count, seed).numpy(), count)
    numbers = as_ids(parts, "parts", _MOST, "part").copy()
    check_length(numbers, "parts", graph.num_nodes, "node")
    # every number up to the largest is a part
    if len(numbers) and numbers.max() >= 16 * len(numbers) + 1024:
        raise ValueError(
            f"parts must number the parts 0, 1, 2, ..., but the largest of {len(numbers)} is "
            f"{numbers.max()}; renumber them with numpy.unique(parts, return_inverse=True)[1]"
        )
    return Parts(numbers, int(numbers.max(initial=-1)) + 1)
