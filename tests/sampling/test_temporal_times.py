"""Windows of time, and times, columns and options that a TemporalNeighborSampler refuses."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import torch
from _support.graphs import events
from _support.sampler_reference import picked_positions

from nodeflow import Graph
from nodeflow.sampling import TemporalNeighborSampler
from nodeflow.testing import assert_same_node_flow


def test_the_smallest_times():
    low = -(2**63)
    graph = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([low, low + 5])})
    sampler = TemporalNeighborSampler(graph, [-1], since=2**63 - 1)
    assert picked_positions(sampler([0, 0, 0], times=[low, low + 5, 4])) == [[0], [0, 1], [1]]


def test_a_window_is_a_setting():
    sampler = TemporalNeighborSampler(events(), [2], since=3)
    assert sampler.settings["since"] == 3
    assert "since" not in TemporalNeighborSampler(events(), [2]).settings
    copied = pickle.loads(pickle.dumps(sampler.without_edges([3])))
    assert_same_node_flow(copied([0], times=[5]), sampler.without_edges([3])([0], times=[5]))


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (torch.zeros(7, 1), ValueError, "time: the edge column 'time' must have one number per edge"),
        (torch.zeros(7, dtype=torch.bool), TypeError, "time: the edge column 'time' must hold integers or floats"),
        (torch.tensor([1, 2, 3, float("nan"), 5, 6, 7]), ValueError, "must be finite, but edge 3 has nan"),
        (torch.tensor([1, 2, 3, 4, 5, 6, float("inf")]), ValueError, "must be finite, but edge 6 has inf"),
        (np.array([1, 2, 2**63, 4, 5, 6, 7], np.uint64), ValueError, f"must be below 2**63, but edge 2 has {2**63}"),
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
        (None, TypeError, "times is missing: pass a time for every seed, as in sampler(seeds, times=times)"),
        (
            5,
            TypeError,
            "times must be a tensor, an array or a list with a time per seed (2,), got int 5; for one time for",
        ),
        ({1, 2}, TypeError, "times must be a tensor, an array or a list with a time per seed"),
        ([5], ValueError, "times must have an entry per seed or row of seeds (2,), got shape (1,)"),
        (torch.tensor(5), ValueError, "times must have an entry per seed or row of seeds (2,), got shape ()"),
        ([[5, 6]], ValueError, "times must have an entry per seed or row of seeds (2,), got shape (1, 2)"),
        ([[5], [5, 6]], ValueError, "times must be one-dimensional, got a list of lists"),
        ([5.0, 6.0], TypeError, "times must hold integers, as the time column does, got dtype float64"),
        (torch.tensor([5.0, 6.0]), TypeError, "times must hold integers, as the time column does, got dtype float32"),
        ([True, 1], TypeError, "times must be integers or floats, got a list with a bool in it"),
        (np.array([True, False]), TypeError, "times must hold integers, as the time column does, got dtype bool"),
        (["a", "b"], TypeError, "times must hold integers, as the time column does, got dtype <U1"),
        (np.array(["2009", "2010"], "M8[s]"), TypeError, "got dtype datetime64[s]"),
        ([1, 2**70], TypeError, "got dtype object"),
        (np.array([1, 2**63], np.uint64), ValueError, f"times must be below 2**63, but times[1] is {2**63}"),
        (torch.ones(2, dtype=torch.bfloat16), TypeError, "times must be dense integers or floats, got"),
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
        ([1, 2**53 + 1], "integers that float64 can tell apart (up to 2**53), but times[1] is 9007199254740993"),
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
        ({"strategy": "recent", "replace": True}, ValueError, "strategy='recent' takes the latest edges, each once"),
        ({"fanouts": [2**31], "replace": True}, ValueError, "fanouts with replacement must be at most 16777216"),
        ({"fanouts": 3}, TypeError, "fanouts must be a list with one number per flow"),
        ({"fanouts": [0]}, ValueError, "fanouts[0] must be -1 (all neighbours) or at least 1, got 0"),
        ({"time": 3}, TypeError, "time must be the name of a column, got int 3"),
    ],
)
def test_bad_arguments(options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        TemporalNeighborSampler(events(), **{"fanouts": [2], **options})
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
