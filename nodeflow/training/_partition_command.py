"""The subcommand ``nodeflow partition``: a graph as partitions for a buffer, or as parts for processes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from nodeflow import distributed
from nodeflow._base.checks import as_count
from nodeflow._disk.manifest import MANIFEST
from nodeflow._rows.rows import take_rows
from nodeflow.datasets import Dataset
from nodeflow.distributed._masters import METHODS
from nodeflow.graph import Graph
from nodeflow.storage import write_partitions
from nodeflow.storage._cuts import METHODS as BUFFER_METHODS
from nodeflow.training._entering import directed
from nodeflow.training._folder import read_dataset

ALL_METHODS = tuple(dict.fromkeys((*BUFFER_METHODS, *METHODS)))


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
    graph = directed(dataset.graph, options.direction, options.edge_type)
    ndata = graph.ndata
    sparse = {name: _dense_rows(x) for name, x in ndata.items() if isinstance(x, torch.Tensor) and x.is_sparse_csr}
    common: dict[str, Any] = {
        "columns": sparse, "ndata": [name for name in ndata if name not in sparse], "seed": options.seed,
        "overwrite": options.overwrite, "progress": sys.stderr.isatty(),
    }  # fmt: skip
    write = _for_processes if options.purpose == "processes" else _for_buffer
    for line in write(options, graph, parts, dataset, common):
        say(line)
    say(f"{time.perf_counter() - start:.1f} s; wrote {options.output}")


def _check_options(options: argparse.Namespace) -> None:
    """Raise ValueError for options of the other purpose."""
    if options.purpose == "buffer":
        given = {"--edges": options.edges is not None, "--balance": options.balance, "--renumber": options.renumber}
        for name in (name for name, there in given.items() if there):
            raise ValueError(f"{name} is for parts of processes; give --for processes, or leave it out")
    methods = METHODS if options.purpose == "processes" else BUFFER_METHODS
    if options.method is not None and options.method not in methods:
        raise ValueError(
            f"--method must be one of {', '.join(methods)} with --for {options.purpose}, got {options.method}"
        )


def _for_buffer(
    options: argparse.Namespace, graph: Graph, parts: int, dataset: Dataset, common: dict[str, Any]
) -> list[str]:
    written = write_partitions(
        graph, options.output, parts, method=options.method or "random",
        train=dataset.train if len(dataset.train) else None, **common,
    )  # fmt: skip
    return [repr(written)]


def _for_processes(
    options: argparse.Namespace, graph: Graph, parts: int, dataset: Dataset, common: dict[str, Any]
) -> list[str]:
    split: dict[str, Any] = {name: nodes for name, nodes in dataset.splits.items() if len(nodes)}
    written = distributed.partition_graph(
        graph, options.output, parts, method=options.method or "metis", edges=options.edges or "in",
        balance=options.balance, renumber=options.renumber, **split, **common,
    )  # fmt: skip
    return [repr(written), str(written.report())]


def _dense_rows(x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that gives rows of a sparse column as dense ones."""
    return lambda ids: take_rows(x, ids).to_dense()
