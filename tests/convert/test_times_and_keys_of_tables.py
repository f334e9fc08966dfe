"""Times and keys of the tables of a database: exact, whatever types the columns have, or
refused.
"""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import numpy as np
import pytest
import torch
from _support.tables import linked, times_of

from nodeflow import NodeFlowLoader, SeedTable, TemporalNeighborSampler
from nodeflow.convert import from_tables

pd = pytest.importorskip("pandas", reason="pandas is not installed")
arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
DICTIONARY = pd.ArrowDtype(arrow.dictionary(arrow.int32(), arrow.float32()))
NEVER = -(2**63)
D = decimal.Decimal


SECOND = 1704067200
PARTS = ["2024-01-01 00:00:00.1", "2024-01-01 00:00:00.9", None]
AS_TIMES: dict[str, Any] = {
    "strings": PARTS,
    "nanoseconds": pd.to_datetime(PARTS).astype("datetime64[ns]"),
    "milliseconds": pd.to_datetime(PARTS).astype("datetime64[ms]"),
    "a zone": pd.to_datetime(PARTS).tz_localize("UTC").tz_convert("Asia/Tokyo"),
    "datetimes": [
        None if part is None else datetime.datetime.fromisoformat(part) for part in PARTS
    ],
    "categories": pd.Categorical(pd.to_datetime(PARTS)),
    "floats": [SECOND + 0.1, SECOND + 0.9, None],
    "nullable floats": pd.array([SECOND + 0.1, SECOND + 0.9, None], dtype="Float64"),
    "decimals": [D(f"{SECOND}.1"), D(f"{SECOND}.9"), None],
    "objects": pd.Series([SECOND + 0.1, SECOND + 0.9, None], dtype=object),
}


@pytest.mark.parametrize("kind", AS_TIMES)
def test_no_row_later_than_the_seed_is_read_below_a_second(kind):
    seeds = [SECOND, SECOND + 0.1, SECOND + 0.5, SECOND + 1]
    users = pd.DataFrame({"id": [1]})
    clicks = pd.DataFrame({"user": [1, 1, 1], "at": AS_TIMES[kind], "v": [1.0, 2, 3]})
    options: dict[str, Any] = {
        "keys": {"users": "id"},
        "links": {"clicks": {"user": "users"}},
        "times": {"clicks": "at"},
    }
    graph, _ = from_tables({"users": users, "clicks": clicks}, **options)
    assert graph.nodes["clicks"].data["time"][:2].tolist() == [SECOND + 0.1, SECOND + 0.9]
    for strict in (False, True):
        sampler = TemporalNeighborSampler(graph, [-1], strict=strict)
        dates = pd.to_datetime(np.array(seeds) * 1000, unit="ms")
        for times in (seeds, dates, list(dates), dates.to_numpy(), dates.tz_localize("UTC")):
            batch = next(
                iter(NodeFlowLoader(sampler, SeedTable(graph, "users", [1] * 4, time=times)))
            )
            # the row without a time is always there
            expected = [1, 1, 2, 3] if strict else [1, 2, 2, 3]
            assert batch.flows[0].in_degrees[batch.seed_index].tolist() == expected
    for cut, fitted in (
        (SECOND + 0.05, 0),
        ("2024-01-01 00:00:00.1", 1),
        (pd.Timestamp(SECOND * 1000 + 900, unit="ms"), 2),
    ):
        early = clicks.iloc[[*range(fitted), 2]]
        late = clicks.iloc[fitted:2].assign(v=1e6)
        changed, _ = from_tables(
            {"users": users, "clicks": pd.concat([early, late])}, **options, cut=cut
        )
        alone, _ = from_tables({"users": users, "clicks": early}, **options, cut=cut)
        x = changed.nodes["clicks"].data["x"][: fitted + 1]
        assert torch.equal(x, alone.nodes["clicks"].data["x"])


def test_all_tables_have_one_clock():
    whole, parts = times_of([1, None, 20], [0.5, 3, None])
    assert (whole.dtype, parts.dtype) == (torch.float64, torch.float64)
    assert (whole.nan_to_num(NEVER).tolist(), parts.nan_to_num(NEVER).tolist()) == (
        [1, NEVER, 20],
        [0.5, 3, NEVER],
    )
    for column in ([1.0, None, 20.0], pd.array([1, None, 20], dtype="Int64"), pd.Series([1, None, 20], dtype=object),
                   [D(1), None, D(20)], pd.Categorical([1, None, 20]),
                   ["1970-01-01 00:00:01", "", "1970-01-01 00:00:20"]):  # fmt: skip
        whole, early = times_of(column, pd.Series([-1, -(10**10)], dtype="int64"))
        assert (whole.dtype, whole.tolist(), early.tolist()) == (
            torch.int64,
            [1, NEVER, 20],
            [-1, -(10**10)],
        )
    # an hour 24, a day 32, a minute 60
    for seconds in (2024013124, 2024013215, 1_700_000_000, 202401311560):
        assert times_of([seconds])[0].tolist() == [seconds]
    assert times_of(["1500-01-01", "9999-12-31"])[0].tolist() == [-14831769600, 253402214400]


EXACT: list[tuple[Any, Any, list[int]]] = [
    (np.array([2**64 - 1, 2**63, 5], np.uint64), pd.array([5, None, 2**63], dtype="UInt64"), [2, 1]),
    (np.array([2**64 - 1, 3, 5], np.uint64), pd.array([5, None, 3], dtype="Int64"), [2, 1]),
    (np.array([2**64 - 1, 3, 5], np.uint64), pd.Series([5, None, 3], dtype="int64[pyarrow]"), [2, 1]),
    (np.array([2**62, 2**62 + 1], np.int64), pd.array([2**62 + 1, None], dtype="UInt64"), [1]),
    (np.array([7, 2047], np.float16), np.array([2047, np.nan]), [1]),
    ([1, 2], np.array([2, 1], np.float16), [1, 0]),
    ([2**24, 2**24 + 1], pd.Series([2**24 + 1, None], dtype=object), [1]),
    ([2**53, 2**53 + 1], [D(2**53 + 1), D("nan")], [1]),
    ([1, 2], pd.Categorical([2.0, None]), [1]),
    ([True, False], pd.array([False, None], dtype="boolean"), [1]),
    ([b"a", b"a\0"], pd.Series([b"a\0", None], dtype=object), [1]),
    (pd.to_datetime([0, 1]), pd.to_datetime([1, None]), [1]),
    (pd.to_datetime(["2024-01-01", "2024-01-02"]).astype("datetime64[s]"),
     pd.to_datetime(["2024-01-02", None]).astype("datetime64[ns]"), [1]),
    (pd.Categorical(["b", "a"]), pd.Series(["a", pd.NA], dtype="string"), [1]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(EXACT)))
def test_keys_of_different_types_are_joined_exactly(case):
    own, foreign, to = EXACT[case]
    assert linked(own, foreign)[1] == to


ROUNDED: list[tuple[Any, int, int]] = [
    (np.array([1, 2**24], np.float32), 24, 1),
    (pd.array([2**24, None], dtype="Float32"), 24, 0),
    (pd.Categorical(np.array([2**24, 1], np.float32)), 24, 0),
    (pd.Series([np.float32(2**24), 1], dtype=object), 24, 0),
    (pd.Series([None, 2**24], dtype="float32[pyarrow]"), 24, 1),
    (np.array([2048], np.float16), 11, 0),
    (np.array([1, np.nan, -(2.0**53)]), 53, 2),
    (pd.Series([None, 2.0**53], dtype=object), 53, 1),
    (pd.Series(["a", 2.0**53], dtype=object), 53, 1),
    (pd.Categorical([2.0**53, None]), 53, 0),
    (pd.arrays.SparseArray([1.0, 2.0**53]), 53, 1),
    (pd.Series([None, 2.0**24], dtype=DICTIONARY), 24, 1),
    (pd.Series([math.inf]), 53, 0),
]


@pytest.mark.parametrize("case", range(len(ROUNDED)))
def test_keys_that_may_be_rounded_are_refused_on_both_sides(case):
    column, digits, row = ROUNDED[case]
    words = (
        rf"holds keys as floats, which tell no integers from 2\*\*{digits} on apart: row {row} has "
    )
    rounded = pd.DataFrame({"k": column})
    exact = pd.DataFrame({"k": [1, 2, 2**24, 2**53]})
    for tables in ({"a": exact, "b": rounded}, {"a": rounded.dropna(), "b": exact}):
        with pytest.raises(
            ValueError, match=words if tables["a"] is exact else "holds keys as floats"
        ):
            from_tables(tables, keys={"a": "k"}, links={"b": {"k": "a"}}, dangling="drop")
