"""Cached and tiered rows: equal to the column, counted, within their size. Heat: against batches
and enumeration.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from _support.graphs import random_graph
from _support.own_rows import OwnRows
from hypothesis import given, strategies as st

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, ShadowSampler, storage, transform
from nodeflow.storage import (
    Cached,
    Tiered,
    _memory,
    _plan,
    degree_heat,
    hottest,
    presample,
    reach_heat,
)

COLUMN = torch.arange(60 * 3, dtype=torch.float32).view(60, 3)


some_ids = st.lists(st.lists(st.integers(0, 59), max_size=30), max_size=5)


@given(
    some_ids,
    st.integers(0, 60),
    st.sampled_from([torch.float32, torch.uint8, torch.bfloat16, torch.int64]),
)
def test_cached_rows_are_those_of_the_column(calls, room, dtype):
    column = COLUMN.to(dtype)
    heat = np.random.default_rng(room).permutation(60)
    rows = Cached(column, heat, 3 * column.itemsize * room)
    hot = set(np.argsort(-heat)[:room].tolist())
    assert set(rows.ids.tolist()) == hot
    for ids in calls:
        assert rows.fetch(torch.tensor(ids, dtype=torch.int64)).equal(column[ids])
    asked = [i for ids in calls for i in ids]
    assert (rows.hits, rows.misses) == (
        sum(i in hot for i in asked),
        sum(i not in hot for i in asked),
    )
    assert rows.hit_rate == rows.hits / len(asked) if asked else np.isnan(rows.hit_rate)
    assert rows.fetch(torch.arange(60)).equal(column)
    out = torch.empty_like(column)
    assert Cached(column, heat, "1 MB").fetch(torch.arange(59, -1, -1), out) is out
    assert out.equal(column.flip(0))


@given(some_ids, st.lists(st.integers(0, 60), max_size=3), st.booleans())
def test_tiers_hold_every_row_once(calls, cuts, random):
    order = np.random.default_rng(len(cuts)).permutation(60) if random else np.arange(60)
    ends = [0, *sorted(cuts), 60]
    tiers = [COLUMN[order[a:b]] for a, b in pairwise(ends)]
    rows = Tiered(tiers, np.argsort(order) if random else None)
    for ids in calls:
        assert rows.fetch(torch.tensor(ids, dtype=torch.int64)).equal(COLUMN[ids])
    assert sum(rows.fetched) == sum(map(len, calls))
    assert rows.sizes == [b - a for a, b in pairwise(ends)]


def test_tiers_may_have_any_layout():
    """Those whose rows do not lie one after another, or that have gradients, are fetched as
    columns.
    """
    turned = COLUMN[:30].T.contiguous().T
    learned = COLUMN[30:50].clone().requires_grad_()
    rows = Tiered([turned, learned, COLUMN[50:], torch.zeros(0, 3)])
    ids = torch.arange(59, -1, -1)
    found = rows.fetch(ids)
    assert found.detach().equal(COLUMN[ids])
    assert rows.fetched == [30, 20, 10, 0]
    found.sum().backward()
    assert learned.grad is not None
    assert learned.grad.eq(1).all()
    # bits that say "conjugate"
    for lazy in (waves := torch.randn(4, 2, dtype=torch.complex64).conj(), waves.imag):
        assert Tiered([lazy]).fetch(torch.tensor([3, 0])).equal(lazy[[3, 0]])
    odd = torch.arange(33, dtype=torch.uint8)[1:].view(8, 4)  # begins at an odd address
    assert Tiered([odd]).fetch(torch.tensor([7, 0])).equal(odd[[7, 0]])
    assert Cached(odd, range(8), 32).fetch(torch.tensor([7, 0])).equal(odd[[7, 0]])


def test_a_column_is_split_by_heat_over_memory_a_device_and_a_file(tmp_path):
    heat = torch.arange(60.0)
    rows = Tiered.split(
        COLUMN,
        heat,
        [
            ("cpu", 120),
            ("memory", "120 B"),
            (tmp_path / "warm.npy", 0.25),
            (tmp_path / "cold.npy", None),
        ],
    )
    assert rows.sizes == [10, 10, 15, 25]
    assert np.load(tmp_path / "cold.npy").tolist() == COLUMN[torch.arange(24, -1, -1)].tolist()
    ids = torch.tensor([59, 0, 30, 45, 24, 59])
    assert rows.fetch(ids).equal(COLUMN[ids])
    assert rows.fetched == [2, 1, 1, 2]
    assert "10 rows in memory of cpu" in repr(rows)
    mixed = Tiered.split(
        COLUMN,
        np.random.default_rng(0).permutation(60),
        [("memory", 240), (tmp_path / "rest.npy", None)],
    )
    assert mixed.fetch(torch.arange(60)).equal(COLUMN)
    chained = Cached(rows, heat, 60)  # any rows above any others
    assert chained.fetch(ids).equal(COLUMN[ids])


def test_as_much_is_kept_as_fits():
    assert len(Cached(COLUMN, torch.arange(60), "12 B").ids) == 1
    assert len(Cached(COLUMN, torch.arange(60), "2 GB").ids) == 60
    assert len(Cached(torch.arange(6, dtype=torch.uint8), range(6), 5).ids) == 5
    # a row without numbers counts as a byte
    assert len(Cached(torch.zeros(6, 0), range(6), 5).ids) == 5


def test_rows_of_a_users_own_under_a_cache():
    own = OwnRows(torch.arange(20.0).view(10, 2))
    assert isinstance(own, storage.Rows)
    rows = Cached(own, range(10), 32)
    assert rows.fetch(torch.tensor([9, 0, 9])).tolist() == [[18, 19], [0, 1], [18, 19]]
    assert (rows.hits, rows.misses, own.fetched) == (2, 1, 4 + 1)


@given(
    some_ids, st.just(0) | st.integers(56, 3000), st.sampled_from([torch.float32, torch.float64])
)
def test_sparse_rows_are_cached_and_split(calls, memory, dtype):
    dense = (COLUMN % 4 == 1).to(dtype) * COLUMN.to(dtype)
    column = dense.to_sparse_csr()
    heat = np.random.default_rng(memory).permutation(60)
    rows = Cached(column, heat, memory)
    assert rows.layout == torch.sparse_csr
    tiers = Tiered.split(column, heat, [("memory", 0.3), ("cpu", None)])
    for ids in [*calls, range(60)]:
        wanted = torch.tensor(ids, dtype=torch.int64)
        for one in (rows, tiers):
            found = one.fetch(wanted)
            assert found.layout == torch.sparse_csr
            assert found.to_dense().equal(dense[wanted])


def test_sparse_rows_in_files_under_a_cache_and_tiers(tmp_path):
    dense = (COLUMN % 4 == 1) * COLUMN
    storage.save_sparse(tmp_path / "x", dense.to_sparse_csr())
    rows = storage.open(tmp_path / "x")
    ids = torch.tensor([59, 3, 3, 0])
    assert Cached(rows, range(60), "200 B").fetch(ids).to_dense().equal(dense[ids])
    split = Tiered.split(rows, range(60), [("memory", "300 B"), (tmp_path / "cold", None)])
    assert split.fetch(ids).to_dense().equal(dense[ids])
    assert min(split.sizes) > 0
    assert len(repr(Cached(dense, range(60), 60))) < 100


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=9),
    st.integers(0, 300),
    st.randoms(use_true_random=False),
)
def test_as_many_sparse_rows_are_cached_as_fit(counts, memory, random):
    dense = torch.tensor([[1.0] * count + [0.0] * (4 - count) for count in counts])
    order = random.sample(range(len(counts)), len(counts))
    ends = np.cumsum([8 + 12 * counts[i] for i in order])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodeflow.storage._memory._SPARSE_PIECE", random.randint(1, 9))
        if 0 < memory < ends[0]:
            with pytest.raises(ValueError, match=f"a row takes {ends[0]} bytes"):
                Cached(dense.to_sparse_csr(), -np.argsort(order), memory)
        else:
            rows = Cached(dense.to_sparse_csr(), -np.argsort(order), memory)
            assert rows.ids.tolist() == order[: int((ends <= memory).sum())]
            assert rows.fetch(torch.arange(len(counts))).to_dense().equal(dense)


@given(st.lists(st.integers(0, 4), max_size=9))
def test_a_mean_row_is_that_of_all_rows_where_they_are_few(counts):
    rows = (
        torch.tensor([[1.0] * count + [0.0] * (4 - count) for count in counts])
        .reshape(-1, 4)
        .to_sparse_csr()
    )
    assert _memory.mean_bytes(rows) == (math.ceil(8 + 12 * np.mean(counts)) if counts else 8)


def test_slots_that_are_written_again_take_no_more_memory():
    rows = torch.ones(4, 3).to_sparse_csr()
    pool = _plan.SparsePool(rows, 4)
    slots = np.arange(4)
    none = np.full(4, -1)
    size = len(pool._indices)
    assert size * (8 + 4) <= 4 * _memory.mean_bytes(rows)
    for _ in range(9):
        assert pool.serve(none, slots, rows).to_dense().eq(1).all()
        assert len(pool._indices) == size
    assert pool.serve(slots, none, torch.zeros(0, 3).to_sparse_csr()).to_dense().eq(1).all()


@pytest.mark.parametrize("make", [lambda x: Tiered([x]), lambda x: Cached(x, range(2000), 6400)])
def test_threads_that_fetch_together_get_their_rows(make):
    column = torch.arange(2000.0).view(-1, 1).repeat(1, 16)
    rows = make(column)
    random = np.random.default_rng(0)
    calls = [torch.from_numpy(random.integers(0, 2000, 300)) for _ in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda ids: bool(rows.fetch(ids).eq(column[ids]).all()), calls))
    assert all(found)


# ---- heat


edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def test_presampling_counts_the_batches_of_a_node():
    graph = random_graph(0, 50, 300)
    loader = NodeFlowLoader(NeighborSampler(graph, [2, 3]), torch.arange(20), 4, shuffle=True)
    counts = torch.zeros(50, dtype=torch.int64)
    for _ in range(3):
        for batch in loader:
            counts[batch.layers[0].parent_nid] += 1
    fresh = NodeFlowLoader(NeighborSampler(graph, [2, 3]), torch.arange(20), 4, shuffle=True)
    assert presample(fresh, 3).equal(counts)
    assert presample(fresh, [0, 1, 2]).equal(counts)
    assert fresh.epoch == -1
    assert presample(fresh, 2, layer=-1).equal((torch.arange(50) < 20).long() * 2)


@given(edges)
def test_degrees_count_the_edges_by_which_a_node_is_drawn(pairs):
    src, dst = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(src, dst, num_nodes=7)
    drawn = np.bincount(src, minlength=7)
    drawing = np.bincount(dst, minlength=7)
    assert degree_heat(graph).tolist() == drawn.tolist()
    assert degree_heat(graph, "out").tolist() == drawing.tolist()
    assert degree_heat(graph, "both").tolist() == (drawn + drawing).tolist()


@given(edges, st.integers(1, 3))
def test_one_hop_of_single_edges_is_exact(pairs, fanout):
    """Against all outcomes: every edge of a seed is drawn by itself with probability fanout /
    degree.
    """
    src, dst = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(src, dst, num_nodes=7)
    seeds = [0, 3]
    degree = np.bincount(dst, minlength=7)
    drawable = [(u, min(1.0, fanout / degree[v])) for u, v in pairs if v in seeds]
    expected = np.zeros(7)
    for outcome in product([False, True], repeat=len(drawable)) if len(drawable) < 9 else []:
        odds = np.prod([p if on else 1 - p for on, (_, p) in zip(outcome, drawable, strict=True)])
        reached = {*seeds, *(u for on, (u, _) in zip(outcome, drawable, strict=True) if on)}
        expected[list(reached)] += odds
    if len(drawable) < 9:
        assert reach_heat(graph, seeds, [fanout], 2).tolist() == pytest.approx(
            expected.tolist(), abs=1e-12
        )


def test_two_hops_are_close_to_what_is_drawn():
    graph = random_graph(1, 300, 2400)
    seeds = np.arange(0, 300, 3)
    loader = NodeFlowLoader(NeighborSampler(graph, [3, 3]), seeds, 5, shuffle=True)
    counted = presample(loader, 20).double() / (20 * len(loader))
    computed = reach_heat(graph, seeds, [3, 3], 5)
    assert np.corrcoef(counted, computed)[0, 1] > 0.95
    assert abs(counted.sum() / computed.sum() - 1) < 0.1


def test_reach_by_relation():
    """Every node draws for each relation on its own, as if the others were not there; numbers hold
    for each.
    """
    random = np.random.default_rng(0)
    sizes = {"a": 30, "empty": 0, "b": 20}
    ends = [("a", "x", "b"), ("b", "y", "b"), ("b", "z", "a"), ("a", "y", "b")]
    pairs = {
        r: (random.integers(0, sizes[r[0]], 90), random.integers(0, sizes[r[2]], 90)) for r in ends
    }
    graph = Graph.typed(sizes, pairs)
    fanouts: list[Any] = [{"x": 2, ("b", "y", "b"): -1, "z": 1}, 2]
    p = np.zeros(50)
    p[30:40] = 0.5
    for fanout in reversed(fanouts):
        missed = 1 - p
        for (a, name, b), (src, dst) in pairs.items():
            k = (
                fanout
                if isinstance(fanout, int)
                else fanout.get((a, name, b), fanout.get(name, 0) if name != "y" else 0)
            )
            degree = np.bincount(dst, minlength=sizes[b])
            for u, v in zip(src, dst, strict=True):
                share = 1.0 if k == -1 else min(1.0, k / degree[v])
                missed[graph.nodes[a].ids.start + u] *= 1 - p[graph.nodes[b].ids.start + v] * share
        p = np.minimum(1, 1 - missed)
    assert reach_heat(graph, range(30, 40), fanouts, 5).tolist() == pytest.approx(
        p.tolist(), abs=1e-12
    )
    loader = NodeFlowLoader(NeighborSampler(graph, fanouts), range(30, 40), 5, shuffle=True)
    counted = presample(loader, 200).double() / (200 * len(loader))
    assert abs(float(counted.sum()) / float(p.sum()) - 1) < 0.1
    with pytest.raises(KeyError, match="no relation 'w'"):
        reach_heat(graph, [0], [{"w": 1}], 1)


def test_fanouts_are_in_flow_order():
    """Seed 4 draws 2 and 3 or one of them, and these their only neighbours; in the second hop it
    draws again.
    """
    graph = Graph.from_edges([2, 3, 0, 1], [4, 4, 2, 3])
    assert reach_heat(graph, [4], [1, 2], 1).tolist() == [1, 1, 1, 1, 1]
    assert reach_heat(graph, [4], [2, 1], 1).tolist() == [0.5, 0.5, 1, 1, 1]


def test_a_node_that_is_twice_in_a_batch_is_read_once():
    """Each seed of a ShadowSampler has a subgraph of its own; neighbours that they share are in
    each of them.
    """
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3])
    loader = NodeFlowLoader(ShadowSampler(graph, 1, depth=2, fanout=5), [1, 2, 3], 3)
    (batch,) = loader
    assert len(batch.layers[0].parent_nid) > 4
    assert presample(loader).tolist() == [1, 1, 1, 1]


def test_all_neighbours_are_certain():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5)
    for everything in (None, -1):
        assert reach_heat(graph, [3], [everything, everything], 1).tolist() == [0, 1, 1, 1, 0]


def test_the_hottest_come_first_and_reorder_a_graph():
    heat = torch.tensor([2.0, 9.0, 2.0, -1.0])
    order = hottest(heat)
    assert order.tolist() == [1, 0, 2, 3]
    graph = Graph.from_edges([0, 1], [1, 3], num_nodes=4)
    reordered = transform.reorder(graph, order)
    assert reordered.ndata["parent_nid"].tolist() == [1, 0, 2, 3]


def test_rows_of_ones_own_may_have_attributes_of_any_name():
    class Mine:
        shape = (4, 1)
        dtype = torch.float32
        pieces = "mine"
        here = ("also",)

        def fetch(self, ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
            rows = ids.float().unsqueeze(1)
            return rows if out is None else out.copy_(rows)

    cached = storage.Cached(Mine(), [1, 2, 3, 4], memory="8 B")
    assert cached.fetch([0, 3, 1]).tolist() == [[0.0], [3.0], [1.0]]
