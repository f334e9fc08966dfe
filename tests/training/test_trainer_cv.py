"""Training with control variates: the same loop, with a history that batches read and steps
write.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from _support.training_tools import FAST, planted, same_result, train, trained, without
from torch import Tensor

from nodeflow.datasets import Dataset
from nodeflow.nn import VRGCN, GraphSAGE, VRGraphSAGE, VRModel
from nodeflow.training import Trainer, save
from nodeflow.training._samplers import METHODS

CV = FAST.replace(sampler="cv", fanouts=(2, 2))
KINDS = {"sage": VRGraphSAGE, "gcn": VRGCN}


def dense_outputs(model: VRModel, data: Dataset, kind: str, direction: str) -> Tensor:
    """The model on full neighbourhoods, from the definitions: a dense matrix of the propagation in
    float64.
    """
    src, dst = data.graph.edges()
    size = data.graph.num_nodes
    a = torch.zeros(size, size, dtype=torch.float64)
    a.index_put_((dst, src), torch.ones(len(src), dtype=torch.float64), accumulate=True)
    if direction == "both":
        a = a + (a - torch.diag(a.diag())).T
    elif direction == "out":
        a = a.T
    if kind == "gcn":
        a = a + torch.eye(size)
        p = a / (a.sum(1, keepdim=True) * a.sum(0)).sqrt().clamp(min=1)
    else:
        p = a / a.sum(1, keepdim=True).clamp(min=1)
    h = data.graph.ndata["feat"].to_dense().double()
    for i, conv in enumerate(model.convs):
        h = h.relu() if i else h
        own = 0 if conv.own is None else h @ conv.own.weight.double().T
        h = p @ h @ conv.linear.weight.double().T + conv.linear.bias.double() + own
    return h


def dense_accuracy(
    model: VRModel, data: Dataset, nodes: Tensor, kind: str, direction: str
) -> float:
    right = dense_outputs(model, data, kind, direction).argmax(1) == data.graph.ndata["label"]
    return float(right[nodes].double().mean())


# learning


@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_accuracies_are_those_of_the_definition(model, direction):
    """With all neighbours the estimate on the validation nodes is exact too, whatever the history
    holds.
    """
    data = planted(val=90)
    result = train(
        data, CV.replace(model=model, direction=direction, fanouts=(-1, -1, -1), epochs=3)
    )

    def exact(way: str) -> list[float]:
        return [
            dense_accuracy(result.network.model, data, nodes, model, way)
            for nodes in (data.val, data.test)
        ]

    found = [result.best_val_score, result.test_score]
    assert found == pytest.approx(exact(direction))
    for other in {"in", "out", "both"} - {direction}:  # so that the above says something
        assert found != pytest.approx(exact(other))


def test_drawn_neighbours_estimate_the_accuracy_on_the_validation_nodes():
    data = planted()
    result = train(data, CV.replace(epochs=12))
    exact = dense_accuracy(result.network.model, data, data.val, "sage", "in")
    assert result.best_val_score == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16])
def test_features_of_other_types(dtype):
    result = train(planted(dtype=dtype), CV.replace(epochs=1))
    assert math.isfinite(result.records[0].loss)
    assert {value.dtype for value in result.network.model.state_dict().values()} == {torch.float32}


def test_the_data_set_stays_as_it_was():
    data = planted()
    data.graph.edata["propagation"] = torch.full((data.graph.num_edges,), 7.0)
    for direction in ("in", "out", "both"):
        result = train(data, CV.replace(epochs=1, direction=direction))
        assert list(data.graph.edata) == ["kind", "propagation"]
        assert (data.graph.edata["propagation"] == 7).all()
        assert list(data.graph.ndata) == ["feat", "label"]
        accuracy = dense_accuracy(result.network.model, data, data.test, "sage", direction)
        assert result.test_score == pytest.approx(accuracy)


# the history


@pytest.mark.parametrize("model", KINDS)
def test_the_age_is_that_of_the_rows_that_training_read(model):
    """Against a record of our own of who wrote when; rows of validation neither count nor are
    written.
    """
    ages: list[list[int]] = []
    # the full pass at the start wrote all, before step 0
    written: dict[tuple[int, int], int] = defaultdict(int)
    step = 0

    def note(network: VRModel, inputs: Any) -> None:
        nonlocal step
        batch, _ = inputs
        if network.training:
            rows = [(i, v) for i in (1, 2) for v in batch.layers[i].parent_nid.tolist()]
            ages.append([step - written[row] for row in rows])
            step += 1
            written.update(dict.fromkeys(rows, step))

    settings = CV.replace(model=model, fanouts=(2, 2, 2), epochs=3, batch_size=20)
    trainer = Trainer(planted(), settings)
    trainer.task.network.model.register_forward_pre_hook(note)
    result = trainer.run()
    steps = 6  # of 110 training nodes
    assert len(ages) == 3 * steps
    assert set(ages[0]) == {0}
    for epoch, record in enumerate(result.records):
        read = [age for batch in ages[epoch * steps : (epoch + 1) * steps] for age in batch]
        assert record.age == pytest.approx(sum(read) / len(read))
    assert result.records[-1].age > 0.5


def test_rows_are_written_as_the_model_computed_them(monkeypatch):
    """With weights that do not change, rows from before dropout and of exact sums are those that
    the pass made.
    """
    kept: list[Any] = []
    real = METHODS["cv"]

    class Kept(real):  # type: ignore[valid-type,misc]
        def start(self, *args: Any) -> None:
            super().start(*args)
            kept.append((self, self.history.rows(1, range(300)).clone()))

    monkeypatch.setitem(METHODS, "cv", Kept)
    train(planted(), CV.replace(lr=1e-30, epochs=2))
    method, first = kept[0]
    assert first.abs().max() > 0.1
    torch.testing.assert_close(method.history.rows(1, range(300)), first)
    # the training nodes at least were written anew
    assert int((method.history.age(1) < 4).sum()) >= 110
    assert int(method.history.step) == 1 + 4  # the pass, and two epochs of two steps


def test_the_log_has_the_age_of_a_history(tmp_path):
    columns = "epoch,loss,val_accuracy,val_f1_macro,seconds,seeds_per_second,edges_per_second"
    for result, header in (
        (trained(), columns),
        (train(planted(), CV.replace(epochs=2)), f"{columns},age"),
    ):
        save(result, tmp_path)
        first, *rows = (tmp_path / "log.csv").read_text().splitlines()
        assert first == header
        aged = [float(row.split(",")[-1]) if header.endswith("age") else None for row in rows]
        assert aged == [record.age for record in result.records]


# settings


@pytest.mark.parametrize("sampler", METHODS)
def test_draws_depend_on_the_seed_and_on_nothing_else(sampler):
    settings = CV.replace(sampler=sampler)
    methods = [Trainer(planted(), settings).task.method for _ in range(2)]
    drawn = []
    for method in methods:
        for seed in (1, 2):
            made = method.sampler(seed)
            drawn.append(
                made([0] if sampler == "saint" else range(min(50, made.num_seeds)))
                .flows[1]
                .indices.tolist()
            )
    assert drawn[:2] == drawn[2:]
    assert (drawn[0] != drawn[1]) is (sampler != "cluster")  # whose parts are cut once


def test_the_number_of_the_first_flow_changes_nothing():
    """The features' sums over all neighbours are exact."""
    settings = CV.replace(epochs=2)
    one, other = (train(planted(), settings.replace(fanouts=(k, 2))) for k in (3, -1))
    assert same_result(replace(one, settings=settings), replace(other, settings=settings))
    edges = [record.edges_per_second * record.seconds for record in one.records]
    assert edges == pytest.approx(
        [record.edges_per_second * record.seconds for record in other.records]
    )


def test_a_model_without_history_is_refused():
    with pytest.raises(TypeError, match="model must be a VRModel with sampler 'cv', got GraphSAGE"):
        Trainer(planted(), without(CV, "hidden", "dropout"), model=GraphSAGE(3, 16, 3))
