"""Precision bf16 by processor: what is narrow, what multiplies, what is said of it, and the waiting
of the command.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from _support.training_tools import FAST, planted, without

from nodeflow import __main__ as command
from nodeflow.nn import GraphSAGE
from nodeflow.ops import _products
from nodeflow.training import Trainer, _cli, _precision

WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
NARROW = FAST.replace(precision="bf16")


def processor(monkeypatch: pytest.MonkeyPatch, kind: torch.dtype) -> None:
    for module in (_products, _precision):
        monkeypatch.setattr(module, "product_type", lambda *_: kind)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_what_is_narrow_on_a_processor(kind, monkeypatch):
    processor(monkeypatch, kind)
    fast = kind == torch.bfloat16
    data = planted()
    own = GraphSAGE(data.graph.ndata["feat"].shape[1], 8, data.num_classes, num_layers=2)
    trainers = {
        "full": Trainer(data, FAST),
        "sage": Trainer(data, NARROW),
        "gcn": Trainer(data, NARROW.replace(model="gcn")),
        "gin": Trainer(data, NARROW.replace(model="gin")),
        "nothing dropped": Trainer(data, NARROW.replace(dropout=0.0)),
        "history": Trainer(data, NARROW.replace(sampler="cv", norm="none")),
        "own": Trainer(data, without(NARROW, "hidden", "dropout"), model=own),
    }
    always = {"sage", "gcn"}
    assert {name for name, one in trainers.items() if one.task.precision.rows} == (
        {*trainers} - {"full"} if fast else always
    )
    for name, trainer in trainers.items():
        with trainer.task.precision.context():
            assert torch.is_autocast_enabled("cpu") == (name != "full" and (fast or name in always))
    words = {name: str(one.task.precision) for name, one in trainers.items()}
    if fast:
        assert words["sage"] == "rows and products in bfloat16"
    else:
        slow = ": products in bfloat16 are slower on this processor"
        assert (words["sage"], words["gin"]) == (
            f"rows in bfloat16, products in float32{slow}",
            f"all in float32{slow}",
        )
        assert trainers["sage"].run().test_score > 0.75


def test_where_products_are_slow_a_model_of_other_products_is_that_of_float32(
    monkeypatch,
):
    processor(monkeypatch, torch.float32)
    wide, narrow = (
        Trainer(planted(), one.replace(model="gin", epochs=1)).run() for one in (FAST, NARROW)
    )
    assert wide.records[0].loss == narrow.records[0].loss


def test_the_command_says_what_was_chosen(data, tmp_path, cli):
    lines = cli.train(data, tmp_path / "run", "--precision bf16").splitlines()
    (line,) = (line for line in lines if line.startswith("precision bf16: "))
    assert "bfloat16" in line
    assert not [
        line for line in cli.train(data, tmp_path / "full").splitlines() if "precision" in line
    ]


def test_decoders_compare_in_float32(monkeypatch, ranked):
    processor(monkeypatch, torch.bfloat16)
    data = planted()
    Trainer(data, NARROW.replace(task="link")).validate()
    assert {is_narrow for _, is_narrow in ranked} == {False}


# ---- how the command's threads wait


def run(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, str]:
    """The variables about waiting with which the command runs."""
    for name in WAITING:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_cli, "main", lambda: 7)
    assert command.main() == 7
    found = {name: os.environ[name] for name in WAITING if name in os.environ}
    for name in WAITING:
        monkeypatch.setenv(name, "")  # undone at the end of the test
    return found


def test_threads_of_the_command_sleep_unless_the_user_says_otherwise(
    monkeypatch,
):
    assert run(monkeypatch) == {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}
    assert run(monkeypatch, GOMP_SPINCOUNT="5") == {"GOMP_SPINCOUNT": "5"}
    assert run(monkeypatch, OMP_WAIT_POLICY="active") == {"OMP_WAIT_POLICY": "active"}


def test_torchs_library_reads_it():
    """It prints at its start what it has read."""
    environment = {name: value for name, value in os.environ.items() if name not in WAITING}
    done = subprocess.run(
        [sys.executable, "-m", "nodeflow", "--version"],
        env={**environment, "OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
    )
    if "OPENMP DISPLAY ENVIRONMENT" not in done.stderr:
        pytest.skip("torch has no OpenMP library of GNU's kind here")
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr
    assert "GOMP_SPINCOUNT = '2000'" in done.stderr
