"""Graphs from and to other libraries' graphs. Each library is imported only by the functions that need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow.graph import Graph

__all__ = ["from_dgl", "from_networkx", "from_pyg", "from_scipy", "to_networkx", "to_pyg", "to_scipy"]


def from_scipy(matrix: Any, *, weight: str | None = None, ndata: dict[str, Any] | None = None) -> Graph:
    """Return the graph of a square scipy sparse matrix, in which entry (i, j) is the edge i -> j.

    Edge ids follow the stored entries (row by row in a CSR matrix). Entries stored several times are several edges, and
    stored zeros are edges too (but not those that fill up the blocks of a BSR matrix).

    Args:
        matrix: ``[num_nodes, num_nodes]``.
        weight: name of an edge column that receives the entries; None drops them.
        ndata: node columns.

    Raises TypeError for what is no scipy sparse matrix, ValueError for one that is not square.

    >>> from_scipy(scipy.sparse.csr_array([[0, 1], [1, 0]]))
    Graph(2 nodes, 2 edges)
    """
    if not scipy.sparse.issparse(matrix):
        raise TypeError(f"matrix must be a scipy sparse matrix, got {describe(matrix)}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
    coo = matrix.tocoo()  # CSR would add up repeated entries
    if matrix.format == "bsr":  # its blocks are filled up with zeros that nobody stored
        coo = scipy.sparse.coo_array(coo)
        coo.eliminate_zeros()
    edata = None if weight is None else {weight: coo.data.copy()}
    return Graph.from_edges(coo.row, coo.col, num_nodes=coo.shape[0], ndata=ndata, edata=edata)


def to_scipy(graph: Graph, *, weight: str | None = None) -> Any:
    """Return the adjacency as a scipy COO array ``[num_nodes, num_nodes]``: entry (i, j) is the edge i -> j.

    Entries are in edge id order, repeated edges stay apart; they are a copy of the edge column ``weight``, or ones
    (float32). Raises ValueError for a column with more than one number per edge.
    """
    src, dst = (end.numpy() for end in graph.edges())
    if weight is None:
        values = np.ones(graph.num_edges, np.float32)
    else:
        column = graph.edata[weight]
        if column.ndim != 1:
            raise ValueError(f"weight must be a column with one number per edge, {weight!r} is {tuple(column.shape)}")
        # a copy, because a matrix is easily changed in place, and the graph's column must not be
        values = column.detach().cpu().numpy().copy()
    return scipy.sparse.coo_array((values, (src, dst)), shape=(graph.num_nodes, graph.num_nodes))


def from_networkx(
    graph: Any, *, node_columns: Sequence[str] = (), edge_columns: Sequence[str] = ()
) -> tuple[Graph, list[Any]]:
    """Return the graph of a networkx graph, and the networkx node of every id.

    Ids follow networkx's order of nodes and edges. An undirected edge becomes two edges, one each way, next to each
    other (a self-loop becomes one).

    Args:
        graph: any networkx graph; multigraphs keep their repeated edges.
        node_columns, edge_columns: attributes, numbers or lists of numbers, that become columns; every node (or edge)
            must have them, else KeyError.

    >>> import networkx
    >>> from_networkx(networkx.path_graph(["a", "b"]))
    (Graph(2 nodes, 2 edges), ['a', 'b'])
    """
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    ends, attributes, keys = [], [], []
    for u, v, data in graph.edges(data=True):
        pairs = [(u, v)] if graph.is_directed() or u == v else [(u, v), (v, u)]
        ends += [(number[a], number[b]) for a, b in pairs]
        attributes += [data] * len(pairs)
        keys += [(u, v)] * len(pairs)
    src, dst = np.array(ends, np.int64).reshape(-1, 2).T
    ndata = {name: _attribute(name, [graph.nodes[node] for node in nodes], nodes, "node") for name in node_columns}
    edata = {name: _attribute(name, attributes, keys, "edge") for name in edge_columns}
    return Graph.from_edges(src, dst, num_nodes=len(nodes), ndata=ndata, edata=edata), nodes


def to_networkx(graph: Graph) -> Any:
    """Return a networkx MultiDiGraph with nodes 0..num_nodes-1; edges are keyed by their edge id, columns left out.

    Raises ImportError, with the line that installs it, without networkx.
    """
    try:
        import networkx
    except ImportError:
        raise ImportError("networkx is needed; install it with: pip install networkx") from None
    found = networkx.MultiDiGraph()
    found.add_nodes_from(range(graph.num_nodes))
    src, dst = graph.edges()
    found.add_edges_from(zip(src.tolist(), dst.tolist(), range(graph.num_edges), strict=True))
    return found


def from_pyg(data: Any) -> Graph:
    """Return the graph of a PyTorch Geometric ``Data`` object (one node type, one edge type).

    Tensors with a row per node or per edge become columns under their own names (``x``, ``y``, ``edge_attr``, ...);
    others, such as further lists of node ids (``edge_label_index``), stay behind.
    Raises ValueError for an object without ``edge_index``.
    """
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"data must have an edge_index, got {describe(data)}")
    src, dst = data.edge_index
    num_nodes = int(data.num_nodes)
    ndata = {name: data[name] for name in data.node_attrs() if _has_rows(data[name], num_nodes)}
    edata = {name: data[name] for name in data.edge_attrs() if _has_rows(data[name], len(src)) and name != "edge_index"}
    return Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)


def to_pyg(graph: Graph) -> Any:
    """Return a PyTorch Geometric ``Data`` object with ``edge_index`` in edge id order and all columns.

    Raises ImportError, with the line that installs it, without PyTorch Geometric, and ValueError for column names that
    ``Data`` cannot hold: the same for nodes and edges, ``edge_index`` or ``num_nodes``.
    """
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise ImportError("PyTorch Geometric is needed; install it with: pip install torch-geometric") from None
    columns = {**graph.ndata, **graph.edata}
    if len(columns) < len(graph.ndata) + len(graph.edata):
        both = sorted(set(graph.ndata) & set(graph.edata))
        raise ValueError(f"a node and an edge column share a name, which Data cannot hold: {both}")
    taken = sorted({"edge_index", "num_nodes"} & set(columns))
    if taken:
        raise ValueError(f"Data keeps the names {taken} for itself; give the columns of these names other ones first")
    return Data(edge_index=torch.stack(graph.edges()), num_nodes=graph.num_nodes, **columns)


def from_dgl(graph: Any) -> Graph:
    """Return the graph of a homogeneous DGL graph, with its node and edge columns; edge ids stay."""
    src, dst = graph.edges(order="eid")
    ndata, edata = dict(graph.ndata), dict(graph.edata)
    return Graph.from_edges(src, dst, num_nodes=graph.num_nodes(), ndata=ndata, edata=edata)


def _attribute(name: str, attributes: list[dict[str, Any]], keys: list[Any], what: str) -> Tensor:
    """Return an attribute of all nodes or edges as a column."""
    missing = next((key for key, data in zip(keys, attributes, strict=True) if name not in data), None)
    if missing is not None:
        raise KeyError(f"every {what} must have the attribute {name!r}, but {what} {missing!r} has none")
    return torch.tensor([data[name] for data in attributes], device="cpu")


def _has_rows(value: Any, count: int) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0 and len(value) == count
