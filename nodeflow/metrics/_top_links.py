"""Answers of link prediction: the candidates that score highest for every query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    LARGEST,
    Ints,
    as_count,
    as_ids,
    as_int,
    check_one_of,
    check_pairs,
)
from nodeflow._core.base.types import IdsLike
from nodeflow._core.links import SIDES, KnownLike, Queries, as_known
from nodeflow.metrics._scorer import (
    Score,
    Scoring,
    as_candidates,
    entry_rows,
    not_a_number,
    rows_between,
)


class TopLinks(NamedTuple):
    """The best answers of queries, best first. Made by ``top_links``.

    Args:
        ids: the answers, int64 ``[n, k]``; -1 where a query has fewer than k.
        scores: their scores, ``[n, k]``; -inf where there is no answer.

    >>> product = lambda rows, relation, table, side: rows @ table.T
    >>> top_links(product, torch.tensor([[1.0], [2.0]]), [0], k=3)
    TopLinks(ids=tensor([[ 1,  0, -1]]), scores=tensor([[2., 1., -inf]]))
    """

    ids: Tensor
    scores: Tensor


@checked
def top_links(
    scorer: Score,
    table: Tensor,
    nodes: IdsLike,
    k: int = 10,
    *,
    relation: int | IdsLike | None = None,
    side: str = "destination",
    known: KnownLike = None,
    candidates: IdsLike | None = None,
    memory: str | int = "64 MB",
    progress: bool = False,
) -> TopLinks:
    """Return the k candidates that score highest as the other end of every node, without known
    positives.

    Of equal scores the lower id comes first. A candidate with the score -inf is no answer. Queries
    with the same node and relation are scored once. Parameters need no gradients here, and modules
    compute as for evaluation.

    Args:
        scorer, table, memory, progress: as in ``rank_links``.
        nodes: ids of the known ends, ``[n]``; they may repeat.
        k: the number of answers.
        relation: ids of relations, ``[n]`` or one for all; None without relations.
        side: the end that is asked for: "destination" (then ``nodes`` are sources) or "source".
        known: positives that are left out, as in ``rank_links``; None: none.
        candidates: ids of nodes, ``[c]``; repeats count once. None: all nodes, also the one that is
            asked about.

    Returns ids, int64 ``[n, k]``, and scores ``[n, k]``, both on the CPU.

    Raises TypeError or ValueError for arguments of another type, shape or value, and for scores
    that are NaN or of another shape; IndexError for an id that is no node.

    >>> table = torch.tensor([[1.0], [2.0], [3.0], [3.0]])
    >>> def product(rows, relation, table, side):
    ...     return rows @ table.T
    >>> top_links(product, table, [0, 1], k=2).ids.tolist()
    [[2, 3], [2, 3]]
    >>> top_links(product, table, [0, 1], k=2, known=[[0, 2], [1, 3]]).ids.tolist()
    [[3, 1], [2, 1]]
    """
    scoring = Scoring(scorer, table, memory)
    check_one_of(side, "side", SIDES)
    count = as_count(k, "k", 1)
    ids = as_ids(nodes, "nodes", len(table))
    relations = _relations(relation, ids.size)
    hidden = as_known(known, len(table), relations is not None, "as relation= is given or not")
    among, places_of = as_candidates(candidates, side, len(table))
    queries = Queries(ids, relations, len(table))
    known_answers = queries.answers(hidden, side, places_of)
    # an empty first piece: without queries the results still have a type and a width
    values = [table.new_empty(0, count, device="cpu")]
    columns = [torch.empty(0, count, dtype=torch.int64)]
    with scoring.running("answers", len(queries), progress):
        for first, last, scores in scoring.chunks(queries, side, among):
            _refuse_nan(scores, queries, first, side)
            left_out = rows_between(*known_answers, first, last)
            best, places = _best(_without(scores, *left_out), count)
            values.append(best.cpu())
            columns.append(places.cpu())
    # each distinct query was scored once; here equal ones get their copies
    query = torch.from_numpy(queries.number)
    best = torch.cat(values[1:] or values)[query]  # scores have the type that the scorer gives
    answers = torch.cat(columns)[query]
    if among is not None and among.size:
        answers = torch.from_numpy(among)[answers]
    return TopLinks(answers.masked_fill(best == -torch.inf, -1), best)


def _refuse_nan(scores: Tensor, queries: Queries, first: int, side: str) -> None:
    """Raise ValueError where scores, those from query ``first`` on, have a NaN."""
    queries_with_nan = scores.isnan().any(1).nonzero()
    if len(queries_with_nan):
        i = first + int(queries_with_nan[0])
        kind = "" if queries.relation is None else f" with relation {queries.relation[i]}"
        raise not_a_number(side, f"node {queries.node[i]}{kind}", "place among the best")


def _relations(value: object, count: int) -> Ints | None:
    """Return a relation for each of ``count`` queries; None without."""
    if value is None:
        return None
    if np.ndim(value) == 0:  # type: ignore[arg-type]
        value = [as_int(value, "relation")] * count
    kinds = as_ids(value, "relation", LARGEST, "relation")
    check_pairs(range(count), kinds, "nodes and relation", "query")
    return kinds


def _without(scores: Tensor, indptr: Ints, known: Ints) -> Tensor:
    """Return scores with -inf for known positives."""
    if not len(known):
        return scores
    # the scorer may keep the one that it returned
    scores = scores.clone()
    rows = entry_rows(indptr).to(scores.device)
    scores[rows, torch.from_numpy(known).to(scores.device)] = -torch.inf
    return scores


def _best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the highest scores of every row and their columns, ``[n, count]`` each; equal ones by
    column.
    """
    kept = min(count, scores.shape[1])
    if not kept:
        nothing = scores.new_full((len(scores), count), -torch.inf)
        return nothing, torch.zeros_like(nothing, dtype=torch.int64)
    values, columns = scores.topk(kept)
    # topk picks arbitrarily among candidates tied at the last place, so such rows are resolved by
    # column
    tied = ((scores >= values[:, -1:]).sum(1) > kept) & (values[:, -1] > -torch.inf)
    if tied.any():
        ordered, places = scores[tied].sort(dim=1, descending=True, stable=True)
        values[tied] = ordered[:, :kept]
        columns[tied] = places[:, :kept]
    # by column, then stably by score: equal scores stay in the order of columns
    columns, order = columns.sort(1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order)
    missing = count - kept
    return pad(values, (0, missing), value=-torch.inf), pad(columns, (0, missing))
