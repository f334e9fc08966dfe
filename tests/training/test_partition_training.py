"""Training on a partition buffer: batches of states, the same run again or gone on with, commands, and refusals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from _support.cli_tools import SMALL, status
from _support.cli_tools import train as command
from _support.training_tools import FAST, planted, same_result, train

from nodeflow import NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.datasets import Dataset, read_folder
from nodeflow.storage import PartitionBuffer, Partitions
from nodeflow.training import Checkpoints, Settings, Stopped, Trainer
from nodeflow.training._partition_batches import PartitionBatches

pytestmark = pytest.mark.usefixtures("one_thread")
Fixed = dict[str, Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Fixed:
    """The planted data set as a graph folder, dense and sparse; its partitions along its edges, and both ways."""
    place = tmp_path_factory.mktemp("planted")
    planted().save(place / "data")
    planted(sparse=True).save(place / "sparse")
    for name, data, direction, parts in (
        ("in", "data", "in", "6"), ("both", "data", "both", "6"), ("out", "data", "out", "6"),
        ("sparse-in", "sparse", "in", "6"), ("seven", "data", "in", "7"),
    ):  # fmt: skip
        words = ["partition", str(place / data), "--parts", parts, "--direction", direction]
        assert status([*words, "--output", str(place / name)]) == 0
    return {path.name: path for path in place.iterdir()}


@pytest.fixture
def data(folders: Fixed) -> Dataset:
    return read_folder(folders["data"])


def partitioned(folder: Path, **change: Any) -> Settings:
    """FAST on 2 of the partitions of a folder, in batches of 5: states have several of them, and few or none."""
    usual = {"storage": "partitions", "partitions": str(folder), "slots": 2, "batch_size": 5, "epochs": 3}
    return replace(FAST, **{**usual, **change})


def slow(*case: Any) -> Any:
    """A second case of a law."""
    return pytest.param(*case, marks=pytest.mark.slow)


def contents(batch: NodeFlow) -> list[Any]:
    ends = [[end.tolist() for end in flow.edges()] for flow in batch.flows]
    columns = [batch.layers[0].data["feat"].tolist(), batch.layers[-1].data["label"].tolist()]
    return [[layer.parent_nid.tolist() for layer in batch.layers], ends, *columns]


# batches


def by_hand(settings: Settings, epoch: int) -> Iterator[tuple[list[Any], torch.Tensor]]:
    """The batches of an epoch, and the nodes that local ids are, from a loop over a buffer."""
    buffer = PartitionBuffer(settings.partitions, settings.slots, order=settings.order, seed=settings.seed, epoch=epoch)
    for state in buffer:
        loader = NodeFlowLoader(
            NeighborSampler(state.graph, settings.sizes, seed=state.seed), state.seeds, settings.batch_size, True,
            seed=state.seed, ndata={0: ["feat"], -1: ["label"]},
        )  # fmt: skip
        for batch in loader:
            yield contents(batch), state.nodes


@pytest.mark.parametrize("order", ["comet", slow("beta"), "dispersed"])
def test_batches_are_those_of_the_states(folders: Fixed, data: Dataset, order: str) -> None:
    settings = partitioned(folders["in"], order=order, slots=4 if order == "comet" else 3, workers=2)
    batches = Trainer(data, settings).batches
    graph = planted().graph
    for epoch in range(2):
        found, expected = [contents(batch) for batch in batches], list(by_hand(settings, epoch))
        assert found == [batch for batch, _ in expected]
        assert len(found) == len(batches)
        trained = []
        for (layers, _, feat, label), nodes in expected:
            parents = [nodes[torch.tensor(layer)] for layer in layers]
            assert feat == graph.ndata["feat"][parents[0]].tolist()
            assert label == graph.ndata["label"][parents[-1]].tolist()
            trained.extend(parents[-1].tolist())
        assert sorted(trained) == sorted(data.train.tolist())


def test_epochs_have_different_numbers_of_batches(folders: Fixed, data: Dataset) -> None:
    trainer = Trainer(data, partitioned(folders["in"], epochs=6))
    batches = trainer.batches
    assert isinstance(batches, PartitionBatches)
    counts = [batches.num_batches(epoch) for epoch in range(6)]
    assert batches.buffer.counters.bytes_read == 0  # nothing is read before a run begins
    assert len(batches) == counts[0]
    assert [sum(1 for _ in batches) for _ in counts] == counts
    assert len(batches) == counts[-1]
    assert len(set(counts)) > 1


def test_a_schedule_ends_with_the_last_step(folders: Fixed, data: Dataset) -> None:
    change = {"schedule": "linear", "warmup": 1.5, "accumulate": 2, "batch_size": 3, "epochs": 4}
    trainer = Trainer(data, partitioned(folders["in"], **change))
    rates, update = [], trainer.update

    def updated() -> None:
        rates.append(trainer.optimizer.param_groups[0]["lr"] / FAST.learning_rate)
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


def test_the_bar_counts_the_batches_of_the_run(folders: Fixed, data: Dataset) -> None:
    trainer = Trainer(data, partitioned(folders["in"], epochs=5))
    counts = [trainer.task.num_batches(epoch) for epoch in range(5)]
    stop_after(trainer, counts[0] + 2)
    with pytest.raises(Stopped, match=f"stopped in epoch 2 after batch 2 of {counts[1]}"):
        trainer.run()
    bar = trainer._bar(2)
    assert (bar.total, bar.n) == (sum(counts), counts[0] + 2)


# the same run


def stop_after(trainer: Trainer, batches: int) -> None:
    """Let a trainer stop after so many more batches."""
    step, left = trainer.step, [batches]

    def counted(batch: Any) -> float:
        left[0] -= 1
        if not left[0]:
            trainer.stop()
        return step(batch)

    trainer.step = counted  # type: ignore[method-assign]


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
def test_a_run_goes_on_at_any_batch_bit_for_bit(
    folders: Fixed, data: Dataset, tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    settings = partitioned(folders[name], epochs=2, **change)
    whole = train(data, settings)
    checkpoints = Checkpoints.every(tmp_path, "1")
    counts = [whole.task.num_batches(epoch) for epoch in range(2)]
    for batches in (1, counts[0] // 2, counts[0], sum(counts) - 1):
        trainer = Trainer(data, settings, checkpoints=checkpoints)
        stop_after(trainer, batches)
        with pytest.raises(Stopped):
            trainer.run()
        again = Trainer(data, replace(settings, workers=2), checkpoints=checkpoints)
        checkpoints.restore(again)
        assert sum(counts[: again.epoch]) + again.batches_done == batches
        result = again.run()
        assert same_result(whole, replace(result, settings=settings)), batches
        assert isinstance(again.batches, PartitionBatches)
        assert isinstance(whole.task.batches, PartitionBatches)
        if batches == sum(counts) - 1:  # the states before were not read
            assert (
                again.batches.buffer.counters.states < len(again.batches.buffer.order_of(1).states)
                or settings.slots == 6
            )


def test_a_run_again_is_the_same_also_from_sparse_features(folders: Fixed, data: Dataset) -> None:
    one, other = train(data, partitioned(folders["in"])), train(planted(), partitioned(folders["in"]))
    assert same_result(one, replace(train(data, partitioned(folders["in"])), settings=one.settings))
    # features of the data set in memory, and in a file: the rest of a run reads both
    assert [r.loss for r in one.records] == [r.loss for r in other.records]
    assert one.scores["test"] == pytest.approx(other.scores["test"], abs=0.02)
    assert one.task.features is not None
    assert other.task.features is None
    sparse, settings = read_folder(folders["sparse"]), partitioned(folders["sparse-in"])
    dense = planted(sparse=True).graph.ndata["feat"].to_dense()
    for batch in Trainer(sparse, settings).batches:
        state_feat = batch.layers[0].data["feat"]
        assert state_feat.layout == torch.strided
        assert torch.isin(state_feat, dense).all()


def test_all_partitions_in_memory_learn_as_in_memory(folders: Fixed, data: Dataset) -> None:
    """The nodes of a state are all nodes: every epoch has all training nodes, in batches of the same sizes."""
    settings = partitioned(folders["in"], slots=6, batch_size=64, epochs=6)
    plain = replace(FAST, epochs=6)
    scores: dict[str, float] = {"plain": 0.0, "partitions": 0.0}
    for seed in range(3):
        scores["plain"] += train(data, replace(plain, seed=seed)).scores["test"]["accuracy"] / 3
        result = train(data, replace(settings, seed=seed))
        scores["partitions"] += result.scores["test"]["accuracy"] / 3
        batches = result.task.batches
        assert isinstance(batches, PartitionBatches)
        assert [batch.layer_sizes[-1] for batch in batches] == [64, 46]
    assert scores["plain"] > 0.6  # chance is 1/3
    assert scores["partitions"] == pytest.approx(scores["plain"], abs=0.05)


def test_another_setting_gives_other_batches(folders: Fixed, data: Dataset) -> None:
    changes: tuple[dict[str, Any], ...] = ({}, {"slots": 4}, {"order": "beta"}, {"order": "dispersed"}, {"seed": 1})
    found = [Trainer(data, partitioned(folders["in"], epochs=1, **change)).batches for change in changes]
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
def test_samplers_and_models(folders: Fixed, data: Dataset, name: str, change: dict[str, Any]) -> None:
    """Learning is better than chance, which is 1/3; estimator weights of a state come from the degrees of its graph."""
    result = train(data, partitioned(folders[name], slots=4, **change))
    assert result.scores["test"]["accuracy"] > 0.5
    if change.get("sampler") == "ladies":
        assert isinstance(result.task.batches, PartitionBatches)
        degrees = [state.graph.in_degrees() for state in result.task.batches.buffer]
        batch = next(iter(result.task.batches))
        layer = batch.layers[-1]
        found = torch.stack([one[layer.parent_nid].float() for one in degrees])
        assert (found == layer.data["in_degree"]).all(1).any()


# the command


def test_commands(folders: Fixed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, run = tmp_path / "parts", tmp_path / "run"
    assert status(["partition", str(folders["data"]), "--parts", "6", "--output", str(folder)]) == 0
    words = ["--storage", "partitions", "--partitions", str(folder), "--slots", "4", "--no-plot"]
    assert command(folders["data"], run, *words) == 0
    assert "4 of Partitions(6 partitions of 50 nodes, 3580 edges, " in capsys.readouterr().out
    assert status(["train", "--resume", str(run), "--slots", "2"]) == 2
    assert "--resume takes the settings of its folder, but slots was given too" in capsys.readouterr().err
    assert status(["train", "--resume", str(run), "--epochs", "3", "--no-plot"]) == 0
    whole = tmp_path / "whole"
    assert command(folders["data"], whole, *words, "--epochs", "3") == 0
    assert (whole / "checkpoint.safetensors").read_bytes() == (run / "checkpoint.safetensors").read_bytes()
    moved = folder.rename(tmp_path / "moved")
    assert status(["train", "--resume", str(run), "--epochs", "4", "--partitions", str(moved), "--no-plot"]) == 0
    shutil.rmtree(moved)  # what follows reads the data set alone
    capsys.readouterr()
    assert status(["evaluate", str(run)]) == 0
    assert "test  accuracy" in capsys.readouterr().out
    assert status(["predict", str(run), "--output", str(tmp_path / "out.csv")]) == 0
    assert status(["train", "--resume", str(run), "--epochs", "5"]) == 2
    assert "moved" in capsys.readouterr().err


KILLED = """
import os, signal, sys
from nodeflow.training._trainer import Trainer
from nodeflow.training._cli import main

step, left = Trainer.step, int(sys.argv.pop(1))

def killed(self, batch):
    global left
    left -= 1
    if left == 0:
        self.checkpoints.save(self)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch)

Trainer.step = killed
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on(folders: Fixed, tmp_path: Path) -> None:
    """Killed two batches after the first epoch, one after a state that was saved in the middle of the second."""
    words = ["--storage", "partitions", "--partitions", str(folders["in"]), "--slots", "2", "--direction", "in"]
    words += ["--batch-size", "5", "--no-plot"]
    assert command(folders["data"], tmp_path / "whole", *words) == 0
    first = Trainer(read_folder(folders["data"]), partitioned(folders["in"])).task.num_batches(0)
    run = ["train", str(folders["data"]), *SMALL, "--output", str(tmp_path / "run"), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(first + 4), *run], env=environment, check=False, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert status(["train", "--resume", str(tmp_path / "run"), "--no-plot"]) == 0
    one, other = ((tmp_path / name / "checkpoint.safetensors").read_bytes() for name in ("whole", "run"))
    assert one == other


# what cannot be


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partitions": ""}, "storage 'partitions' needs partitions: the folder that nodeflow partition wrote"),
        ({"slots": 0}, "storage 'partitions' needs slots: how many partitions are in memory at a time"),
        ({"order": "random"}, "order must be 'comet', 'beta', 'dispersed' or 'sequential', got 'random'"),
        ({"storage": "file"}, "partitions is read with storage 'partitions' only, got partitions = '.*' with storage"),
        ({"storage": "memory", "partitions": ""}, "slots is read with storage 'partitions' only, got slots = 2 with"),
        ({"task": "link"}, "storage must not be 'partitions' with task 'link', which draws negatives among all nodes"),
        ({"inputs": "embedding"}, "inputs must be 'features' with storage 'partitions', since the learned rows"),
        ({"inputs": "both"}, "inputs must be 'features' with storage 'partitions', .* got 'both'"),
        ({"sampler": "cv"}, "storage must be 'memory' with sampler 'cv', which reads the features of all nodes"),
        ({"sampler": "saint"}, "storage must not be 'partitions' with sampler 'saint', whose weights of nodes"),
        ({"sampler": "cluster"}, "storage must not be 'partitions' with sampler 'cluster', which cuts the whole graph"),
        ({"sampler": "shadow"}, "storage must not be 'partitions' with sampler 'shadow', whose subgraphs would end"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        partitioned(Path("parts"), **change)
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="partitions must be a string, the path of a folder, got"):
        Settings(partitions=Path("parts"))  # type: ignore[arg-type]


def changed(**columns: torch.Tensor) -> Dataset:
    data = planted()
    graph = data.graph
    made = type(graph).from_edges(*graph.edges(), num_nodes=300, ndata={**graph.ndata, **columns}, edata=graph.edata)
    return replace(data, graph=made)


def another_label(data: Dataset) -> Dataset:
    label = data.graph.ndata["label"].clone()
    label[data.train.sort().values[3]] = (label[data.train.sort().values[3]] + 1) % 3
    return changed(label=label)


def other_edges(data: Dataset) -> Dataset:
    src, dst = data.graph.edges()
    graph = type(data.graph).from_edges(dst, src, num_nodes=300, ndata=data.graph.ndata, edata=data.graph.edata)
    return replace(planted(), graph=graph)


@pytest.mark.parametrize(
    ("of", "name", "change", "message"),
    [
        (None, "nowhere", {}, "nowhere"),
        (None, "in", {"slots": 4, "order": "sequential"}, "slots must be at least the number of partitions with"),
        (None, "in", {"slots": 3}, "slots must be one of 2, 4, 6 for 6 partitions, got 3"),
        (lambda _: planted(val=80, test=100), "in", {}, None),
        (lambda data: replace(data, train=data.train[1:]), "in", {}, r"node \d+ is a training node of the folder only"),
        (lambda data: replace(data, train=torch.cat([data.train, data.val[:1]]), val=data.val[1:]), "in", {},
         r"node \d+ is a training node of the data set only"),
        (another_label, "in", {}, r"the label of training node \d+ is another one; write them again with nodeflow"),
        (lambda data: changed(feat=data.graph.ndata["feat"] * 2), "in", {}, r"the features of node \d+ are others"),
        (lambda data: changed(feat=data.graph.ndata["feat"].double()), "in", {},
         r"its features are torch.float32 \[300, 3\], and those of the data set torch.float64 \[300, 3\]"),
        (lambda data: changed(feat=data.graph.ndata["feat"][:, :2].clone()), "in", {}, r"data set .* \[300, 2\]"),
        (None, "in", {"direction": "both"}, "has 1,800 edges, and messages go along 3,580 edges with direction 'both'"),
        (None, "out", {}, r"edges from partition \d to partition \d, and the data set .* with direction 'in'"),
        (other_edges, "in", {}, r"it has [\d,]+ edges from partition \d to partition \d, and the data set"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_folders_that_do_not_fit(
    folders: Fixed, data: Dataset, of: Callable[[Dataset], Dataset] | None, name: str, change: dict[str, Any],
    message: str | None,
) -> None:  # fmt: skip
    settings = partitioned(folders["in"].parent / name, **change)
    given = data if of is None else of(planted())
    if message is None:
        Trainer(given, settings)
        return
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        Trainer(given, settings)
    assert "\n" not in str(caught.value)


def test_edge_types_must_be_those_of_messages(folders: Fixed, data: Dataset, tmp_path: Path) -> None:
    graph = data.graph
    graph.edata["other"] = 1 - graph.edata["kind"]
    data.save(tmp_path / "data")
    words = ["partition", str(tmp_path / "data"), "--parts", "6", "--output", str(tmp_path / "parts")]
    assert status([*words, "--edge-type", "kind"]) == 0
    settings = partitioned(tmp_path / "parts", direction="both", model="rgcn", edge_type="other", epochs=1)
    with pytest.raises(ValueError, match=r"the largest type of an edge in column 'other' is 1, and that .* set 3"):
        Trainer(data, settings)
    assert status([*words, "--edge-type", "other", "--overwrite"]) == 0
    train(data, settings)


def test_states_of_other_runs_are_refused(folders: Fixed, data: Dataset, tmp_path: Path) -> None:
    settings = partitioned(folders["in"])
    state = Trainer(data, settings).state_dict()
    plain = replace(FAST, batch_size=5, epochs=3)
    for other, message in (
        (replace(settings, slots=4), "the state is of a run with slots = 2, got 4"),
        (replace(settings, order="beta"), "the state is of a run with order = 'comet', got 'beta'"),
        (partitioned(folders["seven"], slots=2, order="beta"), "the state is of another data set, or of a changed one"),
        (plain, "the state is of another data set, or of a changed one"),
    ):
        with pytest.raises(ValueError, match=message):
            Trainer(data, other).load_state_dict(state)
    with pytest.raises(ValueError, match="the state is of another data set"):
        Trainer(data, settings).load_state_dict(Trainer(data, plain).state_dict())
    old = Trainer(data, plain).state_dict()
    old["settings"] = {name: value for name, value in old["settings"].items() if name not in ("slots", "order")}
    Trainer(data, plain).load_state_dict(old)  # of a version that did not know them


def test_states_of_other_batches_are_refused(folders: Fixed, data: Dataset) -> None:
    batches = Trainer(data, partitioned(folders["in"])).batches
    assert repr(batches).startswith("PartitionBatches(2 of 6 partitions in memory, 15 states, ")
    next(iter(batches))
    state = batches.state_dict()
    assert (state["epoch"], state["batch_number"]) == (0, 1)
    for change, message in (
        ({"slots": 4}, "the state is of batches with slots = 4, got 2"),
        ({"batch_number": 10_000}, r"state\['batch_number'\] is 10000, but epoch 0 has \d+ batches"),
        ({"epoch": -2}, r"state\['epoch'\] must be at least -1, got -2"),
    ):
        with pytest.raises(ValueError, match=message):
            batches.load_state_dict({**state, **change})
    with pytest.raises(ValueError, match="state must be what state_dict returned"):
        batches.load_state_dict({})
    batches.load_state_dict({**state, "batch_number": len(batches)})  # a finished epoch goes on with the next one
    assert [contents(batch) for batch in batches] == [batch for batch, _ in by_hand(partitioned(folders["in"]), 1)]


def test_partitions_in_every_direction(folders: Fixed, data: Dataset) -> None:
    for name in ("in", "out", "both"):
        written = Partitions.open(folders[name], verify=True)
        graph = Trainer(data, replace(FAST, direction=name)).task.graph
        (src, dst), size = graph.edges(), written.num_partitions
        counts = torch.bincount(written.partition_of(src) * size + written.partition_of(dst), minlength=size**2)
        assert written.bucket_sizes.ravel().tolist() == counts.tolist()
