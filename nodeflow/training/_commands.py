"""The subcommands of finished runs, evaluate, predict and compare, and of data, info, build and
partition.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from nodeflow import distributed
from nodeflow._core.base.checks import as_count, as_ids
from nodeflow._core.base.files import is_file
from nodeflow._files.disk.manifest import MANIFEST
from nodeflow._files.text.words import is_integer
from nodeflow.datasets import (
    Dataset,
    build_graph,
    columns_of_features,
    has_label,
    ids_of_integers,
    load_array,
    stored_as,
)
from nodeflow.distributed import write_partitions
from nodeflow.plot import plot_curves
from nodeflow.training._data import (
    PARTS,
    described,
    no_labels,
    read_dataset,
    split_edges,
    write_names,
)
from nodeflow.training._finished import finished
from nodeflow.training._folder import LOG, RESULT, SETTINGS, Run, read_log, read_result
from nodeflow.training._graph import directed, with_columns
from nodeflow.training._links import LinkTask
from nodeflow.training._names import Names
from nodeflow.training._nodes import NodeTask
from nodeflow.training._predictions import check_predictions, write_predictions, write_top_links
from nodeflow.training._samplers import METHODS
from nodeflow.training._train_command import Say, scores_line
from nodeflow.training._trainer import Trainer

SIDES = {"dst": "destination", "src": "source"}
"""The ends of a link that ``predict`` asks for, by the name of the option."""


def evaluate(options: argparse.Namespace, say: Say) -> None:
    """Measure the model of a finished run."""
    trainer, dataset = _best(options)
    of_nodes = isinstance(trainer.task, NodeTask)
    if of_nodes and "label" not in dataset.graph.ndata:
        raise ValueError(no_labels(dataset, dataset.target, "measured"))
    say(repr(dataset))
    for part, scores in trainer.scores().items():
        made_up = of_nodes and not len(dataset.splits[part])
        say(scores_line(part, {} if made_up else scores))


def predict(options: argparse.Namespace, say: Say) -> None:
    """Write the predictions of a finished run.

    A table has the node, the predicted class or number, and for classes its probability; .npy has
    all outputs, [nodes, width]. Of a run that learned links, a table has the best answers for the
    other end of every node's links, and their scores; .npy has the ids of the answers, [nodes,
    top], or with relations [nodes, relations, top]; -1 where there are fewer.
    """
    check_predictions(options.output)
    of_links = Run.read(options.folder, options.model).settings.run.task == "link"
    query = _query(options, of_links)
    trainer, dataset = _best(options)
    nodes = _nodes(options.nodes, dataset)
    if isinstance(trainer.task, LinkTask):
        if options.nodes == "all":
            nodes = torch.tensor(trainer.task.query_nodes(query.get("side", "destination")))
        write_top_links(options.output, trainer, nodes, **query)
    else:
        write_predictions(options.output, trainer, nodes)
    say(f"wrote {options.output}: {len(nodes):,} nodes")


def _query(options: argparse.Namespace, of_links: bool) -> dict[str, Any]:
    """Return the arguments of ``top_links``; raises ValueError for options that do not fit the
    run.
    """
    chosen = {name: getattr(options, name) for name in ("top", "side", "relation", "with_known")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if chosen and not of_links:
        option = next(iter(chosen)).replace("_", "-")
        raise ValueError(
            f"--{option} is for runs that learned links, but the run in {options.folder} learned "
            "labels of nodes; leave it out"
        )
    if of_links and options.nodes in (*PARTS, "unlabelled"):
        raise ValueError(
            f"--nodes must be all or a file .npy of ids, because the run in {options.folder} "
            f"learned links, not labels of nodes; got {options.nodes!r}"
        )
    if "top" in chosen:
        chosen["k"] = as_count(chosen.pop("top"), "--top", 1)
    if "side" in chosen:
        chosen["side"] = SIDES[chosen["side"]]
    return chosen


def _best(options: argparse.Namespace) -> tuple[Trainer, Dataset]:
    """Return a trainer with the weights of the best epoch of a run, and the data set."""
    given = None if options.data is None else read_dataset(options.data)
    return finished(options.folder, given, options.model, options.device)


def _nodes(which: str, dataset: Dataset) -> torch.Tensor:
    if which == "all":
        return dataset.target_ids
    if which in dataset.splits:
        return dataset.splits[which]
    if which == "unlabelled":
        if "label" not in dataset.graph.ndata:
            return dataset.target_ids
        return dataset.target_ids[~has_label(dataset.graph.ndata["label"][dataset.target_ids])]
    path = Path(which)
    if path.suffix != ".npy":
        raise ValueError(
            f"nodes must be all, train, val, test, unlabelled or a file .npy of ids, got {which!r}"
        )
    nodes = load_array(path)
    names = dataset.node_names
    # integers are names where all nodes have such names, as in the files of a split
    if names is not None and nodes.dtype.kind in "iu" and all(map(is_integer, names)):
        id_of = {int(names[node]): node for node in dataset.target_ids.tolist()}
        nodes = ids_of_integers(nodes, id_of, str(path), f"data set {dataset.name!r}")
    return torch.from_numpy(as_ids(nodes, str(path), dataset.graph.num_nodes))


def compare(options: argparse.Namespace, say: Say) -> None:
    """Print a table of runs, and draw their curves."""
    results = {str(folder): _result(folder) for folder in options.folders}
    metric = _metric_of_all(results)
    logs = {name: read_log(Path(name) / LOG, metric) for name in results}
    for name, one in results.items():
        if len(logs[name]) < one["best_epoch"]:
            raise ValueError(
                f"{Path(name) / LOG} was cut off, or is of another run than {RESULT}: it has "
                f"{len(logs[name])} epochs, but the best one is epoch {one['best_epoch']}"
            )
    settings = {name: one["settings"] for name, one in results.items()}
    names = dict.fromkeys(name for each in settings.values() for name in each)
    differing = [
        name for name in names if len({str(each.get(name, "-")) for each in settings.values()}) > 1
    ]
    facts = [
        name for name in ("dataset", "metric") if len({one[name] for one in results.values()}) > 1
    ]
    header = ["run", *("data" if name == "dataset" else "best by" for name in facts)]
    rows = [
        [*header, f"test {metric}", f"val {metric}", "best epoch", "seconds", "edges", *differing]
    ]
    for name, one in results.items():
        seconds = sum(record.seconds for record in logs[name])
        edges = sum(record.seconds * record.edges_per_second for record in logs[name])
        scores = (one["scores"].get(part, {}).get(metric) for part in ("test", "val"))
        shown = ["-" if score is None else f"{score:.4f}" for score in scores]
        cost = f"{seconds:.1f}", f"{edges / 1e6:.3g}M"
        cells = [name, *(one[which] for which in facts), *shown, str(one["best_epoch"]), *cost]
        rows.append([*cells, *(str(settings[name].get(setting, "-")) for setting in differing)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if "validate" in differing:
        say(
            "validated differently: test and val above are from all neighbours, but best epochs "
            "and curves are of each run's own validation; train all with --validate full to "
            "compare these"
        )
    if options.output is not None:
        if "validate" in differing:
            logs = {
                f"{name} (validation {settings[name]['validate']})": records
                for name, records in logs.items()
            }
        plot_curves(logs, options.output, metric=metric)
        say(f"wrote {options.output}")


def _result(folder: Path) -> dict[str, Any]:
    """Return the result of a finished run, with how it validated."""
    result = read_result(folder)
    settings = result["settings"]
    further = {"validate": _validation(settings), "processes": result.get("processes", 1)}
    return {**result, "settings": {**settings, **further}}


def _metric_of_all(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the metric that chose the best epochs, or else the first of the first run that all
    runs have.
    """
    chosen = list(dict.fromkeys(one["metric"] for one in results.values()))
    if len(chosen) == 1:
        return str(chosen[0])
    measured = [
        list(one["scores"].get("test") or one["scores"].get("val") or {})
        for one in results.values()
    ]
    shared = [name for name in (*chosen, *measured[0]) if all(name in names for names in measured)]
    if not shared:
        raise ValueError(
            f"the runs have different metrics, {', '.join(sorted(chosen))}, and none in common"
        )
    return str(shared[0])


def _validation(settings: Mapping[str, Any]) -> str:
    """Return "full" or "sampled": what a run was validated on, which "auto" leaves to its
    sampler.
    """
    validate = settings.get("validate", "sampled")
    method = METHODS.get(str(settings.get("sampler")))
    if settings.get("task") == "link":
        return "full"  # ranks are always of rows from all neighbours
    if validate != "auto" or method is None:
        return str(validate)
    return "full" if method.traits.validates_fully else "sampled"


# data sets


def info(options: argparse.Namespace, say: Say) -> None:
    """Describe a data set."""
    if is_file(Path(options.data) / SETTINGS):
        raise ValueError(
            f"{options.data} is the folder of a run, not of data: nodeflow evaluate {options.data}"
        )
    say(described(read_dataset(options.data)).info())


def build(options: argparse.Namespace, say: Say) -> None:
    """Build a graph folder, which train and info take as DATA, from files of edges, or of another
    data set as it is.

    Neither the list of edges nor the graph need fit into memory.
    """
    ndata = _column_files(options.node_column, "node")
    edata = _column_files(options.edge_column, "edge")
    ndata |= {
        name: file
        for name, file in (("feat", options.features), ("label", options.labels))
        if file is not None
    }
    split = {
        part: getattr(options, part)
        for part in ("train", "val", "test")
        if getattr(options, part) is not None
    }
    start = time.perf_counter()
    _check_free(options)
    edges: list[Path] = options.edges
    if len(edges) == 1 and (str(edges[0]) == "debian" or edges[0].is_dir()):
        if (
            ndata
            or edata
            or split
            or options.named
            or options.columns
            or options.num_nodes is not None
        ):
            raise ValueError(
                f"{edges[0]} is a data set, which is written as it is; options are for files of "
                "edges"
            )
        dataset = read_dataset(str(edges[0]))
        if options.store is not None:
            dataset = _narrow(dataset, options.store)
        dataset.save(options.output, overwrite=options.overwrite)
    else:
        names = (
            "num_nodes",
            "named",
            "columns",
            "header",
            "delimiter",
            "store",
            "memory",
            "overwrite",
        )
        further: dict[str, Any] = {name: getattr(options, name) for name in names}
        progress = sys.stderr.isatty()
        build_graph(
            edges,
            options.output,
            ndata=ndata,
            edata=edata,
            split=split,
            progress=progress,
            **further,
        )
    say(repr(described(read_dataset(str(options.output)))))
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")


def _narrow(dataset: Dataset, width: str) -> Dataset:
    """Return a data set whose features are stored in another width."""
    graph = with_columns(dataset.graph, {})
    for name, column in columns_of_features(graph).items():
        data = graph.nodes[name].data
        data.update(stored_as({column: data[column]}, width))
    return replace(dataset, graph=graph)


def _check_free(options: argparse.Namespace) -> None:
    if not options.overwrite and (options.output / MANIFEST).exists():
        raise FileExistsError(
            f"{options.output} exists; give --overwrite to replace it, or choose another folder"
        )


def _column_files(pairs: list[str], kind: str) -> dict[str, Path]:
    columns = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise ValueError(f"--{kind}-column must be NAME=FILE, got {pair!r}")
        columns[name] = Path(file)
    return columns


def partition(options: argparse.Namespace, say: Say) -> None:
    """Write the graph of a data set into a folder, cut up, with its features, labels and training
    nodes.

    As partitions, which train --storage partitions and distributed.PartitionBuffer read, or with
    --for processes as parts, of which each process of a run holds one.
    """
    for name in ("edges", "links"):
        if options.purpose == "buffer" and getattr(options, name):
            raise ValueError(
                f"--{name} is for parts of processes; give --for processes, or leave it out"
            )
    parts = as_count(options.parts, "parts", 1)
    dataset = read_dataset(options.data)
    start = time.perf_counter()
    dataset = dataset if options.links else dataset.of_type(options.target)
    if options.target and not options.links and "label" not in dataset.graph.ndata:
        raise ValueError(no_labels(dataset, options.target))
    if parts > dataset.graph.num_nodes and options.purpose == "buffer":
        raise ValueError(
            f"parts must be at most the number of nodes, {dataset.graph.num_nodes:,}, got {parts:,}"
        )
    if options.method == "train-first" and not len(dataset.train):
        raise ValueError(
            f"method 'train-first' needs training nodes, and data set {dataset.name!r} has none"
        )
    _check_free(options)
    links = split_edges(dataset, options.edge_type, options.target) if options.links else None
    whole = dataset.graph if links is None else links.graph
    categories = Names.of(dataset).categories
    graph = directed(whole, options.direction, options.edge_type, categories)
    common: dict[str, Any] = {
        "seed": options.seed,
        "overwrite": options.overwrite,
        "progress": sys.stderr.isatty(),
    }
    if options.purpose == "buffer":
        common |= {
            "method": options.method or "random",
            "train": dataset.train if len(dataset.train) else None,
        }
        say(repr(write_partitions(graph, options.output, parts, **common)))
    else:
        common |= {name: nodes for name, nodes in dataset.splits.items() if len(nodes)}
        common |= {"method": options.method or "metis", "edges": options.edges or "in"}
        written = distributed.partition_graph(graph, options.output, parts, **common)
        if links is not None:
            links.write(options.output)
        say(f"{written!r}\n{written.report()}")
    write_names(options.output, dataset)
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")
