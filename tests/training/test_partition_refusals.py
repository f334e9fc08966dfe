"""Training on partitions refuses settings, folders and states that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from _support.cli_tools import status
from _support.training_tools import (
    FAST,
    Fixed,
    by_hand,
    contents,
    partitioned,
    planted,
    train,
    with_columns,
)

from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.training import Trainer


@pytest.fixture
def data(folders: Fixed) -> Dataset:
    return read_folder(folders["data"])


@pytest.mark.parametrize("change", [{"storage": "file"}, {"storage": "memory", "partitions": ""}])
def test_slots_are_those_of_partitions(change):
    with pytest.raises(ValueError, match=r"slots .* is read with storage 'partitions', and"):
        partitioned(Path("parts"), **change)


def another_label(data: Dataset) -> Dataset:
    label = data.graph.ndata["label"].clone()
    label[data.train.sort().values[3]] = (label[data.train.sort().values[3]] + 1) % 3
    return with_columns(data, label=label)


def with_features(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Dataset], Dataset]:
    return lambda data: with_columns(data, feat=change(data.graph.ndata["feat"]))


def other_edges(data: Dataset) -> Dataset:
    return with_columns(data, edges=data.graph.edges()[::-1])


@pytest.mark.parametrize(
    ("of", "name", "change", "message"),
    [
        (None, "nowhere", {}, "nowhere"),
        (None, "in", {"slots": 4, "order": "sequential"}, "slots must be at least the number of "
                                                          "parts with"),
        (None, "in", {"slots": 3}, "slots must be one of 2, 4, 6 for 6 parts, got 3"),
        (lambda _: planted(val=80, test=100), "in", {}, None),
        (lambda data: replace(data, train=data.train[1:]), "in", {}, "its training nodes are"),
        (lambda data: replace(data, train=torch.cat([data.train, data.val[:1]]), val=data.val[1:]), "in", {},
         "its training nodes are"),
        (another_label, "in", {}, "its labels are .* write them again with nodeflow"),
        (with_features(lambda feat: feat * 2), "in", {}, r"its features are torch.float32 .*checksum"),
        (with_features(torch.Tensor.double), "in", {},
         r"its features are torch.float32 \[256, 3\] .*, and those of the data set torch.float64 "
         r"\[256, 3\]"),
        (with_features(lambda feat: feat[:, :2].clone()), "in", {}, r"data set .* \[256, 2\]"),
        (None, "in", {"direction": "both"}, "sizes are .* 1,800.* data set .* 3,580.*, with direction 'both'"),
        (None, "out", {}, "its edges between parts are .*, with direction 'in'"),
        (lambda _: debian(), "in", {}, "its types and sizes are .* 300"),
        (lambda data: with_columns(data, label=torch.eye(3)[data.graph.ndata["label"]]), "in", {}, "its labels are"),
        (other_edges, "in", {}, "its edges between parts are"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_folders_that_do_not_fit(
    folders, data, of, name, change,
    message,
):  # fmt: skip
    settings = partitioned(folders["in"].parent / name, **change)
    given = data if of is None else of(planted())
    if message is None:
        Trainer(given, settings)
        return
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        Trainer(given, settings)
    assert "\n" not in str(caught.value)


def test_edge_types_must_be_those_of_messages(folders, data, tmp_path):
    graph = data.graph
    graph.edata["other"] = 1 - graph.edata["kind"]
    with pytest.raises(ValueError, match=r"columns are .*'label'\], and .* 'other'\].* write them"):
        Trainer(data, partitioned(folders["in"], model="rgcn", edge_type="other"))
    data.save(tmp_path / "data")
    words = [
        "partition",
        tmp_path / "data",
        "--parts 6 --output",
        tmp_path / "parts",
    ]
    assert status([*words, "--edge-type kind"]) == 0
    settings = partitioned(
        tmp_path / "parts", direction="both", model="rgcn", edge_type="other", epochs=1
    )
    with pytest.raises(ValueError, match="its values of edge column 'other' are"):
        Trainer(data, settings)
    assert status([*words, "--edge-type other --overwrite"]) == 0
    train(data, settings)


def test_states_of_other_runs_are_refused(folders, data, tmp_path):
    settings = partitioned(folders["in"])
    state = Trainer(data, settings).state_dict()
    plain = FAST.replace(batch_size=5, epochs=3)
    for other, message in (
        (settings.replace(slots=4), "the state is of a run with slots = 2, got 4"),
        (settings.replace(order="beta"), "the state is of a run with order = 'comet', got 'beta'"),
        (
            partitioned(folders["seven"], slots=2, order="beta"),
            "the state is of another data set, or of a changed one",
        ),
        (plain, "the state is of another data set, or of a changed one"),
    ):
        with pytest.raises(ValueError, match=message):
            Trainer(data, other).load_state_dict(state)
    with pytest.raises(ValueError, match="the state is of another data set"):
        Trainer(data, settings).load_state_dict(Trainer(data, plain).state_dict())
    old = Trainer(data, plain).state_dict()
    old["settings"] = {
        name: value for name, value in old["settings"].items() if name not in ("slots", "order")
    }
    Trainer(data, plain).load_state_dict(old)  # of a version that did not know them


def test_states_of_other_batches_are_refused(folders, data):
    batches = Trainer(data, partitioned(folders["in"])).batches
    assert repr(batches).startswith("PartBatches(PartitionBuffer(2 of 6 parts in memory, ")
    next(iter(batches))
    state = batches.state_dict()
    assert (state["epoch"], state["batch_number"]) == (0, 1)
    for change, message in (
        ({"slots": 4}, "the state is of a loader with slots=4, this one has 2"),
        (
            {"batch_number": 10_000},
            r"state\['batch_number'\] is 10000, but epoch 0 has \d+ batches",
        ),
        ({"epoch": -2}, r"state\['epoch'\] must be at least -1, got -2"),
    ):
        with pytest.raises(ValueError, match=message):
            batches.load_state_dict({**state, **change})
    with pytest.raises(ValueError, match="state must be what state_dict returned"):
        batches.load_state_dict({})
    # a finished epoch goes on with the next one
    batches.load_state_dict({**state, "batch_number": len(batches)})
    assert [contents(batch) for batch in batches] == [
        batch for batch, _ in by_hand(partitioned(folders["in"]), 1)
    ]
