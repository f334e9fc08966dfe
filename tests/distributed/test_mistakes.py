"""A mistake of one rank is an error of all, at once; what cannot be is refused, and what differs is
told.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.ranks import Parts, run_ranks
from _support.sampler_families import NODES, fingerprint, graph_of_all

from nodeflow import (
    History,
    NeighborSampler,
    NodeFlowLoader,
    TemporalNeighborSampler,
    Updater,
    storage,
)
from nodeflow.distributed import PeerError
from nodeflow.nn import VRGCN
from nodeflow.propagation import ExchangePlan, Propagation
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import Choice, SamplerBase
from nodeflow.storage import EmbeddingTable

WHOLE = graph_of_all()
OWNER = [v % 2 for v in range(NODES)]
PARTS = Parts(WHOLE, OWNER, 2)
BARE = Parts(WHOLE, OWNER, 2, halo=0)  # every draw of others' nodes travels


def with_a_fault() -> Parts:
    graph = graph_of_all()
    weight = graph.edata["w"].clone()
    # on rank 1
    weight[np.flatnonzero(np.isin(graph.edges()[1].numpy(), np.flatnonzero(OWNER)))[0]] = torch.nan
    graph.edata["w"] = weight
    return Parts(graph, OWNER, 2)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (
            lambda g, one: NeighborSampler(g, [2])([9999] if one else [1]),
            r"IndexError: seeds\[0\] is 9999",
        ),
        (
            lambda g, one: TemporalNeighborSampler(g, [2])([1], times=["x"] if one else [1]),
            "TypeError: times",
        ),
        (lambda g, one: g.find_edges([9999] if one else [1]), r"IndexError: eid\[0\] is 9999"),
        (lambda g, one: g.in_degrees([9999] if one else [1]), r"IndexError: v\[0\] is 9999"),
        (
            lambda g, one: g.ndata["x"].fetch(torch.tensor([9999 * one])),
            r"IndexError: ids\[0\] is 9999",
        ),
        (lambda g, one: Propagation(g.view(weight="zz" if one else "w")), "KeyError"),
    ],
    ids=["seeds", "times", "edges", "degrees", "rows", "sums"],
)
@PARTS.on_every_rank
def test_a_mistake_of_one_rank_is_an_error_of_all(graph, rank, work, words):
    if rank == 1:
        with pytest.raises((IndexError, TypeError, KeyError)):
            work(graph, True)
    else:
        with pytest.raises(PeerError, match=f"rank 1 failed while this one was at .*: {words}"):
            work(graph, False)
    assert len(graph.in_degrees([1, 2])) == 2  # the next operation is right


@PARTS.on_every_rank
def test_a_row_that_one_rank_lacks_in_a_later_layer_is_an_error_of_all(graph, rank):
    """Also after the exchanges for the layers before."""
    history = History(graph, {1: 2, 2: 2})
    history.write(1, range(NODES), torch.ones(NODES, 2))
    history.commit()
    batch = NeighborSampler(graph, [1, 1, 1])([3] if rank == 1 else [])
    words = (
        "rank 1 failed while this one was at"
        if rank == 0
        else "layer 2 of the history has no row yet of node 3"
    )
    with pytest.raises(PeerError if rank == 0 else ValueError, match=words):
        history.pull(batch, missing="refuse")
    assert history.age(2).eq(-1).all()
    with pytest.raises(ValueError, match="folder must be None for a graph that lies on several"):
        Updater(VRGCN(4, 2, 3, num_layers=3), history, torch.ones(NODES, 4), folder=".")


@PARTS.on_every_rank
def test_rows_are_not_planned_on_several_ranks(graph, rank):
    """Not even where each has all of them: draws are collective, and plans ask for them at other
    times.
    """
    graph.ndata["own"] = storage.Tiered([torch.ones(NODES, 2)])
    loader = NodeFlowLoader(NeighborSampler(graph, [1]), [1, 2], batch_size=1, ndata={0: ["own"]})
    with pytest.raises(TypeError, match="plans of processes differ"):
        storage.Lookahead(loader, memory="1 kB")


def test_a_fault_of_the_data_of_one_part_names_its_edge_on_all():
    parts = with_a_fault()
    edge = int(np.flatnonzero(np.isnan(parts.graph.edata["w"].numpy()))[0])

    def bound(transport: Any) -> None:
        # a rank in whose halo the edge is finds it too
        with pytest.raises((PeerError, ValueError), match=f"but edge {edge} has nan"):
            NeighborSampler(parts.on(transport).view(weight="w"), [2])

    run_ranks(2, bound)


@PARTS.on_every_rank
def test_what_needs_all_edges_or_another_process_is_refused(graph, rank):
    for call in (graph.csc, graph.edges, lambda: graph.indptr):
        with pytest.raises(
            TypeError, match="this needs all edges of the graph, and this process holds a part"
        ):
            call()
    with pytest.raises(TypeError, match="not copied: every process opens the folder"):
        copy.deepcopy(graph)
    for each in (graph, EmbeddingTable(graph, 2, lr=0.1)):
        with pytest.raises(TypeError, match="is not pickled"):
            pickle.dumps(each)
    assert repr(graph.ndata["x"]).endswith(f"{OWNER.count(rank)} rows here)")
    with pytest.raises(
        TypeError, match="inputs cannot be given to a sampler of a graph that lies on several"
    ):
        NeighborSampler(graph, [2])([1], inputs=3)


@PARTS.on_every_rank
def test_a_column_of_all_edges_is_read_for_those_here(graph, rank):
    whole = graph_of_all()
    seeds = [[1, 3], [2, 5]][rank]
    whole.edata["all"] = graph.edata["all"] = whole.edata["w"] * 2
    assert (len(graph.held_part.edata), {*graph.held_part.edata}) == (
        len(whole.edata),
        {*whole.edata},
    )
    drawn, wanted = (
        NeighborSampler(each.view(weight="all"), [2])(seeds) for each in (graph, whole)
    )
    assert fingerprint(drawn) == fingerprint(wanted)


class Wrong(Sampler):
    """Chooses all edges, with columns that cannot travel."""

    by_row = True
    columns: Any = None

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return Choice(edges.indptr, edges.positions, **self.columns(edges))


@pytest.mark.parametrize(
    "columns",
    [
        lambda edges: {"nodes": edges.src[:1], "ndata": {"n": torch.ones(1)}},
        lambda edges: {"edata": {"q": torch.ones(len(edges))}},
    ],
)
@BARE.on_every_rank
def test_columns_of_a_choice_are_refused(graph, rank, columns):
    sampler = type("Wrong", (Wrong,), {"columns": staticmethod(columns)})(graph, 1)
    with pytest.raises((TypeError, PeerError), match="a Choice must have no edata and no ndata"):
        sampler([1, 2, 3, 4])


class Sometimes(Sampler):
    """Gives weights to destinations with edges only, as a user may write it."""

    by_row = True

    def choose(self, dst, step):
        edges = self.candidates(dst)
        if not len(edges):
            return edges.select([])
        return edges.select(range(len(edges)), weight=2.0)


@PARTS.on_every_rank
def test_weights_of_some_processes_are_not_lost(graph, rank):
    seeds = [1, 3, 5]  # all are rank 1's
    assert fingerprint(Sometimes(graph, 1)(seeds)) == fingerprint(Sometimes(WHOLE, 1)(seeds))


class Misplaced(Sampler):
    """Chooses the edge at a position where no edge of its destinations lies."""

    def choose(self, dst, step):
        return Choice(np.arange(len(dst) + 1), np.full(len(dst), 10_000))


class Whole(SamplerBase):
    """A sampler that says nothing of several processes."""

    def _sample(self, seeds, keys, contexts=None):
        raise AssertionError


@PARTS.on_every_rank
def test_what_a_sampler_of_ones_own_chooses_is_checked(graph, rank):
    with pytest.raises((IndexError, ValueError, PeerError), match="position"):
        Misplaced(graph, 1)([1])


@PARTS.on_every_rank
def test_a_sampler_that_says_nothing_of_processes_is_for_one(graph, rank):
    with pytest.raises((TypeError, ValueError), match="SamplerBase"):
        Whole(graph, 1)
    assert Whole(WHOLE, 1).graph is WHOLE


@PARTS.on_every_rank
def test_a_second_thread_is_refused(graph, rank):
    loader = NodeFlowLoader(NeighborSampler(graph, [2]), range(20), 2, num_workers=1)
    first = iter(loader)
    next(first)
    with pytest.raises(RuntimeError, match="draws ahead together with other processes; end it"):
        next(iter(loader))
    first.close()
    assert sum(1 for _ in loader) == len(loader)
    with pytest.raises(ValueError, match=r"owner is .hash"):
        NodeFlowLoader(NeighborSampler(graph, [2]), range(20), 2, share=[rank] * NODES)


@PARTS.on_every_rank
def test_plans_notice_rows_of_different_types(graph, rank):
    plan = ExchangePlan(graph)
    rows = torch.ones(plan.num_masters, 2, dtype=[torch.float32, torch.int32][rank])
    with pytest.raises(
        PeerError, match=r"rows of mirrors \((float|int)32 \[2\]\) \(operation \d\) there"
    ):
        plan.broadcast(rows)
