"""Devices: batches sent ahead to a GPU, and runs on one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from _support.loader_tools import fingerprint, random_graph
from _support.training_tools import FAST, planted
from hypothesis import given, strategies as st

from nodeflow import NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.loader import SentAhead
from nodeflow.training import Checkpoints, Trainer
from nodeflow.training._processes import find_device

CPU = torch.device("cpu")


class Log:
    """In place of a lane to a GPU: batches stay where they are, and what happens is noted."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def send(self, batch: NodeFlow) -> NodeFlow:
        self.events.append(("sent", int(batch.seeds[0])))
        return batch

    def receive(self, batch: NodeFlow) -> NodeFlow:
        self.events.append(("received", int(batch.seeds[0])))
        return batch


def both(log: Log, **options: Any) -> tuple[NodeFlowLoader, SentAhead]:
    class Noted(SentAhead):
        def _lane(self):
            return log

    arguments = (NeighborSampler(random_graph(), [2, 3]), range(60), 16)
    return NodeFlowLoader(*arguments, **options), Noted(*arguments, target=CPU, **options)


def test_a_batch_is_sent_before_the_caller_gets_the_one_before():
    log = Log()
    for batch in both(log)[1]:
        log.events.append(("step", int(batch.seeds[0])))
    one_of_each = [("sent", 0)]
    for first in (0, 16, 32):
        one_of_each += [("sent", first + 16), ("received", first), ("step", first)]
    assert log.events == [*one_of_each, ("received", 48), ("step", 48)]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_sent_ahead_are_those_of_the_loader(workers):
    plain, ahead = both(Log(), shuffle=True, num_workers=workers, ndata=["x"])
    assert len(plain) == len(ahead) == 4
    for _ in range(2):
        assert [fingerprint(batch) for batch in ahead] == [fingerprint(batch) for batch in plain]
    assert (
        [ahead.seed_weight for _ in ahead]
        == [plain.seed_weight for _ in plain]
        == [1 / 16] * 3 + [1 / 12]
    )


@given(at=st.integers(0, 4), epoch=st.integers(0, 2))
def test_the_position_is_that_of_the_caller(at, epoch):
    plain, ahead = both(Log(), shuffle=True)
    for loader in (plain, ahead):
        loader.set_epoch(epoch)
    batches: Iterator[NodeFlow] = iter(ahead)
    taken = [fingerprint(next(batches)) for _ in range(at)]
    state = ahead.state_dict()
    assert state["batch_number"] == at
    whole = [fingerprint(batch) for batch in plain]
    assert taken == whole[:at]
    again = both(Log(), shuffle=True)[1]
    again.load_state_dict(state)
    if at < 4:
        assert [fingerprint(batch) for batch in again] == whole[at:]
    assert again.state_dict()["epoch"] == epoch


def test_processes_take_a_gpu_each(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    there = Mock()
    monkeypatch.setattr(torch.cuda, "device_count", there)
    for there.return_value, auto in ((2, "cpu"), (3, "cuda")):
        assert find_device("auto", several=True) == torch.device(auto)
        assert find_device("cuda", several=False) == torch.device("cuda")
    there.return_value = 2
    with pytest.raises(ValueError, match="not there for 3 processes, a GPU each: torch sees 2"):
        find_device("cuda", several=True)


def test_devices_that_are_not_there():
    with pytest.raises(ValueError, match="device must be cpu, cuda, cuda:N or auto, got 'gpu'"):
        Trainer(planted(), FAST.replace(device="gpu"))
    count = torch.cuda.device_count()
    with pytest.raises(
        ValueError, match=rf"device 'cuda:{count}' is not there .* torch sees {count} GPUs"
    ):
        Trainer(planted(), FAST.replace(device=f"cuda:{count}"))


def test_a_state_of_another_kind_of_device_is_refused():
    trainer = Trainer(planted(), FAST)
    state = trainer.state_dict()
    state["random"] = {**state["random"], "cuda": state["random"]["cpu"]}
    with pytest.raises(
        ValueError, match="the state is of a run on another kind of device than 'cpu'"
    ):
        trainer.load_state_dict(state)


# on a GPU

gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
RUNS = {
    "plain": FAST,
    "both inputs": FAST.replace(inputs="both"),
    "gin": FAST.replace(model="gin"),
    "subgraphs": FAST.replace(sampler="saint", model="gcn"),
    "history": FAST.replace(sampler="cv"),
    "bf16": FAST.replace(precision="bf16"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=gpu) for name in RUNS])
def test_a_gpu_learns_what_a_cpu_learns(name):
    settings = RUNS[name].replace(dropout=0.0)
    here = Trainer(planted(), settings).run()
    there = Trainer(planted(), settings.replace(device="cuda")).run()
    tolerance = 0.05 if name == "bf16" else 1e-3
    for one, other in zip(here.records, there.records, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize(
    "settings", [pytest.param(FAST, marks=gpu), pytest.param(RUNS["history"], marks=gpu)]
)
def test_a_run_on_a_gpu_goes_on(settings, tmp_path):
    settings = settings.replace(device="cuda", epochs=4)
    wanted = Trainer(planted(), settings).run()
    cut = Trainer(planted(), settings)
    cut.train_epoch()
    Checkpoints(tmp_path).save(cut)
    again = Trainer(planted(), settings)
    assert Checkpoints(tmp_path).restore(again)
    losses = [[record.loss for record in result.records] for result in (again.run(), wanted)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)  # sums on a GPU need not be in one order


@pytest.mark.parametrize("sparse", [pytest.param(False, marks=gpu), pytest.param(True, marks=gpu)])
def test_batches_on_a_gpu_are_those_on_the_cpu(sparse):
    data = planted(sparse=sparse)
    here, there = (Trainer(data, FAST.replace(device=device)) for device in ("cpu", "cuda"))
    assert isinstance(there.batches, SentAhead)
    for one, other in zip(here.batches, there.batches, strict=True):
        assert other.device.type == "cuda"
        assert torch.equal(one.seeds, other.seeds.cpu())
        assert torch.equal(one.ldata[-1]["label"], other.ldata[-1]["label"].cpu())
