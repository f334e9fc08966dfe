"""Tasks: classes, several labels, numbers; what enters a network; and which samplers go with which
models.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from _support.training_tools import FAST, planted, train, with_columns, without
from torch import Tensor, nn

from nodeflow import NodeFlow
from nodeflow.datasets import Dataset
from nodeflow.metrics import Metric
from nodeflow.nn import GraphSAGE
from nodeflow.training import Trainer, _choices
from nodeflow.training._predictions import check_predictions, write_outputs

WEIGHTED = {"fastgcn", "ladies", "random-walk", "saint", "cluster"}


def relabelled(label: Tensor, **changes: Any) -> Dataset:
    return replace(with_columns(planted(), label=label), **changes)


def test_a_metric_that_has_no_value_does_not_end_a_run():
    """One that is only measured beside the one that the run goes by: r2 of a single node."""
    label = torch.arange(planted().graph.num_nodes).float() / 7
    data = relabelled(label, num_classes=0)
    trainer = Trainer(replace(data, val=data.val[:1]), FAST.replace(task="regression", epochs=1))
    scores = trainer.run().scores["val"]
    assert math.isnan(scores["r2"])
    assert math.isfinite(scores["rmse"])
    with pytest.raises(ValueError, match="so r2 has no value; use mse"):
        Trainer(
            replace(data, val=data.val[:1]), FAST.replace(task="regression", epochs=1, metric="r2")
        ).run()


# samplers and models


@pytest.mark.parametrize("sampler", _choices.SAMPLERS)
@pytest.mark.parametrize("model", [model for model in _choices.MODELS if model != "none"])
def test_every_sampler_with_every_model(sampler, model):
    """A run, or a message that names what to use instead; never a run that is biased."""
    options: dict[str, Any] = {"edge_type": "kind"} if model == "rgcn" else {}
    fanouts = (64, 64) if sampler in ("fastgcn", "ladies") else (4, 4)
    if sampler == "cv" and model not in ("sage", "gcn"):
        message = (
            f"'cv' does not go with model '{model}': it needs a model with a history, sage or gcn"
        )
        with pytest.raises(ValueError, match=message):
            FAST.replace(sampler=sampler, model=model, **options)
        return
    if sampler == "random-walk" and model in ("hgt", "typed"):
        with pytest.raises(
            ValueError, match="its edges have no relations; take sampler 'neighbor'"
        ):
            FAST.replace(sampler=sampler, model=model)
        return
    settings = FAST.replace(sampler=sampler, model=model, fanouts=fanouts, epochs=2, **options)
    if sampler in WEIGHTED and model in ("gat", "gatv2", "rgcn", "hgt", "typed"):
        message = f"model '{model}' would be biased with sampler '{sampler}', .* Take model sage, gcn or gin"
        with pytest.raises(ValueError, match=message):
            Trainer(planted(), settings)
        return
    trainer = Trainer(planted(), settings)
    assert trainer.task.weighted == (sampler in WEIGHTED)
    result = trainer.run()
    assert all(math.isfinite(record.loss) for record in result.records)
    assert set(result.scores["test"]) == {"accuracy", "f1_macro"}


@pytest.mark.parametrize("settings", [{"model_options": {"weighted": False}}, {"model": "gat"}])
def test_edges_drawn_by_a_column_need_a_model_with_weights(settings):
    data = planted()
    data.graph.edata["strength"] = 1.0 + torch.arange(data.graph.num_edges) % 3
    with pytest.raises(ValueError, match=r"biased with sampler 'neighbor', .* leave out weighted"):
        Trainer(data, FAST.replace(sampler_options={"prob": "strength"}, **settings))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", ["saint", "cluster", "fastgcn", "ladies", "shadow", "random-walk", "labor"]
)
def test_it_learns(sampler):
    fanouts = (64, 64) if sampler in ("fastgcn", "ladies") else (4, 4)
    result = train(
        planted(), FAST.replace(sampler=sampler, fanouts=fanouts, model="gcn", epochs=12)
    )
    assert result.test_score > 0.8  # the features alone give about 0.6


@pytest.mark.parametrize("sampler", ["saint", "cluster"])
def test_losses_of_subgraphs_estimate_the_mean_over_the_training_nodes(sampler):
    """The mean over many subgraphs of the weighted losses is that of all training nodes, for fixed
    losses of nodes.
    """
    settings = FAST.replace(sampler=sampler, model="gcn", batch_size=100, dropout=0.0)
    trainer = Trainer(planted(), settings)
    task = trainer.task
    fixed = torch.rand(300, 3, generator=torch.Generator().manual_seed(1))
    estimates = []
    for epoch in range(200 if sampler == "saint" else 1):
        trainer.batches.set_epoch(epoch)
        estimates += [float(task.loss(fixed[batch.seeds], batch)) for batch in trainer.batches]
    train_nodes = task.dataset.train
    labels = task.dataset.graph.ndata["label"][train_nodes]
    wanted = float(nn.functional.cross_entropy(fixed[train_nodes], labels))
    error = np.std(estimates) / math.sqrt(len(estimates)) if sampler == "saint" else 1e-6
    # wrong once in 15,000 seeds
    assert np.mean(estimates) == pytest.approx(wanted, abs=4 * error + 1e-6)


# tasks


CLASSES_ONLY = (
    "class_weights .* is read with task .* 'classification', and this run has task 'regression'"
)


def test_several_labels_per_node():
    data = planted()
    classes = data.graph.ndata["label"]
    label = torch.stack([classes == 0, classes != 1, torch.zeros(300, dtype=torch.bool)], 1).float()
    result = train(relabelled(label, num_classes=3), FAST.replace(model="gcn", epochs=10))
    assert result.metric == "f1_micro"
    assert set(result.scores["test"]) == {"f1_micro", "f1_macro", "average_precision"}
    assert result.test_score > 0.8
    assert result.scores["test"]["average_precision"] > 0.8


def test_numbers():
    data = planted()
    label = data.graph.ndata["label"].float() * 2 - 1
    result = train(relabelled(label, num_classes=0), FAST.replace(model="gcn", epochs=20))
    assert result.metric == "rmse"
    assert result.records[result.best_epoch - 1].score == min(
        record.score for record in result.records
    )
    assert result.scores["test"]["r2"] > 0.5
    both = train(relabelled(torch.stack([label, -label], 1), num_classes=0), FAST.replace(epochs=1))
    assert both.task.target.width == 2


@pytest.mark.parametrize(
    ("label", "change", "message"),
    [
        (
            torch.zeros(300, 2),
            {"task": "classification"},
            r"needs one int64 label per node, got Tensor of dtype torch.float32",
        ),
        (
            torch.full((300, 2), 0.5),
            {"task": "multilabel"},
            r"0 and 1 .*, but node \d+ has \[0.5, 0.5\]",
        ),
        (
            torch.zeros(300),
            {"task": "multilabel"},
            r"needs labels \[nodes, labels\] of 0 and 1, got Tensor .* shape \(300,\)",
        ),
        (
            torch.full((300,), math.nan),
            {"task": "regression"},
            r"holds node \d+ for training, which has no label",
        ),
        (
            torch.zeros(300),
            {"class_weights": "balanced"},
            "class_weights .* this run has task 'regression'",
        ),
        (
            torch.zeros(300),
            {"metric": "accuracy"},
            "metric 'accuracy' .* does not fit the task 'regression'",
        ),
    ],
)
def test_labels_that_do_not_fit(label, change, message):
    with pytest.raises(ValueError, match=message):
        Trainer(relabelled(label, num_classes=2), FAST.replace(**change))


def test_the_labels_of_the_split_tell_the_task():
    data = planted()
    classes = data.graph.ndata["label"]
    outside = data.val[0]
    data = replace(data, val=data.val[1:])  # so that one node is in no part
    several = torch.stack([classes == 0, classes != 1, classes == 2], 1).float()
    several[outside] = math.nan
    gaps = classes.double()
    gaps[outside] = math.nan
    for label, task in (
        (several, "multilabel"),
        (gaps, "classification"),
        (gaps / 2, "regression"),
    ):
        trainer = Trainer(replace(with_columns(data, label=label), num_classes=0), FAST)
        assert trainer.task.target.task == task
        assert trainer.task.description()[0].endswith(f"; task {task} (by the labels of the split)")
    node = int(data.test[0])
    for label in (several, torch.full_like(several, 0.5)):
        label[node, 1] = math.nan if label is several else 2
        with pytest.raises(
            ValueError,
            match=r"must have labels of 0 and 1 .*, but node \d+ has \[.*\]; take it out",
        ):
            Trainer(
                replace(with_columns(data, label=label), num_classes=3),
                FAST.replace(task="multilabel"),
            )
    with pytest.raises(ValueError, match=f"node {node} has .*nan"):
        Trainer(replace(with_columns(data, label=several), num_classes=3), FAST)


def test_class_codes_are_numbers_for_a_regression_and_names_in_a_table(tmp_path):
    codes = planted().graph.ndata["label"] * 1000 + 10_001
    data = relabelled(codes, num_classes=0)
    trainer = Trainer(data, FAST)
    assert (trainer.task.target.width, trainer.task.dataset.class_names) == (
        3,
        ("10001", "11001", "12001"),
    )
    write_outputs(
        tmp_path / "p.csv",
        torch.tensor([4]),
        torch.tensor([[0.0, 0, 9]]),
        trainer.task.dataset,
        "classification",
    )
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("4,2,12001,")
    task = Trainer(data, FAST.replace(task="regression")).task
    assert torch.equal(task.graph.ndata["label"], codes.float())
    named = replace(planted(), class_names=("a", "b", "c"))
    with pytest.raises(
        ValueError, match=r"task 'regression' needs numbers as labels, .* has classes such as 'a'"
    ):
        Trainer(named, FAST.replace(task="regression"))


def test_balanced_classes_weigh_the_same():
    label = torch.zeros(300, dtype=torch.int64)
    label[planted().train[:11]] = 1
    task = Trainer(relabelled(label, num_classes=3), FAST.replace(class_weights="balanced")).task
    batch = task.method.sampler(0)(task.dataset.train)
    batch.copy_from_parent({-1: ["label"]}, None)
    outputs = torch.zeros(len(batch.seeds), 3)
    labels = batch.ldata[-1]["label"]
    each = task.loss_of_rows(outputs, labels)
    assert float(each[labels == 1].sum()) == pytest.approx(float(each[labels == 0].sum()))
    assert float(each.mean()) == pytest.approx(math.log(3))


def test_classes_are_drawn_equally_often():
    """Few nodes have class 1: half of the draws are of them, and the loss counts a node as often as
    it is drawn.
    """
    label = torch.zeros(300, dtype=torch.int64)
    label[planted().train[:11]] = 1
    data = relabelled(label, num_classes=2)
    trainer = Trainer(data, FAST.replace(class_weights="seeds", batch_size=len(data.train)))
    drawn = []
    for epoch in range(4):
        trainer.batches.set_epoch(epoch)
        (batch,) = trainer.batches
        drawn.append(batch.seeds[batch.seed_index])
        assert trainer.task.size(batch) == len(data.train) > len(batch.seeds)
        outputs = batch.seeds.double().unsqueeze(1) * torch.tensor([1.0, -1.0])
        wanted = nn.functional.cross_entropy(outputs[batch.seed_index].float(), label[drawn[-1]])
        assert float(trainer.task.loss(outputs, batch)) == pytest.approx(float(wanted), rel=1e-5)
    of = label[torch.cat(drawn)].double().mean()
    assert abs(float(of) - 0.5) < 5 * 0.5 / math.sqrt(4 * len(data.train))
    assert all(part in data.train.tolist() for part in torch.cat(drawn).tolist())
    with pytest.raises(
        ValueError, match="class_weights 'seeds' does not go with sampler 'cluster': its batches"
    ):
        FAST.replace(class_weights="seeds", sampler="cluster")


# what enters


def test_nodes_without_features_learn_rows():
    bare = with_columns(planted(), feat=None)
    result = train(bare, FAST.replace(embedding=8, epochs=15, model="gcn"))
    assert result.network.inputs.width == 8
    assert result.test_score > 0.6
    with pytest.raises(
        ValueError, match="has no features, so inputs must be 'embedding'; got 'both'"
    ):
        Trainer(bare, FAST.replace(inputs="both"))


def test_both_beside_each_other():
    for sparse in (False, True):
        inputs = Trainer(
            planted(sparse=sparse), FAST.replace(inputs="both", embedding=5)
        ).network.inputs
        assert inputs.width == 8
        graph = planted(sparse=sparse).graph
        x = graph.ndata["feat"].to_dense()
        table = inputs.table
        assert torch.equal(inputs.everywhere(graph), torch.cat([x, table], 1))


def test_reversed_edges_have_types_of_their_own():
    trainer = Trainer(planted(), FAST.replace(model="rgcn", edge_type="kind", direction="both"))
    graph = trainer.task.graph
    given = planted().graph
    assert trainer.network.model.convs[0].num_relations == 4
    kinds = given.edata["kind"]
    assert torch.equal(graph.edata["kind"][: given.num_edges], kinds)
    src, dst = given.edges()
    assert torch.equal(graph.edata["kind"][given.num_edges :], kinds[src != dst] + 2)
    assert int(planted().graph.edata["kind"].max()) == 1  # the data set stays as it was


# parts of the user's own


class Half(nn.Module):
    """A model that is no FlowModel."""

    def __init__(
        self, in_features: int, hidden: int, out_features: int, num_layers: int, *, dropout: float
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * in_features, out_features)

    def forward(self, batch: NodeFlow, h: Tensor) -> Tensor:
        flow = batch.flows[-1]
        own = flow.take_dst(h[: flow.num_src])
        return self.linear(torch.cat([own, flow.aggregate(h[: flow.num_src], "mean")], 1))


def test_a_model_given_by_name(monkeypatch):
    module = ModuleType("mine")
    module.Half, module.number, module.wide = Half, 3, lambda *shape, **rest: GraphSAGE(3, 4, 7)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", module)
    result = train(planted(), FAST.replace(model="mine:Half", fanouts=(4,)))
    assert result.test_score > 0.6
    for name, message in {
        "mine:number": "'mine:number' must be a class or a function that returns a model, got int "
        "3",
        "mine:other": "'mine:other' cannot be imported: module 'mine' has no attribute",
        "mine:wide": r"must return one row of 3 outputs per seed, \[64, 3\], got Tensor .* shape \(64, 7\)",
    }.items():
        with pytest.raises(ValueError, match=message):
            Trainer(planted(), FAST.replace(model=name))


def test_losses_and_metrics_of_ones_own():
    calls = []

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        calls.append(len(outputs))
        return (outputs.softmax(1) - nn.functional.one_hot(labels, 3)).square().sum(1)

    worst = Metric(
        "worst",
        lambda outputs, labels: (outputs.argmax(1) - labels).abs().max(),
        larger_is_better=False,
    )
    trainer = Trainer(planted(), FAST.replace(epochs=3), loss=loss, metrics=[worst])
    result = trainer.run()
    assert calls == [64, 46] * 3
    assert result.metric == "worst"
    assert set(result.scores["val"]) == {"worst", "accuracy", "f1_macro"}
    scores = [record.score for record in result.records]
    assert result.best_epoch == 1 + scores.index(min(scores))


def test_optimisers_and_schedules_of_ones_own():
    rates = []
    trainer = Trainer(
        planted(),
        without(FAST.replace(epochs=2), "lr"),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5),
    )
    for _ in range(2):
        trainer.train_epoch()
        rates.append(trainer.scheduler.get_last_lr()[0])
    assert rates == [0.25, 0.0625]


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        ("constant", [0.5, 1, 1, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        ("cosine", [0.5, 1, *((1 + math.cos(math.pi * k / 6)) / 2 for k in range(6))]),
    ],
)
def test_schedules(schedule, wanted):
    trainer = Trainer(planted(), FAST.replace(schedule=schedule, warmup=1.0, epochs=4, lr=0.25))
    rates = []
    for _ in wanted:
        rates.append(trainer.optimizer.param_groups[0]["lr"] / 0.25)
        trainer.update()
    assert rates == pytest.approx(wanted)


def test_gradients_that_are_added_up_are_those_of_a_larger_batch():
    """Two batches of half the size, each the mean over its own nodes, step as one batch of all."""
    settings = FAST.replace(batch_size=55, fanouts=(-1, -1), dropout=0.0, optimizer="sgd", epochs=1)
    small = Trainer(planted(), settings.replace(accumulate=2))
    large = Trainer(planted(), settings.replace(batch_size=110))
    for trainer in (small, large):
        trainer.train_epoch()
    for one, other in zip(small.network.parameters(), large.network.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_loop_of_ones_own_is_the_trainers():
    settings = FAST.replace(dropout=0.0, epochs=2)
    trainer = Trainer(planted(), settings)
    own = Trainer(planted(), settings)
    trainer.run()
    for _ in range(2):
        own.network.train()
        for batch in own.batches:
            own.loss(batch).backward()
            own.update()
    wanted = [record.score for record in trainer.records]
    assert own.validate()["accuracy"] == wanted[-1]


def test_bf16_computes_in_16_bits():
    kinds = set()
    trainer = Trainer(planted(), FAST.replace(precision="bf16"))
    linear = next(m for m in trainer.network.modules() if isinstance(m, nn.Linear))
    assert linear.weight.dtype == torch.float32
    with trainer.task.precision.context():
        kinds.add((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
    assert kinds == {torch.bfloat16}
    assert trainer.run().test_score > 0.75


def test_bf16_keeps_features_in_16_bits_where_products_read_them():
    data = planted()
    settings = FAST.replace(precision="bf16")
    exact = data.graph.ndata["feat"]
    trainer = Trainer(data, settings)
    features = trainer.task.graph.ndata["feat"]
    assert torch.equal(features, exact.bfloat16())
    assert next(iter(trainer.batches)).ldata[0]["feat"].dtype == torch.bfloat16
    trainer.train_epoch()
    assert trainer.validate()["accuracy"] > 0.2 < trainer.evaluate()["accuracy"]
    own = GraphSAGE(exact.shape[1], 8, data.num_classes, num_layers=len(settings.sampler.fanouts))
    others = [Trainer(data, settings.replace(sampler="cv", norm="none")), Trainer(data, FAST)]
    others.append(Trainer(data, without(settings, "hidden", "dropout"), model=own))
    assert all(torch.equal(other.task.graph.ndata["feat"], exact) for other in others)


def test_files_of_predictions(tmp_path, monkeypatch):
    data = planted()
    nodes = torch.tensor([4, 0])
    outputs = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0]])
    named = replace(data, class_names=("a", "b", "c"))
    write_outputs(tmp_path / "x.csv", nodes, outputs, named, "classification")
    header, first, second = (tmp_path / "x.csv").read_text().splitlines()
    assert header == "node,class,class_name,probability"
    assert first.startswith("4,1,b,0.84")
    assert second.startswith("0,0,a,0.78")
    write_outputs(tmp_path / "y.csv", nodes, outputs, data, "multilabel")
    assert (tmp_path / "y.csv").read_text().splitlines()[0] == "node,label_0,label_1,label_2"
    write_outputs(tmp_path / "z.csv", nodes, outputs[:, :1], data, "regression")
    assert (tmp_path / "z.csv").read_text().splitlines() == ["node,value_0", "4,0.0", "0,2.0"]
    write_outputs(tmp_path / "x.npy", nodes, outputs, data, "classification")
    assert np.array_equal(np.load(tmp_path / "x.npy"), outputs.numpy())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match="Parquet files need pyarrow; install it with: pip install pyarrow"
    ):
        check_predictions(tmp_path / "x.parquet")


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_predictions_that_cannot_be_written_leave_the_older_ones(tmp_path, kind, monkeypatch):
    nodes = torch.arange(3)
    file = tmp_path / f"x.{kind}"
    write_outputs(file, nodes, torch.eye(3), planted(), "classification")
    before = file.read_bytes()
    for name in ("nodeflow.training._predictions.csv.writer", "numpy.save"):
        monkeypatch.setattr(name, lambda file, *_: file.write(1))  # neither text nor bytes
    with pytest.raises(TypeError):
        write_outputs(file, nodes, torch.eye(3), planted(), "classification")
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
