"""Sizes of batches before training: mean numbers of nodes and edges, and bytes, of some draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nodeflow._core.base.sizes import bytes_text
from nodeflow._core.base.types import Floats
from nodeflow._core.rows.rows import column_bytes
from nodeflow.flow import NamesLike, NodeFlow, node_columns

# bytes of an id, and of a position in indptr
_ID = 8
_HEAD = ("layer", "nodes", "bytes", "flow", "edges", "bytes")
_GAPS = (0, 3, 3, 6, 3, 3)  # blanks before each column


def _cells(numbers: Sequence[float], sizes: Sequence[float]) -> list[tuple[str, ...]]:
    """The texts of a mean number and a mean size of each layer, or of each flow."""
    pairs = enumerate(zip(numbers, sizes, strict=True))
    return [(str(i), f"{number:,.1f}", bytes_text(size)) for i, (number, size) in pairs]


class Estimate(NamedTuple):
    """The mean size of batches, in flow order; it prints as a table.

    Attributes:
        nodes: mean number of nodes of every layer, L + 1 numbers, the seeds last.
        edges: mean number of edges of every flow, L numbers.
        node_bytes: bytes of every layer: 8 per node for its parent id, and the columns that were
            named.
        edge_bytes: bytes of every flow: 8 per edge for its source, and 8 per destination (and 8
            more) for ``indptr``. Parent edge ids (8 per edge) and estimator weights (4 or 8) are
            made when first asked for, and not counted.
        pilot: number of batches that were drawn for the estimate.

    >>> from nodeflow import Graph, NeighborSampler
    >>> ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> estimate = NeighborSampler(ring, [5, 5]).estimate([0, 1])
    >>> estimate
    layer   nodes   bytes      flow   edges   bytes
        0     4.0    32 B         0     3.0    56 B
        1     3.0    24 B         1     2.0    40 B
        2     2.0    16 B
    168 B in all, mean of 20 draws
    >>> estimate.nodes, estimate.edges
    ((4.0, 3.0, 2.0), (3.0, 2.0))
    """

    nodes: tuple[float, ...]
    edges: tuple[float, ...]
    node_bytes: tuple[float, ...]
    edge_bytes: tuple[float, ...]
    pilot: int

    @property
    def total_bytes(self) -> float:
        """The bytes of all layers and flows together."""
        return sum(self.node_bytes) + sum(self.edge_bytes)

    def __repr__(self) -> str:
        nodes = _cells(self.nodes, self.node_bytes)
        edges = [*_cells(self.edges, self.edge_bytes), ("", "", "")]
        rows = [_HEAD, *((*layer, *flow) for layer, flow in zip(nodes, edges, strict=True))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        line = "".join(f"{{:>{n + gap}}}" for n, gap in zip(widths, _GAPS, strict=True))
        total = f"{bytes_text(self.total_bytes)} in all, mean of {self.pilot} draws"
        return "\n".join([*(line.format(*row).rstrip() for row in rows), total])


def mean_sizes(draw: Callable[[int], NodeFlow], count: int, ndata: NamesLike) -> Estimate:
    """Return the mean sizes of the batches 0 to ``count - 1``, with the bytes of ids, edges and
    node columns.
    """
    layers = []
    flows = []
    for i in range(count):
        batch = draw(i)
        layers.append(batch.layer_sizes)
        flows.append(batch.flow_sizes)
    nodes = np.mean(layers, 0)
    edges = np.mean(np.asarray(flows, float).reshape(count, -1), 0)
    per_node = np.full(len(nodes), float(_ID))
    for layer, names in node_columns(batch, ndata) if ndata is not None else ():
        assert batch.parent is not None
        columns = (batch.parent.ndata[name] for name in names)
        per_node[layer] += sum(column_bytes(column) / max(column.shape[0], 1) for column in columns)
    of_edges = _ID * (edges + nodes[1:] + 1)
    sizes: list[Floats] = [nodes, edges, nodes * per_node, of_edges]
    return Estimate._make((*(tuple(values.tolist()) for values in sizes), count))
