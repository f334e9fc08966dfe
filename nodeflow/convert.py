"""Graphs from and to other libraries' graphs. Each library is imported only by the functions that need it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import _All, describe
from nodeflow._base.types import ColumnsLike
from nodeflow._rows.rows import whole_column
from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame, Graph

if TYPE_CHECKING:
    import dgl
    import networkx
    import scipy.sparse
    from torch_geometric.data import Data

__all__ = ["from_dgl", "from_networkx", "from_pyg", "from_scipy", "to_networkx", "to_pyg", "to_scipy"]


def from_scipy(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix, *, weight: str | None = None, ndata: ColumnsLike | None = None
) -> Graph:
    """Return the graph of a square scipy sparse matrix, in which entry (i, j) is the edge i -> j.

    Edge ids follow the stored entries (row by row in a CSR matrix). Entries stored several times are several edges, and
    stored zeros are edges too (but not those that fill up the blocks of a BSR matrix).

    Args:
        matrix: ``[num_nodes, num_nodes]``.
        weight: name of an edge column that receives the entries; None drops them.
        ndata: node columns.

    Raises TypeError for anything but a scipy sparse matrix, ValueError for one that is not square.

    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.csr_array([[0, 1], [1, 0]]))
    Graph(2 nodes, 2 edges)
    """
    import scipy.sparse

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


def to_scipy(graph: Graph, *, weight: str | None = None) -> scipy.sparse.coo_array:
    """Return the adjacency as a scipy COO array ``[num_nodes, num_nodes]``: entry (i, j) is the edge i -> j.

    Entries are in edge id order, repeated edges stay apart; they are a copy of the edge column ``weight``, or ones
    (float32). Raises ValueError for a column with more than one number per edge.

    >>> to_scipy(Graph.from_edges([0, 1, 1], [1, 2, 2])).toarray()
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]], dtype=float32)
    """
    import scipy.sparse

    src, dst = (end.numpy() for end in graph.edges())
    if weight is None:
        values = np.ones(graph.num_edges, np.float32)
    else:
        column = whole_column(graph.edata[weight])
        if column.ndim != 1:
            raise ValueError(f"weight must be a column with one number per edge, {weight!r} is {tuple(column.shape)}")
        # a copy, because a matrix is easily changed in place, and the graph's column must not be
        values = column.detach().cpu().numpy().copy()
    return scipy.sparse.coo_array((values, (src, dst)), shape=(graph.num_nodes, graph.num_nodes))


def from_networkx(
    graph: networkx.Graph, *, node_columns: Sequence[str] = (), edge_columns: Sequence[str] = ()
) -> tuple[Graph, list[Any]]:
    """Return the graph of a networkx graph, and the networkx node of every id.

    Ids follow networkx's order of nodes and edges. An undirected edge becomes two edges, one each way, next to each
    other (a self-loop becomes one).

    Args:
        graph: any networkx graph; multigraphs keep their repeated edges.
        node_columns, edge_columns: attributes, numbers or lists of numbers, that become columns.

    Raises KeyError for an attribute that a node (or edge) does not have.

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
    >>> graph = Graph.from_edges([0, 1], [1, 2], edata={"time": torch.tensor([5, 6])})
    >>> list(to_networkx(graph, edge_columns=["time"]).edges(data=True))
    [(0, 1, {'time': 5}), (1, 2, {'time': 6})]
    >>> list(to_networkx(FullSampler(graph, 1)([2])).edges(data=True))
    [((0, 1), (1, 0), {'parent_eid': 1, 'weight': 1.0})]
    """
    try:
        import networkx
    except ImportError:
        raise ImportError("networkx is needed; install it with: pip install networkx") from None
    made = networkx.MultiDiGraph()
    if isinstance(graph, Graph):
        nodes: list[Any] = list(range(graph.num_nodes))
        _add_nodes(made, nodes, _attributes(graph.ndata, node_columns))
        src, dst = (end.tolist() for end in graph.edges())
        _add_edges(made, src, dst, _attributes(graph.edata, edge_columns))
    elif isinstance(graph, NodeFlow):
        _add_node_flow(made, graph, node_columns, edge_columns)
    else:
        raise TypeError(f"graph must be a Graph or a NodeFlow, got {describe(graph)}")
    return made


def from_pyg(data: Data) -> Graph:
    """Return the graph of a PyTorch Geometric ``Data`` object (one node type, one edge type).

    Tensors with a row per node or per edge become columns under their own names (``x``, ``y``, ``edge_attr``, ...).
    Other attributes, such as a further list of node ids (``edge_label_index``), are left out.

    Raises ValueError for an object without ``edge_index``.
    """
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"data must have an edge_index, got {describe(data)}")
    src, dst = data.edge_index
    num_nodes = int(data.num_nodes)
    ndata = {name: data[name] for name in data.node_attrs() if _has_rows(data[name], num_nodes)}
    edata = {name: data[name] for name in data.edge_attrs() if _has_rows(data[name], len(src)) and name != "edge_index"}
    return Graph.from_edges(src, dst, num_nodes=num_nodes, ndata=ndata, edata=edata)


def to_pyg(graph: Graph) -> Data:
    """Return a PyTorch Geometric ``Data`` object with ``edge_index`` in edge id order and all columns.

    Raises ImportError without PyTorch Geometric; its message has the command that installs it. Raises ValueError for
    column names that ``Data`` cannot hold: the same name for nodes and edges, ``edge_index`` or ``num_nodes``.
    """
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise ImportError("PyTorch Geometric is needed; install it with: pip install torch-geometric") from None
    columns = {name: whole_column(column) for name, column in (*graph.ndata.items(), *graph.edata.items())}
    if len(columns) < len(graph.ndata) + len(graph.edata):
        both = sorted(set(graph.ndata) & set(graph.edata))
        raise ValueError(f"a node and an edge column share a name, which Data cannot hold: {both}")
    taken = sorted({"edge_index", "num_nodes"} & set(columns))
    if taken:
        raise ValueError(f"Data keeps the names {taken} for itself; give the columns of these names other ones first")
    return Data(edge_index=torch.stack(graph.edges()), num_nodes=graph.num_nodes, **columns)


def from_dgl(graph: dgl.DGLGraph) -> Graph:
    """Return the graph of a homogeneous DGL graph, with its node and edge columns; edge ids stay."""
    src, dst = graph.edges(order="eid")
    ndata, edata = dict(graph.ndata), dict(graph.edata)
    return Graph.from_edges(src, dst, num_nodes=graph.num_nodes(), ndata=ndata, edata=edata)


def _add_node_flow(
    made: networkx.MultiDiGraph, batch: NodeFlow, node_columns: Sequence[str] | _All, edge_columns: Sequence[str] | _All
) -> None:
    _check_names([layer.data for layer in batch.layers], node_columns, "layer")
    _check_names([flow.data for _, flow in batch.flows.items()], edge_columns, "flow")
    for i, layer in enumerate(batch.layers):
        attributes: dict[str, list[Any]] = {"layer": [i] * layer.num_nodes}
        if layer.has_parent:
            attributes["parent_nid"] = layer.parent_nid.tolist()
        if layer.context is not None:
            attributes["context"] = layer.context.tolist()
        attributes |= _attributes(layer.data, _held(layer.data, node_columns))
        _add_nodes(made, [(i, row) for row in range(layer.num_nodes)], attributes)
    for (i, j), flow in batch.flows.items():
        attributes = {"parent_eid": flow.parent_eid.tolist()} if flow.has_parent else {}
        attributes |= {"weight": flow.weight.tolist(), **_attributes(flow.data, _held(flow.data, edge_columns))}
        src, dst = (end.tolist() for end in flow.edges())
        _add_edges(made, [(i, row) for row in src], [(j, row) for row in dst], attributes)


def _check_names(frames: Sequence[Frame], names: Sequence[str] | _All, where: str) -> None:
    for name in () if isinstance(names, _All) else names:
        if not any(name in frame for frame in frames):
            raise KeyError(f"no {where} has a column {name!r}")


def _held(frame: Frame, names: Sequence[str] | _All) -> list[str]:
    return [name for name in (frame if isinstance(names, _All) else names) if name in frame]


def _attributes(frame: Frame, names: Sequence[str] | _All) -> dict[str, list[Any]]:
    """Return columns as lists of numbers, or of lists of numbers."""
    columns = {name: whole_column(frame[name]).detach() for name in (frame if isinstance(names, _All) else names)}
    return {name: (c if c.layout == torch.strided else c.to_dense()).tolist() for name, c in columns.items()}


def _add_nodes(made: networkx.MultiDiGraph, nodes: list[Any], attributes: dict[str, list[Any]]) -> None:
    made.add_nodes_from(zip(nodes, _by_row(attributes, len(nodes)), strict=True))


def _add_edges(made: networkx.MultiDiGraph, src: list[Any], dst: list[Any], attributes: dict[str, list[Any]]) -> None:
    made.add_edges_from(zip(src, dst, range(len(src)), _by_row(attributes, len(src)), strict=True))


def _by_row(attributes: dict[str, list[Any]], count: int) -> Iterator[dict[str, Any]]:
    return ({name: values[row] for name, values in attributes.items()} for row in range(count))


def _attribute(name: str, attributes: list[dict[str, Any]], keys: list[Any], what: str) -> Tensor:
    """Return an attribute of all nodes or edges as a column."""
    missing = next((key for key, data in zip(keys, attributes, strict=True) if name not in data), None)
    if missing is not None:
        raise KeyError(f"every {what} must have the attribute {name!r}, but {what} {missing!r} has none")
    return torch.tensor([data[name] for data in attributes], device="cpu")


def _has_rows(value: object, count: int) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0 and len(value) == count
