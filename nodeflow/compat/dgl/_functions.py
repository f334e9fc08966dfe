"""Edges and nodes as user-defined functions of DGL 0.4 see them, and the messages of its built-in functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from nodeflow import flow, ops
from nodeflow.fn import MessageFunction

DEFAULT = "default"
"""Stands for the registered function."""


class EdgeBatch:
    """Edges as a message function sees them.

    ``src``, ``dst`` and ``data`` are mappings from names to columns with a row per edge, gathered when asked for.

    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 1), (2, 1)])
    >>> g.apply_edges(lambda edges: {"u": edges.edges()[0] * edges.batch_size()})
    >>> g.edata["u"]
    tensor([0, 4])
    """

    def __init__(self, edges: flow.EdgeBatch) -> None:
        self._edges = edges
        self.src, self.dst, self.data = edges.src, edges.dst, edges.data

    def edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(src, dst, eid)``, int64: ids local to layers and block, or ids of the graph on a graph."""
        return (*self._edges.edges(), self._edges.edge_ids())

    def batch_size(self) -> int:
        """Return the number of edges."""
        return len(self._edges)

    __len__ = batch_size

    def __repr__(self) -> str:
        return repr(self._edges)


class NodeBatch:
    """Nodes as a reduce or an apply function sees them.

    ``data`` is a mapping from names to columns; ``mailbox`` one to messages ``[nodes, degree, ...]``, or None outside
    reduce functions.

    >>> import torch
    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 1), (2, 1)], node_frame={"h": torch.tensor([1.0, 2.0, 5.0])})
    >>> g.update_all(dgl.function.copy_src("h", "m"), lambda nodes: {"h": nodes.mailbox["m"].mean(dim=1)})
    >>> g.ndata["h"]
    tensor([0., 3., 0.])
    """

    def __init__(self, nodes: flow.NodeBatch, ids: Tensor | None = None) -> None:
        self._nodes, self._ids = nodes, ids
        self.data = nodes.data

    @property
    def mailbox(self) -> Mapping[str, Tensor] | None:
        """The messages."""
        return self._nodes.mailbox if self._nodes.has_mailbox else None

    def nodes(self) -> Tensor:
        """Return the ids of the nodes, int64: local to the layer, or ids of the graph on a graph."""
        rows = self._nodes.nodes()
        return rows if self._ids is None else self._ids[rows]

    def batch_size(self) -> int:
        """Return the number of nodes."""
        return len(self._nodes)

    __len__ = batch_size

    def __repr__(self) -> str:
        return repr(self._nodes)


def is_made_here(function: object) -> bool:
    """Return whether ``messages_of`` makes the messages of a function: a user-defined one, or a dot product."""
    return callable(function) or (isinstance(function, MessageFunction) and function.op == "dot")


def messages_of(function: Any, edges: EdgeBatch) -> Any:
    """Return the messages along edges, a row per edge; a dot product drops the dimension that it contracts."""
    if not isinstance(function, MessageFunction):
        return function(edges)
    ends = {"u": edges.src, "v": edges.dst, "e": edges.data}
    rhs = None if function.rhs_kind is None else ends[function.rhs_kind][str(function.rhs)]
    each = torch.arange(len(edges) + 1)
    structure = ops.Structure(each, each[:-1], len(edges))
    names = f"column {function.lhs!r}", f"column {function.rhs!r}"
    column = ops.message(structure, function.op, "e", ends[function.lhs_kind][function.lhs], "e", rhs, names=names)
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
    """Return a reduce or an apply function, or a list of reduce functions, as nodeflow takes it; None stays.

    ``ids``: what functions get for the nodes, by local id; None: the local ids.
    """
    if isinstance(functions, (list, tuple)):
        return [of_nodes(function, ids) for function in functions]
    if not callable(functions):
        return functions  # nodeflow refuses what is no function

    @wraps(functions, updated=())
    def function(nodes: flow.NodeBatch) -> Any:
        return functions(NodeBatch(nodes, ids))

    return function
