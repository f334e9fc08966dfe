"""Files of edges, and graphs made of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from nodeflow import Graph
from nodeflow.datasets import _edge_files, _sorting


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


def small_pieces(patch: pytest.MonkeyPatch) -> None:
    """Read files in pieces of three rows, and sort edges in pieces and buckets of a few."""
    patch.setattr(_edge_files, "_ROWS", 3)
    patch.setattr(_edge_files, "_EDGES", 3)
    patch.setattr(_sorting, "_PIECE", 4)


def write(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
