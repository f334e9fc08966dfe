"""History: what is read is what was written, all or nothing, whatever fails and wherever it
lies.
"""

from __future__ import annotations

import gc
import os
import warnings
import weakref
from typing import Any

import pytest
import torch
from _support.views import viewed
from torch.utils._python_dispatch import TorchDispatchMode

from nodeflow import (
    Graph,
    NeighborSampler,
    TemporalNeighborSampler,
)
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.nn import VRGCN
from nodeflow.transform import edge_norm


@pytest.fixture
def ring() -> Graph:
    graph = Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3], num_nodes=7)
    graph.edata["p"] = edge_norm(graph, "right")
    return graph


def filled(graph: Graph, **options: Any) -> History:
    history = viewed(History, graph.view(weight="p"), {1: 2, 0: 3}, **options)
    history.write(1, [2, 5], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    history.write(0, [0], torch.tensor([[5.0, 6.0, 7.0]]))
    history.commit()
    return history


def everything(history: History) -> dict[str, list[Any]]:
    return {name: buffer.tolist() for name, buffer in history.named_buffers()}


def test_rows_ages_and_what_was_never_written(ring):
    history = filled(ring)
    assert history.rows(1, [5, 5, 0]).tolist() == [[3.0, 4.0], [3.0, 4.0], [0.0, 0.0]]
    assert history.age(1, [2, 0]).tolist() == [0, -1]
    # zeros that were written are not what was never written
    history.write(1, [2], torch.zeros(1, 2))
    history.commit()
    history.commit()  # a commit of nothing is a step too
    assert history.age(1).tolist() == [-1, -1, 1, -1, -1, 2, -1]
    assert history.age(0, [0]).tolist() == [2]
    history.clear()
    assert history.age(1).tolist() == [-1] * 7
    assert int(history.step) == 0


def test_a_batch_pulls_and_pushes(ring):
    history = filled(ring)
    batch = NeighborSampler(ring, [2, 2])([3, 1])
    age = history.pull(batch, missing="mask")
    for i in (0, 1):
        nodes = batch.layers[i].parent_nid
        assert torch.equal(batch.ldata[i][f"h_{i}"], history.rows(i, nodes))
        assert torch.equal(batch.ldata[i][f"known_{i}"], history.age(i, nodes) >= 0)
        above = batch.layers[i + 1].parent_nid
        assert torch.equal(
            batch.ldata[i + 1][f"agg_h_{i}"], history.propagation(history.rows(i, range(7)), above)
        )
    assert float(age) == 0
    nodes = batch.layers[1].parent_nid
    first = int(nodes[history.age(1, nodes) < 0][0])
    with pytest.raises(ValueError, match=f"layer 1 of the history has no row yet of node {first};"):
        history.pull(batch, missing="refuse")
    with pytest.raises(ValueError, match="missing must be"):
        history.pull(batch, missing="none")
    batch.ldata[1]["h"] = torch.full((batch.layer_sizes[1], 2), 9.0, requires_grad=True)
    history.push(batch)
    with pytest.raises(ValueError, match="layer 1 has rows that wait for a commit"):
        history.push(batch)
    before = history.rows(1, batch.layers[1].parent_nid)
    history.commit()
    assert not torch.equal(history.rows(1, batch.layers[1].parent_nid), before)
    assert (history.rows(1, batch.layers[1].parent_nid) == 9).all()


def test_nothing_keeps_a_gradient_or_a_batch_alive(ring):
    history = filled(ring)
    weight = torch.ones(2, requires_grad=True)
    rows = torch.ones(1, 2) * weight
    history.write(1, [3], rows)
    alive = weakref.ref(weight)
    del rows, weight
    gc.collect()
    assert alive() is None
    history.commit()
    assert all(not buffer.requires_grad for buffer in history.buffers())


@pytest.mark.parametrize(
    ("write", "error", "words"),
    [
        (lambda h, g: h.write(1, [2, 2], torch.ones(2, 2)), ValueError, "holds a node twice"),
        (
            lambda h, g: h.push(NeighborSampler(g, [1, 1])([0]), {1: torch.ones(9, 2)}),
            ValueError,
            "must have shape",
        ),
    ],
)
def test_what_is_refused_changes_nothing(write, error, words, ring):
    history = filled(ring)
    before = everything(history)
    with pytest.raises(error, match=words):
        write(history, ring)
    assert everything(history) == before
    history.write(1, [0], torch.ones(1, 2))  # and nothing waits
    history.commit()
    assert history.rows(1, [0]).tolist() == [[1.0, 1.0]]


def test_a_push_of_which_one_layer_is_wrong_takes_nothing(ring):
    history = filled(ring)
    batch = NeighborSampler(ring, [1, 1])([3])
    right = torch.ones(batch.layer_sizes[0], 3)
    wrong = torch.ones(batch.layer_sizes[1], 5)
    with pytest.raises(ValueError, match="must have shape"):
        history.push(batch, {0: right, 1: wrong})
    history.push(batch, {0: right})
    batch.ldata[1]["h"] = wrong
    before = everything(history)
    with pytest.raises(ValueError, match="must have shape"):
        history.commit(batch)
    assert everything(history) == before
    history.commit()  # what was pushed before waits no more
    assert history.rows(0, batch.layers[0].parent_nid).equal(
        filled(ring).rows(0, batch.layers[0].parent_nid)
    )


def test_layers_that_hold_a_node_in_several_contexts_are_refused():
    graph = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([1, 2])})
    batch = TemporalNeighborSampler(graph, [2, 2])([0, 0], times=[1, 2])
    with pytest.raises(ValueError, match="holds a node twice"):
        History(graph, {1: 1}).push(batch, {1: torch.ones(batch.layer_sizes[1], 1)})


def test_rows_whose_sum_is_beyond_the_largest_number_are_finite():
    history = History(Graph.from_edges([0], [1]), {1: 2})
    large = torch.full((2, 2), 3e38)
    history.write(1, [0, 1], large)
    history.commit()
    assert history.rows(1, [0, 1]).equal(large)
    with pytest.raises(ValueError, match="row 1 is not"):
        history.write(1, [0, 1], torch.tensor([[3e38, 3e38], [torch.inf, -torch.inf]]))


class FailAt(TorchDispatchMode):
    """Raises at the n-th operation."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        if self.seen == self.n:
            raise MemoryError(f"operation {self.n}")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("files", [False, True])
def test_a_fault_at_any_operation_leaves_the_old_history_or_the_new(files, ring, tmp_path):
    def made(name: str) -> History:
        return filled(ring, folder=tmp_path / name if files else None)

    batch = NeighborSampler(ring, [2, 2], seed=3)([3, 1, 5])
    rows = {
        0: torch.full((batch.layer_sizes[0], 3), 8.0),
        1: torch.full((batch.layer_sizes[1], 2), 9.0),
    }

    def step(history: History) -> None:
        history.push(batch, rows)
        history.commit()

    fresh = made("fresh")
    old = everything(fresh)
    with FailAt(0) as counter:
        step(fresh)
    new = everything(fresh)
    total = counter.seen
    assert old != new
    assert total > 10
    for n in range(1, total + 1):
        history = made(f"at{n}")
        with pytest.raises(MemoryError, match=f"operation {n}"), FailAt(n):
            step(history)
        assert everything(history) in (old, new), n
        if files:  # what was undone is no interrupted commit
            reopened = History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / f"at{n}")
            assert everything(reopened) == everything(history)
        history._staged.clear()  # what a push before the fault had taken
        step(history)  # and it goes on
        if files:
            again = History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / f"at{n}")
            assert everything(again) == everything(history)


@pytest.mark.parametrize("files", [False, True])
def test_a_commit_after_one_that_could_not_be_undone(files, ring, tmp_path, monkeypatch):
    """It gives its rows the number of the commit after the last whole one."""
    history = filled(ring, folder=tmp_path / "rows" if files else None)
    before = int(history.step)
    copy = torch.Tensor.index_copy_
    calls = 0

    def fail(array: torch.Tensor, *arguments: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls > 1:  # the step is written first
            raise MemoryError
        return copy(array, *arguments)

    history.write(1, [3], torch.ones(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "index_copy_", fail)
        with pytest.raises(RuntimeError, match="could not be put back"):
            history.commit()
    history.write(1, [3], torch.ones(1, 2))
    history.commit()
    assert (int(history.step), history.age(1, [3]).tolist()) == (before + 1, [0])


def test_state_dict_and_resuming(ring):
    history = filled(ring)
    other = History(ring.view(weight="p"), {1: 2, 0: 3})
    other.load_state_dict(history.state_dict())
    assert everything(other) == everything(history)
    wrong = History(ring.view(weight="p"), {1: 3, 0: 3})
    before = everything(wrong)
    with pytest.raises(ValueError, match="the state is of another history: h_1 is"):
        wrong.load_state_dict(history.state_dict())
    assert everything(wrong) == before
    part = {name: rows for name, rows in history.state_dict().items() if not name.startswith("h_")}
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"h_"):
        other.load_state_dict(part)
    other.load_state_dict(part, strict=False)
    assert everything(other) == everything(history)
    model = torch.nn.Sequential()
    model.history = history
    assert "history.h_1" in model.state_dict()


def test_a_state_that_is_loaded_halfway_into_files_leaves_the_old_rows(ring, tmp_path):
    history = filled(ring, folder=tmp_path / "rows")
    source = filled(ring)
    source.write(1, [0], torch.full((1, 2), 7.0))
    source.commit()
    history.write(1, [3], torch.full((1, 2), 5.0))  # waits for a commit, and is not of the state
    history.load_state_dict(source.state_dict())
    assert everything(
        History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / "rows")
    ) == everything(source)
    history.commit()
    assert everything(history)["h_1"] == everything(source)["h_1"]
    state = source.state_dict()
    history.write(1, [0], torch.full((1, 2), 3.0))
    history.commit()
    before = everything(history)
    with FailAt(0) as counter:
        History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / "other").load_state_dict(
            state
        )
    for n in range(1, 20):  # more than that are in the same places, by array
        with pytest.raises((RuntimeError, MemoryError), match=f"operation {n}"), FailAt(n):
            history.load_state_dict(state)
        assert everything(history) == before
    assert counter.seen > 20
    assert (
        everything(History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / "rows")) == before
    )


def test_flush_sends_every_file_to_the_disk(ring, tmp_path, monkeypatch):
    history = filled(ring, folder=tmp_path / "h")
    sent = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: sent.add(os.fstat(descriptor).st_ino))
    history.flush()
    files = [path.stat().st_ino for path in (tmp_path / "h").rglob("*.npy")]
    assert len(files) > 3
    assert sent > set(files)


def test_the_schedule_of_an_updater_goes_on(ring):
    model = VRGCN(3, 2, 2, num_layers=2)
    history = History(ring.view(weight="p"), model.history_widths)
    updater, again = (Updater(model, history, torch.ones(7, 3), every=3) for _ in range(2))
    due = [updater.step() for _ in range(2)]
    again.load_state_dict(updater.state_dict())
    assert due + [again.step() for _ in range(3)] == [True, False, False, True, False]
    once = Updater(model, history, torch.ones(7, 3))
    assert [once.step() for _ in range(3)] == [True, False, False]
    for wrong in ({}, {"calls": -1}, {"calls": 1, "more": 2}, 3):
        with pytest.raises(ValueError, match=r"calls|state must be"):
            again.load_state_dict(wrong)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_types(dtype, ring):
    history = filled(ring, dtype=dtype)
    assert history.rows(1, [5]).dtype == dtype
    sums = history.aggregated_rows(1, [3])
    assert sums.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert sums.tolist() == [[0.5, 1.0]]
    with pytest.raises(ValueError, match="must be finite"):
        history.write(1, [0], torch.tensor([[1e300, 0.0]], dtype=torch.float64) * 1e10)


# ---- files


def test_files_are_gone_on_with(ring, tmp_path):
    before = everything(filled(ring, folder=tmp_path / "h"))
    again = History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / "h")
    assert everything(again) == before
    with again.renewal() as new:
        new["h_1"].fill_(4.0)
    assert again.age(1).tolist() == [0] * 7
    assert everything(
        History(ring.view(weight="p"), {1: 2, 0: 3}, folder=tmp_path / "h")
    ) == everything(again)
    assert len([path for path in (tmp_path / "h").iterdir() if path.is_dir()]) == 1

    def give_up() -> None:
        with again.renewal() as new:
            new["h_1"].fill_(5.0)
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        give_up()
    assert (again.rows(1, range(7)) == 4).all()


# ---- sampler


def test_batches_of_a_loader_have_the_history_of_the_moment(ring):
    from nodeflow import NodeFlowLoader

    found = []
    for workers in (0, 2):
        history = filled(ring)
        sampler = ControlVariateSampler(history, [1, 1], seed=2)
        rows = []
        for batch in NodeFlowLoader(sampler, range(6), 2, num_workers=workers):
            assert torch.equal(batch.ldata[1]["h_1"], history.rows(1, batch.layers[1].parent_nid))
            degree = ring.in_degrees()[batch.seeds].clamp(min=1)
            assert torch.equal(batch.ldata[2]["scale"], degree.float())
            history.push(batch, {1: batch.ldata[1]["h_1"] + 1})
            history.commit()
            rows.append(batch.ldata[1]["h_1"].tolist())
        found.append((rows, everything(history)))
    assert found[0] == found[1]


# ---- updater


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("rows", [None, 2])
def test_an_updater_writes_what_full_neighbourhoods_compute(stored, rows, ring):
    torch.manual_seed(0)
    model = VRGCN(3, 4, 2, num_layers=3, dropout=0.5)
    x = torch.randn(7, 3)
    history = History(
        ring.view(weight="p"), model.history_widths, aggregated="stored" if stored else "on demand"
    )
    updater = Updater(model, history, x, every=2, chunk_size=rows)
    assert [updater.step() for _ in range(3)] == [True, False, True]
    src, dst = ring.edges()
    p = torch.zeros(7, 7).index_put_((dst, src), ring.edata["p"], accumulate=True)
    h = x
    for i, conv in enumerate(model.convs):
        if i:
            h = h.relu()
            torch.testing.assert_close(history.rows(i, range(7)), h)
            torch.testing.assert_close(history.aggregated_rows(i, range(7)), p @ h)
            assert history.age(i).tolist() == [0] * 7
        h = p @ h @ conv.linear.weight.T + conv.linear.bias
    torch.testing.assert_close(model.inference(ring.view(weight="p"), x, chunk_size=rows), h)
    assert model.training
    if stored:
        with pytest.raises(ValueError, match="is written by an Updater only"):
            history.write(1, [0], torch.ones(1, 4))


def test_an_updater_that_fails_leaves_the_old_history(ring):
    model = VRGCN(3, 4, 2, num_layers=2)
    history = History(ring.view(weight="p"), {1: 5})
    with pytest.raises(
        ValueError, match=r"layer 1 of the history is \(7, 5\), but the model's rows are \(7, 4\)"
    ):
        Updater(model, history, torch.ones(7, 3)).run()
    assert int(history.step) == 0
    with pytest.raises(ValueError, match=r"the model has no layers \[2\]"):
        Updater(
            VRGCN(3, 5, 2, num_layers=1), History(ring.view(weight="p"), {2: 5}), torch.ones(7, 3)
        ).run()
    assert model.training


def test_a_loop_that_commits_nothing_is_told_so_once(ring):
    batches = [NeighborSampler(ring, [1, 1])([seed]) for seed in (0, 1)]
    row = torch.ones(1, 2)

    def read(history: History, commits: int = 0, of: Any = batches) -> int:
        """Read 450 batches, and return the number of warnings."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for step in range(450):
                history.pull(of[step % len(of)])
                if step < commits:
                    history.write(1, [0], row)
                    history.commit()
        assert all(
            "never written, and none was committed: call history.commit(batch)" in str(one.message)
            for one in told
        )
        return len(told)

    assert read(History(ring, {1: 2})) == 1
    filled = History(ring, {1: 2})
    filled.write(1, range(ring.num_nodes), row.expand(ring.num_nodes, 2))
    filled.commit()  # as start_history does
    assert read(filled) == 0
    assert read(History(ring, {1: 2}), of=batches[:1]) == 0, "an experiment on one batch"
    assert read(History(ring, {1: 2}), commits=2) == 0
    assert read(History(ring, {1: 2}, aggregated="stored")) == 0
    with torch.no_grad():  # an evaluation
        assert read(History(ring, {1: 2})) == 0
