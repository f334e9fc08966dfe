"""Choosing edges of a graph that several processes may hold: on their owners, or here after
fetching them.

One process has all edges: every function here then hands back what it was given, or calls
``choose``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, describe
from nodeflow._core.base.frozen import Lazy
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import Placed
from nodeflow._core.edges.view import Reader
from nodeflow._core.peers.held_part import WholeIds
from nodeflow._core.peers.peers import Ask
from nodeflow._core.peers.routes import Routes, narrowed
from nodeflow._core.random import Random
from nodeflow.graph import Graph
from nodeflow.sampling._bound import Candidates
from nodeflow.sampling._choice import Choice, check_choice, needs_weight, parent_eid
from nodeflow.sampling._keys import Call, Step

if TYPE_CHECKING:
    from nodeflow.sampling._bound import BoundSampler
    from nodeflow.sampling._sampler import Sampler

    AnySampler = TypeVar("AnySampler", bound=BoundSampler)

Arrays = list[Array]


def _chosen_here(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
    """All edges of the destinations travel here, and are chosen among here."""
    local = with_rows_of(sampler, dst.numpy())
    choice = local.choose(dst, step)
    edges = local.reader.edges
    check_choice(sampler.graph, edges, choice, dst.numpy(), step.flow)
    return Choice.of_kernel(
        choice.indptr,
        None,
        choice.take_sources(edges),
        None if choice.weight is None else choice.weight.get,
        needs_weight=choice.needs_weight,
        eid=parent_eid(edges, choice).get(),
        edata=choice.edata,
        nodes=choice.nodes,
        ndata=choice.ndata,
    )


class _BroughtIds(WholeIds):
    """The ids of rows that were brought here: those of the nodes ``rows``, ascending; ``edge_ids``
    of their edges.
    """

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
    """Return a sampler that looks up the edges of ``nodes``, but those that it leaves out, here;
    collective.
    """
    graph = sampler.graph
    reader = sampler.reader
    layout = reader.edges.whole_rows
    # the rows of one process serve as they are, without a copy
    if graph.peers.size == 1:
        return sampler

    # each row is fetched once, however often its node is asked for
    rows = np.unique(nodes)
    indptr, indices, ids, *column = edges_of(graph, reader, rows)
    whole = _BroughtIds(graph.num_nodes, rows, ids)
    kinds = NOTHING
    if not layout.is_plain:
        kinds = column.pop(0)
    edges = Edges._trusted(indptr, indices, None, whole=whole)
    edges = edges.by_kind(lambda: kinds, node_rows=layout.restricted(rows), whole_rows=layout)
    weights = None
    if column:
        weights = Placed(column[0])
    return sampler.with_reader(Reader(edges, weights, reader.weight_type, None))


def edges_of(graph: Graph, reader: Reader, nodes: Ints) -> Arrays:
    """Return the edges of some nodes, one after another, wherever they lie; collective.

    Arrays are: ``indptr``; the other ends of the edges and their ids, both parent ids; their kinds,
    where a node may have several rows; their weights, where the reader has weights.
    """

    def found(there: Reader, nodes: Ints) -> Arrays:
        candidates = Candidates(there, torch.from_numpy(nodes))
        indices = there.edges.indices[candidates.positions]
        ids = there.edges.ids(candidates.positions)
        eid = narrowed(there.edges.whole.edge_ids_of(ids), graph.num_edges)
        arrays = [candidates.degrees.numpy(), indices, eid]
        if not there.edges.whole_rows.is_plain:
            arrays.append(there.edges.kinds_at(candidates.positions))
        if there.weights is not None:
            arrays.append(there.weights[ids])
        return arrays

    routes, parcels = to_owners(graph, reader, [nodes], [])
    asked = graph.peers.ask("edges of nodes", parcels, with_reader(graph, reader, found))
    answers = [arrays for arrays in asked if arrays]
    counts, *rows = zip(*answers, strict=True)
    indptr, taken = _in_order(counts, routes)
    indices, ids, *columns = map(taken, rows)
    return [indptr, indices, ids.astype(np.int64, copy=False), *columns]


def squared_norms(sources: Array, weights: Array | None, size: int) -> Floats:
    """Return for each of ``size`` sources the sum of the squared ``weights`` (None: 1) of its
    edges, float64.
    """
    if weights is not None:
        weights = np.square(weights, dtype=np.float64)
    return np.bincount(sources, weights, minlength=size).astype(np.float64)


def own_positions(graph: Graph, edges: Edges) -> Ints | slice:
    """Return the positions of the edges of nodes that this process owns, of all that samplers read
    here.
    """
    nodes = graph.for_sampling.held_part.masters.numpy()
    is_owned = graph.peers.owners(nodes) == graph.peers.rank
    if is_owned.all():
        return slice(None)
    return np.flatnonzero(np.repeat(is_owned, np.diff(edges.node_indptr)))


def norms_of_sources(graph: Graph, edges: Edges, weights: Array | None) -> Floats:
    """Return for each node the sum of the squared ``weights``, by position, of the edges from it;
    None: 1. Collective.

    Numbers are added in the order of the whole graph, so sums are those of one process bit for bit.
    """
    peers = graph.peers
    size = graph.num_nodes
    # a pass over the edges, without a sort of them
    if peers.size == 1:
        return squared_norms(edges.indices, weights, size)
    masters = graph.masters.numpy()
    owned = own_positions(graph, edges)
    dst = np.repeat(graph.for_sampling.held_part.masters.numpy(), np.diff(edges.indptr))
    columns = [edges.indices[owned], dst[owned]]
    if weights is not None:
        columns.append(weights[owned])
    routes = Routes(peers.owners(columns[0]), peers.size)
    received = peers.exchange("edges by source", routes.parcels(*columns))
    answers = [[column[:0] for column in columns], *filter(None, received)]
    src, dst, *squared = map(np.concatenate, zip(*answers, strict=True))
    # sums of floats depend on their order: that of the whole graph is by destination
    order = np.argsort(dst, kind="stable")
    ordered_weights = None
    if squared:
        ordered_weights = squared[0][order]
    of_masters = squared_norms(src[order], ordered_weights, size)[masters]
    norms = np.zeros(size)
    for nodes, some in peers.gather("squared norms", [masters, of_masters]):
        norms[nodes] = some
    return norms


def to_owners(
    graph: Graph, reader: Reader, columns: Arrays, facts: Arrays
) -> tuple[Routes, list[Arrays]]:
    """Return the routes of questions about nodes to where their edges are, and the questions by
    process.

    These are: the edges that ``reader`` leaves out there, the entries of ``columns``, of which the
    first are the nodes and an empty one has none, and all of ``facts``. See ``with_reader`` for
    what answers them.
    """
    peers = graph.peers
    held = graph.for_sampling.held_part
    routes = Routes(held.holders(columns[0]), peers.size)
    left_out = reader.left_out
    lies = left_out
    if len(left_out):
        lies = peers.owners(left_out, "edge")
    parcels: list[Arrays] = []
    for rank in range(peers.size):
        entries = routes.to(rank)
        absent = left_out
        if rank != peers.rank:
            absent = left_out[lies == rank]
        asked = (column[entries] if len(column) else column for column in columns)
        parcel = [absent, *asked, *facts]
        # a process without entries is asked nothing, except this one, so that at least one answer
        # exists
        parcels.append(parcel if len(entries) or rank == peers.rank else [])
    return routes, parcels


def with_reader(
    graph: Graph, reader: Reader, answer: Callable[..., Arrays]
) -> Callable[..., Arrays]:
    """What answers questions with a reader, which leaves out those edges that are named before the
    question.
    """
    # an edge that is left out here may lie there, so the question names them
    intact = reader.intact()

    def answered(left_out: Ints, *question: Array) -> Arrays:
        return answer(intact.without(left_out, graph.for_sampling.held_part), *question)

    return answered


@contextmanager
def choosing(sampler: Sampler) -> Iterator[Callable[[Tensor, Step], Choice]]:
    """Within the block, what is entered chooses edges flow by flow, at last for flow 0; collective.

    It returns what ``sampler.choose(dst, step)`` returns on the whole graph; ``dst`` may be empty.

    Where processes draw for each other, one that needs no edges of another goes on to its next flow
    at once, and answers the others when it needs some, or in the end.
    """
    peers = sampler.graph.peers
    # the edges of one process need not travel: no copies
    if peers.size == 1:
        yield sampler.choose
        return
    if not sampler.by_row:
        yield partial(_chosen_here, sampler)
        return
    answer = with_reader(sampler.graph, sampler.reader, partial(_drawn_for_another, sampler))
    with peers.answering("edges drawn", answer) as ask:
        yield partial(_chosen_by_owners, sampler, ask)


def _chosen_by_owners(sampler: Sampler, ask: Ask, dst: Tensor, step: Step) -> Choice:
    """What is at hand is chosen here; other destinations travel to their owners, and the chosen
    edges back.
    """
    graph = sampler.graph
    times = _times_of(step.inputs)
    if (graph.for_sampling.held_part.holders(dst.numpy()) == graph.peers.rank).all():
        choice = sampler.choose(dst, step)
        check_choice(graph, sampler.reader.edges, choice, dst.numpy(), step.flow)
        _check_travels(choice)
        return choice
    keys = np.array([step.random.key, step.batch_random.key, step.epoch_random.key], np.uint64)
    if step.batch_number is None:
        number = []
    else:
        number = [step.batch_number]
    columns = (step.contexts, step.roots, times)
    has = [column is not None for column in columns]
    contexts, roots, stamps = (
        NOTHING if column is None else np.asarray(column) for column in columns
    )
    entries = [dst.numpy(), contexts, roots]
    facts = [keys, np.array([step.flow, *has, *number]), stamps]
    # what is asked says all that the draw depends on: any process can make it
    routes, parcels = to_owners(graph, sampler.reader, entries, facts)
    answers = ask(parcels, last=step.flow == 0)
    return _joined([arrays for arrays in answers if arrays], routes)


def _times_of(inputs: Any) -> Array | None:
    """The times of a call, of a sampler that takes times; raises TypeError where the call has other
    inputs.
    """
    if isinstance(inputs, Call):
        call = inputs
    else:
        call = Call(inputs=inputs)
    if call.inputs is not None:
        raise TypeError(
            "inputs cannot be given to a sampler of a graph that lies on several processes, got "
            f"{describe(call.inputs)}: the processes that draw do not have them"
        )
    return call.times if isinstance(inputs, Call) else None


def _drawn_for_another(
    sampler: Sampler,
    reader: Reader,
    nodes: Ints,
    contexts: Ints,
    roots: Ints,
    keys: Array,
    facts: Ints,
    times: Array,
) -> Arrays:
    """The edges of ``nodes`` that are drawn here for another process, from its question: see
    ``_chosen_by_owners``.
    """
    flow, has_contexts, has_roots, has_times, *number = facts.tolist()
    random, batch_random, epoch_random = (Random(int(key)) for key in keys)
    step = Step(flow, random, batch_random, epoch_random, None, None, None)
    # an empty array stands for None in a question, where a batch may have no rows at all
    if number:
        step = step._replace(batch_number=number[0])
    if has_contexts:
        step = step._replace(contexts=torch.from_numpy(contexts))
    if has_times:
        step = step._replace(inputs=Call(times=times))
    if has_roots:
        step = step._replace(roots=torch.from_numpy(roots))
    if reader is sampler.reader:
        local = sampler
    else:
        local = sampler.with_reader(reader)
    choice = local.choose(torch.from_numpy(nodes), step)
    check_choice(sampler.graph, reader.edges, choice, nodes, flow)
    return _packed(local, choice)


def _check_travels(choice: Choice) -> None:
    """Raise TypeError for a Choice with columns, also where it does not travel: only some processes
    would have them.
    """
    if choice.nodes is not None or choice.edata:
        raise TypeError(
            "a Choice must have no edata and no ndata where the graph lies on several processes, "
            "which draw for each other; with by_row = False a sampler may have them"
        )


def _packed(sampler: Sampler, choice: Choice) -> Arrays:
    """The chosen edges as they travel.

    Arrays are: ``needs_weight``, empty for None; the number of edges of every destination; the
    parent ids of sources and edges; estimator weights, of no dimension where all are 1.
    """
    _check_travels(choice)
    edges = sampler.reader.edges
    graph = sampler.graph
    needs = np.zeros(0, np.bool_)
    if choice.needs_weight is not None:
        needs = np.array([choice.needs_weight])
    src = choice.take_sources(edges)
    eid = parent_eid(edges, choice).get().numpy()
    # ids travel in the narrowest type: they are most of what is sent
    counts = narrowed(np.diff(choice.indptr), len(src))
    src = narrowed(src, graph.num_nodes)
    if choice.weight is None:
        weight = np.zeros(())
    else:
        weight = choice.weight.get().numpy()
    return [needs, counts, src, narrowed(eid, graph.num_edges), weight]


def _joined(answers: list[Arrays], routes: Routes) -> Choice:
    """The edges of all destinations, from those that each process packed, in the order of the
    destinations.

    Where a process chose no edges, its answer may lack weights that the others have.
    """
    indptr, taken = _in_order([counts for _, counts, *_ in answers], routes)
    answers = [arrays for arrays in answers if len(arrays[2])] or answers[:1]
    needs, _, sources, eids, weights = zip(*answers, strict=True)
    weight = None
    if any(part.ndim for part in weights):
        # a process whose weights are all 1 has sent none
        parts = [
            part if part.ndim else np.ones(len(src), np.float32)
            for part, src in zip(weights, sources, strict=True)
        ]
        weight = Lazy.of(torch.from_numpy(taken(parts))).get
    src, eid = (taken(ids).astype(np.int64, copy=False) for ids in (sources, eids))
    return Choice.of_kernel(
        indptr,
        None,
        src,
        weight,
        needs_weight=needs_weight(answer.item() if len(answer) else None for answer in needs),
        eid=torch.from_numpy(eid),
    )


def _in_order(
    counts: Sequence[Array], routes: Routes
) -> tuple[Ints, Callable[[Sequence[Array]], Array]]:
    """The ``indptr`` of entries in the order of their questions, and what joins the answers of all
    in that order.

    ``counts``: by process that answered, the number of edges of every entry that it was asked for.
    """
    indptr = np.append(0, np.cumsum(np.concatenate(counts), dtype=np.int64))
    index = None
    if not routes.in_order:
        indptr, index = kernels.csr.csr_rows(indptr, routes.back())

    def taken(arrays: Sequence[Array]) -> Array:
        every: Array = np.concatenate(arrays)
        return every if index is None else every[index]

    return indptr, taken
