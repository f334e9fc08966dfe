"""Graphs from and to networkx and igraph, whose nodes and edges have attributes; and NodeFlows as
networkx graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.arrays import of_objects
from nodeflow._base.calls import checked
from nodeflow._base.checks import Ints, _All, describe
from nodeflow._rows.columns import as_column, as_type, column_of_numbers
from nodeflow._rows.rows import whole_column
from nodeflow.convert._columns import check_one_type, chosen, library
from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame, Graph

if TYPE_CHECKING:
    import igraph
    import networkx

Attributes: TypeAlias = Sequence[str] | Mapping[str, torch.dtype | None] | _All
"""Attributes that become columns: names, a dict from names to types of numbers, or ALL."""

_Part: TypeAlias = tuple[list[Any], dict[str, list[Any]]]
"""Keys of nodes, or of the two ends of edges, with attributes."""


@checked
def from_networkx(
    graph: networkx.Graph,
    *,
    node_columns: Attributes = (),
    edge_columns: Attributes = (),
    keys_are_ids: bool = False,
) -> tuple[Graph, list[Any]]:
    """Return the graph of a networkx graph, and the networkx node of every id.

    Ids follow networkx's order of nodes and edges. An undirected edge becomes two edges, one each
    way, next to each other (a self-loop becomes one).

    Args:
        graph: any networkx graph; multigraphs keep their repeated edges.
        node_columns, edge_columns: attributes, numbers or lists of numbers, that become columns. A
            list of names, a dict from names to types, ``{"x": torch.float64}``, or
            ``nodeflow.ALL``. Without a type, Python's floats become float32, or float64 where one
            is above 2**24, as times are, or is not whole and above 2**14; whole numbers become
            int64 and bools bool. A type must have all numbers; only floats are rounded.
        keys_are_ids: whether the keys of a directed multigraph are the ids of its edges, as
            ``to_networkx`` writes them. networkx lists edges source by source, so their order is
            not that of the ids.

    Raises KeyError for an attribute that a node (or edge) does not have, TypeError for values that
    are no numbers, ValueError for numbers that the type does not have, for integers beside decimals
    that floats would round, and for ``keys_are_ids`` without keys that are 0..num_edges-1.

    >>> import networkx
    >>> from_networkx(networkx.path_graph(["a", "b"]))
    (Graph(2 nodes, 2 edges), ['a', 'b'])
    """
    if not hasattr(graph, "nodes") or not hasattr(graph, "is_directed"):
        raise TypeError(f"graph must be a networkx graph, got {describe(graph)}")
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    pairs = [(u, v) for u, v in graph.edges()]
    src, dst, edge = _as_directed(
        [(number[u], number[v]) for u, v in pairs], directed=graph.is_directed()
    )
    edge_ids = _keys(graph) if keys_are_ids else None
    if edge_ids is not None:
        edge = np.argsort(edge_ids)  # row e of a column belongs to edge id e
    ndata = _of_networkx(node_columns, "node", [graph.nodes[node] for node in nodes], nodes)
    edata = _of_networkx(edge_columns, "edge", [own for _, _, own in graph.edges(data=True)], pairs)
    edata = {name: column[edge] for name, column in edata.items()}
    return Graph.from_edges(
        src, dst, num_nodes=len(nodes), edge_ids=edge_ids, ndata=ndata, edata=edata
    ), nodes


@checked
def to_networkx(
    graph: Graph | NodeFlow,
    *,
    node_columns: Sequence[str] | _All = (),
    edge_columns: Sequence[str] | _All = (),
) -> networkx.MultiDiGraph:
    """Return a networkx MultiDiGraph of a graph or of a NodeFlow.

    Of a ``Graph``: nodes 0..num_nodes-1, and edges in the order of their ids, with the edge id as
    key.

    Of a ``NodeFlow``: a node ``(layer, local id)`` for every node of a layer, with the attributes
    ``layer`` and, where there are any, ``parent_nid`` and ``context``. An edge for every edge of a
    flow, with its local id as key and the attributes ``parent_eid`` (where there are any; -1 for an
    edge without) and ``weight``, the estimator weight.

    Args:
        graph: a ``Graph``, or a ``NodeFlow`` such as a batch.
        node_columns, edge_columns: names of columns that become attributes; ``nodeflow.ALL`` for
            all. One number per row becomes a number, several become a list, as ``from_networkx``
            reads them. Of a NodeFlow each layer or flow gives those columns that it has, and an
            edge column named ``weight`` replaces the estimator weight.

    Raises KeyError for an unknown column, TypeError for an object of another class, ImportError
    without networkx.

    >>> from nodeflow import FullSampler
    >>> graph = Graph.from_edges([0, 1], [1, 2], edata={"time": np.array([5, 6])})
    >>> list(to_networkx(graph, edge_columns=["time"]).edges(data=True))
    [(0, 1, {'time': 5}), (1, 2, {'time': 6})]
    >>> list(to_networkx(FullSampler(graph, 1)([2])).edges(data=True))
    [((0, 1), (1, 0), {'parent_eid': 1, 'weight': 1.0})]
    """
    result: networkx.MultiDiGraph = library("networkx", "networkx").MultiDiGraph()
    check_one_type(graph if isinstance(graph, Graph) else graph.parent, "to_networkx")
    if isinstance(graph, Graph):
        ends = [end.tolist() for end in graph.edges()]
        nodes: list[_Part] = [
            ([range(graph.num_nodes)], _lists_of(graph.ndata, node_columns, "node"))
        ]
        edges: list[_Part] = [(ends, _lists_of(graph.edata, edge_columns, "edge"))]
    else:
        nodes, edges = _parts(graph, node_columns, edge_columns)
    for (keys,), attributes in nodes:
        result.add_nodes_from(zip(keys, _by_row(attributes, len(keys)), strict=True))
    for (src, dst), attributes in edges:
        result.add_edges_from(
            zip(src, dst, range(len(src)), _by_row(attributes, len(src)), strict=True)
        )
    return result


def _keys(graph: networkx.Graph) -> list[int]:
    if not (graph.is_directed() and graph.is_multigraph()):
        raise ValueError(
            "keys_are_ids=True needs a MultiDiGraph, whose edges have keys, got "
            f"{type(graph).__name__}; leave it out"
        )
    keys = [key for _, _, key in graph.edges(keys=True)]
    if (wrong := next((key for key in keys if type(key) is not int), None)) is not None:
        raise ValueError(
            "keys_are_ids=True needs keys that are the numbers 0..num_edges-1, got "
            f"{describe(wrong)}"
        )
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
        ends = [
            [(k, row) for row in end.tolist()] for k, end in zip((i, j), flow.edges(), strict=True)
        ]
        edges.append((ends, attributes))
    return nodes, edges


def _lists(
    frames: Sequence[Frame], names: Sequence[str] | _All, where: str, what: str
) -> list[dict[str, list[Any]]]:
    """Return those of the columns that each frame has; KeyError for one that none has."""
    names = chosen(names, {name: None for frame in frames for name in frame}, f"{what}_columns")
    for name in names:
        if not any(name in frame for frame in frames):
            raise KeyError(f"no {where} has a column {name!r}")
    return [_lists_of(frame, [name for name in names if name in frame], what) for frame in frames]


def _by_row(attributes: dict[str, list[Any]], count: int) -> Iterator[dict[str, Any]]:
    return ({name: values[row] for name, values in attributes.items()} for row in range(count))


def _of_networkx(
    names: Attributes, what: str, attributes: list[dict[str, Any]], keys: list[Any]
) -> dict[str, Tensor]:
    def values_of(name: str) -> list[Any]:
        if (
            lacking := next(
                (key for key, own in zip(keys, attributes, strict=True) if name not in own), None
            )
        ) is None:
            return [own[name] for own in attributes]
        raise KeyError(
            f"every {what} must have the attribute {name!r}, but {what} {lacking!r} has none"
        )

    every = {name: None for own in attributes for name in own}
    return _as_columns(names, what, values_of, keys, every)


def from_igraph(
    graph: igraph.Graph, *, node_columns: Attributes = (), edge_columns: Attributes = ()
) -> Graph:
    """Return the graph of an igraph graph: vertex ids are node ids, and edge ids stay.

    An undirected edge becomes two edges, as in ``from_networkx``. Names of vertices are text, which
    columns do not hold: ``NodeNames(graph.vs["name"])`` translates them to ids and back.

    Args:
        graph: directed or undirected; repeated edges and self-loops stay.
        node_columns, edge_columns: attributes that become columns, as for ``from_networkx``.

    Raises KeyError for an unknown attribute, TypeError for values that are no numbers and for other
    objects, ValueError for numbers as ``from_networkx`` does.

    >>> import igraph
    >>> from_igraph(igraph.Graph(3, [(0, 1), (1, 2)]))
    Graph(3 nodes, 4 edges)
    """
    if not hasattr(graph, "get_edgelist"):
        raise TypeError(f"graph must be an igraph.Graph, got {describe(graph)}")
    src, dst, edge = _as_directed(graph.get_edgelist(), directed=graph.is_directed())
    ndata = _of_igraph(graph.vs, node_columns, "node")
    edata = {
        name: column[edge] for name, column in _of_igraph(graph.es, edge_columns, "edge").items()
    }
    return Graph.from_edges(src, dst, num_nodes=graph.vcount(), ndata=ndata, edata=edata)


@checked
def to_igraph(
    graph: Graph,
    *,
    node_columns: Sequence[str] | _All = (),
    edge_columns: Sequence[str] | _All = (),
) -> igraph.Graph:
    """Return a directed igraph graph with the same ids of nodes and edges.

    Args:
        graph: the graph.
        node_columns, edge_columns: names of columns that become attributes, as for ``to_networkx``.

    Raises KeyError for an unknown column, ImportError without igraph.

    >>> graph = Graph.from_edges([0, 0], [1, 1], edata={"time": np.array([5, 6])})
    >>> to_igraph(graph, edge_columns=["time"]).es["time"]
    [5, 6]
    """
    check_one_type(graph, "to_igraph")
    return library("igraph", "igraph").Graph(
        n=graph.num_nodes,
        edges=list(zip(*(end.tolist() for end in graph.edges()), strict=True)),
        directed=True,
        vertex_attrs=_lists_of(graph.ndata, node_columns, "node"),
        edge_attrs=_lists_of(graph.edata, edge_columns, "edge"),
    )


def _of_igraph(sequence: Any, names: Attributes, what: str) -> dict[str, Tensor]:
    def values_of(name: str) -> Sequence[Any]:
        if name not in (held := sequence.attributes()):
            raise KeyError(
                f"no {what} attribute {name!r}; the graph has "
                f"{', '.join(map(repr, held)) or 'none'}"
            )
        return cast("list[Any]", sequence[name])

    return _as_columns(names, what, values_of, range(len(sequence)), sequence.attributes())


def _as_columns(
    names: Attributes,
    what: str,
    values_of: Callable[[str], Sequence[Any]],
    keys: Iterable[Any],
    every: Iterable[str],
) -> dict[str, Tensor]:
    """Return attributes of all nodes or all edges (``what``) as columns; ``keys`` name these in
    errors.
    """
    types = (
        names
        if isinstance(names, Mapping)
        else dict.fromkeys(chosen(names, every, f"{what}_columns"))
    )
    return {
        name: _column(name, values_of(name), keys, what, dtype) for name, dtype in types.items()
    }


def _column(
    name: str, values: Sequence[Any], keys: Iterable[Any], what: str, dtype: torch.dtype | None
) -> Tensor:
    title = f"the {what} attribute {name!r}"
    try:
        if len(values) and isinstance(values[0], (np.ndarray, Tensor)):
            return as_type(
                _stacked([as_column(value, title).cpu() for value in values], title), dtype, title
            )
        return column_of_numbers(values, title, dtype)
    except (TypeError, ValueError, RuntimeError):
        words = f"{title} must hold numbers, or lists of numbers of one length"
        for key, value in zip(keys, values, strict=True):
            if not _is_like(value, values[0]):
                raise TypeError(f"{words}, but {what} {key!r} has {describe(value)}") from None
        raise


def _stacked(rows: Sequence[Tensor], title: str) -> Tensor:
    if len({row.dtype for row in rows}) == 1:
        return torch.stack(list(rows))
    # numpy finds a type for all of them, and numbers that it would round are refused
    return as_column(of_objects([row.numpy() for row in rows], title), title)


def _is_like(value: Any, first: Any) -> bool:
    """Whether a value consists of numbers, as many as the first value."""
    array, other = (np.asarray(v, dtype=object) for v in (value, first))
    return array.shape == other.shape and all(
        isinstance(v, (bool, int, float, complex, np.generic)) for v in array.flat
    )


def _lists_of(frame: Frame, names: Sequence[str] | _All, what: str) -> dict[str, list[Any]]:
    """Return columns of nodes or edges (``what``) as lists with a number, or a list of numbers, per
    row.
    """
    columns = {
        name: whole_column(frame[name]).detach() for name in chosen(names, frame, f"{what}_columns")
    }
    return {
        name: (c if c.layout == torch.strided else c.to_dense()).tolist()
        for name, c in columns.items()
    }


def _as_directed(ends: Sequence[tuple[int, int]], *, directed: bool) -> tuple[Ints, Ints, Ints]:
    """Return edges as directed ones: ``(src, dst, position in ends)``, the two of an undirected
    edge side by side.
    """
    src, dst = np.array(ends, np.int64).reshape(-1, 2).T
    copies = np.where(directed | (src == dst), 1, 2)
    edge = np.repeat(np.arange(len(src)), copies)
    turned = np.concatenate([np.zeros(1, bool), edge[1:] == edge[:-1]])[: len(edge)]
    return np.where(turned, dst[edge], src[edge]), np.where(turned, src[edge], dst[edge]), edge
