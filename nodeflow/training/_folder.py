"""The folder of a run: its settings, state, log, result and picture."""

from __future__ import annotations

import csv
import json
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, TemporaryFile
from types import MappingProxyType
from typing import Any

import numpy as np
import tomli_w
import torch

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_count, as_flag, as_number, blaming
from nodeflow._core.base.files import is_file
from nodeflow._core.base.version import __version__
from nodeflow._files.disk.arrays import making, naming
from nodeflow._files.disk.manifest import replace_file
from nodeflow._files.text.table import rows_of_words
from nodeflow._processes.default_group import default_peers
from nodeflow.datasets import Dataset
from nodeflow.plot import plot_curves
from nodeflow.training._checkpoints import (
    STATE,
    Checkpoints,
    check_same_run,
    load_weights,
    read_tensors,
    write_tensors,
)
from nodeflow.training._choices import Values
from nodeflow.training._data import learned_part, read_dataset, read_parts
from nodeflow.training._fields import check_text
from nodeflow.training._models import ModelFacts, build_decoder, build_model
from nodeflow.training._names import NODES, Names
from nodeflow.training._network import Inputs, LinkNetwork, Network, TypedInputs
from nodeflow.training._nodes import NodeTask
from nodeflow.training._processes import OwnRandom
from nodeflow.training._result import EpochRecord, Result, write_trace
from nodeflow.training._settings import Settings, named_again, read_toml
from nodeflow.training._trainer import Trainer

SETTINGS = "run.toml"
CHECKPOINT = "checkpoint.safetensors"
LOG = "log.csv"
RESULT = "result.json"
CURVES = "curves.png"
RATES = ("seconds", "seeds_per_second", "edges_per_second")
EVENTS = "events.out.tfevents.*"
UNFINISHED = ".unfinished-"
TRACE = "trace.csv"
FILES = (SETTINGS, STATE, CHECKPOINT, LOG, TRACE, RESULT, CURVES)


@dataclass(frozen=True)
class Run:
    """The start of a run: the file ``run.toml`` of its folder.

    ``data`` is "debian", or the folder of the data set; empty where settings name the parts of a
    graph. ``processes`` share every step; the batch size of ``settings`` is that of one of them.
    ``plot``: make a picture of the curves. ``identity``: that of its trainer, which its other files
    have too; empty in a file of before.
    """

    data: str
    settings: Settings
    checkpoint_every: str = "1"
    processes: int = 1
    plot: bool = True
    identity: str = ""

    @classmethod
    def of(cls, values: Values, options: Values = MappingProxyType({})) -> Run:
        """Return the run of a file; ``options`` are settings that take the place of those in it."""
        settings = dict(values)
        start: dict[str, Any] = {}
        for name in ("data", "checkpoint_every", "identity"):
            start[name] = check_text(settings.pop(name, getattr(cls, name, "")), name)
        start["processes"] = as_count(settings.pop("processes", 1), "processes", 1)
        start["plot"] = as_flag(settings.pop("plot", True), "plot")
        run = cls(settings=Settings.from_dict(settings, **options), **start)
        if run.is_of_parts and run.data:
            raise ValueError(
                "data must be left out with parts of a graph, which hold features, labels and "
                f"split; got {run.data!r} and partitions "
                f"{run.settings.storage.partitions!r}; for a partition buffer give storage "
                "'partitions'"
            )
        if not run.data and not run.is_of_parts:
            run = replace(run, data="debian")
        return run

    @classmethod
    def read(cls, folder: Path, model: str | None = None) -> Run:
        """Return the run of a folder; ``model`` names a model of the user's own again, see
        ``Settings.from_dict``.

        Raises FileNotFoundError where there is none, ValueError for a damaged file and another
        model, OSError.
        """
        path = folder / SETTINGS
        if not is_file(path):
            raise FileNotFoundError(
                f"{folder} is no folder of a run: it has no {SETTINGS}; a run that was cut off "
                "before that was written begins again with the nodeflow train that started it"
            )
        with blaming(f"{path}", ValueError, TypeError):
            values = read_toml(path)
            return cls.of(values, named_again(values, model))

    def write(self, folder: Path) -> None:
        text = tomli_w.dumps(self.values())
        replace_file(folder / SETTINGS, text.encode())

    def values(self) -> dict[str, Any]:
        """Return what ``run.toml`` holds, by name."""
        start = {"data": self.data, "checkpoint_every": self.checkpoint_every}
        if self.data not in ("", "debian"):
            start["data"] = str(Path(self.data).resolve())
        for name in ("processes", "plot", "identity"):
            value = getattr(self, name)
            if value != getattr(Run, name):  # what is usual is left out
                start[name] = value
        return start | self.settings.to_dict()

    @property
    def is_of_parts(self) -> bool:
        """Whether each process holds a part of the graph."""
        storage = self.settings.storage
        return bool(storage.partitions) and storage.kind != "partitions"

    def shared_by(self, processes: int) -> Run:
        """Return the same run for another number of processes, with as many seeds per step in
        total.
        """
        if processes == self.processes:
            return self
        batch_size = self.settings.sampler.batch_size
        size, left_over = divmod(batch_size * self.processes, processes)
        if left_over:
            raise ValueError(
                f"a step of the run has {batch_size * self.processes} seeds (batch_size "
                f"{batch_size} of {self.processes} processes), which {processes} processes cannot "
                "share evenly; start a number of them that divides it"
            )
        return replace(self, settings=self.settings.replace(batch_size=size), processes=processes)

    def dataset(self) -> Dataset:
        """Read the data set, with labels of the target: its parts in several processes, where
        settings name them.
        """
        settings = self.settings
        task = settings.run.task
        target = settings.run.target
        if not self.is_of_parts:
            return learned_part(read_dataset(self.data), task, target)
        folder = settings.storage.partitions
        halo = settings.compute.halo
        return learned_part(
            read_parts(folder, target, links=task == "link", halo=halo), task, target
        )


def check_checkpoint(path: Path, facts: Values, run: Run) -> None:
    """Raise ValueError where the checkpoint at ``path`` is of another run; ``run``: its settings
    for one process.
    """
    with blaming(
        f"{path} does not say of which run it is", KeyError, TypeError, ValueError, AttributeError
    ):
        Names.from_json(facts["names"])
        # nothing is imported: no network is made of them
        settings = Settings(facts["settings"])
        # which evaluation reads
        _ = settings.replace(task=facts["task"]), dict(facts["network"]["model"] or {})
        size = settings.sampler.batch_size * facts.get("processes", 1)
    check_same_run(settings.replace(batch_size=size), run.settings, 1, str(path))
    if facts.get("identity", "") != run.identity:
        raise ValueError(
            f"{path} is of another run than {SETTINGS} beside it: put its own file back"
        )


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Make the output folder and test that it can be written to, before training; raises OSError.

    If the block fails, folders that were made for it are removed again, unless they hold files.
    """
    # a folder that cannot be written to is found here, before hours of training and not after them
    with ExitStack() as stack:
        # only what goes wrong here is of the folder, nothing that the block raises
        try:
            stack.enter_context(making(folder))
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            why = "it is a file" if folder.is_file() else error.strerror or error
            raise OSError(f"cannot write into the output folder {folder}: {why}") from error
        yield


def begin(folder: Path, run: Run) -> bool:
    """Clear the folder and write the settings of a new run; return whether it held an earlier
    run.
    """
    # files of an earlier run go first: what is left of two runs would be taken for one
    paths = map(folder.joinpath, FILES)
    earlier = [path for path in paths if path.is_symlink() or is_file(path)]
    for path in (*earlier, *folder.glob(EVENTS)):
        path.unlink()
    run.write(folder)
    return bool(earlier)


@checked
def open_trainer(
    folder: Path | str, dataset: Dataset | None = None, *, model: str | None = None
) -> Trainer:
    """Return the trainer of an interrupted run, at its last saved state; ``run`` continues from
    there.

    A run without a saved state starts from the beginning. ``dataset`` None reads the run's data
    set. ``model`` is needed for a model "module:factory", the same name as in the file
    ``run.toml``: it is imported, which runs code, so a file alone does not choose it. Raises
    FileNotFoundError where the folder has no run, ValueError for files that are damaged, or of
    another data set.

    >>> open_trainer("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: nowhere is no folder of a run: it has no run.toml; a run that was cut off before ...
    """
    folder = Path(folder)
    # as many seeds a step as before, over however many processes there are now
    run = Run.read(folder, model).shared_by(default_peers().size)
    checkpoints = Checkpoints.every(folder, run.checkpoint_every)
    if dataset is None:
        dataset = run.dataset()
    trainer = Trainer(dataset, run.settings, checkpoints=checkpoints)
    go_on(trainer, run, folder)
    return trainer


def go_on(trainer: Trainer, run: Run, folder: Path) -> None:
    """Load the state in the folder of a run, if it has saved one; raises FileNotFoundError where
    that is gone.

    Otherwise what ``Checkpoints.restore`` raises.
    """
    assert trainer.checkpoints is not None
    if trainer.checkpoints.restore(trainer, run.identity):
        return
    log = folder / LOG
    every = trainer.checkpoints.epochs
    # lines, not records: a process may have been killed while it wrote the last one; the first is
    # of titles
    lines = trainer.peers.of_first(
        "the log", lambda: log.read_bytes().count(b"\n") if is_file(log) else 0
    )
    epochs = max(lines - 1, 0)
    if 0 < every <= epochs:
        raise FileNotFoundError(
            f"{folder / STATE} is gone, which the run had saved: {epochs} epochs are in {LOG}; put "
            f"it back, or begin again: nodeflow train --config {folder / SETTINGS} --output "
            f"{folder} --overwrite"
        )
    trainer.identity = run.identity or trainer.identity


@checked
def save(result: Result, folder: Path | str, *, curves: str | None = None) -> list[Path]:
    """Write a result into ``folder``, which is made if needed: all files, or none if one cannot be
    written.

    The files are ``checkpoint.safetensors`` (see ``load_model``), ``log.csv``, ``trace.csv``
    (hashes of batches, see ``nodeflow reproduce``), ``result.json`` and, if ``curves`` is given as
    its title, the picture ``curves.png``. Those of an earlier run in the folder are replaced, first
    its ``result.json``, which comes last of the new ones: a process that is killed in between
    leaves no finished run. Its picture is removed where this run has none. Returns the paths of the
    files. Raises OSError.

    >>> import tempfile
    >>> from nodeflow.datasets import debian
    >>> result = Trainer(debian(), Settings(fanouts=(1,), hidden=4)).result()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = save(result, folder)
    ...     print([path.name for path in files], type(load_model(files[0])).__name__)
    ['checkpoint.safetensors', 'log.csv', 'trace.csv', 'result.json'] Network
    """
    folder = Path(folder)
    # of a process that was killed while it saved a result
    for draft in folder.glob(f"{UNFINISHED}*"):
        rmtree(draft)
    with (
        naming(folder),
        output_folder(folder),
        TemporaryDirectory(dir=folder, prefix=UNFINISHED) as unfinished,
    ):
        files = _write(result, Path(unfinished))
        if curves is not None:
            picture = Path(unfinished) / CURVES
            plot_curves({"": result.records}, picture, metric=result.metric, title=curves)
            files.append(picture)
        for file in files:
            if (folder / file.name).is_dir():
                raise IsADirectoryError(f"cannot write {folder / file.name}: it is a folder")
        # the result says that a run is finished: a process that is killed from here on leaves no
        # mixture of two
        (folder / RESULT).unlink(missing_ok=True)
        written = [file.replace(folder / file.name) for file in files]
        if curves is None and (folder / CURVES).is_file():
            (folder / CURVES).unlink()
        return written


def _write(result: Result, folder: Path) -> list[Path]:
    task = result.task
    kind = result.settings.run.task
    # found by its labels, where settings say "auto"
    if isinstance(task, NodeTask):
        kind = task.target.task
    # in this order they stand in the file, which people read from its top
    facts: dict[str, Any] = {
        "dataset": task.dataset.name,
        "task": kind,
        "metric": result.metric,
        "best_epoch": result.best_epoch,
        "best_val_score": _without_nan(result.best_val_score),
        "scores": {},
        "settings": result.settings.by_name(read=True),
    }
    for part, scores in result.scores.items():
        facts["scores"][part] = {name: _without_nan(value) for name, value in scores.items()}
    if task.peers.size > 1:
        facts["processes"] = task.peers.size
    facts["fingerprint"] = result.fingerprint
    facts["identity"] = result.identity
    facts["versions"] = {"nodeflow": __version__, "torch": str(torch.__version__)}
    names = task.names
    if task.network.inputs.learns:
        names = names.with_nodes(task.dataset)
    of_model = {
        "network": task.network_facts(),
        "names": names.to_json(),
        "target": task.dataset.target,
    }
    tensors = {**result.network.state_dict(), **names.tensors()}
    write_tensors(folder / CHECKPOINT, tensors, {**facts, **of_model})
    write_log(folder / LOG, result.records)
    write_trace(folder / TRACE, result.steps)
    # the machine is left out of the checkpoint: equal runs give equal bytes on any
    text = json.dumps({**facts, "machine": machine()}, indent=2)
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    return [folder / name for name in (CHECKPOINT, LOG, TRACE, RESULT)]


def machine() -> dict[str, Any]:
    """Return what results may depend on beside settings, data and the versions of nodeflow and
    torch.
    """
    return {
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def read_result(folder: Path) -> dict[str, Any]:
    """Return the result of a finished run, with the settings that it read, by name."""
    path = folder / RESULT
    if not is_file(path):
        if not is_file(folder / SETTINGS):
            Run.read(folder)  # which says that there is no run
        raise FileNotFoundError(
            f"the run in {folder} is not finished: nodeflow train --resume {folder}"
        )
    with blaming(
        f"{path} is damaged, or no result of a run",
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        # what is read of it later: each line raises an error where it is not there, or another kind
        for name in ("dataset", "metric"):
            check_text(result[name], name)
        for name in ("versions", "machine"):
            result.get(name, {}).items()
        as_count(result["best_epoch"], "best_epoch")
        _ = result["best_val_score"]
        for part in ("test", "val"):
            for score in result["scores"].get(part, {}).values():
                if score is not None:
                    as_number(score, "a score")
        settings = Settings(result["settings"]).by_name(read=True)
    return {**result, "settings": settings}


def write_log(path: Path, records: Sequence[EpochRecord]) -> None:
    """Write a row per epoch: loss, metrics on the validation nodes, seconds, rates and, with a
    history, its age.
    """
    # epochs that were not validated have no scores, so the titles are those of all epochs
    metrics = dict.fromkeys(name for record in records for name in record.scores)
    titles = ["epoch", "loss", *(f"val_{name}" for name in metrics), *RATES]
    if any(record.age is not None for record in records):
        titles.append("age")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, titles, restval="", extrasaction="ignore")
        writer.writeheader()
        for record in records:
            scores = {f"val_{name}": score for name, score in record.scores.items()}
            writer.writerow(vars(record) | scores)


def read_log(path: Path, metric: str) -> list[EpochRecord]:
    """Return the records of a log, with the scores of one metric; raises ValueError for a damaged
    file, OSError.
    """
    if not is_file(path):
        raise FileNotFoundError(f"there is no log {path}: the folder was not copied whole")
    records: list[EpochRecord] = []
    lines = rows_of_words(path)
    _, titles = next(lines, (0, []))
    for line, words in lines:
        with blaming(f"{path}, line {line}, is damaged", ValueError, KeyError):
            row = dict(zip(titles, words, strict=True))
            score = float(row.get(f"val_{metric}") or math.nan)
            rates: dict[str, Any] = {name: float(row[name]) for name in RATES}
            # the line is checked by reading it: a row that was cut off lacks words, or has none for
            # a number
            record = EpochRecord(int(row["epoch"]), float(row["loss"]), score, **rates)
            records.append(record)
            if record.epoch != len(records):
                raise ValueError(f"epoch {len(records)} is missing")
    return records


@checked
def load_model(checkpoint: Path | str, *, model: str | None = None) -> Network:
    """Return the network of a checkpoint that ``save`` wrote, in evaluation mode; ``.model`` is its
    model.

    A run of task link gives a ``LinkNetwork``: its outputs are the rows that ``.decoder`` compares,
    and without an encoder (model "none") ``.model`` is dropout alone. ``model`` is needed for a
    model "module:factory", the same name as in the file: it is imported, which runs code, so a file
    alone does not choose it.

    Raises FileNotFoundError for a missing file, ValueError for one that is damaged or that ``save``
    did not write, or that holds a model of the user's own that was not given by name.

    >>> import tempfile
    >>> from nodeflow.datasets import debian
    >>> from nodeflow.training import Settings, Trainer, save
    >>> result = Trainer(debian(), Settings(fanouts=(1,), hidden=4)).result()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     network = load_model(save(result, folder)[0])
    >>> network.training
    False
    """
    path = Path(checkpoint)
    facts, weights = read_tensors(path)
    weights.pop(NODES, None)
    with blaming(
        f"{path}: the model that it holds cannot be made",
        TypeError,
        KeyError,
        ValueError,
        AttributeError,
        RuntimeError,
    ):
        how = facts["network"]
        values = facts["settings"]
        settings = Settings.from_dict(values, **named_again(values, model))
        if how["model"] is None and settings.model.name != "none":
            raise ValueError(
                "its model was made by its user: make it again, and load the tensors of the file"
            )
        with OwnRandom(0, torch.device("cpu")).inside():  # the weights drawn here are replaced
            network = _network(settings, how)
        load_weights(network, weights)
    return network.eval()


def _network(settings: Settings, how: Values) -> Network:
    kind = TypedInputs if "sizes" in how["inputs"] else Inputs
    inputs = kind(**how["inputs"])
    model = None
    if how["model"] is not None:
        facts = ModelFacts(**how["model"])
        model = build_model(settings.model, len(settings.sampler.fanouts), facts)
    if "decoder" in how:
        decoder = build_decoder(settings.link, **how["decoder"])
        return LinkNetwork(inputs, model, decoder, settings.model.dropout)
    if model is None:
        raise ValueError("model 'none' is for task 'link'")
    return Network(inputs, model)


def _without_nan(value: float) -> float | None:
    """Return a score as JSON has it, which knows no NaN."""
    if math.isnan(value):
        return None
    return value
