"""A layer on a graph, with rows of its nodes and columns of its edges; the flows that checks make of it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._base.checks import Ints
from nodeflow.flow import Flow, create_node_flow, flow_from_edges
from nodeflow.graph import Graph
from nodeflow.testing._run import Skipped
from nodeflow.testing._shrink import Parts, all_parts, dense, graph_code, smaller_graph

ROWS = "h"  # the node column of the rows that go into a layer


class LayerCase:
    """A layer, a graph with the node column "h" and the edge columns that the layer reads.

    ``draws`` is the number of calls so far.
    """

    def __init__(self, layer: nn.Module, graph: Graph) -> None:
        self.layer, self.graph, self.draws = layer, graph, 0

    @property
    def h(self) -> Tensor:
        """The rows of the nodes, float32 ``[num_nodes, in_features]``."""
        rows: Tensor = self.graph.ndata[ROWS]
        return rows.clone()

    def flow(
        self, *, weight: Tensor | None = None, order: Tensor | None = None, kind: torch.dtype | None = None
    ) -> Flow:
        """Return the flow of all edges of the graph, from all nodes to all nodes.

        Args:
            weight: estimator weights by edge id, ``[num_edges]``; None: 1.
            order: the edge ids in another order; None: ascending.
            kind: type of the columns of floats; None: as they are.
        """
        ids = torch.arange(self.graph.num_edges) if order is None else order
        src, dst = (end[ids] for end in self.graph.edges())
        columns = {n: c[ids] for n, c in dense(self.graph.edata).items()}
        flow = flow_from_edges(
            src,
            dst,
            num_src=self.graph.num_nodes,
            num_dst=self.graph.num_nodes,
            parent_eid=ids,
            weight=None if weight is None else weight[ids],
            data={n: c.to(kind) if kind is not None and c.is_floating_point() else c for n, c in columns.items()},
        )
        nodes = np.arange(self.graph.num_nodes)
        batch = create_node_flow([flow], [nodes, nodes], parent=self.graph)  # whose types the layers have
        for frame in batch.ldata:
            frame.update({n: c for n, c in dense(self.graph.ndata).items() if n != ROWS})
        return batch.flows[0]

    def run(self, flow: Flow, h: Tensor, layer: nn.Module | None = None) -> Tensor:
        """Return the rows of the destinations."""
        self.draws += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a layer may say that it ignores weights
            out = (layer or self.layer)(flow, h)
        if not isinstance(out, Tensor) or out.ndim < 1 or out.shape[0] != flow.num_dst:
            got = f"{type(out).__name__}" + (f" of shape {tuple(out.shape)}" if isinstance(out, Tensor) else "")
            raise AssertionError(f"the layer must return a row for each of {flow.num_dst} destinations, got {got}")
        return out

    def double(self) -> nn.Module:
        """Return the layer in float64."""
        return copy.deepcopy(self.layer).double()

    def on(self, graph: Graph) -> LayerCase:
        """Return the case on another graph."""
        return LayerCase(self.layer, graph)

    def cut(self, src: list[int], dst: list[int], num_nodes: int) -> LayerCase:
        """Return the case on a small graph of other edges, with the first rows of all columns."""
        at = torch.arange(len(src)) % max(self.graph.num_edges, 1)
        nodes = torch.arange(num_nodes) % max(self.graph.num_nodes, 1)
        if src and not self.graph.num_edges:
            raise Skipped("the graph has no edges")
        edata = {n: c[at] for n, c in dense(self.graph.edata).items()}
        ndata = {n: c[nodes] for n, c in dense(self.graph.ndata).items()}
        return self.on(Graph.from_edges(src, dst, num_nodes=num_nodes, edata=edata, ndata=ndata))

    def parts(self) -> Parts:
        # a layer reads its columns, so they stay
        return all_parts(self.graph, [])._replace(columns=[])

    def ends(self) -> tuple[Ints, Ints]:
        src, dst = self.graph.edges()
        return src.numpy(), dst.numpy()

    def smaller(self, parts: Parts) -> LayerCase:
        names = list(dict.fromkeys([*dense(self.graph.edata), *dense(self.graph.ndata)]))
        return self.on(smaller_graph(self.graph, parts._replace(columns=names)))

    def code(self, check: str) -> list[str]:
        width = self.h.shape[1]
        layer = " ".join(repr(self.layer).split())
        last = f"check_layer(layer, {width}, graph=graph, checks=[{check!r}])"
        return [graph_code(self.graph), f"layer = {layer}", last]


def layer_graph(in_features: int, edge_columns: Mapping[str, Any], graph: Graph | None) -> Graph:
    """Return the graph of the arguments of ``check_layer``, with rows of nodes and columns of edges."""
    if graph is None:
        random = np.random.default_rng(0)
        src, dst = random.integers(0, 9, (2, 24))
        # a node of many edges, a parallel edge, a self-loop, and nodes without edges
        src, dst = np.append(src, [1, 2, 3, 4, 1, 7]), np.append(dst, [0, 0, 0, 0, 0, 7])
        graph = Graph.from_edges(src, dst, num_nodes=11)
    torch_random = torch.Generator().manual_seed(0)
    edata = dense(graph.edata)
    for name, column in edge_columns.items():
        if callable(column):
            edata[name] = column(graph.num_edges)
        else:
            edata[name] = torch.rand(graph.num_edges, *column, generator=torch_random)
    ready = dense(graph.ndata).get(ROWS)
    if ready is None or ready.shape[1:] != (in_features,):
        ready = torch.randn(graph.num_nodes, in_features, generator=torch_random).mul(8).round() / 8  # short in print
    ndata = {**dense(graph.ndata), ROWS: ready.float()}
    return Graph.from_edges(*graph.edges(), num_nodes=graph.num_nodes, edata=edata, ndata=ndata)
