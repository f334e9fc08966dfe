"""NodeFlowLoader(transform=...) and loader.timings: what happens to a batch on the caller's thread,
and how long.
"""

from __future__ import annotations

import threading

import pytest
import torch
from _support.loader_tools import epoch, fingerprint, make, random_graph

from nodeflow import (
    ControlVariateSampler,
    Graph,
    History,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    Sampler,
)
from nodeflow.sampling.base import Choice

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")

MODES = [(0, 2), (2, 2), (2, 0)]  # num_workers, prefetch


@pytest.mark.parametrize(("workers", "prefetch"), MODES)
def test_every_batch_is_transformed_in_order_by_the_caller(workers, prefetch):
    seen: list[NodeFlow] = []

    def double(batch: NodeFlow) -> NodeFlow:
        assert threading.current_thread() is threading.main_thread()
        seen.append(batch)
        batch.ldata[0]["double"] = 2 * batch.ldata[0]["x"]
        return batch

    loader = make(ndata={0: ["x"]}, transform=double, num_workers=workers, prefetch=prefetch)
    batches = []
    for batch in loader:
        batches.append(batch)
        assert len(seen) == len(batches)  # none is transformed before it is asked for
    assert [a is b for a, b in zip(batches, seen, strict=True)] == [True] * 4
    for batch in batches:
        assert batch.ldata[0]["double"].equal(2 * batch.ldata[0]["x"])
        del batch.ldata[0]["double"]
    assert [fingerprint(batch) for batch in batches] == epoch(make(ndata={0: ["x"]}))


def test_another_node_flow_takes_the_place_of_the_batch():
    assert [batch.num_flows for batch in make(transform=lambda batch: batch[1:])] == [1] * 4


def test_after_complete_and_before_the_move():
    graph = random_graph()
    history = History(graph, {1: 4})
    sampler = ControlVariateSampler(history, [2, 2])

    def look(batch: NodeFlow) -> NodeFlow:
        assert "h_1" in batch.ldata[1]
        assert batch.device.type == "cpu"
        return batch

    for batch in NodeFlowLoader(sampler, range(60), 30, transform=look, device="meta"):
        assert batch.device.type == "meta"


# ---- timings


class Clock(threading.local):
    """A clock for each thread, which stands still but where ``work`` moves it on."""

    now = 0

    def read(self) -> int:
        return self.now

    def work(self, seconds: int) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    own = Clock()
    monkeypatch.setattr("nodeflow.loader._loader.perf_counter", own.read)
    return own


class Slow(Sampler):
    """Takes 20 seconds a batch."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        super().__init__(graph, 1)
        self.clock = clock

    def choose(self, dst, step):
        self.clock.work(20)
        return Choice([0] * (len(dst) + 1), [])


@pytest.mark.parametrize(("workers", "prefetch"), MODES)
def test_timings_by_batch(clock, workers, prefetch):
    loader = NodeFlowLoader(
        Slow(random_graph(), clock), range(6), 1, num_workers=workers, prefetch=prefetch
    )
    assert len(loader.timings) == 0
    for number, _ in enumerate(loader, 1):
        t = loader.timings
        assert len(t) == len(t.sampling) == len(t.fetching) == len(t.waiting) == number
    assert list(t.sampling) == [20] * 6
    assert list(t.fetching) == [0] * 6
    if workers == 0:
        assert list(t.waiting) == [20] * 6
    elif prefetch:  # the caller has no work of its own
        assert list(t.waiting) == [0] * 6


def test_the_transform_is_waited_for_and_the_step_is_not(clock):
    loader = make(transform=lambda batch: clock.work(30) or batch)
    for _ in loader:
        clock.work(100)
    assert list(loader.timings.waiting) == [30] * 4


def test_timings_begin_anew_with_every_iteration():
    loader = make()
    list(loader)
    first = loader.timings
    next(iter(loader))
    assert (len(first), len(loader.timings)) == (4, 1)
    state = loader.state_dict()
    resumed = make()
    resumed.load_state_dict(state)
    assert repr(resumed.timings) == "Timings(0 batches: sampling 0 s, fetching 0 s, waiting 0 s)"
    list(resumed)
    assert len(resumed.timings) == 3
    assert repr(loader.timings).startswith("Timings(1 batch: sampling ")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_without_prefetching_batches_are_drawn_in_the_mode_of_the_caller(workers, mode):
    graph = Graph.from_edges(list(range(40)), [*range(1, 40), 0])
    graph.ndata["x"] = torch.ones(40, 2, requires_grad=True)
    loader = NodeFlowLoader(
        NeighborSampler(graph, [1]), range(40), 2, num_workers=workers, prefetch=0, ndata={0: ["x"]}
    )
    with mode():
        rows = [batch.ldata[0]["x"] for batch in loader]
    assert len(rows) == 20
    assert {x.requires_grad for x in rows} == {mode is torch.enable_grad}
    assert {x.is_inference() for x in rows} == {mode is torch.inference_mode}
