"""Files of edges, and graphs made of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import torch

from nodeflow import Graph


def same(a: Graph, b: Graph) -> None:
    """Structure, ids of edges and all columns are the same."""
    assert a.num_nodes == b.num_nodes
    assert a.csc()[1].dtype == b.csc()[1].dtype
    for one, other in zip(
        (*a.csc()[:2], a.stored_edge_ids), (*b.csc()[:2], b.stored_edge_ids), strict=True
    ):
        assert np.array_equal(one, other)
    for frame, again in ((a.ndata, b.ndata), (a.edata, b.edata)):
        assert list(frame) == list(again)
        for name in frame:
            assert frame[name].dtype == again[name].dtype
            assert torch.equal(frame[name], again[name])


def write(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
