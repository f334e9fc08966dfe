"""The samplers of DGL 0.4: iterables of NodeFlows over batches of seeds."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import sampling
from nodeflow._core.base.checks import Ints, as_count, as_ids, as_int, check_one_of, check_type
from nodeflow._core.random import Random, derive_key
from nodeflow._core.runtime import process
from nodeflow.compat.dgl._graph import DGLGraph
from nodeflow.compat.dgl._queries import refuse
from nodeflow.compat.dgl.nodeflow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.sampling import check_size, check_sizes
from nodeflow.sampling.base import Choice, SamplerBase, Step

__all__ = ["LayerSampler", "NeighborSampler", "create_full_nodeflow"]
__getattr__ = partial(refuse, "dgl.contrib.sampling.sampler")


class NeighborDraws(sampling.NeighborSampler):
    """Neighbour sampling whose drawn edges keep the order of the graph, with self-loops where
    ``loops`` is set.
    """

    loops: Ints | None = None
    """The first self-loop of every node, by parent id; -1 for a node without."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        drawn = super().choose(dst, step)
        edges = self.reader.edges
        indptr = drawn.indptr
        row = np.repeat(np.arange(len(dst)), np.diff(indptr))
        # the loop draws in any order; DGL keeps that of the graph. One number for row and position,
        # so that one sort orders both
        start = row * np.int64(len(edges.indices))
        key = start + np.asarray(drawn.positions)
        positions = (key if (key[1:] >= key[:-1]).all() else np.sort(key)) - start
        src = edges.indices[positions].astype(np.int64)
        if self.loops is None:
            return Choice.of_kernel(indptr, positions, src, None, needs_weight=False)
        # a self-loop comes last among the edges of a node that drew none
        nodes = dst.numpy()
        has_own = np.zeros(len(nodes), np.bool_)
        has_own[row[src == nodes[row]]] = True
        new = np.flatnonzero(~has_own)
        eid = np.insert(
            edges.parent_eid(positions).numpy(), indptr[new + 1], self.loops[nodes[new]]
        )
        src = np.insert(src, indptr[new + 1], nodes[new])
        indptr = indptr + np.concatenate([[0], np.cumsum(~has_own)])
        return Choice(indptr, src=src, eid=eid)


class LayerDraws(sampling.LayerSampler):
    """Layer-wise sampling whose edges into a node are in the order of their sources."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        drawn = super().choose(dst, step)
        src = drawn.take_sources(self.reader.edges)
        row = np.repeat(np.arange(len(dst)), np.diff(drawn.indptr))
        order = np.argsort(row * np.int64(self.graph.num_nodes) + src, kind="stable")
        positions = np.asarray(drawn.positions)[order]
        return Choice.of_kernel(drawn.indptr, positions, src[order], None, needs_weight=False)


class _NodeFlows(ABC):
    """NodeFlows of consecutive batches of seeds; each iteration over it draws afresh, in the same
    order of seeds.
    """

    def __init__(
        self,
        g: DGLGraph,
        batch_size: int,
        direction: str,
        seeds: Any,
        shuffle: bool,
        num_workers: int,
        prefetch: bool,
    ) -> None:
        check_type(g, "g", DGLGraph, "a nodeflow.compat.dgl.DGLGraph")
        check_one_of(direction, "neighbor_type", ("in", "out"))
        self.g = g
        self.batch_size = as_count(batch_size, "batch_size", 1)
        self._prefetch = bool(prefetch)
        self._num_workers = as_count(num_workers, "num_workers", 1)
        size = g.number_of_nodes()
        ids = as_ids(range(size) if seeds is None else seeds, "seed_nodes", size)
        key = derive_key(*next(process.seeds))
        self._iterations = 0
        self._direction = direction
        self._options: dict[str, Any] = {"include_dst": False, "seed": key}
        if shuffle:
            # a key of its own: the order of seeds does not change what is drawn for them
            order = Random(derive_key(key, "order"))
            ids = ids[order.permutation(len(ids)).numpy()]
        self.seed_nodes: Tensor = torch.from_numpy(ids)

    @abstractmethod
    def _sampler(self, graph: Graph) -> SamplerBase:
        """Return what draws from the graph as it is when an iteration begins."""

    def __iter__(self) -> Iterator[NodeFlow]:
        """Draw NodeFlows in the order of the seeds; they do not depend on the number of workers."""
        loader = NodeFlowLoader(
            self._sampler(self.g.graph),
            self.seed_nodes,
            self.batch_size,
            prefetch=2 * self._prefetch,
            num_workers=min(self._num_workers, os.cpu_count() or 1),
        )
        # each iteration draws afresh, and the same for any number of workers
        loader.set_epoch(self._iterations)
        self._iterations += 1
        return (NodeFlow(self.g, batch) for batch in loader)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.seed_nodes)} seeds in batches of {self.batch_size}, "
            f"{self.g!r})"
        )


class NeighborSampler(_NodeFlows):
    """Draws neighbours of the seeds, neighbours of these, and so on; iterating gives a NodeFlow per
    batch of seeds.

    The last layer holds the seeds, in their order. Each other layer holds the neighbours drawn for
    the next one, sorted by id. The edges into a node keep the order of the graph.

    Args:
        g: the graph.
        batch_size: seeds per NodeFlow; the last one may have fewer.
        expand_factor: neighbours drawn for every node, without replacement; all of them where there
            are no more, and for -1.
        num_hops: number of blocks.
        neighbor_type: "in" draws sources of in-edges, "out" destinations of out-edges.
        transition_prob: an edge column by name, or numbers ``[num_edges]``, that draws are
            proportional to. It is read when an iteration begins. An edge with 0 is never drawn.
        seed_nodes: ids; None: all nodes.
        shuffle: put the seeds in a random order, once.
        num_workers, prefetch: NodeFlows drawn in parallel, and whether they are drawn ahead.
        add_self_loop: give every node an edge to itself, last, unless it drew one: the graph's
            where it has one, else a new one with the parent id -1.

    Raises TypeError or ValueError for wrong arguments.

    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 2), (1, 2), (2, 0)])
    >>> (nf,) = NeighborSampler(g, 1, 9, num_hops=2, seed_nodes=[2])
    >>> [nf.layer_parent_nid(i).tolist() for i in range(3)]
    [[2], [0, 1], [2]]
    """

    def __init__(
        self,
        g: DGLGraph,
        batch_size: int,
        expand_factor: int | None = None,
        num_hops: int = 1,
        neighbor_type: str = "in",
        transition_prob: Any = None,
        seed_nodes: Any = None,
        shuffle: bool = False,
        num_workers: int = 1,
        prefetch: bool = False,
        add_self_loop: bool = False,
    ) -> None:
        super().__init__(g, batch_size, neighbor_type, seed_nodes, shuffle, num_workers, prefetch)
        number = check_size(as_int(expand_factor, "expand_factor"), "expand_factor")
        self._fanouts = [number] * as_count(num_hops, "num_hops", 1)
        self._prob = transition_prob
        self._add_self_loop = bool(add_self_loop)

    def _sampler(self, graph: Graph) -> SamplerBase:
        prob = self._prob
        if prob is not None and not isinstance(prob, str):
            indptr, indices, edge_ids = graph.csc()
            graph = Graph(
                indptr,
                indices,
                edge_ids=edge_ids,
                edata={"transition_prob": prob},
                ndata=graph.ndata,
            )
            prob = "transition_prob"
        draws = NeighborDraws(
            graph.view(self._direction), self._fanouts, prob=prob, **self._options
        )
        if self._add_self_loop:
            draws.loops = np.full(graph.num_nodes, -1)
            src, dst = (end.numpy() for end in graph.edges())
            # reversed, so that the lowest id is written last and stays
            loops = np.flatnonzero(src == dst)[::-1]
            draws.loops[src[loops]] = loops
        return draws


class LayerSampler(_NodeFlows):
    """Draws a set of neighbours for a whole layer at a time; iterating gives a NodeFlow per batch
    of seeds.

    The nodes of a layer are drawn with replacement, equally likely, from the neighbours of the next
    layer, and are kept once, sorted by id. A block has all edges between its two layers.

    Args:
        layer_sizes: number of draws for every layer but the last: ``layer_sizes[-1]`` is for the
            one before the seeds.
        node_prob: must be None, as in version 0.4: ``nodeflow.LayerSampler(score=...)`` draws with
            other probabilities.
        g, batch_size, neighbor_type, seed_nodes, shuffle, num_workers, prefetch: see
            ``NeighborSampler``.

    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 2), (1, 2), (1, 3)])
    >>> (nf,) = LayerSampler(g, 2, [100], seed_nodes=[2, 3])
    >>> nf.layer_parent_nid(0), nf.block_parent_eid(0)
    (tensor([0, 1]), tensor([0, 1, 2]))
    """

    def __init__(
        self,
        g: DGLGraph,
        batch_size: int,
        layer_sizes: Any,
        neighbor_type: str = "in",
        node_prob: None = None,
        seed_nodes: Any = None,
        shuffle: bool = False,
        num_workers: int = 1,
        prefetch: bool = False,
    ) -> None:
        if node_prob is not None:
            raise ValueError(
                "node_prob must be None, as in DGL 0.4: see nodeflow.LayerSampler(score=...)"
            )
        super().__init__(g, batch_size, neighbor_type, seed_nodes, shuffle, num_workers, prefetch)
        self._layer_sizes = check_sizes(layer_sizes, "layer_sizes", every=False)

    def _sampler(self, graph: Graph) -> SamplerBase:
        return LayerDraws(graph.view(self._direction), self._layer_sizes, **self._options)


def create_full_nodeflow(g: DGLGraph, num_layers: int, add_self_loop: bool = False) -> NodeFlow:
    """Return the NodeFlow of all nodes as seeds, with all their in-edges, of ``num_layers`` blocks.

    A layer other than the last holds the nodes that have an edge into the next layer. Raises
    ValueError for a graph without nodes.

    >>> from nodeflow.compat import dgl
    >>> nf = create_full_nodeflow(dgl.DGLGraph([(0, 1), (1, 2)]), 2)
    >>> [nf.layer_parent_nid(i).tolist() for i in range(3)]
    [[0], [0, 1], [0, 1, 2]]
    """
    if g.number_of_nodes() == 0:
        raise ValueError("a graph without nodes has no NodeFlow")
    size = g.number_of_nodes()
    sampler = NeighborSampler(g, size, -1, num_layers, add_self_loop=add_self_loop)
    return next(iter(sampler))  # one batch has all nodes
