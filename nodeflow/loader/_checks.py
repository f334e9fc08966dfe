"""Checks of a loader: arguments, the result of a transform, and loaded states, whose settings are
text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, check_type, describe
from nodeflow._core.base.dates import as_moments
from nodeflow._core.base.types import ColumnsLike, NumbersLike, SeedsLike
from nodeflow._core.random import hash_ids
from nodeflow._core.rows.columns import as_column
from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame
from nodeflow.sampling.base import SamplerBase


def all_or(seeds: SeedsLike | str | None, sampler: SamplerBase) -> SeedsLike:
    """Return the seeds of a loader: all that the sampler can have where they are "all", or left
    out.
    """
    if isinstance(seeds, (Iterator, torch.utils.data.Sampler)):
        raise TypeError(
            f"seeds must be a tensor, an array or a list, got {type(seeds).__name__}: it would be "
            "read only once, and every epoch would have the same seeds. For draws in proportion to "
            "weights pass weights=; for seeds of their own in every epoch make a loader for each: "
            "loader = NodeFlowLoader(sampler, list(seeds)), and call loader.set_epoch(epoch) "
            "before iterating"
        )
    if seeds is not None and not isinstance(seeds, str):
        return seeds
    if sampler.most_seeds is not None:
        raise TypeError(
            f"seeds must be numbers: {type(sampler).__name__} has no last {sampler.seed_kind}; "
            "pass range(50)"
        )
    if seeds != "all" and (seeds is not None or sampler.seed_kind == "node"):
        raise TypeError(
            'seeds must be ids, such as those of the training nodes, or "all" for all nodes, got '
            f"{seeds!r}"
        )
    return torch.arange(sampler.num_seeds, device="cpu")


def as_seed_data(columns: ColumnsLike | None, num_seeds: int, argument: str) -> Frame:
    """Return columns by seed as a frame; raise TypeError or ValueError unless each has a row per
    seed.
    """
    if columns is not None and not hasattr(columns, "items"):
        raise TypeError(f"{argument} must be a dict from names to columns, got {describe(columns)}")
    for name, column in ({} if columns is None else columns).items():
        size = len(column) if hasattr(column, "__len__") else None
        if size != num_seeds:
            raise ValueError(
                f"{argument}[{name!r}] must have a row per seed ({num_seeds}), got "
                f"{describe(column)}; for a column by node pass column[seeds]"
            )
    return Frame(num_seeds, columns)


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
        hint = (
            "; end it with `return batch`"
            if result is None
            else "; set columns of it for other values"
        )
        raise TypeError(f"transform {name} must return a NodeFlow, got {describe(result)}{hint}")
    return result


def repeats(seeds: Ints) -> bool:
    """Return whether a seed, or a row of seeds, occurs twice."""
    rows = seeds.reshape(len(seeds), math.prod(seeds.shape[1:]))
    rows = rows[np.lexsort(rows.T)]
    return bool((rows[1:] == rows[:-1]).all(1).any())


def as_times(times: NumbersLike | None, sampler: SamplerBase, shape: torch.Size) -> Tensor | None:
    """Return times of seeds of this shape as a tensor of their own type; None for a sampler that
    takes none.
    """
    name = type(sampler).__name__
    if times is None:
        if sampler.takes_times:
            raise TypeError(
                f"times is missing: {name} needs a time for every seed: NodeFlowLoader(..., "
                "times=times), or the time= of a SeedTable"
            )
        return None
    if not sampler.takes_times:
        raise TypeError(
            f"times must be None: {name} takes no times, and would show what is later; seed_data "
            "may hold them"
        )
    return as_stamps(times, "times", shape)


def as_stamps(times: NumbersLike, name: str, shape: torch.Size) -> Tensor:
    """Return times, one per seed or row of seeds, as a tensor of their own type; dates as seconds
    since 1970.
    """
    array = as_moments(times, name, f"seed ({shape[0]})", shape, shape[:1])
    return as_column(array.copy(), name)


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
            texts.update(
                {f"sampler.{inner}": text for inner, text in settings_of_sampler(*value).items()}
            )
        else:
            texts[key] = repr(value)
    return texts


def hash_times(times: Tensor) -> int:
    """Return a hash of the values of ``times``: float64 of floats, int64 of integers."""
    exact = times.double() if times.is_floating_point() else times.long()
    array = exact.contiguous().numpy()
    return hash_ids(array.view(np.int64))


def check_settings(own: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise ValueError for the first setting of a loader that has another value in ``state``."""
    for name, value in own.items():
        stored = state.get(name)
        if stored == value:
            continue
        if isinstance(stored, Mapping) and isinstance(value, Mapping):
            key = next(key for key in {**stored, **value} if stored.get(key) != value.get(key))
            old, new = (settings.get(key, "no setting") for settings in (stored, value))
            raise ValueError(
                f"the state is of another sampler: {key} is {old} there, and {new} here"
            )
        total = ", the seeds of a batch in all processes" if name == "batch_size" else ""
        raise ValueError(
            f"the state is of a loader with {name}={stored}, this one has {value}{total}"
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
