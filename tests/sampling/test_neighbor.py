"""NeighborSampler: what it draws, in which order, and in which modes; all against a pure Python sampler."""

from __future__ import annotations

import itertools
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from _support.sampler_reference import assert_equals_reference, fingerprint, picked_positions, random_graph, star

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlowLoader

MODES = [
    {},
    {"replace": True},
    {"include_dst": False},
    {"include_dst": False, "replace": True},
    {"reuse": True},
    {"reuse": True, "replace": True},
    {"direction": "out"},
    {"direction": "out", "reuse": True},
    {"direction": "out", "include_dst": False},
]


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("fanouts", [[3], [2, 3], [1, -1, 2], [-1, 2], [40, 35]], ids=str)
def test_equals_pure_python(options, fanouts):
    """Floyd's method, the bounded draw and the hashes again in Python integers: the very same NodeFlow."""
    for number, seeds in enumerate([[5], [7, 1, 7, 39, 0], [], list(range(40))]):
        graph = random_graph(number)
        sampler = NeighborSampler(graph, fanouts, seed=number - 1, **options)
        run = {"epoch": number, "batch_number": None if number % 2 else number}
        batch = sampler(seeds, **run)
        assert_equals_reference(batch, graph, fanouts, seeds, seed=number - 1, **options, **run)


@pytest.mark.parametrize("fanout", [31, 32, 33, 34, 64, 65, 99])
def test_many_picks_equal_pure_python(fanout):
    # from 33 picks on a hash set replaces the scan; the last list has 100 edges, so 99 leaves out a single one
    graph = star(100, hubs=3)
    seeds = [2, 0, 1]
    assert_equals_reference(NeighborSampler(graph, [fanout], seed=fanout)(seeds), graph, [fanout], seeds, seed=fanout)


def test_hashed_and_scanned_destinations_in_one_flow():
    src = np.concatenate([np.arange(5, 205), np.arange(10, 15), np.arange(20, 60), np.arange(50, 84)])
    dst = np.repeat([0, 1, 2, 3], [200, 5, 40, 34])
    graph = Graph.from_edges(src, dst)
    assert_equals_reference(NeighborSampler(graph, [35])([3, 2, 1, 0, 4]), graph, [35], [3, 2, 1, 0, 4])


# ---- fanouts


def test_last_fanout_belongs_to_the_seeds():
    # a tree in which everybody has five in-neighbours, so that every fanout shows
    src = torch.arange(1, 5 + 25 + 1)
    graph = Graph.from_edges(src, (src - 1) // 5)
    batch = NeighborSampler(graph, fanouts=[2, 3])([0])
    assert batch.flows[1].in_degrees.tolist() == [3]
    assert batch.flows[0].in_degrees.tolist() == [2, 2, 2, 2]
    for fanouts in itertools.permutations([1, 2, 4]):
        batch = NeighborSampler(random_graph(0, 30, 600), fanouts)([3, 4])
        assert [set(flow.in_degrees.tolist()) for flow in batch.flows] == [{f} for f in fanouts]


def test_kinds_of_fanouts():
    graph = random_graph(3)
    expected = fingerprint(NeighborSampler(graph, [2, 3])([1, 2]))
    for fanouts in ((2, 3), range(2, 4), np.array([2, 3]), torch.tensor([2, 3]), [np.int32(2), torch.tensor(3)]):
        assert fingerprint(NeighborSampler(graph, fanouts)([1, 2])) == expected


def test_short_lists_are_kept_whole_in_their_order():
    graph = star(5)
    for fanout in (-1, 5, 6, 2**40, 2**63 - 1):
        batch = NeighborSampler(graph, [fanout])([0])
        assert picked_positions(batch) == [[0, 1, 2, 3, 4]]
        assert batch.flows[0].weight.tolist() == [1.0] * 5


def test_with_replacement_draws_the_fanout_from_short_lists_too():
    batch = NeighborSampler(star(2), [7], replace=True)([0, 1])
    assert batch.flows[0].in_degrees.tolist() == [7, 0]
    assert set(batch.flows[0].parent_eid.tolist()) <= {0, 1}
    assert batch.flows[0].weight.tolist() == [np.float32(2 / 7)] * 7
    assert picked_positions(NeighborSampler(star(4), [-1], replace=True)([0])) == [[0, 1, 2, 3]]


def test_without_replacement_draws_no_edge_twice():
    sampler = NeighborSampler(star(60, hubs=40), [45])
    assert all(len(set(picked)) == 45 for picked in picked_positions(sampler(range(40))))
    sampler = NeighborSampler(star(60, hubs=40), [30])
    assert all(len(set(picked)) == 30 for picked in picked_positions(sampler(range(40))))


def test_multi_edges_and_self_loops_are_edges_of_their_own():
    graph = Graph.from_edges([1, 1, 1, 0, 2], [0, 0, 0, 0, 1])
    seen = set()
    for epoch in range(200):
        batch = NeighborSampler(graph, [2])([0], epoch=epoch)
        seen.add(frozenset(batch.flows[0].parent_eid.tolist()))
        assert batch.layers[0].parent_nid.tolist()[0] == 0
    assert seen == {frozenset(pair) for pair in itertools.combinations(range(4), 2)}


def test_weights_are_degree_over_number_drawn():
    graph = random_graph(5)
    for options in ({}, {"replace": True}, {"reuse": True}, {"include_dst": False}, {"direction": "out"}):
        batch = NeighborSampler(graph, [2, 4], **options)(range(0, 40, 3))
        degrees = graph.out_degrees() if options.get("direction") == "out" else graph.in_degrees()
        for flow in batch.flows:
            number = flow.in_degrees
            expected = (degrees[flow.dst_layer.parent_nid] / number.clamp(min=1)).repeat_interleave(number)
            assert flow.weight.dtype == torch.float32
            torch.testing.assert_close(flow.weight, expected, rtol=1e-7, atol=0, check_dtype=False)
    for flow in FullSampler(graph, 2)([1, 2, 3]).flows:
        assert flow.weight.equal(torch.ones(flow.num_edges))


# ---- seeds


def test_repeated_isolated_and_empty_seeds():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], num_nodes=6)
    for options in MODES:
        sampler = NeighborSampler(graph, [1, 1], **options)
        batch = sampler([2, 5, 2, 4, 2])
        assert batch.seeds.tolist() == [2, 5, 4]
        assert batch.seed_index.tolist() == [0, 1, 0, 2, 0]
        assert batch.flows[-1].in_degrees.tolist() == [1, 0, 0]
        batch.validate()
        alone = sampler([5])
        assert alone.flow_sizes == (0, 0)
        assert alone.layer_sizes == ((1, 1, 1) if sampler.include_dst else (0, 0, 1))
        alone.validate()
        empty = sampler([])
        assert empty.layer_sizes == (0, 0, 0)
        assert empty.seed_index.dtype == torch.int64
        assert [flow.weight.shape for flow in empty.flows] == [(0,), (0,)]
        empty.validate()


def test_graph_without_nodes_or_edges():
    nothing = Graph([0], [])
    assert NeighborSampler(nothing, [3])([]).layer_sizes == (0, 0)
    lonely = Graph([0] * 4, [])
    for options in MODES:
        assert NeighborSampler(lonely, [3, -1], **options)([2, 1]).flow_sizes == (0, 0)


def test_kinds_of_seeds():
    sampler = NeighborSampler(random_graph(2), [2, 2])
    expected = fingerprint(sampler([3, 4, 5]))
    kinds = [
        (3, 4, 5),
        range(3, 6),
        np.array([3, 4, 5], np.int16),
        torch.tensor([3, 4, 5], dtype=torch.int32),
        torch.tensor([3, 0, 4, 0, 5])[::2],
        np.array([5, 4, 3])[::-1],
        [torch.tensor(3), torch.tensor(4), torch.tensor(5)],
        [np.int64(3), np.int64(4), np.int64(5)],
    ]
    for seeds in kinds:
        assert fingerprint(sampler(seeds)) == expected


def test_a_batch_owns_its_arrays():
    graph = random_graph(2)
    seeds = torch.tensor([3, 4, 5])
    for options in MODES:
        batch = NeighborSampler(graph, [-1, -1], **options)(seeds)
        expected = fingerprint(batch)
        seeds += 1
        assert fingerprint(batch) == expected
        seeds -= 1


# ---- order


@pytest.mark.parametrize("options", [{}, {"reuse": True}, {"direction": "out"}])
def test_layers_begin_with_the_next_layer(options):
    batch = NeighborSampler(random_graph(4), [3, 2, 2], **options)([9, 3, 12])
    for flow in batch.flows:
        size = flow.num_dst
        assert flow.src_layer.parent_nid[:size].equal(flow.dst_layer.parent_nid)
        assert flow.dst_in_src.tolist() == list(range(size))
        # the others follow in order of first appearance
        new = [v for v in flow.indices.tolist() if v >= size]
        assert list(dict.fromkeys(new)) == list(range(size, flow.num_src))


def test_neighbours_only_are_sorted():
    batch = NeighborSampler(random_graph(4), [3, 2, 2], include_dst=False)([9, 3, 12])
    assert batch.seeds.tolist() == [9, 3, 12]
    for flow in batch.flows:
        ids = flow.src_layer.parent_nid
        assert ids.equal(ids.unique())
        assert flow.indices.unique().tolist() == list(range(flow.num_src))


# ---- reuse


def test_a_node_draws_once_with_the_fanout_of_its_first_flow():
    graph = random_graph(6, 50, 1000)
    batch = NeighborSampler(graph, [2, 5, 3], reuse=True)([1, 2, 3, 2])
    drawn: dict[int, list[int]] = {}
    for i in (2, 1, 0):
        for v, picked in zip(batch.layers[i + 1].parent_nid.tolist(), picked_positions(batch, i), strict=True):
            if v not in drawn:
                assert len(picked) == [2, 5, 3][i]
            assert drawn.setdefault(v, picked) == picked


def test_reuse_shares_one_structure():
    batch = NeighborSampler(random_graph(6, 50, 1000), [2, 2, 3], reuse=True)([1, 2, 3])
    whole = batch.flows[0]
    for flow in batch.flows:
        for name in ("indptr", "indices", "parent_eid", "weight"):
            part, all_ = getattr(flow, name), getattr(whole, name)
            assert part.data_ptr() == all_.data_ptr()
            assert part.equal(all_[: len(part)])
    for layer in batch.layers:
        assert layer.parent_nid.data_ptr() == batch.front.parent_nid.data_ptr()
    batch.validate()


def test_resample_draws_afresh():
    # six flows down from a hub: the chance that six draws of 3 of 100 agree is (1/161700)**5
    graph = star(100)
    batch = NeighborSampler(graph, [3] * 6)([0])
    assert len({tuple(picked_positions(batch, i)[0]) for i in range(6)}) > 1


@pytest.mark.parametrize("direction", ["in", "out"])
def test_full_neighbourhoods_are_the_same_in_both_modes(direction):
    graph = random_graph(8)
    seeds = [4, 4, 17, 30]
    batches = [
        FullSampler(graph, 3, direction=direction),
        FullSampler(graph, 3, direction=direction, reuse=True),
        NeighborSampler(graph, [-1] * 3, direction=direction, reuse=True, seed=5),
        NeighborSampler(graph, [10**6] * 3, direction=direction),
    ]
    assert len({fingerprint(sampler(seeds)) for sampler in batches}) == 1


# ---- directions


def test_out_direction_is_in_direction_of_the_reversed_graph():
    graph = random_graph(9)
    src, dst = graph.edges()
    reverse = Graph.from_edges(dst, src, num_nodes=graph.num_nodes)
    for options in ({}, {"replace": True}, {"reuse": True}, {"include_dst": False}):
        out = NeighborSampler(graph, [3, 2], direction="out", **options)([1, 5, 9])
        assert fingerprint(out) == fingerprint(NeighborSampler(reverse, [3, 2], **options)([1, 5, 9]))


# ---- graphs are never written to


def test_the_graph_stays_as_it_was():
    graph = random_graph(10)
    graph.ndata["x"] = torch.rand(40, 2)
    before = [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)]
    columns = graph.ndata["x"].clone()
    for options in MODES:
        for fanouts in ([2, 2], [-1, 3]):
            NeighborSampler(graph, fanouts, **options)(range(40)).validate()
    assert [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)] == before
    assert graph.ndata["x"].equal(columns)
    assert list(graph.edata) == []


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("with_ids", [True, False])
def test_memory_mapped_graph(tmp_path, dtype, with_ids):
    graph = random_graph(11)
    order = np.asarray(graph.stored_edge_ids)
    arrays = {"indptr": np.asarray(graph.indptr), "indices": graph.indices.astype(dtype), "ids": order.astype(dtype)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    before = {name: (tmp_path / f"{name}.npy").read_bytes() for name in arrays}
    indptr, indices, ids = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays)
    mapped = Graph(indptr, indices, edge_ids=ids if with_ids else None)
    same = graph if with_ids else Graph(arrays["indptr"], arrays["indices"])
    for options in MODES:
        sampler = NeighborSampler(mapped, [2, 3], **options)
        expected = fingerprint(NeighborSampler(same, [2, 3], **options)(range(20)))
        assert fingerprint(sampler(range(20))) == expected
        # the file travels by name, the sampler does not carry its content
        assert fingerprint(pickle.loads(pickle.dumps(sampler))(range(20))) == expected
    assert {name: (tmp_path / f"{name}.npy").read_bytes() for name in arrays} == before


def test_pickled_memory_mapped_sampler_is_small(tmp_path):
    np.save(tmp_path / "indptr.npy", np.arange(100_001))
    np.save(tmp_path / "indices.npy", np.arange(100_000)[::-1].copy())
    graph = Graph(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")))
    assert len(pickle.dumps(NeighborSampler(graph, [2]))) < 5000


# ---- one result everywhere


def test_threads_give_what_one_thread_gives():
    graph = random_graph(12, 200, 3000)
    samplers = [NeighborSampler(graph, [3, -1, 4], seed=s, **options) for s, options in enumerate(MODES)]
    tasks = [(sampler, list(range(k, 200, 17)), k) for k in range(12) for sampler in samplers]
    serial = [fingerprint(sampler(seeds, epoch=k)) for sampler, seeds, k in tasks]
    start = threading.Barrier(8)

    def work(part: int) -> list[str]:
        start.wait()
        return [fingerprint(sampler(seeds, epoch=k)) for sampler, seeds, k in tasks[part:] + tasks[:part]]

    with ThreadPoolExecutor(8) as pool:
        for part, found in zip(range(8), pool.map(work, range(8)), strict=True):
            assert found == serial[part:] + serial[:part]


def test_result_depends_on_its_arguments_only():
    graph = random_graph(13)
    sampler = NeighborSampler(graph, [3, 3], seed=1)
    first = fingerprint(sampler([1, 2, 3]))
    sampler(range(40), epoch=3)
    NeighborSampler(graph, [-1])(range(40))
    assert fingerprint(sampler([1, 2, 3])) == first
    others = [
        sampler([1, 2, 3], epoch=1),
        sampler([1, 2, 3], batch_number=0),
        sampler([1, 2, 3], batch_number=1),
        NeighborSampler(graph, [3, 3], seed=2)([1, 2, 3]),
        NeighborSampler(graph, [3, 3], seed=-1)([1, 2, 3]),
    ]
    assert len({first, *map(fingerprint, others)}) == 6


def test_a_pickled_sampler_draws_the_same():
    graph = random_graph(14)
    for options in MODES:
        sampler = NeighborSampler(graph, [2, 3], seed=4, **options)
        copied = pickle.loads(pickle.dumps(sampler))
        assert fingerprint(copied([1, 2, 30])) == fingerprint(sampler([1, 2, 30]))
        assert repr(copied) == repr(sampler)


def test_global_random_state_is_neither_read_nor_touched():
    graph = random_graph(15)
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the legacy state is what must not be touched
        random.seed(seed)
        before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
        batches = [NeighborSampler(graph, [2, 3], **options)(range(20)) for options in MODES]
        batches += NodeFlowLoader(NeighborSampler(graph, [2]), range(40), 7, shuffle=True, num_workers=2)
        found.append([fingerprint(batch) for batch in batches])
        after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
        assert before[0].equal(after[0])
        assert before[1:] == after[1:]
    assert found[0] == found[1]


def test_torch_defaults_are_not_read():
    sampler = NeighborSampler(random_graph(16), [-1, 3], reuse=True)
    expected = fingerprint(sampler([1, 2, 3]))
    torch.set_default_dtype(torch.float64)
    try:
        assert fingerprint(sampler([1, 2, 3])) == expected
        assert fingerprint(FullSampler(sampler.graph, 1)([3])) == fingerprint(FullSampler(sampler.graph, 1)([3]))
        assert FullSampler(sampler.graph, 1)([3]).flows[0].weight.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):  # stands for any default device that is not the CPU
        assert fingerprint(sampler([1, 2, 3])) == expected


def test_repr():
    assert repr(NeighborSampler(Graph.from_edges([0], [1]), [-1, 2], seed=3)) == (
        "NeighborSampler(Graph(2 nodes, 1 edges), fanouts=(-1, 2), replace=False, direction='in', include_dst=True, "
        "reuse=False, seed=3)"
    )
