"""Every public call that all processes make together is one operation, so a failure anywhere in it
is told to all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from _support.ranks import Parts
from _support.sampler_families import NODES, graph_of_all

import nodeflow
from nodeflow import (
    Graph,
    History,
    LaborSampler,
    LadiesSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlowLoader,
    SaintSampler,
    ShadowSampler,
    TemporalNeighborSampler,
    Updater,
    distributed,
    propagation,
    storage,
)
from nodeflow._core.peers.peers import collective_call
from nodeflow.distributed import PeerError
from nodeflow.nn import VRGCN, GraphSAGE
from nodeflow.propagation import ExchangePlan, Propagation
from nodeflow.storage import EmbeddingTable

PARTS = Parts(graph_of_all(), [node % 2 for node in range(NODES)], 2)
Call = Callable[[], Any]


def calls_of_a_graph(graph: Graph, rank: int) -> dict[str, Call]:
    sampler = NeighborSampler(graph, [2, 2])
    batch = sampler([1, 2])
    loader = NodeFlowLoader(sampler, [1, 2, 3, 4], batch_size=1, ndata={0: ["x"]})
    batches = iter(loader)
    next(batches)
    return {
        "DistributedGraph.in_degrees": lambda: graph.in_degrees([1]),
        "DistributedGraph.out_degrees": lambda: graph.out_degrees([1]),
        "DistributedGraph.find_edges": lambda: graph.find_edges([1]),
        "DistributedGraph.edge_ids": lambda: graph.edge_ids([], []),
        "DistributedGraph.has_edges": lambda: graph.has_edges([1], [2]),
        "DistributedRows.fetch": lambda: graph.ndata["x"].fetch(torch.tensor([1])),
        "DistributedRows.pieces": lambda: graph.ndata["x"].pieces(torch.tensor([1]).numpy()),
        "a view": lambda: graph.view(where="old"),
        "binding": lambda: LaborSampler(graph, [2, 2]),
        "drawing": lambda: sampler([1, 2]),
        "drawing links": lambda: LinkSampler(sampler, num_negatives=1),
        "estimate": lambda: sampler.estimate([1, 2], pilot=2),
        "copy_from_parent": lambda: batch.copy_from_parent({0: ["x"], 1: ["x"]}, {0: ["w"]}),
        "a batch of a loader": lambda: next(batches),
        "inference": lambda: GraphSAGE(2, 2, 3, num_layers=2).inference(graph, graph.ndata["x"]),
    }


def calls_of_samplers(graph: Graph, rank: int) -> dict[str, Call]:
    samplers = [
        LadiesSampler(graph, [4, 4]),
        ShadowSampler(graph, 2, depth=2, fanout=2),
        LinkSampler(NeighborSampler(graph, [2, 2]), num_negatives=1),
    ]
    calls: dict[str, Call] = {type(one).__name__: lambda one=one: one([1, 2]) for one in samplers}
    temporal = TemporalNeighborSampler(graph, [2, 2])
    saint = SaintSampler(graph, 2, kind="node", budget=12)
    calls |= {"SaintSampler": lambda: saint([7])}
    return calls | {"TemporalNeighborSampler": lambda: temporal([1, 2], times=[5, 5])}


def calls_of_plans(graph: Graph, rank: int) -> dict[str, Call]:
    sums = Propagation(graph)
    plan = sums.plan
    rows = torch.ones(plan.num_masters, 2)
    mirrors = torch.ones(plan.num_mirrors, 2)
    return {
        "ExchangePlan": lambda: ExchangePlan(graph),
        "ExchangePlan.gathered": lambda: plan.gathered(rows),
        "ExchangePlan.reduced": lambda: plan.reduced(torch.cat([rows, mirrors])),
        "ExchangePlan.broadcast": lambda: plan.broadcast(rows),
        "ExchangePlan.reduce": lambda: plan.reduce(mirrors, rows.clone()),
        "Propagation": lambda: Propagation(graph),
        "Propagation.__call__": lambda: sums(rows, [1]),
        "Propagation.degrees_of": lambda: sums.degrees_of(torch.tensor([1])),
    }


def calls_of_histories(graph: Graph, rank: int) -> dict[str, Call]:
    history = History(graph, {1: 2}, inputs=torch.ones(NODES, 3))
    state = history.state_dict()
    batch = NeighborSampler(graph, [1, 1])([1])
    updater = Updater(VRGCN(4, 2, 3, num_layers=2), History(graph, {1: 2}), torch.ones(NODES, 4))

    def renewed() -> None:
        with history.renewal():
            pass

    return {
        "History": lambda: History(graph, {1: 2}),
        "History.rows": lambda: history.rows(1, [1]),
        "History.age": lambda: history.age(1, [1]),
        "History.aggregated_rows": lambda: history.aggregated_rows(1, [1]),
        "History.pull": lambda: history.pull(batch),
        "History.commit": history.commit,
        "History.renewal": renewed,
        "History.clear": history.clear,
        "History.load_state_dict": lambda: history.load_state_dict(state),
        "Updater.step": updater.step,
    }


def calls_of_tables(graph: Graph, rank: int) -> dict[str, Call]:
    table = EmbeddingTable(graph, 4, lr=0.1)
    rows = table.pull([1])
    rows.sum().backward()
    return {
        "EmbeddingTable": lambda: EmbeddingTable(graph, 4, lr=0.1),
        "EmbeddingTable.fetch": lambda: table.fetch([1]),
        "EmbeddingTable.pull": lambda: table.pull([1]),
        "EmbeddingTable.step": lambda: table.step(rows),
        "EmbeddingTable.write": lambda: table.write([rank], torch.ones(1, 4)),
    }


TABLES = [calls_of_a_graph, calls_of_samplers, calls_of_plans, calls_of_histories, calls_of_tables]


def channel_of(graph: Graph) -> Any:
    return graph.peers._channel  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", TABLES)
@PARTS.on_every_rank
def test_a_call_is_one_operation(graph, rank, table):
    assert graph.for_sampling is not None  # fetched once
    for name, call in table(graph, rank).items():
        channel = channel_of(graph)
        begun = channel.operation
        exchanged = graph.peers.counters.exchanges
        call()
        assert channel.operation == begun + 1, name
        assert graph.peers.counters.exchanges > exchanged, name


@pytest.mark.parametrize("table", TABLES)
@PARTS.on_every_rank
def test_a_failure_before_any_exchange_of_a_call_is_raised_on_all(graph, rank, table):
    """Also before its last one, whose number no call says; then all go on together."""
    channel = channel_of(graph)
    for name in list(table(graph, rank)):
        table(graph, rank)[name]()  # which the graph keeps some columns for
        count = exchanges_of(table(graph, rank)[name], channel, None)
        # a view of columns that the graph has kept needs no exchange
        for number in sorted({0, count // 2, count - 1} & set(range(count))):
            call = table(graph, rank)[name]
            error = ZeroDivisionError if rank == 1 else PeerError
            with pytest.raises(error):
                exchanges_of(call, channel, number if rank == 1 else None)
            assert graph.peers.totals(f"after {name}", 1) == [2]


def exchanges_of(call: Call, channel: Any, failing: int | None) -> int:
    """Make a call, such that it fails before exchange ``failing`` unless that is None; return its
    exchanges.
    """
    meet = channel.meet
    met = 0

    def counted(what: str, parcels: Any, **options: Any) -> Any:
        nonlocal met
        with channel.inside(what):
            if met == failing:
                raise ZeroDivisionError
        met += 1
        return meet(what, parcels, **options)

    channel.meet = counted
    try:
        call()
    finally:
        del channel.meet
    return met


def test_all_methods_that_say_so_are_in_the_tables():
    listed = {
        name for table in TABLES for rank_calls in PARTS.run(table)[:1] for name in rank_calls
    }
    together = collective_call()(print).__code__  # which all such methods share
    found = set[str]()
    for module in (nodeflow, distributed, propagation, storage):
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind):
                methods = [
                    method
                    for method, value in vars(kind).items()
                    if getattr(value, "__code__", None) is together
                ]
                found |= {f"{name}.{method}" for method in methods if not method.startswith("_")}
    assert len(found) > 5
    # a part of making a sampler
    assert found - listed == {"ControlVariateSampler.bind"}
