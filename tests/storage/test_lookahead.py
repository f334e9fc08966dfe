"""Batches whose rows are read as planned: the same batches, and no more reads than the best of all
choices.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.own_rows import OwnRows
from test_plans import fewest_reads
from torch import Tensor

from nodeflow import (
    Graph,
    LaborSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    ShadowSampler,
    storage,
)
from nodeflow.storage import Cached, Lookahead, Rows, presample


def ring_and_hubs(num_nodes: int = 400) -> Graph:
    rng = np.random.default_rng(3)
    odds = 1 / np.arange(1, num_nodes + 1)
    src = rng.choice(num_nodes, 8 * num_nodes, p=odds / odds.sum())
    graph = Graph.from_edges(src, rng.integers(0, num_nodes, 8 * num_nodes), num_nodes=num_nodes)
    graph.ndata["x"] = torch.randn(num_nodes, 5, generator=torch.Generator().manual_seed(0))
    graph.ndata["y"] = torch.arange(num_nodes)
    return graph


def loader_of(graph: Graph, **options: object) -> NodeFlowLoader:
    sampler = NeighborSampler(graph, [4, 3])
    given = {"ndata": {0: ["x"], -1: ["y"]}, "shuffle": True, "batch_size": 32, **options}
    return NodeFlowLoader(sampler, torch.arange(0, 400, 2), **given)  # type: ignore[arg-type]


def epochs_of(loader: NodeFlowLoader, count: int) -> list[NodeFlow]:
    return [batch for _ in range(count) for batch in loader]


def columns_of(batch: NodeFlow) -> list[Tensor]:
    return [
        batch.seeds,
        *(layer.data[name] for layer in batch.layers for name in sorted(layer.data)),
    ]


def same(batches: list[NodeFlow], others: list[NodeFlow]) -> bool:
    return len(batches) == len(others) and all(
        len(columns_of(a)) == len(columns_of(b))
        and all(x.equal(y) for x, y in zip(columns_of(a), columns_of(b), strict=True))
        for a, b in zip(batches, others, strict=True)
    )


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "prefetch": 0}])
@pytest.mark.parametrize(
    ("memory", "window", "prefetch"), [(0, None, 2), (1200, None, 1), (1200, 3, 5), ("1 KB", 0, 2)]
)
def test_batches_are_those_of_the_loader(options, memory, window, prefetch):
    graph = ring_and_hubs()
    expected = epochs_of(loader_of(graph, **options), 3)
    graph.ndata["x"] = rows = OwnRows(graph.ndata["x"])
    lookahead = Lookahead(loader_of(graph, **options), memory, window=window, prefetch=prefetch)
    assert same([batch for _ in range(3) for batch in lookahead], expected)
    assert lookahead.reads.read == rows.fetched
    assert lookahead.reads.bytes == 20 * rows.fetched
    assert lookahead.reads.rows == sum(batch.layers[0].num_nodes for batch in expected)
    assert lookahead.reads.batches == len(expected) == 3 * len(lookahead)


def test_no_choice_of_rows_reads_less():
    graph = ring_and_hubs()
    drawn = [batch for epoch in range(2) for batch in loader_of(graph).draws(epoch)]
    room = 60
    ids = [batch.layers[0].parent_nid.numpy() for batch in drawn]
    best = fewest_reads(ids, room)
    values = graph.ndata["x"]
    graph.ndata["x"] = OwnRows(values)
    lookahead = Lookahead(loader_of(graph), 20 * room, epochs=2, window=len(drawn))
    for _ in range(2):
        assert len(list(lookahead)) == 7
    assert lookahead.reads.read == best
    counting = OwnRows(values)
    graph.ndata["x"] = static = Cached(counting, presample(loader_of(graph), epochs=2), 20 * room)
    loader = loader_of(graph)
    for _ in range(2):
        list(loader)
    assert counting.fetched == room + static.misses
    assert best < counting.fetched


def test_a_short_window_with_heat_reads_no_more_than_a_fixed_choice():
    graph = ring_and_hubs()
    heat = presample(loader_of(graph), epochs=4)
    values = graph.ndata["x"]
    graph.ndata["x"] = counting = OwnRows(values)
    lookahead = Lookahead(loader_of(graph), 1200, window=2, heat=heat)
    for _ in range(4):
        list(lookahead)
    graph.ndata["x"] = static = Cached(OwnRows(values), heat, 1200)
    loader = loader_of(graph)
    for _ in range(4):
        list(loader)
    assert counting.fetched <= static.misses + 60


def test_several_columns_and_layers(tmp_path):
    graph = ring_and_hubs()
    graph.ndata["z"] = torch.arange(800, dtype=torch.float64).view(400, 2)
    chosen = {0: ["x", "z"], 1: ["z", "y"], -1: ["y"]}
    expected = list(loader_of(graph, ndata=chosen))
    np.save(tmp_path / "x.npy", graph.ndata["x"].numpy())
    graph.ndata["x"] = storage.open(tmp_path / "x.npy")
    graph.ndata["z"] = OwnRows(graph.ndata["z"])
    assert same(list(Lookahead(loader_of(graph, ndata=chosen), "2 KB")), expected)


def test_sparse_columns_are_planned(tmp_path):
    graph = ring_and_hubs()
    graph.ndata["x"] = ((graph.ndata["x"] > 0.8) * graph.ndata["x"]).to_sparse_csr()
    expected = epochs_of(loader_of(graph), 3)
    storage.save_sparse(tmp_path / "x", graph.ndata["x"])
    graph.ndata["x"] = storage.open(tmp_path / "x")
    for memory in (0, 500, 2000, "1 MB"):
        lookahead = Lookahead(loader_of(graph), memory)
        for batch, other in zip(
            (batch for _ in range(3) for batch in lookahead), expected, strict=True
        ):
            assert batch.ldata[0]["x"].layout == torch.sparse_csr
            assert batch.ldata[0]["x"].to_dense().equal(other.ldata[0]["x"].to_dense())
    used = torch.cat([batch.layers[0].parent_nid for batch in expected])
    assert lookahead.reads.read == len(torch.unique(used))  # each row once


def test_layers_that_hold_a_node_twice():
    graph = ring_and_hubs()
    sampler = ShadowSampler(graph, 2, 2, 3)

    def loader() -> NodeFlowLoader:
        return NodeFlowLoader(sampler, torch.arange(40), 8, ndata={0: ["x"]})

    expected = list(loader())
    assert expected[0].layers[0].context is not None
    graph.ndata["x"] = OwnRows(graph.ndata["x"])
    assert same(list(Lookahead(loader(), 400)), expected)


def test_transform_sees_the_planned_columns_and_the_state_is_the_loaders():
    graph = ring_and_hubs()
    graph.ndata["x"] = OwnRows(graph.ndata["x"])

    def doubled(batch: NodeFlow) -> NodeFlow:
        batch.ldata[0]["x"] = 2 * batch.ldata[0]["x"]
        return batch

    expected = list(loader_of(graph, transform=doubled))
    lookahead = Lookahead(loader_of(graph, transform=doubled), 1200)
    first = []
    for batch in lookahead:
        first.append(batch)
        if len(first) == 3:
            break
    state = lookahead.loader.state_dict()
    assert state["batch_number"] == 3
    assert same(first, expected[:3])
    other = Lookahead(loader_of(graph, transform=doubled), 1200)
    other.loader.load_state_dict(state)
    assert same(list(other), expected[3:])
    lookahead.loader.load_state_dict(state)  # the same object, whose plan had gone further
    assert same(list(lookahead), expected[3:])
    lookahead.loader.set_epoch(0)
    assert same(list(lookahead), expected)


def test_epochs_are_foreseen_up_to_the_last():
    graph = ring_and_hubs()
    graph.ndata["x"] = OwnRows(graph.ndata["x"])
    loader = loader_of(graph)
    drawn = []
    draws = loader.draws
    loader.draws = lambda epoch, start=0: drawn.append(epoch) or draws(epoch, start)  # type: ignore[method-assign, func-returns-value]
    lookahead = Lookahead(loader, 1200, epochs=2)
    drawn.clear()
    for _ in range(3):  # one more than was said
        assert len(list(lookahead)) == 7
    assert drawn == [0, 1, 2]


def test_errors_of_the_rows_reach_the_caller_and_the_next_epoch_is_right():
    graph = ring_and_hubs()
    expected = epochs_of(loader_of(graph), 2)
    rows = OwnRows(graph.ndata["x"], fail_at=4)
    graph.ndata["x"] = rows
    lookahead = Lookahead(loader_of(graph), 1200)
    with pytest.raises(ConnectionError, match="the store is gone"):
        list(lookahead)
    assert same(list(lookahead), expected[7:])


@pytest.mark.parametrize(
    ("wrong", "message"), [("shape", r"2\]"), ("dtype", "float64"), ("type", "list")]
)
def test_wrong_rows_of_a_users_own_are_refused(wrong, message):
    class Wrong(OwnRows):
        def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
            found = super().fetch(ids)
            changed = {"shape": found[:, :2], "dtype": found.double(), "type": found.tolist()}
            return changed[wrong]  # type: ignore[return-value]

    graph = ring_and_hubs()
    graph.ndata["x"] = Wrong(graph.ndata["x"])
    with pytest.raises((TypeError, ValueError), match=f"fetch of Wrong.*{message}"):
        loader_of(graph)  # which copies the columns of an empty batch


def test_what_cannot_be_planned_is_refused():
    graph = ring_and_hubs()
    graph.ndata["x"] = OwnRows(graph.ndata["x"])
    assert isinstance(graph.ndata["x"], Rows)
    with pytest.raises(TypeError, match="inputs is a function"):
        Lookahead(loader_of(graph, inputs=lambda seeds: None), 1200)
    with pytest.raises(ValueError, match="a row takes 20 bytes"):
        Lookahead(loader_of(graph), "19 B")
    with pytest.raises(ValueError, match="heat must have one entry per node"):
        Lookahead(loader_of(graph), 1200, heat=[1.0])


def test_it_is_set_as_its_loader_is():
    graph = ring_and_hubs()
    graph.ndata["x"] = OwnRows(graph.ndata["x"])
    plain = loader_of(graph)
    planned = Lookahead(loader_of(graph), 1200)
    assert len(planned) == len(plain) == 7
    assert np.isnan(planned.reads.hit_rate)
    for loader in (plain, planned):
        loader.set_epoch(2)
    coming = iter(planned)
    assert [
        next(coming).seeds.equal(batch.seeds) for batch, _ in zip(plain, range(3), strict=False)
    ] == [True] * 3
    state = planned.state_dict()
    assert state == planned.loader.state_dict()
    rest = [batch.seeds.tolist() for batch in coming]
    again = Lookahead(loader_of(graph), 1200)
    again.load_state_dict(state)
    assert [batch.seeds.tolist() for batch in again] == rest
    assert 0 < planned.reads.hit_rate < 1
    assert repr(planned) == f"Lookahead({planned.loader!r}, 7 batches ahead, columns x)"


def test_draws_leave_the_loader_as_it_is():
    graph = ring_and_hubs()
    loader = NodeFlowLoader(LaborSampler(graph, [3]), [5, 6, 7], 2, shuffle=True, ndata={0: ["x"]})
    iteration = iter(loader)
    first = next(iteration)
    assert next(batch.seeds.tolist() for batch in loader.draws(0)) == first.seeds.tolist()
    assert (loader.epoch, loader.batch_number) == (0, 1)
    assert [len(batch.layers[0].data) for batch in loader.draws(4, 1)] == [0]
