"""A ring of six nodes with labels and a split, for tests of data sets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nodeflow import Graph
from nodeflow.datasets import Dataset

NAN = float("nan")
# node 4 is in none
TRAIN = [0, 3]
VAL = [1]
TEST = [2, 5]
EDGES = "src,dst\n" + "".join(f"{v},{(v + 1) % 6}\n" for v in range(6))


def bools(rows: list[int]) -> Tensor:
    return torch.tensor([v in rows for v in range(6)])


MASKS = {"train_mask": bools(TRAIN), "val_mask": bools(VAL), "test_mask": bools(TEST)}
CLASSES = torch.tensor([0, 1, 0, 1, -1, 1])


def ring(**ndata: Any) -> Graph:
    return Graph.from_edges(range(6), [1, 2, 3, 4, 5, 0], ndata=ndata)


def parts(data: Dataset) -> list[list[int]]:
    return [ids.tolist() for ids in data.splits.values()]
