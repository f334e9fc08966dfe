"""Functions of programs for DGL 0.4: edges and nodes as they see them, and message passing on a
whole graph.

The nodes of a graph are the sources and the destinations; its frames are read and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import flow, ops
from nodeflow._base.checks import _All
from nodeflow._rows.rows import take_rows
from nodeflow.flow import columns_at, distinct, written
from nodeflow.fn import MessageFunction
from nodeflow.graph import Frame, Graph

DEFAULT = "default"
"""Stands for the registered function."""


class EdgeBatch:
    """Edges as a message function sees them.

    ``src``, ``dst`` and ``data`` are mappings from names to columns with a row per edge, gathered
    when asked for.

    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 1), (2, 1)])
    >>> g.apply_edges(lambda edges: {"u": edges.edges()[0] * edges.batch_size()})
    >>> g.edata["u"]
    tensor([0, 4])
    """

    def __init__(self, edges: flow.EdgeBatch) -> None:
        self._edges = edges
        self.src = edges.src
        self.dst = edges.dst
        self.data = edges.data

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, eid)``, int64: ids local to layers and block, or ids of the graph on
        a graph.
        """
        return (*self._edges.edges(), self._edges.edge_ids())

    def batch_size(self) -> int:
        """Return the number of edges."""
        return len(self._edges)

    __len__ = batch_size

    def __repr__(self) -> str:
        return repr(self._edges)


class NodeBatch:
    """Nodes as a reduce or an apply function sees them.

    ``data`` is a mapping from names to columns; ``mailbox`` one to messages
    ``[nodes, degree, ...]``, or None outside reduce functions.

    >>> import torch
    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 1), (2, 1)], node_frame={"h": torch.tensor([1.0, 2.0, 5.0])})
    >>> g.update_all(dgl.function.copy_src("h", "m"), lambda nodes: {"h": nodes.mailbox["m"].mean(dim=1)})
    >>> g.ndata["h"]
    tensor([0., 3., 0.])
    """

    def __init__(self, nodes: flow.NodeBatch, ids: Tensor | None = None) -> None:
        self._nodes = nodes
        self._ids = ids
        self.data = nodes.data

    @property
    def mailbox(self) -> Mapping[str, Tensor] | None:
        """The messages, ``[nodes, degree, ...]`` each; AttributeError outside reduce functions."""
        return getattr(self._nodes, "mailbox", None)

    def nodes(self) -> Tensor:
        """Return the ids of the nodes, int64: local to the layer, or ids of the graph on a
        graph.
        """
        rows = self._nodes.nodes()
        return rows if self._ids is None else self._ids[rows]

    def batch_size(self) -> int:
        """Return the number of nodes."""
        return len(self._nodes)

    __len__ = batch_size

    def __repr__(self) -> str:
        return repr(self._nodes)


def is_made_here(function: object) -> bool:
    """Return whether ``messages_of`` makes the messages of a function: a user-defined one, or a dot
    product.
    """
    return callable(function) or (isinstance(function, MessageFunction) and function.op == "dot")


def messages_of(function: Any, edges: EdgeBatch) -> Any:
    """Return the messages along edges, a row per edge; a dot product drops the dimension that it
    contracts.
    """
    if not isinstance(function, MessageFunction):
        return function(edges)
    ends = {"u": edges.src, "v": edges.dst, "e": edges.data}
    rhs = None if function.rhs_kind is None else ends[function.rhs_kind][str(function.rhs)]
    each = torch.arange(len(edges) + 1)
    structure = ops.Structure._trusted(each, each[:-1], len(edges))
    names = f"column {function.lhs!r}", f"column {function.rhs!r}"
    column = ops.message(
        structure, function.op, "e", ends[function.lhs_kind][function.lhs], "e", rhs, names=names
    )
    return {function.out: column.squeeze(-1) if function.op == "dot" else column}


def of_edges(functions: Any) -> Any:
    """Return a message function, or a list of them, as nodeflow takes it."""
    if isinstance(functions, (list, tuple)):
        return [of_edges(function) for function in functions]
    if not is_made_here(functions):
        return functions

    @wraps(functions, updated=())
    def message(edges: flow.EdgeBatch) -> Any:
        return messages_of(functions, EdgeBatch(edges))

    return message


def of_nodes(functions: Any, ids: Tensor | None = None) -> Any:
    """Return a reduce or an apply function, or a list, as nodeflow takes it; ``ids`` are what it
    sees, by local id.
    """
    if isinstance(functions, (list, tuple)):
        return [of_nodes(function, ids) for function in functions]
    if not callable(functions):
        return functions  # nodeflow refuses what is no function

    @wraps(functions, updated=())
    def function(nodes: flow.NodeBatch) -> Any:
        return functions(NodeBatch(nodes, ids))

    return function


NODES = "the graph's nodes"
EDGES = "the graph's edges"


def update_nodes(graph: Graph, v: Any, functions: Sequence[Any], dst: Frame) -> None:
    """Compute columns of the nodes ``v``, distinct ids or ALL, from messages along their in-edges,
    and store them.

    ``functions`` are for messages, reduction and update, as DGL takes them; those of the program's
    own see ids of the graph, all edges in the order of their ids, and those into some nodes node by
    node. ``dst``: a frame for the nodes.
    """
    whole = isinstance(v, _All)
    message, reduce, update = functions
    nodes = torch.arange(graph.num_nodes) if whole else torch.as_tensor(v)
    edges, eid = _edges_into(graph, nodes, whole)
    edge: dict[str, Tensor] = {}

    def along(function: Any) -> Any:
        """Return a message function of the flow; it gets only the edge columns that it names."""
        if not is_made_here(function):
            if isinstance(function, MessageFunction):
                sides = (function.lhs_kind, function.lhs), (function.rhs_kind, function.rhs)
                names = [name for kind, name in sides if kind == "e" and name is not None]
                edge.update({name: take_rows(graph.edata[name], eid) for name in names})
            return function

        def message(_: flow.EdgeBatch) -> dict[str, Tensor]:
            seen = edges_at(graph, torch.arange(len(eid)) if whole else eid)
            columns = Frame(len(eid), messages_of(function, EdgeBatch(seen)))
            return (
                {name: take_rows(column, eid) for name, column in columns.items()}
                if whole
                else dict(columns)
            )

        return message

    messages = [
        along(function)
        for function in (message if isinstance(message, (list, tuple)) else [message])
    ]
    dst.update(
        {
            name: column if whole else take_rows(column, nodes)
            for name, column in graph.ndata.items()
        }
    )
    try:
        columns = flow.message_passing(
            edges,
            messages,
            of_nodes(reduce, nodes),
            of_nodes(update, nodes),
            src=graph.ndata,
            dst=dst,
            edge=edge,
        )
    except Exception as error:
        error.add_note(f"layers 0 and 1 are {NODES} here, and flow 0->1 is {EDGES}")
        raise
    graph.ndata.update(columns if whole else written(graph.ndata, columns, nodes, NODES))


def _edges_into(graph: Graph, nodes: Tensor, whole: bool) -> tuple[flow.Flow, Tensor]:
    """Return a flow from all nodes to some, and the ids of its edges; the whole graph is not
    gathered.
    """
    if not whole:
        src, _, eid = graph.in_edges(nodes)
        ends = graph.in_degrees(nodes).cumsum(0)
        return flow.flow_from_csr(
            torch.nn.functional.pad(ends, (1, 0)), src, num_src=graph.num_nodes
        ), eid
    indptr, indices, ids = graph.csc()
    eid = torch.from_numpy(np.arange(len(indices)) if ids is None else ids.astype(np.int64))
    return flow.flow_from_csr(indptr, indices, num_src=graph.num_nodes), eid


def apply_nodes(graph: Graph, function: Any, v: Any) -> None:
    """Apply a function to distinct nodes, or to ALL, and store what it returns; the other rows
    stay.
    """
    size = graph.num_nodes
    rows = None if isinstance(v, _All) else torch.from_numpy(distinct(v, "v", size, "node"))
    ids = torch.arange(size) if rows is None else rows
    nodes = NodeBatch(flow.NodeBatch(columns_at(graph.ndata, NODES, rows), lambda: ids, len(ids)))
    columns = dict(Frame(len(ids), function(nodes)))
    graph.ndata.update(written(graph.ndata, columns, rows, NODES))


def apply_edges(graph: Graph, function: Any, edges: Any) -> None:
    """Apply a function to distinct edges, or to ALL, and store what it returns; the other rows
    stay.
    """
    size = graph.num_edges
    rows = (
        None
        if isinstance(edges, _All)
        else torch.from_numpy(distinct(edges, "edges", size, "edge"))
    )
    seen = EdgeBatch(edges_at(graph, torch.arange(size) if rows is None else rows))
    columns = dict(Frame(len(seen), messages_of(function, seen)))
    whole = rows is None or len(rows) == size
    if whole and rows is not None:  # a column of another shape is replaced
        columns = {name: take_rows(column, torch.argsort(rows)) for name, column in columns.items()}
    graph.edata.update(columns if whole else written(graph.edata, columns, rows, EDGES))


def edges_at(graph: Graph, eid: Tensor) -> flow.EdgeBatch:
    """Return edges of a graph as functions see them."""
    src, dst = graph.find_edges(eid)
    sources, targets = (columns_at(graph.ndata, NODES, end) for end in (src, dst))
    columns = columns_at(graph.edata, EDGES, eid)
    return flow.EdgeBatch(sources, targets, columns, lambda: (src, dst), lambda: eid, len(eid))
