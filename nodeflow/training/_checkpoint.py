"""The files of a training run: checkpoint, log, summary and picture; and loading the model again."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors

from nodeflow._base.version import __version__
from nodeflow.nn import FlowModel
from nodeflow.plot import plot_curves
from nodeflow.training._loop import EpochRecord, Result, build_model, seeded
from nodeflow.training._settings import Settings


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Make the output folder and test that it can be written to, before training; raises OSError.

    If the block fails, folders that were made for it are removed again, unless they hold files.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            why = "it is a file" if folder.is_file() else error.strerror or error
            raise OSError(f"cannot write into the output folder {folder}: {why}") from error
        yield
    except BaseException:
        for place in missing:
            with suppress(OSError):
                place.rmdir()
        raise


def save(result: Result, folder: Path, *, curves: str | None = None) -> list[Path]:
    """Write a run into ``folder``, which is made if needed: all files, or none if one cannot be written.

    The files are ``checkpoint.safetensors`` (see ``load_model``), ``log.csv``, ``result.json`` and, if ``curves`` is
    given as its title, the picture ``curves.png``. Those of an earlier run in the folder are replaced; its picture is
    removed where this run has none. Returns the paths of the files. Raises OSError.
    """
    with output_folder(folder), TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
        files = _write(result, Path(unfinished))
        if curves is not None:
            files.append(Path(unfinished) / "curves.png")
            plot_curves(result.records, files[-1], title=curves)
        for file in files:
            if (folder / file.name).is_dir():
                raise IsADirectoryError(f"cannot write {folder / file.name}: it is a folder")
        written = [file.replace(folder / file.name) for file in files]
        stale = folder / "curves.png"
        if stale not in written and stale.is_file():
            stale.unlink()
        return written


def holds_run(folder: Path) -> bool:
    """Whether ``folder`` holds files that ``save`` would replace or remove."""
    names = ("checkpoint.safetensors", "log.csv", "result.json", "curves.png")
    return any((folder / name).is_file() for name in names)


def _write(result: Result, folder: Path) -> list[Path]:
    checkpoint, log, summary = folder / "checkpoint.safetensors", folder / "log.csv", folder / "result.json"
    first, last = result.model.convs[0], result.model.convs[-1]
    widths = {"in_features": _linear(first).in_features, "out_features": _linear(last).out_features}
    facts = {
        "dataset": result.dataset,
        "test_accuracy": _or_none(result.test_accuracy),
        "best_epoch": result.best_epoch,
        "best_val_accuracy": _or_none(result.best_val_accuracy),
    }
    settings, versions = asdict(result.settings), {"nodeflow": __version__, "torch": str(torch.__version__)}
    # one entry, because safetensors writes several in random order, and equal runs should give equal files
    stored = {**facts, "settings": settings, "widths": widths, "versions": versions}
    metadata = {"nodeflow": json.dumps(stored)}
    weights = {name: value.contiguous() for name, value in result.model.state_dict().items()}
    checkpoint.write_bytes(to_safetensors(weights, metadata))
    rows = [asdict(record) for record in result.records]
    columns = list(EpochRecord.__dataclass_fields__)
    if all(record.age is None for record in result.records):  # no history
        columns.remove("age")
    with log.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    summary.write_text(json.dumps({**facts, **settings, "versions": versions}, indent=2) + "\n")
    return [checkpoint, log, summary]


def _or_none(accuracy: float) -> float | None:
    return None if math.isnan(accuracy) else accuracy  # JSON knows no NaN


def load_model(checkpoint: Path | str) -> FlowModel:
    """Return the model of a checkpoint that ``save`` wrote, in evaluation mode.

    Raises FileNotFoundError for a missing file, ValueError for one that is damaged or that ``save`` did not write.
    """
    path = Path(checkpoint)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged, or no safetensors file: {error}") from error
    if "nodeflow" not in metadata:
        raise ValueError(f"{path} is no checkpoint of a training run: it does not say which model it holds")
    try:
        facts = json.loads(metadata["nodeflow"])
        settings = Settings(**facts["settings"])
        with seeded(0):  # the weights drawn here are replaced
            model = build_model(settings, **facts["widths"])
        model.load_state_dict(weights)
    except (TypeError, KeyError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not hold the model that it says it holds: {error}") from error
    model.eval()
    return model


def _linear(conv: torch.nn.Module) -> torch.nn.Linear:
    return next(module for module in conv.modules() if isinstance(module, torch.nn.Linear))
