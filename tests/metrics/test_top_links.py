"""The best answers of queries against all scores in order, one query at a time, and what
``top_links`` refuses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st

from nodeflow import metrics, nn


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.integers(1, 30))
    relations = draw(st.integers(0, 3))
    ends = st.integers(0, nodes - 1)
    kinds = st.integers(0, max(relations - 1, 0))
    # few different scores, so many ties, and sums that are exact in any order
    whole = st.integers(-1, 1)
    rows = st.lists(whole, min_size=2, max_size=2)
    return {
        "table": torch.tensor(
            draw(st.lists(rows, min_size=nodes, max_size=nodes)), dtype=torch.float32
        ),
        "weight": torch.tensor(
            draw(st.lists(rows, min_size=max(relations, 1), max_size=max(relations, 1)))
        ).float(),
        "relations": relations,
        "queries": draw(st.lists(st.tuples(ends, kinds), max_size=8)),
        "known": draw(st.lists(st.tuples(ends, kinds, ends), max_size=40)),
        "candidates": draw(st.none() | st.lists(ends, max_size=nodes)),
        "k": draw(st.integers(1, 35)),
        "side": draw(st.sampled_from(["destination", "source"])),
    }


def decoder_of(case: dict[str, Any]) -> nn.ComplEx:
    """A directed decoder, whose relations are those of the case."""
    decoder = nn.ComplEx(2, case["relations"] or None)
    decoder.relation.data[:] = case["weight"]
    return decoder


def in_order(case: dict[str, Any], node: int, kind: int) -> list[tuple[float, int]]:
    """All (score, answer) of a query, best first, from a score for each pair of its own."""
    decoder = decoder_of(case)
    table = case["table"]
    side = case["side"]
    known = {(s, r if case["relations"] else kind, d) for s, r, d in case["known"]}
    found = []
    for other in range(len(table)) if case["candidates"] is None else set(case["candidates"]):
        src, dst = (node, other) if side == "destination" else (other, node)
        if (src, kind, dst) not in known:
            rel = kind if case["relations"] else None
            found.append(
                (float(decoder(table[src : src + 1], table[dst : dst + 1], rel).detach()), other)
            )
    return sorted(found, key=lambda one: (-one[0], one[1]))


def ask(case: dict[str, Any], **options: Any) -> metrics.TopLinks:
    known = torch.tensor(case["known"], dtype=torch.int64).reshape(-1, 3)
    relation = [kind for _, kind in case["queries"]]
    return metrics.top_links(
        decoder_of(case), case["table"], [node for node, _ in case["queries"]], case["k"], side=case["side"],
        relation=relation if case["relations"] else None, candidates=case["candidates"],
        known=known if case["relations"] else known[:, [0, 2]], **options,
    )  # fmt: skip


@examples(80)
@given(cases(), st.sampled_from([1, 100, "64 MB"]))
def test_answers_are_the_highest_of_all_scores(case, memory):
    """With ties, repeated queries, fewer candidates than answers, and chunks of any size."""
    ids, scores = ask(case, memory=memory)
    assert ids.dtype == torch.int64
    assert ids.shape == scores.shape == (len(case["queries"]), case["k"])
    for i, (node, kind) in enumerate(case["queries"]):
        wanted = in_order(case, node, kind)[: case["k"]]
        gap = case["k"] - len(wanted)
        assert ids[i].tolist() == [answer for _, answer in wanted] + [-1] * gap
        assert scores[i].tolist() == [score for score, _ in wanted] + [-math.inf] * gap


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("width", [3, 40, 3_000])
def test_of_equal_scores_the_lower_id_comes_first(dtype, width):
    scores = torch.randint(4, (5, width), generator=torch.Generator().manual_seed(width)).to(dtype)
    found = metrics.top_links(lambda rows, *_, side: scores[rows[:, 0].long()], torch.arange(width)[:, None].float(),
                              [0, 2, 1], k=7)  # fmt: skip
    order = np.lexsort([np.tile(np.arange(width), (3, 1)), -scores[[0, 2, 1]].double().numpy()])[
        :, :7
    ]
    assert found.ids[:, : order.shape[1]].tolist() == order.tolist()
    assert found.scores.dtype == dtype


def test_an_answer_has_a_score_above_minus_infinity():
    scores = torch.tensor([[-math.inf, 1.0, -math.inf, 0.0]])
    found = metrics.top_links(lambda *_, side: scores, torch.zeros(4, 1), [2], k=3, known=[[2, 1]])
    assert found.ids.tolist() == [[3, -1, -1]]
    # the scorer's own, which stay as they are
    assert scores.tolist() == [[-math.inf, 1.0, -math.inf, 0.0]]


def test_one_relation_for_all_and_the_mode_of_a_module():
    decoder = nn.MLPDecoder(4, num_relations=3, dropout=0.9).train()
    table = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    found = metrics.top_links(decoder, table, [1, 5], k=4, relation=2, memory="1 KB")
    each = metrics.top_links(
        decoder, table, np.array([1, 5]), k=4, relation=torch.tensor([2, 2]), progress=True
    )
    assert torch.equal(found.ids, each.ids)
    assert decoder.training
    assert not found.scores.requires_grad


def test_no_queries_and_no_candidates():
    table = torch.zeros(4, 2, dtype=torch.float64)
    none = metrics.top_links(nn.DotProduct(2), table, [], k=3)
    assert none.ids.shape == none.scores.shape == (0, 3)
    assert none.scores.dtype == torch.float64
    assert metrics.top_links(nn.DotProduct(2), table, [1], k=2, candidates=[]).ids.tolist() == [
        [-1, -1]
    ]
