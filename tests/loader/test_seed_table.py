"""SeedTable: rows of a task as seeds, against a walk through the rows; times, splits, workers,
resumption, mistakes.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, strategies as st

from nodeflow import (
    Graph,
    NeighborSampler,
    NodeFlowLoader,
    SeedTable,
    TemporalNeighborSampler,
)
from nodeflow.convert import from_tables

GRAPH = Graph.typed(
    {"race": 6, "driver": {"age": torch.arange(4.0)}},
    {
        ("race", "has", "driver"): ([0, 1, 2, 3, 4, 5, 1], [0, 0, 1, 2, 3, 0, 3]),
        ("driver", "in", "race"): ([0, 0, 1, 2, 3, 0], [0, 1, 2, 3, 4, 5]),
    },
)
PARTS = ["train", "train", "val", "train", "test", "train"]


def table(**options: Any) -> SeedTable:
    data = {"target": torch.arange(6.0) / 10, "wide": np.arange(12).reshape(6, 2)}
    return SeedTable(
        GRAPH, "driver", [3, 0, 0, 2, 1, 0], **{"split": PARTS, "data": data, **options}
    )


def rows_of(loader: NodeFlowLoader) -> list[list[float]]:
    """Node and columns of every seed, batch after batch."""
    rows = []
    for batch in loader:
        columns = [batch.seeds[batch.seed_index], *batch.seed_data.values()]
        rows += torch.cat([column.double().view(len(column), -1) for column in columns], 1).tolist()
    return rows


@given(st.data())
def test_batches_carry_the_rows_of_their_seeds(data):
    """Any types, parts and order, with repeated nodes: each batch has the columns of its own
    rows.
    """
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).filter(any))
    graph = Graph.typed({f"t{i}": size for i, size in enumerate(sizes)}, {})
    kind = data.draw(st.sampled_from([None, *(f"t{i}" for i, size in enumerate(sizes) if size)]))
    first, count = (
        (0, sum(sizes))
        if kind is None
        else (graph.schema.ids(kind).start, len(graph.schema.ids(kind)))
    )
    ids = data.draw(st.lists(st.integers(0, count - 1), max_size=9))
    parts = data.draw(
        st.lists(st.sampled_from(["train", "val", "test"]), min_size=len(ids), max_size=len(ids))
    )
    columns = {"row": torch.arange(len(ids)), "target": torch.rand(len(ids), 2)}
    whole = SeedTable(graph, kind, ids, split=parts, data=columns)
    assert whole.splits == {name: parts.count(name) for name in set(parts)}
    shuffle = data.draw(st.booleans())
    size = data.draw(st.integers(1, 4))
    for name in [None, *whole.splits]:
        some = whole if name is None else whole[name]
        wanted = [i for i, part in enumerate(parts) if name in (None, part)]
        assert some.data["row"].tolist() == wanted
        loader = NodeFlowLoader(NeighborSampler(graph, [1]), some, size, shuffle=shuffle)
        found = []
        for batch in loader:
            rows = batch.seed_data["row"]
            assert batch.seeds[batch.seed_index].tolist() == [first + ids[i] for i in rows]
            assert torch.equal(batch.seed_data["target"], columns["target"][rows])
            found += rows.tolist()
        assert sorted(found) == wanted
        assert shuffle or found == wanted


def test_a_table_of_times_is_that_of_seeds_and_times():
    graph = Graph.from_edges(
        [1, 2, 3, 0], [0, 0, 0, 1], edata={"time": torch.tensor([10, 20, 30, 5])}
    )
    ids = [0, 0, 1, 0]
    when = torch.tensor([15, 35, 7, 15])
    sampler = TemporalNeighborSampler(graph, [-1], time="time")
    rows = SeedTable(graph, "node", ids, time=when, data={"y": torch.arange(4)})
    for options in ({}, {"shuffle": True, "num_workers": 2}, {"weights": [1, 2, 3, 4]}):
        loader = NodeFlowLoader(sampler, rows, 3, **options)
        plain = NodeFlowLoader(sampler, ids, 3, times=when, **options)
        assert loader.state_dict() == plain.state_dict()
        for one, other in zip(loader, plain, strict=True):
            assert torch.equal(one.flows[0].parent_eid, other.flows[0].parent_eid)
            assert torch.equal(one.seed_data["time"], when[one.seed_data["y"]])
            assert torch.equal(one.outputs["time"][one.seed_index], one.seed_data["time"])
    # one node at two times has two rows, and the same row twice has one
    batch = next(iter(NodeFlowLoader(sampler, rows)))
    assert (batch.num_layers, batch.layer_sizes[-1], batch.seed_index.tolist()) == (
        2,
        3,
        [0, 1, 2, 0],
    )


def test_columns_by_name_of_a_data_frame():
    frame = pd.DataFrame(
        {
            "driver": [3, 0, 2],
            "date": [5, 6, 7],
            "won": [1.0, np.nan, 0.0],
            "part": ["a", "b", "a"],
        },
        index=[9, 1, 4],
    )
    by_name = SeedTable(GRAPH, "driver", "driver", time="date", split="part", data=frame)
    arrays = {name: frame[name].to_numpy() for name in frame}
    by_dict = SeedTable(GRAPH, "driver", "driver", time="date", split="part", data=arrays)
    for each in (by_name, by_dict, pickle.loads(pickle.dumps(by_name)), copy.deepcopy(by_name)):
        assert (list(each.data), each.splits, each.seeds.tolist()) == (
            ["date", "won"],
            {"a": 2, "b": 1},
            [9, 6, 8],
        )
        assert (each.time.tolist(), each["a"].time.tolist()) == ([5, 6, 7], [5, 7])
        assert each["a"].data["won"].tolist() == [1, 0]
    assert repr(by_name) == "SeedTable(3 rows: date, won; a 2, b 1)"
    assert repr(by_name["a"]) == "SeedTable(2 rows: date, won)"
    assert len(by_name) == 3
    # a time of its own is a column "time"; one that data has stays
    assert SeedTable(GRAPH, None, [1], time=[4]).data["time"].tolist() == [4]
    assert SeedTable(GRAPH, None, [1], time=[4], data={"time": torch.tensor([3])}).data[
        "time"
    ].tolist() == [3]


KEYS: dict[str, Any] = {
    "integers": [3, 1, 2],
    "large": [2**60 + 1, 2**60 + 2, 2**60 + 3],
    "beyond": [2**63, 2**64 - 1, 2**63 + 1],
    "words": ["ann", "Ünal", "ann\0"],
    "bytes": [b"a", b"a\0", b""],
    "dates": pd.to_datetime([0, 1, 10**18]),
    "zones": pd.to_datetime(["2020-01-01", "2020-01-02", "2021-01-01"]).tz_localize("Asia/Tokyo"),
    "mixed": pd.Series([7, "7", b"7"], dtype=object),
}


@pytest.mark.parametrize("kind", KEYS)
def test_nodes_are_given_by_their_primary_keys(kind, tmp_path):
    users = pd.DataFrame({"id": KEYS[kind], "age": [10.0, 20.0, 30.0]})
    buys = pd.DataFrame({"user": users["id"].iloc[[2, 0]].reset_index(drop=True), "amount": [5, 6]})
    made, _ = from_tables(
        {"users": users, "buys": buys}, keys={"users": "id"}, links={"buys": {"user": "users"}}
    )
    made.save(tmp_path / "shop")
    data = pd.DataFrame(
        {"user": users["id"].iloc[[1, 2, 1]].reset_index(drop=True), "y": [0.0, 1.0, 2.0]}
    )
    for graph in (made, Graph.open(tmp_path / "shop"), pickle.loads(pickle.dumps(made))):
        table = SeedTable(graph, "users", "user", data=data)
        assert graph.nodes["users"].to_local(table.seeds).tolist() == [1, 2, 1]
        assert list(table.data) == ["y"]
        assert SeedTable(graph, "users", data["user"].tolist()).seeds.equal(table.seeds)
        assert SeedTable(graph, "users", rows=[1, 2, 1]).seeds.equal(table.seeds)
        # without keys nodes are numbers of rows
        assert SeedTable(graph, "buys", [1]).seeds.tolist() == [4]
        assert SeedTable(graph, None, [2]).seeds.tolist() == [2]
        for wrong, error, words in (
            (
                [0],
                KeyError,
                r"nodes: no users has the primary key 0 \(row 0\); rows= takes numbers of rows",
            ),
            (
                [KEYS[kind][0], None],
                ValueError,
                "must hold a primary key of 'users' in every row, but row 1 has none",
            ),
            (
                [[1]],
                TypeError,
                "nodes must hold keys, such as integers or strings, but row 0 has list",
            ),
            (
                3,
                TypeError,
                "nodes must be a column or a list of primary keys of 'users', got int 3",
            ),
        ):
            with pytest.raises(error, match=words):
                SeedTable(graph, "users", wrong)


def test_numbers_of_any_type_are_keys_by_their_value():
    users = pd.DataFrame({"id": np.array([1, 2, 5], np.uint64)})
    graph, _ = from_tables({"users": users}, keys={"users": "id"})
    for dtype in ("int8", "uint64", "float16", "float64", "Int64", "Float32", object):
        assert SeedTable(graph, "users", pd.Series([5, 1]).astype(dtype)).seeds.tolist() == [2, 0]
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    for column in (
        arrow.array([5, 1]),
        arrow.chunked_array([[5], [1]]),
        polars.Series([5, 1]),
        torch.tensor([5.0, 1.0]),
    ):
        assert SeedTable(graph, "users", column).seeds.tolist() == [2, 0]
    for wrong in (["5"], [True], [b"5"]):
        with pytest.raises(KeyError, match="no users has the primary key"):
            SeedTable(graph, "users", wrong)
    with pytest.raises(
        ValueError,
        match=r"must hold keys that are whole numbers, words or dates, but row 0 has 1\.5",
    ):
        SeedTable(graph, "users", [1.5])


def test_dates_of_seeds_come_as_seconds():
    frame = pd.DataFrame({"id": [0, 1], "at": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    table = SeedTable(GRAPH, "race", "id", time="at", data=frame)
    assert table.time.tolist() == table.data["at"].tolist() == [1704067200, 1704153600]
    table = SeedTable(GRAPH, "race", [0], time=[pd.Timestamp("2024-01-01 00:00:00.25")])
    assert table.time.tolist() == table.data["time"].tolist() == [1704067200.25]
