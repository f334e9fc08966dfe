"""What RandomWalkSampler refuses, by name."""

from __future__ import annotations

import re

import pytest
from _support.sampler_reference import random_graph, star

from nodeflow.sampling import RandomWalkSampler
from nodeflow.testing import assert_unbiased


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_neighbors": 0}, ValueError, "num_neighbors[0] must be -1 (all neighbours) or at least 1, got 0"),
        ({"num_neighbors": [3]}, ValueError, "num_neighbors must have one number per flow (2), got 1"),
        ({"num_neighbors": [3, -2]}, ValueError, "num_neighbors[1] must be -1 (all neighbours) or at least 1, got -2"),
        ({"num_neighbors": 2.5}, TypeError, "num_neighbors[0] must be an integer, got float 2.5"),
        ({"num_neighbors": True}, TypeError, "num_neighbors[0] must be an integer, got bool True"),
        ({"num_neighbors": "12"}, TypeError, "num_neighbors must be a list with one number per flow"),
        ({"num_neighbors": {1, 2}}, TypeError, "num_neighbors must be a list with one number per flow"),
        ({"num_flows": 0}, ValueError, "num_flows must be at least 1, got 0"),
        ({"num_walks": 0}, ValueError, "num_walks must be at least 1, got 0"),
        ({"num_walks": 1.0}, TypeError, "num_walks must be an integer, got float 1.0"),
        ({"walk_length": 0}, ValueError, "walk_length must be at least 1, got 0"),
        ({"num_walks": 2**20, "walk_length": 2**11}, ValueError, f"must be below 2**31, got {2**31}"),
        ({"restart": 1.5}, ValueError, "restart must be at least 0 and at most 1, got 1.5"),
        ({"restart": -0.1}, ValueError, "restart must be at least 0 and at most 1, got -0.1"),
        ({"restart": float("nan")}, ValueError, "restart must be at least 0 and at most 1, got nan"),
        ({"restart": True}, TypeError, "restart must be a number, got bool True"),
        ({"restart": "0.5"}, TypeError, "restart must be a number, got str '0.5'"),
        ({"restart": None}, TypeError, "restart must be a number, got NoneType None"),
        ({"weight": "w"}, TypeError, "unexpected keyword argument 'weight'"),
        ({"direction": "up"}, ValueError, "direction must be 'in', 'out' or 'both', got 'up'"),
        ({"include_dst": False, "reuse": True}, ValueError, "needs include_dst=True"),
    ],
)
def test_bad_arguments(options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        RandomWalkSampler(random_graph(0), **{"num_flows": 2, **options})


def test_there_are_no_sums_over_edges_to_compare_with():
    sampler = RandomWalkSampler(star(3), 1)
    with pytest.raises(TypeError, match="estimates no sum over edges of the graph"):
        sampler.estimand()
    with pytest.raises(TypeError, match="estimates no sum over edges of the graph"):
        assert_unbiased(sampler, [0])
    with pytest.raises(IndexError, match=r"seeds\[0\] is 9"):
        sampler([9])
    with pytest.raises(IndexError, match=r"eid\[0\] is 3"):
        sampler.without_edges([3])
