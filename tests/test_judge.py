"""check_sampler on functions of other libraries, as trials/judge.py checks them: in the right order,
with times, with trees.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import graph_of_all

from nodeflow import Graph
from nodeflow.testing import CheckError, check_sampler
from nodeflow.testing._check_sampler import SAMPLER_CHECKS

sys.path.append(str(Path(__file__).parents[1] / "trials"))

from foreign import as_sampler

pytestmark = pytest.mark.usefixtures("one_thread")


def uniform_draws(graph: Graph, k: int, *, fault: int = 0, ids: bool = True) -> Any:
    """A foreign sampler: k in-edges with replacement from one destination on, of one flow."""
    indptr, indices, positions = graph.csc()

    def draw(seeds: torch.Tensor, seed: int) -> Any:
        random = np.random.default_rng(seed)
        some = seeds.numpy()[np.diff(indptr)[seeds] > 0]
        degree = (indptr[some + 1] - indptr[some])[:, None]
        at = indptr[some][:, None] + (
            random.random((len(some), k)) * np.maximum(degree - fault, 1)
        ).astype(int)
        at = at.flatten()
        eid = at if positions is None else positions[at]
        return [(indices[at], np.repeat(some, k), eid if ids else None, None)]

    return as_sampler(draw, graph, 1, fanouts=[k], replace=True)


def test_foreign_samplers_are_judged():
    # a function knows no filter
    checks = [name for name in SAMPLER_CHECKS if name != "excluded"]
    report = check_sampler(lambda g: uniform_draws(g, 2), graph=graph_of_all(), checks=checks)
    assert {"structure", "edges", "fanouts", "marginals", "hubs", "reproducible"} <= set(
        report.passed
    )
    with pytest.raises(CheckError, match="marginals: "):
        check_sampler(lambda g: uniform_draws(g, 2, fault=1), checks=["marginals"], budget=0)
    for name in ("edges", "epochs"):
        assert check_sampler(lambda g: uniform_draws(g, 2, ids=False), checks=[name]).passed == [
            name
        ]


def test_foreign_edges_that_are_not_in_the_graph():
    graph = Graph.from_edges([1, 2], [0, 0])
    strange = as_sampler(lambda seeds, seed: [([1, 0], [0, 0], None, None)], graph, 1)
    with pytest.raises(
        CheckError, match="edges: flow 0 has an edge 0 -> 0 that is not in the graph"
    ):
        check_sampler(strange, [0], checks=["edges"], budget=0)
    for drawn, words in (
        ([], r"fn must return one tuple per flow \(1\), got 0"),
        (
            [([1], [2], None, None)],
            "flow 0 has edges of node 2, which is not in the layer after it",
        ),
        (
            [([1], [0], [0, 1], None)],
            r"eid of flow 0 must have one entry per drawn edge \(1\), got 2",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            as_sampler(lambda seeds, seed, drawn=drawn: drawn, graph, 1)([0])
    weighted = as_sampler(lambda seeds, seed: [([2, 1], [0, 0], [1, 0], [3.0, 4.0])], graph, 1)(
        [0]
    ).flows[0]
    assert (weighted.parent_eid.tolist(), weighted.weight.tolist()) == ([1, 0], [3.0, 4.0])


def test_any_error_of_a_foreign_sampler_is_a_failure():
    def draw(seeds: torch.Tensor, seed: int) -> Any:
        raise RuntimeError("no such operator")

    with pytest.raises(CheckError, match="edges: raised RuntimeError: no such operator"):
        check_sampler(lambda g: as_sampler(draw, g, 1), checks=["edges"])


def trees_of_past(graph: Graph, k: int = 2, *, late: bool = False) -> Any:
    """A foreign sampler of two hops: every seed has a tree, at its time; ``late``: the second hop
    sees later edges.
    """
    src, dst = (end.numpy() for end in graph.edges())
    stamps = graph.edata["time"].numpy()

    def draw(seeds: torch.Tensor, seed: int, times: torch.Tensor) -> Any:
        random = np.random.default_rng(seed)
        trees = np.arange(len(seeds))
        nodes = seeds.numpy()
        flows = []
        for hop in range(2):
            rows: list[tuple[int, ...]] = []
            for tree, node in zip(trees, nodes, strict=True):
                past = np.flatnonzero(
                    (dst == node) & ((stamps <= times[tree].item()) | (late and hop == 1))
                )
                rows += [(src[e], node, e, tree) for e in random.permutation(past)[:k]]
            u, v, e, t = np.array(rows, np.int64).reshape(-1, 4).T
            flows.append((u, v, e, None, t))
            trees, nodes = np.unique(np.stack([np.append(trees, t), np.append(nodes, u)]), axis=1)
        return flows[::-1]

    return as_sampler(draw, graph, 2, fanouts=[k, k], time="time")


def test_foreign_samplers_with_times():
    checks = [
        "structure",
        "edges",
        "fanouts",
        "isolated seeds",
        "future",
        "reproducible",
        "marginals",
        "pairs",
    ]
    report = check_sampler(trees_of_past, graph=graph_of_all(), checks=checks, pairs="uniform")
    assert report.passed == checks
    with pytest.raises(CheckError, match=r"future: seed .* sees the future: in flow 0 edge"):
        check_sampler(
            lambda g: trees_of_past(g, late=True), graph=graph_of_all(), checks=["future"], budget=0
        )
    graph = Graph.from_edges([1, 2, 3], [0, 0, 0], edata={"time": torch.tensor([1, 2, 3])})
    sampler = as_sampler(
        lambda s, seed, t: [([1], [0], [0], None, [1])], graph, 1, time="time", strict=True
    )
    batch = sampler([0, 0, 0], times=[1, 3, 1])
    assert (batch.seed_index.tolist(), batch.flows[0].weight.tolist()) == ([0, 1, 0], [2.0])
    assert sampler.estimand(3).tolist() == [1, 1, 0]
    with pytest.raises(TypeError, match="times is missing"):
        sampler([0])
    with pytest.raises(ValueError, match="times must have one entry per seed"):
        sampler([0], times=[1, 2])
    with pytest.raises(IndexError, match=r"tree\[0\] is 1, but seed ids go from 0 to 0"):
        sampler([0], times=[1])


def test_foreign_trees_and_nodes_that_draw_once():
    graph = Graph.from_edges([1, 0], [0, 1])
    for tree, words in (
        (None, "with trees, fn must return five arrays"),
        ([1, 0], "node 0, which .*, in tree 1"),
    ):
        sampler = as_sampler(
            lambda s, seed, t=tree: [([1, 0], [0, 1], None, None, t)], graph, 1, trees=True
        )
        with pytest.raises(ValueError, match=words):
            sampler([0, 1])
    once = as_sampler(
        lambda s, seed: [([0], [1], [1], None), ([1], [0], [0], None)], graph, 2, reuse=True
    )
    assert [flow.parent_eid.tolist() for flow in once([0]).flows] == [[0, 1], [0]]
    again = as_sampler(
        lambda s, seed: [([1, 0], [0, 1], None, None), ([1], [0], None, None)], graph, 2, reuse=True
    )
    with pytest.raises(
        ValueError, match=r"flow 0 has edges of node 0, which is not in .* for the first time"
    ):
        again([0])
