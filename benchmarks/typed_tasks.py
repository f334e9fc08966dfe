"""Train models of several node types on real graphs and tables, and print a table of test scores
and seconds.

python benchmarks/typed_tasks.py FOLDER [--tasks dblp freebase top3 dnf] [--seeds 5]

FOLDER has the folders "dblp_typed" and "freebase_typed", graphs in ``typed.npz`` (``num/TYPE``,
``edge/SRC/NAME/DST``, ``x/TYPE``, ``y/TYPE``, ``split60/PART``), and "relational_f1", the tables of
RelBench's rel-f1 in ``tables.npz`` (``TABLE/COLUMN``, foreign keys as rows
``TABLE/COLUMN->OTHER``), with tasks in ``driver_TASK.npz``.

Graphs: a GraphSAGE per relation on all edges; nodes without features have learned rows. Tables: the
same on the latest past rows, with the age of every row. The tables end years before the last test
seeds, so a training seed sees them, at random, up to its own time or as they were up to 40 months
before. Validation is the mean of two scores: with the tables up to each seed's time, and up to
``val_time``. It chose epochs and settings.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from nodeflow import (
    FullSampler,
    Graph,
    NodeFlow,
    NodeFlowLoader,
    SeedTable,
    TemporalNeighborSampler,
    nn,
)
from nodeflow.convert import from_tables
from nodeflow.metrics import auroc

# seconds
DAY = 86_400
MONTH = 30 * 86_400
LAGS, YEARS = 41, 25  # 0 to 40 months; training seeds are of the last 25 years
GRAPHS: dict[str, dict[str, Any]] = {
    "dblp": {"layers": 3, "width": 64, "lr": 0.005, "decay": 5e-4, "std": 1.0},
    "freebase": {"layers": 3, "width": 32, "lr": 0.003, "decay": 1e-4, "std": 0.01},
}
EPOCHS = {"top3": 12, "dnf": 10}
Score = tuple[float, float]
"""A validation score, and the test score of the same model."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--tasks", nargs="+", default=[*GRAPHS, *EPOCHS], choices=[*GRAPHS, *EPOCHS]
    )
    parser.add_argument(
        "--seeds", type=int, default=5, help="runs of every task, with seeds 0, 1, ..."
    )
    parser.add_argument("--epochs", type=int, help="instead of those of the tasks")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"{options.threads} thread(s), {options.seeds} seeds; {platform.machine()}, "
        f"{os.cpu_count()} cores\n"
    )
    print(
        "| task | test score | deviation | least | validation | seconds "
        "|\n|---|---|---|---|---|---|"
    )
    for task in options.tasks:
        work, measure = (Labels, "micro-F1") if task in GRAPHS else (Races, "AUROC")
        train = work(options.folder, task)
        scores = []
        seconds = []
        for seed in range(options.seeds):
            begun = time.perf_counter()
            torch.manual_seed(seed)
            scores.append(max(train(seed, options.epochs), key=lambda score: score[0]))
            seconds.append(time.perf_counter() - begun)
        val, test = zip(*scores, strict=True)
        spread = statistics.stdev(test) if len(test) > 1 else 0.0
        print(
            f"| {task}, {measure} | {statistics.mean(test):.4f} | {spread:.4f} | {min(test):.4f} | "
            f"{statistics.mean(val):.4f} | {statistics.mean(seconds):.0f} |",
            flush=True,
        )
    print(
        "\nseconds: a whole run with validation, without reading and, of graphs, drawing; means "
        "over the seeds"
    )


def typed_convs(graph: Graph, width: int, count: int) -> list[torch.nn.Module]:
    """Return layers with a GraphSAGE per relation."""
    return [
        nn.TypedConv({r: nn.SAGEConv(width, width) for r in graph.schema.relations})
        for _ in range(count)
    ]


class Labels:
    """Classes of nodes, on the whole graph: 60 labels a class, customary splits."""

    def __init__(self, folder: Path, task: str) -> None:
        self.settings = GRAPHS[task]
        stored = np.load(folder / f"{task}_typed" / "typed.npz")
        nodes = {name: features(stored, name) for name in names_of(stored, "num/")}
        edges = {
            tuple(name.split("/")): tuple(stored[f"edge/{name}"])
            for name in names_of(stored, "edge/")
        }
        self.graph = Graph.typed(nodes, edges, reverse=True)
        (target,) = names_of(stored, "y/")
        labels = torch.from_numpy(stored[f"y/{target}"]).long()
        self.labels = {}
        self.batches = {}
        sampler = FullSampler(self.graph, self.settings["layers"])
        for part in ("train", "val", "test"):
            rows = torch.from_numpy(stored[f"split60/{part}"]).long()
            batch = self.batches[part] = sampler(self.graph.nodes[target].to_graph(rows))
            self.labels[part] = labels[rows]
            if any("x" in of_type.data for of_type in self.graph.nodes.values()):
                batch.copy_from_parent(["x"])

    def __call__(self, seed: int, epochs: int | None) -> Iterator[Score]:
        """Train; yield the scores of every second epoch, until the best one is 60 epochs ago."""
        width = self.settings["width"]
        best = 0.0
        since = 0
        encoder = nn.TypedLinear(
            {name: self.rows_of(name, width) for name in self.graph.schema.nodes}, width
        )
        convs = typed_convs(self.graph, width, self.settings["layers"])
        model = nn.TypedModel(encoder, convs, int(self.labels["train"].max()) + 1, dropout=0.5)
        optimizer = torch.optim.Adam(
            model.parameters(), lr=self.settings["lr"], weight_decay=self.settings["decay"]
        )
        for epoch in range(epochs or 200):
            model.train()
            loss = cross_entropy(model(self.batches["train"]), self.labels["train"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if epoch % 2:
                model.eval()
                with torch.no_grad():
                    right = {
                        part: (model(self.batches[part]).argmax(1) == self.labels[part])
                        .float()
                        .mean()
                        .item()
                        for part in ("val", "test")
                    }
                yield right["val"], right["test"]
                best, since = max(best, right["val"]), 0 if right["val"] > best else since + 2
                if since == 60:
                    return

    def rows_of(self, name: str, width: int) -> Any:
        """Return the width of the features of a type, or learned rows."""
        of_type = self.graph.nodes[name]
        if "x" in of_type.data:
            return of_type.data["x"].shape[1]
        table = torch.nn.Embedding(len(of_type), width)
        torch.nn.init.normal_(table.weight, std=self.settings["std"])
        return table


def names_of(stored: Any, start: str) -> list[str]:
    return [name.removeprefix(start) for name in stored if name.startswith(start)]


def features(stored: Any, name: str) -> Any:
    """Return the columns of a node type, or the number of its nodes."""
    if f"x/{name}" in stored:
        return {"x": torch.from_numpy(stored[f"x/{name}"]).float()}
    if f"x/{name}/data" not in stored:
        return int(stored[f"num/{name}"])
    indptr, indices, data, shape = (
        stored[f"x/{name}/{part}"] for part in ("indptr", "indices", "data", "shape")
    )
    arrays = (
        torch.from_numpy(indptr).long(),
        torch.from_numpy(indices).long(),
        torch.from_numpy(data).float(),
    )
    return {"x": torch.sparse_csr_tensor(*arrays, tuple(shape), check_invariants=True)}


def tables_of(
    folder: Path,
) -> tuple[dict[str, Any], dict[str, dict[str, str]], dict[str, str], int, int]:
    """Return the tables as data frames, their foreign keys, their columns of time, and
    ``val_time``, ``test_time``.

    Every table has the primary key "id", the number of the row. Rows later than ``test_time`` are
    left out.
    """
    stored = np.load(folder / "tables.npz")
    test_time = int(stored["test_time"])
    columns = dict[str, dict[str, Any]]()
    links = dict[str, dict[str, str]]()
    times = dict[str, str]()
    for place in stored:
        table, _, name = place.partition("/")
        values = stored[place]
        if name == "time":
            times[table] = name
        elif name == "rows":
            name = "id"
            values = np.arange(values)
        elif "->" in name:
            name, _, links.setdefault(table, {})[name.split("->")[0]] = name.partition("->")
            values = pandas.Series(values, dtype="Int64").mask(values < 0)
        elif values.dtype == np.int32:
            values = pandas.Series(values, dtype="category").where(values >= 0)
        if name:
            columns.setdefault(table, {})[name] = values
    tables = {table: pandas.DataFrame(own) for table, own in columns.items()}
    for table, frame in tables.items():
        frame["id"] = np.arange(len(frame))
        if table in times:
            tables[table] = frame[frame["time"] <= test_time]
    return tables, links, times, int(stored["val_time"]), test_time


class RaceModel(torch.nn.Module):
    """Rows of the tables with their ages, two layers, and the time between seeds and the end of
    what they see.
    """

    def __init__(self, graph: Graph, width: int, dropout: float) -> None:
        super().__init__()
        widths = {name: of_type.data["x"].shape[1] for name, of_type in graph.nodes.items()}
        self.encoder = nn.TypedLinear(widths, width)
        self.lag = nn.RelativeTime(width)
        timed = [name for name, of_type in graph.nodes.items() if "time" in of_type.data]
        self.clocks = torch.nn.ModuleDict({name: nn.RelativeTime(width) for name in timed})
        self.gnn = nn.TypedModel(
            self.encoder, typed_convs(graph, width, 2), width, dropout, norm="layer"
        )
        self.head = torch.nn.Sequential(
            torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(width, 1)
        )

    def forward(self, batch: NodeFlow) -> Tensor:
        inputs = batch.layers[0]
        h = self.encoder(batch)
        for name, clock in self.clocks.items():
            part = inputs.of(name)
            h = h.index_add(
                0, part.rows, clock((inputs.data["time"][part.rows] - part.data["time"]) / DAY)
            )
        rows = self.gnn(batch, h.relu())[batch.seed_index]
        return self.head(rows + self.lag(batch.seed_data["lag"] / MONTH)).squeeze(1)


class Races:
    """Will a driver be among the first three, or not finish a race, in the next month?"""

    def __init__(self, folder: Path, task: str) -> None:
        folder = folder / "relational_f1"
        self.epochs = EPOCHS[task]
        tables, links, times, val_time, test_time = tables_of(folder)
        self.graph, _ = from_tables(
            tables, keys=dict.fromkeys(tables, "id"), links=links, times=times, cut=val_time, categories=200,
            dangling="drop",
        )  # fmt: skip
        self.sampler = TemporalNeighborSampler(self.graph, [8, 16], strategy="recent")
        rows = np.load(folder / f"driver_{task}.npz")
        late = rows["time"] > val_time - YEARS * 365 * DAY
        self.train, val, test = (
            {
                name: rows[name][late & (rows["split"] == part)]
                for name in ("driver", "time", "label")
            }
            for part in range(3)
        )
        ends = (
            (val, val["time"]),
            (val, np.minimum(val["time"], val_time)),
            (test, np.minimum(test["time"], test_time)),
        )
        self.evaluated = [[*self.batches(of_part, end)] for of_part, end in ends]

    def batches(self, rows: dict[str, Any], end: Any, seed: int | None = None) -> NodeFlowLoader:
        """Return batches of rows of the task which see the tables up to ``end``; shuffled with a
        seed.
        """
        data = {
            "end": end,
            "lag": rows["time"] - end,
            "label": torch.from_numpy(rows["label"]).float(),
        }
        seeds = SeedTable(self.graph, "drivers", rows=rows["driver"], time="end", data=data)
        return NodeFlowLoader(
            self.sampler,
            seeds,
            512,
            shuffle=seed is not None,
            seed=seed or 0,
            ndata={0: ["x", "time"]},
        )

    def __call__(self, seed: int, epochs: int | None) -> Iterator[Score]:
        """Train; yield the scores of the running average of the weights after every epoch."""
        model = RaceModel(self.graph, 64, 0.3)
        rng = np.random.default_rng(seed)
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=1e-4)
        for epoch in range(epochs or self.epochs):
            lags = rng.integers(0, LAGS, len(self.train["time"])) * rng.integers(
                0, 2, len(self.train["time"])
            )
            for batch in self.batches(
                self.train, self.train["time"] - MONTH * lags, 1_000 * seed + epoch
            ):
                loss = binary_cross_entropy_with_logits(model(batch), batch.seed_data["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                average.update_parameters(model)
            fresh, stale, test = (self.score(average, batches) for batches in self.evaluated)
            yield (fresh + stale) / 2, test

    @torch.no_grad()
    def score(self, model: torch.nn.Module, batches: list[NodeFlow]) -> float:
        model.eval()
        scores = torch.cat([model(batch) for batch in batches])
        labels = torch.cat([batch.seed_data["label"] for batch in batches])
        return float(auroc(scores, labels))


if __name__ == "__main__":
    main()
