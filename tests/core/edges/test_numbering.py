"""Numbering: local ids in order of first appearance, and scratch memory that carries nothing
over.
"""

from __future__ import annotations

import numpy as np
import pytest
from _support.sampler_reference import fingerprint, random_graph
from hypothesis import given, strategies as st

from nodeflow import NeighborSampler
from nodeflow._core.edges.numbering import Numbering


@given(
    st.lists(st.lists(st.integers(0, 2**40), max_size=20), min_size=1, max_size=4), st.booleans()
)
def test_ids_are_numbered_by_first_appearance(parts, small):
    parts = [[i % 50 if small else i for i in part] for part in parts]
    expected: dict[int, int] = {}
    for part in parts:
        for i in part:
            expected.setdefault(i, len(expected))
    # beyond 31 bits the packed table cannot hold the ids; where both can, they agree
    for num_nodes in (2**41, 2**31 + 1, 2**31, 50) if small else (2**41,):
        with Numbering(num_nodes) as numbering:
            for part in parts:
                assert numbering.extend(np.array(part, np.int64)).tolist() == [
                    expected[i] for i in part
                ]
            assert numbering.nodes.tolist() == list(expected)


@pytest.mark.parametrize("num_nodes", [501, 20_000, 10**6, 2**31, 2**31 + 1, 2**40])
def test_numbering_in_order_of_first_appearance(num_nodes):
    """All ids in a table, few of many, a sort beyond 2**31: the same numbers, at the largest ids
    and after growing.
    """
    rng = np.random.default_rng(0)
    ids = np.concatenate(
        [rng.integers(num_nodes - 500, num_nodes, size=900), rng.integers(num_nodes, size=3000)]
    )
    ids = np.concatenate([ids, (ids + num_nodes // 2) % num_nodes, [num_nodes - 1, 0]])
    expected: dict[int, int] = {}
    with Numbering(num_nodes) as numbering:
        for part in np.array_split(rng.permutation(np.arange(len(ids))), 7):
            local = numbering.extend(ids[part])
            assert local.tolist() == [
                expected.setdefault(v, len(expected)) for v in ids[part].tolist()
            ]
            assert numbering.nodes.tolist() == list(expected)


def test_scratch_memory_of_a_thread_carries_nothing_over():
    graph = random_graph(17, 3000, 30_000)
    small = NeighborSampler(graph, [2, 2])
    before = fingerprint(small([7, 8]))
    NeighborSampler(graph, [-1, -1])(range(3000))
    assert fingerprint(small([7, 8])) == before


def test_numbered_ids_do_not_keep_room_for_all_that_were_given():
    """A layer holds these ids as long as it lives, and of the edges drawn most lead to nodes that
    come repeatedly.
    """
    with Numbering(100) as numbering:
        numbering.extend(np.arange(40_000) % 100)
        nodes = numbering.nodes
    assert nodes.tolist() == list(range(100))
    assert (nodes if nodes.base is None else nodes.base).nbytes <= 2 * nodes.nbytes
