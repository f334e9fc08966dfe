"""Runs whose batches are drawn in operations of torch have the numbers of compiled loops, or are
refused.
"""

from __future__ import annotations

import pytest
from _support.training_tools import FAST, planted, same_result
from test_links import LINKS, wheel

from nodeflow.datasets import read_folder
from nodeflow.training import Settings, Trainer


@pytest.mark.parametrize(
    "change",
    [
        {}, {"sampler": "labor"}, {"validate": "full"}, {"direction": "out"}, {"storage": "file"},
        {"storage": "cached", "memory": "3 KB"}, {"storage": "lookahead", "memory": "3 KB"},
        {"sampler": "labor", "sampler_options": {"method": "sequential"}}, {"sampler": "cv"}, {"sampler": "fastgcn"},
        {"sampler": "ladies"},
    ],
    ids=str,
)  # fmt: skip
def test_nodes(change, tmp_path):
    planted().save(tmp_path / "data")
    settings = FAST.replace(epochs=2, **change)
    trainer = Trainer(read_folder(tmp_path / "data"), settings.replace(sample_on="device"))
    assert trainer.task.loader.sampler.backend == "torch on cpu"
    assert same_result(Trainer(read_folder(tmp_path / "data"), settings).run(), trainer.run())


@pytest.mark.parametrize("direction", ["in", "both"])
def test_links(direction):
    settings = LINKS.replace(model="sage", direction=direction, epochs=2)
    trainer = Trainer(wheel(), settings.replace(sample_on="device"))
    assert trainer.task.loader.sampler.backend == "torch on cpu"
    assert same_result(Trainer(wheel(), settings).run(), trainer.run())


def test_draws_without_a_form_in_torch_are_refused():
    for change in ({"sampler": "shadow", "fanouts": (3,)}, {"task": "link", "model": "none"}):
        with pytest.raises(ValueError, match=r"sample_on .* is read with"):
            Settings(sample_on="device", **change)
    for sampler, option in (("labor", {"iterations": 1}), ("ladies", {"draw": "poisson"})):
        settings = FAST.replace(sampler=sampler, sampler_options=option, sample_on="device")
        with pytest.raises(
            ValueError,
            match=r"sample_on 'device' is not possible: .*Sampler\(.* draws in compiled loops",
        ):
            Trainer(planted(), settings)
