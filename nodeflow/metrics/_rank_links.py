"""Evaluation of link prediction: the rank of the true answer of every triple among all candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from nodeflow._base.checks import Ints, as_count, as_ids, check_one_of, describe
from nodeflow._base.sizes import as_bytes
from nodeflow._base.types import Array, IdsLike
from nodeflow.metrics._count import Part, count_above
from nodeflow.metrics._ranks import TIES, Ranks
from nodeflow.metrics._triples import SIDES, Queries, Triples, as_known, as_triples, queries_of

_CACHED = 2**24
"""Bytes of scores that are computed at a time, at most: they should still be in the caches when they are counted."""


class LinkScorer(Protocol):
    """What ``rank_links`` asks of a decoder, such as those of ``nodeflow.nn``.

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
TriplesLike: TypeAlias = "Tensor | Array | list[Any]"


def rank_links(
    scorer: Score,
    table: Tensor,
    triples: TriplesLike,
    *,
    known: TriplesLike | list[Tensor] | tuple[Any, ...] | None = None,
    candidates: IdsLike | Mapping[str, IdsLike] | None = None,
    sides: str = "both",
    ties: str = "realistic",
    memory: str | int = "64 MB",
    chunk_size: int | None = None,
    progress: bool = False,
) -> Ranks:
    """Rank the true answer of every triple among all nodes, once for its destination and once for its source.

    The rank is 1 + the number of candidates that score higher, where known positives other than the answer are left
    out ("filtered"). Queries with the same node and relation are scored once. Parameters need no gradients here, and
    modules compute as for evaluation.

    Args:
        scorer: a decoder with ``score_all`` (see ``LinkScorer``), or a function with its arguments.
        table: rows of all nodes, ``[num_nodes, d]``, on the device where scores are computed.
        triples: (source, relation, destination), ``[n, 3]``, or (source, destination), ``[n, 2]``; ``triples_of``
            takes them from a graph. Repeated ones count as often as they are there.
        known: known positives, of as many columns: one array, or a list of several, such as those of training,
            validation and test. ``triples`` are known too, whether they are listed or not. None: nothing is left out
            ("raw" ranks); an empty list leaves out other ``triples``.
        candidates: ids of nodes, ``[c]``, or a dict of them by side; repeats count once. None: all nodes.
        sides: "both", or only "destination" or "source": the end that is asked for.
        ties: where other candidates have the score of the answer: "realistic", the mean of the best and the worst
            rank; "optimistic", the best; "pessimistic", the worst. Only the first and last are safe against a model
            that gives every candidate the same score.
        memory: the most that the scores of a chunk take: bytes, or text such as "256 MB". A decoder may need several
            times that for its own results in between.
        chunk_size: queries scored at a time, in place of ``memory``.
        progress: show a bar.

    Returns ranks, float64 ``[n, 2]`` (destination, source) or ``[n, 1]``, in the order of the triples.

    Raises TypeError or ValueError for arguments of another type, shape or value, an answer that is not among the
    candidates, and scores that are NaN or of another shape; IndexError for an id that is no node.

    Source: filtered ranks are those of Bordes et al. 2013, section 4.2; the rules for ties are compared in Berrendorf
    et al. 2020, "On the ambiguity of rank-based evaluation".

    >>> table = torch.tensor([[1.0], [2.0], [3.0]])
    >>> def product(rows, relation, table, side):
    ...     return rows @ table.T
    >>> rank_links(product, table, [[0, 1], [0, 2]]).ranks
    tensor([[2., 3.],
            [1., 3.]], dtype=torch.float64)
    >>> rank_links(product, table, [[0, 1], [0, 2]], known=[]).ranks  # 0 -> 2 is left out when 0 -> 1 is ranked
    tensor([[1., 3.],
            [1., 3.]], dtype=torch.float64)
    """
    if not isinstance(table, Tensor) or table.ndim < 2:
        raise TypeError(f"table must be a tensor with a row per node, [num_nodes, d], got {describe(table)}")
    score = getattr(scorer, "score_all", scorer)
    if not callable(score):
        raise TypeError(f"scorer must have score_all(rows, relation, table, side=...), got {describe(scorer)}")
    check_one_of(ties, "ties", TIES)
    check_one_of(sides, "sides", ("both", *SIDES))
    checked = as_triples(triples, "triples", len(table))
    hidden = [] if known is None else [checked, *as_known(known, len(table), 2 if checked.relation is None else 3)]
    room = as_bytes(memory, "memory")
    size = None if chunk_size is None else as_count(chunk_size, "chunk_size", 1)
    asked = SIDES if sides == "both" else (sides,)
    among = {side: _candidates(candidates, side, len(table)) for side in asked}
    plans = {side: queries_of(checked, hidden, side, among[side], len(table)) for side in asked}
    ranks = np.empty((checked.src.size, len(asked)))
    total = sum(plan.node.size for plan in plans.values())
    with torch.no_grad(), _evaluating(scorer), tqdm(
        total=total, disable=not progress, desc="ranks", unit=" queries", leave=False
    ) as bar:  # fmt: skip
        for i, (side, plan) in enumerate(plans.items()):
            rows = table if among[side] is None else table[torch.from_numpy(among[side]).to(table.device)]
            step = size or max(min(room, _CACHED) // (max(len(rows), 1) * table.element_size()), 1)
            for first in range(0, plan.node.size, step):
                last = min(first + step, plan.node.size)
                scores = _scores(score, table, rows, plan, side, first, last)
                above, equal, bad = count_above(scores, Part.of(plan, first, last))
                if bad >= 0:
                    raise ValueError(_not_a_number(checked, int(plan.triple[plan.answer_ptr[first + bad]]), side))
                places = plan.triple[plan.answer_ptr[first] : plan.answer_ptr[last]]
                ranks[places, i] = 1 + above + TIES[ties] * (equal - 1)
                bar.update(last - first)
    relation = None if checked.relation is None else torch.from_numpy(checked.relation.copy())
    return Ranks(torch.from_numpy(ranks), asked, relation, ties)


def _candidates(value: object, side: str, num_nodes: int) -> Ints | None:
    """Distinct candidates of a side, ascending; None for all nodes."""
    if isinstance(value, Mapping):
        if unknown := set(value) - set(SIDES):
            raise ValueError(f"candidates has the key {min(map(repr, unknown))}, but its keys are the sides {SIDES}")
        name, value = f"candidates[{side!r}]", value.get(side)
    else:
        name = "candidates"
    return None if value is None else np.unique(as_ids(value, name, num_nodes))


def _scores(
    score: Callable[..., Tensor], table: Tensor, rows: Tensor, plan: Queries, side: str, first: int, last: int
) -> Tensor:
    """Scores of all candidates for some queries, checked."""
    given = table[torch.from_numpy(plan.node[first:last]).to(table.device)]
    relation = None
    if plan.relation is not None:
        relation = torch.from_numpy(plan.relation[first:last]).to(table.device)
    scores = score(given, relation, rows, side=side)
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise TypeError(f"score_all must return a tensor of floating-point scores, got {describe(scores)}")
    if scores.shape != (last - first, len(rows)):
        wanted = (last - first, len(rows))
        raise ValueError(f"score_all must return a score per query and candidate, {wanted}, got {tuple(scores.shape)}")
    return scores


def _not_a_number(triples: Triples, i: int, side: str) -> str:
    values = [int(column[i]) for column in triples if column is not None]
    return (
        f"score_all gives NaN among the candidates for the {side} of triples[{i}], {tuple(values)}; NaN has no rank: "
        "look for NaN in table and in the decoder's parameters"
    )


@contextmanager
def _evaluating(scorer: object) -> Iterator[None]:
    """Let a module compute as for evaluation, and put all its parts back afterwards."""
    modes = {part: part.training for part in scorer.modules()} if isinstance(scorer, nn.Module) else {}
    try:
        for part in modes:
            part.training = False
        yield
    finally:
        for part, training in modes.items():
            part.training = training
