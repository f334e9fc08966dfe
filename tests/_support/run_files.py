"""The files of a run's folder and the settings that they hold, for tests that write, read and damage
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodeflow.training import _checkpoints, _fields, _folder, _settings


def write_tensors(path: Path, tensors: Any, facts: Any) -> None:
    """Write a file with its checksum, such as a checkpoint or the names of a data set."""
    _checkpoints.write_tensors(path, tensors, facts)


def read_tensors(path: Path) -> Any:
    """The facts and the tensors of a file; ValueError where it is damaged."""
    return _checkpoints.read_tensors(path)


def write_state(path: Path, state: Any) -> None:
    """Write the state of a run, such as a changed one."""
    _checkpoints.write_state(path, state)


def read_state(path: Path) -> Any:
    """The state of a run in a file; ValueError where it is damaged."""
    return _checkpoints.read_state(path)


def read_log(path: Path) -> Any:
    """The records of a ``log.csv`` of accuracies."""
    return _folder.read_log(path, "accuracy")


def run_of(values: Any, **options: Any) -> _folder.Run:
    """The run of the values that a ``run.toml`` holds, with options of the command."""
    return _folder.Run.of(values, options)


def read_run(folder: Path) -> _folder.Run:
    """The run of the ``run.toml`` of a folder."""
    return _folder.Run.read(folder)


def options() -> dict[str, tuple[str, str, Any]]:
    """Of every setting by name its group in ``Settings``, its option of the command, its field."""
    return {
        name: (group, _fields.option_of(field), field)
        for name, (group, field) in _settings.FIELDS.items()
    }
