"""The same NodeFlow, bit for bit, from every family: on threads, in processes, after pickling,
after resuming.

The hashes in golden.json fix the random numbers of every family: a change of one is a changelog
entry, because users' seeds then mean other batches. ``python scripts/make_golden.py`` writes the
file.
"""

from __future__ import annotations

import json
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from _support.sampler_families import (
    CERTAIN,
    FAMILIES,
    LAYERED,
    everything,
    fingerprint,
    golden,
    graph_of_all,
    sampled,
)
from _support.sampler_reference import fingerprint as structure_hash, random_graph
from _support.views import viewed

from nodeflow import Graph, NeighborSampler, NodeFlowLoader

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
START = [
    method for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()
]


def test_golden_hashes_name_all_families():
    assert set(GOLDEN) == set(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_golden_hash(name):
    assert golden(name) == GOLDEN[name]


@pytest.mark.parametrize("name", FAMILIES)
def test_valid_and_told_apart(name):
    """Another epoch or batch number gives another batch, except where nothing is random."""
    graph = graph_of_all()
    sampler = FAMILIES[name](graph)
    batch = sampled(name, sampler)
    batch.validate()
    assert sampler.num_flows == batch.num_flows
    prints = {
        fingerprint(sampled(name, sampler, epoch=e, batch_number=b))
        for e in range(3)
        for b in range(3)
    }
    hint = "is it named in CERTAIN in _support/sampler_families.py?"
    assert len(prints) == 1 if name in CERTAIN else len(prints) > 6, hint


@pytest.mark.parametrize("name", FAMILIES)
def test_pickled(name):
    sampler = FAMILIES[name](graph_of_all())
    again = pickle.loads(pickle.dumps(sampler))
    assert repr(again) == repr(sampler)
    assert fingerprint(sampled(name, again)) == fingerprint(sampled(name, sampler))
    batch = sampled(name, sampler)
    assert fingerprint(pickle.loads(pickle.dumps(batch))) == fingerprint(batch)


@pytest.mark.slow
@pytest.mark.parametrize("method", START)
def test_in_other_processes(method):
    if method == "spawn":  # a new interpreter: imports, kernels and constants from nothing
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            assert pool.apply(everything) == GOLDEN
        return
    with ThreadPoolExecutor(2) as threads:  # a process forks after threads of it have sampled
        list(threads.map(lambda _: everything(), range(2)))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_everything, range(2)) == [GOLDEN, GOLDEN]


def _everything(_: int) -> dict[str, str]:
    return everything()


def test_on_threads_at_the_same_time():
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(_everything, range(4)):
            assert found == GOLDEN


def loader_of(name: str, workers: int) -> NodeFlowLoader:
    sampler = FAMILIES[name](graph_of_all())
    options = {"times": torch.arange(40) % 17} if name.startswith("temporal") else {}
    if name.startswith("saint"):
        return NodeFlowLoader(sampler, range(8), 1, shuffle=True, num_workers=workers, seed=2)
    seeds = range(7) if name == "cluster" else [*range(30), *range(10)]
    return NodeFlowLoader(
        sampler,
        seeds,
        3 if name == "cluster" else 9,
        shuffle=True,
        num_workers=workers,
        seed=2,
        **options,
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_any_number_of_workers_and_resumed(name):
    alone = [
        [fingerprint(batch) for batch in loader]
        for loader in [loader_of(name, 0)]
        for _ in range(2)
    ]
    assert len(set(alone[0] + alone[1])) > len(alone[0]) // 2  # batches and epochs differ
    for workers in (1, 2, 4):
        loader = loader_of(name, workers)
        assert [[fingerprint(batch) for batch in loader] for _ in range(2)] == alone
    loader = loader_of(name, 2)
    list(loader)
    second = iter(loader)
    next(second)
    state = loader.state_dict()
    second.close()
    resumed = loader_of(name, 1)
    resumed.load_state_dict(state)
    assert [fingerprint(batch) for batch in resumed] == alone[1][1:]


REFUSE = {
    "neighbor, types": "edge type",
    "saint, node": "edge weights",
    "saint, edge": "draws edges",
    "link": "no edge",
}


def graph_without_edges() -> Graph:
    none = np.zeros(0, np.int64)
    graph = Graph.from_edges(
        none, none, num_nodes=60, edata={"type": none, "time": none, "old": none.astype(np.bool_)}
    )
    graph.edata["w"] = graph.edata["p"] = torch.zeros(0)
    return graph


@pytest.mark.parametrize("name", FAMILIES)
def test_a_graph_without_edges(name):
    """Every seed is isolated: no edges, no hang, and an error only where edges are what is drawn or
    named.
    """
    graph = graph_without_edges()
    if name in REFUSE:
        with pytest.raises((ValueError, IndexError), match=REFUSE[name]):
            sampled(name, FAMILIES[name](graph))
        return
    batch = sampled(name, FAMILIES[name](graph))
    batch.validate()
    assert batch.flow_sizes == (0, 0)


@pytest.mark.parametrize("name", LAYERED)
def test_a_filter_that_removes_every_edge(name):
    graph = graph_of_all()
    if name == "neighbor, filter":
        graph.edata["old"] = torch.zeros(graph.num_edges, dtype=torch.bool)
        sampler = LAYERED[name](graph)
    else:
        sampler = LAYERED[name](graph, edge_filter=np.zeros(graph.num_edges, np.bool_))
    assert sampler([5, 11, 30]).flow_sizes == (0, 0)
    assert not sampler.estimand().any()


@pytest.mark.parametrize("name", FAMILIES)
def test_no_seeds(name):
    """Also of a graph without nodes, where that is no mistake."""
    nothing = Graph([0], [], edata=graph_without_edges().edata)
    for graph in (graph_of_all(), nothing):
        if name.startswith("saint"):
            with pytest.raises(
                ValueError, match=r"draws|starts at nodes" if graph is nothing else "one"
            ):
                FAMILIES[name](graph)([])
        elif graph is not nothing or name != "neighbor, types":
            batch = FAMILIES[name](graph)(
                [], **({"times": []} if name.startswith("temporal") else {})
            )
            batch.validate()
            assert sum(batch.layer_sizes) == 0
            assert batch.seed_index.dtype == torch.int64
            assert [flow.weight.shape for flow in batch.flows] == [(0,)] * batch.num_flows


OPTIONS: dict[str, tuple[dict[str, object], dict[str, int], str]] = {
    "resample": ({}, {}, "8a4858aa07627c86f2fa1358d73e2efc2c905af75100e6ed2616938fd92828fa"),
    "replace": (
        {"replace": True},
        {},
        "268a1d8341e7fbf54331ea95fbd1b239d56e7a59863828651c72ca9db8077bbd",
    ),
    "neighbours only": (
        {"include_dst": False},
        {},
        "b8b6e5c1e808c9a1313ae5d0446754b3459dbdb495433d71fe64b8599be66310",
    ),
    "out": (
        {"direction": "out"},
        {},
        "516ef360ca32536af0b636f147a0427b7bd8541e37fd318cd30687f239348a4f",
    ),
    "reuse": (
        {"reuse": True},
        {},
        "515e3d3405cf0585cc9bd6ff85fae98adb61da89232efe276284f6132f28916a",
    ),
    "seed": ({"seed": 7}, {}, "d03944261946a40bc679c623303e066d6d38f84e8e28c0a314f31d8c20ec244c"),
    "epoch": ({}, {"epoch": 2}, "3f40b057e34d52b5a23e938f265c0835c7de9f8e4ae785c71f56e338b079de88"),
    "number": (
        {},
        {"epoch": 2, "batch_number": 9},
        "09519ba600fe5164cbe5d66a26eb36f5e70230dd79c3c01ff532617fab2d0952",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_golden_hash_of_options_that_no_family_has(name):
    options, call, expected = OPTIONS[name]
    seeds = [5, 11, 30] if call else [5, 11, 5, 30]
    assert (
        structure_hash(viewed(NeighborSampler, random_graph(1), [2, 3], **options)(seeds, **call))
        == expected
    )


def test_golden_hash_of_a_hub():
    # a fanout beyond 32 goes through the hashed branch of the kernel
    graph = Graph.from_edges(torch.arange(1000), torch.zeros(1000, dtype=torch.int64))
    expected = "fee538b7463413c458b5e14ea2d2d5df751d234791b0617ac873549ec21fe852"
    assert structure_hash(NeighborSampler(graph, [100], seed=3)([0])) == expected
