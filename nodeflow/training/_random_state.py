"""torch's generators: the state that a run begins with, and the state of the process."""

from __future__ import annotations

import torch
from torch import Tensor

State = dict[str, Tensor]
"""The states of generators by "cpu" and, for a GPU, "cuda"."""


def first_state(seed: int, device: torch.device) -> State:
    """Return the states that generators have after seeding with ``seed``, an int of any size."""
    seed &= 2**63 - 1
    states = {"cpu": torch.Generator().manual_seed(seed).get_state()}
    if device.type == "cuda":
        states["cuda"] = torch.Generator(device).manual_seed(seed).get_state()
    return states


def present_state(device: torch.device) -> State:
    """Return the states of torch's global generators."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_state(states: State, device: torch.device) -> None:
    """Set torch's global generators."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)


def find_device(name: str, *, several: bool = False) -> torch.device:
    """Return the device ``name``, "auto" for a GPU where there is one; raises ValueError for one that is not there.

    ``several``: of several processes, of which each has a GPU of its own, the present one.
    """
    if several and name.startswith("cuda:"):
        raise ValueError(
            f"device must be cpu, cuda or auto with several processes, which take a GPU each; got {name!r}"
        )
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be cpu, cuda, cuda:N or auto, got {name!r}") from error
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu, cuda, cuda:N or auto, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} GPUs")
    return device
