"""Random walks in a graph that lies on several processes: each is steered where it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._edges.edges import NOTHING, Edges
from nodeflow._peers.held import Held, Peers
from nodeflow._peers.routes import Routes, narrowed
from nodeflow.graph import Graph
from nodeflow.sampling._reader import Reader

Answer = Callable[[Edges, Ints, list[Array]], Array]


class Walks(NamedTuple):
    """The walks of a destination; see the arguments of ``kernels.walk.count_visits``."""

    number: int
    length: int
    restart: float
    most: int


def visits(graph: Graph, reader: Reader, dst: Ints, key: int, walks: Walks, flow: int) -> tuple[Ints, Ints, Ints]:
    """Return what ``kernels.walk.count_visits`` returns on the whole graph: ``(indptr, nodes, visits)``.

    Walks in a graph that this process holds are one compiled loop. Else all processes call this function, each with
    destinations ``dst`` and a key of its own. It keeps the states of its walks, and asks the owners of the nodes where
    they are for degrees, and for the neighbours that it picks: four exchanges per step.
    """
    peers, held = graph.peers, graph.held
    if peers.size == 1:
        patched, copies = patch_of(reader.edges)
        arrays = reader.edges.indptr, reader.edges.indices, patched, copies.indptr, copies.indices
        counted: tuple[Ints, Ints, Ints] = kernels.walk.count_visits(*arrays, dst, np.uint64(key), *walks)
        return counted
    with peers.together(f"random walks of flow {flow}"):
        owners = _Owners(peers, held, reader)
        choices = owners.degrees(dst)
        live = np.flatnonzero(choices)  # other destinations have no edges: no walks
        starts, choices = dst[live], choices[live]
        states = kernels.walk_steps.first_states(np.uint64(key), starts)
        current, degree = (np.repeat(values, walks.number).reshape(-1, walks.number) for values in (starts, choices))
        visited = np.empty((len(starts), walks.length, walks.number), np.int64)
        for step in range(walks.length):
            if step > 0:
                kernels.walk_steps.restart_some(states, starts, current, walks.restart)
                degree = _degrees_at(owners, current, starts, choices)
            picks = kernels.walk_steps.pick_edges(states, starts, choices, current, degree)
            current = owners.neighbors(current.ravel(), picks.ravel()).reshape(current.shape)
            visited[:, step] = current
    ends, nodes, counts = kernels.walk_steps.most_visited_of(visited, starts, walks.most)
    sizes = np.zeros(len(dst) + 1, np.int64)
    sizes[live + 1] = np.diff(ends)
    return np.cumsum(sizes), nodes, counts


def _degrees_at(owners: _Owners, current: Ints, starts: Ints, choices: Ints) -> Ints:
    """The degrees of the nodes where walks are; those of the starts, ``choices``, are known."""
    degree = np.repeat(choices, current.shape[1]).reshape(current.shape)
    away = current != starts[:, None]
    nodes, index = np.unique(current[away], return_inverse=True)
    degree[away] = owners.degrees(nodes)[index]
    return degree


class _Owners:
    """The processes that own nodes, which answer questions about their edges; a question is two exchanges.

    The edges that ``reader`` leaves out travel with the first question to the processes that hold them.
    """

    def __init__(self, peers: Peers, held: Held, reader: Reader) -> None:
        self._peers, self._held, self._reader = peers, held, reader.intact()
        left_out = NOTHING if reader.left_out is None else reader.left_out
        lies = peers.edge_owners(left_out)
        self._left_out: list[Ints] = [left_out[lies == r] for r in range(peers.size)]
        self._edges: list[Edges] = []  # along which each process walks here

    def degrees(self, nodes: Ints) -> Ints:
        """Return the number of edges of nodes, int64 ``[k]``."""
        return self._asked("degrees of nodes where walks are", _degrees, nodes)

    def neighbors(self, nodes: Ints, picks: Ints) -> Ints:
        """Return the node to which edge ``picks[i]`` of node ``nodes[i]`` leads, int64 ``[k]``."""
        return self._asked("steps of walks", _neighbors, nodes, picks)

    def _asked(self, what: str, answer: Answer, nodes: Ints, *more: Ints) -> Ints:
        peers, first = self._peers, not self._edges
        routes, parcels = Routes(peers.owners(nodes), peers.size), []
        for r in range(peers.size):
            own = routes.to(r)
            parcel = [narrowed(column[own]) for column in (nodes, *more)] + [self._left_out[r]] * first
            parcels.append(parcel if any(map(len, parcel)) else [])
        questions = peers.exchange(f"{what}: questions", parcels)
        if first:
            self._edges = [self._edges_for(arrays) for arrays in questions]
        answers: list[list[Array]] = [[] for _ in questions]
        for reply, edges, q in zip(answers, self._edges, questions, strict=True):
            if q:
                reply.append(answer(edges, q[0].astype(np.int64), q[1:]))
        received = peers.exchange(f"{what}: answers", answers)
        return routes.joined_array([arrays[0] for arrays in received if arrays])

    def _edges_for(self, arrays: list[Array]) -> Edges:
        """The edges held here without those that a process leaves out, which its first question names."""
        if not arrays or not len(arrays[-1]):
            return self._reader.edges
        return self._reader.without(arrays[-1], self._held).edges


def _degrees(edges: Edges, nodes: Ints, _: list[Array]) -> Array:
    patched, copies = patch_of(edges)
    return narrowed(kernels.walk_steps.degrees(edges.indptr, patched, copies.indptr, edges.rows_of(nodes)))


def _neighbors(edges: Edges, nodes: Ints, more: list[Array]) -> Array:
    patched, copies = patch_of(edges)
    other, picks = (patched, copies.indptr, copies.indices), more[0].astype(np.int64)
    ends: Array = kernels.walk_steps.neighbors(edges.indptr, edges.indices, *other, edges.rows_of(nodes), picks)
    return ends


def patch_of(edges: Edges) -> tuple[Ints, Edges]:
    """Return the rows of which edges are left out, ascending, and copies of these rows without them."""
    return (NOTHING, edges) if edges.patch is None else (edges.patch.rows, edges.patch.edges)
