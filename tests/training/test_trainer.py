"""Training on a planted graph: it learns, the records are right, and the same settings give the
same result.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from _support.run_files import options
from _support.training_tools import FAST, planted, same_result, slow, train, with_columns

from nodeflow import Graph
from nodeflow.datasets import Dataset
from nodeflow.nn import GCN, VRGCN, GraphSAGE, VRGraphSAGE, VRModel
from nodeflow.training import EpochRecord, Trainer

# learning


CV = FAST.replace(sampler="cv", fanouts=(2, 2))


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, VRGraphSAGE, VRGCN])
@pytest.mark.parametrize("sparse", [False, slow(True)])
@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_it_learns(kind, sparse, direction):
    data = planted(sparse=sparse)
    settings = CV.replace(epochs=12) if issubclass(kind, VRModel) else FAST
    model = "sage" if issubclass(kind, GraphSAGE | VRGraphSAGE) else "gcn"
    result = train(data, settings.replace(model=model, direction=direction))
    assert type(result.network.model) is kind
    assert result.test_score > 0.75  # chance is 0.33, the features alone give about 0.6
    assert max(record.score for record in result.records) > 0.75
    assert result.records[-1].loss < 0.8 * result.records[0].loss


def test_features_alone_are_not_enough():
    """What the neighbours add is what the accuracy above measures."""
    data = planted()
    assert train(with_columns(data, edges=([], [])), FAST).test_score < 0.7


def test_the_direction_is_that_of_the_edges():
    """Pairs: the class of a node is a feature of the node at the other end of its one edge."""
    label = np.tile([0, 1], 100)
    feat = np.zeros((400, 2), np.float32)
    feat[200 + np.arange(200), label] = 1
    columns = {"feat": feat, "label": np.concatenate([label, label])}
    ends = {
        "in": (np.arange(200, 400), np.arange(200)),
        "out": (np.arange(200), np.arange(200, 400)),
    }
    for way, (src, dst) in ends.items():
        graph = Graph.from_edges(src, dst, num_nodes=400, ndata=columns)
        data = Dataset("pairs", graph, np.arange(100), np.arange(100, 150), np.arange(150, 200), 2)
        for direction in ("in", "out", "both"):
            result = train(data, FAST.replace(fanouts=(2,), direction=direction))
            assert result.test_score == (1 if direction in (way, "both") else 0.5)
            assert result.records[-1].score == result.test_score


def test_sparse_features_with_few_zeros_become_dense():
    for few, sparse in ((True, torch.strided), (False, torch.sparse_csr)):
        data = planted(sparse=True)
        x = data.graph.ndata["feat"].to_dense() * (1 if few else torch.arange(300)[:, None] < 60)
        feat = Trainer(with_columns(data, feat=x.to_sparse_csr()), FAST).task.graph.ndata["feat"]
        assert feat.layout == sparse
        assert torch.equal(feat.to_dense(), x)


def test_double_precision_and_integer_features_are_trained_in_float32():
    data = planted()
    for dtype in (np.float64, np.int64):
        other = planted(dtype=dtype)
        result = train(other, FAST)
        assert other.graph.ndata["feat"].numpy().dtype == dtype
        exact = (
            data.graph.ndata["feat"] if dtype is np.float64 else other.graph.ndata["feat"].float()
        )
        assert same_result(result, train(with_columns(other, feat=exact), FAST))


# epochs


def test_an_epoch_is_all_training_nodes_in_a_new_order_then_all_validation_nodes():
    seen: list[tuple[bool, list[int]]] = []

    def note(model: torch.nn.Module, inputs: Any) -> None:
        batch, _ = inputs
        if batch.num_flows == 2 and len(batch.seeds) < 100:  # not the whole graph, at the end
            seen.append((model.training, batch.seeds.tolist()))

    data = planted()
    orders = []
    for seed in (0, 1):
        trainer = Trainer(data, FAST.replace(epochs=2, seed=seed))
        seen.clear()
        trainer.task.network.model.register_forward_pre_hook(note)
        trainer.run()
        assert [training for training, _ in seen] == [True, True, False, False] * 2
        assert [len(seeds) for _, seeds in seen] == [64, 46, 64, 26] * 2
        assert seen[2:4] == seen[6:8]
        assert seen[2][1] + seen[3][1] == data.val.tolist()
        orders += [seen[i][1] + seen[i + 1][1] for i in (0, 4)]
    assert all(sorted(order) == sorted(data.train.tolist()) for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def test_epochs_are_validated_on_the_same_draws():
    """A model that does not learn gets the same accuracy every time."""
    records = train(planted(), FAST.replace(fanouts=(1, 1), lr=1e-30)).records
    assert len({record.score for record in records}) == 1
    assert len({record.loss for record in records}) == len(records)


# records


def test_records(result):
    assert [record.epoch for record in result.records] == [1, 2, 3, 4, 5, 6]
    for record in result.records:
        assert record.seconds > 0
        assert 0 <= record.score <= 1
        assert record.seeds_per_second * record.seconds == pytest.approx(110)
        # each seed and each node of the layer below draws at most 4 of its 6 in-edges
        edges = record.edges_per_second * record.seconds
        assert 110 * 4 + 110 * 4 <= edges <= 110 * 4 + 110 * 5 * 4


def test_reports_are_the_records_as_they_come():
    seen: list[EpochRecord] = []
    result = train(planted(), FAST.replace(epochs=2), seen.append)
    assert seen == result.records
    assert len(seen) == 2


def test_the_test_accuracy_is_that_of_all_neighbours(result):
    data = planted()
    for graph in (data.graph, result.task.graph):  # that of the data set, and the one trained on
        outputs = result.network.model.inference(graph, graph.ndata["feat"]).argmax(1)
        right = (outputs == data.graph.ndata["label"])[data.test]
        assert result.test_score == float(right.double().mean())


def test_the_weights_are_those_of_the_best_epoch():
    """A long enough run is not best at its end; stopped at its best epoch, it gives the same
    model.
    """
    data = planted(val=12)
    settings = FAST.replace(epochs=12, lr=0.05)
    long = train(data, settings)
    accuracies = [record.score for record in long.records]
    assert long.best_epoch == 1 + accuracies.index(max(accuracies))
    assert long.best_val_score == max(accuracies)
    assert long.best_epoch < 12
    short = train(data, settings.replace(epochs=long.best_epoch))
    assert short.best_epoch == long.best_epoch
    assert short.test_score == long.test_score
    weights = long.network.state_dict()
    assert all(
        torch.equal(weights[name], value) for name, value in short.network.state_dict().items()
    )


def test_without_validation_nodes_the_last_epoch_counts():
    result = train(planted(val=0), FAST)
    assert all(math.isnan(record.score) for record in result.records)
    assert result.best_epoch == 6
    assert math.isnan(result.best_val_score)
    first = train(planted(val=0), FAST.replace(epochs=1))
    assert not torch.equal(
        first.network.model.convs[0].own.weight, result.network.model.convs[0].own.weight
    )


# the same settings, the same result


EACH: dict[str, tuple[Any, ...]] = {
    "seed": (1, -1, 10**30), "model": ("gcn",), "fanouts": ((4, 3), (3, 4), (-1, 4), (4,)), "batch_size": (50,),
    "hidden": (17,), "dropout": (0.3,), "lr": (0.01,), "epochs": (5,), "direction": ("out", "both"),
    "sampler": ("cv", "labor"), "task": ("regression",), "norm": ("batch", "layer"), "residual": (True,),
    "inputs": ("embedding",), "optimizer": ("rmsprop", "sgd"), "weight_decay": (0.1,), "warmup": (1.5,),
    "schedule": ("cosine", "linear"), "clip": (0.01,), "label_smoothing": (0.1,), "accumulate": (2,),
    "class_weights": ("balanced", "seeds"), "validate_every": (4,), "validate": ("full",), "metric": ("f1_macro",),
    "precision": ("bf16",), "sampler_options": ({"replace": True},), "model_options": ({"aggregator": "pool"},),
}  # fmt: skip
CHANGES: list[dict[str, Any]] = [
    *({name: value} for name, values in EACH.items() for value in values),
    {"inputs": "both", "embedding": 8},
    {"inputs": "both", "embedding": 9},
    {"model": "rgcn", "edge_type": "kind"},
    {"patience": 1, "lr": 0.5},
    {"groups": 8, "mix": 1},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_another_setting_gives_another_result(change, result):
    other = train(planted(), FAST.replace(**change))
    assert not same_result(result, other) or result.metric != other.metric


def test_every_setting_is_tried():
    # they change no number
    unheard = {
        "workers",
        "device",
        "sample_on",
        "compile",
        "storage",
        "memory",
        "share",
        "halo",
    }
    unheard |= {
        name for name, (group, *_) in options().items() if group == "link"
    }  # see test_links
    # see test_partition_training and test_typed_training
    unheard |= {"partitions", "slots", "order", "target"}
    assert {name for change in CHANGES for name in change} == {*options()} - unheard


def test_global_random_state_is_neither_read_nor_touched(result):
    torch.manual_seed(123)
    np.random.seed(4)  # noqa: NPY002  the global state is what is meant
    before = torch.get_rng_state()
    numpy_before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert same_result(result, train(planted(), FAST))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == numpy_before  # noqa: NPY002


# data sets that cannot be


def with_label(node: int, label: int) -> Dataset:
    labels = planted().graph.ndata["label"].clone()
    labels[node] = label
    return with_columns(planted(), label=labels)


def test_data_sets_that_cannot_be_trained_on():
    data = planted()
    feat = data.graph.ndata["feat"]
    label = data.graph.ndata["label"]
    train_node = int(data.train[7])
    val_node = int(data.val[0])
    test_node = int(data.test[3])
    for bad, message in (
        (with_columns(data, label=None), "data set 'planted' has no labels"),
        (
            with_columns(data, label=label.float()),
            "one int64 label per node, got Tensor of dtype torch.float32",
        ),
        (with_columns(data, feat=feat[:, 0]), r"a row of features per node, got \(300,\)"),
        (replace(data, train=[]), "has no training nodes"),
        (with_label(train_node, -1), f"holds node {train_node} for training, which has no label"),
        (with_label(val_node, -1), f"the val nodes .* but node {val_node} has -1"),
        (with_label(test_node, 3), f"the test nodes .* but node {test_node} has 3"),
    ):
        with pytest.raises(ValueError, match=message):
            Trainer(bad, FAST.replace(task="classification"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_are_not_finite_are_refused(value, sparse):
    data = planted(sparse=sparse)
    feat = data.graph.ndata["feat"].to_dense().clone()
    for row in (299, 41):  # the first row counts, not the first found
        feat[row, 2] = value
    bad = feat.to_sparse_csr() if sparse else feat
    with pytest.raises(
        ValueError, match="features of data set 'planted' must be finite, but row 41 has NaN or inf"
    ):
        Trainer(with_columns(data, feat=bad), FAST)


def test_finite_features_are_looked_for_in_all_rows_of_a_large_set():
    graph = Graph.from_edges(
        [],
        [],
        num_nodes=70_000,
        ndata={"feat": torch.zeros(70_000, 1), "label": np.zeros(70_000, int)},
    )
    data = Dataset("large", graph, [0], [], [], 1)
    Trainer(data, FAST)
    graph.ndata["feat"][69_000] = math.nan
    with pytest.raises(ValueError, match="row 69000 has"):
        Trainer(data, FAST)


def test_a_loss_that_is_no_number_ends_training():
    seen: list[EpochRecord] = []
    with pytest.raises(
        FloatingPointError, match=r"the loss became (nan|inf) in epoch \d; a lower learning rate"
    ):
        train(planted(), FAST.replace(lr=1e30), seen.append)
    assert all(math.isfinite(record.loss) for record in seen)


def test_gradients_before_a_loss_that_is_no_number_are_gone_with_it():
    trainer = Trainer(planted(), FAST.replace(accumulate=3))
    weight = next(trainer.network.parameters())
    trainer.optimizer = torch.optim.SGD([weight], lr=1.0)
    losses = iter([1.0, math.nan, 1.0, 1.0, 1.0])
    trainer.scheduler = torch.optim.lr_scheduler.ConstantLR(trainer.optimizer, factor=1.0)
    trainer.loss = lambda _: weight.sum() * next(losses)  # type: ignore[method-assign]
    before = weight.detach().clone()
    batch = next(iter(trainer.batches))
    trainer.step(batch)
    with pytest.raises(FloatingPointError):
        trainer.step(batch)
    for _ in range(3):
        trainer.step(batch)
    torch.testing.assert_close(weight.detach(), before - 1)
