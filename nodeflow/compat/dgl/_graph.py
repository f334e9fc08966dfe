"""DGLGraph: the parent graph of DGL 0.4, with frames, message passing and edges that can be
added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partialmethod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import torch

from nodeflow._core.base.checks import ALL, Ints, _All, as_count, as_ids
from nodeflow.compat.dgl._data import (
    Rows,
    Space,
    as_initializer,
    structure_of,
)
from nodeflow.compat.dgl._functions import (
    DEFAULT,
    apply_edges,
    apply_nodes,
    update_nodes,
)
from nodeflow.compat.dgl._queries import BaseGraph, as_pairs, as_vector
from nodeflow.graph import Frame, Graph

if TYPE_CHECKING:
    pass

_Addition: TypeAlias = tuple[int, Ints, Ints]
"""Number of added nodes, and the ends of added edges."""


class DGLGraph(BaseGraph):
    """A graph with frames ``ndata`` and ``edata``, whose nodes and edges can be added until it is
    ``readonly``.

    ``graph`` is the ``nodeflow.Graph`` behind it, with the same columns. It is another object after
    edges were added. Methods have DGL's names and results. Ids and degrees are int64, and one id
    stands for a list of one:

    - ``g.nodes()`` are the ids of all nodes, ``g.nodes[v].data`` the columns at nodes ``v``.
      ``g.edges()`` is ``all_edges``, and ``g.edges[e]`` takes ids of edges, or a pair ``(u, v)`` of
      their ends.
    - ``in_edges``, ``out_edges`` and ``all_edges`` return ``(src, dst)``, with ``form="all"``
      ``(src, dst, eid)``, with "eid" ids: node by node, ``all_edges`` in the order of ids.
    - ``number_of_nodes``, ``number_of_edges``, ``find_edges``, ``in_degrees`` and ``out_degrees``
      are as in DGL.
    - ``has_edges_between`` returns 1 or 0, int64 ``[k]``; one of ``u`` and ``v`` goes with all
      others.
    - ``register_message_func`` and its like set what calls without a function use;
      ``set_n_initializer`` and ``set_e_initializer`` what fills rows that nobody sets, a function
      of (shape, dtype, device, range).
    - ``to`` moves all columns, in this graph; ``readonly(False)`` allows adding nodes and edges
      again.

    Args:
        graph_data: a list of pairs ``(u, v)``; a tuple of two lists, sources and destinations; a
            scipy matrix, whose entry (u, v) is an edge u -> v; a networkx graph with nodes 0 to n -
            1; a DGLGraph (which shares the structure, without columns) or a ``nodeflow.Graph``
            (which becomes ``graph``); None for no nodes.
        node_frame, edge_frame: columns by name.
        multigraph: ignored: several edges may always join two nodes.
        readonly: whether adding nodes and edges is refused.

    >>> g = DGLGraph([(0, 1), (2, 1)])
    >>> g.add_edges([1, 1], [0, 2])
    >>> g.in_edges(1, form="all")
    (tensor([0, 2]), tensor([1, 1]), tensor([0, 1]))
    >>> g.edge_ids(1, [0, 2])
    tensor([2, 3])
    """

    def __init__(
        self,
        graph_data: Any = None,
        node_frame: Mapping[str, Any] | None = None,
        edge_frame: Mapping[str, Any] | None = None,
        multigraph: bool | None = None,
        readonly: bool = False,
    ) -> None:
        super().__init__(num_blocks=1)
        self.is_readonly = bool(readonly)
        self._initializers: list[tuple[str, Any, str | None]] = []
        if isinstance(graph_data, DGLGraph):
            indptr, indices, edge_ids = graph_data.graph.csc()
            graph_data = Graph(indptr, indices, edge_ids=edge_ids)
        self._graph = self._finished(structure_of(graph_data))
        self._graph.ndata.update(node_frame)
        self._graph.edata.update(edge_frame)
        self._added: list[_Addition] = []

    # ---- structure

    @property
    def graph(self) -> Graph:
        """The graph of nodeflow, after all that was added so far."""
        if self._added:
            self._graph = self._grown()
            self._added = []
        return self._graph

    def readonly(self, readonly_state: bool = True) -> Self:
        """Refuse to add nodes and edges from now on, or allow it again."""
        self.is_readonly = bool(readonly_state)
        return self

    def add_nodes(self, num: int) -> None:
        """Add ``num`` nodes, which get initial rows in all columns."""
        none = np.zeros(0, np.int64)
        self._add(as_count(num, "num"), none, none)

    def add_edges(self, u: Any, v: Any) -> None:
        """Add edges ``u[i] -> v[i]``, which get initial rows; one node goes with all of the
        others.
        """
        size = self._graph.num_nodes + sum(num for num, *_ in self._added)
        self._add(0, *as_pairs(u, v, size))

    add_edge = add_edges

    def _add(self, num: int, src: Any, dst: Any) -> None:
        if self.is_readonly:
            raise ValueError(
                "this graph is read-only: call g.readonly(False) before adding nodes or edges"
            )
        if num:
            grows = self._graph.ndata
        else:
            grows = self._graph.edata
        sparse = [name for name, column in grows.items() if column.layout != torch.strided]
        if sparse and (num or len(src)):
            raise TypeError(
                f"column {sparse[0]!r} is sparse and takes no rows: set it after the last node or "
                "edge is added"
            )
        # programs add edges one by one: rebuilding the graph for each would take quadratic time
        self._added.append((num, src, dst))

    def _finished(self, graph: Graph) -> Graph:
        """Return a graph with the initialisers of this one."""
        self._prepare(graph.ndata, "ndata")
        self._prepare(graph.edata, "edata")
        return graph

    def _prepare(self, frame: Frame, side: str) -> None:
        """Set the initialisers of nodes or edges in a frame of this graph."""
        for kind, initial, name in self._initializers:
            if kind == side:
                frame.set_initializer(initial, name)

    def _grown(self) -> Graph:
        """Return the graph with all that was added since the last one."""
        added = self._added
        old = self._graph
        size = old.num_nodes + sum(num for num, *_ in added)
        src, dst = old.edges()
        all_src = [src, *(torch.from_numpy(np.array(part)) for _, part, _ in added)]
        all_dst = [dst, *(torch.from_numpy(np.array(part)) for _, _, part in added)]
        new = Graph.from_edges(torch.cat(all_src), torch.cat(all_dst), num_nodes=size)
        new = self._finished(new)
        for frame, before in ((new.ndata, old.ndata), (new.edata, old.edata)):
            for name, column in before.items():
                # also a column that fetches its rows stays, where none are added
                parts = [column]
                if len(column) < frame.num_rows:
                    count = frame.num_rows - len(column)
                    parts.append(frame.initial(name, count, column))
                frame[name] = torch.cat(parts) if len(parts) > 1 else column
        return new

    # ---- frames

    @property
    def ndata(self) -> Frame:
        """Columns of the nodes."""
        return self.graph.ndata

    @property
    def edata(self) -> Frame:
        """Columns of the edges."""
        return self.graph.edata

    @property
    def nodes(self) -> _Items:
        """``g.nodes()`` are the ids of all nodes, ``g.nodes[v].data`` the columns at nodes
        ``v``.
        """
        return _Items(self.ndata, lambda: torch.arange(self.graph.num_nodes), as_vector, "node")

    @property
    def edges(self) -> _Items:
        """``g.edges()`` is ``all_edges``, ``g.edges[e].data`` are the columns at edges: ids, or a
        pair ``(u, v)``.
        """
        return _Items(self.edata, self.all_edges, self.edge_ids_at, "edge")

    def _initialize(self, side: str, initializer: Any, field: str | None = None) -> None:
        self._initializers.append((side, as_initializer(initializer), field))
        self._prepare(getattr(self.graph, side), side)

    set_n_initializer = partialmethod(_initialize, "ndata")
    set_e_initializer = partialmethod(_initialize, "edata")

    def to(self, ctx: torch.device | str) -> Self:
        """Move all columns to a device, in this graph, and return it."""
        for frame in (self.ndata, self.edata):
            frame.update({name: column.to(ctx) for name, column in frame.items()})
        return self

    # ---- message passing

    def update_all(
        self,
        message_func: Any = DEFAULT,
        reduce_func: Any = DEFAULT,
        apply_node_func: Any = DEFAULT,
    ) -> None:
        """Compute all nodes from messages along all edges. Without edges only ``apply_node_func``
        is applied.
        """
        self._compute(ALL, message_func, reduce_func, apply_node_func)

    def pull(
        self,
        v: Any,
        message_func: Any = DEFAULT,
        reduce_func: Any = DEFAULT,
        apply_node_func: Any = DEFAULT,
    ) -> None:
        """Compute the nodes ``v`` from messages along their in-edges; repeats count once.

        Without any in-edge only ``apply_node_func`` is applied.
        """
        nodes = np.unique(as_ids(as_vector(v), "v", self.graph.num_nodes))
        self._compute(nodes, message_func, reduce_func, apply_node_func)

    def _compute(self, v: Any, *functions: Any) -> None:
        chosen = self.functions(functions)
        if int(self.graph.in_degrees(v).sum()):
            update_nodes(self.graph, v, chosen)
        elif chosen[2] is not None:
            apply_nodes(self.graph, chosen[2], v)

    def apply_nodes(self, func: Any = DEFAULT, v: Any = ALL) -> None:
        """Apply a function to nodes and store what it returns; None does nothing."""
        func = self.function("apply node", func)
        if func is not None:
            apply_nodes(self.graph, func, as_vector(v))

    def apply_edges(self, func: Any = DEFAULT, edges: Any = ALL) -> None:
        """Apply a function to edges (ids, or a pair of their ends) and store what it returns."""
        func = self.function("apply edge", func)
        apply_edges(self.graph, func, self.edge_ids_at(edges))

    def __repr__(self) -> str:
        return (
            f"DGLGraph(num_nodes={self.graph.num_nodes}, num_edges={self.graph.num_edges}, "
            f"ndata={list(self.ndata)}, edata={list(self.edata)})"
        )


class _Items:
    """All nodes or edges of a graph: called for their ids, measured, and asked for the columns at
    some of them.
    """

    def __init__(
        self, frame: Frame, every: Callable[..., Any], ids: Callable[[Any], Any], what: str
    ) -> None:
        self._frame = frame
        self._every = every
        self._ids = ids
        self._what = what

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._every(*args, **kwargs)

    def __len__(self) -> int:
        return self._frame.num_rows

    def __getitem__(self, key: Any) -> Space:
        if isinstance(key, slice) and key != slice(None):
            raise ValueError(f"only the full slice ':' is taken, got {key}: pass ids")
        if isinstance(key, (slice, _All)):
            return Space(self._frame)
        ids = as_ids(self._ids(key), f"{self._what}s", len(self), self._what)
        return Space(Rows(self._frame, torch.from_numpy(ids), f"the graph's {self._what}s"))
