"""When and where the state of a run is saved."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nodeflow.training._state import read_state, write_state

STATE = "state.safetensors"


class Stateful(Protocol):
    """An object whose state can be saved."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@dataclass
class Checkpoints:
    """Saves the state of a run into one file of a folder, which always holds the last complete state.

    Args:
        folder: an existing folder.
        epochs: epochs between two states; 0: none after epochs.
        minutes: minutes between two states, saved between two steps; 0: none.

    >>> Checkpoints.every(Path("runs"), "10min")
    Checkpoints(folder=PosixPath('runs'), epochs=0, minutes=10.0)
    """

    folder: Path
    epochs: int = 1
    minutes: float = 0.0
    _saved: float = field(default_factory=lambda: time.monotonic(), init=False, repr=False)

    @classmethod
    def every(cls, folder: Path, interval: str) -> Checkpoints:
        """Return the checkpoints of an interval: "2" epochs, "10min" minutes, "0" never but when stopped.

        Raises ValueError for another interval.
        """
        found = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?) ?min", interval.strip())
        if found is None:
            raise ValueError(
                f"checkpoint_every must be a number of epochs, or of minutes as in '10min', got {interval!r}"
            )
        epochs, minutes = found.groups()
        return cls(folder, epochs=int(epochs or 0), minutes=float(minutes or 0))

    def restore(self, run: Stateful) -> bool:
        """Make ``run`` go on from the saved state; return whether there is one.

        Raises ValueError for a file that is damaged, and what ``run.load_state_dict`` raises.
        """
        if not (self.folder / STATE).exists():
            return False
        run.load_state_dict(read_state(self.folder / STATE))
        return True

    def after_step(self, run: Stateful, stopping: bool) -> None:
        """Save where minutes have passed, or where the run is about to stop."""
        due = self.minutes and time.monotonic() - self._saved >= 60 * self.minutes
        if stopping or due:
            self.save(run)

    def after_epoch(self, run: Stateful, epoch: int) -> None:
        """Save after every so many epochs."""
        if self.epochs and epoch % self.epochs == 0:
            self.save(run)

    def save(self, run: Stateful) -> None:
        """Save the state now; raises OSError where it cannot be written, and the state before stays."""
        try:
            write_state(self.folder / STATE, run.state_dict())
        except OSError as error:
            have = "the state saved before stays" if (self.folder / STATE).exists() else "no state was saved before"
            raise OSError(f"cannot save the state in {self.folder}: {error.strerror or error}; {have}") from error
        self._saved = time.monotonic()
