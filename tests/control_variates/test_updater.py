"""Updater: a history becomes what full neighbourhoods compute, or stays as it was."""

from __future__ import annotations

import pytest
import torch

from nodeflow import Graph
from nodeflow.control_variates import History, Updater
from nodeflow.nn import VRGCN


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("rows", [None, 2])
def test_an_updater_writes_what_full_neighbourhoods_compute(stored: bool, rows: int | None, ring: Graph) -> None:
    torch.manual_seed(0)
    model = VRGCN(3, 4, 2, num_layers=3, dropout=0.5)
    x = torch.randn(7, 3)
    history = History(ring, model.history_widths, weight="p", aggregated="stored" if stored else "on demand")
    updater = Updater(model, history, x, every=2, chunk_size=rows)
    assert [updater.step() for _ in range(3)] == [True, False, True]
    src, dst = ring.edges()
    p = torch.zeros(7, 7).index_put_((dst, src), ring.edata["p"], accumulate=True)
    h = x
    for i, conv in enumerate(model.convs):
        if i:
            h = h.relu()
            torch.testing.assert_close(history.rows(i, range(7)), h)
            torch.testing.assert_close(history.aggregated_rows(i, range(7)), p @ h)
            assert history.age(i).tolist() == [0] * 7
        h = p @ h @ conv.linear.weight.T + conv.linear.bias
    torch.testing.assert_close(model.inference(ring, x, weight="p", chunk_size=rows), h)
    assert model.training
    if stored:
        with pytest.raises(ValueError, match="is written by an Updater only"):
            history.write(1, [0], torch.ones(1, 4))


def test_an_updater_that_fails_leaves_the_old_history(ring: Graph) -> None:
    model = VRGCN(3, 4, 2, num_layers=2)
    history = History(ring, {1: 5}, weight="p")
    with pytest.raises(ValueError, match=r"layer 1 of the history is \(7, 5\), but the model's rows are \(7, 4\)"):
        Updater(model, history, torch.ones(7, 3)).run()
    assert int(history.step) == 0
    with pytest.raises(ValueError, match=r"the model has no layers \[2\]"):
        Updater(VRGCN(3, 5, 2, num_layers=1), History(ring, {2: 5}, weight="p"), torch.ones(7, 3)).run()
    assert model.training
