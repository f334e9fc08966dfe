"""Evaluation of link prediction: the rank of the true answer of every triple among all candidates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import ALL, LARGEST, _All, as_ids, check_one_of
from nodeflow._base.types import IdsLike
from nodeflow._links.links import SIDES, KnownLike, LinksLike, as_known, as_links, joined
from nodeflow.graph import Graph
from nodeflow.metrics._count import Plan, count_above
from nodeflow.metrics._ranks import TIES, Ranks
from nodeflow.metrics._scorer import Score, Scoring, as_candidates, not_a_number


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
    scoring = Scoring(scorer, table, memory, chunk_size)
    check_one_of(ties, "ties", TIES)
    check_one_of(sides, "sides", ("both", *SIDES))
    links = as_links(triples, "triples", len(table))
    hidden = as_known(known, len(table), links.relation is not None)
    if known is not None:
        hidden = joined([links, hidden], links.relation is not None)
    ranked = SIDES if sides == "both" else (sides,)
    among = {side: as_candidates(candidates, side, len(table)) for side in ranked}
    plans = {side: Plan(links, hidden, side, columns) for side, (_, columns) in among.items()}
    ranks = np.empty((links.src.size, len(ranked)))
    with scoring.running("ranks", sum(len(plan.queries) for plan in plans.values()), progress):
        for i, (side, plan) in enumerate(plans.items()):
            for first, last, scores in scoring.chunks(plan.queries, side, among[side][0]):
                above, equal, bad = count_above(scores, plan.part(first, last))
                if bad >= 0:
                    link = int(plan.links_of(first + bad, last)[0])
                    values = tuple(int(column[link]) for column in links if column is not None)
                    raise not_a_number(side, f"triples[{link}], {values}", "rank")
                ranks[plan.links_of(first, last), i] = 1 + above + TIES[ties] * (equal - 1)
    relation = None if links.relation is None else torch.from_numpy(links.relation)
    return Ranks(torch.from_numpy(ranks), ranked, relation, ties)


def triples_of(graph: Graph, relation: str | None = None, edges: IdsLike | _All = ALL) -> Tensor:
    """Return edges of a graph as triples (source, relation, destination), int64 ``[k, 3]``; pairs without a relation.

    Args:
        graph: the graph.
        relation: name of the edge column with a whole number per edge; None gives pairs (source, destination),
            ``[k, 2]``.
        edges: ids of edges, ``[k]``, in the order of the rows; all by default.

    Raises KeyError for a column that the graph has not, TypeError or ValueError for one that is not whole numbers,
    IndexError for an id that is no edge.

    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"kind": torch.tensor([0, 1, 1])})
    >>> triples_of(graph, "kind", [2, 0])
    tensor([[2, 1, 0],
            [0, 0, 1]])
    """
    src, dst = graph.edges() if isinstance(edges, _All) else graph.find_edges(edges)
    if relation is None:
        return torch.stack([src, dst], 1)
    column = torch.as_tensor(graph.edata[relation])
    if not isinstance(edges, _All):
        column = column[torch.from_numpy(as_ids(edges, "edges", graph.num_edges, "edge"))]
    kinds = as_ids(column, f"the edge column {relation!r}", LARGEST, "relation")
    return torch.stack([src, torch.from_numpy(kinds), dst], 1)
