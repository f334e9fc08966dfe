"""The command ``nodeflow``: train a model, describe a data set."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import torch

from nodeflow._base.version import __version__
from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.plot import require_matplotlib
from nodeflow.training._checkpoint import holds_run, output_folder, save
from nodeflow.training._loop import EpochRecord, check_dataset, train
from nodeflow.training._methods import METHODS
from nodeflow.training._settings import Settings

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

DEFAULT = Settings()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (the process's own by default); returns the exit status.

    The status is 0 for success, 2 for a mistake of the user, with one line on standard error, and 130 for an
    interruption. Options that cannot be parsed end the process with status 2. If standard output is closed
    (``| head -2``), the command goes on to its end without printing.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print(f"nodeflow {options.command}: interrupted", file=sys.stderr)
        return 130
    except (
        ValueError, TypeError, IndexError, KeyError, OSError, ImportError, RuntimeError, MemoryError, FloatingPointError
    ) as error:  # fmt: skip
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        # torch raises RuntimeError when memory is short; other RuntimeErrors are defects of this program
        if options.traceback or (isinstance(error, RuntimeError) and "memory" not in text):
            raise
        # one line: the further lines of torch's messages are its own call stack
        print(f"nodeflow {options.command}: {(text.strip() or type(error).__name__).splitlines()[0]}", file=sys.stderr)
        return 2
    return status


class _Parser(argparse.ArgumentParser):
    """A parser that prints a mistake in one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("argument --fanouts: invalid"):
            message += "; DATA goes before --fanouts"
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        with _reader_may_leave():
            super()._print_message(message, file)
            sys.stdout.flush()


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Help that shows the defaults of options, but not of flags."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.nargs == 0 else super()._get_help_string(action)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="nodeflow", description="Sampled graph neural networks on NodeFlows.")
    parser.add_argument("--version", action="version", version=f"nodeflow {__version__} (torch {torch.__version__})")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    job = commands.add_parser(
        "train",
        help="train a model on sampled NodeFlows",
        formatter_class=_Formatter,
        description="Train a model on sampled NodeFlows, then measure it on full neighbourhoods.",
        epilog="Writes into the output folder: checkpoint.safetensors (weights of the best epoch), log.csv (a row per "
        "epoch), result.json (accuracies, settings, versions) and curves.png (loss and validation accuracy by epoch).",
    )
    _data_option(job)
    models = METHODS[DEFAULT.sampler].models
    job.add_argument("--model", choices=list(models), default=DEFAULT.model, help="kind of convolution")
    job.add_argument(
        "--sampler", choices=list(METHODS), default=DEFAULT.sampler,
        help="neighbor: means over drawn neighbours; cv: control variates, where one or two drawn neighbours are "
        "enough, at the price of a stored row per node and hidden layer",
    )  # fmt: skip
    fanouts = list(DEFAULT.fanouts)
    job.add_argument(
        "--fanouts", type=_numbers, nargs="+", default=_Groups([fanouts]), metavar="K",
        help="neighbours drawn per node, one number per layer in flow order (2 2 or 2,2): the last belongs to the "
        "seeds; -1 = all; cv needs two or more, and computes the first layer from all neighbours, whatever its number "
        "(DATA goes before this option)",
    )  # fmt: skip
    job.add_argument("--batch-size", type=int, default=DEFAULT.batch_size, metavar="N", help="seeds per batch")
    job.add_argument("--hidden", type=int, default=DEFAULT.hidden, metavar="N", help="width of hidden layers")
    job.add_argument("--dropout", type=float, default=DEFAULT.dropout, metavar="P", help="dropout probability")
    job.add_argument(
        "--learning-rate", "--lr", type=float, default=DEFAULT.learning_rate, metavar="X", help="learning rate of Adam"
    )
    job.add_argument("--epochs", type=int, default=DEFAULT.epochs, metavar="N", help="passes over the training nodes")
    job.add_argument("--seed", type=int, default=DEFAULT.seed, help="the same seed gives the same result")
    job.add_argument("--workers", type=int, default=DEFAULT.workers, metavar="N", help="threads that sample ahead")
    job.add_argument(
        "--direction", choices=["in", "out", "both"], default=DEFAULT.direction,
        help="along which edges neighbours are found; both adds the reverse of every edge, unless the graph "
        "is symmetric already",
    )  # fmt: skip
    job.add_argument("--output", type=Path, default=Path("runs/latest"), metavar="FOLDER", help="where results go")
    job.add_argument("--no-plot", action="store_true", help="make no picture of the curves")
    job.set_defaults(run=_train)
    info = commands.add_parser("info", help="describe a data set", description="Describe a data set.")
    _data_option(info)
    info.set_defaults(run=_info)
    for command in (job, info):
        command.add_argument("--traceback", action="store_true", help="show where an error comes from")
    return parser


class _Groups(list[list[int]]):
    """Groups of fanouts, shown as on the command line."""

    def __str__(self) -> str:
        return " ".join(str(number) for group in self for number in group)


def _numbers(text: str) -> list[int]:
    """Return the integers of ``"2"``, ``"2,2"`` or ``"2,"``; raises ArgumentTypeError."""
    try:
        return [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None


def _data_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="?", default="debian", metavar="DATA",
        help="the bundled data set 'debian', or a folder: adjacency.npz or edges.npz; features.npz or features.npy; "
        "labels.npy (or labels.npz, several per node, which train does not take); and, for a split of its own, "
        "train.npy, val.npy, test.npy",
    )  # fmt: skip


def _dataset(name: str) -> Dataset:
    return debian() if name == "debian" else read_folder(name, labels=False)  # check_dataset reports missing labels


def _info(options: argparse.Namespace) -> int:
    _say(_dataset(options.data).info())
    return 0


def _train(options: argparse.Namespace) -> int:
    options.fanouts = [number for group in options.fanouts for number in group]
    settings = Settings(
        options.model, tuple(options.fanouts), options.batch_size, options.hidden, options.dropout,
        options.learning_rate, options.epochs, options.seed, options.workers, options.direction, options.sampler,
    )  # fmt: skip
    dataset = _dataset(options.data)
    check_dataset(dataset)
    with output_folder(options.output):
        return _run(options, settings, dataset)


def _run(options: argparse.Namespace, settings: Settings, dataset: Dataset) -> int:
    picture = not options.no_plot and _can_draw()
    _say(f"{dataset!r}")
    sampler = "" if settings.sampler == DEFAULT.sampler else f" with sampler {settings.sampler}"
    _say(f"{options.model}{sampler}, fanouts {options.fanouts}, hidden {options.hidden}, seed {options.seed}")
    if not picture and not options.no_plot:
        _say("no picture of the curves: it needs matplotlib (pip install matplotlib; --no-plot hides this line)")
    if holds_run(options.output):
        _say(f"replaces the earlier run in {options.output}")
    age = f" {'age':>7}" if METHODS[settings.sampler].has_history else ""
    _say(f"\n{'epoch':>5} {'loss':>8} {'val acc':>8} {'seconds':>8} {'seeds/s':>9} {'edges/s':>10}{age}")
    start = time.perf_counter()
    result = train(dataset, settings, _print_epoch)
    accuracy = result.test_accuracy
    untested = math.isnan(accuracy)
    tested = "no test nodes" if untested else f"test accuracy {100 * accuracy:.2f} %"
    _say(f"\nbest epoch {result.best_epoch}, {tested}{'' if untested else ' (with full neighbourhoods)'}")
    title = f"{dataset.name}, {options.model}: {tested}" if picture else None
    written = save(result, options.output, curves=title)
    _say(f"{time.perf_counter() - start:.1f} s; wrote {', '.join(map(str, written))}")
    return 0


def _print_epoch(record: EpochRecord) -> None:
    accuracy = "none" if math.isnan(record.val_accuracy) else f"{100 * record.val_accuracy:.2f}%"
    age = "" if record.age is None else f" {record.age:>7.1f}"
    _say(
        f"{record.epoch:>5} {record.loss:>8.4f} {accuracy:>8} {record.seconds:>8.2f} "
        f"{record.seeds_per_second:>9,.0f} {record.edges_per_second:>10,.0f}{age}"
    )


def _can_draw() -> bool:
    try:
        require_matplotlib()
    except ImportError:
        return False
    return True


def _say(text: str) -> None:
    with _reader_may_leave():
        print(text, flush=True)


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Discard further output once standard output is closed, so that a long run still ends."""
    try:
        yield
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # also for output flushed when the process ends
        os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
