"""Rows that are no tensor: fetched by id, where tensors are gathered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow import Graph, nn
from nodeflow._rows.protocol import Rows
from nodeflow._rows.rows import fetch_rows


class Stored:
    """Rows in a file, read when they are fetched."""

    dtype = torch.float32

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path, self.shape, self.fetched = path, shape, 0

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        rows = torch.from_numpy(np.memmap(self.path, np.float32, "r", shape=self.shape)[ids.numpy()])
        self.fetched += len(ids)
        return rows if out is None else out.copy_(rows)


def test_rows_in_a_file_are_fetched_and_enter_full_passes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 3)
    x.numpy().tofile(tmp_path / "x")
    stored = Stored(tmp_path / "x", (6, 3))
    assert isinstance(stored, Rows)
    assert not isinstance(x, Rows)
    ids = torch.tensor([5, 0, 5])
    assert fetch_rows(stored, ids).equal(x[ids])
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    model = nn.GraphSAGE(3, 4, 2, num_layers=2)
    assert model.inference(graph, stored).equal(model.inference(graph, x))
    stored.fetched = 0
    assert model.inference(graph, stored, nodes=[2]).equal(model.inference(graph, x, nodes=[2]))
    assert stored.fetched == 3  # nodes 0, 1 and 2: no more than the outputs depend on
