"""DGLGraph: the parent graph of DGL 0.4, with frames, message passing and edges that can be added."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NoReturn, Self

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import ALL, _All, as_count, as_ids
from nodeflow.compat.dgl import _matrices as matrices
from nodeflow.compat.dgl._elsewhere import refuse
from nodeflow.compat.dgl._frames import Rows, Scheme, Space, as_initializer, in_place, schemes
from nodeflow.compat.dgl._functions import Registered
from nodeflow.compat.dgl._queries import BaseGraph, as_vector
from nodeflow.compat.dgl._structure import directed, of_networkx, structure_of
from nodeflow.compat.dgl._whole import EDGES, NODES, apply_edges, apply_nodes, update_nodes
from nodeflow.graph import Frame, Graph

DEFAULT = "default"


class DGLGraph(BaseGraph):
    """A graph with frames ``ndata`` and ``edata``, whose nodes and edges can be added until it is ``readonly``.

    ``graph`` is the ``nodeflow.Graph`` behind it, with the same columns. It is another object after edges were added.

    Args:
        graph_data: a list of pairs ``(u, v)``; a tuple of two lists, sources and destinations; a scipy matrix, whose
            entry (u, v) is an edge u -> v; a networkx graph with nodes 0 to n - 1; a DGLGraph (which shares the
            structure, without columns) or a ``nodeflow.Graph`` (which becomes ``graph``); None for no nodes.
        node_frame, edge_frame: columns by name.
        multigraph: ignored: several edges may always join two nodes.
        readonly: whether adding nodes and edges is refused.
        sort_csr: whether the in-edges of a node come in the order of their sources instead of their ids.

    Raises ValueError for ``batch_num_nodes``, ``batch_num_edges`` and ``parent``, which have no meaning here.

    >>> g = DGLGraph([(0, 1), (2, 1)])
    >>> g.add_edges([1, 1], [0, 2])
    >>> g.in_edges(1, form="all")
    (tensor([0, 2]), tensor([1, 1]), tensor([0, 1]))
    >>> g.edge_ids(1, [0, 2])
    tensor([2, 3])
    """

    def __init__(
        self, graph_data: Any = None, node_frame: Mapping[str, Any] | None = None,
        edge_frame: Mapping[str, Any] | None = None, multigraph: bool | None = None, readonly: bool = False,
        sort_csr: bool = False, batch_num_nodes: Any = None, batch_num_edges: Any = None, parent: Any = None,
    ) -> None:  # fmt: skip
        if any(given is not None for given in (batch_num_nodes, batch_num_edges, parent)):
            raise ValueError("batches of graphs and subgraphs are outside of this layer: see nodeflow.sampling")
        self._sorted, self._readonly = bool(sort_csr), bool(readonly)
        self._initializers: list[tuple[str, Any, str | None]] = []
        shared = isinstance(graph_data, DGLGraph)
        self._graph = self._made(_bare(graph_data.graph) if shared else structure_of(graph_data))
        self._graph.ndata.update(node_frame)
        self._graph.edata.update(edge_frame)
        self._registered = Registered(1)
        self._added: list[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any], Mapping[str, Any] | None]] = []

    # ---- structure

    @property
    def graph(self) -> Graph:
        """The graph of nodeflow, after all that was added so far."""
        if self._added:
            self._grow()
        return self._graph

    @property
    def is_readonly(self) -> bool:
        """Whether adding is refused."""
        return self._readonly

    def readonly(self, readonly_state: bool = True) -> Self:
        """Refuse to add nodes and edges from now on, or allow it again."""
        self._readonly = bool(readonly_state)
        return self

    def add_nodes(self, num: int, data: Mapping[str, Any] | None = None) -> None:
        """Add ``num`` nodes, with columns ``data`` of ``num`` rows each; other columns get initial rows."""
        none = np.zeros(0, np.int64)
        self._add(as_count(num, "num"), none, none, data)

    def add_edge(self, u: int, v: int, data: Mapping[str, Any] | None = None) -> None:
        """Add an edge from ``u`` to ``v``."""
        self.add_edges([int(u)], [int(v)], data)

    def add_edges(self, u: Any, v: Any, data: Mapping[str, Any] | None = None) -> None:
        """Add edges ``u[i] -> v[i]``, with columns ``data`` of a row each; one node goes with all of the others."""
        size = self._graph.num_nodes + sum(num for num, *_ in self._added)
        src, dst = (as_ids(as_vector(x), name, size) for x, name in ((u, "u"), (v, "v")))
        if len(src) != len(dst) and 1 not in (len(src), len(dst)):
            raise ValueError(f"u and v must have one entry per edge, got {len(src)} and {len(dst)}")
        size = max(len(src), len(dst)) if len(src) and len(dst) else 0
        self._add(0, np.broadcast_to(src, size), np.broadcast_to(dst, size), data)

    def _add(self, num: int, src: Any, dst: Any, data: Mapping[str, Any] | None) -> None:
        if self._readonly:
            raise ValueError("this graph is read-only: call g.readonly(False) before adding nodes or edges")
        grows = self._graph.ndata if num else self._graph.edata if len(src) else {}
        if sparse := [name for name, column in grows.items() if column.layout != torch.strided]:
            raise TypeError(
                f"column {sparse[0]!r} is sparse and takes no rows: set it after the last node or edge is added"
            )
        self._added.append((num, src, dst, data))
        if data:  # columns that do not fit raise here, and then nothing is added
            try:
                self._grow()
            except Exception:
                self._added.pop()
                raise

    def _made(self, structure: Graph) -> Graph:
        """The graph of a structure, with edges sorted and initialisers set as in this one."""
        made = structure
        if self._sorted:
            made = _bare(structure, sort=True)
            made.ndata.update(structure.ndata)
            made.edata.update(structure.edata)
        for side, initial, name in self._initializers:
            getattr(made, side).set_initializer(initial, name)
        return made

    def _grow(self) -> None:
        """Make the graph with all that was added since the last one."""
        old, added = self._graph, self._added
        size = old.num_nodes + sum(num for num, *_ in added)
        ends = [torch.cat([end, *(torch.from_numpy(np.array(part[k])) for part in added)])
                for k, end in enumerate(old.edges(), 1)]  # fmt: skip
        made = self._made(Graph.from_edges(*ends, num_nodes=size))
        nodes, edges = old.num_nodes, old.num_edges
        for frame, before in ((made.ndata, old.ndata), (made.edata, old.edata)):
            for name, column in before.items():
                new = frame.num_rows - len(column)
                frame[name] = torch.cat([column, frame.initial(name, new, column)]) if new else column
        for num, src, _, data in added:
            rows = Rows(made.ndata, torch.arange(nodes, nodes + num), NODES) if num else Rows(
                made.edata, torch.arange(edges, edges + len(src)), EDGES
            )  # fmt: skip
            rows.update(data or {})
            nodes, edges = nodes + num, edges + len(src)
        self._graph, self._added = made, []

    def from_networkx(self, nx_graph: Any, node_attrs: Any = None, edge_attrs: Any = None) -> None:
        """Become the graph of a networkx graph, with its nodes in sorted order and attributes as columns."""
        import networkx

        nx_graph = directed(networkx.convert_node_labels_to_integers(nx_graph, ordering="sorted"))
        made, edges = of_networkx(nx_graph), list(nx_graph.edges(data=True))
        ids = [data["id"] for _, _, data in edges] if edges and "id" in edges[0][2] else range(len(edges))
        by_id = [data for _, data in sorted(zip(ids, (data for *_, data in edges), strict=True), key=lambda x: x[0])]
        nodes = {name: _column([nx_graph.nodes[i][name] for i in range(made.num_nodes)]) for name in node_attrs or ()}
        columns = {name: _column([data[name] for data in by_id]) for name in edge_attrs or ()}
        made = self._made(made)
        made.ndata.update(nodes)
        made.edata.update(columns)
        self._graph, self._added = made, []

    def from_scipy_sparse_matrix(self, spmat: Any, multigraph: bool | None = None) -> None:
        """Become the graph of a scipy matrix, without columns."""
        self._graph, self._added = self._made(structure_of(spmat)), []

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
    def nodes(self) -> _Nodes:
        """``g.nodes()`` are the ids of all nodes, ``g.nodes[v].data`` the columns at nodes ``v``."""
        return _Nodes(self)

    @property
    def edges(self) -> _Edges:
        """``g.edges()`` is ``all_edges``, ``g.edges[e].data`` are the columns at edges: ids, or a pair ``(u, v)``."""
        return _Edges(self)

    def node_attr_schemes(self) -> dict[str, Scheme]:
        """Return shape and dtype of every node column."""
        return schemes(self.ndata)

    def edge_attr_schemes(self) -> dict[str, Scheme]:
        """Return shape and dtype of every edge column."""
        return schemes(self.edata)

    def set_n_initializer(self, initializer: Any, field: str | None = None) -> None:
        """Set what fills the rows of new node columns that nobody sets: a function of (shape, dtype, device, range)."""
        self._initialize("ndata", as_initializer(initializer), field)

    def set_e_initializer(self, initializer: Any, field: str | None = None) -> None:
        """Set what fills the rows of new edge columns that nobody sets: a function of (shape, dtype, device, range)."""
        self._initialize("edata", as_initializer(initializer), field)

    def _initialize(self, side: str, made: Any, field: str | None) -> None:
        getattr(self.graph, side).set_initializer(made, field)
        self._initializers.append((side, made, field))

    def set_n_repr(self, data: Mapping[str, Any], u: Any = ALL, inplace: bool = False) -> None:
        """Set node columns, at all nodes or at the nodes ``u``."""
        with in_place(self.ndata, inplace):
            self.nodes[u].data.update(data)

    def get_n_repr(self, u: Any = ALL) -> MutableMapping[str, Tensor]:
        """Return the node columns, at all nodes or at the nodes ``u``."""
        return dict(self.nodes[u].data)

    def pop_n_repr(self, key: str) -> Tensor:
        """Remove a node column and return it."""
        return self.ndata.pop(key)

    def set_e_repr(self, data: Mapping[str, Any], edges: Any = ALL, inplace: bool = False) -> None:
        """Set edge columns, at all edges or at some."""
        with in_place(self.edata, inplace):
            self.edges[edges].data.update(data)

    def get_e_repr(self, edges: Any = ALL) -> MutableMapping[str, Tensor]:
        """Return the edge columns, at all edges or at some."""
        return dict(self.edges[edges].data)

    def pop_e_repr(self, key: str) -> Tensor:
        """Remove an edge column and return it."""
        return self.edata.pop(key)

    def to(self, ctx: torch.device | str) -> Self:
        """Move all columns to a device, in this graph, and return it."""
        for frame in (self.ndata, self.edata):
            frame.update({name: column.to(ctx) for name, column in frame.items()})
        return self

    # ---- message passing

    def register_message_func(self, func: Any) -> None:
        """Set the message function of calls without one."""
        self._registered.set("message", func, range(1))

    def register_reduce_func(self, func: Any) -> None:
        """Set the reduce function of calls without one."""
        self._registered.set("reduce", func, range(1))

    def register_apply_node_func(self, func: Any) -> None:
        """Set the function that calls without one apply to nodes."""
        self._registered.set("apply node", func, range(1))

    def register_apply_edge_func(self, func: Any) -> None:
        """Set the function that ``apply_edges`` applies without one."""
        self._registered.set("apply edge", func, range(1))

    def update_all(
        self, message_func: Any = DEFAULT, reduce_func: Any = DEFAULT, apply_node_func: Any = DEFAULT
    ) -> None:
        """Compute all nodes from messages along all edges. Without edges only ``apply_node_func`` is applied."""
        self._compute(ALL, message_func, reduce_func, apply_node_func)

    def pull(
        self, v: Any, message_func: Any = DEFAULT, reduce_func: Any = DEFAULT, apply_node_func: Any = DEFAULT,
        inplace: bool = False,
    ) -> None:  # fmt: skip
        """Compute the nodes ``v`` from messages along their in-edges; repeats count once.

        Without any in-edge only ``apply_node_func`` is applied.
        """
        nodes = np.unique(as_ids(as_vector(v), "v", self.graph.num_nodes))
        with in_place(self.ndata, inplace):
            self._compute(nodes, message_func, reduce_func, apply_node_func)

    def _compute(self, v: Any, *functions: Any) -> None:
        roles = ("message", "reduce", "apply node")
        chosen = [self._registered.chosen(*pair) for pair in zip(roles, functions, strict=True)]
        if self.graph.num_edges and (isinstance(v, _All) or int(self.graph.in_degrees(v).sum())):
            update_nodes(self.graph, v, chosen, self._node_frame)
        elif chosen[2] is not None:
            apply_nodes(self.graph, chosen[2], v)

    def _node_frame(self, size: int) -> Frame:
        """An empty frame of so many nodes, with the initialisers of this graph."""
        frame = Frame(size)
        for side, initial, name in self._initializers:
            if side == "ndata":
                frame.set_initializer(initial, name)
        return frame

    def apply_nodes(self, func: Any = DEFAULT, v: Any = ALL, inplace: bool = False) -> None:
        """Apply a function to nodes and store what it returns; None does nothing."""
        func = self._registered.chosen("apply node", func)
        if func is not None:
            with in_place(self.ndata, inplace):
                apply_nodes(self.graph, func, as_vector(v))

    def apply_edges(self, func: Any = DEFAULT, edges: Any = ALL, inplace: bool = False) -> None:
        """Apply a function to edges (ids, or a pair of their ends) and store what it returns."""
        func = self._registered.chosen("apply edge", func)
        with in_place(self.edata, inplace):
            apply_edges(self.graph, func, self.edge_ids_at(edges))

    def edge_ids_at(self, edges: Any) -> Any:
        """Return the ids of edges that are given by ids, or by a pair ``(u, v)`` of their ends; ALL stays."""
        if isinstance(edges, tuple):
            u, v = edges
            return self.edge_ids(u, v, return_uv=True)[2]
        return as_vector(edges)

    # ---- matrices

    adjacency_matrix_scipy = matrices.adjacency_matrix_scipy
    adjacency_matrix = matrices.adjacency_matrix
    incidence_matrix = matrices.incidence_matrix

    def __getattr__(self, name: str) -> NoReturn:
        refuse("a DGLGraph", name)

    def __repr__(self) -> str:
        sizes = f"num_nodes={self.graph.num_nodes}, num_edges={self.graph.num_edges}"
        return f"DGLGraph({sizes}, ndata_schemes={self.node_attr_schemes()}, edata_schemes={self.edge_attr_schemes()})"


class _Nodes:
    def __init__(self, g: DGLGraph) -> None:
        self._g = g

    def __call__(self) -> Tensor:
        return torch.arange(self._g.graph.num_nodes)

    def __len__(self) -> int:
        return self._g.graph.num_nodes

    def __getitem__(self, v: Any) -> Space:
        frame = self._g.ndata
        if _is_all(v):
            return Space(frame)
        ids = torch.from_numpy(as_ids(as_vector(v), "nodes", frame.num_rows))
        return Space(Rows(frame, ids, NODES))


class _Edges:
    def __init__(self, g: DGLGraph) -> None:
        self._g = g

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._g.all_edges(*args, **kwargs)

    def __len__(self) -> int:
        return self._g.graph.num_edges

    def __getitem__(self, edges: Any) -> Space:
        frame = self._g.edata
        if _is_all(edges):
            return Space(frame)
        ids = torch.from_numpy(as_ids(self._g.edge_ids_at(edges), "edges", frame.num_rows, "edge"))
        return Space(Rows(frame, ids, EDGES))


def _is_all(key: Any) -> bool:
    if isinstance(key, slice) and key != slice(None):
        raise ValueError(f"only the full slice ':' is taken, got {key}: pass ids")
    return isinstance(key, (slice, _All))


def _column(values: list[Any]) -> Tensor:
    return torch.stack(values) if values and isinstance(values[0], Tensor) else torch.tensor(values)


def _bare(graph: Graph, *, sort: bool = False) -> Graph:
    """Return a graph of the same structure without columns; with ``sort``, edges into a node are sorted by source."""
    indptr, indices, edge_ids = graph.csc()
    if sort:
        row = np.repeat(np.arange(graph.num_nodes), np.diff(indptr))
        order = np.lexsort((indices, row))
        indices, edge_ids = indices[order], order if edge_ids is None else edge_ids[order]
    return Graph(indptr, indices, edge_ids=edge_ids)
