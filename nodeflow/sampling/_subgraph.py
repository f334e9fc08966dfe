"""Samplers whose flows hold all edges among chosen nodes, and the induced subgraph of a batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import LARGEST, Ints, as_count, as_ids, describe
from nodeflow._core.base.frozen import Lazy
from nodeflow._core.base.types import Array, Floats, IdsLike
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.view import Reader
from nodeflow._core.random import Random
from nodeflow.flow import Flow, FlowParts, Layer, NodeFlow, shared_node_flow
from nodeflow.ops import Structure
from nodeflow.sampling._bound import BoundSampler
from nodeflow.sampling._distributed import with_rows_of
from nodeflow.sampling._keys import Keys


def flow_parts(
    reader: Reader,
    positions: Ints,
    needs_weight: bool | None,
    inverse: Callable[[], Array | None] | None = None,
) -> FlowParts:
    """Return the parts of a flow of the edges at ``positions``.

    Their estimator weights are the ``weight`` column times ``inverse()``.
    """
    weight = reader.weight_of(positions, inverse)
    return {
        "parent_eid": Lazy(lambda: reader.edges.parent_eid(positions)),
        "weight": weight and Lazy(weight),
        "needs_weight": needs_weight,
    }


class Subgraph(NamedTuple):
    """Nodes of the parent graph, and the edges among them.

    ``nodes`` int64 ``[n]`` are parent ids; ``indptr`` int64 ``[n + 1]`` and ``indices`` int64
    ``[E]`` are a CSR structure over destinations, of indices into ``nodes``; ``positions`` ``[E]``
    are positions in the sampler's edge arrays.

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


@checked
def induced_subgraph(edges: Edges, keys: Ints, num_nodes: int) -> Subgraph:
    """Return all edges among some nodes; those of a destination come in the graph's order.

    Args:
        edges: the edge arrays, a row per node.
        keys: the nodes, int64 ``[n]``; ``context * num_nodes + node`` for nodes of several
            contexts, of which only those of one context are joined.
        num_nodes: number of nodes of the graph.

    Cost: the sum of the nodes' degrees. Raises ValueError for a key that comes twice.

    >>> edges = Edges([0, 2, 3, 4, 4], [2, 3, 0, 1], None)
    >>> part = induced_subgraph(edges, np.array([2, 0, 1]), num_nodes=4)
    >>> part.indices.tolist(), part.dst.tolist()
    ([2, 0, 1], [0, 1, 2])
    """
    keys = as_ids(keys, "keys", LARGEST, "subgraph node")
    if as_count(num_nodes, "num_nodes") > edges.whole.num_nodes or (len(keys) and not num_nodes):
        raise ValueError(
            f"num_nodes must be the number of nodes, {edges.whole.num_nodes}, got {num_nodes}"
        )
    table, repeated = kernels.subgraph.tabulate(keys)
    if repeated >= 0:
        raise ValueError(
            f"nodes of a subgraph must be distinct, but node {keys[repeated] % num_nodes} comes "
            "twice"
        )
    return Subgraph(keys, *edges_from(edges, table, keys, num_nodes))


def edges_from(edges: Edges, table: Ints, keys: Ints, num_nodes: int) -> tuple[Ints, Ints, Ints]:
    """Return the edges from tabulated keys to ``keys``: ``indptr``, indices among the tabulated,
    and positions.
    """
    ends = edges.node_indptr
    rows = edges.whole.rows_of(keys % max(num_nodes, 1))
    indptr, indices, positions = kernels.subgraph.induced(
        ends, edges.indices, rows, keys, num_nodes, table
    )
    indptr, positions, indices = edges.staying(indptr, positions, indices)
    return indptr, indices, positions


class SubgraphSampler(BoundSampler):
    """Base of the samplers that run all layers of a GNN on one subgraph: all edges among some
    nodes.

    A subclass implements ``choose_nodes``. All layers hold the chosen nodes, all flows the edges
    among them, stored once. ``batch.seeds`` are all nodes of the subgraph.

    Args:
        num_flows: number of flows, L.
        graph, seed: see ``Sampler``.

    Seeds are nodes, unless a subclass overrides ``num_seeds`` and ``seed_kind``. Estimator weights
    are the ``weight`` column times ``inverse``. ``without_edges`` leaves edges out of the
    subgraphs; the nodes and all other edges stay as they were.

    Shares of a step (see the loader) are subgraphs of their own, without the edges from one to
    another.

    Cost: the sum of the degrees of the chosen nodes.

    >>> from nodeflow import Graph
    >>> class BallSampler(SubgraphSampler):
    ...     def choose_nodes(self, seeds, random):
    ...         return np.unique(np.concatenate([seeds, self.graph.in_edges(seeds)[0].numpy()]))
    >>> batch = BallSampler(Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0]), num_flows=2)([0])
    >>> batch, batch.seeds
    (NodeFlow(3 -> 3 -> 3 nodes, 2 + 2 edges), tensor([0, 2, 3]))
    """

    draws_together = True
    whole_only = False

    @abstractmethod
    def choose_nodes(self, seeds: Ints, random: Random) -> IdsLike:
        """Return the nodes of the subgraph of ``seeds`` (checked, int64): distinct parent ids, in
        layer order.

        The result must depend on the seeds, ``random`` and the sampler's settings only. It is
        called from several threads.
        """

    def inverse(self, part: Subgraph, seeds: Ints) -> Floats | None:
        """Return 1 / the probability that an edge's source is in the subgraph, given that its
        destination is.

        Float64 ``[E]``; None is 1.
        """
        return None

    def _needs_weight(self, seeds: Ints) -> bool | None:
        """Whether weights may vary within a destination; None: unknown, so they are compared."""
        return None

    def node_columns(self, part: Subgraph) -> dict[str, Tensor]:
        """Return columns ``[n, ...]`` for the frame of the last layer; most samplers have none."""
        return {}

    def _sample(self, seeds: Ints, keys: Keys) -> NodeFlow:
        return self._of_nodes(self.choose_nodes(seeds, Random(keys.key)), seeds)

    def _of_nodes(self, chosen: IdsLike, seeds: Ints) -> NodeFlow:
        nodes = as_ids(chosen, "nodes of a subgraph", self.graph.num_nodes).copy()
        return with_rows_of(self, nodes).flow_among(nodes, seeds)

    def flow_among(self, nodes: Ints, seeds: Ints) -> NodeFlow:
        """Return the NodeFlow of all edges among ``nodes``, whose rows are in ``reader``."""
        graph = self.graph
        reader = self.reader
        part = induced_subgraph(reader.edges, nodes, graph.num_nodes)
        structure = Structure._trusted(
            torch.from_numpy(part.indptr), torch.from_numpy(part.indices), len(nodes)
        )
        layer = Layer._trusted(len(nodes), torch.from_numpy(nodes))
        ids = torch.from_numpy(seeds.copy())
        edges = flow_parts(
            reader, part.positions, self._needs_weight(seeds), lambda: self.inverse(part, seeds)
        )
        batch = shared_node_flow(graph, layer, structure, self.num_flows, ids, **edges)
        batch.back.data.update(self.node_columns(part))
        return batch


@checked
def induced(batch: NodeFlow, sampler: BoundSampler) -> NodeFlow:
    """Return the NodeFlow with the layers of ``batch``, and all edges among their nodes, drawn or
    not.

    Flow i holds every edge from a node of layer i to a node of layer i + 1, in the graph's order,
    in the direction of the sampler; with contexts, those of one context. As a transform of a
    loader: ``NodeFlowLoader(..., transform=lambda batch: induced(batch, sampler))``.

    Estimator weights are those of the edges (the sampler's ``weight`` column, or 1). Outputs are
    exact for the subgraph of the nodes. They are not unbiased for the whole graph: sums lack the
    edges from outside.

    Args:
        batch: a NodeFlow in main memory whose layers have parent nodes.
        sampler: the sampler of the batch. Its view of edges and
            ``without_edges`` hold. Of a ``LinkSampler`` pass what it wraps, without the edges that
            it excludes: ``links.sampler.without_edges(...)``.

    Columns of layers and seeds are shared with ``batch``; flows have no columns, and flows that
    skip layers are left out. Cost: for every flow, the sum of the degrees of its destinations.

    Raises TypeError for anything but a NodeFlow and a sampler that looks up edges, and for a
    sampler with times, where some edges lie in the future; ValueError for a batch of another graph,
    on another device, or without parent nodes.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 2, 1], [0, 0, 1, 2]), [1, -1])
    >>> batch = sampler([0])
    >>> batch, induced(batch, sampler)
    (NodeFlow(3 -> 3 -> 1 nodes, 3 + 2 edges), NodeFlow(3 -> 3 -> 1 nodes, 4 + 2 edges))
    """
    if not isinstance(sampler, BoundSampler):
        raise TypeError(
            "sampler must be one that looks up edges, such as NeighborSampler, got "
            f"{describe(sampler)}; of a LinkSampler pass its sampler, "
            "links.sampler.without_edges(...)"
        )
    if sampler.takes_times:
        raise TypeError(
            f"{type(sampler).__name__} hides edges from seeds by their times: induced would show "
            "them all"
        )
    if batch.parent is None or batch.parent.uid != sampler.graph.uid:
        raise ValueError(
            f"batch must be a batch of the sampler's graph, {sampler.graph}, got one of "
            f"{batch.parent}"
        )
    if batch.device.type != "cpu":
        raise ValueError(
            f"batch must be in main memory, got one on {batch.device}; call induced before batch.to"
        )
    # columns of layers stay, those of flows go: their edges are others
    layers = [layer.with_frame() for layer in batch.layers]
    ends = [layer.parent_nid.numpy() for layer in layers[1:]]
    reader = with_rows_of(sampler, np.concatenate([NOTHING, *ends])).reader
    size = sampler.graph.num_nodes
    flows = [_flow(reader, layers[i], layers[i + 1], i, size) for i in range(batch.num_flows)]
    ids = None
    if batch.has_seed_ids:
        ids = batch.seed_ids
    result = NodeFlow._trusted(
        layers, flows, parent=batch.parent, seed_index=batch.seed_index, seed_ids=ids
    )
    result.seed_data.update(batch.seed_data)
    return result


def _flow(reader: Reader, src: Layer, dst: Layer, i: int, num_nodes: int) -> Flow:
    table, _ = kernels.subgraph.tabulate(_keys(src, num_nodes))
    indptr, indices, positions = edges_from(reader.edges, table, _keys(dst, num_nodes), num_nodes)
    structure = Structure._trusted(
        torch.from_numpy(indptr), torch.from_numpy(indices), src.num_nodes
    )
    return Flow._trusted(
        structure, src, dst, (i, i + 1), **flow_parts(reader, positions, needs_weight=True)
    )


def _keys(layer: Layer, num_nodes: int) -> Ints:
    """A number for every node and context."""
    nodes: Ints = layer.parent_nid.numpy()
    return nodes if layer.context is None else nodes + num_nodes * layer.context.numpy()
