"""The random generators of a run, and its device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

State = dict[str, Tensor]
"""The states of generators by "cpu" and, for a GPU, "cuda"."""


class OwnRandom:
    """A run's own generator states; within ``inside()`` torch's global generators have them.

    They start as if seeded with ``seed``, an int of any size.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._cuda, self._inside, seed = [device] if device.type == "cuda" else [], False, seed & 2**63 - 1
        every = torch.device("cpu"), *self._cuda
        self._states = {each.type: torch.Generator(each).manual_seed(seed).get_state() for each in every}

    @property
    def states(self) -> State:
        """The present states."""
        if self._inside:
            self._states = {"cpu": torch.get_rng_state()}
            for each in self._cuda:
                self._states["cuda"] = torch.cuda.get_rng_state(each)
        return self._states

    @states.setter
    def states(self, states: State) -> None:
        self._states = states

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within the block, torch's generators are those of the run; after it, they are as before."""
        if self._inside:
            yield
            return
        with torch.random.fork_rng(devices=self._cuda):
            torch.set_rng_state(self._states["cpu"])
            for each in self._cuda:
                torch.cuda.set_rng_state(self._states["cuda"], each)
            self._inside = True
            try:
                yield
            finally:
                self._states, self._inside = self.states, False


def find_device(name: str, *, several: bool = False) -> torch.device:
    """Return the device ``name``; "auto" is a GPU if there is one. Raises ValueError for a missing device.

    ``several``: whether several processes run, each on a GPU of its own.
    """
    if several and name.startswith("cuda:"):
        raise ValueError(
            f"device must be cpu, cuda or auto with several processes, which take a GPU each; got {name!r}"
        )
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu, cuda, cuda:N or auto, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} GPUs")
    return device
