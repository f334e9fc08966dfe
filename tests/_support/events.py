"""A small graph whose edges have times, for tests of temporal samplers."""

from __future__ import annotations

import numpy as np
import torch

from nodeflow import Graph

STAMPS = torch.tensor([5, 1, 9, 3, 3, 8, 2])
VALUES = torch.tensor([0.0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000], dtype=torch.float64)


def events(hubs: int = 1) -> Graph:
    """Nodes 0..hubs-1 with an in-edge from the same seven nodes, at these times: at time 5, five of them are past."""
    src = np.tile(np.arange(hubs, hubs + 7), hubs)
    edata = {"time": STAMPS.repeat(hubs), "w": torch.tensor([1.0, -2, 3, 0.5, 4, 5, 6]).repeat(hubs)}
    return Graph.from_edges(src, np.repeat(np.arange(hubs), 7), num_nodes=hubs + 7, edata=edata)
