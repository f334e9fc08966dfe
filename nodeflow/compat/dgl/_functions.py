"""What user-defined functions of DGL 0.4 see: edges and nodes with that version's methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from torch import Tensor

from nodeflow import flow
from nodeflow.fn import MessageFunction, ReduceFunction


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

    def __init__(self, nodes: flow.NodeBatch) -> None:
        self._nodes = nodes
        self.data = nodes.data

    @property
    def mailbox(self) -> Mapping[str, Tensor] | None:
        """The messages."""
        return self._nodes.mailbox if self._nodes.has_mailbox else None

    def nodes(self) -> Tensor:
        """Return the ids of the nodes, int64: local to the layer, or ids of the graph on a graph."""
        return self._nodes.nodes()

    def batch_size(self) -> int:
        """Return the number of nodes."""
        return len(self._nodes)

    __len__ = batch_size

    def __repr__(self) -> str:
        return repr(self._nodes)


def of_edges(given: Any) -> Any:
    """Return a message function, or a list of them, as nodeflow takes it."""
    return _adapted(given, EdgeBatch)


def of_nodes(given: Any) -> Any:
    """Return a reduce or an apply function, or a list of reduce functions, as nodeflow takes it; None stays."""
    return _adapted(given, NodeBatch)


def _adapted(given: Any, seen: Callable[[Any], Any]) -> Any:
    if isinstance(given, (list, tuple)):
        return [_adapted(one, seen) for one in given]
    if isinstance(given, (MessageFunction, ReduceFunction)) or not callable(given):
        return given  # nodeflow refuses what is neither

    @wraps(given)
    def function(batch: Any) -> Any:
        return given(seen(batch))

    return function


class Registered:
    """Functions registered for the blocks of a NodeFlow, or (as one block) for a graph, by role."""

    def __init__(self, num_blocks: int) -> None:
        self._functions: dict[str, list[Any]] = {
            role: [None] * num_blocks for role in ("message", "reduce", "apply node", "apply edge")
        }

    def set(self, role: str, func: Any, blocks: range) -> None:
        """Register ``func`` for some blocks."""
        for block in blocks:
            self._functions[role][block] = func

    def chosen(self, role: str, func: Any, block: int = 0) -> Any:
        """Return ``func``, or the registered one where it is "default". Raises ValueError where a needed one is None.

        Only the function that is applied to nodes after a reduction may be missing.
        """
        if isinstance(func, str) and func == "default":
            func = self._functions[role][block]
        if func is None and role != "apply node":
            name = role.replace(" ", "_")
            raise ValueError(f"there is no {role} function: pass one, or call register_{name}_func first")
        return func
