"""Timings of an epoch: seconds of sampling, of fetching columns, and of waiting, batch by batch."""

from __future__ import annotations


class Timings:
    """Seconds per batch of one iteration of a loader; a number in each list for every batch that the caller got.

    Attributes:
        sampling: seconds that the draw of each batch took, in whichever thread drew it.
        fetching: seconds of copying the columns of ``ndata`` and ``edata``, of page-locking, and of the columns that
            ``sampler.complete`` adds.
        waiting: seconds between the caller's request and the batch. They hold all of ``transform`` and of moves to a
            device; without workers they hold ``sampling`` and ``fetching`` too.

    With workers, sampling and fetching overlap with the caller's own work, and with each other: their sum can exceed
    the time of the epoch. ``sum(timings.waiting)`` is what the loader costs the epoch; more workers help while it is
    not small. Moves to a GPU are counted until they are queued.

    >>> timings = Timings()
    >>> timings.add((0.25, 0.0625), 0.5)
    >>> timings
    Timings(1 batch: sampling 0.25 s, fetching 0.0625 s, waiting 0.5 s)
    """

    __slots__ = ("fetching", "sampling", "waiting")

    def __init__(self) -> None:
        self.sampling: list[float] = []
        self.fetching: list[float] = []
        self.waiting: list[float] = []

    def add(self, worked: tuple[float, float], waited: float) -> None:
        """Add a batch: its seconds of sampling and fetching, and the seconds that the caller waited for it."""
        self.sampling.append(worked[0])
        self.fetching.append(worked[1])
        self.waiting.append(waited)

    def __len__(self) -> int:
        """Number of batches."""
        return len(self.waiting)

    def __repr__(self) -> str:
        parts = ((name, sum(getattr(self, name))) for name in ("sampling", "fetching", "waiting"))
        text = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in parts)
        return f"Timings({len(self)} batch{'es' * (len(self) != 1)}: {text})"
