"""NeighborSampler: what it draws, in which order, and in which modes; all against a pure Python
sampler.
"""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.sampler_families import MODES
from _support.sampler_reference import assert_equals_reference, fingerprint, random_graph, star
from _support.views import viewed

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlowLoader


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("fanouts", [[3], [2, 3], [1, -1, 2], [-1, 2], [40, 35]], ids=str)
def test_equals_pure_python(options, fanouts):
    """Floyd's method, the bounded draw and the hashes again in Python integers: the very same
    NodeFlow.
    """
    for number, seeds in enumerate([[5], [7, 1, 7, 39, 0], [], list(range(40))]):
        graph = random_graph(number)
        sampler = viewed(NeighborSampler, graph, fanouts, seed=number - 1, **options)
        run = {"epoch": number, "batch_number": None if number % 2 else number}
        batch = sampler(seeds, **run)
        assert_equals_reference(batch, graph, fanouts, seeds, seed=number - 1, **options, **run)


@pytest.mark.parametrize("fanout", [31, 32, 33, 34, 64, 65, 99])
def test_many_picks_equal_pure_python(fanout):
    # from 33 picks on a hash set replaces the scan; the last list has 100 edges, so 99 leaves out a
    # single one
    graph = star(100, hubs=3)
    seeds = [2, 0, 1]
    assert_equals_reference(
        NeighborSampler(graph, [fanout], seed=fanout)(seeds), graph, [fanout], seeds, seed=fanout
    )


def test_hashed_and_scanned_destinations_in_one_flow():
    src = np.concatenate(
        [np.arange(5, 205), np.arange(10, 15), np.arange(20, 60), np.arange(50, 84)]
    )
    dst = np.repeat([0, 1, 2, 3], [200, 5, 40, 34])
    graph = Graph.from_edges(src, dst)
    assert_equals_reference(
        NeighborSampler(graph, [35])([3, 2, 1, 0, 4]), graph, [35], [3, 2, 1, 0, 4]
    )


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
    for fanouts in (
        (2, 3),
        range(2, 4),
        np.array([2, 3]),
        torch.tensor([2, 3]),
        [np.int32(2), torch.tensor(3)],
    ):
        assert fingerprint(NeighborSampler(graph, fanouts)([1, 2])) == expected


def test_a_batch_owns_its_arrays():
    graph = random_graph(2)
    seeds = torch.tensor([3, 4, 5])
    for options in MODES:
        batch = viewed(NeighborSampler, graph, [-1, -1], **options)(seeds)
        expected = fingerprint(batch)
        seeds += 1
        assert fingerprint(batch) == expected
        seeds -= 1


# ---- reuse


def test_reuse_shares_one_structure():
    batch = NeighborSampler(random_graph(6, 50, 1000), [2, 2, 3], reuse=True)([1, 2, 3])
    whole = batch.flows[0]
    for flow in batch.flows:
        for name in ("indptr", "indices", "parent_eid", "weight"):
            part = getattr(flow, name)
            all_ = getattr(whole, name)
            assert part.data_ptr() == all_.data_ptr()
            assert part.equal(all_[: len(part)])
    for layer in batch.layers:
        assert layer.parent_nid.data_ptr() == batch.front.parent_nid.data_ptr()
    batch.validate()


@pytest.mark.parametrize("direction", ["in", "out"])
def test_full_neighbourhoods_are_the_same_in_both_modes(direction):
    graph = random_graph(8)
    seeds = [4, 4, 17, 30]
    batches = [
        FullSampler(graph.view(direction), 3),
        FullSampler(graph.view(direction), 3, reuse=True),
        NeighborSampler(graph.view(direction), [-1] * 3, reuse=True, seed=5),
        NeighborSampler(graph.view(direction), [2**63 - 1] * 3),
    ]
    assert len({fingerprint(sampler(seeds)) for sampler in batches}) == 1


def test_pickled_memory_mapped_sampler_is_small(tmp_path):
    np.save(tmp_path / "indptr.npy", np.arange(100_001))
    np.save(tmp_path / "indices.npy", np.arange(100_000)[::-1].copy())
    graph = Graph(
        *(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices"))
    )
    data = pickle.dumps(NeighborSampler(graph, [2]))
    assert len(data) < 5000  # the files travel by name
    assert fingerprint(pickle.loads(data)([7])) == fingerprint(NeighborSampler(graph, [2])([7]))


def test_torch_defaults_are_not_read():
    sampler = NeighborSampler(random_graph(16), [-1, 3], reuse=True)
    expected = fingerprint(sampler([1, 2, 3]))
    torch.set_default_dtype(torch.float64)
    try:
        assert fingerprint(sampler([1, 2, 3])) == expected
        assert fingerprint(FullSampler(sampler.graph, 1)([3])) == fingerprint(
            FullSampler(sampler.graph, 1)([3])
        )
        assert FullSampler(sampler.graph, 1)([3]).flows[0].weight.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):  # stands for any default device that is not the CPU
        assert fingerprint(sampler([1, 2, 3])) == expected


GRAPH = random_graph(0)

BAD_SEEDS = [
    ([40], IndexError, r"seeds\[0\] is 40, but node ids go from 0 to 39"),
    ([3, -1], IndexError, r"seeds\[1\] is -1, but node ids go from 0 to 39"),
    (torch.tensor([0, 1, 2**40]), IndexError, rf"seeds\[2\] is {2**40}"),
    ([1.0, 2.0], TypeError, "seeds must .*float"),
    ([1, True], TypeError, "seeds must .*bool"),
    (
        torch.ones(39, dtype=torch.bool),
        ValueError,
        r"a mask of seeds must have one entry per node \(40\), got shape",
    ),
    (torch.zeros(0, dtype=torch.bool), ValueError, "a mask of seeds"),
    ([torch.tensor(True), torch.tensor(False)], TypeError, "bool"),
    (3, TypeError, "seeds must be"),
    (None, TypeError, "seeds must be"),
    (torch.tensor([[[1, 2]]]), ValueError, "seeds must be one-dimensional"),
    ([[[1]], [[2]]], ValueError, "seeds must be one-dimensional"),
    (torch.tensor([[1, 2], [3, 40]]), IndexError, r"seeds\[3\] is 40"),
    ([[1], [2, 3]], (ValueError, TypeError), "seeds"),
]


@pytest.mark.parametrize(("seeds", "error", "words"), BAD_SEEDS)
def test_bad_seeds(seeds, error, words):
    before = [array.tobytes() for array in (GRAPH.indptr, GRAPH.indices, GRAPH.stored_edge_ids)]
    samplers = [
        NeighborSampler(GRAPH, [2, 2]),
        FullSampler(GRAPH, 1),
        NeighborSampler(GRAPH, [2], reuse=True),
    ]
    expected = fingerprint(samplers[0]([1, 2]))
    for sampler in samplers:
        with pytest.raises(error, match=words):
            sampler(seeds)
    with pytest.raises(error, match=words):
        NodeFlowLoader(samplers[0], seeds, 2)
    assert [
        array.tobytes() for array in (GRAPH.indptr, GRAPH.indices, GRAPH.stored_edge_ids)
    ] == before
    assert fingerprint(samplers[0]([1, 2])) == expected


@pytest.mark.parametrize(
    ("fanouts", "error", "words"),
    [
        ([], ValueError, "fanouts must have one number per flow, got none"),
        (torch.zeros(0, dtype=torch.int64), ValueError, "got none"),
        ([0], ValueError, r"fanouts\[0\] must be -1 \(all neighbours\) or at least 1, got 0"),
        ([3, -2], ValueError, r"fanouts\[1\] must be -1 \(all neighbours\) or at least 1, got -2"),
        ([2**63], ValueError, r"fanouts\[0\]"),
        ([2**70], ValueError, r"fanouts\[0\]"),
        (
            5,
            TypeError,
            r"fanouts must be a list with one number per flow, as in \[10, 25\], or a dict",
        ),
        (np.int64(5), TypeError, "fanouts must be a list"),
        (np.array(5), TypeError, "fanouts must be a list"),
        (torch.tensor(5), TypeError, "fanouts must be a list"),
        (True, TypeError, "fanouts must be a list"),
        (None, TypeError, "fanouts in flow order, .* are needed, or num_neighbors .* got neither"),
        ("12", TypeError, "fanouts must be a list"),
        ({1: 2}, TypeError, "fanouts must be a list"),
        ({1, 2}, TypeError, "fanouts must be a list"),
        (np.ones((1, 2), np.int64), TypeError, "fanouts must be a list"),
        ([2.0], TypeError, r"fanouts\[0\] must be an integer, got float 2.0"),
        (torch.tensor([2.0]), TypeError, r"fanouts\[0\] must be an integer"),
        ([1, True], TypeError, r"fanouts\[1\] must be an integer, got bool True"),
        ([[1, 2]], TypeError, r"fanouts\[0\] must be an integer"),
    ],
)
def test_bad_fanouts(fanouts, error, words):
    with pytest.raises(error, match=words):
        NeighborSampler(GRAPH, fanouts)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: NeighborSampler(None, [2]),
            TypeError,
            "graph must be a nodeflow.Graph, or a view of one",
        ),
        (
            lambda: NeighborSampler((GRAPH.indptr, GRAPH.indices), [2]),
            TypeError,
            "graph must be a nodeflow.Graph",
        ),
        (
            lambda: NeighborSampler(GRAPH.view("up"), [2]),
            ValueError,
            "direction must be 'in', 'out' or 'both', got 'up'",
        ),
        (lambda: NeighborSampler(GRAPH.view(None), [2]), ValueError, "direction must be"),
        (
            lambda: NeighborSampler(GRAPH, [2], reuse=True, include_dst=False),
            ValueError,
            "needs include_dst=True",
        ),
        (
            lambda: FullSampler(GRAPH, 1, reuse=True, include_dst=False),
            ValueError,
            "needs include_dst=True",
        ),
        (lambda: NeighborSampler(GRAPH, [2], seed=0.5), TypeError, "seed must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2], seed=None), TypeError, "seed must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2], True), TypeError, "positional"),
        (lambda: FullSampler(GRAPH, 0), ValueError, "num_flows must be at least 1, got 0"),
        (lambda: FullSampler(GRAPH, -1), ValueError, "num_flows must be at least 1"),
        (lambda: FullSampler(GRAPH, 1.0), TypeError, "num_flows must be an integer"),
        (lambda: FullSampler(GRAPH, [1]), TypeError, "num_flows must be an integer"),
        (
            lambda: NeighborSampler(GRAPH, [2])([1], epoch=0.5),
            TypeError,
            "epoch must be an integer",
        ),
        (
            lambda: NeighborSampler(GRAPH, [2])([1], batch_number="a"),
            TypeError,
            "batch_number must be an integer",
        ),
        (
            lambda: NeighborSampler(GRAPH, [2])([1], batch_number=True),
            TypeError,
            "batch_number must be an integer",
        ),
        (lambda: NeighborSampler(Graph([0], []), [2])([0]), IndexError, "there is no node at all"),
        (
            lambda: NeighborSampler(GRAPH, [2**62], replace=True),
            ValueError,
            "with replacement must be at most 16777216",
        ),
        (
            lambda: NeighborSampler(GRAPH, [1])({0, 1}),
            TypeError,
            r"must be ordered, got a set; pass sorted\(seeds\)",
        ),
    ],
)
def test_bad_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (
            torch.ones(3, dtype=torch.complex64),
            TypeError,
            "must hold real numbers, got dtype complex64",
        ),
        (
            torch.tensor([1.0, 1e300, 1.0], dtype=torch.float64),
            ValueError,
            r"edge 1 has 1e\+300; multiply the column",
        ),
        (
            torch.tensor([1.0, 1.0, -1e-60], dtype=torch.float64),
            ValueError,
            "edge 2 has -1e-60; multiply the column",
        ),
    ],
)
def test_columns_that_float32_weights_cannot_hold(column, error, words):
    graph = Graph.from_edges([1, 2, 3], [0, 0, 0], edata={"w": column})
    with pytest.raises(error, match=words):
        NeighborSampler(graph.view(weight="w"), [2])
