"""Choosing edges of a graph that several processes may hold: on their owners, or here after fetching them.

One process has all edges: every function here then hands back what it was given, or calls ``choose``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, describe
from nodeflow._base.dtypes import DTYPES
from nodeflow._base.types import Array, Floats
from nodeflow._edges.edges import NOTHING, Edges
from nodeflow._edges.forms import Placed
from nodeflow._peers.held import WholeIds, together
from nodeflow._peers.routes import Routes, narrowed
from nodeflow._rows.rows import as_array, from_numpy
from nodeflow.graph import Graph
from nodeflow.random import Random
from nodeflow.sampling._bound import Candidates, Reader
from nodeflow.sampling._call import Call
from nodeflow.sampling._choice import Choice, check_choice, parent_eid

if TYPE_CHECKING:
    from nodeflow.sampling._bound import BoundSampler
    from nodeflow.sampling._sampler import Sampler, Step

    AnySampler = TypeVar("AnySampler", bound=BoundSampler)

Arrays = list[Array]


def choose_edges(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
    """Return what ``sampler.choose(dst, step)`` returns on the whole graph; collective, ``dst`` may be empty."""
    peers = sampler.graph.peers
    # the edges of one process need not travel: no copies
    if peers.size == 1:
        return sampler.choose(dst, step)
    with peers.together(f"drawing edges of flow {step.flow}"):
        if sampler.by_row:
            return _chosen_by_owners(sampler, dst, step)
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
    """Return a sampler that looks up the edges of ``nodes``, but those that it leaves out, here; collective."""
    graph, reader = sampler.graph, sampler.reader
    layout = reader.edges.whole_rows
    # the rows of one process serve as they are, without a copy
    if graph.peers.size == 1:
        return sampler

    with together(graph, "edges of nodes"):
        rows = np.unique(nodes)
        indptr, indices, ids, *column = edges_of(graph, reader, rows)
    whole = _BroughtIds(graph.num_nodes, rows, ids)
    kinds = NOTHING if layout.is_plain else column.pop(0)
    edges = Edges._trusted(indptr, indices, None, whole=whole)
    edges = edges.by_kind(lambda: kinds, own=layout.restricted(rows), whole=layout)
    return sampler.with_reader(Reader(edges, Placed(column[0]) if column else None, reader.weight_type, None))


def edges_of(graph: Graph, reader: Reader, nodes: Ints) -> Arrays:
    """Return the edges of some nodes, one after another, wherever they lie; collective.

    Arrays are: ``indptr``; the other ends of the edges and their ids, both parent ids; their kinds, where a node may
    have several rows; their weights, where the reader has weights.
    """

    def found(own: Reader, nodes: Ints) -> Arrays:
        candidates = Candidates(own, torch.from_numpy(nodes))
        indices, ids = own.edges.indices[candidates.positions], own.edges.ids(candidates.positions)
        weights = [] if own.weights is None else [own.weights[ids]]
        kinds = [] if own.edges.whole_rows.is_plain else [own.edges.kinds_at(candidates.positions)]
        eid = narrowed(own.edges.whole.edge_ids_of(ids), graph.num_edges)
        return [candidates.degrees.numpy(), indices, eid, *kinds, *weights]

    answers, routes = ask_owners(graph, reader, "edges of nodes", [nodes], found)
    indptr, taken = _in_order([arrays[0] for arrays in answers], routes)
    indices, ids, *columns = (taken(list(arrays)) for arrays in list(zip(*answers, strict=True))[1:])
    return [indptr, indices, ids.astype(np.int64, copy=False), *columns]


def squared_norms(sources: Array, weights: Array | None, size: int) -> Floats:
    """Return for each of ``size`` sources the sum of the squared ``weights`` (None: 1) of its edges, float64."""
    squares = None if weights is None else np.square(weights, dtype=np.float64)
    return np.bincount(sources, squares, minlength=size).astype(np.float64)


def own_positions(graph: Graph, edges: Edges) -> Ints | slice:
    """Return the positions of the edges of nodes that this process owns, of all that samplers read here."""
    nodes = graph.near.held.masters.numpy()
    own = graph.peers.owners(nodes) == graph.peers.rank
    return slice(None) if own.all() else np.flatnonzero(np.repeat(own, np.diff(edges.node_indptr)))


def norms_of_sources(graph: Graph, edges: Edges, weights: Array | None) -> Floats:
    """Return for each node the sum of the squared ``weights``, by position, of the edges from it; None: 1. Collective.

    Numbers are added in the order of the whole graph, so sums are those of one process bit for bit.
    """
    peers, size = graph.peers, graph.num_nodes
    # a pass over the edges, without a sort of them
    if peers.size == 1:
        return squared_norms(edges.indices, weights, size)
    masters, own = graph.masters.numpy(), own_positions(graph, edges)
    with together(graph, "squared norms of edge weights"):
        dst = np.repeat(graph.near.held.masters.numpy(), np.diff(edges.indptr))
        columns = [column[own] for column in (edges.indices, dst, *([] if weights is None else [weights]))]
        received = peers.exchange("edges by source", Routes(peers.owners(columns[0]), peers.size).parcels(*columns))
        empty = [column[:0] for column in columns]
        src, dst, *rest = map(np.concatenate, zip(empty, *(arrays for arrays in received if arrays), strict=True))
        order = np.argsort(dst, kind="stable")
        of_masters = squared_norms(src[order], rest[0][order] if rest else None, size)[masters]
        norms = np.zeros(size)
        for nodes, some in peers.gather("squared norms", [masters, of_masters]):
            norms[nodes] = some
    return norms


def ask_owners(
    graph: Graph,
    reader: Reader,
    what: str,
    columns: Arrays,
    answer: Callable[..., Arrays],
    facts: Arrays | None = None,
    *,
    last: bool = False,
) -> tuple[list[Arrays], Routes]:
    """Ask about the edges of nodes where they are; returns the answers, and their routes back.

    ``columns`` are the nodes ``[k]``, and arrays with an entry for each, or empty ones; ``facts`` are for every
    process. ``answer`` is called where the edges are, with the ``reader`` there (without the edges that ``reader``
    leaves out here), the entries of ``columns`` and all of ``facts``. ``last``: see ``Peers.ask``.
    """
    # a process without entries is asked nothing, except this one, so that at least one answer exists
    peers, held = graph.peers, graph.near.held
    routes = Routes(held.holders(columns[0]), peers.size)
    left_out = NOTHING if reader.left_out is None else reader.left_out
    lies = peers.owners(left_out, "edge") if len(left_out) else left_out
    parcels: list[Arrays] = []
    for r in range(peers.size):
        entries = routes.to(r)
        absent = left_out if r == peers.rank else left_out[lies == r]
        parcel = [absent, *(column[entries] if len(column) else column for column in columns), *(facts or ())]
        parcels.append(parcel if len(entries) or r == peers.rank else [])
    answers = peers.ask(what, parcels, _with_reader(graph, reader, answer), last=last)
    return [arrays for arrays in answers if arrays], routes


def _with_reader(graph: Graph, reader: Reader, answer: Callable[..., Arrays]) -> Callable[..., Arrays]:
    """What answers questions with a reader, which leaves out those edges that are named before the question."""
    intact = reader.intact()

    def answered(left_out: Ints, *question: Array) -> Arrays:
        return answer(intact.without(left_out, graph.near.held) if len(left_out) else intact, *question)

    return answered


def _chosen_by_owners(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
    """What is at hand is chosen here; other destinations travel to their owners, and the chosen edges back."""
    graph, reader, call, times = sampler.graph, sampler.reader, step.inputs, np.zeros(0)
    peers = graph.peers
    if isinstance(call, Call):
        call, times = call.inputs, call.times
    if call is not None:
        raise TypeError(
            f"inputs cannot be given to a sampler of a graph that lies on several processes, got {describe(call)}: the "
            "processes that draw do not have them"
        )

    def answer(
        reader: Reader, nodes: Ints, contexts: Ints, roots: Ints, keys: Array, number: Ints, times: Array
    ) -> Arrays:
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
        own = sampler if reader is sampler.reader else sampler.with_reader(reader)
        choice = own.choose(torch.from_numpy(nodes), question)
        check_choice(graph, reader.edges, choice, nodes, step.flow)
        return _packed(own, choice)

    what, last = f"edges drawn for flow {step.flow}", step.flow == 0
    if (graph.near.held.holders(dst.numpy()) == peers.rank).all():
        peers.ask(what, [[]] * peers.size, _with_reader(graph, reader, answer), last=last)
        choice = sampler.choose(dst, step)
        check_choice(graph, reader.edges, choice, dst.numpy(), step.flow)
        _check_travels(choice)
        return choice
    keys = np.array([step.random.key, step.batch_random.key, step.epoch_random.key], np.uint64)
    number = np.array([] if step.batch_number is None else [step.batch_number], np.int64)
    columns = [dst.numpy(), *(NOTHING if c is None else c.numpy() for c in (step.contexts, step.roots))]
    facts = [keys, number, times]
    answers, routes = ask_owners(graph, reader, what, columns, answer, facts, last=last)
    return _joined(answers, routes)


def _check_travels(choice: Choice) -> None:
    """Raise TypeError for a Choice that only some processes could have, also where it does not travel."""
    if choice.nodes is not None:
        raise TypeError("a Choice has no ndata where the graph lies on several processes, which may share its nodes")
    if recorded := [name for name, column in sorted(choice.edata.items()) if column.requires_grad]:
        raise TypeError(f"column {recorded[0]!r} of a Choice has a gradient, which cannot travel between processes")


def _packed(sampler: Sampler, choice: Choice) -> Arrays:
    """The chosen edges as they travel.

    Arrays are: ``needs_weight`` and the names and types of columns in JSON; the number of edges of every destination;
    the parent ids of sources and edges; estimator weights, of no dimension where all are 1; the edge columns.
    """
    _check_travels(choice)
    edges, graph, sent = sampler.reader.edges, sampler.graph, sorted(choice.edata.items())
    names = [(name, str(column.dtype).removeprefix("torch.")) for name, column in sent]
    text = np.frombuffer(json.dumps([choice.needs_weight, names]).encode(), np.uint8)
    src, eid = choice.take_sources(edges), parent_eid(edges, choice).get().numpy()
    counts, src = narrowed(np.diff(choice.indptr), len(src)), narrowed(src, graph.num_nodes)
    weight = np.zeros(()) if choice.weight is None else choice.weight.get().numpy()
    columns = [as_array(column.cpu().contiguous()) for _, column in sent]
    return [text, counts, src, narrowed(eid, graph.num_edges), weight, *columns]


def _joined(answers: list[Arrays], routes: Routes) -> Choice:
    """The edges of all destinations, from those that each process packed, in the order of the destinations.

    Where a process chose no edges, its answer may lack weights and columns that the others have.
    """
    indptr, taken = _in_order([counts for _, counts, *_ in answers], routes)
    answers = [arrays for arrays in answers if len(arrays[2])] or answers[:1]
    needs, names = zip(*(json.loads(arrays[0].tobytes()) for arrays in answers), strict=True)
    if other := [each for each in names if each != names[0]]:
        raise ValueError(f"a Choice must have the same columns on all processes, got {names[0]} and {other[0]}")
    weights = [weight if weight.ndim else np.ones(len(src), np.float32) for _, _, src, _, weight, *_ in answers]
    weight = torch.from_numpy(taken(weights)) if any(arrays[4].ndim for arrays in answers) else None
    needed = True if True in needs else None if None in needs else False
    src, eid = (taken([arrays[i] for arrays in answers]).astype(np.int64, copy=False) for i in (2, 3))
    columns = {
        name: from_numpy(taken([arrays[5 + i] for arrays in answers]), DTYPES[kind])
        for i, (name, kind) in enumerate(names[0])
    }
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
