"""TensorBoard event files, where tensorboard is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from nodeflow.training._result import EpochRecord


@contextmanager
def event_writer(folder: Path, first: int) -> Iterator[Callable[[EpochRecord], None]]:
    """Give a function that writes the record of an epoch; it does nothing where tensorboard is not installed.

    ``first`` is the epoch that comes first: events of later ones, which a run wrote before it was cut off, are hidden.
    """
    if find_spec("tensorboard") is None:
        yield lambda record: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), purge_step=first) as writer:

        def write(record: EpochRecord) -> None:
            writer.add_scalar("train/loss", record.loss, record.epoch)
            writer.add_scalar("train/seeds per second", record.seeds_per_second, record.epoch)
            for name, value in record.scores.items():
                writer.add_scalar(f"val/{name}", value, record.epoch)
            writer.flush()

        yield write
