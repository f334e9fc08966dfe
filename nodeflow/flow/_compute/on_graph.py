"""Message passing on the parent graph itself: its frames are read and written, without a NodeFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import ALL, Ints, _All, check_type
from nodeflow.flow._compute.guard import columns_of, explained
from nodeflow.flow._compute.part import Part, columns_at, written
from nodeflow.flow._compute.reducing import Messages
from nodeflow.flow._compute.run import distinct, run
from nodeflow.flow._compute.udf import NodeBatch
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from nodeflow._base.types import IdsLike
    from nodeflow.flow._types import ColumnsOfEdges, ColumnsOfNodes, MessageLike, ReduceLike
    from nodeflow.fn import MessageFunction

_WORDS = "the graph's nodes", "the graph's nodes", "the graph's edges"


class _Held(NamedTuple):
    """The frame of something."""

    data: Frame


class _Whole:
    """A graph in the place of a flow: its nodes are the sources and the destinations, its edges are the edges."""

    layers = (0, 0)

    def __init__(self, graph: Graph) -> None:
        self.src_layer = self.dst_layer = _Held(graph.ndata)
        self.data = graph.edata


def update_all(graph: Graph, message: MessageLike, reduce: ReduceLike, update: ColumnsOfNodes | None = None) -> None:
    """Compute columns of all nodes of a graph from messages of their in-neighbours; store them in ``graph.ndata``.

    Args:
        graph: the graph; its frames are read and written.
        message, reduce, update: as for ``NodeFlow.flow_compute``. Sources and destinations are nodes of the graph, and
            ids that functions see are ids of the graph.

    Built-in pairs hold no messages. Raises what ``flow_compute`` raises; then no frame has changed.

    >>> from nodeflow import fn
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 1], ndata={"h": torch.tensor([1.0, 2.0, 4.0])})
    >>> update_all(graph, fn.copy_u("h", "m"), fn.sum("m", "near"))
    >>> graph.ndata["near"]
    tensor([0., 5., 2.])
    """
    check_type(graph, "graph", Graph, "a nodeflow.Graph")
    indptr, indices, edge_ids = graph.csc()
    structure = _structure(indptr, indices, graph.num_nodes)
    if edge_ids is None:
        part = _part(graph, structure)
    else:  # functions of the user's own see the edges in the order of their ids
        ids = torch.from_numpy(edge_ids.astype(np.int64))
        order = torch.empty_like(ids)
        order[ids] = torch.arange(len(ids))
        part = _part(graph, structure, edges=ids, order=order)
    run(part, message, reduce, update)


def pull(
    graph: Graph, v: IdsLike, message: MessageLike, reduce: ReduceLike, update: ColumnsOfNodes | None = None
) -> None:
    """Do what ``update_all`` does for some nodes only; the other rows stay, and in a new column they are initial.

    Args:
        graph, message, reduce, update: see ``update_all``.
        v: distinct ids of the nodes to compute.

    Costs the edges into ``v`` and a copy of the columns written. Raises ValueError for a node given twice.

    >>> from nodeflow import fn
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 1], ndata={"h": torch.tensor([1.0, 2.0, 4.0])})
    >>> pull(graph, [2], fn.copy_u("h", "m"), fn.sum("m", "near"))
    >>> graph.ndata["near"]
    tensor([0., 0., 2.])
    """
    check_type(graph, "graph", Graph, "a nodeflow.Graph")
    nodes = distinct(v, "v", graph.num_nodes, "node")
    indptr, indices, edge_ids = graph.csc()
    chosen, positions = kernels.csr.csr_rows(indptr, nodes)
    structure = _structure(chosen, indices[positions], graph.num_nodes)
    ids = positions if edge_ids is None else edge_ids[positions].astype(np.int64)
    part = _part(graph, structure, rows=torch.from_numpy(nodes), edges=torch.from_numpy(ids))
    run(part, message, reduce, update)


def apply_nodes(graph: Graph, func: ColumnsOfNodes, v: IdsLike | _All = ALL) -> None:
    """Apply ``func`` to nodes of a graph and store the columns that it returns in ``graph.ndata``.

    ``v``: distinct ids of the nodes; the other rows stay, and in a new column they are initial.

    >>> graph = Graph.from_edges([0], [1], ndata={"h": torch.tensor([1.0, 2.0])})
    >>> apply_nodes(graph, lambda nodes: {"h": nodes.data["h"] * 10}, v=[1])
    >>> graph.ndata["h"]
    tensor([ 1., 20.])
    """
    check_type(graph, "graph", Graph, "a nodeflow.Graph")
    size, where = graph.num_nodes, _WORDS[0]
    rows = torch.from_numpy(np.arange(size) if isinstance(v, _All) else distinct(v, "v", size, "node"))
    some = None if isinstance(v, _All) else rows
    nodes = NodeBatch(columns_at(graph.ndata, where, some), lambda: rows, len(rows))
    with explained(func, "function", where, nodes.data):
        columns = columns_of(func(nodes), len(nodes), func, "function", "node")
    graph.ndata.update(written(graph.ndata, columns, some, where))


def apply_edges(graph: Graph, func: MessageFunction | ColumnsOfEdges, edges: IdsLike | _All = ALL) -> None:
    """Apply ``func`` to edges of a graph and store what it returns in ``graph.edata``.

    ``func`` takes ``edges`` and returns columns, or is a built-in message function, whose messages become the column
    named by its ``out``. ``edges``: distinct edge ids, seen in this order; the other rows stay, and in a new column
    they are initial.

    >>> from nodeflow import fn
    >>> graph = Graph.from_edges([0, 1], [1, 0], ndata={"h": torch.tensor([1.0, 2.0])})
    >>> apply_edges(graph, fn.u_sub_v("h", "h", "d"))
    >>> graph.edata["d"]
    tensor([-1.,  1.])
    """
    check_type(graph, "graph", Graph, "a nodeflow.Graph")
    ids = np.arange(graph.num_edges) if isinstance(edges, _All) else distinct(edges, "edges", graph.num_edges, "edge")
    src, dst = graph.find_edges(ids)
    ends, back = torch.sort(dst, stable=True)
    rows, counts = torch.unique_consecutive(ends, return_counts=True)
    order = torch.empty_like(back)
    order[back] = torch.arange(len(back))
    structure = Structure(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), src[back], graph.num_nodes)
    part = _part(graph, structure, rows=rows, edges=torch.from_numpy(ids)[back], order=order)
    columns = dict(Messages(part, [func]))
    everywhere = len(ids) == graph.num_edges
    if everywhere:  # whatever the column was before
        inverse = torch.argsort(part.edges) if part.edges is not None else slice(None)
        graph.edata.update({name: column[inverse] for name, column in columns.items()})
    else:
        graph.edata.update(written(graph.edata, columns, part.edges, part.data.where))


def _structure(indptr: Ints, indices: Ints, num_src: int) -> Structure:
    return Structure(torch.from_numpy(np.array(indptr)), torch.from_numpy(indices.astype(np.int64)), num_src)


def _part(
    graph: Graph,
    structure: Structure,
    *,
    rows: Tensor | None = None,
    edges: Tensor | None = None,
    order: Tensor | None = None,
) -> Part:
    return Part(_Whole(graph), structure, rows, edges, order, words=_WORDS)
