"""Link prediction: the rank of the true answer of every triple, and the best answers of queries."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    ALL,
    LARGEST,
    Ints,
    _All,
    as_count,
    as_ids,
    as_int,
    check_one_of,
    check_pairs,
    first_true,
    lasting,
)
from nodeflow._core.base.types import IdsLike
from nodeflow._core.links import (
    SIDES,
    KnownLike,
    Links,
    LinksLike,
    Queries,
    as_known,
    as_links,
    joined,
    pointers,
)
from nodeflow._core.runtime.threads import run_all
from nodeflow.graph import Graph
from nodeflow.metrics._ranks import TIES, Ranks
from nodeflow.metrics._scorer import (
    Score,
    Scoring,
    as_candidates,
    entry_rows,
    not_a_number,
    rows_between,
)

_PIECE = 2**18
"""Approximate number of comparisons in one piece of work of a thread."""


@checked
def rank_links(
    scorer: Score,
    table: Tensor,
    triples: LinksLike,
    *,
    known: KnownLike = None,
    candidates: IdsLike | Mapping[str, IdsLike] | None = None,
    sides: str = "both",
    ties: str = "realistic",
    memory: str | int = "64 MB",
    progress: bool = False,
) -> Ranks:
    """Rank the true answer of every triple among all nodes, once for its destination and once for
    its source.

    The rank is 1 + the number of candidates that score higher, where known positives other than the
    answer are left out ("filtered"). Queries with the same node and relation are scored once.
    Parameters need no gradients here, and modules compute as for evaluation.

    Args:
        scorer: a decoder with ``score_all`` (see ``LinkScorer``), or a function with its arguments.
        table: rows of all nodes, ``[num_nodes, d]``, on the device where scores are computed.
        triples: (source, relation, destination), ``[n, 3]``, or (source, destination), ``[n, 2]``;
            ``triples_of`` takes them from a graph. Repeated ones count as often as they are there.
        known: known positives, of as many columns: one array, or a list of several, such as those
            of training, validation and test. ``triples`` are known too, whether they are listed or
            not. None: nothing is left out ("raw" ranks); an empty list leaves out other
            ``triples``.
        candidates: ids of nodes, ``[c]``, or a dict of them by side; repeats count once. None: all
            nodes.
        sides: "both", or only "destination" or "source": the end that is asked for.
        ties: where other candidates have the score of the answer: "realistic", the mean of the best
            and the worst rank; "optimistic", the best; "pessimistic", the worst. Only the first and
            last are safe against a model that gives every candidate the same score.
        memory: the most that the scores of a chunk take: bytes, or text such as "256 MB". A decoder
            may need several times that for its own results in between.
        progress: show a bar.

    Returns ranks, float64 ``[n, 2]`` (destination, source) or ``[n, 1]``, in the order of the
    triples.

    Raises TypeError or ValueError for arguments of another type, shape or value, an answer that is
    not among the candidates, and scores that are NaN or of another shape; IndexError for an id that
    is no node.

    Source: filtered ranks are those of Bordes et al. 2013, section 4.2; the rules for ties are
    compared in Berrendorf et al. 2020, "On the ambiguity of rank-based evaluation".

    >>> table = torch.tensor([[1.0], [2.0], [3.0]])
    >>> def product(rows, relation, table, side):
    ...     return rows @ table.T
    >>> rank_links(product, table, [[0, 1], [0, 2]]).ranks.tolist()
    [[2.0, 3.0], [1.0, 3.0]]
    >>> rank_links(product, table, [[0, 1], [0, 2]], known=[]).ranks.tolist()  # 0 -> 2 is left out for 0 -> 1
    [[1.0, 3.0], [1.0, 3.0]]
    """
    scoring = Scoring(scorer, table, memory)
    check_one_of(ties, "ties", TIES)
    check_one_of(sides, "sides", ("both", *SIDES))
    links = as_links(triples, "triples", len(table))
    hidden = as_known(known, len(table), links.relation is not None)
    # a listed triple is a known positive of the other triples with the same query
    if known is not None:
        hidden = joined([links, hidden], links.relation is not None)
    candidates = lasting(candidates)  # read for each side
    ranked: tuple[str, ...] = (sides,)
    if sides == "both":
        ranked = SIDES
    among = {side: as_candidates(candidates, side, len(table)) for side in ranked}
    plans = {side: RankPlan(links, hidden, side, columns) for side, (_, columns) in among.items()}
    ranks = np.empty((links.src.size, len(ranked)))
    total = sum(len(plan.queries) for plan in plans.values())
    with scoring.running("ranks", total, progress):
        for i, (side, plan) in enumerate(plans.items()):
            for first, last, scores in scoring.chunks(plan.queries, side, among[side][0]):
                above, equal, query_of_nan = count_above(scores, plan.part(first, last))
                if query_of_nan >= 0:
                    link = int(plan.links_of(first + query_of_nan, last)[0])
                    values = tuple(int(column[link]) for column in links if column is not None)
                    raise not_a_number(side, f"triples[{link}], {values}", "rank")
                rows = plan.links_of(first, last)
                ranks[rows, i] = 1 + above + TIES[ties] * (equal - 1)
    relation = None
    if links.relation is not None:
        relation = torch.from_numpy(links.relation)
    return Ranks(torch.from_numpy(ranks), ranked, relation, ties)


@checked
def triples_of(graph: Graph, relation: str | None = None, edges: IdsLike | _All = ALL) -> Tensor:
    """Return edges of a graph as triples (source, relation, destination), int64 ``[k, 3]``; pairs
    without a relation.

    Args:
        relation: name of the edge column with a whole number per edge; None: the numbers of the
            relations of ``graph.schema``, and pairs (source, destination), ``[k, 2]``, where it has
            only one.
        edges: ids of edges, ``[k]``, in the order of the rows; all by default.

    Raises KeyError for a column that the graph has not, TypeError or ValueError for one that is not
    whole numbers, IndexError for an id that is no edge.

    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"kind": torch.tensor([0, 1, 1])})
    >>> triples_of(graph, "kind", [2, 0]).tolist()
    [[2, 1, 0], [0, 0, 1]]
    """
    size = graph.num_edges
    if isinstance(edges, _All):
        edges = range(size)
    ids = as_ids(edges, "edges", size, "edge")
    src, dst = graph.find_edges(ids)
    if relation is None and len(graph.schema.relations) < 2:
        return torch.stack([src, dst], 1)
    if relation is None:
        kinds = graph.schema.relations_of(ids)
    else:
        column = torch.as_tensor(graph.edata[relation])[torch.from_numpy(ids)]
        kinds = as_ids(column, f"the edge column {relation!r}", LARGEST, "relation")
    return torch.stack([src, torch.from_numpy(kinds), dst], 1)


class RankedQueries(NamedTuple):
    """Answers of query i, ``answers[answer_ptr[i] : answer_ptr[i + 1]]``; known ones likewise."""

    answer_ptr: Ints
    answers: Ints
    known_ptr: Ints
    known: Ints


class RankPlan:
    """The distinct queries of links on one side, with their answers and known positives.

    ``columns`` has the column of every node among the candidates, -1 for none, which an answer must
    not have.
    """

    def __init__(self, links: Links, known: Links, side: str, columns: Ints) -> None:
        node, answer = links.ends(side)
        if (i := first_true(columns[answer] < 0)) is not None:
            raise ValueError(
                f"triples[{i}] has the {side} {answer[i]}, which is not among the candidates; add "
                "it to candidates, or leave the triple out"
            )
        self.queries = Queries(node, links.relation, len(columns))
        self._known_ptr, self._known = self.queries.answers(known, side, columns)
        self._answer_ptr = pointers(self.queries.number, len(self.queries))
        # answers of a query lie together, so that a thread reads its scores once
        self._link = np.argsort(self.queries.number, kind="stable")
        self._answers = columns[answer[self._link]]

    def links_of(self, first: int, last: int) -> Ints:
        """Return the link number of every answer to the queries ``first`` to ``last - 1``."""
        return self._link[self._answer_ptr[first] : self._answer_ptr[last]]

    def part(self, first: int, last: int) -> RankedQueries:
        """Return the queries ``first`` to ``last - 1``."""
        answers = rows_between(self._answer_ptr, self._answers, first, last)
        known = rows_between(self._known_ptr, self._known, first, last)
        return RankedQueries(*answers, *known)


def count_above(scores: Tensor, part: RankedQueries) -> tuple[Ints, Ints, int]:
    """Return two counts for each answer, higher and equal scores, and the first query with a NaN.

    Scores are ``[queries, candidates]``. Known positives count in neither, the answer itself in the
    second; -1 where no query has a NaN.
    """
    # on a GPU the copy of all scores would take longer than the counting
    if scores.device.type != "cpu":
        return with_torch(scores, part)
    # float32 holds every float16 and bfloat16 exactly, so comparisons stay exact
    kind = torch.promote_types(scores.dtype, torch.float32)
    return compiled(scores.to(kind).contiguous(), part)


def compiled(scores: Tensor, part: RankedQueries) -> tuple[Ints, Ints, int]:
    """Count by a compiled loop, on the threads that torch has."""
    above = np.empty(part.answers.size, np.int64)
    equal = np.empty(part.answers.size, np.int64)
    flat = scores.flatten().numpy()
    width = scores.shape[1]
    # a query of many answers takes longer, so pieces are cut by answers and not by queries
    work = part.answer_ptr * width // _PIECE  # pieces of about equal work
    starts = np.unique(work, return_index=True)[1]
    cuts = np.unique(np.append(starts, scores.shape[0]))
    bad: list[int] = []

    def run(i: int) -> None:
        wrong = kernels.ranks.count_above(
            flat, width, *part, above, equal, int(cuts[i]), int(cuts[i + 1])
        )
        if wrong >= 0:
            bad.append(wrong)

    run_all(run, cuts.size - 1)
    return above, equal, min(bad, default=-1)


def with_torch(scores: Tensor, part: RankedQueries) -> tuple[Ints, Ints, int]:
    """Count with torch operations, on any device."""
    device = scores.device
    answers = torch.from_numpy(part.answers).to(device)
    query_of_answer = entry_rows(part.answer_ptr).to(device)
    has_nan = scores.isnan().any(1)
    # NaN is neither above nor equal to anything, so known positives count nowhere
    counted = scores.clone()
    known = torch.from_numpy(part.known).to(device)
    counted[entry_rows(part.known_ptr).to(device), known] = nan
    above = torch.empty_like(answers)
    equal = torch.empty_like(answers)
    # as many answers at a time as there are queries: temporaries are then no larger than the scores
    for first in range(0, len(answers), max(len(scores), 1)):
        piece = slice(first, first + len(scores))
        rows = query_of_answer[piece]
        bound = scores[rows, answers[piece]].unsqueeze(1)
        # the answer itself counts, known or not
        values = counted[rows].scatter_(1, answers[piece, None], bound)
        above[piece] = (values > bound).sum(1)
        equal[piece] = (values == bound).sum(1)
    query_of_nan = -1
    if has_nan.any():
        query_of_nan = int(has_nan.byte().argmax())
    return above.cpu().numpy(), equal.cpu().numpy(), query_of_nan


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
        kind = ""
        if queries.relation is not None:
            kind = f" with relation {queries.relation[i]}"
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
    last = values[:, -1:]
    tied = ((scores >= last).sum(1) > kept) & (last[:, 0] > -torch.inf)
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
