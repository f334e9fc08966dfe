"""Strategies for flows, fanouts, frames, temporal graphs and triples: their corner cases occur, and
they shrink.
"""

from __future__ import annotations

import pytest
from hypothesis import find, settings

from nodeflow.testing import fanouts, flows, frames, temporal_graphs, triples

many = settings(max_examples=2_000, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("strategy", "wanted", "smallest"),
    [
        (flows(), lambda f: f.num_edges > 0, lambda f: (f.num_edges, f.num_dst)),
        (
            flows(),
            lambda f: f.needs_weight or (f.weight != 1).any(),
            lambda f: (int(f.num_edges), 1),
        ),
        (fanouts(2), lambda f: -1 in f, lambda f: (len(f), 2)),
        (frames(3), lambda f: len(f) > 1, lambda f: (len(f), 1)),
        (
            temporal_graphs(),
            lambda t: len(t[1]) > 1 and t[2][0] != t[2][1],
            lambda t: (len(t[1]), 1),
        ),
        (triples(), lambda t: len(t) > len(t.unique(dim=0)), lambda t: (len(t), 1)),
    ],
    ids=["edges", "weights", "fanouts", "frames", "times", "triples"],
)
def test_what_is_found_is_small(strategy, wanted, smallest):
    sizes = smallest(find(strategy, wanted, settings=many))
    assert max(sizes) <= 2


def test_triples_have_their_shape():
    assert find(triples(), lambda t: True, settings=many).shape == (0, 3)
    assert int(find(triples(4, 2), lambda t: bool((t[:, 1] == 1).any()), settings=many)[0, 1]) == 1


def test_times_before_all_and_after_all_occur():
    find(temporal_graphs(last=4), lambda t: -1 in t[2] and 5 in t[2], settings=many)
