"""Epochs of a partition buffer that begin anywhere: the same states, without reading those before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _support.partition_tools import edges_of_state, random_graph, written

from nodeflow.partitions import BufferState, PartitionBuffer, Partitions


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Partitions:
    train = np.random.default_rng(0).permutation(50)[:31]
    return written(random_graph(50, 300), tmp_path_factory.mktemp("parts") / "a", 8, train=train)


def seen(state: BufferState) -> Any:
    """All that a state gives; its rows are copied, since its memory is used again."""
    rows = [state.graph.ndata[name].tolist() for name in ("x", "label")]
    indptr, indices, edge_ids = (np.asarray(array).tolist() for array in state.graph.csc())
    ends = edges_of_state(state)
    return state.number, state.seed, state.nodes.tolist(), state.seeds.tolist(), rows, indptr, indices, edge_ids, ends


@pytest.mark.parametrize("prefetch", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", ["comet", "beta", "dispersed"])
def test_an_epoch_begins_at_any_state(parts: Partitions, order: str, prefetch: bool) -> None:
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


def test_an_epoch_that_was_left_goes_on(parts: Partitions) -> None:
    whole = [seen(state) for state in PartitionBuffer(parts.folder, 4)]
    with PartitionBuffer(parts.folder, 4) as buffer:
        states = iter(buffer)
        found = [seen(next(states)) for _ in range(3)]
        buffer.set_epoch(0, 3)
        with pytest.raises(RuntimeError, match=r"this epoch was ended by .* by set_epoch\(\) or by close\(\)"):
            next(states)
        assert found + [seen(state) for state in buffer] == whole


@pytest.mark.parametrize("order", ["comet", "beta", "dispersed"])
def test_training_nodes_of_states_are_counted_without_reading(parts: Partitions, order: str) -> None:
    buffer = PartitionBuffer(parts.folder, 4, order=order)
    counts = [buffer.seeds_per_state(), buffer.seeds_per_state(1)]
    assert buffer.counters.bytes_read == buffer.counters.edge_bytes_read == 0
    assert [[len(state.seeds) for state in buffer] for _ in counts] == counts
    assert counts[0] != counts[1]


def test_mistakes(parts: Partitions, tmp_path: Path) -> None:
    buffer = PartitionBuffer(parts.folder, 4, order="beta")
    with pytest.raises(ValueError, match="state must be below 10, the number of states of epoch 5, got 10"):
        buffer.set_epoch(5, 10)
    with pytest.raises(ValueError, match="epoch must be at least 0, got -1"):
        buffer.set_epoch(-1)
    unknown = written(random_graph(20, 50), tmp_path / "a", 4)
    with pytest.raises(ValueError, match="there are no training nodes; pass train"):
        PartitionBuffer(unknown.folder, 2).seeds_per_state()
    with (
        PartitionBuffer(unknown.folder, 2, writable=["x"]) as writing,
        pytest.raises(ValueError, match="set_epoch is for buffers that write nothing back, and this one writes x: it"),
    ):
        writing.set_epoch(1)
