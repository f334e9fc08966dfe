"""No prediction of a model over tables depends on rows that are later than its seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nodeflow import (
    Graph,
    NeighborSampler,
    NodeFlowLoader,
    SeedTable,
    TemporalNeighborSampler,
    convert,
    nn,
)

pandas: Any = pytest.importorskip("pandas", reason="pandas is not installed")
ROOT = Path(__file__).parents[2]
F1 = ROOT.parent / "shared" / "data" / "relational_f1"
SAMPLERS: dict[str, Callable[[Graph], Any]] = {
    strategy: lambda graph, strategy=strategy: TemporalNeighborSampler(
        graph, [2, 3], strategy=strategy, seed=3
    )
    for strategy in ("recent", "uniform")
} | {"no times": lambda graph: NeighborSampler(graph, [2, 3], seed=3)}

Database = tuple[dict[str, Any], dict[str, dict[str, str]], dict[str, str]]


def small_database(rng: np.random.Generator) -> Database:
    """Return tables, foreign keys and times: users and items, of which items appear, and two tables
    between them.
    """

    def column(count: int, low: int = 0) -> Any:
        return pandas.array(
            np.where(rng.random(200) < 0.1, None, rng.integers(low, count, 200)), "Int64"
        )

    tables = {
        "user": pandas.DataFrame({"id": np.arange(12), "age": rng.normal(size=12)}),
        "item": pandas.DataFrame(
            {"id": np.arange(30), "price": rng.normal(size=30), "time": rng.integers(0, 100, 30)}
        ),
    }
    for name in ("order", "review"):
        words = rng.choice(["good", "bad", "late"], 200)
        times = rng.integers(0, 100, 200)
        frame = {
            "user": column(12),
            "item": column(30),
            "stars": column(6),
            "word": words,
            "time": times,
        }
        tables[name] = pandas.DataFrame(frame)
    links = {name: {"user": "user", "item": "item"} for name in ("order", "review")}
    return tables, links, dict.fromkeys(("item", "order", "review"), "time")


def shuffled(
    tables: dict[str, Any], times: dict[str, str], now: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the tables with the later rows permuted, every column on its own: values, foreign keys
    and times.
    """
    others = {name: frame.copy() for name, frame in tables.items()}
    for name, time in times.items():
        late = np.flatnonzero(tables[name][time] > now)
        for column in set(others[name].columns) - {"id"}:
            place = others[name].columns.get_loc(column)
            others[name].iloc[late, place] = (
                tables[name][column].iloc[rng.permutation(late)].to_numpy()
            )
    return others


def predictions(
    tables: dict[str, Any], database: Database, now: int, table: str, nodes: Any, sampler: str
) -> Any:
    """Return the outputs of a model with random weights for nodes at a time; it reads ages of all
    rows.
    """
    keys = {name: "id" for name, frame in tables.items() if "id" in frame}
    graph, names = convert.from_tables(
        tables, keys=keys, links=database[1], times=database[2], cut=now, categories=500
    )
    torch.manual_seed(0)
    encoder = nn.TypedLinear({name: len(columns) for name, columns in names.items()}, 16)
    convs = [
        nn.TypedConv({relation: nn.SAGEConv(16, 16) for relation in graph.schema.relations})
        for _ in range(2)
    ]
    model = nn.TypedModel(encoder, convs, 3, residual=True)
    clock = nn.RelativeTime(16)
    seeds = SeedTable(graph, table, nodes, time=np.full(len(nodes), now))
    draw = SAMPLERS[sampler](graph)
    outputs = []
    if not draw.takes_times:
        seeds = seeds.seeds
    for batch in NodeFlowLoader(draw, seeds, 8, ndata={0: ["x", "time"]}):
        inputs = batch.layers[0]
        h = encoder(batch)
        for name in database[2]:
            part = inputs.of(name)
            h = h.index_add(0, part.rows, clock((now - part.data["time"]) / 86_400))
        outputs.append(model(batch, h)[batch.seed_index])
    return torch.cat(outputs)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("now", [0, 30, 70])
def test_later_rows_change_no_prediction(now, sampler):
    rng = np.random.default_rng(now)
    database = small_database(rng)
    before = predictions(database[0], database, now, "user", np.arange(12), sampler)
    later = shuffled(database[0], database[2], now, rng)
    after = predictions(later, database, now, "user", np.arange(12), sampler)
    assert torch.equal(before, after) == (sampler != "no times")
