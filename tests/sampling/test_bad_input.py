"""What samplers refuse: a clear error by name, and everything as it was before."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.sampler_reference import fingerprint, random_graph

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlowLoader

GRAPH = random_graph(0)

BAD_SEEDS = [
    ([40], IndexError, r"seeds\[0\] is 40, but node ids go from 0 to 39"),
    ([3, -1], IndexError, r"seeds\[1\] is -1, but node ids go from 0 to 39"),
    (torch.tensor([0, 1, 2**40]), IndexError, rf"seeds\[2\] is {2**40}"),
    (np.array([2**63], np.uint64), IndexError, rf"seeds\[0\] is {2**63}"),
    (np.array([-1], np.int8), IndexError, r"seeds\[0\] is -1"),
    ([1.0, 2.0], TypeError, "seeds must .*float"),
    ([1, True], TypeError, "seeds must .*bool"),
    ([np.bool_(True), 2], TypeError, "seeds must .*bool"),
    (torch.ones(39, dtype=torch.bool), ValueError, r"a mask of seeds must have one entry per node \(40\), got shape"),
    (torch.zeros(0, dtype=torch.bool), ValueError, "a mask of seeds"),
    ([torch.tensor(True), torch.tensor(False)], TypeError, "bool"),
    ([torch.tensor(1.5)], TypeError, "seeds must .*float"),
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
    samplers = [NeighborSampler(GRAPH, [2, 2]), FullSampler(GRAPH, 1), NeighborSampler(GRAPH, [2], reuse=True)]
    expected = fingerprint(samplers[0]([1, 2]))
    for sampler in samplers:
        with pytest.raises(error, match=words):
            sampler(seeds)
    with pytest.raises(error, match=words):
        NodeFlowLoader(samplers[0], seeds, 2)
    assert [array.tobytes() for array in (GRAPH.indptr, GRAPH.indices, GRAPH.stored_edge_ids)] == before
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
        (5, TypeError, r"fanouts must be a list with one number per flow, as in \[10, 25\], got int 5"),
        (np.int64(5), TypeError, "fanouts must be a list"),
        (np.array(5), TypeError, "fanouts must be a list"),
        (torch.tensor(5), TypeError, "fanouts must be a list"),
        (True, TypeError, "fanouts must be a list"),
        (None, TypeError, "fanouts must be a list"),
        ("12", TypeError, "fanouts must be a list"),
        ({1: 2}, TypeError, "fanouts must be a list"),
        ({1, 2}, TypeError, "fanouts must be a list"),
        (np.ones((1, 2), np.int64), TypeError, "fanouts must be a list"),
        ([2.0], TypeError, r"fanouts\[0\] must be an integer, got float 2.0"),
        (np.array([2.0]), TypeError, r"fanouts\[0\] must be an integer"),
        (torch.tensor([2.0]), TypeError, r"fanouts\[0\] must be an integer"),
        ([1, True], TypeError, r"fanouts\[1\] must be an integer, got bool True"),
        (np.array([True]), TypeError, r"fanouts\[0\] must be an integer"),
        (torch.tensor([True]), TypeError, r"fanouts\[0\] must be an integer"),
        ([[1, 2]], TypeError, r"fanouts\[0\] must be an integer"),
        ([None], TypeError, r"fanouts\[0\] must be an integer"),
    ],
)
def test_bad_fanouts(fanouts, error, words):
    with pytest.raises(error, match=words):
        NeighborSampler(GRAPH, fanouts)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: NeighborSampler(None, [2]), TypeError, "graph must be a nodeflow.Graph, got NoneType"),
        (lambda: NeighborSampler((GRAPH.indptr, GRAPH.indices), [2]), TypeError, "graph must be a nodeflow.Graph"),
        (
            lambda: NeighborSampler(GRAPH, [2], direction="up"),
            ValueError,
            "direction must be 'in', 'out' or 'both', got 'up'",
        ),
        (lambda: NeighborSampler(GRAPH, [2], direction=None), ValueError, "direction must be"),
        (lambda: NeighborSampler(GRAPH, [2], reuse=True, include_dst=False), ValueError, "needs include_dst=True"),
        (lambda: FullSampler(GRAPH, 1, reuse=True, include_dst=False), ValueError, "needs include_dst=True"),
        (lambda: NeighborSampler(GRAPH, [2], seed=0.5), TypeError, "seed must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2], seed=None), TypeError, "seed must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2], True), TypeError, "positional"),
        (lambda: FullSampler(GRAPH, 0), ValueError, "num_flows must be at least 1, got 0"),
        (lambda: FullSampler(GRAPH, -1), ValueError, "num_flows must be at least 1"),
        (lambda: FullSampler(GRAPH, 1.0), TypeError, "num_flows must be an integer"),
        (lambda: FullSampler(GRAPH, [1]), TypeError, "num_flows must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2])([1], epoch=0.5), TypeError, "epoch must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2])([1], batch_number="a"), TypeError, "batch_number must be an integer"),
        (lambda: NeighborSampler(GRAPH, [2])([1], batch_number=True), TypeError, "batch_number must be an integer"),
        (lambda: NeighborSampler(Graph([0], []), [2])([0]), IndexError, "there is no node at all"),
    ],
)
def test_bad_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_fanouts_with_replacement_that_no_memory_holds():
    with pytest.raises(ValueError, match=r"below 2\*\*31 with replacement"):
        NeighborSampler(Graph.from_edges([4, 5], [0, 1]), [2**62], replace=True)


def test_seeds_without_an_order():
    with pytest.raises(TypeError, match=r"seeds must be ordered, got a set; pass sorted\(seeds\)"):
        NeighborSampler(Graph.from_edges([0], [1]), [1])({0, 1})


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (torch.ones(3, dtype=torch.complex64), TypeError, "must hold real numbers, got dtype complex64"),
        (torch.tensor([1.0, 1e300, 1.0], dtype=torch.float64), ValueError, r"edge 1 has 1e\+300; multiply the column"),
        (torch.tensor([1.0, 1.0, -1e-60], dtype=torch.float64), ValueError, "edge 2 has -1e-60; multiply the column"),
    ],
)
def test_columns_that_float32_weights_cannot_hold(column, error, words):
    graph = Graph.from_edges([1, 2, 3], [0, 0, 0], edata={"w": column})
    with pytest.raises(error, match=words):
        NeighborSampler(graph, [2], weight="w")
