"""Running checks on cases: what failed is shrunk, what was expected to fail must fail, all failures
come at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar

from nodeflow._base.checks import as_count, check_one_of
from nodeflow.graph import Graph
from nodeflow.testing._report import CheckError, Outcome, Report
from nodeflow.testing._shrink import Parts, shrink

TRIALS = 100
"""Smaller graphs that are tried for a check that fails: most faults need fewer than 50, those of
pairs about 100.
"""
FALSE_ALARM = 1e-6
"""The probability that the statistical checks of one call fail on a sampler without a bias, all
together.
"""


class Skipped(Exception):  # noqa: N818  no error: a check that does not apply says why
    """The reason for which a check does not apply to a case."""


class Case(Protocol):
    """What a check runs on: a sampler or layer on a graph."""

    draws: int

    @property
    def graph(self) -> Graph:
        """The graph, whose edges can be left out."""

    def parts(self) -> Parts:
        """Return the nodes, edges and seeds of the graph."""

    def smaller(self, parts: Parts) -> Any:
        """Return the case on fewer nodes and edges; raises Skipped where it cannot be made."""

    def code(self, check: str) -> list[str]:
        """Return the three lines that run one check on this case again."""


C = TypeVar("C", bound=Case)


class Check(NamedTuple):
    """A named check: a function that raises AssertionError for a fault, and Skipped where it does
    not apply.

    It returns the smallest bias that it would see, or None. ``makes_graph``: it makes a graph of
    its own, so that there is nothing to shrink. ``statistical``: it runs on the cases for
    statistics.
    """

    name: str
    run: Callable[[Any], float | None]
    makes_graph: bool = False
    statistical: bool = False


def chosen(
    checks: Mapping[str, Check], names: Sequence[str] | None, expect_fail: Mapping[str, str]
) -> list[Check]:
    """Return the checks of some names, in their order; raises ValueError for an unknown name."""
    for argument, some in (("checks", names or ()), ("expect_fail", expect_fail)):
        for name in [some] if isinstance(some, str) else some:
            check_one_of(name, f"a name in {argument}", checks)
    if isinstance(names, str):
        names = [names]
    return [check for name, check in checks.items() if names is None or name in names]


def run_checks(
    subject: str,
    checks: Sequence[Check],
    cases_of: Callable[[Check], Sequence[C]],
    expect_fail: Mapping[str, str],
    trials: int,
    *,
    weights: str,
    missing: str = "",
) -> Report:
    """Run ``checks`` and return the report.

    ``trials`` smaller graphs are tried for each that fails. ``weights`` is the name of the check of
    estimator weights; ``missing`` says why there are no small graphs. No clock decides anything:
    two runs give the same report.

    Raises CheckError with all failures, for a check that was expected to fail and did not, and
    where none ran.
    """
    outcomes = [_outcome(check, cases_of(check), trials, missing) for check in checks]
    errors = []
    results = []
    for outcome in outcomes:
        reason = expect_fail.get(outcome.name)
        if reason is not None and outcome.status == "failed":
            outcome = Outcome(
                outcome.name, "expected", seconds=outcome.seconds, draws=outcome.draws, note=reason
            )
        elif reason is not None:
            note = (
                f"it was expected to fail ({reason}) and "
                f"{'passed' if outcome.status == 'passed' else 'was skipped'}"
            )
            outcome = Outcome(
                outcome.name, "failed", seconds=outcome.seconds, draws=outcome.draws, note=note
            )
        if outcome.status == "failed":
            errors.append(f"{outcome.name}: {outcome.note}")
        results.append(outcome)
    report = Report(subject, tuple(results), _unchecked(weights, results))
    if all(outcome.status == "skipped" for outcome in results):
        raise CheckError(report, f"{report}\n\nno check ran, so nothing is known")
    if errors:
        raise CheckError(
            report,
            "\n\n".join([f"{len(errors)} of {len(results)} checks failed", *errors, repr(report)]),
        )
    return report


def as_trials(budget: object) -> int:
    """Return the argument ``budget`` as a number of trials; raises TypeError for a float, perhaps
    meant as seconds.
    """
    if isinstance(budget, float):
        raise TypeError(
            f"budget must be an integer, got {budget!r}: it counts smaller graphs to try, not "
            "seconds"
        )
    return as_count(budget, "budget")


def _unchecked(weights: str, outcomes: Sequence[Outcome]) -> str:
    """The last line of a report: why weights were not checked; empty where they were."""
    reasons = [
        outcome.note if outcome.status == "skipped" else ""
        for outcome in outcomes
        if outcome.name == weights
    ]
    reason = reasons[0] if reasons else f"{weights!r} is not among the checks that ran"
    return f"weights were not checked: {reason}" if reason else ""


def _outcome(check: Check, cases: Sequence[C], trials: int, missing: str) -> Outcome:
    """The outcome of one check on several cases; the smallest of those that fail is shrunk."""
    start = perf_counter()
    before = sum(case.draws for case in cases)
    failed: list[tuple[C, Exception]] = []
    reasons = []
    bias = None
    passes = 0
    for case in cases:
        try:
            bias = check.run(case)
            passes += 1
        except Skipped as reason:
            reasons.append(str(reason))
        except Exception as error:
            failed.append((case, error))
    more: dict[str, Any] = {"draws": sum(case.draws for case in cases) - before}
    if failed:
        smallest, cause = min(failed, key=lambda pair: len(pair[0].parts().edges))
        # where there are no small graphs, there are no smaller ones either
        note = _explained(check, smallest, cause, 0 if missing else trials)
        return Outcome(check.name, "failed", seconds=perf_counter() - start, note=note, **more)
    if passes:
        more |= {
            "least_bias": bias,
            "note": f"on the given graph only: {missing}" if missing and check.statistical else "",
        }
        return Outcome(check.name, "passed", seconds=perf_counter() - start, **more)
    note = reasons[0] if reasons else "no graph to run it on"
    return Outcome(check.name, "skipped", seconds=perf_counter() - start, note=note)


def _explained(check: Check, case: Case, error: Exception, trials: int) -> str:
    """The message of a failure on the smallest case, and the lines that show it again."""
    smallest = case
    last = error

    def fails(parts: Parts) -> bool:
        nonlocal smallest, last
        try:
            trial = case.smaller(parts)
            check.run(trial)
        except Skipped:
            return False
        except Exception as another:
            # an error of another kind, as that of a graph that is too small, is another matter
            if _kind(another) == _kind(error):
                smallest = trial
                last = another
                return True
        return False

    if not check.makes_graph:
        shrink(case.parts(), case.graph.edges(), fails, trials)
    words = (
        str(last) if isinstance(last, AssertionError) else f"raised {type(last).__name__}: {last}"
    )
    return "\n".join([words, *(f"    {line}" for line in smallest.code(check.name))])


def _kind(error: Exception) -> str:
    text = type(error).__name__
    return text if isinstance(error, AssertionError) else text + re.sub(r"\d+", "", str(error))
