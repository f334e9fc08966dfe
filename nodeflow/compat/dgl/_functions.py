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
from nodeflow._core.base.checks import _All
from nodeflow._core.in_torch.ragged import ends_of
from nodeflow._core.rows.rows import take_rows
from nodeflow.flow import Part, apply_to_layer, columns_at, distinct, run, written
from nodeflow.fn import MessageFunction
from nodeflow.graph import Frame, Graph

DEFAULT = "default"
"""Stands for the registered function."""


class EdgeBatch(flow.EdgeBatch):
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
        columns = (edges.src, edges.dst, edges.data)
        super().__init__(*columns, edges.edges, edges.edge_ids, len(edges))

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        """Return ``(src, dst, eid)``, int64: ids local to layers and block, or ids of the graph on
        a graph.
        """
        return (*super().edges(), self.edge_ids())

    def batch_size(self) -> int:
        """Return the number of edges."""
        return len(self)


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

    def __init__(self, nodes: flow.NodeBatch) -> None:
        self._nodes = nodes
        self.data = nodes.data
        self.nodes = nodes.nodes
        self.mailbox: Mapping[str, Tensor] | None = getattr(nodes, "mailbox", None)

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
    if function.rhs_kind is None:
        rhs = None
    else:
        rhs = ends[function.rhs_kind][str(function.rhs)]
    # every edge is the only one of a destination of its own, so that all columns are those of edges
    numbers = torch.arange(len(edges) + 1)
    structure = ops.Structure._trusted(numbers, numbers[:-1], len(edges))
    names = f"column {function.lhs!r}", f"column {function.rhs!r}"
    column = ops.message(
        structure, function.op, "e", ends[function.lhs_kind][function.lhs], "e", rhs, names=names
    )
    if function.op == "dot":
        column = column.squeeze(-1)
    return {function.out: column}


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


def of_nodes(functions: Any) -> Any:
    """Return a reduce or an apply function, or a list of them, as nodeflow takes it."""
    if isinstance(functions, (list, tuple)):
        return [of_nodes(function) for function in functions]
    if not callable(functions):
        return functions  # nodeflow refuses what is no function

    @wraps(functions, updated=())
    def function(nodes: flow.NodeBatch) -> Any:
        return functions(NodeBatch(nodes))

    return function


NODES = "the graph's nodes"
EDGES = "the graph's edges"


def update_nodes(graph: Graph, v: Any, functions: Sequence[Any]) -> None:
    """Compute columns of the nodes ``v``, distinct ids or ALL, from messages along their in-edges.

    ``functions`` are for messages, reduction and update, as DGL takes them; those of the program's
    own see ids of the graph, all edges in the order of their ids, and those into some nodes node by
    node.
    """
    layer = flow.Layer(graph.num_nodes, data=graph.ndata)
    indptr, indices, ids = graph.csc()
    nodes = order = None
    # DGL shows the edges of the whole graph by id, those into some nodes node by node
    if isinstance(v, _All):
        eid = torch.from_numpy(graph.stored_edge_ids.astype(np.int64))
        src = torch.from_numpy(indices.astype(np.int64))
        ends = torch.from_numpy(indptr.astype(np.int64))
        if ids is None:
            order = None
        else:
            order = torch.argsort(eid)
    else:
        nodes = torch.as_tensor(v)
        src, _, eid = graph.in_edges(nodes)
        ends = ends_of(graph.in_degrees(nodes))
    structure = ops.Structure._trusted(ends, src, graph.num_nodes)
    # a flow from all nodes to all, of whose edges only those of the structure count
    whole = flow.Flow._trusted(structure, layer, layer, (0, 1), data=graph.edata)
    message, reduce, update = functions
    try:
        part = Part(whole, structure, nodes, eid, order)
        run(part, of_edges(message), of_nodes(reduce), of_nodes(update))
    except Exception as error:
        error.add_note(f"layers 0 and 1 are {NODES} here, and flow 0->1 is {EDGES}")
        raise


def apply_nodes(graph: Graph, function: Any, v: Any) -> None:
    """Apply a function to distinct nodes, or to ALL, and store what it returns; the other rows
    stay.
    """
    apply_to_layer(flow.Layer(graph.num_nodes, data=graph.ndata), NODES, of_nodes(function), v)


def apply_edges(graph: Graph, function: Any, edges: Any) -> None:
    """Apply a function to distinct edges, or to ALL, and store what it returns; the other rows
    stay.
    """
    size = graph.num_edges
    rows = torch.arange(size)
    if not isinstance(edges, _All):
        rows = torch.from_numpy(distinct(edges, "edges", size, "edge"))
    seen = EdgeBatch(edges_at(graph, rows))
    columns = dict(Frame(len(seen), messages_of(function, seen)))
    if len(rows) < size:
        columns = written(graph.edata, columns, rows, EDGES)
    else:  # a column of another shape is replaced
        columns = {name: take_rows(column, torch.argsort(rows)) for name, column in columns.items()}
    graph.edata.update(columns)


def edges_at(graph: Graph, eid: Tensor) -> flow.EdgeBatch:
    """Return edges of a graph as functions see them."""
    src, dst = graph.find_edges(eid)
    sources = columns_at(graph.ndata, NODES, src)
    targets = columns_at(graph.ndata, NODES, dst)
    columns = columns_at(graph.edata, EDGES, eid)
    return flow.EdgeBatch(sources, targets, columns, lambda: (src, dst), lambda: eid, len(eid))
