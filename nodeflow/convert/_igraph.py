"""Graphs from and to igraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from nodeflow._base.checks import _All, describe
from nodeflow.convert._columns import Attributes, as_columns, as_directed, library, lists_of
from nodeflow.graph import Graph

if TYPE_CHECKING:
    import igraph


def from_igraph(graph: igraph.Graph, *, node_columns: Attributes = (), edge_columns: Attributes = ()) -> Graph:
    """Return the graph of an igraph graph: vertex ids are node ids, and edge ids stay.

    An undirected edge becomes two edges, one each way, next to each other (a self-loop becomes one). Names of vertices
    are text, which columns do not hold: ``NodeNames(graph.vs["name"])`` translates them to ids and back.

    Args:
        graph: directed or undirected; repeated edges and self-loops stay.
        node_columns, edge_columns: attributes that become columns: names, or a dict from names to types, as for
            ``from_networkx``.

    Raises KeyError for an unknown attribute, TypeError for values that are no numbers and for other objects.

    >>> import igraph
    >>> from_igraph(igraph.Graph(3, [(0, 1), (1, 2)]))
    Graph(3 nodes, 4 edges)
    """
    if not hasattr(graph, "get_edgelist"):
        raise TypeError(f"graph must be an igraph.Graph, got {describe(graph)}")
    src, dst, edge = as_directed(graph.get_edgelist(), directed=graph.is_directed())
    ndata = _columns(graph.vs, node_columns, "node")
    edata = {name: column[edge] for name, column in _columns(graph.es, edge_columns, "edge").items()}
    return Graph.from_edges(src, dst, num_nodes=graph.vcount(), ndata=ndata, edata=edata)


def to_igraph(
    graph: Graph, *, node_columns: Sequence[str] | _All = (), edge_columns: Sequence[str] | _All = ()
) -> igraph.Graph:
    """Return a directed igraph graph with the same ids of nodes and edges.

    Args:
        graph: the graph.
        node_columns, edge_columns: names of columns that become attributes, numbers or lists of numbers;
            ``nodeflow.ALL`` for all.

    Raises KeyError for an unknown column, ImportError without igraph; its message has the command that installs it.

    >>> graph = Graph.from_edges([0, 0], [1, 1], edata={"time": [5, 6]})
    >>> to_igraph(graph, edge_columns=["time"]).es["time"]
    [5, 6]
    """
    return library("igraph", "igraph").Graph(
        n=graph.num_nodes,
        edges=list(zip(*(end.tolist() for end in graph.edges()), strict=True)),
        directed=True,
        vertex_attrs=lists_of(graph.ndata, node_columns, "node"),
        edge_attrs=lists_of(graph.edata, edge_columns, "edge"),
    )


def _columns(sequence: Any, names: Attributes, what: str) -> dict[str, Tensor]:
    def values_of(name: str) -> Sequence[Any]:
        if name not in (held := sequence.attributes()):
            raise KeyError(f"no {what} attribute {name!r}; the graph has {', '.join(map(repr, held)) or 'none'}")
        values: list[Any] = sequence[name]
        return values

    return as_columns(names, what, values_of, range(len(sequence)))
