"""Batches of queries with all their answers, for a loss over all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_count
from nodeflow._base.types import Array
from nodeflow.graph import Graph
from nodeflow.metrics._triples import SIDES
from nodeflow.nn import Decoder, DistMult, one_vs_all_loss
from nodeflow.random import Random, derive_key

_ORDER = 0x616E7377657273  # makes the order of queries independent of other draws with the same seed


class AnswerBatch(NamedTuple):
    """Queries (node, relation), and which nodes are answers.

    Args:
        graph: the parent graph.
        side: for every query 0 where destinations are asked for, 1 where sources are, ``[n]``.
        node: the nodes that are given, int64 ``[n]``.
        relation: relations, int64 ``[n]``; None without.
        query, answer: the answers: number of a query of the batch, and a node, int64 ``[a]`` each.
    """

    graph: Graph
    side: Tensor
    node: Tensor
    relation: Tensor | None
    query: Tensor
    answer: Tensor

    def loss(self, decoder: Decoder, table: Tensor, label_smoothing: float) -> Tensor:
        """Return the mean over the queries of a softmax over all nodes against the answers, a scalar."""
        total = table.new_zeros(())
        for number, side in enumerate(SIDES):
            asked = (self.side == number).nonzero().flatten()
            if not len(asked):
                continue
            relation = None if self.relation is None else self.relation[asked].to(table.device)
            scores = decoder.score_all(table[self.node[asked].to(table.device)], relation, table, side=side)
            place = torch.full_like(self.node, -1)
            place[asked] = torch.arange(len(asked))
            mine = place[self.query] >= 0
            answers = place[self.query[mine]].to(table.device), self.answer[mine].to(table.device)
            total = total + one_vs_all_loss(scores, answers, label_smoothing=label_smoothing, reduction="sum")
        return total / len(self.node)

    def n3(self, decoder: DistMult, table: Tensor) -> Tensor:
        """Return the mean of the cubed norms over the answers, a scalar."""
        total = table.new_zeros(())
        for number, side in enumerate(SIDES):
            mine = self.side[self.query] == number
            query, rows = self.query[mine], table[self.answer[mine].to(table.device)]
            relation = None if self.relation is None else self.relation[query].to(table.device)
            given = table[self.node[query].to(table.device)]
            total = total + decoder.n3(given, relation, rows, side=side).sum()  # the same for either order of the ends
        return total / len(self.query)


class Answers:
    """Batches of the queries of triples, each with all its answers; every iteration is one epoch in a new order.

    Args:
        graph: the parent graph.
        triples: ``[n, 3]`` of (source, relation, destination), or ``[n, 2]``.
        batch_size: queries per batch.
        seed: of the order.
    """

    def __init__(self, graph: Graph, triples: Tensor, batch_size: int, seed: int) -> None:
        self.graph, self.batch_size, self.seed = graph, batch_size, seed
        rows = triples.numpy()
        relation = rows[:, 1] if rows.shape[1] == 3 else np.zeros(len(rows), np.int64)
        given = np.concatenate([rows[:, 0], rows[:, -1]])
        asked = np.concatenate([rows[:, -1], rows[:, 0]])
        keys = np.stack([np.repeat([0, 1], len(rows)), np.tile(relation, 2), given])
        order = np.lexsort(np.concatenate([asked[None], keys[::-1]]))
        keys, asked = keys[:, order], asked[order]
        new = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(0)])
        self._first = np.append(np.flatnonzero(new), len(asked))
        self._side, kinds, self._node = keys[:, new]
        self._relation = kinds if rows.shape[1] == 3 else None
        self._answer = asked
        self._epoch, self._next = 0, 0

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        return -(-len(self._node) // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch ``epoch``, from its first batch."""
        self._epoch, self._next = as_count(epoch, "epoch"), 0

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch and the number of the next batch."""
        return {"epoch": self._epoch, "batch_number": self._next}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where ``state`` was taken."""
        self._epoch, self._next = state["epoch"], state["batch_number"]

    def __iter__(self) -> Iterator[AnswerBatch]:
        order = Random(derive_key(_ORDER, self.seed, self._epoch)).permutation(len(self._node)).numpy()
        for start in range(self._next * self.batch_size, len(order), self.batch_size):
            self._next += 1
            yield self._batch(order[start : start + self.batch_size])

    def _batch(self, chosen: Array) -> AnswerBatch:
        counts = np.diff(self._first)[chosen]
        query = np.repeat(np.arange(len(chosen)), counts)
        within = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        answer = self._answer[self._first[chosen][query] + within]
        side, node = torch.from_numpy(self._side[chosen]), torch.from_numpy(self._node[chosen])
        relation = None if self._relation is None else torch.from_numpy(self._relation[chosen])
        return AnswerBatch(self.graph, side, node, relation, torch.from_numpy(query), torch.from_numpy(answer))
