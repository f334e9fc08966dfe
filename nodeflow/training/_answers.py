"""Batches of queries with all their answers, for a loss over all nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nodeflow import _kernels as kernels
from nodeflow._core.base.types import Array
from nodeflow._core.links import SIDES
from nodeflow._core.random import Random, derive_key
from nodeflow.graph import Graph
from nodeflow.loader import Epochs
from nodeflow.nn import one_vs_all_loss

MOST_ANSWERS = 16
"""Answers of a query in one batch, where the loss is a mean over answers.

The loss of a batch is a mean over its answers, so if one query had thousands of them there, each
would weigh less than the answers in other batches, and after one gradient so large Adagrad takes
small steps. A query with more is several.
"""


class AnswerBatch(NamedTuple):
    """Queries (node, relation) of a graph, and which nodes are answers.

    ``side`` is 0 for a query that asks for destinations, 1 for sources, ``node`` its known end,
    ``[n]`` each as ``relation`` is. Every answer is the number of a query of the batch and a node,
    int64 ``[a]`` each. ``weight`` is that of each query in the loss, float32 ``[n]``; ``total`` is
    the sum of the weights, and ``num_answers`` the number of answers, both as a mean per process of
    this step.
    """

    graph: Graph
    side: Tensor
    node: Tensor
    relation: Tensor | None
    query: Tensor
    answer: Tensor
    weight: Tensor
    total: float
    num_answers: float

    def loss(self, decoder: Any, table: Tensor, label_smoothing: float, n3: float) -> Tensor:
        """Return the weighted mean of a softmax loss over all nodes, plus ``n3`` cubed norms, a
        mean over answers.

        The mean of this loss over the processes is the loss of the step.
        """
        device = table.device
        loss = cubes = table[:0].sum()
        # one look-up of all rows: each has a gradient as large as the table
        rows = F.embedding(torch.cat([self.node, self.answer]).to(device), table)
        nodes, answers = rows.split([len(self.node), len(self.answer)])
        for number, side in enumerate(SIDES):
            queries = (self.side == number).nonzero().flatten()
            if not len(queries):
                continue
            # the number of each query among those of this side, -1 for the others
            place = torch.full_like(self.node, -1)
            place[queries] = torch.arange(len(queries))
            of_side = (place[self.query] >= 0).nonzero().flatten()
            query = place[self.query[of_side]].to(device)
            relation = None
            if self.relation is not None:
                relation = self.relation[queries].to(device)
            query_rows = nodes[queries.to(device)]
            loss = loss + one_vs_all_loss(
                decoder.score_all(query_rows, relation, table, side=side),
                (query, self.answer[of_side].to(device)),
                label_smoothing=label_smoothing,
                weight=self.weight[queries].to(device),
                reduction="sum",
            )
            if n3:
                kinds = None
                if relation is not None:
                    kinds = relation[query]
                answer_rows = answers[of_side.to(device)]
                norms = decoder.n3(query_rows[query], kinds, answer_rows, side=side)
                cubes = cubes + norms.sum()
        return loss / self.total + n3 * (cubes / self.num_answers)


class Answers(Epochs):
    """Batches of the queries of triples with their answers; every iteration is one epoch in a new
    order.

    Triples are ``[n, 3]`` of (source, relation, destination), or ``[n, 2]``. ``batch_size`` counts
    the queries of a process; ``rank`` and ``size`` are the number of this process, and of those
    that share each step. ``by_answer``: a query weighs as much in the loss as it has answers, so
    the loss is a mean over triples and sides, and a query of more than ``MOST_ANSWERS`` is several,
    with a part of the answers each. Else every query weighs 1, with all of them.
    """

    def __init__(
        self,
        graph: Graph,
        triples: Tensor,
        batch_size: int,
        seed: int,
        rank: int = 0,
        size: int = 1,
        *,
        by_answer: bool = True,
    ) -> None:
        super().__init__()
        self.graph = graph
        self.batch_size = batch_size * size
        self.seed = seed
        self._rank = rank
        self._size = size
        self.by_answer = by_answer
        rows = triples.numpy()
        has_relations = rows.shape[1] == 3
        relation = rows[:, 1] if has_relations else np.zeros(len(rows), np.int64)
        node = np.concatenate([rows[:, 0], rows[:, -1]])
        answer = np.concatenate([rows[:, -1], rows[:, 0]])
        # sorted by query, so that the answers of a query are contiguous and a batch needs no
        # look-up
        keys = np.stack([np.repeat([0, 1], len(rows)), np.tile(relation, 2), node])
        order = np.lexsort([answer, *keys[::-1]])
        keys = keys[:, order]
        first_of_query = np.ones(len(answer), np.bool_)
        first_of_query[1:] = (keys[:, 1:] != keys[:, :-1]).any(0)
        if by_answer:
            position = np.arange(len(answer))
            begin = np.maximum.accumulate(np.where(first_of_query, position, 0))
            first_of_query |= (position - begin) % MOST_ANSWERS == 0
        self._first = np.append(np.flatnonzero(first_of_query), len(answer))
        self._side, kinds, self._node = torch.from_numpy(keys[:, first_of_query])
        self._relation = kinds if has_relations else None
        self._answer = torch.from_numpy(answer[order])

    # the last batch may be smaller, so the quotient is rounded up
    def num_batches(self, epoch: int = 0) -> int:
        return -(-len(self._node) // self.batch_size)

    def __iter__(self) -> Iterator[AnswerBatch]:
        progress = self.begin()
        size = self.batch_size
        random = Random(derive_key("answers", self.seed, progress.epoch))
        order = random.permutation(len(self._node)).numpy()
        for number in range(progress.start, len(self)):
            self.reached(progress, number + 1)
            yield self._batch(order[number * size : (number + 1) * size])

    def _batch(self, step: Array) -> AnswerBatch:
        """Return this process's queries of a step, with their answers."""
        # processes share the queries of a step in order, so that any number of them make the same
        # step
        chosen = np.array_split(step, self._size)[self._rank]
        num_answers = float(np.diff(self._first)[step].sum() / self._size)
        indptr, places = kernels.csr.csr_rows(self._first, chosen)
        counts = torch.from_numpy(np.diff(indptr))
        # by answer, a query weighs as much as it has answers in this batch
        weight = counts.float()
        total = num_answers
        if not self.by_answer:
            weight = torch.ones(len(chosen))
            total = len(step) / self._size
        query = torch.arange(len(chosen))
        return AnswerBatch(
            self.graph,
            self._side[chosen],
            self._node[chosen],
            None if self._relation is None else self._relation[chosen],
            query.repeat_interleave(counts),
            self._answer[places],
            weight,
            total,
            num_answers,
        )
