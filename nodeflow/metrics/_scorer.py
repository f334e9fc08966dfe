"""Decoders and functions that score links: called on chunks of queries, with their results checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._base.checks import Ints, as_count, as_ids, describe
from nodeflow._base.sizes import as_bytes
from nodeflow._links.links import SIDES
from nodeflow._links.queries import Queries

_CACHED = 2**24
"""Bytes of scores that are computed at a time, at most: they should still be in the caches when they are read."""


class LinkScorer(Protocol):
    """The method that ``rank_links`` calls of a decoder, such as those of ``nodeflow.nn``.

    >>> from nodeflow.nn import DistMult
    >>> scorer: LinkScorer = DistMult(4, num_relations=1)
    >>> scores = scorer.score_all(torch.ones(2, 4), torch.tensor([0, 0]), torch.ones(5, 4), "destination")
    >>> scores.shape
    torch.Size([2, 5])
    """

    def score_all(self, rows: Tensor, relation: Tensor | None, table: Tensor, *, side: str) -> Tensor:
        """Return the score of every candidate, ``[n, candidates]``; higher is more likely.

        Args:
            rows: rows of the ends that are given, ``[n, d]``.
            relation: int64 ``[n]``; None without relations.
            table: rows of the candidates, ``[candidates, d]``.
            side: which end the candidates take: "destination" (then ``rows`` are of sources) or "source".
        """


Score: TypeAlias = "LinkScorer | Callable[..., Tensor]"


def score_of(scorer: Score, table: Tensor) -> Callable[..., Tensor]:
    """Return the function that gives scores; raises TypeError unless there is one, and ``table`` has rows."""
    if not isinstance(table, Tensor) or table.ndim < 2:
        raise TypeError(f"table must be a tensor with a row per node, [num_nodes, d], got {describe(table)}")
    score = getattr(scorer, "score_all", scorer)
    if not callable(score):
        raise TypeError(f"scorer must have score_all(rows, relation, table, side=...), got {describe(scorer)}")
    return score


def candidates_of(value: object, side: str, num_nodes: int) -> Ints | None:
    """Distinct candidates of a side, ascending; None for all nodes."""
    if isinstance(value, Mapping):
        if unknown := set(value) - set(SIDES):
            raise ValueError(f"candidates has the key {min(map(repr, unknown))}, but its keys are the sides {SIDES}")
        name, value = f"candidates[{side!r}]", value.get(side)
    else:
        name = "candidates"
    return None if value is None else np.unique(as_ids(value, name, num_nodes))


class Chunks:
    """The sizes of chunks of queries.

    Args:
        memory: the most that the scores of a chunk take, bytes or text.
        size: queries at a time, in place of ``memory``; None: as many as that holds.
    """

    def __init__(self, memory: str | int, size: int | None) -> None:
        self.room = as_bytes(memory, "memory")
        self.size = None if size is None else as_count(size, "chunk_size", 1)

    def of(self, count: int, rows: Tensor) -> Iterator[tuple[int, int]]:
        """Yield the first and last (not included) of consecutive queries, whose candidates are ``rows``."""
        step = self.size or max(min(self.room, _CACHED) // (max(len(rows), 1) * rows.element_size()), 1)
        for first in range(0, count, step):
            yield first, min(first + step, count)


def scores_of(
    score: Callable[..., Tensor], table: Tensor, queries: Queries, first: int, last: int, rows: Tensor, side: str
) -> Tensor:
    """Return the scores of all candidates, ``rows``, for the queries ``first`` to ``last - 1``, checked."""
    nodes = torch.from_numpy(queries.node[first:last]).to(table.device)
    relation = None if queries.relation is None else torch.from_numpy(queries.relation[first:last]).to(table.device)
    scores = score(table[nodes], relation, rows, side=side)
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise TypeError(f"score_all must return a tensor of floating-point scores, got {describe(scores)}")
    wanted = (len(nodes), len(rows))
    if scores.shape != wanted:
        raise ValueError(f"score_all must return a score per query and candidate, {wanted}, got {tuple(scores.shape)}")
    return scores


@contextmanager
def evaluating(scorer: object) -> Iterator[None]:
    """Let a module compute as for evaluation, and put all its parts back afterwards."""
    modes = {part: part.training for part in scorer.modules()} if isinstance(scorer, nn.Module) else {}
    try:
        for part in modes:
            part.training = False
        yield
    finally:
        for part, training in modes.items():
            part.training = training
