"""Pipeline: batches are drawn and their rows fetched, computed on, and written back, in three
stages that overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count, as_device, check_type, describe
from nodeflow._core.base.types import IdsLike
from nodeflow._core.peers.peers import Peers
from nodeflow._core.runtime.workers import Workers
from nodeflow.storage._embedding_table import EmbeddingTable

Batch = TypeVar("Batch")
Result = TypeVar("Result")
Rows: TypeAlias = dict[str, Tensor]
"""The rows that were pulled for a batch, by name."""
Pull: TypeAlias = "tuple[EmbeddingTable, Callable[[Batch], IdsLike]]"


class Pipeline(Generic[Batch, Result]):
    """Trains on batches with rows from tables: while one is computed, others are drawn, fetched and
    written back.

    Iterating runs one epoch, and yields what ``compute`` returns, in the order of the batches. The
    three stages of a batch are

    1. the next batch is taken from ``batches``, and its rows are pulled from their tables;
    2. ``compute(batch, rows)`` is called in the thread of the caller. It calls ``backward`` on a
       loss of the rows;
    3. the tables take a step with the rows that have a gradient.

    Args:
        batches: iterated once per epoch: a loader, or anything else.
        pulls: ``(table, ids)``, where ``ids(batch)`` are the ids whose rows are pulled; or a dict
            of such pairs by name. Several pulls from one table make one step.
        compute: a function of a batch and its rows, a tensor for one pair, and a dict by name for a
            dict.
        staleness: the number of batches that may be under way: drawn and not yet written back. A
            batch reads rows that include the steps of all batches but the ``staleness - 1`` before
            it, so results are bit for bit the same in every run. With 1 nothing overlaps, and all
            runs in the caller's thread. With 2, one other thread fetches and writes back while the
            caller computes. More batches even out stages whose time varies.
        device: where the rows are moved to; None: they stay on the CPU.

    Attributes:
        under_way: the number of batches that were drawn and are not yet written back.

    Tables may lie on several processes; every process then runs a pipeline with the same number of
    batches. Their rows travel on a channel of their own, concurrently with the caller's exchanges.

    Every batch whose result was yielded is written back, also when the iteration is left early or
    ends with an error; when the iteration ends, this is done and the thread has stopped. An
    exception in any stage ends the run with its own type, message and traceback; its batch and
    later ones change no table. If a batch changes several tables, the step of each table is atomic.

    Raises TypeError and ValueError for wrong arguments.

    >>> table = EmbeddingTable(4, 2, optimizer="sgd", lr=0.1, init="zeros")
    >>> def compute(batch, rows):
    ...     loss = (rows - 1).square().sum()
    ...     loss.backward()
    ...     return loss.item()
    >>> pipeline = Pipeline([[0, 1], [2, 3], [1, 2]], (table, lambda batch: batch), compute, staleness=2)
    >>> [round(loss, 2) for loss in pipeline], table.version
    ([4.0, 4.0, 3.28], 3)
    """

    def __init__(
        self,
        batches: Iterable[Batch],
        pulls: Pull[Batch] | Mapping[str, Pull[Batch]],
        compute: Callable[[Batch, Any], Result],
        *,
        staleness: int = 1,
        device: torch.device | str | None = None,
    ) -> None:
        check_type(batches, "batches", Iterable, "a loader or another iterable")
        self.batches = batches
        self.compute = compute
        check_type(compute, "compute", Callable, "a function of a batch and its rows")
        self._single = not isinstance(pulls, Mapping)
        self._pulls = {"": pulls} if not isinstance(pulls, Mapping) else dict(pulls)
        if not self._pulls:
            raise ValueError(
                "pulls must name at least one table and the ids to pull from it, got an empty dict"
            )
        for name, pull in self._pulls.items():
            argument = "pulls"
            if not self._single:
                argument = f"pulls[{name!r}]"
            fits = isinstance(pull, tuple) and len(pull) == 2
            if not (fits and isinstance(pull[0], EmbeddingTable) and callable(pull[1])):
                raise TypeError(
                    f"{argument} must be (table, ids), an EmbeddingTable and a function, got "
                    f"{describe(pull)}"
                )
        self.staleness = as_count(staleness, "staleness", 1)
        self.device = None if device is None else as_device(device)
        self.under_way = 0

    def __len__(self) -> int:
        """Number of batches of an epoch; raises TypeError where ``batches`` has no length."""
        return len(self.batches)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        tables = {name: table for name, (table, _) in self._pulls.items()}
        named = [f"{name}: {table!r}".removeprefix(": ") for name, table in tables.items()]
        return (
            f"Pipeline(rows of {', '.join(named)}; staleness {self.staleness}, {self.under_way} "
            "batches under way)"
        )

    def __iter__(self) -> Generator[Result, None, None]:
        run = _Run(self, self._pulls)
        ahead: deque[Callable[[], tuple[Batch, Rows] | None]] = deque()
        try:
            for _ in range(self.staleness):
                ahead.append(run.submit(run.draw))
            while (drawn := ahead.popleft()()) is not None and not run.errors:
                batch, rows = drawn
                del drawn
                result = self.compute(batch, rows[""] if self._single else rows)
                run.write_later(rows)
                if run.errors:
                    break
                ahead.append(run.submit(run.draw))
                yield result
                # nothing of a batch lives longer than its step: it may be large
                del result, batch, rows
        finally:
            run.end()


class _Run(Generic[Batch]):
    """An epoch of a pipeline: the stages that may run beside the caller's, and what they share.

    ``errors`` are those of writes, whose results nobody waits for.
    """

    def __init__(self, pipeline: Pipeline[Batch, Any], pulls: Mapping[str, Pull[Batch]]) -> None:
        self.errors = list[BaseException]()
        self._pipeline = pipeline
        self._pulls = pulls
        self._source = iter(pipeline.batches)
        self._is_left = False
        # rows that were asked for and wait for a step, whatever became of their batch
        self._waiting: dict[int, Rows] = {}
        self._workers: Workers | None = None
        self._channels: dict[Peers, object] = {}
        if pipeline.staleness > 1:
            # its one thread runs tasks in order, so every batch reads rows of a known step; without
            # it, a task is run in this thread when its result is asked for
            self._workers = Workers(1, "nodeflow-pipeline")
            # the worker exchanges rows while the caller may exchange gradients: a channel of its
            # own keeps them apart, which all processes that hold tables make together
            tables = [table for table, _ in pulls.values() if table.collective]
            groups = dict.fromkeys(table.peers for table in tables)
            self._channels = {peers: peers.channel() for peers in groups}

    def submit(self, task: Callable[[], Any]) -> Callable[[], Any]:
        """Have the worker run a task; return a function that waits for its result."""
        if self._workers is None:
            return task
        return self._workers.submit(task)

    def write_later(self, rows: Rows) -> None:
        """Write the rows of a batch that was computed back to their tables."""
        written = self.submit(partial(self._write, rows))
        if self._workers is None:
            written()

    def _beside(self) -> ExitStack:
        stack = ExitStack()
        for peers, channel in self._channels.items():
            stack.enter_context(peers.using(channel))
        return stack

    def draw(self) -> tuple[Batch, Rows] | None:
        """Take the next batch, and pull its rows; None after the last, or where the run ends."""
        with self._beside():
            if self.errors or self._is_left:
                return None
            rows: Rows = {}
            self._waiting[id(rows)] = rows
            self._pipeline.under_way += 1
            for batch in self._source:  # takes one batch
                with torch.enable_grad():
                    for name, (table, ids) in self._pulls.items():
                        rows[name] = table.pull(ids(batch), self._pipeline.device)
                return batch, rows
            del self._waiting[id(rows)]
            self._pipeline.under_way -= 1
            return None

    def _write(self, rows: Rows) -> None:
        try:
            if not self.errors:
                with self._beside():
                    self._step(rows)
                del self._waiting[id(rows)]
        except BaseException as error:
            self.errors.append(error)

    def _step(self, rows: Rows) -> None:
        """Change each table by the gradients of its rows, in one step."""
        leaves_of: dict[EmbeddingTable, list[Tensor]] = {}
        for name, leaf in rows.items():
            leaves_of.setdefault(self._pulls[name][0], []).append(leaf)
        for table, leaves in leaves_of.items():
            # without gradients a collective table steps too: the other processes wait in the
            # exchange
            if table.collective or any(leaf.grad is not None for leaf in leaves):
                table.step(*leaves)
            else:
                table.drop(*leaves)
        self._pipeline.under_way -= 1

    def end(self) -> None:
        """Stop the worker, and drop rows that no step will take; raises the first error."""
        self._is_left = True  # draws that are still queued take no batch
        try:
            # a generator, such as a loader's, ends its threads now; on the worker, which may still
            # be inside of it. Tasks run in order, so this one follows all draws and writes
            self.submit(getattr(self._source, "close", lambda: None))()
        finally:
            if self._workers is not None:
                self._workers.stop()
            for rows in self._waiting.values():
                for name, leaf in rows.items():
                    with suppress(ValueError):  # its table has made the step
                        self._pulls[name][0].drop(leaf)
                self._pipeline.under_way -= 1
        if self.errors:
            raise self.errors[0]
