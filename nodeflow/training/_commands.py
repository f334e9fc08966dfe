"""The subcommands of ``nodeflow``."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from nodeflow._base.checks import as_count, as_ids
from nodeflow._disk.manifest import MANIFEST
from nodeflow._display.axes import require_matplotlib
from nodeflow.building import build_graph
from nodeflow.datasets import Dataset, has_label
from nodeflow.training._checkpoints import FREE, Checkpoints
from nodeflow.training._data import PARTS, read_dataset
from nodeflow.training._events import event_writer
from nodeflow.training._features import stays_in_file
from nodeflow.training._folder import (
    CHECKPOINT,
    LOG,
    SETTINGS,
    Run,
    begin,
    continued,
    output_folder,
    save,
    write_log,
)
from nodeflow.training._graph import with_columns
from nodeflow.training._nodes import NodeTask
from nodeflow.training._partitions import PartitionBatches
from nodeflow.training._predictions import check_predictions, write_predictions, write_top_links
from nodeflow.training._processes import Processes, process_group, restarts
from nodeflow.training._result import EpochRecord
from nodeflow.training._settings import FIELDS, read_toml
from nodeflow.training._state import read_tensors
from nodeflow.training._trainer import Stopped, Trainer

SIDES = {"dst": "destination", "src": "source"}
"""The ends of a link that ``predict`` asks for, by the name of the option."""
Say: TypeAlias = Callable[[str], None]
Command: TypeAlias = Callable[[argparse.Namespace, Say], None]


def train(options: argparse.Namespace, say: Say) -> None:
    """Train a model, from the start or from the last checkpoint of a folder; with the others under torchrun."""
    with process_group() as processes:
        try:
            _train(options, say if processes.is_first else _silent, processes)
        except (Stopped, KeyboardInterrupt) as error:
            if not processes.is_first:
                raise Silent(143 if isinstance(error, Stopped) else 130) from None
            raise
        except Exception:
            if not processes.is_first and processes.told:
                raise Silent(2) from None
            raise


class Silent(Exception):  # noqa: N818  the first process has the error
    """Exit silently with this status; rank 0 reports the error."""


def _silent(text: str) -> None:
    pass


def _train(options: argparse.Namespace, say: Say, processes: Processes) -> None:
    chosen = {name: getattr(options, name) for name in FIELDS if hasattr(options, name)}
    if options.resume is not None:
        fixed = [name for name in chosen if name not in FREE]
        fixed += [name for name in ("data", "config", "output", "checkpoint_every") if getattr(options, name)]
        if fixed:
            raise ValueError(
                f"--resume takes the settings of its folder, but {fixed[0]} was given too; leave it out. Only "
                f"{', '.join(FREE)} may change"
            )
        run = Run.of(processes.of_first(lambda: Run.read(options.resume).values()))
        _go_on(options.resume, replace(run, settings=run.settings.replace(**chosen)), options, say, processes)
        return
    values = {} if options.config is None else read_toml(options.config)
    for name in ("data", "checkpoint_every"):
        if getattr(options, name) is not None:
            values[name] = getattr(options, name)
    try:
        with processes.together():
            run = Run.of({"processes": processes.size, **values}, chosen)
            run = (replace(run, processes=processes.size) if "batch_size" in chosen else run).shared_by(processes.size)
    except (ValueError, TypeError) as error:
        if options.config is None:
            raise
        raise type(error)(f"{options.config}: {error}") from error
    folder = options.output or Path("runs/latest")
    if restarts(processes) and processes.of_first(lambda: _holds(folder, run)):
        _go_on(folder, run, options, say, processes)
        return
    with processes.together():
        dataset = run.dataset()
        checkpoints = Checkpoints.every(folder, run.checkpoint_every)
    trainer = Trainer(dataset, run.settings, checkpoints=checkpoints)
    with output_folder(folder) if processes.is_first else nullcontext():
        say(repr(dataset))
        if processes.of_first(lambda: begin(folder, run)):
            say(f"replaces the earlier run in {folder}")
        if unread := run.settings.left_out(values):
            say(f"not read by this run, and left out of {options.config}: {', '.join(unread)}")
        _run(trainer, run, folder, options, say)


def _go_on(folder: Path, run: Run, options: argparse.Namespace, say: Say, processes: Processes) -> None:
    with processes.together():
        run = run.shared_by(processes.size)
        dataset = run.dataset()
    trainer = continued(folder, run, dataset)
    processes.of_first(lambda: run.write(folder))
    say(repr(dataset))
    if trainer.is_finished:
        say(f"the run in {folder} is finished; its files are written again")
    else:
        say(f"goes on after epoch {trainer.epoch} and batch {trainer.batches_done} of the next")
    _run(trainer, run, folder, options, say)


def _holds(folder: Path, run: Run) -> bool:
    """Whether a folder holds this run; then one that torchrun starts again goes on with it."""
    return (folder / SETTINGS).is_file() and Run.read(folder).values() == run.values()


def _run(trainer: Trainer, run: Run, folder: Path, options: argparse.Namespace, say: Say) -> None:
    if not trainer.processes.is_first:
        with _stop_on_term(trainer):
            trainer.run()
        return
    settings, metric = run.settings, trainer.task.metric.name
    for line in _header(trainer, run, folder):
        say(line)
    picture = not options.no_plot and _can_draw()
    if not picture and not options.no_plot:
        say("no picture of the curves: it needs matplotlib (pip install matplotlib; --no-plot hides this line)")
    age = f" {'age':>7}" if trainer.task.method.has_history else ""
    score = f"{'val ' + metric:>{_width(metric)}}"
    say(f"\n{'epoch':>5} {'loss':>8} {score} {'seconds':>8} {'seeds/s':>9} {'edges/s':>10}{age}")
    start = time.perf_counter()
    with event_writer(folder, trainer.epoch + 1) as write_event, _stop_on_term(trainer):

        def report(record: EpochRecord) -> None:
            say(_row(record, metric))
            write_event(record)
            write_log(folder / LOG, trainer.records)

        try:
            result = trainer.run(report)
        except Stopped as stopped:
            raise Stopped(f"{stopped}; its state is saved: nodeflow train --resume {folder}") from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"goes on from its last checkpoint: nodeflow train --resume {folder}") from None
    tested = "no test nodes" if math.isnan(result.test_score) else f"test {metric} {result.test_score:.4f}"
    say("")
    for part, scores in result.scores.items():
        say(_scores(part, scores))
    if result.is_best_last and settings.run.epochs > 1:
        say(f"the best epoch is the last one, {result.best_epoch}: more epochs may give a better model")
    title = f"{trainer.task.dataset.name}, {settings.model.name}: {tested}"
    written = save(result, folder, curves=title if picture else None)
    seconds = time.perf_counter() - start
    say(f"best epoch {result.best_epoch}, {tested}; {seconds:.1f} s; wrote {', '.join(map(str, written))}")


def _header(trainer: Trainer, run: Run, folder: Path) -> Iterator[str]:
    settings, sampler = run.settings, run.settings.sampler
    drawn = f", sampler {sampler.name}, fanouts {list(sampler.fanouts)}" if settings.model.name != "none" else ""
    weighted = ", means with estimator weights" if trainer.task.weighted else ""
    yield f"run {folder}: {settings.model.name}{drawn}, seed {settings.run.seed}{weighted}"
    yield from trainer.task.description()
    if run.processes > 1:
        yield f"{run.processes} processes share every step: {sampler.batch_size} seeds each"
    if isinstance(trainer.batches, PartitionBatches):
        buffer, storage = trainer.batches.buffer, settings.storage
        yield (
            f"{storage.slots} of {buffer.partitions!r} in memory, order {storage.order}: at most "
            f"{buffer.held_bytes / 1e6:,.0f} MB"
        )


def _width(metric: str) -> int:
    return max(len(metric) + 4, 8)


def _row(record: EpochRecord, metric: str) -> str:
    score = "-" if math.isnan(record.score) else f"{record.score:.4f}"
    age = "" if record.age is None else f" {record.age:>7.1f}"
    return (
        f"{record.epoch:>5} {record.loss:>8.4f} {score:>{_width(metric)}} {record.seconds:>8.2f} "
        f"{record.seeds_per_second:>9,.0f} {record.edges_per_second:>10,.0f}{age}"
    )


def _scores(part: str, scores: Mapping[str, float]) -> str:
    return f"{part:>5}  " + ("  ".join(f"{name} {value:.4f}" for name, value in scores.items()) or "no nodes")


@contextmanager
def _stop_on_term(trainer: Trainer) -> Iterator[None]:
    """Within the block, SIGTERM lets the run save its state and stop."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: trainer.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def evaluate(options: argparse.Namespace, say: Say) -> None:
    """Print all metrics of the best epoch of a run, on every part of the split."""
    trainer, dataset = _best(options)
    of_nodes = isinstance(trainer.task, NodeTask)
    if of_nodes and "label" not in dataset.graph.ndata:
        raise ValueError(f"data set {dataset.name!r} has no labels, so a model cannot be measured on it")
    say(repr(dataset))
    for part, scores in trainer.scores().items():
        made_up = of_nodes and not len(dataset.splits[part])
        say(_scores(part, {} if made_up else scores))


def predict(options: argparse.Namespace, say: Say) -> None:
    """Write the outputs of nodes into a file, or of a run that learned links the best answers of nodes."""
    check_predictions(options.output)
    of_links = Run.read(options.folder).settings.run.task == "link"
    query = _query(options, of_links)
    trainer, dataset = _best(options)
    nodes = _nodes(options.nodes, dataset)
    if of_links:
        write_top_links(options.output, trainer, nodes, **query)
    else:
        write_predictions(options.output, trainer, nodes)
    say(f"wrote {options.output}: {len(nodes):,} nodes")


def _query(options: argparse.Namespace, of_links: bool) -> dict[str, Any]:
    """Return which links are wanted, as arguments; raises ValueError for options that do not fit the run."""
    chosen = {name: getattr(options, name) for name in ("top", "side", "relation", "with_known")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if chosen and not of_links:
        option = next(iter(chosen)).replace("_", "-")
        raise ValueError(
            f"--{option} is for runs that learned links, but the run in {options.folder} learned labels of nodes; "
            "leave it out"
        )
    if of_links and options.nodes in (*PARTS, "unlabelled"):
        raise ValueError(
            f"--nodes must be all or a file .npy of ids, because the run in {options.folder} learned links, not "
            f"labels of nodes; got {options.nodes!r}"
        )
    if "top" in chosen:
        chosen["k"] = as_count(chosen.pop("top"), "--top", 1)
    if "side" in chosen:
        chosen["side"] = SIDES[chosen["side"]]
    return chosen


def _best(options: argparse.Namespace) -> tuple[Trainer, Dataset]:
    """Return a trainer with the weights of the best epoch of a run, and the data set."""
    folder: Path = options.folder
    run = Run.read(folder).shared_by(1)
    if not (folder / CHECKPOINT).is_file():
        raise FileNotFoundError(f"the run in {folder} is not finished: nodeflow train --resume {folder}")
    if run.is_of_parts and options.data is None:
        raise ValueError(
            f"the run in {folder} trained on parts of a graph: give the data set that they were cut from with --data"
        )
    dataset = run.dataset() if options.data is None else read_dataset(options.data)
    facts, weights = read_tensors(folder / CHECKPOINT)
    stays = stays_in_file(dataset.graph)
    changes = {"task": facts["task"], "device": options.device or run.settings.compute.device}
    if run.settings.storage.kind == "partitions":  # which only training reads
        changes["storage"] = "file" if stays else "memory"
    if run.is_of_parts:
        changes |= {"partitions": "", "share": "even"}
    if options.data is not None and not stays:
        changes["storage"] = "memory"
    settings = run.settings.replace(**changes)
    as_trained = options.data is None or facts["task"] == "link"
    trainer = Trainer(dataset if as_trained else _for_outputs(dataset, facts), settings)
    try:
        trainer.network.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()  # of one of its tensors
        raise ValueError(f"the model in {folder} does not fit data set {dataset.name!r}: {reason}") from error
    return trainer, dataset


def _for_outputs(dataset: Dataset, facts: Mapping[str, Any]) -> Dataset:
    """Return a data set for a trainer that shall not train: what it lacks of labels and training nodes is made up."""
    width = (facts["network"]["model"] or {}).get("out_features", dataset.num_classes)
    graph, train = dataset.graph, dataset.train
    if "label" not in graph.ndata:
        one_each = facts["task"] == "classification"
        label = torch.zeros(graph.num_nodes, dtype=torch.int64) if one_each else torch.zeros(graph.num_nodes, width)
        graph = with_columns(graph, {"label": label})
    if len(train) == 0:
        train = next((nodes for nodes in dataset.splits.values() if len(nodes)), torch.arange(graph.num_nodes))[:1]
    return replace(dataset, graph=graph, train=train, num_classes=max(dataset.num_classes, width))


def _nodes(which: str, dataset: Dataset) -> torch.Tensor:
    if which == "all":
        return torch.arange(dataset.graph.num_nodes)
    if which in dataset.splits:
        return dataset.splits[which]
    if which == "unlabelled":
        if "label" not in dataset.graph.ndata:
            return torch.arange(dataset.graph.num_nodes)
        return (~has_label(dataset.graph.ndata["label"])).nonzero().flatten()
    path = Path(which)
    if path.suffix != ".npy":
        raise ValueError(f"nodes must be all, train, val, test, unlabelled or a file .npy of ids, got {which!r}")
    try:
        ids = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{path} is no .npy file of ids: {error}") from error
    return torch.from_numpy(as_ids(ids, str(path), dataset.graph.num_nodes))


def info(options: argparse.Namespace, say: Say) -> None:
    """Describe a data set."""
    if (Path(options.data) / SETTINGS).is_file():
        raise ValueError(f"{options.data} is the folder of a run, not of data: nodeflow evaluate {options.data}")
    say(read_dataset(options.data).info())


def build(options: argparse.Namespace, say: Say) -> None:
    """Build a graph folder from files of edges."""
    ndata, edata = _column_files(options.node_column, "node"), _column_files(options.edge_column, "edge")
    ndata |= {name: file for name, file in (("feat", options.features), ("label", options.labels)) if file is not None}
    split = {part: getattr(options, part) for part in ("train", "val", "test") if getattr(options, part) is not None}
    start = time.perf_counter()
    if not options.overwrite and (options.output / MANIFEST).exists():
        raise FileExistsError(f"{options.output} exists; give --overwrite to replace it, or choose another folder")
    edges: list[Path] = options.edges
    if len(edges) == 1 and (str(edges[0]) == "debian" or edges[0].is_dir()):
        if ndata or edata or split or options.named or options.columns or options.num_nodes is not None:
            raise ValueError(f"{edges[0]} is a data set, which is written as it is; options are for files of edges")
        read_dataset(str(edges[0])).save(options.output, overwrite=options.overwrite)
        say(repr(read_dataset(str(options.output))))
        say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")
        return
    names = ("num_nodes", "named", "columns", "header", "delimiter", "memory", "overwrite")
    further: dict[str, Any] = {name: getattr(options, name) for name in names}
    progress = sys.stderr.isatty()
    build_graph(edges, options.output, ndata=ndata, edata=edata, split=split, progress=progress, **further)
    say(repr(read_dataset(str(options.output))))
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")


def _column_files(pairs: list[str], kind: str) -> dict[str, Path]:
    columns = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise ValueError(f"--{kind}-column must be NAME=FILE, got {pair!r}")
        columns[name] = Path(file)
    return columns


def _can_draw() -> bool:
    try:
        require_matplotlib()
    except ImportError:
        return False
    return True
