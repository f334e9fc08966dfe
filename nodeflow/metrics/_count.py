"""How many candidates score above an answer, and how many score the same: compiled on a CPU, else with torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._runtime.threads import run_all
from nodeflow.metrics._triples import Queries

_PIECE = 2**18
"""About as many comparisons are one piece of work of a thread."""


class Part(NamedTuple):
    """Consecutive queries, their answers and known positives numbered from their own first ones."""

    answer_ptr: Ints
    answers: Ints
    known_ptr: Ints
    known: Ints

    @classmethod
    def of(cls, queries: Queries, first: int, last: int) -> Part:
        """The queries ``first`` to ``last - 1``."""
        answer_ptr, known_ptr = queries.answer_ptr[first : last + 1], queries.known_ptr[first : last + 1]
        answers = queries.answers[answer_ptr[0] : answer_ptr[-1]]
        known = queries.known[known_ptr[0] : known_ptr[-1]]
        return cls(answer_ptr - answer_ptr[0], answers, known_ptr - known_ptr[0], known)


def count_above(scores: Tensor, part: Part) -> tuple[Ints, Ints, int]:
    """Return ``(above, equal, bad)`` for scores ``[queries, candidates]``: two counts for each answer of the part.

    Known positives count in neither, the answer itself in ``equal``. ``bad`` is the first query with a NaN, or -1.
    """
    if scores.device.type != "cpu":
        return with_torch(scores, part)
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
    """Count by torch's operations, as many answers at a time as there are queries."""
    wrong = scores.isnan().any(1).nonzero().flatten()
    hidden = torch.zeros_like(scores, dtype=torch.bool)
    queries = np.arange(scores.shape[0])

    def moved(array: Ints) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(scores.device)

    hidden[moved(np.repeat(queries, np.diff(part.known_ptr))), moved(part.known)] = True
    of_answer, columns = moved(np.repeat(queries, np.diff(part.answer_ptr))), moved(part.answers)
    above, equal = torch.empty_like(columns), torch.empty_like(columns)
    for first in range(0, len(columns), max(len(scores), 1)):
        rows, own = of_answer[first : first + len(scores)], columns[first : first + len(scores), None]
        values, seen = scores[rows], ~hidden[rows]
        seen.scatter_(1, own, True)
        bound = values.gather(1, own)
        above[first : first + len(scores)] = ((values > bound) & seen).sum(1)
        equal[first : first + len(scores)] = ((values == bound) & seen).sum(1)
    return above.cpu().numpy(), equal.cpu().numpy(), int(wrong[0]) if len(wrong) else -1
