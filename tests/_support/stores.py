"""A small store of four arrays, what its commits write, and what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nodeflow._files.store import files, store as memory
from nodeflow.storage import EmbeddingTable

Store = files.FileStore

SHAPES = {
    "x": ((50, 3), torch.float32),
    "half": ((50, 2), torch.bfloat16),
    "seen": ((50,), torch.bool),
    "step": ((), torch.int64),
}


def opened(folder: Path, **other: Any) -> Store:
    return Store(folder, "thing", 1, SHAPES, {"name": "papers"}, **other)


def changes(number: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Rows that commit ``number`` writes; ids may repeat where their rows are the same."""
    random = torch.Generator().manual_seed(number)
    ids = torch.randint(0, 50, (20,), generator=random)
    return {
        "x": (ids, torch.full((20, 3), float(number))),
        "half": (ids[:4], torch.full((4, 2), -float(number)).bfloat16()),
        "seen": (ids, torch.ones(20, dtype=torch.bool)),
        "step": (torch.tensor([0]), torch.tensor([number])),
    }


def after(number: int) -> dict[str, Any]:
    """The arrays after so many commits."""
    arrays = {name: torch.zeros(shape, dtype=dtype) for name, (shape, dtype) in SHAPES.items()}
    for k in range(1, number + 1):
        for name, (ids, rows) in changes(k).items():
            (arrays[name] if arrays[name].ndim else arrays[name].view(1))[ids] = rows
    return values(arrays)


def values(arrays: dict[str, Tensor]) -> dict[str, Any]:
    return {name: array.tolist() for name, array in arrays.items()}


def write_without_end(store: Store, number: int) -> None:
    """Leave a commit whose rows are written and whose journal is marked."""
    rows = {name: memory.as_rows(array) for name, array in store.arrays.items()}
    store._journal.record(rows, [(name, ids) for name, (ids, _) in changes(number).items()])
    memory.MemoryStore(store.arrays).commit(changes(number))


def waiting(table: EmbeddingTable) -> list[Any]:
    """The pulls whose steps have not been made."""
    return table._pulls.waiting(())
