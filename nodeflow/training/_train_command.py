"""The subcommand ``nodeflow train``: a run from its start or its last checkpoint, or runs that
differ in their seed. Its options are in ``_train_options`` and ``_cli``.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from nodeflow._core.base.checks import as_count
from nodeflow._core.base.files import is_file
from nodeflow._core.peers.peers import Peers
from nodeflow._files.disk.manifest import replace_file
from nodeflow._processes.exchanges import is_heard_by_all
from nodeflow.training._checkpoints import Checkpoints
from nodeflow.training._choices import Values
from nodeflow.training._folder import (
    LOG,
    RESULT,
    SETTINGS,
    Run,
    begin,
    go_on,
    output_folder,
    read_result,
    save,
    write_log,
)
from nodeflow.training._partitions import PartBatches
from nodeflow.training._processes import process_group
from nodeflow.training._result import EpochRecord, Stopped
from nodeflow.training._settings import FIELDS, FREE, read_toml, settings_in
from nodeflow.training._trainer import Trainer

Say: TypeAlias = Callable[[str], None]
Command: TypeAlias = Callable[[argparse.Namespace, Say], None]


class Silent(Exception):  # noqa: N818  the first process has the error
    """Exit silently with this status; rank 0 reports the error."""


def train(options: argparse.Namespace, say: Say) -> None:
    """Train a model, and write its run into a folder; with ``seeds``, several runs."""
    if options.seeds is not None:
        train_seeds(options, say)
        return
    with process_group() as peers:
        try:
            # an error of one process must end all of them, which wait for each other in every step;
            # the first one tells it, the others leave with its status
            with peers.together("the run"):
                _train(options, say if peers.is_first else lambda _: None, peers)
        except (Stopped, KeyboardInterrupt) as error:
            if not peers.is_first:
                raise Silent(143 if isinstance(error, Stopped) else 130) from None
            raise
        except Exception as error:
            if not peers.is_first and is_heard_by_all(error):
                raise Silent(2) from None
            raise


def _train(options: argparse.Namespace, say: Say, peers: Peers) -> None:
    chosen = {name: value for name, value in vars(options).items() if name in FIELDS}
    in_file: dict[str, Any] = {}
    # each machine counts its own restarts, so all of them are asked
    restarts = peers.totals("restarts", int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0))
    is_restart = restarts != [0]
    folder = options.resume or options.output or Path("runs/latest")
    goes_on = options.resume is not None
    if goes_on:
        run = _resumed(options, chosen, peers)
    else:
        in_file = _in_file(options)
        run = _new_run(options, in_file, chosen, peers)
        if not is_restart:
            peers.of_first("the folder", lambda: _check_unfinished(options))
    run = run.shared_by(peers.size)
    dataset = run.dataset()
    checkpoints = Checkpoints.every(folder, run.checkpoint_every)
    trainer = Trainer(dataset, run.settings, checkpoints=checkpoints)
    run = replace(run, settings=trainer.settings)
    if not goes_on:
        run = replace(run, identity=trainer.identity)
        # processes that torchrun has started again were given the options of a new run, and go on
        # with the one that they began, if it had come as far as its folder
        goes_on = is_restart and peers.of_first(
            "the run in the folder",
            lambda: is_file(folder / SETTINGS) and read_toml(folder / SETTINGS) == run.values(),
        )
    if goes_on:
        go_on(trainer, run, folder)
        run = replace(run, identity=trainer.identity)
    # the folder of a run that goes on is there, and must stay even if the run fails
    with output_folder(folder) if peers.is_first and not goes_on else nullcontext():
        replaces = peers.of_first(
            "the folder", lambda: run.write(folder) if goes_on else begin(folder, run)
        )
        say(repr(dataset))
        if dataset.unread_files:
            say(f"files of {run.data} that are not read: {', '.join(dataset.unread_files)}")
        if replaces:
            say(f"replaces the earlier run in {folder}")
        if unread := run.settings.left_out(in_file):
            say(f"not read by this run, and left out of {options.config}: {', '.join(unread)}")
        if goes_on and trainer.is_finished:
            say(f"the run in {folder} is finished; its files are written again")
        elif goes_on:
            say(f"goes on after epoch {trainer.epoch} and batch {trainer.batches_done} of the next")
        _run(trainer, run, folder, say)


def _in_file(options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the file of settings, none without one."""
    if options.config is None:
        return {}
    return read_toml(options.config)


def _check_unfinished(options: argparse.Namespace) -> None:
    """Raise FileExistsError where a folder that was named has a finished run."""
    folder = options.output
    if folder is not None and not options.overwrite and is_file(folder / RESULT):
        raise FileExistsError(
            f"{folder} has a finished run; give --overwrite to replace it, or choose another folder"
        )


def _resumed(options: argparse.Namespace, chosen: Values, peers: Peers) -> Run:
    fixed = [name for name in chosen if name not in (*FREE, "model")]
    fixed += [
        name for name in ("data", "config", "output", "checkpoint_every") if getattr(options, name)
    ]
    if fixed:
        raise ValueError(
            f"--resume takes the settings of its folder, but {fixed[0]} was given too; leave it "
            f"out. Only {', '.join(FREE)} may change"
        )
    model = chosen.get("model")  # of the user's own, named again
    values = peers.of_first("settings", lambda: Run.read(options.resume, model).values())
    if options.no_plot:
        values["plot"] = False
    return Run.of(values, chosen)


def _new_run(
    options: argparse.Namespace, in_file: dict[str, Any], chosen: Values, peers: Peers
) -> Run:
    values = {"processes": peers.size, **in_file}
    for name in ("data", "checkpoint_every"):
        if getattr(options, name) is not None:
            values[name] = getattr(options, name)
    if options.no_plot:
        values["plot"] = False
    try:
        run = Run.of(values, chosen)
    except (ValueError, TypeError) as error:
        if options.config is None:
            raise
        raise type(error)(f"{options.config}: {error}") from error
    # a batch size that was given is that of these processes, not of those of the file
    if "batch_size" in chosen:
        run = replace(run, processes=peers.size)
    return run


def _run(trainer: Trainer, run: Run, folder: Path, say: Say) -> None:
    # on all processes, which a sampler on parts of a graph exchanges with
    for line in _header(trainer, run, folder):
        say(line)
    with _stop_on_term(trainer):
        if not trainer.peers.is_first:
            trainer.run()
            return
        _run_first(trainer, run, folder, say)


def _run_first(trainer: Trainer, run: Run, folder: Path, say: Say) -> None:
    """Run a trainer in the process that prints and writes."""
    metric = trainer.task.metric.name
    has_picture = run.plot and find_spec("matplotlib") is not None
    if run.plot and not has_picture:
        say(
            "no picture of the curves: it needs matplotlib (pip install matplotlib; --no-plot "
            "hides this line)"
        )
    age = ""
    if trainer.task.method.traits.has_history:
        age = f" {'age':>7}"
    say(
        f"\n{'epoch':>5} {'loss':>8} {'val ' + metric:>{_width(metric)}} {'seconds':>8} "
        f"{'seeds/s':>9} {'edges/s':>10}{age}  {'run':{len(folder.name)}}"
    )
    start = time.perf_counter()
    with _event_writer(folder, trainer.epoch + 1) as write_event:

        def report(record: EpochRecord) -> None:
            # rows of several runs may come into one log
            say(f"{_row(record, metric)}  {folder.name}")
            write_event(record)
            # after every epoch, so that the log of a run that is killed is complete up to there
            write_log(folder / LOG, trainer.records)

        try:
            result = trainer.run(report)
        except Stopped as stopped:
            raise Stopped(
                f"{stopped}; its state is saved: nodeflow train --resume {folder}"
            ) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"goes on from its last checkpoint: nodeflow train --resume {folder}"
            ) from None
    tested = "no test nodes"
    if not math.isnan(result.test_score):
        tested = f"test {metric} {result.test_score:.4f}"
    say("")
    for part, scores in result.scores.items():
        say(scores_line(part, scores))
    title = f"{trainer.task.dataset.name}, {run.settings.model.name}: {tested}"
    # the picture needs a package that the results do not
    written = save(result, folder, curves=title if has_picture else None)
    seconds = time.perf_counter() - start
    say(
        f"best epoch {result.best_epoch}, {tested}; {seconds:.1f} s; wrote "
        f"{', '.join(map(str, written))}"
    )


def _header(trainer: Trainer, run: Run, folder: Path) -> Iterator[str]:
    settings = run.settings
    sampler = settings.sampler
    task = trainer.task
    words = [f"run {folder}: {settings.model.name}"]
    if settings.model.name != "none":
        words.append(f"sampler {sampler.name}, fanouts {list(sampler.fanouts)}")
    words.append(f"seed {settings.run.seed}")
    if task.weighted and task.method.model.weighted:
        words.append("sums with estimator weights")
    # the time tells this run from others in the same log
    yield ", ".join([*words, f"begun {time.strftime('%Y-%m-%d %H:%M:%S')}"])
    if trainer.recipe:
        yield f"settings that were left open: {trainer.recipe}"
    yield from task.description()
    if settings.compute.precision != "float32":
        yield f"precision {settings.compute.precision}: {task.precision}"
    if run.processes > 1:
        total = run.processes * sampler.batch_size
        yield (
            f"{run.processes} processes share every step: {sampler.batch_size} seeds each, "
            f"{total:,} in all"
        )
    if isinstance(trainer.batches, PartBatches):
        yield repr(trainer.batches.buffer)


def _width(metric: str) -> int:
    return max(len(metric) + 4, 8)


def _row(record: EpochRecord, metric: str) -> str:
    # epochs that were not validated have none
    score = "-" if math.isnan(record.score) else f"{record.score:.4f}"
    age = ""
    if record.age is not None:
        age = f" {record.age:>7.1f}"
    return (
        f"{record.epoch:>5} {record.loss:>8.4f} {score:>{_width(metric)}} {record.seconds:>8.2f} "
        f"{record.seeds_per_second:>9,.0f} {record.edges_per_second:>10,.0f}{age}"
    )


def scores_line(part: str, scores: Mapping[str, float]) -> str:
    """Return the line of the metrics of a part of the split."""
    return f"{part:>5}  " + (
        "  ".join(f"{name} {value:.4f}" for name, value in scores.items()) or "no nodes"
    )


@contextmanager
def _stop_on_term(trainer: Trainer) -> Iterator[None]:
    """Within the block, SIGTERM lets the run save its state and stop."""
    # only the main thread may set handlers
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # the run saves its state between two steps, which a handler could not
    before = signal.signal(signal.SIGTERM, lambda *_: trainer.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _event_writer(folder: Path, first: int) -> Iterator[Callable[[EpochRecord], None]]:
    """Yield a function that writes the record of an epoch; earlier events of epochs from ``first``
    on are hidden.
    """
    if find_spec("tensorboard") is None:
        yield lambda _: None
        return
    from torch.utils.tensorboard import SummaryWriter

    # a run that goes on from a state writes its later epochs again: the earlier events are hidden
    with SummaryWriter(str(folder), purge_step=first) as writer:

        def write(record: EpochRecord) -> None:
            writer.add_scalar("train/loss", record.loss, record.epoch)
            writer.add_scalar("train/seeds per second", record.seeds_per_second, record.epoch)
            for name, value in record.scores.items():
                writer.add_scalar(f"val/{name}", value, record.epoch)
            writer.flush()

        yield write


def train_seeds(options: argparse.Namespace, say: Say) -> None:
    """Train ``options.seeds`` runs with the seeds ``seed``, ``seed + 1``, ..., each in a folder of
    its own.

    Prints, and writes into ``seeds.json``, the mean, deviation and number of the test scores, with
    the row of a table in Markdown. A run that is there already, and finished, is not
    trained again.
    """
    count = as_count(options.seeds, "seeds", 2)
    if options.resume is not None:
        raise ValueError(
            "--seeds starts runs, and --resume goes on with one; to go on with them, give --seeds "
            "again"
        )
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise ValueError("--seeds is for one process; under torchrun start a run for every --seed")
    in_file = settings_in(_in_file(options))
    first = getattr(options, "seed", in_file.get("seed", 0))
    seeds = range(first, first + count)
    folder = options.output or Path("runs/latest")
    places = [folder / f"seed-{seed}" for seed in seeds]
    # a folder per seed, so that after an interruption only the runs that are missing are trained
    for number, (seed, place) in enumerate(zip(seeds, places, strict=True), 1):
        say(f"seed {seed}, run {number} of {count}")
        if is_file(place / RESULT):
            say(f"{place} is finished")
            continue
        of_run = copy.copy(options)
        of_run.seed = seed
        of_run.output = place
        of_run.seeds = None
        train(of_run, say)
    title, scores = _scores(places)
    lines = [*table(title, scores, count)]
    say("\n".join(["", *lines]))
    with output_folder(folder):
        facts = {
            "seeds": [*seeds],
            "test": scores,
            "table": lines,
        }
        text = json.dumps(facts, indent=2, ensure_ascii=False)
        replace_file(folder / "seeds.json", f"{text}\n".encode())


def _scores(places: list[Path]) -> tuple[str, dict[str, dict[str, float]]]:
    """Return the title of runs, and their test scores; ValueError for runs with other settings."""
    results = [*map(read_result, places)]
    first = {**results[0]["settings"], "seed": None}
    for place, result in zip(places, results, strict=True):
        settings = {**result["settings"], "seed": None}
        for name in {**settings, **first}:
            if settings.get(name) != first.get(name):
                raise ValueError(
                    f"{place} is a run with another {name} than {places[0]}; remove it, or give "
                    "another --output"
                )
    scores = {}
    for name in results[0]["scores"].get("test", {}):
        values = [result["scores"]["test"][name] for result in results]
        if None not in values:
            scores[name] = {
                "mean": statistics.fmean(values),
                "deviation": statistics.stdev(values),  # of a sample, divided by n - 1
                "n": len(values),
            }
    return f"{results[0]['dataset']}, {first.get('model', 'none')}", scores


def table(title: str, scores: Mapping[str, Mapping[str, float]], runs: int) -> Iterator[str]:
    """Yield the titles and the row of a table in Markdown."""
    titles = ["run", *(f"test {name}" for name in scores), "n"]
    yield f"| {' | '.join(titles)} |"
    yield f"{'|---' * len(titles)}|"
    cells = [title]
    for score in scores.values():
        cells.append(f"{score['mean']:.4f} ± {score['deviation']:.4f}")
    cells.append(str(runs))
    yield f"| {' | '.join(cells)} |"
