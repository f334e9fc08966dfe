"""Compare the command's recipe for knowledge graphs with a small search, on parts of two graphs; a
table of MRR.

python benchmarks/knowledge_recipe.py FOLDER [--graphs dense weighted random thin relations
hierarchy] [--search]

FOLDER has "fb15k237" and "wn18rr", with columns src, dst, relation and split in ``edges.npz``.
"dense" are the 1,100 entities of most triples, "weighted" 2,500 that are drawn in proportion to
their triples, "random" 3,800 drawn alike, "thin" a third of the triples of "weighted", "relations"
those of 60 relations, "hierarchy" 3,000 entities of wn18rr around one. A twentieth of the triples
are for validation, and as many for test. The search changes the weight of regularisation, the size
of batches, or the number of epochs of the recipe, and validation chooses.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix

from nodeflow import Graph
from nodeflow.datasets import Dataset
from nodeflow.training import Settings, Trainer

GRAPHS = ("dense", "weighted", "random", "thin", "relations", "hierarchy")
SEARCH: dict[str, tuple[float, ...]] = {
    "n3": (0.005, 0.01, 0.02, 0.05, 0.1),
    "batch_size": (128,),
    "epochs": (15, 40),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", nargs="+", default=[*GRAPHS], choices=GRAPHS)
    parser.add_argument("--search", action="store_true", help="also run the settings of the search")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one thread; {platform.machine()}, {os.cpu_count()} cores\n")
    print(
        "| graph | entities | training triples | settings | validation | test | best epoch | "
        "seconds |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.graphs:
        dataset = part_of(options.folder, name)
        changes: list[dict[str, Any]] = [{}]
        if options.search:
            changes += [{setting: value} for setting, values in SEARCH.items() for value in values]
        for change in changes:
            begun = time.perf_counter()
            result = Trainer(dataset, Settings(task="link", **change)).run()
            seconds = time.perf_counter() - begun
            training = int((dataset.graph.edata["split"] == 0).sum())
            words = ", ".join(f"{setting} {value}" for setting, value in change.items()) or "recipe"
            print(
                f"| {name} | {dataset.graph.num_nodes:,} | {training:,} | {words} | "
                f"{result.best_val_score:.4f} | {result.test_score:.4f} | {result.best_epoch} of "
                f"{len(result.records)} | {seconds:.0f} |",
                flush=True,
            )


def part_of(folder: Path, name: str) -> Dataset:
    """Return a part of a graph, with a split of its own."""
    stored = np.load(folder / ("wn18rr" if name == "hierarchy" else "fb15k237") / "edges.npz")
    triples = np.stack([stored["src"], stored["relation"], stored["dst"]], 1).astype(np.int64)
    count = int(stored["num_nodes"])
    draw = np.random.default_rng(1)
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=count)
    kept = entities(name, triples, degree, draw)
    chosen = np.isin(triples[:, [0, 2]], kept).all(1)
    if name == "relations":
        chosen &= np.isin(triples[:, 1], draw.permutation(237)[:60])
    if name == "thin":
        chosen &= draw.random(len(triples)) < 1 / 3
    triples = triples[chosen]
    ids, ends = np.unique(triples[:, [0, 2]], return_inverse=True)
    ends = ends.reshape(-1, 2)
    held_out = len(triples) // 20
    split = draw.permutation(
        np.repeat([0, 1, 2], [len(triples) - 2 * held_out, held_out, held_out])
    )
    # a triple whose ends are in no training triple has nothing to be found by
    trained = np.isin(np.arange(len(ids)), ends[split == 0])
    split[~trained[ends].all(1)] = 0
    relation = np.unique(triples[:, 1], return_inverse=True)[1]
    columns = {"relation": relation.astype(np.int16), "split": split.astype(np.int8)}
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=len(ids), edata=columns)
    return Dataset(name, graph, [], [], [], 0)


def entities(name: str, triples: Any, degree: Any, draw: np.random.Generator) -> Any:
    """Return the entities of a part."""
    count = len(degree)
    if name == "dense":
        return np.argsort(-degree)[:1100]
    if name == "random":
        return draw.choice(count, 3800, replace=False)
    if name != "hierarchy":
        return draw.choice(count, 2500, replace=False, p=degree / degree.sum())
    near = csr_matrix((np.ones(len(triples)), (triples[:, 0], triples[:, 2])), (count, count))
    near = near + near.T
    reached = np.zeros(count, bool)
    reached[degree.argmax()] = True
    while reached.sum() < 3000:
        further = np.flatnonzero((near @ reached > 0) & ~reached)
        if not len(further):
            raise ValueError("the entity of most triples reaches fewer than 3,000 others")
        reached[draw.permutation(further)[: 3000 - reached.sum()]] = True
    return np.flatnonzero(reached)


if __name__ == "__main__":
    main()
