"""Choosing edges in a graph that lies on several processes: each destination's edges where they lie."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, describe
from nodeflow._base.types import Array
from nodeflow._rows.rows import as_array, from_numpy
from nodeflow.graph._held import Peers
from nodeflow.graph._routes import Routes, narrowed
from nodeflow.random import Random
from nodeflow.sampling._assemble import check_choice, parent_eid
from nodeflow.sampling._base import Call
from nodeflow.sampling._choice import Choice

if TYPE_CHECKING:
    from nodeflow.sampling._sampler import Sampler, Step

_NEEDS_WEIGHT = {False: 0, True: 1, None: 2}
Arrays = list[Array]


def choose_apart(sampler: Sampler, peers: Peers, dst: Tensor, step: Step) -> Choice:
    """Return what ``sampler.choose(dst, step)`` returns on the whole graph, chosen by the owners of ``dst``.

    All processes call this function, each with destinations and a step of its own; they may be different, and none.
    The destinations travel to their owners, and the chosen edges back: source, parent edge id, estimator weight.
    """
    with peers.together(f"drawing edges of flow {step.flow}", exchanges=2):
        nodes = dst.numpy()
        routes = Routes(peers.owners(nodes), peers.size)
        questions = _questions(sampler, peers, step, nodes, routes)
        asked = peers.exchange("destinations that draw", questions)
        answers = [_answer(sampler, step, arrays, own=r == peers.rank) for r, arrays in enumerate(asked)]
        found = peers.exchange("edges that were drawn", answers)
        return _joined([_Drawn.of(arrays) for arrays in found if arrays], routes)


def _questions(sampler: Sampler, peers: Peers, step: Step, nodes: Ints, routes: Routes) -> list[Arrays]:
    """What is sent to every process: the keys of the step, its destinations, and what the draw must know of them."""
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
    left_out = sampler.reader.left_out
    lies = None if left_out is None else peers.edge_owners(left_out)
    contexts = [np.zeros(0, np.int64) if c is None else c.numpy() for c in (step.contexts, step.roots)]
    questions: list[Arrays] = []
    for r in range(peers.size):
        own = routes.to(r)
        out = np.zeros(0, np.int64) if left_out is None or lies is None else left_out[lies == r]
        # who is asked for nothing is told nothing; this process always asks itself, so that there is an answer
        asks = len(own) > 0 or r == peers.rank
        questions.append(
            [keys, number, nodes[own], *(c[own] if len(c) else c for c in contexts), times, out] if asks else []
        )
    return questions


def _answer(sampler: Sampler, step: Step, arrays: Arrays, *, own: bool) -> Arrays:
    """Choose edges for another process, whose question ``arrays`` is; ``step`` is that of this process."""
    if not arrays:
        return []
    keys, number, nodes, contexts, roots, times, left_out = arrays
    reader = sampler.reader._replace(left_out=None)
    if len(left_out):
        whole = sampler.graph.held
        reader = reader.without(whole.edges_here(left_out))
    if left_out.size or sampler.reader.left_out is not None:
        sampler = sampler.with_reader(reader)
    random, batch_random, epoch_random = (Random(int(key)) for key in keys)
    asked = step._replace(
        random=random, batch_random=batch_random, epoch_random=epoch_random,
        batch_number=int(number[0]) if len(number) else None,
        contexts=None if step.contexts is None else torch.from_numpy(contexts),
        roots=None if step.roots is None else torch.from_numpy(roots),
        inputs=Call(times=times) if isinstance(step.inputs, Call) else None,
    )  # fmt: skip
    dst = torch.from_numpy(nodes)
    choice = sampler.choose(dst, asked)
    if not isinstance(choice, Choice):
        raise TypeError(f"choose must return a Choice, got {type(choice).__name__}")
    if len(choice.indptr) != len(nodes) + 1:
        raise ValueError(f"the Choice is for {len(choice.indptr) - 1} destinations, not for {len(nodes)}")
    if not choice.trusted:
        check_choice(sampler.graph, sampler.reader.edges, choice, nodes)
    if choice.nodes is not None:
        raise TypeError("a Choice has no ndata where the graph lies on several processes, which may share its nodes")
    return _Drawn.made(sampler, choice, narrow=not own).arrays()


class _Drawn(NamedTuple):
    """The edges that a process chose for another one, as they travel.

    Attributes:
        counts: number of edges of every destination, int64 ``[n]``.
        src, eid: parent ids of their sources and of the edges, ``[E]`` each.
        weight: estimator weights ``[E]``; of no dimension where all are 1.
        needs_weight: a key of ``_NEEDS_WEIGHT``'s values.
        columns: edge columns of the choice, ``[E, ...]`` each, in the order of ``names``, their names and types.
    """

    counts: Array
    src: Array
    eid: Array
    weight: Array
    needs_weight: int
    columns: Arrays
    names: list[tuple[str, str]]

    @classmethod
    def made(cls, sampler: Sampler, choice: Choice, *, narrow: bool) -> _Drawn:
        edges, graph = sampler.reader.edges, sampler.graph
        src = choice.take_sources(edges)
        eid = parent_eid(edges, choice).get().numpy()
        weight = np.zeros(()) if choice.weight is None else choice.weight.get().numpy()
        given = [(name, choice.edata[name]) for name in sorted(choice.edata)]
        if recorded := [name for name, column in given if column.requires_grad]:
            raise TypeError(f"column {recorded[0]!r} of a Choice has a gradient, which cannot travel between processes")
        names = [(name, str(column.dtype).removeprefix("torch.")) for name, column in given]
        columns = [as_array(column.cpu().contiguous()) for _, column in given]
        counts = np.diff(choice.indptr)
        if narrow:
            counts, src, eid = (narrowed(a, size) for a, size in (
                (counts, len(src)), (src, graph.num_nodes), (eid, graph.num_edges)))  # fmt: skip
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
    every = [d.counts for d in drawn]
    drawn = [d for d in drawn if len(d.src)] or drawn[:1]
    names = drawn[0].names
    if other := [d.names for d in drawn if d.names != names]:
        raise ValueError(f"a Choice must have the same columns on all processes, got {names} and {other[0]}")
    counts = np.concatenate(every)
    indptr, index = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)]), None
    if not routes.in_order:
        indptr, index = kernels.csr.csr_rows(indptr, routes.back())

    def taken(arrays: Arrays) -> Array:
        joined: Array = np.concatenate(arrays)
        return joined if index is None else joined[index]

    weight = None
    if any(d.weight.ndim for d in drawn):
        weight = torch.from_numpy(
            taken([d.weight if d.weight.ndim else np.ones(len(d.src), np.float32) for d in drawn])
        )
    told = {d.needs_weight for d in drawn}
    needed = True if 1 in told else None if 2 in told else False
    columns = {
        name: from_numpy(taken([d.columns[i] for d in drawn]), getattr(torch, kind))
        for i, (name, kind) in enumerate(names)
    }
    src, eid = (taken([getattr(d, end) for d in drawn]).astype(np.int64, copy=False) for end in ("src", "eid"))
    return Choice.of_kernel(
        indptr, None, src, None if weight is None else (lambda: weight), needs_weight=needed,
        eid=torch.from_numpy(eid), edata=columns,
    )  # fmt: skip
