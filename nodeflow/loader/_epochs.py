"""Base of loaders: the current epoch and batch, and resuming from a saved state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodeflow._core.base.calls import ExplainedABC
from nodeflow._core.base.checks import as_count, describe
from nodeflow.loader._checks import check_settings


class Pass(NamedTuple):
    """One iteration: its epoch and its first batch. No other iteration has the same object."""

    epoch: int
    start: int


class Epochs(metaclass=ExplainedABC):
    """Base of the loaders: every iteration is an epoch, and an epoch goes on at any batch.

    A subclass iterates over ``begin()``, and says ``reached`` for every batch that it gives. Its
    batches depend on the epoch, the number of the batch and ``settings`` alone.
    """

    def __init__(self) -> None:
        self._epoch = -1
        self._next = 0
        self._goes_on = False
        self._newest: Pass | None = None  # the iteration that may move the position

    @abstractmethod
    def num_batches(self, epoch: int) -> int:
        """Return the number of batches of an epoch, counted from 0."""

    def settings(self) -> dict[str, Any]:
        """Return what the batches depend on, as numbers and strings by name."""
        return {}

    def __len__(self) -> int:
        """Number of batches of the present epoch."""
        return self.num_batches(max(self._epoch, 0))

    @property
    def epoch(self) -> int:
        """Number of the current epoch, or of the last one that was iterated; -1 before the
        first.
        """
        return self._epoch

    @property
    def batch_number(self) -> int:
        """Number of the batch of ``epoch`` that comes next; the length of the loader after the last
        one.
        """
        return self._next

    @property
    def next_epoch(self) -> int:
        """Number of the epoch that the next iteration begins, or resumes after ``load_state_dict``.

        ``for epoch in range(loader.next_epoch, 10): for batch in loader: ...`` runs what is left of
        ten epochs.
        """
        return self._epoch + (not self._goes_on)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch ``epoch`` (counted from 0), from its first batch."""
        self._epoch = as_count(epoch, "epoch")
        self._next = 0
        self._goes_on = True
        self._newest = None

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the number of the next batch, and the settings."""
        return {"epoch": self._epoch, "batch_number": self._next, **self.settings()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where ``state`` was taken; raises ValueError for a state of
        another loader.
        """
        if not isinstance(state, Mapping) or not {"epoch", "batch_number"} <= set(state):
            raise ValueError(f"state must be what state_dict returned, got {describe(state)}")
        self.check_state(state)
        epoch = as_count(state["epoch"], "state['epoch']", -1)
        number = as_count(state["batch_number"], "state['batch_number']")
        # checked before anything is set: a refused state leaves the loader as it was
        if number > (count := self.num_batches(max(epoch, 0))):
            raise ValueError(
                f"state['batch_number'] is {number}, but epoch {max(epoch, 0)} has {count} batches"
            )
        self._epoch = epoch
        self._next = number
        self._newest = None
        # the state of a finished epoch goes on with the next one
        self._goes_on = epoch >= 0 and number < count

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise ValueError for a state with other settings."""
        check_settings(self.settings(), state)

    def begin(self) -> Pass:
        """Begin an iteration: go on where a state was loaded, else at the start of the next
        epoch.
        """
        if not self._goes_on:
            self._epoch = self._epoch + 1
            self._next = 0
        # a new object on purpose: by it an older iteration sees that it no longer counts
        self._goes_on = False
        self._newest = Pass(self._epoch, self._next)
        return self._newest

    def reached(self, current: Pass, number: int) -> None:
        """Set the number of the batch that comes next.

        An iteration that is not the newest changes nothing: it must not undo ``set_epoch``.
        """
        if self._newest is current:
            self._epoch = current.epoch
            self._next = number
