"""EmbeddingTable: equal to ``torch.optim`` on a dense table, in memory and in files, and whole
after any fault.
"""

from __future__ import annotations

import copy
import errno
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.stores import waiting
from hypothesis import given, strategies as st
from scipy import stats
from torch import Tensor

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow.storage import EmbeddingTable, Rows

NODES = 12
WIDTH = 3
DENSE: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam
}  # fmt: skip
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"lr": 0.3}), ("adagrad", {"lr": 0.3}), ("adagrad", {"lr": 0.1, "eps": 1e-3,
     "initial_accumulator_value": 0.5}), ("adam", {"lr": 0.1}), ("adam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-2}),
]  # fmt: skip
STEPS = st.lists(
    st.lists(st.lists(st.integers(0, NODES - 1), max_size=6), min_size=1, max_size=3), max_size=5
)


def loss_of(parts: list[Tensor]) -> Tensor:
    """A loss in which every occurrence of a row has another gradient, and rows of several pulls
    meet.
    """
    flat = torch.cat([part.flatten() for part in parts])
    return (flat * torch.linspace(-1, 2, len(flat), dtype=flat.dtype)).sum() + (
        flat.sin() ** 2
    ).sum()


def close(found: Tensor, expected: Tensor) -> None:
    tolerance = 1e-12 if found.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("files", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "options"), SETTINGS)
@given(steps=STEPS)
def test_steps_are_those_of_torch(
    name,
    options,
    files,
    dtype,
    steps,
):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t" if files else None
        table = EmbeddingTable(NODES, WIDTH, optimizer=name, dtype=dtype, folder=path, **options)
        weight = torch.nn.Parameter(table.fetch(range(NODES)))
        dense = DENSE[name]([weight], **options)
        taken = 0
        for pulls in steps:
            rows = [table.pull(ids) for ids in pulls]
            assert all(part.is_leaf and part.requires_grad for part in rows)
            others = [
                torch.nn.functional.embedding(torch.tensor(ids).long(), weight, sparse=True)
                for ids in pulls
            ]
            if not any(pulls):
                continue
            for part, other in zip(rows, others, strict=True):
                close(part.detach(), other.detach())
            loss_of(rows).backward()
            table.step()
            dense.zero_grad()
            loss_of(others).backward()
            # the optimisers of dense tables; the other takes sparse gradients only
            if name != "adam":
                assert weight.grad is not None
                weight.grad = weight.grad.to_dense()
            dense.step()
            taken += 1
            close(table.fetch(range(NODES)), weight.detach())
        assert table.version == taken
        if path is not None:
            again = EmbeddingTable(
                NODES, WIDTH, optimizer=name, dtype=dtype, folder=path, **options
            )
            assert again.fetch(range(NODES)).equal(table.fetch(range(NODES)))
            assert again.version == taken
            table.close()


@pytest.mark.parametrize(
    ("name", "options"), [("sgd", {}), ("adagrad", {}), ("adam", {"eps": 0.0})]
)
def test_weight_decay_where_all_rows_have_gradients(name, options):
    """Without eps, which torch's dense Adam adds at another place than its sparse one."""
    table = EmbeddingTable(
        NODES, WIDTH, optimizer=name, lr=0.1, weight_decay=0.2, dtype=torch.float64, **options
    )
    weight = torch.nn.Parameter(table.fetch(range(NODES)))
    kind = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}[name]
    dense = kind([weight], lr=0.1, weight_decay=0.2, **options)
    for _ in range(4):
        loss_of([table.pull(range(NODES))]).backward()
        table.step()
        dense.zero_grad()
        loss_of([weight]).backward()
        dense.step()
        close(table.fetch(range(NODES)), weight.detach())


def test_short_types_compute_in_float32():
    for dtype in (torch.bfloat16, torch.float16):
        table = EmbeddingTable(4, 2, lr=0.5, dtype=dtype)
        before = table.fetch([2])
        rows = table.pull([2, 2])
        assert rows.dtype == dtype
        (rows * torch.tensor([[1.0, 2.0]])).sum().backward()
        table.step()
        assert table.fetch([2]).equal((before.float() - 0.5).to(dtype))
        assert table.state_dict()["arrays"]["sum"].tolist()[2] == [4.0, 16.0]
        table = EmbeddingTable(4, 2, lr=0.5, dtype=dtype, optimizer="adam", betas=(0.5, 0.75))
        (table.pull([2]) * torch.tensor([[1.0, 2.0]])).sum().backward()
        table.step()
        moments = table.state_dict()["arrays"]
        assert moments["exp_avg"][2:].tolist() == [[0.5, 1], [0, 0]]
        assert moments["exp_avg_sq"][2:].tolist() == [[0.25, 1], [0, 0]]


# ---- initial rows


@pytest.mark.parametrize("init", ["normal", "uniform", "zeros"])
@pytest.mark.parametrize("width", [1, 4, 5])
def test_initial_rows_depend_on_seed_and_id_alone(init, width):
    table = EmbeddingTable(3000, width, lr=1, init=init, seed=5, dtype=torch.float64)
    whole = table.fetch(range(3000))
    larger = EmbeddingTable(
        5000, width, lr=1, init=init, seed=5, dtype=torch.float64, optimizer="adam"
    )
    ids = torch.randint(0, 3000, (50,))
    assert table.fetch(ids).equal(whole[ids])
    assert larger.fetch(ids).equal(whole[ids])
    other = EmbeddingTable(3000, width, lr=1, init=init, seed=6, dtype=torch.float64).fetch(
        range(3000)
    )
    assert (whole == 0).all() if init == "zeros" else not (whole == other).any()


def test_initial_rows_have_their_distribution():
    """Kolmogorov-Smirnov tests and correlations, each of which a right draw fails with probability
    below 1e-4.
    """
    rows = (
        EmbeddingTable(20000, 5, lr=1, scale=0.5, dtype=torch.float64).fetch(range(20000)).numpy()
    )
    flat = (
        EmbeddingTable(20000, 5, lr=1, init="uniform", scale=2, dtype=torch.float64)
        .fetch(range(20000))
        .numpy()
    )
    for column in range(5):
        assert stats.kstest(rows[:, column] / 0.5, "norm").pvalue > 1e-4
        assert stats.kstest((flat[:, column] + 2) / 4, "uniform").pvalue > 1e-4
    for values in (rows, flat):
        correlations = np.corrcoef(np.concatenate([values[:-1], values[1:]], 1).T)
        assert np.abs(correlations - np.eye(10)).max() < 4.5 / np.sqrt(20000)


def test_a_large_table_in_files_is_there_at_once(tmp_path):
    table = EmbeddingTable(10**6, 64, lr=0.1, folder=tmp_path / "t")
    rows = table.pull([10**6 - 1, 5])
    assert rows.equal(EmbeddingTable(10**6, 64, lr=0.1).fetch([10**6 - 1, 5]))
    rows.sum().backward()
    table.step()
    assert table.fetch([4, 5]).equal(
        torch.stack([EmbeddingTable(6, 64, lr=1).fetch([4])[0], rows[1].detach() - 0.1])
    )
    table.close()


# ---- use


def test_several_pulls_and_steps_of_some_of_them():
    table = EmbeddingTable(6, 2, optimizer="sgd", lr=1, init="zeros")
    first = table.pull([1, 2])
    second = table.pull([2, 3])
    unused = table.pull([4])
    (first.sum() + 10 * second.sum()).backward()
    table.step(second)
    assert table.fetch(range(6))[:, 0].tolist() == [0, 0, -10, -10, 0, 0]
    with pytest.raises(
        ValueError, match=r"rows\[1\] was not pulled from this table, or its step was made"
    ):
        table.step(first, second)
    table.step()
    assert table.fetch(range(6))[:, 0].tolist() == [0, -1, -11, -10, 0, 0]
    assert table.version == 2
    with pytest.raises(ValueError, match="no row has a gradient"):
        table.step()
    with pytest.raises(ValueError, match="was not pulled"):
        table.step(unused)
    with torch.no_grad():
        assert not table.pull([0]).requires_grad
    assert waiting(table) == []
    first = table.pull([1])
    second = table.pull([2])
    (first + second).sum().backward()
    table.drop(first)
    table.step()
    assert table.fetch(range(6))[:, 0].tolist() == [0, -1, -12, -10, 0, 0]
    table.pull([1])
    table.drop()
    assert waiting(table) == []


def test_gradients_add_up_over_calls_of_backward():
    table = EmbeddingTable(3, 2, optimizer="sgd", lr=1, init="zeros")
    rows = table.pull([1, 1])
    for _ in range(3):
        rows.sum().backward()
    table.step()
    assert table.fetch([1]).tolist() == [[-6, -6]]


def test_the_learning_rate_may_change():
    table = EmbeddingTable(3, 1, optimizer="sgd", lr=1, init="zeros")
    for lr in (0.5, 0.25):
        table.lr = lr
        table.pull([0]).sum().backward()
        table.step()
    assert table.fetch([0]).item() == -0.75


def test_a_column_of_a_graph():
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    table = EmbeddingTable(4, 2, lr=0.1)
    assert isinstance(table, Rows)
    graph.ndata["emb"] = table
    for batch in NodeFlowLoader(NeighborSampler(graph, [1]), range(4), 2, ndata={0: ["emb"]}):
        nodes = batch.layers[0].parent_nid
        assert batch.ldata[0]["emb"].equal(table.fetch(nodes))
        rows = table.pull(nodes)
        batch.flows[0].aggregate(rows, "sum").sum().backward()
        table.step()
    out = torch.empty(2, 2)
    assert table.fetch(torch.tensor([3, 3]), out) is out
    assert out.equal(table.fetch([3, 3]))


def test_rows_can_be_written(tmp_path):
    options: dict[str, Any] = {"lr": 0.1, "initial_accumulator_value": 0.5, "dtype": torch.float64}
    for folder in (None, tmp_path / "t"):
        table = EmbeddingTable(5, 2, folder=folder, **options)
        table.write([4, 0], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        assert table.fetch([0, 4]).tolist() == [[3, 4], [1, 2]]
        assert table.version == 1
        table.pull([4]).sum().backward()
        table.step()
        torch.testing.assert_close(
            table.fetch([4]), torch.tensor([[1.0, 2.0]]).double() - 0.1 / 1.5**0.5
        )


# ---- state


def trained(table: EmbeddingTable, steps: int) -> EmbeddingTable:
    """Take some steps; which ones depends on the version alone."""
    for _ in range(steps):
        ids = torch.randint(
            0, table.shape[0], (8,), generator=torch.Generator().manual_seed(table.version)
        )
        loss_of([table.pull(ids)]).backward()
        table.step()
    return table


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_a_run_goes_on_from_its_state(name, tmp_path):
    make = lambda: EmbeddingTable(NODES, WIDTH, optimizer=name, lr=0.1)  # noqa: E731
    straight = trained(make(), 5).fetch(range(NODES))
    torch.save(trained(make(), 2).state_dict(), tmp_path / "state.pt")
    again = trained(make(), 4)
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert trained(again, 3).fetch(range(NODES)).equal(straight)
    for other in (copy.deepcopy(again), pickle.loads(pickle.dumps(again))):
        assert trained(other, 1).fetch(range(NODES)).equal(trained(make(), 6).fetch(range(NODES)))
    assert again.version == 5


def test_a_state_of_another_table_changes_nothing():
    table = EmbeddingTable(4, 2, lr=1)
    before = table.fetch(range(4))
    with pytest.raises(ValueError, match="another table"):
        table.load_state_dict(trained(EmbeddingTable(5, 2, lr=1), 1).state_dict())
    assert table.fetch(range(4)).equal(before)


def test_the_state_of_files_is_their_folder(tmp_path):
    table = trained(EmbeddingTable(4, 2, lr=1, folder=tmp_path / "t"), 2)
    state = table.state_dict()
    table.load_state_dict(state)
    trained(table, 1)
    with pytest.raises(
        ValueError, match=r"of version 2 of the table, but .* is at version 3; use a copy"
    ):
        table.load_state_dict(state)
    with pytest.raises(TypeError, match="belongs to one process"):
        copy.deepcopy(table)
    table.flush()
    table.close()
    with pytest.raises(ValueError, match="is closed"):
        trained(table, 1)
    with pytest.raises(ValueError, match="with optimizer adagrad, not sgd"):
        EmbeddingTable(4, 2, lr=1, optimizer="sgd", folder=tmp_path / "t")
    with pytest.raises(ValueError, match="with seed 0, not 1"):
        EmbeddingTable(4, 2, lr=1, seed=1, folder=tmp_path / "t")
    with pytest.raises(ValueError, match="with arrays"):
        EmbeddingTable(5, 2, lr=1, folder=tmp_path / "t")


# ---- faults


def test_a_full_disk(tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    table = EmbeddingTable(NODES, WIDTH, lr=0.1, folder=tmp_path / "t")
    before = table.fetch(range(NODES))
    table.pull(range(NODES)).sum().backward()
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full, raising=False)
        with pytest.raises(OSError, match="No space left on device"):
            table.step()
    assert (table.version, table.fetch(range(NODES)).equal(before)) == (0, True)
    table.step()  # the rows still wait
    assert table.version == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_gradients_that_are_not_finite_are_not_written(bad):
    table = EmbeddingTable(4, 2, lr=0.1)
    before = table.fetch(range(4))
    rows = table.pull([3, 1, 3])
    rows.grad = torch.tensor([[1.0, 1.0], [1.0, bad], [1.0, 1.0]])
    with pytest.raises(ValueError, match="the gradient of row 1 is not finite"):
        table.step()
    assert table.fetch(range(4)).equal(before)
