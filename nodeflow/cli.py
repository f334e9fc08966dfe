"""The command ``nodeflow``: train a model, describe a data set."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.draw import draw_curves, require_matplotlib
from nodeflow.training import MODELS, EpochRecord, Settings, check_dataset, prepare_output, save, train

DEFAULT = Settings()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (the process's own by default); returns the exit status.

    0 is success, 2 a mistake in what was asked for, said in one line on standard error.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (ValueError, TypeError, IndexError, KeyError, OSError, ImportError) as error:
        if options.traceback:
            raise
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"nodeflow {options.command}: {text}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nodeflow", description="Sampled graph neural networks on NodeFlows.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    job = commands.add_parser(
        "train",
        help="train a model on sampled NodeFlows",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Train a model on sampled NodeFlows, then measure it on full neighbourhoods.",
    )
    _data_option(job)
    job.add_argument("--model", choices=list(MODELS), default=DEFAULT.model, help="kind of convolution")
    fanouts = list(DEFAULT.fanouts)
    job.add_argument(
        "--fanouts", type=int, nargs="+", default=fanouts, metavar="K",
        help="neighbours drawn per node, one number per layer in flow order: the last belongs to the seeds; -1 = all",
    )  # fmt: skip
    job.add_argument("--batch-size", type=int, default=DEFAULT.batch_size, metavar="N", help="seeds per batch")
    job.add_argument("--hidden", type=int, default=DEFAULT.hidden, metavar="N", help="width of hidden layers")
    job.add_argument("--dropout", type=float, default=DEFAULT.dropout, metavar="P", help="dropout probability")
    job.add_argument("--lr", type=float, default=DEFAULT.learning_rate, metavar="X", help="learning rate of Adam")
    job.add_argument("--epochs", type=int, default=DEFAULT.epochs, metavar="N", help="passes over the training nodes")
    job.add_argument("--seed", type=int, default=DEFAULT.seed, help="the same seed gives the same result")
    job.add_argument("--workers", type=int, default=DEFAULT.workers, metavar="N", help="threads that sample ahead")
    job.add_argument(
        "--direction", choices=["in", "out", "both"], default=DEFAULT.direction,
        help="along which edges neighbours are found; both adds the reverse of every edge",
    )  # fmt: skip
    job.add_argument("--output", type=Path, default=Path("runs/latest"), metavar="FOLDER", help="where results go")
    job.add_argument("--no-plot", action="store_true", help="make no picture (then matplotlib is not needed)")
    job.set_defaults(run=_train)
    info = commands.add_parser("info", help="describe a data set", description="Describe a data set.")
    _data_option(info)
    info.set_defaults(run=_info)
    for command in (job, info):
        command.add_argument("--traceback", action="store_true", help="show where an error comes from")
    return parser


def _data_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="?", default="debian", metavar="DATA",
        help="the bundled data set 'debian', or a folder with adjacency.npz, features.npz, labels.npy",
    )  # fmt: skip


def _dataset(name: str, *, labels: bool = True) -> Dataset:
    return debian() if name == "debian" else read_folder(name, labels=labels)


def _info(options: argparse.Namespace) -> int:
    print(_dataset(options.data, labels=False).info())
    return 0


def _train(options: argparse.Namespace) -> int:
    settings = Settings(
        options.model, tuple(options.fanouts), options.batch_size, options.hidden, options.dropout, options.lr,
        options.epochs, options.seed, options.workers, options.direction,
    )  # fmt: skip
    if not options.no_plot:
        require_matplotlib()
    dataset = _dataset(options.data)
    check_dataset(dataset)
    prepare_output(options.output)
    print(f"{dataset!r}")
    print(f"{options.model}, fanouts {options.fanouts}, hidden {options.hidden}, seed {options.seed}\n")
    print(f"{'epoch':>5} {'loss':>8} {'val acc':>8} {'seconds':>8} {'seeds/s':>9} {'edges/s':>10}", flush=True)
    start = time.perf_counter()
    result = train(dataset, settings, _print_epoch)
    print(f"\nbest epoch {result.best_epoch}, test accuracy {100 * result.test_accuracy:.2f} % (full neighbourhoods)")
    written = save(result, options.output)
    if not options.no_plot:
        written.append(options.output / "curves.png")
        title = f"{dataset.name}, {options.model}: test accuracy {100 * result.test_accuracy:.2f} %"
        draw_curves(result.records, written[-1], title=title)
    print(f"{time.perf_counter() - start:.1f} s; wrote {', '.join(map(str, written))}")
    return 0


def _print_epoch(record: EpochRecord) -> None:
    print(
        f"{record.epoch:>5} {record.loss:>8.4f} {100 * record.val_accuracy:>7.2f}% {record.seconds:>8.2f} "
        f"{record.seeds_per_second:>9,.0f} {record.edges_per_second:>10,.0f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
