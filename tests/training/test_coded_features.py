"""Narrow features of a run: coded where the network reads sums of them alone, and the same training
as plain ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from _support.training_tools import planted
from torch import Tensor, nn

from nodeflow import NodeFlow, storage
from nodeflow._core.rows import coded
from nodeflow.datasets import Dataset, read_folder
from nodeflow.graph import with_frames
from nodeflow.nn import GraphSAGE
from nodeflow.storage import CodedRows
from nodeflow.training import Settings, Trainer

WIDTH = 20


@pytest.fixture(autouse=True)
def no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches stay coded too."""
    monkeypatch.setattr(coded, "_LEAST", 0)


def datasets() -> tuple[Dataset, Dataset]:
    """The same features narrow, and as the numbers that are read for these."""
    data = planted()
    graph = data.graph
    spread = torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(0))
    narrow = storage.narrow(graph.ndata["feat"] @ spread)
    columns = narrow, narrow.fetch(torch.arange(graph.num_nodes))
    first, second = (
        replace(data, graph=with_frames(graph, {**graph.ndata, "feat": x}, graph.edata))
        for x in columns
    )
    return first, second


def settings(**options: Any) -> Settings:
    return Settings(
        **{
            "hidden": 64,
            "epochs": 3,
            "fanouts": [2, 2],
            "batch_size": 40,
            "dropout": 0.3,
            **options,
        }
    )


def is_coded(trainer: Trainer) -> bool:
    return isinstance(trainer.task.graph.ndata["feat"], CodedRows)


@pytest.mark.parametrize(
    ("model", "options", "stays"),
    [
        ("sage", {}, True),
        ("gcn", {}, True),
        ("gin", {}, True),
        ("gat", {}, False),
        ("sage", {"inputs": "both"}, False),
        ("sage", {"model_options": {"aggregator": "pool"}}, False),
        ("sage", {"model_options": {"order": "transform"}}, False),
    ],
)
def test_what_stays_coded(model, options, stays):
    results = []
    for data in datasets():
        trainer = Trainer(data, settings(model=model, **options))
        assert is_coded(trainer) == (
            stays and isinstance(data.graph.ndata["feat"], storage.NarrowRows)
        )
        results.append(trainer.run())
    losses = [[record.loss for record in result.records] for result in results]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


class Own(nn.Module):
    """A model that says what enters it."""

    def __init__(self, *, scaled: bool) -> None:
        super().__init__()
        self.model = GraphSAGE(WIDTH, 64, 3)
        self.scaled = scaled
        self.entered = set[type]()

    def forward(self, batch: NodeFlow, h: Tensor) -> Tensor:
        self.entered.add(type(h))
        out: Tensor = self.model(batch, h * 2 if self.scaled else h)
        return out


@pytest.mark.parametrize("scaled", [False, True])
def test_models_of_users(scaled):
    own = Own(scaled=scaled)
    trainer = Trainer(datasets()[0], Settings(epochs=2, fanouts=[2, 2], batch_size=40), model=own)
    assert is_coded(trainer) != scaled
    own.entered.clear()
    trainer.run()
    assert (coded.CodedTensor in own.entered) != scaled


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"compile": True}])
def test_where_features_are_plain(options, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module: module)
    trainer = Trainer(datasets()[0], settings(**options))
    assert is_coded(trainer) == (
        "compile" not in options and trainer.task.precision.features == torch.float32
    )


@pytest.mark.parametrize("storage_kind", ["memory", "file", "cached", "lookahead"])
def test_only_rows_in_memory_stay_coded(storage_kind, tmp_path):
    data = datasets()[0]
    data.save(tmp_path / "data")
    trainer = Trainer(read_folder(tmp_path / "data"), settings(storage=storage_kind, epochs=1))
    assert is_coded(trainer) == (storage_kind == "memory")
    assert trainer.run().records[0].loss == pytest.approx(
        Trainer(data, settings(epochs=1)).run().records[0].loss, rel=1e-4
    )
