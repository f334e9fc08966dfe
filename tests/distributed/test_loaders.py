"""Loaders over a graph that lies on several ranks: the shares of one process's batches, and steps
that all make.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.loader_tools import fingerprint
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import EDGES, FAMILIES, NODES, graph_of_all

from nodeflow import (
    Graph,
    LinkSampler,
    NeighborSampler,
    NodeFlowLoader,
    TemporalNeighborSampler,
    storage,
)
from nodeflow.sampling.base import SamplerBase

WHOLE = graph_of_all()
OWNER = [0 if v % 5 else 2 for v in range(NODES)]  # rank 1 owns nothing
PARTS = Parts(WHOLE, OWNER, 3)
SEEDS = [(7 * v) % NODES for v in range(41)]


def made(graph: Graph, **options) -> NodeFlowLoader:
    sampler: SamplerBase
    kind = options.pop("kind", "neighbor")
    if kind == "temporal":
        sampler = TemporalNeighborSampler(graph, [2, 3])
        options["times"] = [v % 20 for v in SEEDS]
    else:
        sampler = FAMILIES[kind](graph)
    columns = {"ndata": {0: ["x"]}, "edata": ["w"], "seed_data": {"place": torch.arange(41)}}
    return NodeFlowLoader(sampler, SEEDS, 4, shuffle=True, **columns, **options)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("share", ["even", "owned"])
@pytest.mark.parametrize("kind", ["neighbor", "neighbor, disjoint", "labor", "temporal"])
def test_every_rank_gets_its_share_of_the_batches_of_one_process(kind, share, workers):
    def drawn(transport: ThreadTransport) -> list[list[str]]:
        loader = made(PARTS.on(transport), kind=kind, share=share, num_workers=workers)
        assert (loader.rank, loader.world_size) == (transport.rank, 3)
        return [[fingerprint(batch) for batch in loader] for _ in range(2)]

    for rank, epochs in enumerate(run_ranks(3, drawn)):
        whole = made(
            WHOLE, kind=kind, share=OWNER if share == "owned" else share, rank=rank, world_size=3
        )
        assert epochs == [[fingerprint(batch) for batch in whole] for _ in range(2)]
        assert [len(epoch) for epoch in epochs] == [4, 4]


def test_iterations_that_are_left_early_leave_no_exchange_open():
    def drawn(transport: ThreadTransport) -> list[str]:
        loader = made(PARTS.on(transport), num_workers=1, prefetch=3)
        for _ in range(5):
            next(iter(loader))
        return [fingerprint(batch) for batch in loader]

    found = run_ranks(3, drawn)
    whole = made(WHOLE, rank=0, world_size=3)
    whole.set_epoch(5)
    assert found[0] == [fingerprint(batch) for batch in whole]


@PARTS.on_every_rank
def test_the_caller_may_exchange_while_a_thread_draws(graph, rank):
    for batch in made(graph, num_workers=1):
        ids = torch.arange(rank * 3)
        assert torch.equal(graph.ndata["x"].fetch(ids), WHOLE.ndata["x"][ids])
        assert torch.equal(batch.layers[0].data["x"], WHOLE.ndata["x"][batch.layers[0].parent_nid])


def test_a_hot_set_on_every_rank_saves_rows_that_travel():
    heat = WHOLE.out_degrees().double()

    def drawn(graph: Graph, rank: int) -> tuple[int, int]:
        rows = graph.ndata["x"]
        sent = []
        for column in (rows, storage.Cached(rows, heat, memory=30 * WHOLE.ndata["x"][0].nbytes)):
            graph.ndata["x"] = column
            begun = graph.peers.counters.by_kind.get("node column x: answers", 0)
            found = [fingerprint(batch) for batch in made(graph)]
            sent.append(graph.peers.counters.by_kind["node column x: answers"] - begun)
            assert found == [fingerprint(batch) for batch in made(WHOLE, rank=rank, world_size=3)]
        return sent[0], sent[1]

    plain, cached = np.sum(PARTS.run(drawn), 0).tolist()
    assert 0 < cached < 0.7 * plain


@PARTS.on_every_rank
def test_rows_on_the_wire_are_those_that_others_hold(graph, rank):
    """Bytes of an answer: the rows, each once, and a header of 8-byte words; of a question: the
    ids.
    """

    ids = torch.tensor([0, 5, 5, 10, 1, 0])  # 0, 5 and 10 are rank 2's, 1 is rank 0's
    graph.ndata["x"].fetch(ids)
    sent = graph.peers.counters.by_kind
    head = 8 * 2  # type and dimensions, length
    asked = [[3], [3, 1], [1]][rank]
    assert sent["node column x: questions"] == sum(head + 8 * count for count in asked)
    row = WHOLE.ndata["x"].itemsize * 2
    given = [[1, 1], [], [3, 3]][rank]
    assert sent["node column x: answers"] == sum(head + 8 + row * count for count in given)


@PARTS.on_every_rank
def test_loaders_that_differ_between_ranks_are_refused(graph, rank):
    sampler = NeighborSampler(graph, [2])
    with pytest.raises(
        ValueError, match=r"arguments of NodeFlowLoader must be the same .* num_workers is 0 on"
    ):
        NodeFlowLoader(sampler, [1], 4, num_workers=min(rank, 1))
    with pytest.raises(
        ValueError, match="num_workers must be 0 or 1 for a graph that lies on several"
    ):
        NodeFlowLoader(sampler, [1], 4, num_workers=2)
    with pytest.raises(
        ValueError, match=r"rank and world_size must be . and 3, those of the processes that hold"
    ):
        NodeFlowLoader(sampler, [1], 4, rank=0, world_size=1)
    loader = NodeFlowLoader(sampler, np.arange(9), 4, ndata={0: ["x"]})
    with pytest.raises(TypeError, match=r"use storage\.Cached"):
        storage.Lookahead(loader, memory=3)


@PARTS.on_every_rank
def test_iterations_that_differ_between_ranks_are_refused(graph, rank):
    loader = NodeFlowLoader(NeighborSampler(graph, [2]), np.arange(12), 1)
    loader.set_epoch(rank)
    with pytest.raises(
        ValueError,
        match=r"iterations of NodeFlowLoader must .* epoch is 0 on rank 0 and 1 on rank 1",
    ):
        iter(loader)
    loader.load_state_dict({**loader.state_dict(), "epoch": 4, "batch_number": 1 + (rank == 2)})
    with pytest.raises(ValueError, match="first batch is 1 on rank 0 and 2 on rank 2"):
        iter(loader)
    loader.set_epoch(4)
    assert (len(list(loader)), loader.epoch) == (4, 4)


@pytest.mark.parametrize("share", ["even", "owned"])
def test_link_batches(share):
    def links(graph: Graph, **options: int) -> NodeFlowLoader:
        sampler = LinkSampler(
            NeighborSampler(graph, [2, 3]), exclude="reverse", chunk=2, relation="type"
        )
        whose = np.arange(EDGES) % 3 if share == "owned" else share
        return NodeFlowLoader(sampler, np.arange(0, 90, 4), 4, shuffle=True, share=whose, **options)

    found = run_ranks(3, lambda t: [fingerprint(batch) for batch in links(PARTS.on(t))])
    assert found == [
        [fingerprint(batch) for batch in links(WHOLE, rank=r, world_size=3)] for r in range(3)
    ]
