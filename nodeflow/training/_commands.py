"""The subcommands of finished runs, evaluate, predict and compare, and of data, info, build and
partition.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from nodeflow import distributed
from nodeflow._core.base.checks import as_count, as_ids
from nodeflow._core.base.files import is_file
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
from nodeflow.training._choices import Values
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
from nodeflow.training._result import EpochRecord
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
        # the trainer may have a training node that stands for none
        is_empty = of_nodes and not len(dataset.splits[part])
        say(scores_line(part, {} if is_empty else scores))


def predict(options: argparse.Namespace, say: Say) -> None:
    """Write the predictions of a finished run: outputs of nodes, or answers of learned links."""
    # mistakes in options are told before data and model are read, which may take minutes
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
    """Return arguments of ``top_links``; ValueError for options that do not fit the run."""
    names = ("top", "side", "relation", "with_known")
    query = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if query and not of_links:
        option = next(iter(query)).replace("_", "-")
        raise ValueError(
            f"--{option} is for runs that learned links, but the run in {options.folder} learned "
            "labels of nodes; leave it out"
        )
    if of_links and options.nodes in (*PARTS, "unlabelled"):
        raise ValueError(
            f"--nodes must be all or a file .npy of ids, because the run in {options.folder} "
            f"learned links, not labels of nodes; got {options.nodes!r}"
        )
    if "top" in query:
        query["k"] = as_count(query.pop("top"), "--top", 1)
    if "side" in query:
        query["side"] = SIDES[query["side"]]
    return query


def _best(options: argparse.Namespace) -> tuple[Trainer, Dataset]:
    """Return a trainer with the weights of the best epoch of a run, and the data set."""
    given = None
    if options.data is not None:
        given = read_dataset(options.data)
    return finished(options.folder, given, options.model, options.device)


def _nodes(which: str, dataset: Dataset) -> torch.Tensor:
    if which == "all":
        return dataset.target_ids
    if which in dataset.splits:
        return dataset.splits[which]
    # for regression a missing label is NaN, for classes -1: has_label knows both
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
    results = {str(folder): read_result(folder) for folder in options.folders}
    metrics = sorted({str(result["metric"]) for result in results.values()})
    # test scores are comparable if one metric chose the epochs of all
    if len(metrics) > 1:
        raise ValueError(
            f"the best epochs of these runs were chosen by {' and '.join(metrics)}; compare runs "
            "with the same metric"
        )
    metric = metrics[0]
    logs = {name: read_log(Path(name) / LOG, metric) for name in results}
    rows = [_compared(name, result, metric, logs[name]) for name, result in results.items()]
    for line in _table(rows):
        say(line)
    if options.output is not None:
        plot_curves(logs, options.output, metric=metric)
        say(f"wrote {options.output}")


_ALWAYS = ("run", "test ", "val ", "best epoch", "seconds")
"""The titles of ``compare`` that are there also where runs do not differ begin like this."""


def _table(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the lines of a table of runs, of the titles first."""
    # a column at a time, because its width is that of its longest cell
    lines = [""] * (len(rows) + 1)
    for title in dict.fromkeys(chain(*rows)):
        cells = [row.get(title, "-") for row in rows]
        if title.startswith(_ALWAYS) or len({*cells}) > 1:
            width = max(map(len, [title, *cells]))
            for number, cell in enumerate([title, *cells]):
                lines[number] += f"{cell:{width}}  "
    return [*map(str.rstrip, lines)]


def _compared(
    name: str, result: Values, metric: str, records: Sequence[EpochRecord]
) -> dict[str, str]:
    """Return the row of a run in the table of ``compare``, by title."""
    best_epoch = result["best_epoch"]
    if len(records) < best_epoch:
        raise ValueError(
            f"{Path(name) / LOG} was cut off, or is of another run than {RESULT}: it has "
            f"{len(records)} epochs, but the best one is epoch {best_epoch}"
        )
    row = {"run": name, "data": result["dataset"]}
    for part in ("test", "val"):
        score = result["scores"].get(part, {}).get(metric)
        row[f"{part} {metric}"] = "-" if score is None else f"{score:.4f}"
    row["best epoch"] = str(best_epoch)
    row["seconds"] = f"{sum(record.seconds for record in records):.1f}"
    row |= {setting: str(value) for setting, value in result["settings"].items()}
    row["processes"] = str(result.get("processes", 1))
    return row


# data sets


def info(options: argparse.Namespace, say: Say) -> None:
    """Describe a data set."""
    if is_file(Path(options.data) / SETTINGS):
        raise ValueError(
            f"{options.data} is the folder of a run, not of data: nodeflow evaluate {options.data}"
        )
    dataset = read_dataset(options.data)
    say(described(dataset).info())


def build(options: argparse.Namespace, say: Say) -> None:
    """Build a graph folder, which train and info take as DATA, from files of edges, or of another
    data set as it is.

    Neither the list of edges nor the graph need fit into memory.
    """
    ndata = _column_files(options.node_column, "node")
    edata = _column_files(options.edge_column, "edge")
    for name, file in (("feat", options.features), ("label", options.labels)):
        if file is not None:
            ndata[name] = file
    split = {part: getattr(options, part) for part in PARTS if getattr(options, part) is not None}
    start = time.perf_counter()
    edges: list[Path] = options.edges
    if len(edges) == 1 and (str(edges[0]) == "debian" or edges[0].is_dir()):
        of_files = (ndata, edata, split, options.named, options.columns)
        if any(of_files) or options.num_nodes is not None:
            raise ValueError(
                f"{edges[0]} is a data set, which is written as it is; options are for files of "
                "edges"
            )
        dataset = read_dataset(str(edges[0]))
        if options.store is not None:
            dataset = _narrow(dataset, options.store)
        dataset.save(options.output, overwrite=options.overwrite)
    else:
        build_graph(
            edges,
            options.output,
            num_nodes=options.num_nodes,
            named=options.named,
            columns=options.columns,
            header=options.header,
            delimiter=options.delimiter,
            ndata=ndata,
            edata=edata,
            split=split,
            store=options.store,
            memory=options.memory,
            overwrite=options.overwrite,
            progress=sys.stderr.isatty(),
        )
    written = read_dataset(str(options.output))
    say(repr(described(written)))
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")


def _narrow(dataset: Dataset, width: str) -> Dataset:
    """Return a data set whose features are stored in another width."""
    # a copy with the same columns: the data set that was read keeps its own
    graph = with_columns(dataset.graph, {})
    for name, column in columns_of_features(graph).items():
        data = graph.nodes[name].data
        data.update(stored_as({column: data[column]}, width))
    return replace(dataset, graph=graph)


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
    of_processes = options.purpose == "processes"
    for name in ("edges", "links"):
        if getattr(options, name) and not of_processes:
            raise ValueError(
                f"--{name} is for parts of processes; give --for processes, or leave it out"
            )
    dataset = read_dataset(options.data)
    start = time.perf_counter()
    # triples of links name nodes by the ids of all the data, so no type is taken out of them
    if not options.links:
        dataset = dataset.of_type(options.target)
        if options.target and "label" not in dataset.graph.ndata:
            raise ValueError(no_labels(dataset, options.target))
    graph = dataset.graph
    links = None
    if options.links:
        links = split_edges(dataset, options.edge_type, options.target)
        graph = links.graph
    categories = Names.of(dataset).categories
    graph = directed(graph, options.direction, options.edge_type, categories)
    common: dict[str, Any] = {
        "seed": options.seed,
        "overwrite": options.overwrite,
        "progress": sys.stderr.isatty(),
    }
    split: dict[str, Any] = {part: ids for part, ids in dataset.splits.items() if len(ids)}
    if of_processes:
        written = distributed.partition_graph(
            graph,
            options.output,
            options.parts,
            method=options.method or "metis",
            edges=options.edges or "in",
            **split,
            **common,
        )
        if links is not None:
            links.write(options.output)
        say(f"{written!r}\n{written.report()}")
    else:
        method = options.method or "random"
        train = split.get("train")
        parts = write_partitions(
            graph, options.output, options.parts, method=method, train=train, **common
        )
        say(repr(parts))
    # the folder has numbers alone, and a model that learns from it must be able to find them again
    write_names(options.output, dataset)
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")
