"""Checks of inputs, of the result of a transform, and of loaded states, whose settings are text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from nodeflow._core.base.checks import Ints, check_type, describe
from nodeflow._core.random import hash_ids
from nodeflow.flow import NodeFlow
from nodeflow.sampling.base import SamplerBase


def check_inputs(inputs: Any, ahead: int, num_nodes: int) -> None:
    """Raise TypeError or ValueError unless inputs are a row per node or a function; ``ahead`` needs
    a function.
    """
    if ahead and not callable(inputs):
        raise ValueError(f"inputs_ahead={ahead} needs a function as inputs, got {describe(inputs)}")
    if inputs is None or callable(inputs):
        return
    check_type(
        inputs,
        "inputs",
        Tensor | np.ndarray,
        "a tensor or an array with a row per node, or a function of the seeds of a batch",
    )
    if inputs.ndim == 0 or inputs.shape[0] != num_nodes:
        raise ValueError(
            f"inputs must have a row per node ({num_nodes}), got shape {tuple(inputs.shape)}"
        )


def transformed(transform: Callable[[NodeFlow], NodeFlow], batch: NodeFlow) -> NodeFlow:
    """Return what a user's function makes of a batch; raise TypeError for anything but a
    NodeFlow.
    """
    result = transform(batch)
    if not isinstance(result, NodeFlow):
        name = getattr(transform, "__qualname__", type(transform).__qualname__)
        raise TypeError(
            f"transform {name} must return a NodeFlow, got {describe(result)}; end it with `return "
            "batch`, and set columns of it for other values"
        )
    return result


def repeats(seeds: Ints) -> bool:
    """Return whether a seed, or a row of seeds, occurs twice."""
    rows = seeds.reshape(len(seeds), math.prod(seeds.shape[1:]))
    rows = rows[np.lexsort(rows.T)]
    return bool((rows[1:] == rows[:-1]).all(1).any())


def samplers_with_state(sampler: SamplerBase) -> dict[str, Any]:
    """Return the samplers with state among ``sampler`` and those that it wraps, by path
    ("sampler.sampler", say).
    """
    stateful: dict[str, Any] = {}
    path = "sampler"
    owner: Any = sampler
    while isinstance(owner, SamplerBase):
        if all(callable(getattr(owner, name, None)) for name in ("state_dict", "load_state_dict")):
            stateful[path] = owner
        path = f"{path}.sampler"
        owner = getattr(owner, "sampler", None)
    return stateful


def settings_of_sampler(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the class and the settings of a sampler as text; a wrapped sampler has the prefix
    ``sampler.``.
    """
    texts = {"class": name}
    for key, value in settings.items():
        if key == "sampler":
            for inner, text in settings_of_sampler(*value).items():
                texts[f"sampler.{inner}"] = text
        else:
            texts[key] = repr(value)
    return texts


def hash_times(times: Tensor) -> int:
    """Return a hash of the values of ``times``: float64 of floats, int64 of integers."""
    exact = times.double() if times.is_floating_point() else times.long()
    array = exact.contiguous().numpy()
    return hash_ids(array.view(np.int64))


def check_settings(
    settings: Mapping[str, Any], state: Mapping[str, Any], owner: str = "loader"
) -> None:
    """Raise ValueError for the first setting that has another value in ``state``."""
    for name, value in settings.items():
        stored = state.get(name)
        if stored == value:
            continue
        if isinstance(stored, Mapping) and isinstance(value, Mapping):
            check_settings({**dict.fromkeys(stored), **value}, stored, "sampler")
        total = ", the seeds of a batch in all processes" if name == "batch_size" else ""
        raise ValueError(
            f"the state is of a {owner} with {name}={stored}, this one has {value}{total}"
        )


def check_process(state: Mapping[str, Any], rank: int, world_size: int) -> None:
    """Raise ValueError where a state holds inputs that another process has prepared ahead, for its
    own seeds.
    """
    maker = state.get("inputs_of", [0, 1])
    if state.get("inputs") and maker != [rank, world_size]:
        raise ValueError(
            f"the state holds inputs that process {maker[0]} of {maker[1]} has prepared for its "
            f"seeds, this is process {rank} of {world_size}: load the state of this process, or "
            "use inputs_ahead=0"
        )
