"""Pipeline: the rows of a known step for any staleness, whole steps after any fault, and no thread
left behind.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from _support.stores import waiting
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow.storage import EmbeddingTable, Pipeline, _pipeline

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")
NODES = 20
WIDTH = 3


def made(folder: Path | None = None, **options: Any) -> EmbeddingTable:
    return EmbeddingTable(
        NODES, WIDTH, **{"lr": 0.1, "optimizer": "adam", **options}, folder=folder
    )


def batches(count: int = 12, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, NODES, (6,), generator=generator) for _ in range(count)]


def compute(batch: Tensor, rows: Tensor) -> float:
    loss = (rows * (batch + 1)[:, None]).sin().sum()
    loss.backward()
    return loss.item()


def identity(batch: Tensor) -> Tensor:
    return batch


def by_hand(table: EmbeddingTable, given: list[Tensor], staleness: int) -> list[float]:
    """The same in plain lines: the rows of a batch are pulled when ``staleness`` batches before it
    are written.
    """
    pulled = [table.pull(batch) for batch in given[:staleness]]
    losses = []
    for k, batch in enumerate(given):
        losses.append(compute(batch, pulled[k]))
        table.step(pulled[k])
        if k + staleness < len(given):
            pulled.append(table.pull(given[k + staleness]))
    return losses


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("staleness", [1, 2, 3, 8, 30])
def test_rows_are_those_of_a_known_step(staleness, files, tmp_path):
    expected = made()
    losses = by_hand(expected, batches(), staleness)
    for name, nap in (("a", 0.0), ("b", 0.004), ("c", -0.004)):

        def slowly(batch: Tensor, rows: Tensor, nap: float = nap) -> float:
            time.sleep(max(nap, 0))
            return compute(batch, rows)

        def ids(batch: Tensor, nap: float = nap) -> Tensor:
            time.sleep(max(-nap, 0))
            return batch

        table = made(tmp_path / name if files else None)
        assert list(Pipeline(batches(), (table, ids), slowly, staleness=staleness)) == losses
        assert table.fetch(range(NODES)).equal(expected.fetch(range(NODES)))
        assert table.version == len(losses)
        assert waiting(table) == []


@given(staleness=st.integers(1, 6), count=st.integers(0, 9), left_at=st.integers(0, 9))
def test_no_more_batches_are_under_way(staleness, count, left_at):
    table = made()
    most = []

    def source() -> Iterator[Tensor]:
        for k, batch in enumerate(batches(count)):
            most.append((k + 1 - table.version, pipeline.under_way))
            yield batch

    pipeline = Pipeline(source(), (table, identity), compute, staleness=staleness)
    found = []
    for loss in pipeline:
        found.append(loss)
        if len(found) > left_at:
            break
    assert all(drawn <= staleness and counted <= staleness for drawn, counted in most)
    if left_at >= count:
        assert max((drawn for drawn, _ in most), default=0) == min(staleness, count)
    assert table.version == len(found) == min(count, left_at + 1)
    assert pipeline.under_way == 0
    assert waiting(table) == []


def test_stages_overlap():
    """While a batch is computed, the one before it is written and the next one drawn."""
    table = made()
    drawn = [threading.Event() for _ in range(6)]

    def source() -> Iterator[int]:
        for k in range(6):
            drawn[k].set()
            yield k

    def waits(batch: int, rows: Tensor) -> None:
        if batch + 1 < 6:
            assert drawn[batch + 1].wait(10)
        rows.sum().backward()

    list(Pipeline(source(), (table, lambda batch: [batch]), waits, staleness=2))
    assert table.version == 6


def test_several_tables_and_pulls():
    nodes = made()
    relations = EmbeddingTable(4, WIDTH, lr=0.1)
    plain = made()
    others = EmbeddingTable(4, WIDTH, lr=0.1)
    triples = [
        torch.stack([a % NODES, b % 4, a.flip(0) % NODES])
        for a, b in zip(batches(), batches(seed=1))  # noqa: B905
    ]

    def score(batch: Tensor, rows: dict[str, Tensor]) -> float:
        loss = (rows["head"] * rows["relation"] * rows["tail"]).sum().exp()
        loss.backward()
        return loss.item()

    losses = []
    for head, relation, tail in triples:
        rows = {
            "head": plain.pull(head),
            "relation": others.pull(relation),
            "tail": plain.pull(tail),
        }
        losses.append(score(head, rows))
        plain.step()
        others.step()
    pulls: dict[str, Any] = {
        "head": (nodes, lambda batch: batch[0]), "relation": (relations, lambda batch: batch[1]),
        "tail": (nodes, lambda batch: batch[2]),
    }  # fmt: skip
    assert list(Pipeline(triples, pulls, score)) == losses
    assert nodes.fetch(range(NODES)).equal(plain.fetch(range(NODES)))
    assert (nodes.version, relations.version) == (12, 12)


def test_with_a_loader_and_workers():
    graph = Graph.from_edges(
        torch.randint(0, NODES, (80,)), torch.randint(0, NODES, (80,)), num_nodes=NODES
    )
    found = []
    for workers in (0, 2):
        table = made()
        loader = NodeFlowLoader(
            NeighborSampler(graph, [2]), range(NODES), 4, shuffle=True, num_workers=workers
        )

        def train(batch: Any, rows: Tensor) -> float:
            loss = batch.flows[0].aggregate(rows, "mean").square().sum()
            loss.backward()
            return float(loss.item())

        pipeline = Pipeline(
            loader, (table, lambda batch: batch.layers[0].parent_nid), train, staleness=2
        )
        assert len(pipeline) == 5
        found.append([list(pipeline) for _ in range(2)])
        found[-1].append(table.fetch(range(NODES)).tolist())
    assert found[0] == found[1]


def test_batches_without_gradients_change_nothing():
    table = made()
    for staleness in (1, 3):
        assert (
            len(
                list(
                    Pipeline(
                        batches(), (table, identity), lambda batch, rows: 1, staleness=staleness
                    )
                )
            )
            == 12
        )
        assert (table.version, waiting(table)) == (0, [])


# ---- faults


class Odd(Exception):  # noqa: N818
    pass


def stages(at: int) -> dict[str, Callable[[EmbeddingTable], tuple[Any, Any, Any]]]:
    """Batches, ids and compute, one of which raises at a batch."""

    def source() -> Iterator[Tensor]:
        for k, batch in enumerate(batches()):
            if k == at:
                raise Odd("drawing")
            yield batch

    def numbered(function: Callable[..., Any], words: str) -> Callable[..., Any]:
        calls = iter(range(100))

        def raising(*values: Any) -> Any:
            if next(calls) == at:
                raise Odd(words)
            return function(*values)

        return raising

    def bad_gradient(batch: Tensor, rows: Tensor) -> float:
        loss = compute(batch, rows)
        if batch.equal(batches()[at]):
            assert rows.grad is not None
            rows.grad[0, 0] = torch.nan
        return loss

    return {
        "drawing": lambda _: (source(), identity, compute),
        "ids": lambda _: (batches(), numbered(identity, "ids"), compute),
        "computing": lambda _: (batches(), identity, numbered(compute, "computing")),
        "not finite": lambda _: (batches(), identity, bad_gradient),
    }


def collect(pipeline: Pipeline[Any, Any], results: list[Any]) -> None:
    for result in pipeline:
        results.append(result)


@pytest.mark.parametrize("staleness", [1, 2, 5])
@pytest.mark.parametrize("stage", ["drawing", "ids", "computing", "not finite"])
@pytest.mark.parametrize("at", [0, 4, 11])
def test_an_error_in_a_stage_stops_the_run_after_the_batches_before_it(stage, staleness, at):
    table = made()
    given, ids, function = stages(at)[stage](table)
    results: list[Any] = []
    pipeline = Pipeline(given, (table, ids), function, staleness=staleness)
    with pytest.raises((Odd, ValueError), match=stage) as caught:
        collect(pipeline, results)
    where = {
        "drawing": "source",
        "ids": "raising",
        "computing": "raising",
        "not finite": "gradients",
    }[stage]
    assert where in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    expected = made()
    assert by_hand(expected, batches()[:at], staleness) == results[:at]
    assert table.version == at
    assert table.fetch(range(NODES)).equal(expected.fetch(range(NODES)))
    assert waiting(table) == []
    assert pipeline.under_way == 0
    list(Pipeline(batches(), (table, identity), compute, staleness=staleness))  # and it goes on
    assert table.version == at + 12


def test_readers_see_whole_steps():
    """Each step adds the same to all numbers of the table."""
    table = EmbeddingTable(500, 64, optimizer="sgd", lr=1, init="zeros")
    stop = threading.Event()
    torn = []

    def read() -> None:
        while not stop.is_set():
            rows = table.fetch(range(500))
            if not (rows == rows[0, 0]).all():
                torn.append(rows)

    reader = threading.Thread(target=read)
    reader.start()
    whole = [list(range(500))] * 30
    list(
        Pipeline(
            whole,
            (table, lambda batch: batch),
            lambda batch, rows: rows.sum().backward(),
            staleness=3,
        )
    )
    stop.set()
    reader.join()
    assert not torn


INTERRUPTED = """
import _thread, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins with Ctrl-C ignored
sys.path[:0] = [sys.argv[1]]
from storage.test_pipeline import batches, compute, identity, made, waiting
from nodeflow.storage import Pipeline
table, done = made(), 0
list(Pipeline(batches(), (table, identity), compute, staleness=4))  # the first operations import for seconds
timer = threading.Timer(0.01, _thread.interrupt_main)
try:
    for loss in Pipeline(batches(100000), (table, identity), compute, staleness=4):
        done += 1
        if done == 3:
            timer.start()
except KeyboardInterrupt:
    timer.join()
    assert threading.active_count() == 1, threading.enumerate()
    assert table.version - 12 in (done, done + 1), (table.version, done)
    assert waiting(table) == []
    print("whole")
"""


class InterruptedWorkers(_pipeline.Workers):
    """The wait for the result number ``at`` ends in Ctrl-C, before the result is there."""

    at = 0

    def submit(self, task: Callable[[], Any]) -> Callable[[], Any]:
        wait = super().submit(task)
        self.count = getattr(self, "count", 0) + 1
        return interrupted if self.count == self.at else wait


def interrupted() -> None:
    raise KeyboardInterrupt


# the others are writes, whose results nobody waits for
@pytest.mark.parametrize("at", [1, 2, 3, 4, 6, 8, 10])
def test_an_interrupted_wait_leaves_whole_steps(at, monkeypatch):
    workers = type("Workers", (InterruptedWorkers,), {"at": at})
    monkeypatch.setattr(_pipeline, "Workers", workers)
    table = made()
    done = list[float]()
    pipeline = Pipeline(batches(100), (table, identity), compute, staleness=4)
    with pytest.raises(KeyboardInterrupt):
        done.extend(pipeline)
    assert table.version == len(done)
    assert waiting(table) == []
    assert pipeline.under_way == 0


@pytest.mark.slow
def test_ctrl_c_leaves_whole_steps():
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert done.stdout == "whole\n", f"status {done.returncode}: {done.stderr}"
