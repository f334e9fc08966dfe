"""Training on a partition buffer: batches of states, the same run again or gone on with, commands,
and refusals.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest
import torch
from _support.cli_tools import status, train as command
from _support.training_tools import (
    FAST,
    Fixed,
    by_hand,
    contents,
    partitioned,
    planted,
    same_result,
    slow,
    stop_after,
    stopped_at,
    train,
)

from nodeflow._core.base.progress import Progress
from nodeflow.datasets import Dataset, read_folder
from nodeflow.training import Checkpoints, Stopped, Trainer


@pytest.fixture
def data(folders: Fixed) -> Dataset:
    return read_folder(folders["data"])


# batches


@pytest.mark.parametrize("order", ["comet", slow("beta"), "dispersed"])
def test_batches_are_those_of_the_states(folders, data, order):
    settings = partitioned(
        folders["in"], order=order, slots=4 if order == "comet" else 3, workers=2
    )
    batches = Trainer(data, settings).batches
    graph = planted().graph
    for epoch in range(2):
        found = [contents(batch) for batch in batches]
        expected = list(by_hand(settings, epoch))
        assert found == [batch for batch, _ in expected]
        assert len(found) == len(batches)
        trained = []
        for (layers, _, feat, label), nodes in expected:
            parents = [nodes[torch.tensor(layer)] for layer in layers]
            assert feat == graph.ndata["feat"][parents[0]].tolist()
            assert label == graph.ndata["label"][parents[-1]].tolist()
            trained.extend(parents[-1].tolist())
        assert sorted(trained) == sorted(data.train.tolist())


def test_epochs_have_different_numbers_of_batches(folders, data, tmp_path):
    trainer = Trainer(data, partitioned(folders["in"], epochs=6))
    batches = trainer.batches
    counts = [batches.num_batches(epoch) for epoch in range(6)]
    assert batches.buffer.counters.bytes_read == 0  # nothing is read before a run begins
    assert len(batches) == counts[0]
    assert [sum(1 for _ in batches) for _ in counts] == counts
    assert len(batches) == counts[-1]
    assert len(set(counts)) > 1
    data = replace(data, train=data.train[:1], test=torch.cat([data.test, data.train[1:]]))
    data.save(tmp_path / "data")
    assert (
        status(
            [
                "partition",
                tmp_path / "data",
                "--parts 6 --output",
                tmp_path / "parts",
            ]
        )
        == 0
    )
    one = Trainer(
        data, partitioned(tmp_path / "parts", direction="both", order="dispersed", slots=3)
    ).batches
    assert sum(1 for _ in one) == 1  # most states have no training node


def test_a_schedule_ends_with_the_last_step(folders, data):
    change = {"schedule": "linear", "warmup": 1.5, "accumulate": 2, "batch_size": 3, "epochs": 4}
    trainer = Trainer(data, partitioned(folders["in"], **change))
    rates = []
    update = trainer.update

    def updated() -> None:
        rates.append(trainer.optimizer.param_groups[0]["lr"] / FAST.optimizer.lr)
        update()

    trainer.update = updated  # type: ignore[method-assign]
    trainer.run()
    steps = [-(-trainer.task.num_batches(epoch) // 2) for epoch in range(4)]
    assert len({*steps}) > 1
    assert len(rates) == sum(steps)
    warmup = round(steps[0] + steps[1] / 2)
    left = sum(steps) - warmup
    rising = [(step + 1) / warmup for step in range(warmup)]
    assert rates == pytest.approx([*rising, *((left - step) / left for step in range(left))])
    assert trainer.optimizer.param_groups[0]["lr"] == 0


def test_the_bar_counts_the_batches_of_the_run(folders, data):
    trainer = Trainer(data, partitioned(folders["in"], epochs=5))
    counts = [trainer.task.num_batches(epoch) for epoch in range(5)]
    stop_after(trainer, counts[0] + 2)
    with pytest.raises(Stopped, match=f"stopped in epoch 2 after batch 2 of {counts[1]}"):
        trainer.run()
    bar = Progress().bar(counts, 2, trainer.batches_done, shown=True)
    assert (bar.total, bar.n) == (sum(counts), counts[0] + 2)


# the same run


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("in", {"slots": 2}),
        slow("both", {"direction": "both", "order": "beta", "slots": 3, "sampler": "labor"}),
        slow("in", {"order": "dispersed", "slots": 4, "class_weights": "seeds", "norm": "batch"}),
        slow("in", {"slots": 6, "precision": "bf16"}),
    ],
    ids=str,
)
def test_a_run_goes_on_at_any_batch_bit_for_bit(folders, data, tmp_path, name, change):
    settings = partitioned(folders[name], epochs=2, **change)
    whole = train(data, settings)
    checkpoints = Checkpoints.every(tmp_path, "1")
    counts = [whole.task.num_batches(epoch) for epoch in range(2)]
    for batches in (1, counts[0] // 2, counts[0], sum(counts) - 1):
        trainer = Trainer(data, settings, checkpoints=checkpoints)
        assert stopped_at(trainer, batches)
        again = Trainer(data, settings.replace(workers=2), checkpoints=checkpoints)
        checkpoints.restore(again)
        assert sum(counts[: again.epoch]) + again.batches_done == batches
        result = again.run()
        assert same_result(whole, replace(result, settings=settings)), batches
        if batches == sum(counts) - 1:  # the states before were not read
            assert (
                again.batches.buffer.counters.states < len(again.batches.buffer.order_of(1).states)
                or settings.storage.slots == 6
            )


def test_a_run_again_is_the_same_also_from_sparse_features(folders, data):
    one = train(data, partitioned(folders["in"]))
    other = train(planted(), partitioned(folders["in"]))
    assert same_result(one, replace(train(data, partitioned(folders["in"])), settings=one.settings))
    # features of the data set in memory, and in a file: the rest of a run reads both
    assert [r.loss for r in one.records] == [r.loss for r in other.records]
    assert one.scores["test"] == pytest.approx(other.scores["test"], abs=0.02)
    assert repr(one.task.features["node"]).startswith("FeatureRows(float32 [300, 3]")
    assert isinstance(other.task.features["node"], torch.Tensor)
    sparse = read_folder(folders["sparse"])
    settings = partitioned(folders["sparse-in"])
    dense = planted(sparse=True).graph.ndata["feat"].to_dense()
    for batch in Trainer(sparse, settings).batches:
        state_feat = batch.layers[0].data["feat"]
        assert state_feat.layout == torch.sparse_csr
        assert torch.isin(state_feat.to_dense(), dense).all()


def test_all_partitions_in_memory_learn_as_in_memory(folders, data):
    """The nodes of a state are all nodes: every epoch has all training nodes, in batches of the
    same sizes.
    """
    settings = partitioned(folders["in"], slots=6, batch_size=64, epochs=6)
    plain = FAST.replace(epochs=6)
    scores: dict[str, float] = {"plain": 0.0, "partitions": 0.0}
    for seed in range(3):
        scores["plain"] += train(data, plain.replace(seed=seed)).scores["test"]["accuracy"] / 3
        result = train(data, settings.replace(seed=seed))
        scores["partitions"] += result.scores["test"]["accuracy"] / 3
        batches = result.task.batches
        assert [batch.layer_sizes[-1] for batch in batches] == [64, 46]
    assert scores["plain"] > 0.6  # chance is 1/3
    assert scores["partitions"] == pytest.approx(scores["plain"], abs=0.05)


def test_another_setting_gives_other_batches(folders, data):
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"slots": 4},
        {"order": "beta"},
        {"order": "dispersed"},
        {"seed": 1},
    )
    found = [
        Trainer(data, partitioned(folders["in"], epochs=1, **change)).batches for change in changes
    ]
    assert len({str([contents(batch) for batch in batches]) for batches in found}) == len(changes)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        slow("in", {"sampler": "ladies", "fanouts": (30, 30), "model": "gcn"}),
        slow("in", {"sampler": "fastgcn", "fanouts": (30, 30)}),
        slow("in", {"sampler": "bernoulli", "model": "gat"}),
        slow("in", {"sampler": "random-walk"}),
        slow("out", {"direction": "out", "precision": "bf16"}),
        ("both", {"model": "rgcn", "direction": "both"}),
    ],
    ids=str,
)
def test_samplers_and_models(folders, data, name, change):
    """Learning is better than chance, which is 1/3; estimator weights of a state come from the
    degrees of its graph.
    """
    result = train(data, partitioned(folders[name], slots=4, **change))
    assert result.scores["test"]["accuracy"] > 0.5
    if change.get("sampler") == "ladies":
        degrees = [state.graph.in_degrees() for state in result.task.batches.buffer]
        batch = next(iter(result.task.batches))
        layer = batch.layers[-1]
        found = torch.stack([one[layer.parent_nid].float() for one in degrees])
        assert (found == layer.data["in_degree"]).all(1).any()


# the command


def test_commands(folders, tmp_path, cli):
    folder = tmp_path / "parts"
    run = tmp_path / "run"
    assert status(["partition", folders["data"], "--parts 6 --output", folder]) == 0
    words = ["--storage partitions --partitions", folder, "--slots 4 --no-plot"]
    assert "\nPartitionBuffer(4 of 6 parts in memory, " in cli.train(folders["data"], run, *words)
    assert "--resume takes the settings of its folder, but slots was given too" in cli.failure(
        "train --resume", run, "--slots 2"
    )
    assert status(["train --resume", run, "--epochs 3 --no-plot"]) == 0
    whole = tmp_path / "whole"
    assert command(folders["data"], whole, *words, "--epochs 3") == 0
    assert (whole / "checkpoint.safetensors").read_bytes() == (
        run / "checkpoint.safetensors"
    ).read_bytes()
    moved = folder.rename(tmp_path / "moved")
    assert (
        status(
            [
                "train --resume",
                run,
                "--epochs 4 --partitions",
                moved,
                "--no-plot",
            ]
        )
        == 0
    )
    shutil.rmtree(moved)  # what follows reads the data set alone
    assert "test  accuracy" in cli("evaluate", run)
    assert status(["predict", run, "--output", tmp_path / "out.csv"]) == 0
    assert "moved" in cli.failure("train --resume", run, "--epochs 5")
