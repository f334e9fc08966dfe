"""The result of a set of checks: a table that says what ran, how sharp it was, what was skipped and
why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcome:
    """The result of one check.

    Attributes:
        name: name of the check.
        status: "passed", "failed" or "skipped"; "expected" for a failure that ``expect_fail``
            names.
        least_bias: the smallest bias that a statistical check would see, in the weight of an edge
            (0.1: a tenth of it); None for other checks.
        note: why it was skipped or expected to fail; the message of a failure, with the smallest
            case that fails and the lines that show it again.

    >>> from nodeflow import Graph, NeighborSampler
    >>> from nodeflow.testing import check_sampler
    >>> report = check_sampler(NeighborSampler(Graph.from_edges([0, 1], [1, 0]), [1]), [0], checks=["structure"])
    >>> report.outcomes[0].name, report.outcomes[0].status
    ('structure', 'passed')
    """

    name: str
    status: str
    least_bias: float | None = None
    note: str = ""

    def __repr__(self) -> str:
        return f"{self.name}: {self.status}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """The outcomes of all checks of one sampler or layer, in the order in which they ran; it prints
    as a table.

    ``note`` is the last line: that weights were not checked, and why. It is empty where they were.
    The same checks of the same sampler print the same table, on any machine.

    >>> from nodeflow import FullSampler, Graph
    >>> from nodeflow.testing import check_sampler
    >>> report = check_sampler(FullSampler(Graph.from_edges([0, 1], [1, 2]), 1), [2], checks=["structure", "future"])
    >>> report.passed, report.skipped
    (['structure'], ['future'])
    >>> report.note
    "weights were not checked: 'marginals' is not among the checks that ran"
    """

    subject: str
    outcomes: tuple[Outcome, ...]
    note: str = ""

    @property
    def passed(self) -> list[str]:
        """Names of the checks that passed."""
        return self._named("passed")

    @property
    def failed(self) -> list[str]:
        """Names of the checks that failed, except those that were expected to."""
        return self._named("failed")

    @property
    def skipped(self) -> list[str]:
        """Names of the checks that did not run; ``outcomes`` have the reasons."""
        return self._named("skipped")

    def _named(self, status: str) -> list[str]:
        return [outcome.name for outcome in self.outcomes if outcome.status == status]

    def __repr__(self) -> str:
        counts = Counter(outcome.status for outcome in self.outcomes)
        words = [f"{counts[status]} {status}" for status in _STATUSES if counts[status]]
        rows = [("check", "result", "least bias", "")]
        for outcome in self.outcomes:
            bias = ""
            if outcome.least_bias is not None:
                bias = f"{outcome.least_bias:.2g}"
            note = outcome.note.partition("\n")[0]
            rows.append((outcome.name, outcome.status, bias, note))
        names, statuses, biases, _ = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [self.subject, ", ".join(words) or "no check ran"]
        for name, status, bias, note in rows:
            lines.append(f"{name:{names}}  {status:{statuses}}  {bias:>{biases}}  {note}".rstrip())
        return "\n".join([*lines, self.note]).rstrip()


_STATUSES = ("passed", "failed", "expected", "skipped")


class CheckError(AssertionError):
    """The error with all failures of a ``Report``, which is in ``report``.

    >>> issubclass(CheckError, AssertionError)
    True
    """

    __module__ = "nodeflow.testing"  # as messages of uncaught errors name it

    def __init__(self, report: Report, text: str) -> None:
        super().__init__(text)
        self.report = report
