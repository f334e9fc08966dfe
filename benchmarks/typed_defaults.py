"""Compare the defaults of models of several node types with the best of a random search; a table of
accuracies.

python benchmarks/typed_defaults.py FOLDER [--graphs dblp freebase authors papers] [--models typed
    hgt rgcn] [--tries 20] [--seeds 3] [--keep FILE]

FOLDER has the folders "dblp_typed" and "freebase_typed", those of ``typed_tasks.py``. "dblp" and
"freebase" are their graphs, where no type of freebase has features; "authors" is dblp with features
of the authors only, whose class is asked for; "papers" is dblp without conferences and with
features of papers only, whose class is the area of their conference. All have 60 training labels a
class.

A try takes one value of every line of ``SPACE``, the same tries for all models and graphs, and
trains once with seed 0. The try with the best validation score, and the defaults, are then trained
with other seeds. ``--keep`` names a file for the scores of tries, which are not computed again if
it has them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from typed_tasks import features, names_of

from nodeflow import Graph
from nodeflow.datasets import Dataset
from nodeflow.training import Settings, Trainer

SPACE: dict[str, tuple[object, ...]] = {
    "hidden": (32, 64, 128),
    "dropout": (0.0, 0.3, 0.5, 0.6, 0.8),
    "norm": ("none", "batch", "layer"),
    "lr": (0.001, 0.003, 0.01),
    "weight_decay": (0.0, 5e-5, 5e-4),
    "fanouts": ((5, 5), (10, 10), (10, 10, 10)),
    "batch_size": (64, 128, 256),
}
"""Values of settings that are searched."""
LABELS = 60
"""Training labels of a class."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", nargs="+", default=[*GRAPHS], choices=[*GRAPHS])
    parser.add_argument(
        "--models", nargs="+", default=["typed", "hgt", "rgcn"], help="of several node types"
    )
    parser.add_argument(
        "--tries", type=int, default=20, help="settings that are searched; 0: only the defaults"
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs of the best and of the defaults: seeds 1, 2, ..."
    )
    parser.add_argument("--keep", type=Path, help="a file of the scores of tries")
    options = parser.parse_args()
    torch.set_num_threads(1)
    draw = random.Random(0)
    tries = [
        {name: draw.choice(values) for name, values in SPACE.items()} for _ in range(options.tries)
    ]
    print(
        f"one thread, {options.tries} tries, {options.seeds} seeds; {platform.machine()}, "
        f"{os.cpu_count()} cores\n"
    )
    print(
        "| graph | model | defaults: train | validation | test | seconds | best of the search: "
        "validation | test |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for graph in options.graphs:
        dataset = GRAPHS[graph](options.folder)
        for model in options.models:
            ours = Runs(dataset, {"model": model}, options.seeds)
            row = (
                f"| {graph} | `{model}` | {ours.mean('train')} | {ours.mean('val')} | "
                f"{ours.mean('test')} |"
            )
            row += f" {statistics.mean(ours.seconds):.0f} |"
            if tries:
                longest = {"model": model, "epochs": 60, "patience": 18, "validate_every": 3}
                scores = [score(dataset, {**longest, **each}, options.keep) for each in tries]
                best = tries[scores.index(max(scores))]
                theirs = Runs(dataset, {**longest, **best}, options.seeds)
                row += f" {theirs.mean('val')} | {theirs.mean('test')} | {best}"
            print(row, flush=True)


class Runs:
    """Runs with seeds 1, 2, ...: accuracies in percent by part of the split, and seconds."""

    def __init__(self, dataset: Dataset, values: Mapping[str, object], seeds: int) -> None:
        self.seconds = list[float]()
        self.scores = list[Mapping[str, Any]]()
        for seed in range(1, seeds + 1):
            begun = time.perf_counter()
            self.scores.append(Trainer(dataset, Settings(values, seed=seed)).run().scores)
            self.seconds.append(time.perf_counter() - begun)

    def mean(self, part: str) -> str:
        return f"{100 * statistics.mean(each[part]['accuracy'] for each in self.scores):.1f}"


def score(dataset: Dataset, values: dict[str, object], keep: Path | None) -> float:
    """Return the validation score of a run with seed 0, from a file where that has it."""
    key = json.dumps([dataset.name, values])
    lines = keep.read_text().splitlines() if keep is not None and keep.exists() else []
    known = dict(line.split("\t") for line in lines)
    if key not in known:
        known[key] = str(Trainer(dataset, Settings(values, seed=0)).run().best_val_score)
        if keep is not None:
            with keep.open("a") as file:
                file.write(f"{key}\t{known[key]}\n")
    return float(known[key])


def as_stored(folder: Path, name: str) -> tuple[Graph, str, dict[str, Any]]:
    """Return the graph of a file, its target type, and the target's columns: labels, and masks of
    the split.
    """
    stored = np.load(folder / f"{name}_typed" / "typed.npz")
    nodes = {kind: features(stored, kind) for kind in names_of(stored, "num/")}
    edges = {
        tuple(kind.split("/")): tuple(stored[f"edge/{kind}"]) for kind in names_of(stored, "edge/")
    }
    (target,) = names_of(stored, "y/")
    labels = stored[f"y/{target}"].astype(np.int64)
    split = {part: stored[f"split{LABELS}/{part}"] for part in ("train", "val", "test")}
    return Graph.typed(nodes, edges), target, {"y": labels, **masks(len(labels), split)}


def masks(count: int, split: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mask for each part of a split."""
    return {part: np.isin(np.arange(count), ids) for part, ids in split.items()}


def labelled(name: str, graph: Graph, target: str, columns: Mapping[str, Any]) -> Dataset:
    """Return a data set of a graph with further columns of the nodes of a type."""
    for column, values in columns.items():
        graph.nodes[target].data[column] = torch.from_numpy(values)
    return Dataset(name, graph)


def plain(name: str, folder: Path) -> Dataset:
    """Return a graph with all its features."""
    graph, target, columns = as_stored(folder, name)
    return labelled(name, graph, target, columns)


def authors(folder: Path) -> Dataset:
    """Return dblp without features of papers and terms."""
    graph, target, columns = as_stored(folder, "dblp")
    for name, nodes in graph.nodes.items():
        if name != target and "x" in nodes.data:
            del nodes.data["x"]
    return labelled("authors", graph, target, columns)


def papers(folder: Path) -> Dataset:
    """Return papers, authors and terms of dblp; a paper has the area to which most authors of its
    conference belong.
    """
    whole, _, columns = as_stored(folder, "dblp")
    stored = np.load(folder / "dblp_typed" / "typed.npz")
    edges = {tuple(kind.split("/")): stored[f"edge/{kind}"] for kind in names_of(stored, "edge/")}
    # relations lead from papers to the others
    ends = {other: pair for (_, _, other), pair in edges.items()}
    count = len(whole.nodes["paper"])
    conference = np.full(count, -1)
    conference[ends["conference"][0]] = ends["conference"][1]
    votes = np.zeros((len(whole.nodes["conference"]), 4))
    paper, author = ends["author"]
    np.add.at(votes, (conference[paper], columns["y"][author]), 1)
    label = votes.argmax(1)[conference]
    order = np.random.default_rng(0).permutation(count)
    train = np.concatenate([order[label[order] == kind][:LABELS] for kind in range(4)])
    others = order[~np.isin(order, train)]
    split = {"train": train, "val": others[:1000], "test": others[1000:3000]}
    sizes = {name: len(whole.nodes[name]) for name in ("author", "term")}
    nodes = {"paper": {"x": whole.nodes["paper"].data["x"]}, **sizes}
    kept = {kind: tuple(pair) for kind, pair in edges.items() if kind[2] != "conference"}
    return labelled(
        "papers", Graph.typed(nodes, kept), "paper", {"y": label, **masks(count, split)}
    )


GRAPHS = {
    "dblp": lambda folder: plain("dblp", folder),
    "freebase": lambda folder: plain("freebase", folder),
    "authors": authors,
    "papers": papers,
}


if __name__ == "__main__":
    main()
