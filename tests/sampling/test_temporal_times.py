"""Windows of time, and times, columns and options that a TemporalNeighborSampler refuses."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pytest
import torch
from _support.graphs import events
from _support.sampler_reference import picked_positions

from nodeflow import Graph, NodeFlowLoader, SeedTable
from nodeflow.sampling import TemporalNeighborSampler
from nodeflow.testing import assert_same_node_flow


def test_the_smallest_times():
    low = -(2**63)
    graph = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([low, low + 5])})
    whole = TemporalNeighborSampler(graph, [-1])
    assert picked_positions(whole([0, 0], times=[low + 1, low + 5])) == [[0], [0, 1]]
    for since in (2**63 - 1, 2**63 - 6, 10):  # an edge without a time is before every window
        sampler = TemporalNeighborSampler(graph, [-1], since=since)
        for form in (sampler, sampler.in_torch()):
            assert picked_positions(form([0, 0, 0], times=[low + 1, low + 5, low + 9])) == [
                [],
                [1],
                [1],
            ]
    floats = Graph.from_edges([1, 2], [0, 0], ndata={"time": np.array([0, np.nan, -1e308])})
    sampler = TemporalNeighborSampler(floats, [-1], since=1.7e308)
    assert picked_positions(sampler([0], times=[-1e308])) == [[1]]


def test_the_largest_times():
    last = 2**63 - 1
    graph = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([last - 1, last])})
    for strict in (False, True):
        sampler = TemporalNeighborSampler(graph, [-1], strict=strict)
        table = SeedTable(graph, None, [0, 0], time=[last - 1, last])
        for batch in (
            sampler([0, 0], times=[last - 1, last]),
            next(iter(NodeFlowLoader(sampler, table))),
        ):
            assert picked_positions(batch) == ([[], [0]] if strict else [[0], [0, 1]])


DATES = np.array(["2024-01-01T00:00:00.5", "2024-01-01T00:00:01"], "M8[ns]")


@pytest.mark.parametrize("kind", ["array", "stamps", "zone", "datetimes", "series", "floats"])
def test_dates_are_seconds_since_1970(kind):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    first = 1704067200
    stamps = pd.to_datetime(DATES)
    forms = {
        "array": DATES,
        "stamps": list(stamps),
        "zone": stamps.tz_localize("UTC").tz_convert("Asia/Tokyo"),
        "datetimes": [stamp.to_pydatetime() for stamp in stamps],
        "series": pd.Series(stamps),
        "floats": [first + 0.5, first + 1.0],
    }
    times = torch.tensor([0.25, 0.5, 0.75, 1.9]).double() + first
    graph = Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0], edata={"time": times})
    sampler = TemporalNeighborSampler(graph, [-1])
    loader = NodeFlowLoader(sampler, SeedTable(graph, None, [0, 0], time=forms[kind]))
    for batch in (sampler([0, 0], times=forms[kind]), next(iter(loader))):
        assert picked_positions(batch) == [[0, 1], [0, 1, 2]]
    whole = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([first, first + 1])})
    with pytest.raises(TypeError, match="times must hold integers, as the time column does"):
        TemporalNeighborSampler(whole, [-1])([0, 0], times=forms[kind])
    assert picked_positions(TemporalNeighborSampler(whole, [-1])([0], times=DATES[1:])) == [[0, 1]]


def test_parts_of_a_microsecond_are_refused():
    times = torch.tensor([1704067200.25]).double()
    sampler = TemporalNeighborSampler(Graph.from_edges([1], [0], edata={"time": times}), [-1])
    with pytest.raises(
        ValueError,
        match=r"entry 1 is 2024-01-01T00:00:00.500000001; round rows up, .*, and seeds down",
    ):
        sampler(
            [0, 0], times=DATES + np.array([0, 1], "m8[ns]") - np.array([0, 500_000_000], "m8[ns]")
        )


@pytest.mark.parametrize(
    ("column", "times", "first"),
    [
        ([1_600_000_000, 1_700_000_000], [1_700_000_000, 1_700_000_000_000], 1),  # milliseconds
        ([1_600_000_000, 1_700_000_000], [1_700_000_000_000_000_000], 0),  # nanoseconds
        ([1.6e9, 1.7e9], [1.7e15], 0),
        ([1_600_000_000_000, 1_700_000_000_000], [1_700_000_000], 0),  # seconds, milliseconds there
        ([1_600_000_000_000, 1_700_000_000_000], DATES[1:], 0),
        ([19_000, 20_000], [1_700_000_000], 0),  # days there
        ([2004, 2005], DATES[1:], 0),  # years there
        ([20200101, 20220101], DATES[1:], 0),  # days of a calendar there
        ([28333333, 28333334], DATES[1:], 0),  # minutes there
        ([1_600_000_000], [20_000], 0),
    ],
)
def test_times_of_another_unit_are_refused(column, times, first):
    column = torch.tensor(
        column, dtype=torch.float64 if isinstance(column[0], float) else torch.int64
    )
    graph = Graph.from_edges(range(1, len(column) + 1), [0] * len(column), edata={"time": column})
    sampler = TemporalNeighborSampler(graph, [-1])
    with pytest.raises(
        ValueError, match=rf"in the unit of the graph's times, .*, but times\[{first}\] is"
    ):
        sampler([0] * len(times), times=times)
    span = (column[-1] - column[0]).item()
    legitimate = [
        0,
        -5,
        column[0].item() // 3,
        column[-1].item() + span,
        3 * column[-1].item(),
        2**63 - 1,
    ]
    assert sampler([0] * 6, times=legitimate).flows[0].in_degrees.tolist() == [
        0,
        0,
        0,
        *[len(column)] * 3,
    ]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "as"])
def test_dates_that_microseconds_do_not_have_are_refused(unit):
    sampler = TemporalNeighborSampler(
        Graph.from_edges([1], [0], edata={"time": torch.tensor([10**9])}), [-1]
    )
    beyond = (
        np.array(["2001-09-09T01:46:40", "NaT"], "M8[s]").astype(f"M8[{unit}]")
        if unit != "as"
        else None
    )
    beyond = (
        np.array([0, 5], "M8[as]")
        if beyond is None
        else np.array([beyond[0], np.datetime64(2**62, unit)])
    )
    for times in (beyond, list(beyond)):
        with pytest.raises(
            ValueError, match=r"times must hold dates to the microsecond, .*, but entry 1 is "
        ):
            sampler([0, 0], times=times)


def test_dates_of_several_units_are_each_read_exactly():
    sampler = TemporalNeighborSampler(
        Graph.from_edges([1], [0], edata={"time": torch.tensor([10**9])}), [-1]
    )
    times = [
        datetime.date(3000, 1, 1),
        np.datetime64(10**18, "ns"),
        np.datetime64(10**18 - 10**9, "ns"),
    ]
    batch = sampler([0, 0, 0], times=times)
    assert batch.back.data["time"].tolist() == [32503680000, 10**9, 10**9 - 1]
    assert picked_positions(batch) == [[0], [0], []]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_times_that_have_lost_digits_are_refused(dtype):
    limit = 2 ** (24 if dtype == torch.float32 else 11)
    rounded = torch.tensor([1, limit], dtype=dtype)
    exact = torch.tensor([1, limit - 1], dtype=dtype)
    words = (
        rf"must be below 2\*\*\d+ as {str(dtype)[6:]}, which has rounded larger ones \(take "
        r"float64 or int64\)"
    )
    for kind in ("edata", "ndata"):
        column = {kind: {"time": rounded}}
        with pytest.raises(ValueError, match=words):
            TemporalNeighborSampler(Graph.from_edges([0, 1], [1, 0], **column), [1])
        graph = Graph.from_edges([0, 1], [1, 0], **{kind: {"time": exact}})
        with pytest.raises(ValueError, match=words):
            TemporalNeighborSampler(graph, [1])([0, 1], times=rounded)
        assert (
            TemporalNeighborSampler(graph, [1])([0, 1], times=exact.flip(0)).back.data["time"][0]
            == limit - 1
        )


def test_bfloat16_times_that_have_lost_digits_are_refused():
    graph = Graph.from_edges([0, 1], [1, 0], edata={"time": torch.tensor([1, 257]).bfloat16()})
    words = (
        r"'time' must be below 2\*\*8 as bfloat16, which has rounded larger ones .*, but edge 1 "
        r"has 256.0"
    )
    with pytest.raises(ValueError, match=words):
        TemporalNeighborSampler(graph, [1])
    graph.edata["time"] = torch.tensor([1, 255]).bfloat16()
    assert TemporalNeighborSampler(graph, [1])([0, 1], times=[255, 254]).back.data[
        "time"
    ].tolist() == [255, 254]


def test_a_window_is_a_setting():
    sampler = TemporalNeighborSampler(events(), [2], since=3)
    assert sampler.settings["since"] == 3
    assert "since" not in TemporalNeighborSampler(events(), [2]).settings
    copied = pickle.loads(pickle.dumps(sampler.without_edges([3])))
    assert_same_node_flow(copied([0], times=[5]), sampler.without_edges([3])([0], times=[5]))
