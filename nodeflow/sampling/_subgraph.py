"""Samplers of subgraphs: a sampler chooses nodes, and every flow holds all edges among them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_ids
from nodeflow._base.types import IdsLike
from nodeflow._edges.edges import Edges
from nodeflow._peers.held import together
from nodeflow.flow import Layer, NodeFlow, shared_node_flow
from nodeflow.ops import Structure
from nodeflow.random import Random
from nodeflow.sampling._base import Draw
from nodeflow.sampling._bound import BoundSampler
from nodeflow.sampling._distributed import with_rows_of


class Subgraph(NamedTuple):
    """Nodes of the parent graph, and the edges among them.

    ``nodes`` int64 ``[n]`` are parent ids; ``indptr`` int64 ``[n + 1]`` and ``indices`` int64 ``[E]`` are a CSR
    structure over destinations, of indices into ``nodes``; ``positions`` ``[E]`` are positions in the sampler's edge
    arrays.

    >>> import numpy as np
    >>> part = Subgraph(np.array([4, 7]), np.array([0, 0, 1]), np.array([0]), np.array([12]))
    >>> part.dst  # the edge 4 -> 7
    array([1])
    """

    nodes: Ints
    indptr: Ints
    indices: Ints
    positions: Ints

    @property
    def dst(self) -> Ints:
        """Destination row of every edge, int64 ``[E]``."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.indptr))


def induced_subgraph(edges: Edges, keys: Ints, num_nodes: int, *, left_out: bool = True) -> Subgraph:
    """Return all edges among some nodes; those of a destination come in the graph's order.

    Args:
        edges: the edge arrays, a row per node.
        keys: the nodes, int64 ``[n]``; ``context * num_nodes + node`` for nodes of several contexts, of which only
            those of one context are joined.
        num_nodes: number of nodes of the graph.
        left_out: whether to leave out the edges that the ``patch`` of ``edges`` leaves out.

    Cost: the sum of the nodes' degrees. Raises ValueError for a key that comes twice.

    >>> from nodeflow import Graph
    >>> from nodeflow.sampling.base import edges_along
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0])
    >>> part = induced_subgraph(edges_along(graph, "in"), np.array([2, 0, 1]), graph.num_nodes)
    >>> part.indices.tolist(), part.dst.tolist()
    ([2, 0, 1], [0, 1, 2])
    """
    table, repeated = kernels.induced.tabulate(keys)
    if repeated >= 0:
        raise ValueError(f"nodes of a subgraph must be distinct, but node {keys[repeated] % num_nodes} comes twice")
    return Subgraph(keys, *edges_from(edges, table, keys, num_nodes, left_out=left_out))


def edges_from(
    edges: Edges, table: Ints, keys: Ints, num_nodes: int, *, left_out: bool = True
) -> tuple[Ints, Ints, Ints]:
    """Return the edges from tabulated keys to ``keys``: ``indptr``, indices among the tabulated, and positions."""
    ends, rows = edges.indptr[:: edges.rows_per_node], edges.whole.rows_of(keys % max(num_nodes, 1))
    indptr, indices, positions = kernels.induced.induced(ends, edges.indices, rows, keys, num_nodes, table)
    if left_out and edges.patch is not None:
        kept, indptr = edges.patch.stay(indptr, positions)
        indices, positions = indices[kept], positions[kept]
    return indptr, indices, positions


class SubgraphSampler(BoundSampler):
    """Base of the samplers that run all layers of a GNN on one subgraph: all edges among some nodes.

    A subclass implements ``choose_nodes``. All layers hold the chosen nodes, all flows the edges among them, stored
    once. ``batch.seeds`` are all nodes of the subgraph.

    Args:
        num_flows: number of flows, L.
        graph, direction, edge_filter, weight, seed: see ``Sampler``.

    Seeds are nodes, unless a subclass overrides ``num_seeds`` and ``seed_kind``. Estimator weights are the ``weight``
    column times ``inverse``. ``without_edges`` leaves edges out of the subgraphs; the nodes and all other edges stay as
    they were.

    Shares of a step (see the loader) are subgraphs of their own, without the edges from one to another.

    Cost: the sum of the degrees of the chosen nodes.

    >>> from nodeflow import Graph
    >>> class BallSampler(SubgraphSampler):
    ...     '''The seeds and all their in-neighbours.'''
    ...     def choose_nodes(self, seeds, random):
    ...         src = self.graph.in_edges(seeds)[0].numpy()
    ...         return np.unique(np.concatenate([seeds, src]))
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0])
    >>> batch = BallSampler(graph, num_flows=2)([0])
    >>> batch, batch.seeds
    (NodeFlow(3 -> 3 -> 3 nodes, 2 + 2 edges), tensor([0, 2, 3]))
    """

    draws_together = True
    whole_only = False

    @abstractmethod
    def choose_nodes(self, seeds: Ints, random: Random) -> IdsLike:
        """Return the nodes of the subgraph of ``seeds`` (checked, int64): distinct parent ids, in layer order.

        The result must depend on the seeds, ``random`` and the sampler's settings only. It is called from several
        threads.
        """

    def inverse(self, part: Subgraph, seeds: Ints) -> NDArray[np.float64] | None:
        """Return 1 / the probability that an edge's source is in the subgraph, given that its destination is.

        Float64 ``[E]``; None is 1.
        """
        return None

    def _needs_weight(self, seeds: Ints) -> bool | None:
        """Whether weights may vary within a destination; None: unknown, so they are compared."""
        return None

    def node_columns(self, part: Subgraph) -> dict[str, Tensor]:
        """Return columns ``[n, ...]`` for the frame of the last layer; most samplers have none."""
        return {}

    def _sample(self, seeds: Ints, draw: Draw, inputs: Any) -> NodeFlow:
        return self._of_nodes(self.choose_nodes(seeds, Random(draw.key)), seeds)

    def _of_nodes(self, chosen: IdsLike, seeds: Ints) -> NodeFlow:
        """The NodeFlow of the nodes that were chosen for ``seeds``."""
        with together(self.graph, "nodes of a subgraph"):
            nodes = as_ids(chosen, "nodes of a subgraph", self.graph.num_nodes).copy()
            return with_rows_of(self, nodes).flow_among(nodes, seeds)

    def flow_among(self, nodes: Ints, seeds: Ints) -> NodeFlow:
        """Return the NodeFlow of all edges among ``nodes``, whose rows are in ``reader``."""
        graph, reader = self.graph, self.reader
        part = induced_subgraph(reader.edges, nodes, graph.num_nodes)
        structure = Structure(torch.from_numpy(part.indptr), torch.from_numpy(part.indices), len(nodes))
        layer, ids = Layer._trusted(len(nodes), torch.from_numpy(nodes)), torch.from_numpy(seeds.copy())
        edges = reader.flow_parts(part.positions, lambda: self.inverse(part, seeds))
        edges["needs_weight"] = self._needs_weight(seeds)
        batch = shared_node_flow(graph, layer, structure, self.num_flows, ids, **edges)
        batch.back.data.update(self.node_columns(part))
        return batch
