"""Counts of candidates that score above an answer, or the same: compiled on a CPU, else with torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, first_true
from nodeflow._links.links import Links, Queries, pointers
from nodeflow._runtime.threads import run_all

_PIECE = 2**18
"""Approximate number of comparisons in one piece of work of a thread."""


class Part(NamedTuple):
    """Queries, whose answers are ``answers[answer_ptr[i] : answer_ptr[i + 1]]``, and known ones, by candidate."""

    answer_ptr: Ints
    answers: Ints
    known_ptr: Ints
    known: Ints


class Plan:
    """Every distinct query of links on one side, with its answers, the ends of that side, and its known positives.

    ``columns`` has the column of every node among the candidates, -1 for none, which an answer must not have.
    """

    def __init__(self, links: Links, known: Links, side: str, columns: Ints) -> None:
        node, answer = links.ends(side)
        if (i := first_true(columns[answer] < 0)) is not None:
            raise ValueError(
                f"triples[{i}] has the {side} {answer[i]}, which is not among the candidates; add it to candidates, or "
                "leave the triple out"
            )
        self.queries = Queries(node, links.relation, len(columns))
        self._known_ptr, self._known = self.queries.answers(known, side, columns)
        self._answer_ptr = pointers(self.queries.number, len(self.queries))
        self._link = np.argsort(self.queries.number, kind="stable")
        self._answers = columns[answer[self._link]]

    def links_of(self, first: int, last: int) -> Ints:
        """Return the link number of every answer to the queries ``first`` to ``last - 1``."""
        return self._link[self._answer_ptr[first] : self._answer_ptr[last]]

    def part(self, first: int, last: int) -> Part:
        """Return the queries ``first`` to ``last - 1``."""
        answer_ptr, known_ptr = self._answer_ptr[first : last + 1], self._known_ptr[first : last + 1]
        answers, known = self._answers[answer_ptr[0] : answer_ptr[-1]], self._known[known_ptr[0] : known_ptr[-1]]
        return Part(answer_ptr - answer_ptr[0], answers, known_ptr - known_ptr[0], known)


def count_above(scores: Tensor, part: Part) -> tuple[Ints, Ints, int]:
    """Return ``(above, equal, bad)`` for scores ``[queries, candidates]``: two counts for each answer of the part.

    Known positives count in neither, the answer itself in ``equal``. ``bad`` is the first query with a NaN, or -1.
    """
    if scores.device.type != "cpu":
        return with_torch(scores, part)
    # float32 holds every float16 and bfloat16 exactly, so comparisons stay exact
    kind = torch.float64 if scores.dtype == torch.float64 else torch.float32
    return compiled(scores.to(kind).contiguous(), part)


def compiled(scores: Tensor, part: Part) -> tuple[Ints, Ints, int]:
    """Count by a compiled loop, on the threads that torch has."""
    above, equal = np.empty(part.answers.size, np.int64), np.empty(part.answers.size, np.int64)
    flat, width = scores.flatten().numpy(), scores.shape[1]
    work = part.answer_ptr * width // _PIECE  # pieces of about equal work
    cuts = np.append(np.unique(work, return_index=True)[1], scores.shape[0])
    cuts = np.unique(cuts)
    bad: list[int] = []

    def run(i: int) -> None:
        wrong = kernels.ranks.count_above(flat, width, *part, above, equal, int(cuts[i]), int(cuts[i + 1]))
        if wrong >= 0:
            bad.append(wrong)

    run_all(run, cuts.size - 1)
    return above, equal, min(bad, default=-1)


def with_torch(scores: Tensor, part: Part) -> tuple[Ints, Ints, int]:
    """Count with torch operations, on any device."""
    wrong = scores.isnan().any(1).nonzero().flatten()
    hidden = torch.zeros_like(scores, dtype=torch.bool)
    queries = np.arange(scores.shape[0])

    def moved(array: Ints) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(scores.device)

    hidden[moved(np.repeat(queries, np.diff(part.known_ptr))), moved(part.known)] = True
    of_answer, columns = moved(np.repeat(queries, np.diff(part.answer_ptr))), moved(part.answers)
    above, equal = torch.empty_like(columns), torch.empty_like(columns)
    # as many answers at a time as there are queries: temporaries are then no larger than the scores
    for first in range(0, len(columns), max(len(scores), 1)):
        rows, own = of_answer[first : first + len(scores)], columns[first : first + len(scores), None]
        values, seen = scores[rows], ~hidden[rows]
        seen.scatter_(1, own, True)
        bound = values.gather(1, own)
        above[first : first + len(scores)] = ((values > bound) & seen).sum(1)
        equal[first : first + len(scores)] = ((values == bound) & seen).sum(1)
    return above.cpu().numpy(), equal.cpu().numpy(), int(wrong[0]) if len(wrong) else -1
