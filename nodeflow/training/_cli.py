"""The command ``nodeflow``: its options and their help, and the start of a subcommand.

Nothing here imports torch, so help and mistakes in options come at once; ``_commands`` does.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nodeflow._core.base.habits import meant
from nodeflow._core.base.version import __version__
from nodeflow.training._fields import add_option, default_of
from nodeflow.training._rules import where_read
from nodeflow.training._settings import FIELDS, FREE, GROUPS
from nodeflow.training._train_options import is_own

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_DATA = (
    "the bundled data set 'debian', or a folder: of tables, edges.csv and nodes.csv; of triples, "
    "train.tsv, valid.tsv and test.tsv; of arrays, adjacency.npz or edges.npz, features.npz or "
    "features.npy, labels.npy (or labels.npz, several per node) and, for a split of its own, "
    "train.npy, val.npy, test.npy; or a graph folder, as nodeflow build and Graph.save write it"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (the process's own by default); returns the exit
    status.

    The status is 0 for success, 2 for a mistake of the user, with one line on standard error, 130
    for an interruption and 143 for a run that SIGTERM stopped. Options that cannot be parsed end
    the process with status 2. If standard output is closed (``| head -2``), the command goes on to
    its end without printing.
    """
    # None where a daemon was started without them
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  as long as the process
    # names that the encoding of the terminal has no letters for
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    parser, commands = _parsers()
    try:
        # unknown options are collected, because _refuse knows what they are called here
        options, unknown = parser.parse_known_args(arguments)
    except OSError as error:  # of standard output, which help goes to
        print(f"nodeflow: {error}", file=sys.stderr)
        return 2
    if unknown:
        _refuse(commands[options.command], unknown[0])
    if is_own(getattr(options, "model", None)) and "" not in sys.path:
        # for a module in the present folder, as with python -m; else none comes from there
        sys.path.insert(0, "")
    from nodeflow.training._running import run  # which imports torch

    return run(options)


def _refuse(parser: _Parser, option: str) -> NoReturn:
    """End with the name that an unknown option has here."""
    if not option.startswith("-"):
        parser.error(f"there is no further argument {option}")
    takes = {action.dest: action.option_strings for action in _actions(parser)}
    name = option.partition("=")[0].strip("-").replace("-", "_")
    word = meant(name, [name for name, options in takes.items() if options])
    hint = ""
    if word:
        hint = f"; it is called {takes[word][0]} here"
    parser.error(f"there is no option {option}{hint}")


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001  argparse has no public name for them


class _Parser(argparse.ArgumentParser):
    """A parser that prints errors in one line, without the usage text; raises OSError where help
    cannot be written.
    """

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if file is sys.stdout:
            say(message.rstrip("\n"))
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _wide(prog: str) -> argparse.HelpFormatter:
    """Return the layout of short pages: an option and its words stand on one line."""
    return argparse.HelpFormatter(prog, max_help_position=22, width=110)


def _parsers() -> tuple[_Parser, dict[str, _Parser]]:
    """Return the parser, and that of each command."""
    parser = _Parser(
        prog="nodeflow",
        description="Sampled graph neural networks on NodeFlows.",
        formatter_class=_wide,
        epilog="nodeflow COMMAND --help shows the options of a command.",
    )
    # the version that is installed, because torch itself would take a second to import
    words = f"nodeflow {__version__} (torch {version('torch')})"
    parser.add_argument(
        "--version", action="version", version=words, help="show the versions, and end"
    )
    added = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser, title="commands"
    )
    for name, (help, add) in _COMMANDS.items():
        command: _Parser = added.add_parser(
            name, help=help, description=add.__doc__, add_help=name != "train"
        )
        _flag(command, "--traceback", "show where an error comes from")
        add(command)
    return parser, added.choices


_FIRST = {
    "the run": {
        "data": "folder of a data set (default: debian, a bundled one)",
        "output": "where results go (default: runs/latest)",
        "overwrite": "replace a finished run there",
        "config": "settings of a file, such as a run.toml",
        "resume": "go on with a run that was cut off",
        "seeds": "train N runs, and print mean and deviation",
    },
    "what is learned": {
        "task": "classification, multilabel, regression or link; auto: by labels",
        "target": "node type, or relation, that is learned, where there are several",
        "direction": "messages go along edges in, out or both ways",
    },
    "model": {
        "model": "sage, gcn, gin, gat, gatv2, rgcn, hgt, typed or none",
        "hidden": "width of hidden layers",
        "dropout": "share of hidden entries that are set to zero",
        "norm": "none, batch or layer",
        "residual": "add the rows of the layer before to those of every layer",
    },
    "sampling": {
        "sampler": "neighbor, labor, ladies, saint, cluster, shadow, cv, ...",
        "fanouts": "neighbours per node and layer, such as 15 10 5",
        "batch_size": "seeds of a step",
        "workers": "threads that sample ahead",
    },
    "optimisation": {
        "lr": "learning rate",
        "weight_decay": "weight decay",
        "epochs": "passes over the training seeds",
        "patience": "epochs without a better score before the end",
        "seed": "the same seed gives the same result",
    },
    "machine": {
        "device": "cpu, cuda, cuda:1 or auto",
        "precision": "float32 or bf16",
        "storage": "where features lie: memory, file, cached, lookahead",
    },
}
"""The options on the page of ``nodeflow train --help``, by topic, in few words."""


class _FirstHelp(argparse.Action):
    """Prints one page with the options of ``train`` that are used most."""

    def __call__(self, parser: Any, *_: Any) -> None:
        page = _Parser(
            prog=parser.prog,
            usage="nodeflow train [DATA] [options]",
            description="Train a model on sampled NodeFlows, then measure it on full "
            "neighbourhoods.",
            epilog="nodeflow train --help-all shows every option, and which choices read it.",
            add_help=False,
            formatter_class=_wide,
        )
        options = {action.dest: action for action in _actions(parser)}
        for topic, briefs in _FIRST.items():
            group = page.add_argument_group(topic)
            for name, brief in briefs.items():
                # a copy, because the page of all options has another help
                shown = copy(options[name])
                shown.help = brief
                if name in FIELDS and shown.nargs != 0:
                    shown.help = f"{brief} (default: {default_of(FIELDS[name][1])})"
                # a list of choices would not fit beside the words
                if shown.choices or name == "model":
                    shown.metavar = "NAME"
                if shown.nargs == "+":
                    shown.nargs = 1
                group._add_action(shown)  # noqa: SLF001  nothing public adds a copy
        page.print_help()
        parser.exit()


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add an option for every setting, in the groups of ``Settings``."""
    groups = {
        name: parser.add_argument_group(f"settings [{name}]", kind.__doc__)
        for name, kind in GROUPS.items()
    }
    for group, field in FIELDS.values():
        add_option(groups[group], field, where_read(field.metadata["read"]))


def _option(
    parser: argparse._ActionsContainer,
    name: str,
    type: type,
    metavar: str,
    help: str,
    **words: Any,
) -> None:
    parser.add_argument(name, type=type, metavar=metavar, help=help, **words)


def _flag(parser: argparse._ActionsContainer, name: str, help: str) -> None:
    parser.add_argument(name, action="store_true", help=help)


def _add_train(parser: _Parser) -> None:
    """Train a model on sampled NodeFlows, then measure it on full neighbourhoods.

    Writes into the output folder: run.toml (all settings), state.safetensors (the last checkpoint
    of the run), checkpoint.safetensors (weights of the best epoch), log.csv (a row per epoch),
    trace.csv (hashes of batches, for nodeflow reproduce), result.json (scores, settings, versions),
    curves.png (loss and validation score by epoch), and TensorBoard events where it is installed.
    """
    parser.add_argument(
        "-h",
        "--help",
        action=_FirstHelp,
        nargs=0,
        help="show the options that are used most, and end",
    )
    parser.add_argument("--help-all", action="help", help="show every option, and end")
    _option(parser, "data", str, "DATA", f"{_DATA} (default: debian)", nargs="?")
    _option(
        parser,
        "--config",
        Path,
        "FILE",
        "settings as TOML, such as a run.toml; options given here win",
    )
    _option(parser, "--output", Path, "FOLDER", "where results go (default: runs/latest)")
    _flag(
        parser,
        "--overwrite",
        "replace the finished run in the folder of --output (that in runs/latest is replaced "
        "without)",
    )
    _option(
        parser,
        "--checkpoint-every",
        str,
        "N",
        "epochs between two checkpoints, or minutes as 10min; 0: none (default: 1)",
    )
    _option(
        parser,
        "--resume",
        Path,
        "FOLDER",
        "go on with the run of a folder that was cut off; of the settings only "
        f"{', '.join(FREE)} may change (epochs with a constant schedule; storage not to or "
        "from partitions, whose folder may have moved)",
    )
    _option(
        parser,
        "--seeds",
        int,
        "N",
        "train N runs with the seeds --seed, --seed + 1, ..., and print mean and deviation of "
        "their scores",
    )
    _flag(parser, "--no-plot", "make no picture of the curves")
    add_settings(parser)


def _add_run(parser: _Parser) -> None:
    """Add the options of commands that read a finished run."""
    _add_folder(parser)
    _option(
        parser,
        "--data",
        str,
        "DATA",
        "another data set than that of the run, with the same features; columns, classes, edge "
        "categories, types, relations and nodes with learned rows are matched by their names",
    )
    _option(parser, "--device", str, "NAME", "where the model computes (default: that of the run)")


def _add_folder(parser: _Parser) -> None:
    """Add the folder of a run."""
    _option(parser, "folder", Path, "FOLDER", "the folder of a run")
    _option(
        parser,
        "--model",
        str,
        "MODULE:FACTORY",
        "for a run with a model of your own, its name again: a file does not choose what is "
        "imported",
    )


def _add_evaluate(parser: _Parser) -> None:
    """Measure the model of a finished run."""
    _add_run(parser)


def _add_reproduce(parser: _Parser) -> None:
    """Run a finished run again from its folder, and say at which step it first differs.

    Compared are the batches (by a hash of every 20th, and of the first of each epoch), the losses
    of these steps, and the scores at the end. Nothing is written. The status is 0 where all are the
    same, to the last bit, else 1. With several processes, as many as the run had, the first one
    compares and prints: the trace is of its batches.
    """
    _add_folder(parser)


def _add_predict(parser: _Parser) -> None:
    """Write the predictions of a finished run.

    A table has the node, the predicted class or number, and for classes its probability; .npy has
    all outputs, [nodes, width]. Of a run that learned links, a table has the best answers for the
    other end of every node's links, and their scores; .npy has the ids of the answers, [nodes,
    top], or with relations [nodes, relations, top]; -1 where there are fewer.
    """
    _add_run(parser)
    _option(parser, "--output", Path, "FILE", "a file .csv, .parquet or .npy", required=True)
    _option(
        parser,
        "--nodes",
        str,
        "WHICH",
        "all, train, val, test, unlabelled, or a file .npy of ids, or of names where all nodes "
        "have integers as names; of a run that learned links all or a file (default: all)",
        default="all",
    )
    links = parser.add_argument_group("of runs that learned links")
    _option(links, "--top", int, "K", "number of answers per node (default: 10)")
    links.add_argument(
        "--side",
        choices=("dst", "src"),
        help="the end that is asked for: dst, whom the nodes point to, or src, who points to them "
        "(default: dst)",
    )
    _option(
        links, "--relation", str, "NAME", "name or number of a relation (default: each in turn)"
    )
    links.add_argument(
        "--with-known",
        action="store_true",
        default=None,
        help="keep the edges of the data set among the answers (default: those of all parts are "
        "left out)",
    )


def _add_compare(parser: _Parser) -> None:
    """Print a table of runs, and draw their curves."""
    _option(parser, "folders", Path, "FOLDER", "folders of finished runs", nargs="+")
    _option(parser, "--output", Path, "FILE", "a picture of all curves, .png, .svg or .pdf")


def _add_info(parser: _Parser) -> None:
    """Describe a data set."""
    _option(parser, "data", str, "DATA", f"{_DATA} (default: debian)", nargs="?", default="debian")


def _add_build(parser: _Parser) -> None:
    """Build a graph folder, which train and info take as DATA, from files of edges, or of another
    data set as it is.

    Neither the list of edges nor the graph need fit into memory.
    """
    _option(
        parser,
        "edges",
        Path,
        "EDGES",
        "files .csv, .tsv, .txt (or packed, .gz), .parquet, or .npy of integers [edges, 2]; "
        "one list, in their order. Or a data set: the bundled 'debian', or its folder",
        nargs="+",
    )
    _option(parser, "--output", Path, "FOLDER", "the graph folder", required=True)
    _flag(parser, "--overwrite", "replace a graph folder that is there")
    _option(
        parser,
        "--num-nodes",
        int,
        "N",
        "number of nodes (default: rows of the files of nodes, else the largest id + 1)",
    )
    _flag(parser, "--named", "nodes have names, which are numbered and kept in the folder")
    _option(
        parser,
        "--columns",
        str,
        "NAME",
        "name of each column of EDGES, src and dst among them, _ to skip one (default: the titles)",
        nargs="+",
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row has titles (default: look)",
    )
    _option(
        parser,
        "--delimiter",
        str,
        "CHARACTER",
        "between two columns (default: comma or white space)",
    )
    _option(parser, "--features", Path, "FILE", "features of the nodes, .npy [nodes, width]")
    _option(parser, "--labels", Path, "FILE", "labels of the nodes, .npy, as in labels.npy of DATA")
    for part in ("train", "val", "test"):
        _option(parser, f"--{part}", Path, "FILE", f"ids of the {part} nodes, .npy")
    for kind in ("node", "edge"):
        _option(
            parser,
            f"--{kind}-column",
            str,
            "NAME=FILE",
            f"a further column, .npy with a row per {kind}; may be given again",
            action="append",
            default=[],
        )
    parser.add_argument(
        "--store",
        choices=("int8", "float16", "bfloat16", "auto"),
        help=(
            "keep features in fewer bytes: int8 with a scale per column, float16, bfloat16, or "
            "auto: int8, and float32 where the error of int8 is too large (default: as they are)"
        ),
    )
    _option(
        parser,
        "--memory",
        str,
        "SIZE",
        "memory for sorting, at least 21 MB + 16 bytes per node + 0.32 bytes per edge "
        "(default: 1 GB)",
        default="1 GB",
    )


def _add_partition(parser: _Parser) -> None:
    """Write the graph of a data set into a folder, cut up, with its features, labels and training
    nodes.

    As partitions, which train --storage partitions and distributed.PartitionBuffer read, or with
    --for processes as parts, of which each process of a run holds one.
    """
    _option(parser, "data", str, "DATA", _DATA)
    _option(parser, "--parts", int, "N", "number of partitions, or of parts", required=True)
    _option(parser, "--output", Path, "FOLDER", "the folder that is written", required=True)
    purposes = ("buffer", "processes")
    parser.add_argument(
        "--for",
        dest="purpose",
        choices=purposes,
        default="buffer",
        help="who reads it: a partition buffer in one process, or many processes with a part each "
        "(default: buffer)",
    )
    parser.add_argument(
        "--method",
        choices=("random", "train-first", "metis", "ranges", "hash"),
        help=(
            "how nodes are cut: random; metis, with few edges between parts (needs pymetis); "
            "train-first, at random with the training nodes in the first parts; ranges of ids, or "
            "a hash of the id (default: random for a buffer, metis for processes)"
        ),
    )
    parser.add_argument(
        "--edges",
        choices=("in", "out"),
        help=(
            "for processes: where an edge lies: with its destination, or with its source "
            "(default: in)"
        ),
    )
    _flag(
        parser,
        "--links",
        "for processes that learn links (train --task link): the training edges are cut, all "
        "edges are listed beside",
    )
    # the option of a setting is absent from the namespace unless it is given; this command has no
    # file of settings, so it takes the defaults at once
    for name in ("direction", "edge_type", "target", "seed"):
        field = FIELDS[name][1]
        add_option(parser, field)
        parser.set_defaults(**{name: field.default})
    _flag(parser, "--overwrite", "replace a folder of partitions that is there")


_COMMANDS: dict[str, tuple[str, Callable[[_Parser], None]]] = {
    "train": ("train a model on sampled NodeFlows", _add_train),
    "evaluate": ("measure the model of a run", _add_evaluate),
    "predict": ("write the outputs of the model of a run", _add_predict),
    "compare": ("compare runs", _add_compare),
    "reproduce": ("run a finished run again, and say whether it is the same", _add_reproduce),
    "info": ("describe a data set", _add_info),
    "build": ("build a graph folder from files of edges", _add_build),
    "partition": (
        "write a graph as partitions for a buffer, or as parts for processes",
        _add_partition,
    ),
}
"""The help of each command, and what adds its options, whose docstring is the description."""


def say(text: str) -> None:
    """Print a line, unless standard output is closed."""
    with _reader_may_leave():
        print(text, flush=True)


_LEFT = {errno.EPIPE}
"""Errors of a pipe whose reader has gone."""
if os.name == "nt":
    _LEFT.add(errno.EINVAL)


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Discard further output once standard output is closed, so that a long run still ends."""
    try:
        yield
    except OSError as error:
        # the descriptor itself is replaced: what is still buffered is written when the process
        # ends, and would raise again, after the last place where the error could be caught
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # also for output flushed when the process ends
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if error.errno not in _LEFT:  # such as a full disk
            raise OSError(error.errno, os.strerror(error.errno or 0), "standard output") from error
