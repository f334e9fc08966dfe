"""The records of a run's epochs, its trace, with whose steps others compare theirs, and its
result.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from nodeflow._core.base.files import is_file
from nodeflow.flow import NodeFlow

if TYPE_CHECKING:
    from nodeflow.training._network import Network
    from nodeflow.training._settings import Settings
    from nodeflow.training._task import Task


EVERY = 20
"""Steps from one that is traced to the next, in each epoch from its first one on."""


class Stopped(Exception):  # noqa: N818  it is no error
    """Training was asked to stop; its state is saved if the trainer has checkpoints."""


@dataclass(frozen=True)
class EpochRecord:
    """An epoch: mean training loss, metrics on the validation nodes, sampled seeds and edges per
    second.

    ``scores`` are all metrics on the validation nodes by name, empty where the epoch was not
    validated; ``score`` is the one that chooses the best epoch, NaN without. ``age`` is the mean
    age of the history rows that batches read: the number of steps since a row was written, 0 for
    the step just before. None for a sampler without history.

    >>> record = EpochRecord(1, loss=0.7, score=0.8, seconds=2.0, seeds_per_second=500.0, edges_per_second=9e3)
    >>> print(record)
    epoch 1: loss 0.7000, validation 0.8000, 2.00 s, 500 seeds/s, 9,000 edges/s
    """

    epoch: int
    loss: float
    score: float
    seconds: float
    seeds_per_second: float
    edges_per_second: float
    age: float | None = None
    scores: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        score = "" if math.isnan(self.score) else f"validation {self.score:.4f}, "
        return (
            f"epoch {self.epoch}: loss {self.loss:.4f}, {score}{self.seconds:.2f} s, "
            f"{self.seeds_per_second:,.0f} seeds/s, {self.edges_per_second:,.0f} edges/s"
        )


def counts_of(batch: Any, size: int) -> tuple[int, int, int]:
    """Return ``size``, the number of items with a loss, and how many seeds and edges a batch
    has.
    """
    if not isinstance(batch, NodeFlow):
        return size, size, 0
    return size, batch.layer_sizes[-1], sum(batch.flow_sizes)


def record_of(
    epoch: int, sums: defaultdict[str, float], scores: dict[str, float], metric: str
) -> EpochRecord:
    """Return the record of an epoch from its totals: loss, nodes, seeds, edges, ages, rows of a
    history, seconds.
    """
    seconds = max(sums["seconds"], 1e-9)
    return EpochRecord(
        epoch,
        loss=sums["loss"] / max(sums["nodes"], 1),
        score=scores.get(metric, math.nan),
        seconds=sums["seconds"],
        seeds_per_second=sums["seeds"] / seconds,
        edges_per_second=sums["edges"] / seconds,
        age=sums["ages"] / sums["rows"] if sums["rows"] else None,
        scores=scores,
    )


class TracedStep(NamedTuple):
    """A step: its epoch, counted from 1, the number of its batch in it, a hash of the batch, and
    the loss.
    """

    epoch: int
    batch: int
    hash: str
    loss: float


class Trace:
    """The traced steps of a run so far; ``rows`` are those of the part that is done when a run goes
    on.
    """

    def __init__(self, rows: Iterable[Iterable[Any]] = ()) -> None:
        self.steps = [TracedStep(*row) for row in rows]

    def add(self, epoch: int, number: int, batch: Any, loss: float) -> None:
        """Record a step, if it is one of those that are."""
        if number % EVERY == 0:
            self.steps.append(TracedStep(epoch, number, hash_of(batch), loss))


def hash_of(batch: Any) -> str:
    """Return a hash of a batch: of the parent ids of its layers, and the edges of its flows with
    their weights.

    Of a batch that is no NodeFlow, it is a hash of its tensors.
    """
    digest = hashlib.blake2b(digest_size=8)
    for tensor in _tensors(batch):
        array = tensor.detach().cpu().numpy()
        # ids may be kept in 32 bits on one machine and in 64 on another
        dtype = np.int64 if array.dtype.kind in "iub" else np.float64
        wide = array.astype(dtype, copy=False)
        digest.update(np.array(wide.shape, np.int64).tobytes())
        digest.update(wide.tobytes())
    return digest.hexdigest()


def _tensors(batch: Any) -> Iterator[Tensor]:
    if not isinstance(batch, NodeFlow):
        yield from (part for part in batch if isinstance(part, Tensor))
        return
    yield from (layer.parent_nid for layer in batch.layers)
    for flow in batch.flows:
        yield flow.structure.indptr
        yield flow.structure.indices
        if flow.needs_weight:
            yield flow.weight


def write_trace(path: Path, steps: Iterable[TracedStep]) -> None:
    """Write a row per traced step; losses are written exactly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(TracedStep._fields)
        writer.writerows((step.epoch, step.batch, step.hash, repr(step.loss)) for step in steps)


def read_trace(path: Path) -> list[TracedStep]:
    """Return the traced steps of a file; raises FileNotFoundError, or ValueError for a damaged
    one.
    """
    if not is_file(path):
        raise FileNotFoundError(
            f"there is no trace {path}: only a run of this version or a later one can be compared"
        )
    with path.open(encoding="utf-8", newline="") as file:
        try:
            rows: list[Mapping[str, str]] = list(csv.DictReader(file, strict=True))
            return [
                TracedStep(int(row["epoch"]), int(row["batch"]), row["hash"], float(row["loss"]))
                for row in rows
            ]
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise ValueError(f"{path} is no trace of a run: {error}") from error


@dataclass
class Result:
    """A finished run: the network with the weights of its best epoch, the records, and the metrics
    on every part.

    Args:
        settings, task: those of the run: the task has the data, the network, and the graph that it
            was trained on.
        best_epoch: number of the epoch whose weights the network has, from 1; 0 before the first.
        metric: name of the metric that chose it.
        records: of all epochs.
        scores: by part of the split ("train", "val", "test") all metrics by name, from full
            neighbourhoods where the sampler estimates them; empty for a part without nodes.
        fingerprint: a hash of the data set and its split, by which ``evaluate`` knows it again.
        steps: every 20th step of each epoch, with a hash of its batch.
        identity: that of the run, see ``Trainer``.

    >>> from nodeflow.datasets import debian
    >>> from nodeflow.training import Settings, Trainer
    >>> result = Trainer(debian(), Settings(fanouts=(1,), hidden=4)).result()  # before the first epoch
    >>> result.best_epoch, sorted(result.scores)
    (0, ['test', 'train', 'val'])
    """

    settings: Settings
    task: Task = field(repr=False, compare=False)
    best_epoch: int
    metric: str
    records: list[EpochRecord] = field(default_factory=list)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    fingerprint: str = field(default="", repr=False)
    steps: list[TracedStep] = field(default_factory=list, repr=False)
    identity: str = field(default="", repr=False)

    @property
    def network(self) -> Network:
        """The inputs and the model, ``network(batch)``."""
        return self.task.network

    @property
    def test_score(self) -> float:
        """The metric ``metric`` on the test nodes, NaN without test nodes."""
        return self.scores.get("test", {}).get(self.metric, math.nan)

    @property
    def best_val_score(self) -> float:
        """The metric of the best epoch on the validation nodes, as it was measured while
        training.
        """
        return next(
            (record.score for record in self.records if record.epoch == self.best_epoch), math.nan
        )
