"""EmbeddingTable: the rows of one table whose batch is that of all ranks, and steps that all make
or none.
"""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pytest
import torch
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import NODES, graph_of_all
from hypothesis import given, settings, strategies as st
from torch import Tensor

from nodeflow import Graph
from nodeflow.distributed import PeerError
from nodeflow.storage import EmbeddingTable, Pipeline

WHOLE = graph_of_all()
OWNER = [0 if v % 5 else 2 for v in range(NODES)]  # rank 1 owns nothing
THREE = Parts(WHOLE, OWNER, 3)
IDS = st.lists(st.integers(0, NODES - 1), max_size=6)
close = torch.testing.assert_close


def loss_of(rows: Tensor, rank: int) -> Tensor:
    """A loss in which every occurrence of a row has another gradient, on every rank."""
    flat = rows.flatten()
    return (flat * torch.linspace(-1 - rank, 2, len(flat), dtype=flat.dtype)).sum() + (
        flat.sin() ** 2
    ).sum()


@pytest.mark.parametrize(
    ("name", "options"),
    [("sgd", {"lr": 0.3, "weight_decay": 0.1}), ("adagrad", {"lr": 0.3}), ("adam", {"lr": 0.1})],
)
@settings(max_examples=8)
@given(data=st.data())
def test_steps_are_those_of_one_table(name, options, data):
    size = data.draw(st.integers(1, 4))
    parts = Parts(
        WHOLE, [data.draw(st.integers(0, size - 1)) for _ in range(8)] * 7 + [0] * 4, size
    )
    steps = data.draw(
        st.lists(st.lists(st.tuples(IDS, IDS), min_size=size, max_size=size), max_size=4)
    )
    mean = data.draw(st.booleans())
    whole = EmbeddingTable(NODES, 3, optimizer=name, dtype=torch.float64, seed=4, **options)
    for pulls in steps:
        if not any(ids for pair in pulls for ids in pair):
            continue
        losses = [
            loss_of(whole.pull(ids), r) for r, pair in enumerate(pulls) for ids in pair if ids
        ]
        torch.stack(losses).sum().div(size if mean else 1).backward()
        whole.step()

    def stepped(graph: Graph, rank: int) -> None:
        table = EmbeddingTable(
            graph,
            3,
            optimizer=name,
            dtype=torch.float64,
            seed=4,
            gradients="mean" if mean else "sum",
            **options,
        )
        for pulls in steps:
            rows = [table.pull(ids) for ids in pulls[rank]]
            assert all(part.is_leaf and part.requires_grad for part in rows)
            if any(ids for pair in pulls for ids in pair):
                if any(pulls[rank]):
                    sum(loss_of(part, rank) for part in rows if len(part)).backward()
                table.step()
            table.drop()
        assert table.version == whole.version
        found = table.fetch(range(NODES))
        close(found, whole.fetch(range(NODES)), rtol=1e-12, atol=1e-12)
        state = table.state_dict()["arrays"]
        for key in set(state) - {"version", "rows", "written"}:  # of rows that a step has changed
            changed = state["written"]
            assert torch.equal(changed, whole.state_dict()["arrays"]["written"][graph.masters])
            expected = whole.state_dict()["arrays"][key][graph.masters]
            close(state[key][changed], expected[changed], rtol=1e-12, atol=1e-12)

    parts.run(stepped)


@THREE.on_every_rank
def test_rows_are_read_written_and_a_column(graph, rank):
    whole = EmbeddingTable(NODES, 4, lr=0.1)
    table = EmbeddingTable(graph, 4, lr=0.1)
    ids = [[3, 5, 3], [], [5]][rank]
    assert torch.equal(table.fetch(ids), whole.fetch(ids))
    out = torch.empty(len(ids), 4)
    assert table.fetch(torch.tensor(ids).long(), out) is out
    assert torch.equal(out, whole.fetch(ids))
    with torch.no_grad():
        assert not table.pull(ids).requires_grad
    table.write([[5], [5, 7], []][rank], torch.full(([1, 2, 0][rank], 4), 1.0 + rank))
    assert table.fetch([5, 7])[:, 0].tolist() == [1.0, 2.0]
    assert torch.equal(table.fetch([8]), whole.fetch([8]))
    graph.ndata["emb"] = table
    assert torch.equal(graph.ndata["emb"].fetch(torch.tensor([7])), table.fetch([7]))
    assert (table.shape, table.dtype, table.version, table.lr) == (
        (NODES, 4),
        torch.float32,
        1,
        0.1,
    )
    state = table.state_dict()
    again = EmbeddingTable(graph, 4, lr=0.1)
    again.load_state_dict(state)
    assert torch.equal(again.fetch([5, 7, 8]), table.fetch([5, 7, 8]))
    assert f"{[48, 0, 12][rank]} rows here" in repr(table)


@THREE.on_every_rank
def test_gradients_travel_once_per_row_and_process(graph, rank):
    table = EmbeddingTable(graph, 2, lr=0.1)
    counters = graph.peers.counters
    rows = table.pull([5, 1, 1, 5, 5])  # 5 is rank 2's, 1 is rank 0's
    rows.sum().backward()
    table.step()
    asked = [1, 2, 1][rank]
    assert counters.by_kind["learned rows: questions"] == asked * (8 * 2 + 8)
    # what the arrays are, and version, rate and flag, for each of two others
    words = 8 * (2 + 2 + 3) + 3 * 8
    assert counters.by_kind["gradients of learned rows"] == 2 * words + asked * (8 + 8)


# ---- failures


THREAD = threading.local()
"""What the rank of the thread that asks must do."""


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_rank_that_fails_in_a_step_leaves_the_rows_of_the_last_step_on_all(files, late, tmp_path):
    class Failing(EmbeddingTable):
        def _update(self, *given: Any) -> None:
            if THREAD.fails and not late:
                raise MemoryError("a fault of the test")
            super()._update(*given)
            if THREAD.fails:
                raise MemoryError("a fault of the test")

    def failed(graph: Graph, rank: int) -> None:
        THREAD.fails = False
        table = Failing(graph, 2, lr=0.5, folder=tmp_path / str(rank) if files else None)
        whole = EmbeddingTable(NODES, 2, lr=0.5)
        for k in range(3):
            rows = table.pull(range(20))
            others = [whole.pull(range(20)) for _ in range(3)]
            torch.cat([rows, *others]).sum().backward()
            if k == 1:
                before = table.fetch(range(NODES))
                THREAD.fails = rank == 2
                error, words = (
                    (MemoryError, "a fault")
                    if rank == 2
                    else (PeerError, "rank 2 failed .* a fault of the")
                )
                with pytest.raises(error, match=words):
                    table.step()
                assert torch.equal(table.fetch(range(NODES)), before)
                assert table.version == 1
                THREAD.fails = False
            table.step()  # the rows still wait, where the step failed
            whole.step()
        close(table.fetch(range(NODES)), whole.fetch(range(NODES)))
        table.close()
        if files:
            again = EmbeddingTable(graph, 2, lr=0.5, folder=tmp_path / str(rank))
            assert again.version == 3
            assert torch.equal(again.fetch(range(NODES)), table.fetch(range(NODES)))
            again.close()

    THREE.run(failed)


def test_mistakes(tmp_path):
    def mistaken(transport: ThreadTransport) -> None:
        graph = THREE.on(transport)
        rank = transport.rank
        with pytest.raises(
            ValueError, match=r"arguments of EmbeddingTable must be the same .* seed is 0 on rank 0"
        ):
            EmbeddingTable(graph, 2, lr=0.1, seed=rank // 2)
        with pytest.raises(ValueError, match="gradients must be"):
            EmbeddingTable(graph, 2, lr=0.1, gradients="max")
        with pytest.raises(ValueError, match="width must be at least 1"):
            EmbeddingTable(graph, 0, lr=0.1)
        table = EmbeddingTable(graph, 2, lr=0.1)
        with pytest.raises(
            (IndexError, PeerError), match=r"ids\[0\] is 60|rank 1 failed .* ids\[0\] is 60"
        ):
            table.pull([NODES] if rank == 1 else [])
        with pytest.raises(ValueError, match="no row has a gradient"):
            table.step()
        rows = table.pull([1, 2])
        (rows * (torch.nan if rank == 1 else 1)).sum().backward()
        before = table.fetch(range(NODES))
        with pytest.raises(
            (ValueError, PeerError), match=r"the gradient of row 1 is not finite|rank 1 failed"
        ):
            table.step()
        assert torch.equal(table.fetch(range(NODES)), before)
        table.drop(rows)
        with pytest.raises(
            (ValueError, PeerError), match=r"was not pulled from this table|rank 0 failed"
        ):
            table.step(*([rows] if rank == 0 else []))
        with pytest.raises((ValueError, PeerError), match=r"ids holds 1 2 times|rank 2 failed"):
            table.write([1, 1][: 1 + rank // 2], torch.zeros(1 + rank // 2, 2))
        table.lr = 0.1 + rank
        with pytest.raises(
            ValueError,
            match=r"the lr of a table must be the same on all processes, got \[0.1, 1.1, 2",
        ):
            table.write([], torch.zeros(0, 2))
        other = Parts(WHOLE, OWNER[::-1], 3).on(transport)
        EmbeddingTable(graph, 2, lr=0.1, folder=tmp_path / str(rank)).close()
        with pytest.raises(
            (ValueError, PeerError),
            match=r"holds an embedding table of the nodes of another part|rank 0",
        ):
            EmbeddingTable(other, 2, lr=0.1, folder=tmp_path / str(rank))
        with pytest.raises(ValueError, match=r"the state is of part . of 3, .*, this is part"):
            table.load_state_dict(table.state_dict() | {"nodes": "part 9 of 3, 0x0"})

    run_ranks(3, mistaken)


@pytest.mark.parametrize("staleness", [1, 2, 3])
def test_a_pipeline_runs_on_all_processes(staleness):
    """The tables of all processes are those of one whose batch is theirs together."""
    batches = [[[k, 3 * k + r, NODES - 1 - k] for k in range(6)] for r in range(3)]

    def compute(_: object, rows: Tensor) -> float:
        loss = (rows - 1).square().sum()
        loss.backward()
        return loss.item()

    whole = EmbeddingTable(NODES, 2, lr=0.1)
    together = [[ids for rank in range(3) for ids in batches[rank][k]] for k in range(6)]
    expected = list(Pipeline(together, (whole, lambda batch: batch), compute, staleness=staleness))

    def run(transport: ThreadTransport) -> list[float]:
        table = EmbeddingTable(THREE.on(transport), 2, lr=0.1)
        pipeline = Pipeline(
            batches[transport.rank], (table, lambda batch: batch), compute, staleness=staleness
        )
        losses = list(pipeline)
        close(table.fetch(range(NODES)), whole.fetch(range(NODES)))
        return losses

    close(torch.tensor(run_ranks(3, run)).sum(0), torch.tensor(expected))


def test_a_step_that_a_killed_rank_has_half_written_is_undone(
    tmp_path,
):
    """The other rank has not begun, so the version must not be that of the rows before, when some
    have changed.
    """
    parts = Parts(WHOLE, [v % 2 for v in range(NODES)], 2)

    class Half(EmbeddingTable):
        def _begin(self, *given: Any) -> None:
            super()._begin(*given)
            if THREAD.keeps:
                shutil.copytree(
                    tmp_path / "1", tmp_path / "1-killed", ignore=shutil.ignore_patterns(".lock")
                )

    def stepped(transport: ThreadTransport) -> Tensor:
        THREAD.keeps = False
        folder = tmp_path / str(transport.rank)
        table = Half(parts.on(transport), 2, lr=0.5, folder=folder)
        for ids in (range(20), range(40)):
            before = table.fetch(range(NODES))
            table.pull(ids).sum().backward()
            if len(ids) == 40 and transport.rank == 0:
                shutil.copytree(
                    folder, tmp_path / "0-killed", ignore=shutil.ignore_patterns(".lock")
                )
            THREAD.keeps = len(ids) == 40 and transport.rank == 1
            table.step()
        table.close()
        return before

    def opened(transport: ThreadTransport) -> Tensor:
        table = EmbeddingTable(
            parts.on(transport), 2, lr=0.5, folder=tmp_path / f"{transport.rank}-killed"
        )
        written = table.state_dict()["version"], bool(table._store.arrays["written"].sum() == 10)
        assert written == (1, True)
        return table.fetch(range(NODES))

    torch.testing.assert_close(run_ranks(2, stepped), run_ranks(2, opened), rtol=0, atol=0)
