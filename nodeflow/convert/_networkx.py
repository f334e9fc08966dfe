"""Graphs from and to networkx, and NodeFlows as networkx graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from torch import Tensor

from nodeflow._base.checks import _All, check_type, describe
from nodeflow.convert._columns import Attributes, as_columns, as_directed, chosen, library, lists_of
from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame, Graph

if TYPE_CHECKING:
    import networkx

_Part: TypeAlias = tuple[list[Any], dict[str, list[Any]]]
"""Keys of nodes, or of the two ends of edges, with attributes."""


def from_networkx(
    graph: networkx.Graph, *, node_columns: Attributes = (), edge_columns: Attributes = (), keys_are_ids: bool = False
) -> tuple[Graph, list[Any]]:
    """Return the graph of a networkx graph, and the networkx node of every id.

    Ids follow networkx's order of nodes and edges. An undirected edge becomes two edges, one each way, next to each
    other (a self-loop becomes one).

    Args:
        graph: any networkx graph; multigraphs keep their repeated edges.
        node_columns, edge_columns: attributes, numbers or lists of numbers, that become columns. A list of names, or a
            dict from names to types: ``{"x": torch.float64}``. Without a type, Python's floats become float32, whole
            numbers int64 and bools bool.
        keys_are_ids: whether the keys of a directed multigraph are the ids of its edges, as ``to_networkx`` writes
            them. networkx lists edges source by source, so their order is not that of the ids.

    Raises KeyError for an attribute that a node (or edge) does not have, TypeError for values that are no numbers,
    ValueError for ``keys_are_ids`` without keys that are 0..num_edges-1.

    >>> import networkx
    >>> from_networkx(networkx.path_graph(["a", "b"]))
    (Graph(2 nodes, 2 edges), ['a', 'b'])
    """
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    pairs = [(u, v) for u, v in graph.edges()]
    src, dst, edge = as_directed([(number[u], number[v]) for u, v in pairs], directed=graph.is_directed())
    edge_ids = _keys(graph) if keys_are_ids else None
    if edge_ids is not None:
        edge = np.argsort(edge_ids)  # row e of a column belongs to edge id e
    ndata = _columns(node_columns, "node", [graph.nodes[node] for node in nodes], nodes)
    edata = _columns(edge_columns, "edge", [own for _, _, own in graph.edges(data=True)], pairs)
    edata = {name: column[edge] for name, column in edata.items()}
    return Graph.from_edges(src, dst, num_nodes=len(nodes), edge_ids=edge_ids, ndata=ndata, edata=edata), nodes


def to_networkx(
    graph: Graph | NodeFlow, *, node_columns: Sequence[str] | _All = (), edge_columns: Sequence[str] | _All = ()
) -> networkx.MultiDiGraph:
    """Return a networkx MultiDiGraph of a graph or of a NodeFlow.

    Of a ``Graph``: nodes 0..num_nodes-1, and edges in the order of their ids, with the edge id as key.

    Of a ``NodeFlow``: a node ``(layer, local id)`` for every node of a layer, with the attributes ``layer`` and
    ``parent_nid`` (where the layer has parent nodes) and ``context`` (where there are contexts). An edge for every edge
    of a flow, with its local id as key and the attributes ``parent_eid`` (where the flow has parent edges; -1 for a
    single edge without one) and ``weight``, the estimator weight.

    Args:
        graph: a ``Graph``, or a ``NodeFlow`` such as a batch.
        node_columns, edge_columns: names of columns that become attributes; ``nodeflow.ALL`` for all. One number per
            row becomes a number, several become a list, as ``from_networkx`` reads them. Of a NodeFlow each layer or
            flow gives those columns that it has, and an edge column named ``weight`` replaces the estimator weight.

    Raises KeyError for an unknown column, TypeError for an object of another class, and ImportError without networkx;
    its message has the command that installs it.

    >>> from nodeflow import FullSampler
    >>> graph = Graph.from_edges([0, 1], [1, 2], edata={"time": np.array([5, 6])})
    >>> list(to_networkx(graph, edge_columns=["time"]).edges(data=True))
    [(0, 1, {'time': 5}), (1, 2, {'time': 6})]
    >>> list(to_networkx(FullSampler(graph, 1)([2])).edges(data=True))
    [((0, 1), (1, 0), {'parent_eid': 1, 'weight': 1.0})]
    """
    result: networkx.MultiDiGraph = library("networkx", "networkx").MultiDiGraph()
    if isinstance(graph, Graph):
        ends = [end.tolist() for end in graph.edges()]
        nodes: list[_Part] = [([range(graph.num_nodes)], lists_of(graph.ndata, node_columns, "node"))]
        edges: list[_Part] = [(ends, lists_of(graph.edata, edge_columns, "edge"))]
    else:
        check_type(graph, "graph", NodeFlow, "a Graph or a NodeFlow")
        nodes, edges = _parts(graph, node_columns, edge_columns)
    for (keys,), attributes in nodes:
        result.add_nodes_from(zip(keys, _by_row(attributes, len(keys)), strict=True))
    for (src, dst), attributes in edges:
        result.add_edges_from(zip(src, dst, range(len(src)), _by_row(attributes, len(src)), strict=True))
    return result


def _keys(graph: networkx.Graph) -> list[int]:
    if not (graph.is_directed() and graph.is_multigraph()):
        raise ValueError(
            f"keys_are_ids=True needs a MultiDiGraph, whose edges have keys, got {type(graph).__name__}; leave it out"
        )
    keys = [key for _, _, key in graph.edges(keys=True)]
    if (wrong := next((key for key in keys if type(key) is not int), None)) is not None:
        raise ValueError(f"keys_are_ids=True needs keys that are the numbers 0..num_edges-1, got {describe(wrong)}")
    return keys


def _parts(
    batch: NodeFlow, node_columns: Sequence[str] | _All, edge_columns: Sequence[str] | _All
) -> tuple[list[_Part], list[_Part]]:
    """Return the nodes of every layer and the edges of every flow."""
    nodes: list[_Part] = []
    edges: list[_Part] = []
    flows = dict(batch.flows.items())
    of_layers = _lists([layer.data for layer in batch.layers], node_columns, "layer", "node")
    of_flows = _lists([flow.data for flow in flows.values()], edge_columns, "flow", "edge")
    for i, (layer, own) in enumerate(zip(batch.layers, of_layers, strict=True)):
        attributes: dict[str, list[Any]] = {"layer": [i] * layer.num_nodes}
        if layer.has_parent:
            attributes["parent_nid"] = layer.parent_nid.tolist()
        if layer.context is not None:
            attributes["context"] = layer.context.tolist()
        nodes.append(([[(i, row) for row in range(layer.num_nodes)]], attributes | own))
    for ((i, j), flow), own in zip(flows.items(), of_flows, strict=True):
        attributes = {"parent_eid": flow.parent_eid.tolist()} if flow.has_parent else {}
        attributes |= {"weight": flow.weight.tolist(), **own}
        ends = [[(k, row) for row in end.tolist()] for k, end in zip((i, j), flow.edges(), strict=True)]
        edges.append((ends, attributes))
    return nodes, edges


def _lists(frames: Sequence[Frame], names: Sequence[str] | _All, where: str, what: str) -> list[dict[str, list[Any]]]:
    """Return those of the columns that each frame has; KeyError for one that none has."""
    names = chosen(names, {name: None for frame in frames for name in frame}, f"{what}_columns")
    for name in names:
        if not any(name in frame for frame in frames):
            raise KeyError(f"no {where} has a column {name!r}")
    return [lists_of(frame, [name for name in names if name in frame], what) for frame in frames]


def _by_row(attributes: dict[str, list[Any]], count: int) -> Iterator[dict[str, Any]]:
    return ({name: values[row] for name, values in attributes.items()} for row in range(count))


def _columns(names: Attributes, what: str, attributes: list[dict[str, Any]], keys: list[Any]) -> dict[str, Tensor]:
    def values_of(name: str) -> list[Any]:
        if (lacking := next((key for key, own in zip(keys, attributes, strict=True) if name not in own), None)) is None:
            return [own[name] for own in attributes]
        raise KeyError(f"every {what} must have the attribute {name!r}, but {what} {lacking!r} has none")

    return as_columns(names, what, values_of, keys)
