"""Windows of time, and times, columns and options that a TemporalNeighborSampler refuses."""

from __future__ import annotations

import datetime
import pickle
import re

import numpy as np
import pytest
import torch
from _support.graphs import events
from _support.sampler_reference import picked_positions
from _support.views import viewed

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


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (
            torch.zeros(7, 1),
            ValueError,
            "time: the edge column 'time' must have one number per edge",
        ),
        (
            torch.zeros(7, dtype=torch.bool),
            TypeError,
            "time: the edge column 'time' must hold integers or floats",
        ),
        (
            torch.tensor([1, 2, 3, float("nan"), 5, 6, 7]),
            ValueError,
            "must be finite, but edge 3 has nan",
        ),
        (
            torch.tensor([1, 2, 3, 4, 5, 6, float("inf")]),
            ValueError,
            "must be finite, but edge 6 has inf",
        ),
        (None, KeyError, "time: neither edges nor nodes have a column 'time'"),
    ],
)
def test_bad_columns(column, error, words):
    graph = events()
    del graph.edata["time"]
    if column is not None:
        graph.edata["time"] = column
    with pytest.raises(error, match=re.escape(words)):
        TemporalNeighborSampler(graph, [2])


@pytest.mark.parametrize(
    ("times", "error", "words"),
    [
        (
            None,
            TypeError,
            "times is missing: pass a time for every seed, as in sampler(seeds, times=times)",
        ),
        (
            5,
            TypeError,
            "times must be a tensor, an array or a list with a time per seed (2,), got int 5; for "
            "one time for",
        ),
        ({1, 2}, TypeError, "times must be a tensor, an array or a list with a time per seed"),
        (
            [5],
            ValueError,
            "times must have one entry per seed or row of seeds (2,), got shape (1,)",
        ),
        (
            torch.tensor(5),
            ValueError,
            "times must have one entry per seed or row of seeds (2,), got shape ()",
        ),
        (
            [[5, 6]],
            ValueError,
            "times must have one entry per seed or row of seeds (2,), got shape (1, 2)",
        ),
        ([[5], [5, 6]], ValueError, "times must be one-dimensional, got a list of lists"),
        (
            [5.0, 6.0],
            TypeError,
            "times must hold integers, as the time column does, got dtype float64",
        ),
        (
            torch.tensor([5.0, 6.0]),
            TypeError,
            "times must hold integers, as the time column does, got dtype float32",
        ),
        ([True, 1], TypeError, "times must be integers or floats, got a list with a bool in it"),
        (
            np.array([True, False]),
            TypeError,
            "times must be numbers in the unit of the graph's times, or dates, got bool",
        ),
        (
            ["a", "b"],
            TypeError,
            "times must be numbers in the unit of the graph's times, or dates, got <U1",
        ),
        (
            np.array(["2009", "NaT"], "M8[s]"),
            ValueError,
            "times must hold a time for every seed, but entry 1 is missing",
        ),
        (
            [1, -(2**63)],
            ValueError,
            "above -2**63, which stands for no time, but times[1] is -9223372036854775808",
        ),
        ([1, 2**70], TypeError, "or dates, got object"),
        (
            np.array([1, 2**63], np.uint64),
            ValueError,
            f"times must be below 2**63, but times[1] is {2**63}",
        ),
        (
            torch.ones(2, dtype=torch.bfloat16),
            TypeError,
            "times must be dense integers or floats, got",
        ),
    ],
)
def test_bad_times(times, error, words):
    with pytest.raises(error, match=re.escape(words)):
        TemporalNeighborSampler(events(), [2])([0, 0], times=times)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([1.0, float("nan")], "times must be finite, but times[1] is nan"),
        ([float("inf"), 1.0], "times must be finite, but times[0] is inf"),
        (
            [1, 2**53 + 1],
            "integers that float64 can tell apart (up to 2**53), but times[1] is 9007199254740993",
        ),
    ],
)
def test_bad_times_for_floats(times, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        TemporalNeighborSampler(events(), [2], time="w")([0, 0], times=times)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"strategy": "last"}, ValueError, "strategy must be 'uniform' or 'recent', got 'last'"),
        ({"strategy": "recent", "prob": "w"}, ValueError, "each once: prob= goes with 'uniform'"),
        ({"prob": "none"}, KeyError, "none"),
        (
            {"strategy": "recent", "replace": True},
            ValueError,
            "strategy='recent' takes the latest edges, each once",
        ),
        (
            {"fanouts": [2**31], "replace": True},
            ValueError,
            "fanouts with replacement must be at most 16777216",
        ),
        ({"fanouts": 3}, TypeError, "fanouts must be a list with one number per flow"),
        (
            {"fanouts": [0]},
            ValueError,
            "fanouts[0] must be -1 (all neighbours) or at least 1, got 0",
        ),
        ({"time": 3}, TypeError, "time must be the name of a column, got int 3"),
    ],
)
def test_bad_arguments(options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        viewed(TemporalNeighborSampler, events(), **{"fanouts": [2], **options})
    with pytest.raises(TypeError, match="strategy='recent' takes the latest edges"):
        TemporalNeighborSampler(events(), [2], strategy="recent").estimand()


@pytest.mark.parametrize(
    ("column", "since", "error", "words"),
    [
        ("time", -1, ValueError, "since must be at least 0, got -1"),
        ("time", 0.5, TypeError, "since must be an integer, got float 0.5"),
        ("time", True, TypeError, "since must be an integer"),
        ("time", 2**63, ValueError, "since must be below 2**63"),
        ("w", -0.5, ValueError, "since must be"),
        ("w", float("nan"), ValueError, "since must be"),
        ("w", "1", TypeError, "since must be"),
    ],
)
def test_bad_windows(column, since, error, words):
    with pytest.raises(error, match=re.escape(words)):
        TemporalNeighborSampler(events(), [2], time=column, since=since)
    with pytest.raises(TypeError, match=re.escape("pass the time of the seed, estimand(time)")):
        TemporalNeighborSampler(events(), [2], since=1).estimand()
