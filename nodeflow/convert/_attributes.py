"""Graphs from and to networkx and igraph, whose nodes and edges have attributes; and NodeFlows as
networkx graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.arrays import of_objects
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import describe
from nodeflow._core.rows.columns import as_column, as_type, column_of_numbers
from nodeflow._core.rows.rows import whole_column
from nodeflow.convert._columns import Columns, Names, chosen, library
from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame, Graph

if TYPE_CHECKING:
    import igraph
    import networkx

_Lists: TypeAlias = dict[str, list[Any]]
"""A number, or a list of numbers, of each node or edge, by column."""
Attributes: TypeAlias = Names | Mapping[str, torch.dtype | None]
"""Attributes that become columns: names, a dict from names to types of numbers, or ALL."""


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
    are no numbers, ValueError for lists of several lengths, for numbers that the type does not
    have, for integers beside decimals that floats would round, and for ``keys_are_ids`` without
    keys that are 0..num_edges-1.

    >>> import networkx
    >>> from_networkx(networkx.path_graph(["a", "b"]))
    (Graph(2 nodes, 2 edges), ['a', 'b'])
    """
    if not hasattr(graph, "nodes") or not hasattr(graph, "is_directed"):
        raise TypeError(f"graph must be a networkx graph, got {describe(graph)}")
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    pairs = list(graph.edges())
    attributes = [attributes for _, _, attributes in graph.edges(data=True)]
    of_nodes = [graph.nodes[node] for node in nodes]
    # networkx lists edges in one order, with attributes or without
    built = _graph_of(
        [(number[u], number[v]) for u, v in pairs],
        len(nodes),
        _of_networkx(node_columns, "node", of_nodes, nodes),
        _of_networkx(edge_columns, "edge", attributes, pairs),
        directed=graph.is_directed(),
        edge_ids=_keys(graph) if keys_are_ids else None,
    )
    return built, nodes


@checked
def to_networkx(
    graph: Graph | NodeFlow,
    *,
    node_columns: Names = (),
    edge_columns: Names = (),
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
    whole = graph if isinstance(graph, Graph) else graph.parent
    if whole is not None:
        whole.schema.check_one_type("to_networkx")
    if isinstance(graph, Graph):
        nodes = range(graph.num_nodes)
        src, dst = (end.tolist() for end in graph.edges())
        _add_nodes(result, nodes, _lists_of(graph.ndata, node_columns, "node"))
        _add_edges(result, src, dst, _lists_of(graph.edata, edge_columns, "edge"))
    else:
        _add_batch(result, graph, node_columns, edge_columns)
    return result


def _keys(graph: networkx.Graph) -> list[int]:
    if not (graph.is_directed() and graph.is_multigraph()):
        raise ValueError(
            "keys_are_ids=True needs a MultiDiGraph, whose edges have keys, got "
            f"{type(graph).__name__}; leave it out"
        )
    keys = [key for _, _, key in graph.edges(keys=True)]
    for key in keys:
        if type(key) is not int:
            raise ValueError(
                "keys_are_ids=True needs keys that are the numbers 0..num_edges-1, got "
                f"{describe(key)}"
            )
    return keys


def _add_batch(
    result: networkx.MultiDiGraph,
    batch: NodeFlow,
    node_columns: Names,
    edge_columns: Names,
) -> None:
    """Add the nodes of every layer and the edges of every flow."""
    flows = dict(batch.flows.items())
    of_layers = _lists([layer.data for layer in batch.layers], node_columns, "layer", "node")
    of_flows = _lists([flow.data for flow in flows.values()], edge_columns, "flow", "edge")
    keys = []
    for i, (layer, columns) in enumerate(zip(batch.layers, of_layers, strict=True)):
        attributes: _Lists = {"layer": [i] * layer.num_nodes}
        if layer.has_parent:
            attributes["parent_nid"] = layer.parent_nid.tolist()
        if layer.context is not None:
            attributes["context"] = layer.context.tolist()
        keys.append([(i, row) for row in range(layer.num_nodes)])
        _add_nodes(result, keys[i], attributes | columns)
    for ((i, j), flow), columns in zip(flows.items(), of_flows, strict=True):
        if flow.has_parent:
            attributes = {"parent_eid": flow.parent_eid.tolist()}
        else:
            attributes = {}
        attributes["weight"] = flow.weight.tolist()
        src, dst = (end.tolist() for end in flow.edges())
        ends = [keys[i][row] for row in src], [keys[j][row] for row in dst]
        _add_edges(result, *ends, attributes | columns)


def _add_nodes(result: networkx.MultiDiGraph, keys: Sequence[Any], attributes: _Lists) -> None:
    rows = _by_row(attributes, len(keys))
    result.add_nodes_from(zip(keys, rows, strict=True))


def _add_edges(
    result: networkx.MultiDiGraph,
    src: Sequence[Any],
    dst: Sequence[Any],
    attributes: _Lists,
) -> None:
    count = len(src)
    result.add_edges_from(zip(src, dst, range(count), _by_row(attributes, count), strict=True))


def _lists(frames: Sequence[Frame], names: Names, where: str, what: str) -> list[_Lists]:
    """Return those of the columns that each frame has; KeyError for one that none has."""
    every = dict.fromkeys(chain.from_iterable(frames))
    names = chosen(names, every, f"{what}_columns")
    for name in names:
        if name not in every:
            raise KeyError(f"no {where} has a column {name!r}")
    lists = []
    for frame in frames:
        in_frame = [name for name in names if name in frame]
        lists.append(_lists_of(frame, in_frame, what))
    return lists


def _by_row(attributes: _Lists, count: int) -> Iterator[dict[str, Any]]:
    for row in range(count):
        yield {name: values[row] for name, values in attributes.items()}


def _of_networkx(
    names: Attributes, what: str, attributes: list[dict[str, Any]], keys: list[Any]
) -> Columns:
    def values_of(name: str) -> list[Any]:
        for key, of_key in zip(keys, attributes, strict=True):
            if name not in of_key:
                raise KeyError(
                    f"every {what} must have the attribute {name!r}, but {what} {key!r} has none"
                )
        return [of_key[name] for of_key in attributes]

    return _as_columns(names, what, values_of, dict.fromkeys(chain.from_iterable(attributes)))


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
    return _graph_of(
        graph.get_edgelist(),
        graph.vcount(),
        _of_igraph(graph.vs, node_columns, "node"),
        _of_igraph(graph.es, edge_columns, "edge"),
        directed=graph.is_directed(),
    )


@checked
def to_igraph(
    graph: Graph,
    *,
    node_columns: Names = (),
    edge_columns: Names = (),
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
    graph.schema.check_one_type("to_igraph")
    src, dst = (end.tolist() for end in graph.edges())
    return library("igraph", "igraph").Graph(
        n=graph.num_nodes,
        edges=list(zip(src, dst, strict=True)),
        directed=True,
        vertex_attrs=_lists_of(graph.ndata, node_columns, "node"),
        edge_attrs=_lists_of(graph.edata, edge_columns, "edge"),
    )


def _of_igraph(sequence: Any, names: Attributes, what: str) -> Columns:
    every = sequence.attributes()

    def values_of(name: str) -> Sequence[Any]:
        if name not in every:
            known = ", ".join(map(repr, every)) or "none"
            raise KeyError(f"no {what} attribute {name!r}; the graph has {known}")
        return cast("list[Any]", sequence[name])

    return _as_columns(names, what, values_of, every)


def _as_columns(
    names: Attributes,
    what: str,
    values_of: Callable[[str], Sequence[Any]],
    every: Iterable[str],
) -> Columns:
    """Return attributes of all nodes or all edges (``what``) as columns."""
    types: Mapping[str, torch.dtype | None] = {}
    if isinstance(names, Mapping):
        types = names
    else:
        types = dict.fromkeys(chosen(names, every, f"{what}_columns"))
    columns = {}
    for name, dtype in types.items():
        title = f"the {what} attribute {name!r}"
        values = values_of(name)
        if len(values) and isinstance(values[0], (np.ndarray, Tensor)):
            # numpy finds a type for all rows, and numbers that it would round are refused
            columns[name] = as_type(as_column(of_objects(values, title), title), dtype, title)
        else:
            columns[name] = column_of_numbers(values, title, dtype)
    return columns


def _lists_of(frame: Frame, names: Names, what: str) -> _Lists:
    """Return columns of nodes or edges (``what``) as lists with a number, or a list of numbers, per
    row.
    """
    columns = {}
    for name in chosen(names, frame, f"{what}_columns"):
        column = whole_column(frame[name]).detach()
        if column.layout != torch.strided:
            column = column.to_dense()
        columns[name] = column.tolist()
    return columns


def _graph_of(
    ends: Sequence[tuple[int, int]],
    num_nodes: int,
    ndata: Columns,
    edata: Columns,
    *,
    directed: bool,
    edge_ids: list[int] | None = None,
) -> Graph:
    """Return the graph of edges, which are two each if they are not directed, side by side."""
    src, dst = np.array(ends, np.int64).reshape(-1, 2).T
    edge = np.arange(len(src))
    if not directed:
        # an edge and the one back stand side by side, and share a row of columns
        edge = np.repeat(edge, np.where(src == dst, 1, 2))
        # the second of two equal positions is the edge back
        turned = edge == np.append(-1, edge[:-1])[: len(edge)]
        forward = src[edge]
        src = np.where(turned, dst[edge], forward)
        dst = np.where(turned, forward, dst[edge])
    if edge_ids is not None:
        edge = np.argsort(edge_ids)  # row e of a column belongs to edge id e
    edata = {name: column[edge] for name, column in edata.items()}
    return Graph.from_edges(
        src, dst, num_nodes=num_nodes, edge_ids=edge_ids, ndata=ndata, edata=edata
    )
