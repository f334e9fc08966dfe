"""The partition buffer: states against brute force, every seed once, learned rows, counters,
epochs, mistakes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.partition_tools import edges_of_state, members_of, random_graph, written
from hypothesis import given, strategies as st

from nodeflow import NeighborSampler, NodeFlowLoader
from nodeflow.distributed import (
    BufferState,
    Order,
    PartitionBuffer,
    Partitions,
    beta_order,
    comet_order,
)
from nodeflow.distributed._orders import comet_slots


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, str, int, int]:
    """(nodes, parts, order, slots, seed)."""
    count = draw(st.integers(1, 9))
    order = draw(st.sampled_from(["comet", "beta", "dispersed"]))
    least = min(2, count) if order == "beta" else 1
    slots = draw(
        st.sampled_from(comet_slots(count) if order == "comet" else list(range(least, count + 1)))
    )
    return draw(st.integers(count, 40)), count, order, slots, draw(st.integers(0, 9))


@given(cases(), st.booleans(), st.booleans())
def test_states_hold_the_induced_subgraph_and_every_seed_comes_once(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[int, int, str, int, int],
    prefetch: bool,
    page_cache: bool,
) -> None:
    num_nodes, count, order, slots, seed = case
    graph = random_graph(num_nodes, 70, seed)
    train = np.random.default_rng(seed).permutation(num_nodes)[: num_nodes // 2 + 1]
    parts = written(graph, tmp_path_factory.mktemp("parts") / "a", count, train=train, seed=seed)
    with PartitionBuffer(
        parts.folder, slots, order=order, seed=seed, prefetch=prefetch, page_cache=page_cache
    ) as buffer:
        for epoch in range(2):
            seeds: Counter[int] = Counter()
            edges: Counter[int] = Counter()
            share = iter(buffer.visible_edges())
            for state, held in zip(buffer, buffer.order_of(epoch).states, strict=True):
                assert state.partitions == held
                check_state(graph, parts, state)
                assert state.visible_edges == next(share)
                seeds.update(state.nodes[state.seeds].tolist())
                if order != "dispersed":
                    edges.update(state.parent_edges(state.edges).tolist())
            assert seeds == Counter(train.tolist())
            assert edges == Counter(range(graph.num_edges) if order != "dispersed" else [])
        run = [buffer.order_of(epoch) for epoch in range(2)]
        counters = buffer.counters
        assert counters.bytes_read == sum(o.slots + o.swaps for o in run) * buffer.partition_bytes
        assert (counters.swaps, counters.epochs) == (sum(o.swaps for o in run), 2)
        assert counters.states == sum(len(o.states) for o in run)
        assert counters.bytes_written == 0


def check_state(graph: Any, parts: Partitions, state: Any) -> None:
    """The graph of a state is the induced subgraph of the resident nodes, with their rows and those
    of its edges.
    """
    nodes = state.nodes
    own = state.graph
    real = nodes >= 0
    members = members_of(graph, parts, state)
    for name, column in graph.ndata.items():
        assert own.ndata[name][real].equal(column[nodes[real]])
        assert not own.ndata[name][~real].any()
        assert own.ndata[name].dtype == column.dtype
    parents = state.parent_edges(torch.arange(own.num_edges))
    for name, column in graph.edata.items():
        assert own.edata[name].equal(column[parents])
    into = np.isin(graph.edges()[1].numpy(), members).sum()
    assert state.visible_edges == (own.num_edges / into if into else 1)


def test_a_partition_that_stays_keeps_its_local_ids_and_memory(tmp_path: Path) -> None:
    parts = written(random_graph(40, 90), tmp_path / "a", 8)
    before: dict[int, int] = {}
    memory = set()
    for state in PartitionBuffer(parts.folder, 4):
        now = {int(parent): local for local, parent in enumerate(state.nodes)}
        assert all(now[parent] == before[parent] for parent in now.keys() & before.keys())
        memory.add(state.graph.ndata["x"].data_ptr())
        before = now
    assert len(memory) == 1


def test_samplers_and_loaders_take_a_state(tmp_path: Path) -> None:
    graph = random_graph(60, 400)
    parts = written(graph, tmp_path / "a", 6, train=range(0, 60, 2))
    seen: list[int] = []
    numbers = set()
    for state in PartitionBuffer(parts.folder, 2, order="beta", seed=4):
        numbers.add(state.seed)
        sampler = NeighborSampler(state.graph, [3, 3], seed=state.seed)
        for batch in NodeFlowLoader(
            sampler, state.seeds, 4, shuffle=True, ndata={0: ["x"], -1: ["label"]}
        ):
            parents = state.nodes[batch.layers[0].parent_nid]
            assert batch.layers[0].data["x"].equal(graph.ndata["x"][parents])
            assert batch.layers[-1].data["label"].equal(state.nodes[batch.seeds])
            seen += state.nodes[batch.seeds].tolist()
    assert sorted(seen) == list(range(0, 60, 2))
    assert len(numbers) == beta_order(6, 2, seed=4).swaps + 1


def test_an_epoch_depends_on_seed_and_number_only(tmp_path: Path) -> None:
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


def test_other_orders(tmp_path: Path) -> None:
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
    buffer = PartitionBuffer(parts.folder, 4, order=reverse)
    # whatever it returns
    assert buffer.held_bytes >= PartitionBuffer(parts.folder, 4, order="comet").held_bytes


# --------------------------------------------------------------------------------------------------------
# learned rows


@given(cases(), st.booleans(), st.integers(1, 3))
def test_learned_rows_are_those_of_the_same_steps_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[int, int, str, int, int],
    prefetch: bool,
    epochs: int,
) -> None:
    """Every state changes all of its rows, by what they hold and by the sums over its edges."""
    num_nodes, count, order, slots, seed = case
    graph = random_graph(num_nodes, 70, seed)
    parts = written(graph, tmp_path_factory.mktemp("parts") / "a", count)
    reference = {"x": graph.ndata["x"].clone(), "half": graph.ndata["half"].clone()}
    with PartitionBuffer(
        parts.folder, slots, order=order, seed=seed, writable=["x", "half"], prefetch=prefetch
    ) as buffer:
        for _ in range(epochs):
            for state in buffer:
                x = state.graph.ndata["x"]
                half = state.graph.ndata["half"]
                src, dst = state.graph.edges()
                x.index_add_(0, dst, x[src] * 0.25)
                x += 1
                half *= 0.5
                real = state.nodes >= 0
                nodes = state.nodes
                among = torch.isin(torch.stack(graph.edges()), nodes[real]).all(0)
                u, v = (end[among] for end in graph.edges())
                reference["x"].index_add_(0, v, reference["x"][u] * 0.25)
                reference["x"][nodes[real]] += 1
                reference["half"][nodes[real]] *= 0.5
                assert x[real].allclose(reference["x"][nodes[real]])
    committed = Partitions.open(parts.folder, verify=True)
    for name, table in reference.items():
        assert committed.column(name).fetch(torch.arange(num_nodes)).allclose(table)
    assert committed.column("label").fetch(torch.arange(num_nodes)).equal(graph.ndata["label"])
    assert committed.epoch == epochs == buffer.epoch
    files = {
        array.file
        for array in committed.manifest.arrays.values()
        if array.file.startswith("nodes/")
    }
    assert {f"nodes/{path.name}" for path in (parts.folder / "nodes").iterdir()} == files


def test_bytes_written_are_counted(tmp_path: Path) -> None:
    parts = written(random_graph(40, 90), tmp_path / "a", 8, ndata=["x", "label"])
    with PartitionBuffer(parts.folder, 4, writable=["x"], ndata=["x"]) as buffer:
        states = list(map(repr, buffer))
    assert buffer.counters.bytes_written == buffer.counters.bytes_read == (4 + 10) * 5 * 3 * 4
    assert len(states) == 6
    assert "BufferState(0: parts " in states[0]


def test_a_state_ends_with_the_next_one(tmp_path: Path) -> None:
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


def test_a_budget_decides_the_slots(tmp_path: Path) -> None:
    parts = written(random_graph(4000, 9000), tmp_path / "a", 8)
    held = []
    for slots in (2, 4, 8):
        needed = PartitionBuffer(parts.folder, slots).held_bytes
        held.append(needed)
        assert PartitionBuffer(parts.folder, memory=needed).slots == slots
        if slots > 2:
            assert PartitionBuffer(parts.folder, memory=needed - 1).slots < slots
    assert held == sorted(held)
    assert PartitionBuffer(parts.folder, memory="1 GB", order="dispersed").slots == 8
    with pytest.raises(
        ValueError, match=r"memory must be at least [\d,]+ bytes for 2 slots, got 1,000; a part"
    ):
        PartitionBuffer(parts.folder, memory="1 KB")
    with pytest.raises(ValueError, match=r"memory must be at least [\d,]+ bytes for 2 slots"):
        PartitionBuffer(parts.folder, memory="1 KB", order=[[0, 1]])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "give either slots or memory"),
        ({"slots": 3}, ValueError, "slots must be one of 2, 4 for 4 parts, got 3"),
        (
            {"order": "best"},
            ValueError,
            "order must be 'comet', 'beta', 'dispersed' or 'sequential', got 'best'",
        ),
        ({"order": "sequential"}, ValueError, "order='sequential' needs training nodes"),
        ({"order": beta_order(5, 2)}, ValueError, "order must be of 4 parts"),
        ({"order": [[0, 1]], "slots": 3}, ValueError, "slots must be those of the order, 2, got 3"),
        (
            {"order": lambda _: beta_order(4, 3)},
            ValueError,
            "order must return an Order of 4 parts and 2 slots",
        ),
        ({"order": lambda _: [[0, 1]]}, TypeError, "order must return an Order"),
        (
            {"writable": ["h"]},
            KeyError,
            "writable: the buffer has no column 'h'; it has x, half, label",
        ),
        ({"ndata": "x"}, TypeError, "ndata must be a list of names"),
        ({"train": [20]}, IndexError, "train\\[0\\] is 20"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else "",
)
def test_mistakes(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    folder = written(random_graph(20, 50), tmp_path / "a", 4).folder
    with pytest.raises(error, match=words):
        PartitionBuffer(folder, **({"slots": 2} if options else {}) | options)


def test_what_is_missing(tmp_path: Path) -> None:
    folder = written(random_graph(20, 50), tmp_path / "a", 4).folder
    with pytest.raises(FileNotFoundError, match="it does not exist"):
        PartitionBuffer(tmp_path / "b", 2)
    for state in PartitionBuffer(folder, 2):
        with pytest.raises(ValueError, match="there are no training nodes; pass train"):
            state.seeds  # noqa: B018


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
        with pytest.raises(
            RuntimeError, match=r"this epoch was ended by .* by set_epoch\(\) or by close\(\)"
        ):
            next(states)
        assert found + [seen(state) for state in buffer] == whole


@pytest.mark.parametrize("order", ["comet", "beta", "dispersed"])
def test_training_nodes_of_states_are_counted_without_reading(
    parts: Partitions, order: str
) -> None:
    buffer = PartitionBuffer(parts.folder, 4, order=order)
    counts = [buffer.seeds_per_state(), buffer.seeds_per_state(1)]
    assert buffer.counters.bytes_read == buffer.counters.edge_bytes_read == 0
    assert [[len(state.seeds) for state in buffer] for _ in counts] == counts
    assert counts[0] != counts[1]


def test_mistakes_of_epochs(parts: Partitions, tmp_path: Path) -> None:
    buffer = PartitionBuffer(parts.folder, 4, order="beta")
    with pytest.raises(
        ValueError, match="state must be below 10, the number of states of epoch 5, got 10"
    ):
        buffer.set_epoch(5, 10)
    with pytest.raises(ValueError, match="epoch must be at least 0, got -1"):
        buffer.set_epoch(-1)
    unknown = written(random_graph(20, 50), tmp_path / "a", 4)
    with pytest.raises(ValueError, match="there are no training nodes; pass train"):
        PartitionBuffer(unknown.folder, 2).seeds_per_state()
    with (
        PartitionBuffer(unknown.folder, 2, writable=["x"]) as writing,
        pytest.raises(
            ValueError,
            match="set_epoch is for buffers that write nothing back, and this one writes x: it",
        ),
    ):
        writing.set_epoch(1)
    with PartitionBuffer(unknown.folder, 2, writable=["x"], epoch=7) as writing:
        assert writing.epoch == 7
        states = iter(writing)
        next(states)
        writing.close()  # within an epoch, which then is not committed
    with pytest.raises(RuntimeError, match="ended"):
        next(states)
    with PartitionBuffer(unknown.folder, 2, writable=["x"]) as writing:
        assert writing.epoch == 0
