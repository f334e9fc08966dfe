"""The state of a loader: its settings as text, the states of its samplers, and the check when a state is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from nodeflow.random import hash_ids
from nodeflow.sampling.base import SamplerBase


def samplers_with_state(sampler: SamplerBase) -> dict[str, Any]:
    """Return the samplers with state among ``sampler`` and those that it wraps, by path ("sampler.sampler", say)."""
    stateful: dict[str, Any] = {}
    path = "sampler"
    owner: Any = sampler
    while isinstance(owner, SamplerBase):
        if all(callable(getattr(owner, name, None)) for name in ("state_dict", "load_state_dict")):
            stateful[path] = owner
        path, owner = f"{path}.sampler", getattr(owner, "sampler", None)
    return stateful


def settings_of_sampler(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the class and the settings of a sampler as text; a wrapped sampler has the prefix ``sampler.``."""
    texts = {"class": name}
    for key, value in settings.items():
        if key == "sampler":
            texts.update({f"sampler.{inner}": text for inner, text in settings_of_sampler(*value).items()})
        else:
            texts[key] = repr(value)
    return texts


def hash_times(times: Tensor) -> int:
    """Return a hash of the values of ``times``: float64 of floats, int64 of integers."""
    exact = times.double() if times.is_floating_point() else times.long()
    return hash_ids(exact.contiguous().numpy().view(np.int64))


def check_settings(own: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise ValueError for the first setting of a loader that has another value in ``state``."""
    for name, value in own.items():
        stored = state.get(name)
        if stored == value:
            continue
        if isinstance(stored, Mapping) and isinstance(value, Mapping):
            key = next(key for key in {**stored, **value} if stored.get(key) != value.get(key))
            old, new = (settings.get(key, "no setting") for settings in (stored, value))
            raise ValueError(f"the state is of another sampler: {key} is {old} there, and {new} here")
        total = ", the seeds of a batch in all processes" if name == "batch_size" else ""
        raise ValueError(f"the state is of a loader with {name}={stored}, this one has {value}{total}")


def check_process(state: Mapping[str, Any], rank: int, world_size: int) -> None:
    """Raise ValueError where a state holds inputs that another process has prepared ahead, for its own seeds."""
    maker = state.get("inputs_of", [0, 1])
    if state.get("inputs") and maker != [rank, world_size]:
        raise ValueError(
            f"the state holds inputs that process {maker[0]} of {maker[1]} has prepared for its seeds, this is process "
            f"{rank} of {world_size}: load the state of this process, or use inputs_ahead=0"
        )
