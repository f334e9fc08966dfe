"""Ranks of links against their definition, and what the arguments of ``rank_links`` mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st
from torch import Tensor, nn

from nodeflow import Graph, metrics, nn as decoders
from nodeflow._core.links import as_links
from nodeflow.metrics._links import RankPlan, compiled, count_above, with_torch


def rank(scores: dict[int, float], answer: int, ties: str) -> float:
    """The rank of an answer among candidates with these scores, which contain it."""
    above = sum(score > scores[answer] for score in scores.values())
    same = sum(score == scores[answer] for v, score in scores.items() if v != answer)
    return {
        "optimistic": 1 + above,
        "pessimistic": 1 + above + same,
        "realistic": 1 + above + same / 2,
    }[ties]


def by_definition(
    score: Callable[[int, int, int], float],
    triples: list[tuple[int, int, int]],
    known: set[tuple[int, int, int]],
    candidates: dict[str, list[int]],
    ties: str,
) -> np.ndarray:
    """Ranks ``[n, 2]`` for destinations and sources, one triple and one candidate at a time.

    ``score`` is that of a source, a relation and a destination; known triples other than the ranked
    one are left out.
    """
    found = []
    for u, r, v in triples:
        dst = {
            w: score(u, r, w) for w in candidates["destination"] if w == v or (u, r, w) not in known
        }
        src = {w: score(w, r, v) for w in candidates["source"] if w == u or (w, r, v) not in known}
        found.append((rank(dst, v, ties), rank(src, u, ties)))
    return np.array(found, np.float64).reshape(-1, 2)


class Product(nn.Module):
    """score = sum over columns of source * weight of the relation * destination, as DistMult, in
    whole numbers.
    """

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.modes: list[bool] = []
        self.rows: list[int] = []

    def score_all(
        self, rows: Tensor, relation: Tensor | None, table: Tensor, *, side: str
    ) -> Tensor:
        self.modes.append(self.training)
        self.rows.append(len(rows))
        if side == "destination":  # not symmetric, so that a mistaken side shows
            rows = rows + 1
        else:
            table = table + 1
        return (rows if relation is None else rows * self.weight[relation]) @ table.T


def product(weight: Tensor, table: Tensor) -> Any:
    numbers = table.double().numpy()
    kinds = weight.double().numpy()
    return lambda u, r, v: float(((numbers[u] + 1) * kinds[r] * numbers[v]).sum())


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.integers(1, 40))
    relations = draw(st.integers(1, 3))
    ends = st.integers(0, nodes - 1)
    kinds = st.integers(0, relations - 1)
    triple = st.tuples(ends, kinds, ends)
    whole = st.integers(-1, 1)  # few different scores, so many ties
    table = draw(st.lists(st.lists(whole, min_size=2, max_size=2), min_size=nodes, max_size=nodes))
    weight = draw(
        st.lists(st.lists(whole, min_size=2, max_size=2), min_size=relations, max_size=relations)
    )
    return {
        "table": torch.tensor(table, dtype=draw(st.sampled_from([torch.float32, torch.float64]))),
        "weight": torch.tensor(weight),
        "triples": draw(st.lists(triple, max_size=12)),
        "known": draw(st.lists(triple, max_size=25)),
        "candidates": draw(st.lists(ends, max_size=nodes)),
        "filtered": draw(st.booleans()),
        "ties": draw(st.sampled_from(["realistic", "optimistic", "pessimistic"])),
        "memory": draw(st.sampled_from([1, 100, "64 MB"])),
    }


def rows_of(triples: list[tuple[int, int, int]]) -> Tensor:
    return torch.tensor(triples, dtype=torch.int64).reshape(-1, 3)


@examples(60)
@given(cases(), st.booleans())
def test_ranks_are_those_of_the_definition(case, some):
    """With ties, repeated triples, self-loops, known positives that are the answer, and empty
    lists.
    """
    table = case["table"]
    triples = case["triples"]
    nodes = len(case["table"])
    among = None
    wanted = {side: list(range(nodes)) for side in ("destination", "source")}
    if some:
        among = {
            "destination": case["candidates"] + [v for _, _, v in triples],
            "source": case["candidates"] + [u for u, _, _ in triples],
        }
        wanted = {side: sorted(set(ids)) for side, ids in among.items()}
    found = metrics.rank_links(
        Product(case["weight"].to(table.dtype)), table, rows_of(triples),
        known=[rows_of(case["known"][:5]), rows_of(case["known"][5:])] if case["filtered"] else None,
        candidates=among, ties=case["ties"], memory=case["memory"],
    )  # fmt: skip
    known = {*case["known"], *triples} if case["filtered"] else set()
    expected = by_definition(product(case["weight"], table), triples, known, wanted, case["ties"])
    np.testing.assert_array_equal(found.ranks.numpy(), expected)
    assert found.sides == ("destination", "source")


@examples(60)
@given(cases())
def test_torch_counts_what_the_loop_counts(case):
    triples = as_links(rows_of(case["triples"]), "triples", len(case["table"]))
    known = as_links(rows_of(case["known"]), "known", len(case["table"]))
    plan = RankPlan(triples, known, "destination", np.arange(len(case["table"])))
    part = plan.part(0, len(plan.queries))
    scores = case["table"][torch.from_numpy(plan.queries.node)] @ case["table"].T
    for ours, theirs in zip(compiled(scores, part), with_torch(scores, part), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_narrow_scores_are_compared_as_they_are(kind):
    scores = torch.tensor([[1.0, 2.0, 2.0, 3.0]], dtype=kind)
    found = metrics.rank_links(
        lambda *_, side: scores, torch.zeros(4, 1), [[0, 1]], sides="destination"
    )
    assert found.ranks.tolist() == [[2.5]]


def test_infinite_scores_have_a_rank():
    scores = torch.tensor([[-math.inf, 0.0, math.inf, -math.inf]])
    found = metrics.rank_links(
        lambda *_, side: scores, torch.zeros(4, 1), [[0, 0], [0, 2]], sides="destination"
    )
    assert found.ranks.tolist() == [[3.5], [1.0]]


def test_counts_stay_exact_over_many_candidates():
    width = 2**17 + 5  # more than one block of the loop, and a rest
    scores = torch.zeros(1, width)
    scores[0, 1:] = torch.arange(width - 1) % 3 - 1.0
    found = metrics.rank_links(
        lambda *_, side: scores, torch.zeros(width, 1), [[0, 0]], sides="destination"
    )
    above = int((scores > 0).sum())
    same = int((scores == 0).sum()) - 1
    assert found.ranks.item() == 1 + above + same / 2


def test_every_query_is_scored_once_and_in_chunks():
    model = Product(torch.ones(2, 2))
    triples = torch.tensor([[0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 0, 1]])
    metrics.rank_links(model, torch.ones(5, 2), triples, sides="destination")
    assert model.rows == [2]
    model.rows.clear()
    metrics.rank_links(model, torch.ones(5, 2), triples, memory=5 * 4)  # the scores of one query
    assert model.rows == [1, 1, 1, 1, 1]


def test_modules_compute_as_for_evaluation_and_without_gradients():
    model = Product(torch.ones(1, 2)).train()
    table = torch.ones(3, 2, requires_grad=True)
    metrics.rank_links(model, table, [[0, 0, 1]])
    assert model.modes == [False, False]
    assert model.training
    assert table.grad is None


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    "kind", ["DotProduct", "DistMult", "ComplEx", "Bilinear", "TransE", "RotatE", "MLPDecoder"]
)
def test_decoders_are_ranked_by_their_scores_of_triples(kind, inverse):
    random = torch.Generator().manual_seed(0)
    options = {} if kind == "DotProduct" else {"inverse": inverse}
    decoder = getattr(decoders, kind)(4, 3, **options).double()
    for weight in decoder.parameters():
        weight.data = torch.randn(weight.shape, generator=random, dtype=torch.float64)
    table = torch.randn(9, 4, generator=random, dtype=torch.float64)
    sizes = (9, 3, 9)
    rows = [
        (u, r, v)
        for u, r, v in zip(
            *(torch.randint(n, (20,), generator=random).tolist() for n in sizes), strict=True
        )
    ]
    found = metrics.rank_links(decoder, table, rows_of(rows), known=[])
    for i, side in enumerate(found.sides):
        score = partial(score_of, decoder, table, side)
        wanted = by_definition(
            score, rows, set(rows), {key: list(range(9)) for key in found.sides}, "realistic"
        )
        assert found.ranks[:, i].tolist() == wanted[:, i].tolist()


def score_of(decoder: decoders.Decoder, table: Tensor, side: str, u: int, r: int, v: int) -> float:
    with torch.no_grad():
        return decoder(table[u], table[v], torch.tensor(r), side=side).item()


def test_the_bar_counts_queries(capsys):
    metrics.rank_links(Product(torch.ones(1, 2)), torch.ones(3, 2), [[0, 0, 1]], progress=True)
    assert "ranks: " in capsys.readouterr().err


def test_triples_of_a_graph():
    graph = Graph.from_edges([2, 0, 1], [0, 1, 2], edata={"kind": torch.tensor([5, 0, 1])})
    assert metrics.triples_of(graph).tolist() == [[2, 0], [0, 1], [1, 2]]
    assert metrics.triples_of(graph, "kind").tolist() == [[2, 5, 0], [0, 0, 1], [1, 1, 2]]
    assert metrics.triples_of(graph, "kind", [2, 0]).tolist() == [[1, 1, 2], [2, 5, 0]]


def test_pairs_without_relations():
    scores = torch.tensor([[0.0, 3.0, 2.0], [9.0, 9.0, 9.0], [0.0, 1.0, 2.0]])
    found = metrics.rank_links(lambda rows, *_, side: scores[rows[:, 0].long()], torch.arange(3.0)[:, None], [[0, 2]],
                               known=[], sides="destination")  # fmt: skip
    assert found.ranks.tolist() == [[2.0]]
    assert found.relation is None


TABLE = torch.ones(4, 2)


@pytest.mark.parametrize("column", [0, 15, 16, 39])
@pytest.mark.parametrize("count", [compiled, with_torch, count_above])
def test_nan_has_no_rank(column, count):
    def scorer(rows: Tensor, *_: Any, side: str) -> Tensor:
        scores = torch.zeros(len(rows), 40)
        scores[1, column] = math.nan
        return scores

    with pytest.raises(
        ValueError,
        match=r"NaN among the candidates for the destination of triples\[0\], \(7, 0, 1\)",
    ):
        metrics.rank_links(scorer, torch.ones(40, 1), [[7, 0, 1], [2, 0, 1]])
    triples = as_links([[7, 0, 1], [2, 0, 1]], "triples", 40)
    part = RankPlan(triples, triples.at(np.arange(0)), "destination", np.arange(40)).part(0, 2)
    assert count(scorer(torch.ones(2), side=""), part)[2] == 1
