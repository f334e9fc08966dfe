"""The subcommand ``nodeflow partition``: a graph as partitions for a buffer, or as parts for processes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from nodeflow import distributed
from nodeflow._base.checks import as_count
from nodeflow._disk.manifest import MANIFEST
from nodeflow.partitions import write_partitions
from nodeflow.training._data import read_dataset, split_edges
from nodeflow.training._graph import directed


def partition(options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Write the graph along whose edges messages go, cut up, with features, labels and training nodes."""
    _check_options(options)
    parts = as_count(options.parts, "parts", 1)
    dataset, start = read_dataset(options.data), time.perf_counter()
    if parts > dataset.graph.num_nodes and options.purpose == "buffer":
        raise ValueError(f"parts must be at most the number of nodes, {dataset.graph.num_nodes:,}, got {parts:,}")
    if options.method == "train-first" and not len(dataset.train):
        raise ValueError(f"method 'train-first' needs training nodes, and data set {dataset.name!r} has none")
    if options.balance and not len(dataset.train):
        raise ValueError(f"--balance balances training nodes, and data set {dataset.name!r} has none")
    if not options.overwrite and (options.output / MANIFEST).exists():
        raise FileExistsError(f"{options.output} exists; give --overwrite to replace it, or choose another folder")
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
    """Raise ValueError for options of the other purpose, and those that exclude each other."""
    for name in ("edges", "balance", "renumber", "links"):
        if options.purpose == "buffer" and getattr(options, name):
            raise ValueError(f"--{name} is for parts of processes; give --for processes, or leave it out")
    if options.links and options.renumber:
        raise ValueError("--links keeps the ids of the data set, so it does not go with --renumber")
