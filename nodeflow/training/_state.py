"""The state of a run in one file: tensors and values by name, written at once or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor

from nodeflow._disk.manifest import replace_file

_KEY = "nodeflow"


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a tree of dicts, lists, tuples, tensors, numbers, strings and None into one safetensors file.

    The file appears under its name when it is complete and on the disk; until then an older one stays. So whatever ends
    the process, one of the two is there. Raises OSError where it cannot be written; then the older one stays too.
    """
    tensors: dict[str, Tensor] = {}
    tree = _encoded(state, tensors, "state")
    write_tensors(path, tensors, tree)


def read_state(path: Path) -> Any:
    """Return the tree that ``write_state`` wrote.

    Raises FileNotFoundError for a missing file, ValueError for one that is damaged or that ``write_state`` did not
    write.
    """
    tree, tensors = read_tensors(path)
    try:
        return _decoded(tree, tensors)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} does not hold the state that it says it holds: {error}") from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Any) -> None:
    """Write tensors by name and ``facts``, values of JSON, into a safetensors file, at once or not at all."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # one entry, because safetensors writes several in random order, and equal runs should give equal files
    replace_file(path, to_safetensors(whole, {_KEY: json.dumps(facts)}))


def read_tensors(path: Path) -> tuple[Any, dict[str, Tensor]]:
    """Return the facts and the tensors of a file; raises FileNotFoundError or ValueError as ``read_state`` does."""
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict
        facts = json.loads(metadata[_KEY])
    except KeyError:
        raise ValueError(f"{path} is no checkpoint of a training run: it does not say which model it holds") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from error
    return facts, tensors


def _encoded(value: Any, tensors: dict[str, Tensor], name: str) -> Any:
    """Return ``value`` as JSON, with its tensors put into ``tensors`` by the path that leads to them."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {"dict": {key: _encoded(each, tensors, f"{name}.{key}") for key, each in value.items()}}
        return {"items": [[key, _encoded(each, tensors, f"{name}.{key}")] for key, each in value.items()]}
    if isinstance(value, (list, tuple)):
        each = [_encoded(item, tensors, f"{name}.{i}") for i, item in enumerate(value)]
        return {"tuple": each} if isinstance(value, tuple) else each
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a state holds tensors, numbers, strings and None, got {type(value).__name__} at {name}")


def _decoded(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((form, content),) = value.items()
    if form == "tensor":
        return tensors[content]
    if form == "dict":
        return {key: _decoded(each, tensors) for key, each in content.items()}
    if form == "items":
        return {key: _decoded(each, tensors) for key, each in content}
    return tuple(_decoded(item, tensors) for item in content)
