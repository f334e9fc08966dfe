"""The subcommands of data: info, build and partition."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from nodeflow import distributed
from nodeflow._base.checks import as_count
from nodeflow._disk.manifest import MANIFEST
from nodeflow.building import build_graph
from nodeflow.partitions import write_partitions
from nodeflow.training._data import read_dataset, split_edges
from nodeflow.training._folder import SETTINGS
from nodeflow.training._graph import directed
from nodeflow.training._train_command import Say


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
    _check_free(options)
    edges: list[Path] = options.edges
    if len(edges) == 1 and (str(edges[0]) == "debian" or edges[0].is_dir()):
        if ndata or edata or split or options.named or options.columns or options.num_nodes is not None:
            raise ValueError(f"{edges[0]} is a data set, which is written as it is; options are for files of edges")
        read_dataset(str(edges[0])).save(options.output, overwrite=options.overwrite)
    else:
        names = ("num_nodes", "named", "columns", "header", "delimiter", "memory", "overwrite")
        further: dict[str, Any] = {name: getattr(options, name) for name in names}
        progress = sys.stderr.isatty()
        build_graph(edges, options.output, ndata=ndata, edata=edata, split=split, progress=progress, **further)
    say(repr(read_dataset(str(options.output))))
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")


def _check_free(options: argparse.Namespace) -> None:
    if not options.overwrite and (options.output / MANIFEST).exists():
        raise FileExistsError(f"{options.output} exists; give --overwrite to replace it, or choose another folder")


def _column_files(pairs: list[str], kind: str) -> dict[str, Path]:
    columns = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise ValueError(f"--{kind}-column must be NAME=FILE, got {pair!r}")
        columns[name] = Path(file)
    return columns


def partition(options: argparse.Namespace, say: Say) -> None:
    """Cut the graph of messages into partitions, and write them with features, labels and training nodes."""
    _check_options(options)
    parts = as_count(options.parts, "parts", 1)
    dataset, start = read_dataset(options.data), time.perf_counter()
    if parts > dataset.graph.num_nodes and options.purpose == "buffer":
        raise ValueError(f"parts must be at most the number of nodes, {dataset.graph.num_nodes:,}, got {parts:,}")
    if options.method == "train-first" and not len(dataset.train):
        raise ValueError(f"method 'train-first' needs training nodes, and data set {dataset.name!r} has none")
    if options.balance and not len(dataset.train):
        raise ValueError(f"--balance balances training nodes, and data set {dataset.name!r} has none")
    _check_free(options)
    links = split_edges(dataset, options.edge_type) if options.links else None
    graph = directed(dataset.graph if links is None else links.graph, options.direction, options.edge_type)
    common: dict[str, Any] = {"seed": options.seed, "overwrite": options.overwrite, "progress": sys.stderr.isatty()}
    if options.purpose == "buffer":
        common |= {"method": options.method or "random", "train": dataset.train if len(dataset.train) else None}
        say(repr(write_partitions(graph, options.output, parts, **common)))
    else:
        common |= {name: nodes for name, nodes in dataset.splits.items() if len(nodes)}
        common |= {"method": options.method or "metis", "edges": options.edges or "in"}
        common |= {"balance": options.balance, "renumber": options.renumber}
        written = distributed.partition_graph(graph, options.output, parts, **common)
        if links is not None:
            links.write(options.output)
        say(f"{written!r}\n{written.report()}")
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")


def _check_options(options: argparse.Namespace) -> None:
    """Raise ValueError for options that this kind of partition does not have, or that exclude each other."""
    for name in ("edges", "balance", "renumber", "links"):
        if options.purpose == "buffer" and getattr(options, name):
            raise ValueError(f"--{name} is for parts of processes; give --for processes, or leave it out")
    if options.links and options.renumber:
        raise ValueError("--links keeps the ids of the data set, so it does not go with --renumber")
