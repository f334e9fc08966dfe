"""The partition buffer: states against brute force, every seed once, learned rows, counters,
epochs, mistakes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _support.partition_tools import edges_of_state, random_graph, written

from nodeflow.distributed import (
    BufferState,
    Order,
    PartitionBuffer,
    Partitions,
    comet_order,
)


def test_a_partition_that_stays_keeps_its_local_ids_and_memory(tmp_path):
    parts = written(random_graph(40, 90), tmp_path / "a", 8)
    before: dict[int, int] = {}
    memory = set()
    for state in PartitionBuffer(parts.folder, 4):
        now = {int(parent): local for local, parent in enumerate(state.nodes)}
        assert all(now[parent] == before[parent] for parent in now.keys() & before.keys())
        memory.add(state.graph.ndata["x"].data_ptr())
        before = now
    assert len(memory) == 1


def test_an_epoch_depends_on_seed_and_number_only(tmp_path):
    parts = written(random_graph(40, 90), tmp_path / "a", 8, train=range(40))

    def epoch_of(buffer: PartitionBuffer) -> list[Any]:
        return [
            (state.partitions, state.seeds.tolist(), state.edges.tolist(), state.seed)
            for state in buffer
        ]

    buffer = PartitionBuffer(parts.folder, 4, seed=3)
    first = epoch_of(buffer)
    second = epoch_of(buffer)
    assert first != second
    assert epoch_of(PartitionBuffer(parts.folder, 4, seed=3, epoch=1, prefetch=False)) == second
    assert epoch_of(PartitionBuffer(parts.folder, 4, seed=5)) != first


def test_other_orders(tmp_path):
    graph = random_graph(40, 90)
    train = [3, 5, 30]
    parts = written(graph, tmp_path / "a", 8, method="train-first", train=train)
    buffer = PartitionBuffer(parts.folder, 3, order="sequential")
    for _ in range(3):
        (state,) = buffer
        assert sorted(state.nodes[state.seeds].tolist()) == train
        with pytest.raises(ValueError, match=r"no state holds \d+ of the 64 pairs of parts"):
            state.edges  # noqa: B018
    assert buffer.counters.swaps == 0
    with pytest.raises(
        ValueError, match="slots must be at least the number of parts with training nodes, 8"
    ):
        PartitionBuffer(parts.folder, 3, order="sequential", train=range(40))
    own = PartitionBuffer(parts.folder, order=[[0, 1], [1, 5]], train=[])
    assert [state.partitions for state in own] == [(0, 1), (5, 1)]
    assert own.counters.swaps == 1
    with pytest.raises(ValueError, match=r"training node \d+ is in part \d, which no state"):
        PartitionBuffer(parts.folder, order=[[0, 1], [1, 5]], train=range(40)).__iter__()
    calls = []

    def reverse(epoch: int) -> Order:
        calls.append(epoch)
        return Order(8, comet_order(8, 4, epoch=epoch).states[::-1])

    last = [state.partitions for state in PartitionBuffer(parts.folder, 4, order=reverse)][-1]
    assert sorted(last) == sorted(comet_order(8, 4).states[0])
    assert calls == [0, 0]


def test_bytes_written_are_counted(tmp_path):
    parts = written(random_graph(40, 90), tmp_path / "a", 8, ndata=["x", "label"])
    with PartitionBuffer(parts.folder, 4, writable=["x"], ndata=["x"]) as buffer:
        states = list(map(repr, buffer))
    assert buffer.counters.bytes_written == buffer.counters.bytes_read == (4 + 10) * 5 * 3 * 4
    assert len(states) == 6
    assert "BufferState(0: parts " in states[0]


def test_a_state_ends_with_the_next_one(tmp_path):
    parts = written(random_graph(20, 50), tmp_path / "a", 5, train=[1])
    buffer = PartitionBuffer(parts.folder, 2)
    states = iter(buffer)
    first = next(states)
    next(states)
    with pytest.raises(RuntimeError, match="state 0 has ended"):
        first.graph  # noqa: B018
    assert first.nodes.shape == (8,)
    list(buffer)
    with pytest.raises(RuntimeError, match="ended by another loop"):
        next(states)
    del states


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Partitions:
    train = np.random.default_rng(0).permutation(50)[:31]
    return written(random_graph(50, 300), tmp_path_factory.mktemp("parts") / "a", 8, train=train)


def seen(state: BufferState) -> Any:
    """All that a state gives; its rows are copied, since its memory is used again."""
    rows = [state.graph.ndata[name].tolist() for name in ("x", "label")]
    indptr, indices, edge_ids = (np.asarray(array).tolist() for array in state.graph.csc())
    ends = edges_of_state(state)
    return (
        state.number,
        state.seed,
        state.nodes.tolist(),
        state.seeds.tolist(),
        rows,
        indptr,
        indices,
        edge_ids,
        ends,
    )


@pytest.mark.parametrize("prefetch", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", ["comet", "beta", "dispersed"])
def test_an_epoch_begins_at_any_state(parts, order, prefetch):
    whole = PartitionBuffer(parts.folder, 4, order=order, seed=3, epoch=2, prefetch=prefetch)
    states = [seen(state) for state in whole]
    assert whole.epoch == 3
    for first in (0, 1, len(states) - 1):
        begun = PartitionBuffer(parts.folder, 4, order=order, seed=3, prefetch=prefetch)
        begun.set_epoch(2, first)
        assert [seen(state) for state in begun] == states[first:]
        swaps = sum(map(len, begun.order_of(2).incoming[1 + first :]))
        assert begun.counters.swaps == swaps
        assert begun.counters.bytes_read == (4 + swaps) * begun.partition_bytes
        assert next(iter(begun)).number == 0  # the epoch after it is whole
        assert begun.epoch == 3
        begun.close()


def test_an_epoch_that_was_left_goes_on(parts):
    whole = [seen(state) for state in PartitionBuffer(parts.folder, 4)]
    with PartitionBuffer(parts.folder, 4) as buffer:
        states = iter(buffer)
        found = [seen(next(states)) for _ in range(3)]
        buffer.set_epoch(0, 3)
        with pytest.raises(
            RuntimeError, match=r"this epoch was ended by .* by set_epoch\(\) or by close\(\)"
        ):
            next(states)
        assert found + [seen(state) for state in buffer] == whole


@pytest.mark.parametrize("order", ["comet", "beta", "dispersed"])
def test_training_nodes_of_states_are_counted_without_reading(parts, order):
    buffer = PartitionBuffer(parts.folder, 4, order=order)
    counts = [buffer.seeds_per_state(), buffer.seeds_per_state(1)]
    assert buffer.counters.bytes_read == buffer.counters.edge_bytes_read == 0
    assert [[len(state.seeds) for state in buffer] for _ in counts] == counts
    assert counts[0] != counts[1]


def test_an_epoch_that_is_closed_is_not_committed(tmp_path):
    unknown = written(random_graph(20, 50), tmp_path / "a", 4)
    with PartitionBuffer(unknown.folder, 2, writable=["x"], epoch=7) as writing:
        assert writing.epoch == 7
        states = iter(writing)
        next(states)
        writing.close()  # within an epoch, which then is not committed
    with pytest.raises(RuntimeError, match="ended"):
        next(states)
    with PartitionBuffer(unknown.folder, 2, writable=["x"]) as writing:
        assert writing.epoch == 0
