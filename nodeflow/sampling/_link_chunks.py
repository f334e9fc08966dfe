"""The rows of a link batch in the shapes in which they are scored: pairs, and groups that share their negatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor


class LinkChunk(NamedTuple):
    """C groups of n seeds; the seeds of a group share K negatives. All are rows of the last layer but ``rel``.

    ``LinkSampler.chunks_of`` makes them, on the device of the batch.

    >>> import torch
    >>> from nodeflow import Graph, LinkSampler, NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> sampler = LinkSampler(NeighborSampler(graph, [1]), num_negatives=3, chunk=2)
    >>> for chunk in sampler.chunks_of(sampler([0, 1, 2, 3])):
    ...     print(chunk.side, chunk.src.tolist(), chunk.dst.tolist(), tuple(chunk.negatives.shape))
    destination [[0, 1], [2, 3]] [[1, 2], [3, 0]] (2, 3)
    """

    side: str
    """The end that negatives take the place of, "destination" or "source"."""
    src: Tensor
    """Sources, int64 ``[C, n]``."""
    rel: Tensor | None
    """Relations, int64 ``[C, n]``; None without ``relation=``."""
    dst: Tensor
    """Destinations, int64 ``[C, n]``."""
    negatives: Tensor
    """Negatives, int64 ``[C, K]``."""
    known: Tensor | None
    """Which negatives are known positives of a seed, bool ``[C, n, K]``; None without ``filter_known="mark"``."""


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


def chunks(
    side: str, index: Tensor, columns: slice, size: int, rel: Tensor | None, known: Tensor | None
) -> Iterator[LinkChunk]:
    """Cut the rows of a batch into groups of ``size``: one chunk of whole groups, and one of the seeds left over.

    Of a batch without seeds it is one chunk of no groups, so that scores still depend on all parameters.

    Args:
        side: see ``LinkChunk``.
        index: rows of the last layer ``[B, 2 + K]``: source, destination, negatives.
        columns: which negatives belong to ``side``.
        size: seeds of a group.
        rel: relations ``[B]``.
        known: which negatives of ``side`` are known positives, ``[B, k]``.
    """
    whole = len(index) // size * size
    for rows, n in ((slice(0, whole), size), (slice(whole, len(index)), len(index) - whole)):
        if rows.start == rows.stop and (len(index) or not n):
            continue
        part = index[rows].reshape(len(index[rows]) // n, n, index.shape[1])
        yield LinkChunk(
            side,
            part[:, :, 0],
            None if rel is None else rel[rows].reshape(len(part), n),
            part[:, :, 1],
            part[:, 0, 2:][:, columns],
            None if known is None else known[rows].reshape(len(part), n, known.shape[1]),
        )
