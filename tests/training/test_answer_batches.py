"""Batches of queries and their answers: what is in them, and the loss over all nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_links import LINKS, wheel
from torch import Tensor

from nodeflow.nn import ComplEx
from nodeflow.training import Trainer
from nodeflow.training._answers import Answers


@pytest.mark.parametrize("relations", [1, 3])
def test_answers_are_all_of_a_query_and_every_query_is_there_once(relations):
    triples = Trainer(wheel(), LINKS).task.triples["train"].clone()
    triples[:, 1] %= relations  # with one relation most queries have several answers
    batches = Answers(wheel().graph, triples, 13, 5)
    found = set()
    queries = 0
    for batch in batches:
        queries += len(batch.node)
        for query, answer in zip(batch.query.tolist(), batch.answer.tolist(), strict=True):
            given = int(batch.node[query])
            relation = int(batch.relation[query])
            side = int(batch.side[query])
            found.add((side, given, relation, answer))
    wanted = {(0, s, r, o) for s, r, o in triples.tolist()} | {
        (1, o, r, s) for s, r, o in triples.tolist()
    }
    assert found == wanted
    assert queries == len({(side, given, relation) for side, given, relation, _ in wanted})
    weights = np.concatenate([batch.weight for batch in batches])
    assert weights.sum() == len(wanted)
    assert sum(batch.total for batch in batches) == len(wanted)
    single = next(iter(Answers(wheel().graph, triples, 1, 5)))  # with queries of one side
    loss = single.loss(ComplEx(4, 3), torch.ones(60, 4), 0.0, 0.0)
    assert 0 < loss.item() < 100
    batches.set_epoch(3)
    first = [batch.node.tolist() for batch in batches]
    batches.set_epoch(3)
    batches.load_state_dict({**batches.state_dict(), "batch_number": 2})
    assert [batch.node.tolist() for batch in batches] == first[2:]
    batches.set_epoch(4)
    assert [batch.node.tolist() for batch in batches] != first


@pytest.mark.parametrize(("by_answer", "wanted"), [(True, [7, 16, 16]), (False, [39])])
def test_answers_of_a_query_of_many_are_in_several_batches(by_answer, wanted):
    hub = torch.stack(
        [
            torch.zeros(39, dtype=torch.int64),
            torch.ones(39, dtype=torch.int64),
            torch.arange(1, 40),
        ],
        1,
    )
    # another relation, as many answers as one batch takes
    few = torch.tensor([[0, 0, leaf] for leaf in range(1, 17)])
    batches = list(Answers(wheel().graph, torch.cat([few, hub]), 1, 5, by_answer=by_answer))
    parts = [batch.answer.tolist() for batch in batches if batch.side == 0 and batch.relation == 1]
    assert sorted(len(part) for part in parts) == wanted
    assert sorted(answer for part in parts for answer in part) == list(range(1, 40))
    assert sum(bool(batch.side == 0 and batch.relation == 0) for batch in batches) == 1


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("by_answer", [True, False])
def test_losses_over_all_nodes_are_means_of_triples_or_of_queries(by_answer, ranks):
    """Lacroix et al. 2018 have a softmax per triple and side; Dettmers et al. 2018 a row per query
    and its answers.
    """
    torch.manual_seed(3)
    triples = Trainer(wheel(), LINKS).task.triples["train"].clone()
    triples[:, 1] %= 2
    hub = torch.stack(
        [torch.full((40,), 7), torch.ones(40, dtype=torch.int64), torch.arange(20, 60)], 1
    )
    triples = torch.cat([triples, hub]).unique(dim=0)
    decoder = ComplEx(4, 2).double()
    table = torch.randn(60, 4).double()
    graph = wheel().graph
    batches = [
        next(iter(Answers(graph, triples, 1000, 5, rank, ranks, by_answer=by_answer)))
        for rank in range(ranks)
    ]
    loss = sum(batch.loss(decoder, table, 0.1, 0.2) for batch in batches) / ranks
    own: dict[tuple[str, int, int], list[Tensor]] = {}
    for s, r, o in triples.tolist():
        for side, given, true in (("destination", s, o), ("source", o, s)):
            scores = decoder.score_all(table[[given]], torch.tensor([r]), table, side=side)[0]
            one = scores.logsumexp(0) - 0.9 * scores[true] - 0.1 * scores.mean()
            own.setdefault((side, r, given), []).append(one)
    means = [
        one for each in own.values() for one in (each if by_answer else [torch.stack(each).mean()])
    ]
    assert len(own) < 2 * len(triples)
    src = table[triples[:, 0]]
    relation = triples[:, 1]
    dst = table[triples[:, 2]]
    cubes = (
        decoder.n3(src, relation, dst, side="destination").mean() / 2
        + decoder.n3(dst, relation, src, side="source").mean() / 2
    )
    torch.testing.assert_close(loss, torch.stack(means).mean() + 0.2 * cubes)
