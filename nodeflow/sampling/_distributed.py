"""Choosing edges of a graph that several processes may hold: on their owners, or here after fetching them.

One process has all edges: every function here then hands back what it was given, or calls ``choose``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, describe
from nodeflow._base.types import Array, Floats
from nodeflow._edges.edges import NOTHING, Edges
from nodeflow._peers.held import Peers, WholeIds, together
from nodeflow._peers.routes import Routes, narrowed
from nodeflow._rows.rows import as_array, from_numpy
from nodeflow.graph import Graph
from nodeflow.random import Random
from nodeflow.sampling._assemble import check_choice, parent_eid
from nodeflow.sampling._base import Call
from nodeflow.sampling._bound import Reader
from nodeflow.sampling._choice import Choice

if TYPE_CHECKING:
    from nodeflow.sampling._bound import BoundSampler
    from nodeflow.sampling._sampler import Sampler, Step

    AnySampler = TypeVar("AnySampler", bound=BoundSampler)

_NEEDS_WEIGHT = {False: 0, True: 1, None: 2}
Arrays = list[Array]


def choose_edges(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
    """Return what ``sampler.choose(dst, step)`` returns on the whole graph.

    All processes call this function, each with destinations and a step of its own; they may be different, and none.
    A sampler that draws by row chooses where the edges lie; for another one the edges of ``dst`` are brought here.
    """
    peers = sampler.graph.peers
    if peers.size == 1:
        return sampler.choose(dst, step)
    with peers.together(f"drawing edges of flow {step.flow}"):
        if sampler.by_row:
            return _chosen_by_owners(sampler, peers, dst, step)
        own = with_rows_of(sampler, dst.numpy())
        choice, edges = own.choose(dst, step), own.reader.edges
        check_choice(sampler.graph, edges, choice, dst.numpy(), step.flow)
        src, eid = choice.take_sources(edges), parent_eid(edges, choice).get()
        weight = None if choice.weight is None else choice.weight.get
        columns: Any = {name: getattr(choice, name) for name in ("needs_weight", "edata", "nodes", "ndata")}
        return Choice.of_kernel(choice.indptr, None, src, weight, eid=eid, **columns)


class _BroughtIds(WholeIds):
    """The ids of rows that were brought here: those of the nodes ``rows``, ascending; ``edge_ids`` of their edges."""

    __slots__ = ("edge_ids", "rows")
    rows: Ints
    edge_ids: Ints

    def __init__(self, num_nodes: int, rows: Ints, edge_ids: Ints) -> None:
        super().__init__(num_nodes)
        self._set(rows=rows, edge_ids=edge_ids)

    def rows_of(self, nodes: Ints) -> Ints:
        """Return the local rows of nodes."""
        return np.searchsorted(self.rows, nodes)

    def edge_ids_of(self, edges: Ints) -> Ints:
        """Return the parent ids of edges, int64, by their places here."""
        return self.edge_ids[edges]


def with_rows_of(sampler: AnySampler, nodes: Ints) -> AnySampler:
    """Return a sampler like this one that looks up all edges of ``nodes`` in this process; collective.

    Edges that ``sampler`` leaves out are not among them. They come from the owners of the nodes, in two exchanges.
    """
    graph, reader = sampler.graph, sampler.reader
    peers, held = graph.peers, graph.held
    if peers.size == 1:
        return sampler
    with together(graph, "edges of nodes"):
        rows = np.unique(nodes)
        routes = Routes(peers.owners(rows), peers.size)
        questions = _asking(peers, routes, [rows], reader.left_out)
        received = peers.exchange("nodes whose edges are brought", questions)
        answers: list[Arrays] = [[] for _ in questions]
        for answer, arrays in zip(answers, received, strict=True):
            if arrays:
                own = reader.intact().without(arrays[-1], held)
                rows_here = own.candidates(torch.from_numpy(arrays[0]))
                indices, ids = own.edges.indices[rows_here.positions], own.edges.ids(rows_here.positions)
                weights = [] if own.weights is None else [own.weights[ids]]
                answer += [rows_here.degrees.numpy(), indices, held.whole.edge_ids_of(ids), *weights]
        brought = [arrays for arrays in peers.exchange("edges of nodes", answers) if arrays]
        indptr, taken = _in_order([arrays[0] for arrays in brought], routes)
        indices, ids, *column = (taken(list(arrays)) for arrays in list(zip(*brought, strict=True))[1:])
    whole = _BroughtIds(graph.num_nodes, rows, ids.astype(np.int64, copy=False))
    edges = Edges._trusted(indptr, indices, None, whole=whole)
    return sampler.with_reader(Reader(edges, column[0] if column else None, reader.weight_type, None))


def squared_norms(sources: Array, weights: Array | None, size: int) -> Floats:
    """Return for each of ``size`` sources the sum of the squared ``weights`` (None: 1) of its edges, float64."""
    squares = None if weights is None else np.square(weights, dtype=np.float64)
    return np.bincount(sources, squares, minlength=size).astype(np.float64)


def norms_of_sources(graph: Graph, edges: Edges, weights: Array | None) -> Floats:
    """Return for each node the sum of the squared ``weights``, by position, of the edges from it; None: 1. Collective.

    Numbers are added in the order of the whole graph, so sums are those of one process bit for bit.
    """
    peers, size = graph.peers, graph.num_nodes
    if peers.size == 1:
        return squared_norms(edges.indices, weights, size)
    masters = graph.masters.numpy()
    with together(graph, "squared norms of edge weights"):
        dst = np.repeat(masters, np.diff(edges.indptr))
        columns = [edges.indices, dst, *([] if weights is None else [weights])]
        received = peers.exchange("edges by source", Routes(peers.owners(edges.indices), peers.size).parcels(*columns))
        empty = [column[:0] for column in columns]
        src, dst, *rest = map(np.concatenate, zip(empty, *(arrays for arrays in received if arrays), strict=True))
        order = np.argsort(dst, kind="stable")
        own = squared_norms(src[order], rest[0][order] if rest else None, size)[masters]
        norms = np.zeros(size)
        for nodes, some in peers.gather("squared norms", [masters, own]):
            norms[nodes] = some
    return norms


def _asking(peers: Peers, routes: Routes, columns: Arrays, left_out: Ints | None) -> list[Arrays]:
    """Questions to every process: its entries of some arrays, and the edges held there that are left out.

    A rank without entries is sent nothing, except this one, so that at least one answer exists.
    """
    lies = None if left_out is None else peers.edge_owners(left_out)
    questions: list[Arrays] = []
    for r in range(peers.size):
        own = routes.to(r)
        out = NOTHING if left_out is None or lies is None else left_out[lies == r]
        asks = len(own) > 0 or r == peers.rank
        questions.append([*(c[own] if len(c) else c for c in columns), out] if asks else [])
    return questions


def _chosen_by_owners(sampler: Sampler, peers: Peers, dst: Tensor, step: Step) -> Choice:
    """The destinations travel to their owners, and the chosen edges back: source, parent edge id, estimator weight."""
    nodes = dst.numpy()
    routes = Routes(peers.owners(nodes), peers.size)
    questions = peers.exchange("destinations that draw", _questions(sampler, peers, step, nodes, routes))
    answers = [_answer(sampler, step, arrays, own=r == peers.rank) for r, arrays in enumerate(questions)]
    drawn = peers.exchange("edges that were drawn", answers)
    return _joined([_Drawn.of(arrays) for arrays in drawn if arrays], routes)


def _questions(sampler: Sampler, peers: Peers, step: Step, nodes: Ints, routes: Routes) -> list[Arrays]:
    """Questions to every process: the keys of the step, its destinations, and all that the draw must know of them."""
    call, times = step.inputs, np.zeros(0)
    if isinstance(call, Call):
        call, times = call.inputs, call.times
    if call is not None:
        raise TypeError(
            f"inputs cannot be given to a sampler of a graph that lies on several processes, got {describe(call)}: the "
            "processes that draw do not have them"
        )
    keys = np.array([step.random.key, step.batch_random.key, step.epoch_random.key], np.uint64)
    number = np.array([] if step.batch_number is None else [step.batch_number], np.int64)
    contexts = [NOTHING if c is None else c.numpy() for c in (step.contexts, step.roots)]
    questions = _asking(peers, routes, [nodes, *contexts], sampler.reader.left_out)
    return [[keys, number, times, *question] if question else [] for question in questions]


def _answer(sampler: Sampler, step: Step, arrays: Arrays, *, own: bool) -> Arrays:
    """Choose edges for the process that sent the request ``arrays``; ``step`` is this process's own."""
    if not arrays:
        return []
    keys, number, times, nodes, contexts, roots, left_out = arrays
    if not own and (len(left_out) or sampler.reader.left_out is not None):
        sampler = sampler.with_reader(sampler.reader.intact().without(left_out, sampler.graph.held))
    random, batch_random, epoch_random = (Random(int(key)) for key in keys)
    question = step._replace(
        random=random,
        batch_random=batch_random,
        epoch_random=epoch_random,
        batch_number=int(number[0]) if len(number) else None,
        contexts=None if step.contexts is None else torch.from_numpy(contexts),
        roots=None if step.roots is None else torch.from_numpy(roots),
        inputs=Call(times=times) if isinstance(step.inputs, Call) else None,
    )
    choice = sampler.choose(torch.from_numpy(nodes), question)
    check_choice(sampler.graph, sampler.reader.edges, choice, nodes, step.flow)
    if choice.nodes is not None:
        raise TypeError("a Choice has no ndata where the graph lies on several processes, which may share its nodes")
    return _Drawn.made(sampler, choice, narrow=not own).arrays()


class _Drawn(NamedTuple):
    """The edges that a process chose for another one, as they travel."""

    counts: Array  # number of edges of every destination, ``[n]``
    src: Array  # parent ids of their sources, and of the edges, ``[E]`` each
    eid: Array
    weight: Array  # estimator weights ``[E]``; of no dimension where all are 1
    needs_weight: int  # a value of ``_NEEDS_WEIGHT``
    columns: Arrays  # edge columns of the choice, ``[E, ...]`` each, in the order of their names
    names: list[tuple[str, str]]  # with their types

    @classmethod
    def made(cls, sampler: Sampler, choice: Choice, *, narrow: bool) -> _Drawn:
        edges, graph = sampler.reader.edges, sampler.graph
        src = choice.take_sources(edges)
        eid = parent_eid(edges, choice).get().numpy()
        weight = np.zeros(()) if choice.weight is None else choice.weight.get().numpy()
        sent = sorted(choice.edata.items())
        if recorded := [name for name, column in sent if column.requires_grad]:
            raise TypeError(f"column {recorded[0]!r} of a Choice has a gradient, which cannot travel between processes")
        names = [(name, str(column.dtype).removeprefix("torch.")) for name, column in sent]
        columns = [as_array(column.cpu().contiguous()) for _, column in sent]
        counts = np.diff(choice.indptr)
        if narrow:
            counts, src = narrowed(counts, len(src)), narrowed(src, graph.num_nodes)
            eid = narrowed(eid, graph.num_edges)
        return cls(counts, src, eid, weight, _NEEDS_WEIGHT[choice.needs_weight], columns, names)

    def arrays(self) -> Arrays:
        text = np.frombuffer(json.dumps(self.names).encode() if self.names else b"", np.uint8)
        flags = np.array([self.needs_weight], np.int64)
        return [self.counts, self.src, self.eid, self.weight, flags, text, *self.columns]

    @classmethod
    def of(cls, arrays: Arrays) -> _Drawn:
        counts, src, eid, weight, flags, text, *columns = arrays
        names = [(name, kind) for name, kind in json.loads(text.tobytes())] if len(text) else []
        return cls(counts, src, eid, weight, int(flags[0]), columns, names)


def _joined(drawn: list[_Drawn], routes: Routes) -> Choice:
    """The edges of all destinations, from those that each process sent, in the order of the destinations.

    Where a process chose no edges, its answer may lack weights and columns that the others have.
    """
    indptr, taken = _in_order([d.counts for d in drawn], routes)
    drawn = [d for d in drawn if len(d.src)] or drawn[:1]
    names = drawn[0].names
    if other := [d.names for d in drawn if d.names != names]:
        raise ValueError(f"a Choice must have the same columns on all processes, got {names} and {other[0]}")
    weights = [d.weight if d.weight.ndim else np.ones(len(d.src), np.float32) for d in drawn]
    weight = torch.from_numpy(taken(weights)) if any(d.weight.ndim for d in drawn) else None
    needs = {d.needs_weight for d in drawn}
    needed = True if 1 in needs else None if 2 in needs else False
    columns = {
        name: from_numpy(taken([d.columns[i] for d in drawn]), getattr(torch, kind))
        for i, (name, kind) in enumerate(names)
    }
    src, eid = (taken([getattr(d, end) for d in drawn]).astype(np.int64, copy=False) for end in ("src", "eid"))
    get = None if weight is None else lambda: weight
    return Choice.of_kernel(indptr, None, src, get, needs_weight=needed, eid=torch.from_numpy(eid), edata=columns)


def _in_order(counts: list[Array], routes: Routes) -> tuple[Ints, Callable[[Arrays], Array]]:
    """The ``indptr`` of entries in the order of their questions, and what joins the answers of all in that order.

    ``counts``: by process that answered, the number of edges of every entry that it was asked for.
    """
    joined = np.concatenate(counts)
    indptr, index = np.concatenate([np.zeros(1, np.int64), np.cumsum(joined, dtype=np.int64)]), None
    if not routes.in_order:
        indptr, index = kernels.csr.csr_rows(indptr, routes.back())

    def taken(arrays: Arrays) -> Array:
        every: Array = np.concatenate(arrays)
        return every if index is None else every[index]

    return indptr, taken
