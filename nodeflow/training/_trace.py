"""The trace of a run: hashes of its batches and losses of its steps, with which others compare theirs."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from nodeflow._base.files import is_file
from nodeflow.flow import NodeFlow

EVERY = 20
"""Steps from one that is traced to the next, in each epoch from its first one on."""


class TracedStep(NamedTuple):
    """A step: its epoch, counted from 1, the number of its batch in it, a hash of the batch, and the loss."""

    epoch: int
    batch: int
    hash: str
    loss: float


class Trace:
    """The traced steps of a run so far; ``rows`` are those of the part that is done when a run goes on."""

    def __init__(self, rows: Iterable[Iterable[Any]] = ()) -> None:
        self.steps = [TracedStep(*row) for row in rows]

    def add(self, epoch: int, number: int, batch: Any, loss: float) -> None:
        """Record a step, if it is one of those that are."""
        if number % EVERY == 0:
            self.steps.append(TracedStep(epoch, number, hash_of(batch), loss))


def hash_of(batch: Any) -> str:
    """Return a hash of a batch: of the parent ids of its layers, and the edges of its flows with their weights.

    Of a batch that is no NodeFlow, it is a hash of its tensors.
    """
    digest = hashlib.blake2b(digest_size=8)
    for tensor in _tensors(batch):
        array = tensor.detach().cpu().contiguous().numpy()
        # ids may be kept in 32 bits on one machine and in 64 on another
        wide = array.astype(np.int64 if array.dtype.kind in "iub" else np.float64, copy=False)
        digest.update(np.array(wide.shape, np.int64).tobytes() + wide.tobytes())
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
    """Return the traced steps of a file; raises FileNotFoundError, or ValueError for a damaged one."""
    if not is_file(path):
        raise FileNotFoundError(f"there is no trace {path}: only a run of this version or a later one can be compared")
    with path.open(encoding="utf-8", newline="") as file:
        try:
            rows: list[Mapping[str, str]] = list(csv.DictReader(file, strict=True))
            return [TracedStep(int(row["epoch"]), int(row["batch"]), row["hash"], float(row["loss"])) for row in rows]
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise ValueError(f"{path} is no trace of a run: {error}") from error
