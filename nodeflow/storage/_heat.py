"""Numbers of coming reads of rows: counted in batches drawn ahead, computed, or taken from
degrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    as_array,
    as_count,
    as_ids,
    as_index,
    check_one_of,
    describe,
    first_true,
)
from nodeflow._core.base.types import Floats, IdsLike, NumbersLike
from nodeflow._core.edges.edges import Edges
from nodeflow.graph import Graph, Schema
from nodeflow.loader import NodeFlowLoader

_PIECE = 2**22  # edges worked on at a time


def hottest(heat: NumbersLike) -> Tensor:
    """Return all rows by falling heat, int64 ``[n]``; of equal ones the lower id comes first.

    ``transform.reorder(graph, hottest(heat))`` numbers the nodes of a graph in this order, with the
    map back.

    Raises TypeError and ValueError unless ``heat`` is a number per row, none of them NaN.

    >>> hottest([1, 5, 0, 5])
    tensor([1, 3, 0, 2])
    """
    return torch.from_numpy(np.argsort(-as_heat(heat), kind="stable"))


def as_heat(heat: NumbersLike) -> Floats:
    """Return numbers per row as float64; raises TypeError and ValueError for anything else, and for
    a NaN.
    """
    values = as_array(heat, "heat", "numbers")
    if values.dtype.kind not in "biuf" or values.ndim != 1:
        raise TypeError(f"heat must be a number per row, got {describe(heat)}")
    if (row := first_true(np.isnan(values))) is not None:
        raise ValueError(f"heat must not have a NaN, but heat[{row}] is one")
    return values.astype(np.float64)


@checked
def presample(loader: NodeFlowLoader, epochs: int | Iterable[int] = 1, *, layer: int = 0) -> Tensor:
    """Count in how many batches each node is in a layer, by drawing epochs ahead without their
    columns.

    The position of the loader stays as it is. Heat of this kind is PreSC of Yang et al. 2022
    ("GNNLab").

    Args:
        loader: what training iterates over. One whose ``inputs`` is a function cannot be drawn
            ahead.
        epochs: how many epochs are drawn, from epoch 0; or the very ones: the epoch that is trained
            next gives the best choice that a fixed set of rows can be for it.
        layer: the layer whose rows are read; 0 has the inputs.

    Returns int64 ``[num_nodes]``. Raises the errors of ``NodeFlowLoader.draws``, IndexError for a
    layer that batches do not have.

    >>> from nodeflow import NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 1], [1, 2, 3])
    >>> presample(NodeFlowLoader(NeighborSampler(graph, [5]), [2, 3], batch_size=1))
    tensor([0, 2, 1, 1])
    """
    number = as_index(layer, "layer", loader.sampler.num_flows + 1)
    count = np.zeros(loader.sampler.graph.num_nodes, np.int64)
    if isinstance(epochs, int):
        epochs = range(as_count(epochs, "epochs", 1))
    # Batches are drawn without columns, so that counting reads no rows.
    for epoch in epochs:
        for batch in loader.draws(epoch):
            count[np.unique(batch.layers[number].parent_nid.numpy())] += 1
    return torch.from_numpy(count)


@checked
def degree_heat(graph: Graph, direction: str = "in") -> Tensor:
    """Return by how many edges each node can be drawn, int64 ``[num_nodes]``.

    A sampler that draws along in-edges, ``direction="in"``, draws a node from each node that it
    points to: that is its out-degree. For "out" it is the in-degree, for "both" the sum.

    Raises ValueError for another direction.

    >>> degree_heat(Graph.from_edges([0, 0, 1], [1, 2, 2]))
    tensor([2, 1, 0])
    """
    check_one_of(direction, "direction", ("in", "out", "both"))
    if direction == "in":
        return graph.out_degrees()
    if direction == "out":
        return graph.in_degrees()
    return graph.out_degrees() + graph.in_degrees()


@checked
def reach_heat(
    graph: Graph, seeds: IdsLike, fanouts: Sequence[int | Mapping[Any, int] | None], batch_size: int
) -> Tensor:
    r"""Return about with which probability each node is an input of a batch, float64
    ``[num_nodes]``.

    A seed is in a batch with probability :math:`p = \min(1, b / n)`. With one product per hop, from
    the seeds to the inputs, :math:`1 - p'_u = (1 - p_u) \prod_{u \to v} (1 - p_v \min(1, k / d_v))`
    for fanout k and in-degree :math:`d_v`, both of the relation of the edge, as if seeds, and
    edges, were drawn each by itself. Nodes of one batch are reached together more often than that,
    so over two hops the sum of all probabilities is some 5 to 10 % too large; the order hardly
    suffers.

    Args:
        graph: the parent graph; draws go along in-edges.
        seeds: the training nodes.
        fanouts: of the sampler, in flow order, the seeds' last; -1 or None means all neighbours.
            Each may be a dict by relation, as in ``NeighborSampler``.
        batch_size: number of seeds per batch.

    Raises IndexError for a seed that is no node, ValueError for wrong sizes.

    >>> reach_heat(Graph.from_edges([0, 1], [2, 2]), [2], [1], batch_size=1)
    tensor([0.5000, 0.5000, 1.0000], dtype=torch.float64)
    """
    ids = as_ids(seeds, "seeds", graph.num_nodes)
    size = as_count(batch_size, "batch_size", 1)
    times = np.bincount(ids, minlength=graph.num_nodes)
    reached = np.minimum(times * (size / max(len(ids), size)), 1.0)
    # a row per node and relation, which draws on its own
    rows = graph.schema.node_rows("in")
    edges = Edges._trusted(*graph.csc())
    nodes = np.arange(graph.num_nodes)
    edges = edges.by_kind(
        lambda: graph.schema.relations_of(np.arange(graph.num_edges)),
        node_rows=rows,
        whole_rows=rows,
    )
    node = np.repeat(nodes, rows.first(nodes)[1])
    kinds = rows.kinds_of(np.arange(rows.num_rows))
    for fanout in reversed(fanouts):
        counts = _numbers(graph.schema, fanout)
        drawn = np.minimum(1.0, counts[kinds] / np.maximum(np.diff(edges.indptr), 1))
        with np.errstate(divide="ignore"):
            missed = np.log1p(-reached[node] * drawn)  # -inf: certainly reached
        total = np.zeros(graph.num_nodes)
        for begin in range(0, graph.num_edges, _PIECE):
            sources = edges.indices[begin : begin + _PIECE]
            positions = np.arange(begin, begin + len(sources))
            along = missed[np.searchsorted(edges.indptr, positions, side="right") - 1]
            total += np.bincount(sources, weights=along, minlength=graph.num_nodes)
        reached = 1.0 - (1.0 - reached) * np.exp(total)
    return torch.from_numpy(reached)


def _numbers(schema: Schema, fanout: int | Mapping[Any, int] | None) -> Floats:
    """Return the fanout of each relation; infinity for all neighbours."""
    named = fanout if isinstance(fanout, Mapping) else dict.fromkeys(schema.relations, fanout)
    sizes = {schema.relation(name): size for name, size in named.items()}
    numbers = []
    for relation in schema.relations:
        size = sizes.get(relation, 0)
        numbers.append(np.inf if size in (None, -1) else as_count(size, "a fanout"))
    return np.array(numbers, np.float64)
