"""Whole models: one convolution per flow of a NodeFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from nodeflow._check import as_count
from nodeflow.graph import Graph
from nodeflow.nn.gcn import GraphConv
from nodeflow.nn.sage import SAGEConv
from nodeflow.node_flow import NodeFlow
from nodeflow.propagation import Propagation


class FlowModel(nn.Module):
    """A stack of convolutions, the i-th computed on flow i, with ReLU and dropout between them.

    Args:
        convs: modules that map ``(flow, h)`` to the rows of the flow's destinations.
        dropout: probability of an entry to be zeroed before every convolution but the first, while training.
    """

    def __init__(self, convs: list[nn.Module], dropout: float = 0.0) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: NodeFlow, h: Tensor) -> Tensor:
        """Return the outputs of the seeds, ``[layer_sizes[-1], out_features]``.

        Args:
            batch: a NodeFlow with as many flows as the model has convolutions, else ValueError.
            h: rows of the input layer, ``[layer_sizes[0], in_features]``, dense or sparse CSR.
        """
        if batch.num_flows != len(self.convs):
            raise ValueError(f"a model of {len(self.convs)} layers needs as many flows, got {batch!r}")
        for i, flow in enumerate(batch.flows):
            h = self.convs[i](flow, self.step(i, h))
        return h

    def step(self, i: int, h: Tensor) -> Tensor:
        """What happens to the rows that enter convolution ``i``: nothing for the first, else ReLU and dropout."""
        h = self.activate(i, h)
        return self.dropout(h) if i else h

    def activate(self, i: int, h: Tensor) -> Tensor:
        """Return the rows that enter convolution ``i``, before dropout: ReLU of what came before, but for the first."""
        return h.relu() if i else h

    @torch.no_grad()
    def inference(
        self, graph: Graph | Propagation, h: Tensor, *, weight: str | None = None, rows: int | None = None,
        progress: bool = False,
    ) -> Tensor:  # fmt: skip
        """Return the outputs of all nodes from their full neighbourhoods, ``[num_nodes, out_features]``.

        Computed layer by layer over the whole graph, without dropout. Every module is left in the mode it was in.

        Args:
            graph: the graph; or a ``Propagation``, such as that of a ``History``, which says also along which edges and
                with which weights.
            h: rows of all nodes, ``[num_nodes, in_features]``, dense or sparse CSR.
            weight: for convolutions that use ``flow.weight``: the edge column that the sampler had as ``weight``.
            rows: how many nodes are computed at a time, which bounds what a convolution needs beside the rows of two
                layers; None: all at once. (Convolutions that multiply first do so for all rows each time.)
            progress: show a bar.

        Raises ValueError for ``weight`` beside a propagation, and what ``Propagation`` raises.
        """
        if isinstance(graph, Propagation) and weight is not None:
            raise ValueError("the propagation has its weights; leave out weight")
        propagation = graph if isinstance(graph, Propagation) else Propagation(graph, weight=weight)
        for out in self.layers(propagation, h, rows=rows, progress=progress):
            h = out
        return h

    @torch.no_grad()
    def layers(
        self, propagation: Propagation, h: Tensor, *, rows: int | None = None, progress: bool = False
    ) -> Iterator[Tensor]:
        """Give the rows of all nodes that enter each convolution, before dropout, and at last the outputs.

        Arguments as for ``inference``; the propagation says along which edges, and with which weights.
        """
        ranges = propagation.ranges(rows)
        modes = {module: module.training for module in self.modules()}  # parts may be frozen in evaluation mode
        self.eval()
        try:
            with tqdm(total=len(ranges) * len(self.convs), disable=not progress, desc="full pass", leave=False) as bar:
                for i, conv in enumerate(self.convs):
                    h = self.activate(i, h)
                    yield h
                    h = _computed(conv, propagation, h, ranges, bar)
            yield h
        finally:
            for module, training in modes.items():
                module.training = training


def _computed(
    conv: nn.Module, propagation: Propagation, h: Tensor, ranges: list[tuple[int, int]], bar: tqdm[Any]
) -> Tensor:
    """The outputs of a convolution for all nodes, a range at a time."""
    out: Tensor | None = None
    for start, stop in ranges:
        part: Tensor = conv(propagation.flow(start, stop, h.device), h)
        if len(ranges) == 1:
            out = part
        elif out is None:
            out = part.new_empty((ranges[-1][1], *part.shape[1:]))
        if len(ranges) > 1:
            out[start:stop] = part
        bar.update()
    return h if out is None else out


def _widths(in_features: int, hidden: int, out_features: int, num_layers: int) -> list[tuple[int, int]]:
    count = as_count(num_layers, "num_layers", 1)
    widths = [in_features, *[hidden] * (count - 1), out_features]
    return list(pairwise(widths))


class GraphSAGE(FlowModel):
    """GraphSAGE: ``SAGEConv`` layers (Hamilton, Ying, Leskovec 2017).

    Args:
        in_features, hidden, out_features: widths of the inputs, of every layer between, and of the outputs.
        num_layers: number of convolutions = number of flows.
        dropout: see ``FlowModel``.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), [2, 2])([2])
    >>> GraphSAGE(4, 8, 3, num_layers=2)(batch, torch.ones(batch.layer_sizes[0], 4)).shape
    torch.Size([1, 3])
    """

    def __init__(
        self, in_features: int, hidden: int, out_features: int, num_layers: int = 2, *, dropout: float = 0.0
    ) -> None:
        widths = _widths(in_features, hidden, out_features, num_layers)
        super().__init__([SAGEConv(i, o) for i, o in widths], dropout)


class GCN(FlowModel):
    """A graph convolutional network: ``GraphConv`` layers (Kipf, Welling 2017). Arguments as for ``GraphSAGE``."""

    def __init__(
        self, in_features: int, hidden: int, out_features: int, num_layers: int = 2, *, dropout: float = 0.0
    ) -> None:
        widths = _widths(in_features, hidden, out_features, num_layers)
        super().__init__([GraphConv(i, o) for i, o in widths], dropout)
