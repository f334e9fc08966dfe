"""A NodeFlow as one graph over all its layers, in NodeFlow ids."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch

from nodeflow.graph import Graph

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


def layer_offsets(batch: NodeFlow) -> tuple[int, ...]:
    """Return the NodeFlow id at which each layer begins, and the number of all nodes: L + 2 numbers."""
    return tuple(accumulate(batch.layer_sizes, initial=0))


def flow_offsets(batch: NodeFlow) -> tuple[int, ...]:
    """Return the NodeFlow id at which each flow begins, and the number of all edges.

    The flows are those of ``flows.pairs()``: first those between consecutive layers, then those that skip layers.
    """
    return tuple(accumulate((flow.num_edges for _, flow in batch.flows.items()), initial=0))


def as_graph(batch: NodeFlow) -> Graph:
    """Return the structure over all layers as one graph: its nodes and edges are those of the NodeFlow, by NodeFlow id.

    So it answers questions across layers, with ``find_edges``, ``has_edges``, ``edge_ids``, ``in_edges`` and the
    degrees. It has no columns, lies on the CPU, and takes memory of its own.

    >>> from nodeflow import FullSampler
    >>> batch = FullSampler(Graph.from_edges([0, 1], [1, 2]), 2)([2])
    >>> batch.as_graph(), batch.layer_offsets()
    (Graph(6 nodes, 3 edges), (0, 3, 5, 6))
    >>> batch.as_graph().edges()
    (tensor([1, 2, 4]), tensor([3, 4, 5]))
    """
    starts = layer_offsets(batch)
    ends = [(src + starts[i], dst + starts[j]) for (i, j), flow in batch.flows.items() for src, dst in [flow.edges()]]
    none = [torch.from_numpy(np.zeros(0, np.int64))]
    src, dst = (torch.cat([*none, *(pair[k].cpu() for pair in ends)]) for k in (0, 1))
    return Graph.from_edges(src, dst, num_nodes=starts[-1])
