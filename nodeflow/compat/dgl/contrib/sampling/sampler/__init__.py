"""The module of the samplers, which has ``create_full_nodeflow`` too."""

from __future__ import annotations

from typing import NoReturn

from nodeflow.compat.dgl._elsewhere import refuse
from nodeflow.compat.dgl._full import create_full_nodeflow as create_full_nodeflow
from nodeflow.compat.dgl._samplers import LayerSampler as LayerSampler
from nodeflow.compat.dgl._samplers import NeighborSampler as NeighborSampler

__all__ = ["LayerSampler", "NeighborSampler", "create_full_nodeflow"]


def __getattr__(name: str) -> NoReturn:
    refuse("dgl.contrib.sampling.sampler", name)
