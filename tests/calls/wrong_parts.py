"""Samplers, rows and a graph that are wrong, for the calls of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import nodeflow
from nodeflow import Graph, Sampler
from nodeflow.sampling.base import (
    Choice,
    DrawingRows,
    Drawn,
    Edges,
    RowSampler,
    Step,
    SubgraphSampler,
)


class Chosen(Sampler):
    """A sampler of one flow whose edges a function of destinations and step chooses."""

    def __init__(self, graph: Graph, fn: Callable[..., Choice], **options: Any) -> None:
        self.fn = fn
        super().__init__(graph, 1, **options)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        return self.fn(dst, step)


class WrongRows(RowSampler):
    """Draws neighbours that are no nodes."""

    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        count = len(rows.numbers)
        return Drawn(np.arange(count + 1), np.zeros(count, np.int64), np.full(count, 99), None)


class NoDrawn(RowSampler):
    """Draws a number."""

    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        wrong: Any = 3
        return wrong


class WrongTimes(NoDrawn):
    """Takes times, but does not say of which column they are."""

    takes_times = True


class WrongNodes(SubgraphSampler):
    """Chooses what is no node."""

    def choose_nodes(self, seeds: Any, draw: Any) -> Any:
        return np.array([0, 99])


def damaged_rows(count: int) -> torch.Tensor:
    """Return sparse rows ``[count, 4]`` with a column 9 in the second, as one damaged byte of a
    file would give.
    """
    indptr = torch.arange(count + 1)
    indices = torch.zeros(count, dtype=torch.int64)
    indices[1] = 9
    return torch.sparse_csr_tensor(
        indptr, indices, torch.ones(count), (count, 4), check_invariants=False
    )


def heavy_graph() -> nodeflow.Graph:
    """Return a graph whose float32 weights have sums, products and inverses beyond float32."""
    weights = torch.full((40,), 1e38)
    weights[0] = 1e-38
    return nodeflow.Graph.from_edges(
        list(range(20)) * 2, [0] * 40, num_nodes=20, edata={"w": weights}
    )
