"""A layer on a graph, with rows of its nodes and columns of its edges; the flows that checks make
of it.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import describe
from nodeflow.flow import Flow, NodeFlow, create_node_flow, flow_from_edges
from nodeflow.graph import Graph, Schema, with_frames
from nodeflow.testing._graphs import dense, graph_code, graph_like
from nodeflow.testing._run import Skipped, Small

# the node column of the rows that go into a layer
ROWS = "h"


class LayerCase:
    """A layer, a graph with the node column "h" and the edge columns that the layer reads."""

    # neighbours of the first node of small graphs, beside random ones
    largest = 3
    multi_edges = True

    def __init__(self, layer: nn.Module, graph: Graph) -> None:
        self.layer = layer
        self.graph = graph

    @property
    def h(self) -> Tensor:
        """The rows of the nodes, float32 ``[num_nodes, in_features]``."""
        rows: Tensor = self.graph.ndata[ROWS]
        return rows.clone()

    def flow(
        self,
        *,
        weight: Tensor | None = None,
        order: Tensor | None = None,
        kind: torch.dtype | None = None,
    ) -> Flow:
        """Return the flow of all edges of the graph, from all nodes to all nodes.

        Args:
            weight: estimator weights by edge id, ``[num_edges]``; None: 1.
            order: the edge ids in another order; None: ascending.
            kind: type of the columns of floats; None: as they are.
        """
        if order is None:
            ids = torch.arange(self.graph.num_edges)
        else:
            ids = order
        src, dst = (end[ids] for end in self.graph.edges())
        flow = flow_from_edges(
            src,
            dst,
            num_src=self.graph.num_nodes,
            num_dst=self.graph.num_nodes,
            parent_eid=ids,
            weight=None if weight is None else weight[ids],
        )
        nodes = np.arange(self.graph.num_nodes)
        # whose types the layers have
        batch = create_node_flow([flow], [nodes, nodes], parent=self.graph)
        self.copy_columns(batch)
        return batch.flows[0] if kind is None else with_floats(batch.flows[0], kind)

    def copy_columns(self, batch: NodeFlow) -> None:
        """Copy the columns of the graph, of its types and relations to a batch, but for the
        rows.
        """
        graph = self.graph
        ndata = {*dense(graph.ndata)}.union(*(dense(p.data) for p in graph.nodes.values()))
        edata = {*dense(graph.edata)}.union(*(dense(p.data) for p in graph.relations.values()))
        batch.copy_from_parent(sorted(ndata - {ROWS}), sorted(edata))

    def run(self, flow: Flow, h: Tensor, layer: nn.Module | None = None) -> Tensor:
        """Return the rows of the destinations."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a layer may say that it ignores weights
            out = (layer or self.layer)(flow, h)
        if not isinstance(out, Tensor) or out.ndim < 1 or out.shape[0] != flow.num_dst:
            raise AssertionError(
                f"the layer must return a row for each of {flow.num_dst} destinations, got "
                f"{describe(out)}"
            )
        return out

    def double(self) -> nn.Module:
        """Return the layer in float64."""
        return copy.deepcopy(self.layer).double()

    def run_double(self, order: Tensor | None = None) -> Tensor:
        """Return the rows of all nodes in float64; ``order`` as of ``flow``."""
        return self.run(self.flow(order=order, kind=torch.float64), self.h.double(), self.double())

    def cut(self, src: Sequence[int], dst: Sequence[int], num_nodes: int) -> LayerCase:
        """Return the case on a small graph of other edges.

        Each of several types has ``num_nodes`` nodes, and each relation the edges.
        """
        if src and not self.graph.num_edges:
            raise Skipped("the graph has no edges")
        ends = np.array([src, dst], np.int64).reshape(2, -1)
        kinds = np.arange(len(src))
        return LayerCase(self.layer, graph_like(self.graph, ends, np.arange(num_nodes), kinds))

    def small(self, graph: Small) -> LayerCase:
        return self.cut(graph.src, graph.dst, graph.num_nodes)

    def code(self, check: str) -> list[str]:
        width = self.h.shape[1]
        layer = " ".join(repr(self.layer).split())
        return [
            graph_code(self.graph),
            f"layer = {layer}",
            f"check_layer(layer, {width}, graph=graph, checks=[{check!r}])",
        ]


def with_floats(flow: Flow, kind: torch.dtype) -> Flow:
    """Return the flow, whose columns of floats become those of a type."""
    for frame in (flow.data, *flow.typed_frames().values()):
        frame.update({n: c.to(kind) for n, c in frame.items() if c.is_floating_point()})
    return flow


def layer_graph(
    in_features: int, edge_columns: Mapping[str, Any], graph: Graph | None, schema: Schema | None
) -> Graph:
    """Return the graph of the arguments of ``check_layer``, with rows of nodes and columns of
    edges.
    """
    if graph is None:
        like = schema or Schema.of_one_type(0, 0)
        random = np.random.default_rng(0)
        edges = {}
        for relation in like.relations:
            src, dst = random.integers(0, 9, (2, 24))
            # a node of many edges, a parallel edge, a self-loop, and nodes without edges
            edges[relation] = np.append(src, [1, 2, 3, 4, 1, 7]), np.append(dst, [0, 0, 0, 0, 0, 7])
        graph = Graph.typed(dict.fromkeys(like.nodes, 11), edges)
    torch_random = torch.Generator().manual_seed(0)
    columns = {}
    for name, column in edge_columns.items():
        if callable(column):
            columns[name] = column(graph.num_edges)
        else:
            columns[name] = torch.rand(graph.num_edges, *column, generator=torch_random)
    ready = dense(graph.ndata).get(ROWS)
    if ready is None or ready.shape[1:] != (in_features,):
        # short in print
        ready = torch.randn(graph.num_nodes, in_features, generator=torch_random).mul(8).round() / 8
    result = with_frames(
        graph, {**dense(graph.ndata), ROWS: ready.float()}, {**dense(graph.edata), **columns}
    )
    for part in result.relations.values():  # where layers of one relation read them
        part.data.update(
            {name: column[part.ids.start : part.ids.stop] for name, column in columns.items()}
        )
    return result
