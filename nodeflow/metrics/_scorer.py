"""Decoders and functions that score links: called on chunks of queries, with their results checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import Ints, as_ids, describe
from nodeflow._core.base.progress import progress_bar
from nodeflow._core.base.sizes import as_bytes
from nodeflow._core.links import SIDES, Queries

_CACHED = 2**24
"""Maximum bytes of scores computed at a time, so that they are still in the cache when they are
read.
"""


class LinkScorer(Protocol):
    """The method that ``rank_links`` calls of a decoder, such as those of ``nodeflow.nn``.

    >>> from nodeflow.nn import DistMult
    >>> scorer: LinkScorer = DistMult(4, num_relations=1)
    >>> scorer.score_all(torch.ones(2, 4), torch.tensor([0, 0]), torch.ones(5, 4), side="destination").shape
    torch.Size([2, 5])
    """

    def score_all(
        self, rows: Tensor, relation: Tensor | None, table: Tensor, *, side: str
    ) -> Tensor:
        """Return the score of every candidate, ``[n, candidates]``; higher is more likely.

        Args:
            rows: rows of the ends that are given, ``[n, d]``.
            relation: int64 ``[n]``; None without relations.
            table: rows of the candidates, ``[candidates, d]``.
            side: which end the candidates take: "destination" (then ``rows`` are of sources) or
                "source".
        """


Score: TypeAlias = "LinkScorer | Callable[..., Tensor]"


def as_candidates(value: object, side: str, num_nodes: int) -> tuple[Ints | None, Ints]:
    """Return the nodes that may be the answers of a side, from ids, a dict of ids by side, or None
    for all nodes.

    First their ids, ascending and distinct, None for all; then the place of every node among them,
    -1 for no place.
    """
    name = "candidates"
    if isinstance(value, Mapping):
        if unknown := set(value) - set(SIDES):
            raise ValueError(
                f"candidates has the key {min(map(repr, unknown))}, but its keys are the sides "
                f"{SIDES}"
            )
        name = f"candidates[{side!r}]"
        value = value.get(side)
    if value is None:
        return None, np.arange(num_nodes)
    ids = np.unique(as_ids(value, name, num_nodes))
    columns = np.full(num_nodes, -1)
    columns[ids] = np.arange(ids.size)
    return ids, columns


class Scoring:
    """Computes the scores of all candidates for distinct queries, in chunks; arguments as of
    ``rank_links``.
    """

    def __init__(self, scorer: Score, table: Tensor, memory: str | int) -> None:
        if not isinstance(table, Tensor) or table.ndim < 2:
            raise TypeError(
                f"table must be a tensor with a row per node, [num_nodes, d], got {describe(table)}"
            )
        score = getattr(scorer, "score_all", scorer)
        if not callable(score):
            raise TypeError(
                "scorer must have score_all(rows, relation, table, side=...), got "
                f"{describe(scorer)}"
            )
        self._scorer = scorer
        self._score = score
        self._table = table
        self._room = as_bytes(memory, "memory")

    @contextmanager
    def running(self, what: str, total: int, progress: bool) -> Iterator[None]:
        """Within the block, the scorer is in evaluation mode without gradients; shows a bar of
        ``total`` queries.
        """
        # modules one by one: a part may be in another mode than the whole
        modes: dict[nn.Module, bool] = {}
        if isinstance(self._scorer, nn.Module):
            modes = {part: part.training for part in self._scorer.modules()}
        with torch.no_grad(), progress_bar(what, total, " queries", shown=progress) as self._bar:
            try:
                for part in modes:
                    part.training = False
                yield
            finally:
                for part, training in modes.items():
                    part.training = training

    def chunks(
        self, queries: Queries, side: str, ids: Ints | None
    ) -> Iterator[tuple[int, int, Tensor]]:
        """Yield the first and last (not included) of some queries, and their scores with the
        candidates ``ids``.
        """
        table = self._table
        if ids is None:
            rows = table
        else:
            rows = table[torch.from_numpy(ids).to(table.device)]
        per_query = max(len(rows), 1) * rows.element_size()
        # scores that leave the cache before they are read cost twice the time
        step = max(min(self._room, _CACHED) // per_query, 1)
        for first in range(0, len(queries), step):
            last = min(first + step, len(queries))
            nodes = torch.from_numpy(queries.node[first:last]).to(table.device)
            relation = None
            if queries.relation is not None:
                relation = torch.from_numpy(queries.relation[first:last]).to(table.device)
            scores = self._score(table[nodes], relation, rows, side=side)
            if not isinstance(scores, Tensor) or not scores.is_floating_point():
                raise TypeError(
                    "score_all must return a tensor of floating-point scores, got "
                    f"{describe(scores)}"
                )
            if scores.shape != (len(nodes), len(rows)):
                raise ValueError(
                    "score_all must return a score per query and candidate, "
                    f"{(len(nodes), len(rows))}, got {tuple(scores.shape)}"
                )
            yield first, last, scores
            self._bar.update(last - first)


def rows_between(indptr: Ints, values: Ints, first: int, last: int) -> tuple[Ints, Ints]:
    """Return ``indptr`` and ``values`` of the rows ``first`` to ``last - 1`` of a CSR matrix."""
    part = indptr[first : last + 1]
    return part - part[0], values[part[0] : part[-1]]


def entry_rows(indptr: Ints) -> Tensor:
    """Return the number of the row of every entry of a CSR matrix, int64."""
    row = np.arange(len(indptr) - 1)
    return torch.from_numpy(np.repeat(row, np.diff(indptr)))


def not_a_number(side: str, query: str, place: str) -> ValueError:
    """Return the error for a NaN among the scores of a query."""
    return ValueError(
        f"score_all gives NaN among the candidates for the {side} of {query}; NaN has no {place}: "
        "look for NaN in table and in the decoder's parameters"
    )
