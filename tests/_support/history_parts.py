"""A graph in parts on several ranks, and histories over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from _support.ranks import Parts
from _support.sampler_families import NODES, graph_of_all
from _support.views import viewed
from nodeflow import Graph, History
from nodeflow._files.store import store

WHOLE = graph_of_all()
WHOLE.edata["q"] = WHOLE.edata["w"].double()
X = torch.from_numpy(np.random.default_rng(3).normal(size=(NODES, 4)))
WHOLE.ndata["h"] = X
SPARSE = torch.eye(NODES).to_sparse_csr()
OWNER = [0 if v % 5 else 2 for v in range(NODES)]  # rank 1 owns nothing
OWNERS = {3: OWNER, **{size: [(v * v) % size for v in range(NODES)] for size in (1, 2, 4)}}
TWO = Parts(WHOLE, OWNERS[2], 2)
THREE = Parts(WHOLE, OWNER, 3)


def history_of(graph: Graph, widths: dict[int, int], **options: Any) -> History:
    return viewed(History, graph.view(weight="q"), widths, dtype=torch.float64, **options)


def filled(graph: Graph, **options: Any) -> History:
    """A history whose first 40 rows of a layer are committed."""
    history = history_of(graph, {1: 2, 0: 1}, **options)
    history.write(1, list(range(40)), torch.ones(40, 2, dtype=torch.float64))
    history.commit()
    return history


def everything(history: History) -> dict[str, list[Any]]:
    """All that is stored, by name."""
    return {name: buffer.tolist() for name, buffer in history.named_buffers()}


@contextmanager
def copies(by: Callable[..., None]) -> Iterator[None]:
    """Within the block, ``by(copied, arrays, changes)`` writes the rows of every commit;
    ``copied`` is what writes them otherwise.
    """
    copied = store.copy_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "copy_rows", lambda *rows: by(copied, *rows))
        yield
