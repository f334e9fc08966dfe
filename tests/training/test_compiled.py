"""Models that torch compiles."""

from __future__ import annotations

from itertools import islice

import pytest
from _support.training_tools import FAST, planted, train

from nodeflow.datasets import debian
from nodeflow.training import Settings, Trainer


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_a_compiled_model_trains():
    plain = train(planted(), FAST.replace(dropout=0.0, epochs=2))
    result = train(planted(), FAST.replace(dropout=0.0, epochs=2, compile=True))
    for one, other in zip(result.records, plain.records, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_a_compiled_model_reads_sparse_rows():
    # more batches than the compiler looks at a function before it looks into those that it calls
    trainer = Trainer(debian(), Settings(compile=True))
    losses = [trainer.step(batch) for batch in islice(trainer.batches, 10)]
    assert losses[-1] < losses[0]
