"""The rows of a link batch in the shapes in which they are scored: pairs, and groups that share their negatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from nodeflow.flow import NodeFlow

MARKS = "known_negatives"
"""The column of ``seed_data`` that says which negatives are known positives."""


class LinkChunk(NamedTuple):
    """C groups of n seeds that share K negatives each. All are rows of the last layer but ``relation``.

    ``batch.chunks`` of a ``LinkSampler`` has them, on the device of the batch.

    >>> import torch
    >>> from nodeflow import Graph, LinkSampler, NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> sampler = LinkSampler(NeighborSampler(graph, [1]), num_negatives=3, chunk=2)
    >>> for chunk in sampler([0, 1, 2, 3]).chunks:
    ...     print(chunk.side, chunk.src.tolist(), chunk.dst.tolist(), tuple(chunk.negatives.shape))
    destination [[0, 1], [2, 3]] [[1, 2], [3, 0]] (2, 3)
    """

    side: str
    """The end that negatives replace, "destination" or "source"."""
    src: Tensor
    """Sources, int64 ``[C, n]``."""
    relation: Tensor | None
    """Relations, int64 ``[C, n]``; None without ``relation=``."""
    dst: Tensor
    """Destinations, int64 ``[C, n]``."""
    negatives: Tensor
    """Negatives, int64 ``[C, K]``."""
    known: Tensor | None
    """Which negatives are known positives of a seed, bool ``[C, n, K]``; None without ``filter_known="mark"``."""


class LinkLayout(NamedTuple):
    """The layout of the seeds of a link batch in its ``seed_index`` and ``seed_data``.

    Attributes:
        sides: the ends that negatives replace; two sides alternate.
        relation: the column of ``seed_data`` with relations; None for none.
        chunk: number of consecutive seeds that share their negatives.
    """

    sides: tuple[str, ...]
    relation: str | None
    chunk: int

    def columns(self, side: str) -> slice:
        """Return the columns of the negatives that take the place of a side."""
        return slice(self.sides.index(side), None, len(self.sides))

    def chunks(self, batch: NodeFlow) -> list[LinkChunk]:
        """Return the seeds of a batch in groups that share negatives: whole groups, and one of the seeds left over."""
        index, data = batch.seed_index, batch.seed_data
        relation, marks = None if self.relation is None else data[self.relation], data.get(MARKS)
        size = min(self.chunk, max(len(index), 1))
        count, rest = divmod(len(index), size)
        # a batch without seeds is one chunk of no groups, so that scores still depend on all parameters
        groups = [(0, count, size)] + ([(count * size, 1, rest)] if rest else [])
        parts: list[LinkChunk] = []
        for side in self.sides:
            columns = self.columns(side)
            for first, count, n in groups:
                rows, shape = slice(first, first + count * n), (count, n)
                kinds = None if relation is None else relation[rows].unflatten(0, shape)
                known = None if marks is None else marks[rows, columns].unflatten(0, shape)
                src, dst = index[rows, 0].unflatten(0, shape), index[rows, 1].unflatten(0, shape)
                negatives = index[rows, 2:][:, columns].unflatten(0, shape)[:, 0]
                parts.append(LinkChunk(side, src, kinds, dst, negatives, known))
        return parts


def paired(index: Tensor, corrupt: str) -> Tensor:
    """Return (source, destination) of every seed and then of its negatives, ``[B, 1 + K, 2]``.

    Args:
        index: rows of the last layer ``[B, 2 + K]``: source, destination, negatives.
        corrupt: the end that negatives take the place of, or "both" for both in turn.
    """
    src, dst = index[:, :1].expand(-1, index.shape[1] - 1).clone(), index[:, 1:].clone()
    replaced = slice(1, None) if corrupt == "source" else slice(2, None, 2)
    if corrupt != "destination":
        src[:, replaced] = index[:, 1:][:, replaced]
        dst[:, replaced] = index[:, 1:2]
    return torch.stack([src, dst], -1)
