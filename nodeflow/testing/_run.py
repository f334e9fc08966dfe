"""Running checks: on cases made by hand, then on small graphs that hypothesis draws.

A failure is shown on the smallest graph that hypothesis finds, or else on the case made by hand.
All failures come at once, and what was expected to fail must fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from hypothesis import HealthCheck, Phase, find, settings, strategies as st
from hypothesis.errors import Flaky, NoSuchExample

from nodeflow._core.base.checks import as_count, check_one_of
from nodeflow.testing._report import CheckError, Outcome, Report
from nodeflow.testing._strategies import graphs

TRIALS = 100
"""Smaller graphs that are tried for a check that fails."""
EXAMPLES = 10
"""Random graphs that are tried for a check that passes on the graphs made by hand."""


class Skipped(Exception):  # noqa: N818  no error: a check that does not apply says why
    """The reason for which a check does not apply to a case."""


class _Enough(BaseException):
    """The budget is spent. Hypothesis lets it pass, as it lets KeyboardInterrupt pass."""


class Small(NamedTuple):
    """The ends of the edges of a small graph, its number of nodes, and seeds."""

    src: tuple[int, ...]
    dst: tuple[int, ...]
    num_nodes: int
    seeds: tuple[int, ...]


@st.composite
def small_graphs(draw: st.DrawFn, largest: int, multi_edges: bool) -> Small:
    """Strategy for small graphs, in which node 0 has up to ``largest`` neighbours of its own."""
    graph = draw(graphs(min_nodes=1, multi_edges=multi_edges))
    # nodes with more neighbours than a sampler draws are rare among random edges
    size = graph.num_nodes + draw(st.integers(0, largest))
    leaves = range(graph.num_nodes, size)
    src, dst = (end.tolist() for end in graph.edges())
    nodes = st.integers(0, graph.num_nodes - 1)
    seeds = draw(st.lists(nodes, min_size=1, max_size=4, unique=True))
    return Small((*src, *leaves), (*dst, *[0] * len(leaves)), size, tuple(seeds))


Case: TypeAlias = Any
"""The subject of a check, on a ``graph``: a ``SamplerCase`` or a ``LayerCase``.

``small`` gives the case on a small graph, of which node 0 has up to ``largest`` neighbours, and
``code`` the lines that run one check on the case again.
"""


class Check(NamedTuple):
    """A named check: a function that raises AssertionError for a fault, Skipped where it is not apt.

    It returns the smallest bias that it would see, or None. ``examples`` random graphs are tried
    where the cases made by hand pass. ``makes_graph``: it makes a graph of its own, so that there
    is no smaller one. ``statistical``: it runs on the cases for statistics.
    """

    name: str
    run: Callable[[Any], float | None]
    examples: int = 0
    makes_graph: bool = False
    statistical: bool = False


def checks_of(*runs: Callable[[Any], float | None], **options: Any) -> dict[str, Check]:
    """Return checks by their names, which are those of the functions; ``options`` as of Check."""
    checks = {}
    for run in runs:
        name = run.__name__.replace("_", " ")
        checks[name] = Check(name, run, **options)
    return checks


def chosen(
    checks: Mapping[str, Check], names: Sequence[str] | None, expect_fail: Mapping[str, str]
) -> list[Check]:
    """Return the checks of some names, in their order; raises ValueError for an unknown name."""
    selected = names
    if isinstance(names, str):
        selected = [names]
    for name in selected or ():
        check_one_of(name, "a name in checks", checks)
    for name in expect_fail:
        check_one_of(name, "a name in expect_fail", checks)
    return [check for name, check in checks.items() if selected is None or name in selected]


def run_checks(
    subject: str,
    checks: Sequence[Check],
    cases_of: Callable[[Check], Sequence[Case]],
    expect_fail: Mapping[str, str],
    budget: object,
    *,
    weights: str,
    missing: str = "",
) -> Report:
    """Run ``checks`` and return the report.

    ``budget`` smaller graphs are tried for each that fails. ``weights`` is the name of the check of
    estimator weights; ``missing`` says why there are no small graphs. No clock decides anything:
    two runs give the same report.

    Raises CheckError with all failures, for a check that was expected to fail and did not, and
    where none ran.
    """
    trials = as_count(budget, "budget")
    results = []
    unchecked = f"{weights!r} is not among the checks that ran"
    for check in checks:
        outcome = _outcome(check, cases_of(check), trials, missing)
        if check.name == weights:
            unchecked = ""
            if outcome.status == "skipped":
                unchecked = outcome.note
        reason = expect_fail.get(check.name)
        if reason is not None and outcome.status == "failed":
            outcome = replace(outcome, status="expected", note=reason)
        elif reason is not None:
            note = f"it was expected to fail ({reason}) and {outcome.status}"
            outcome = replace(outcome, status="failed", least_bias=None, note=note)
        results.append(outcome)
    note = ""
    if unchecked:
        note = f"weights were not checked: {unchecked}"
    report = Report(subject, tuple(results), note)
    if len(report.skipped) == len(results):
        raise CheckError(report, f"{report}\n\nno check ran, so nothing is known")
    errors = [f"{o.name}: {o.note}" for o in results if o.status == "failed"]
    if errors:
        head = f"{len(errors)} of {len(results)} checks failed"
        raise CheckError(report, "\n\n".join([head, *errors, repr(report)]))
    return report


def _outcome(check: Check, cases: Sequence[Case], budget: int, missing: str) -> Outcome:
    """The outcome of one check: on all cases, then on small graphs."""
    failed: list[tuple[Case, Exception]] = []
    reasons = []
    biases = []
    for case in cases:
        try:
            biases.append(check.run(case))
        except Skipped as reason:
            reasons.append(str(reason))
        except Exception as error:  # of any code of a user
            failed.append((case, error))
    if not failed and not biases:
        return Outcome(check.name, "skipped", note=reasons[0])
    if not check.makes_graph and not missing:
        if failed:
            examples = budget
        else:
            examples = check.examples
        failed += _smaller(check, cases[0], failed, examples, budget or examples)
    if failed:
        sizes = [(case.graph.num_edges, case.graph.num_nodes) for case, _ in failed]
        case, fault = failed[sizes.index(min(sizes))]
        note = str(fault)
        if not isinstance(fault, AssertionError):
            note = f"raised {type(fault).__name__}: {fault}"
        lines = [f"    {line}" for line in case.code(check.name)]
        return Outcome(check.name, "failed", note="\n".join([note, *lines]))
    note = ""
    if missing and check.statistical:
        note = f"on the given graph only: {missing}"
    return Outcome(check.name, "passed", least_bias=biases[-1], note=note)


def _smaller(
    check: Check,
    case: Case,
    failed: Sequence[tuple[Case, Exception]],
    examples: int,
    budget: int,
) -> list[tuple[Case, Exception]]:
    """Ever smaller cases on which a check fails as it has failed.

    ``examples`` graphs are drawn, and from the first failure on ``budget`` smaller ones are tried.
    """
    kinds = {type(error) for _, error in failed}
    smaller: list[tuple[Case, Exception]] = []
    tried = 0

    def fails(graph: Small) -> bool:
        nonlocal tried
        if kinds and tried >= budget:
            raise _Enough
        tried += 1
        try:
            small = case.small(graph)
            check.run(small)
        except Skipped:
            return False
        except Exception as error:  # of any code of a user
            kind = type(error)
            # an error of another kind, such as of a graph that is too small, is another matter
            if kinds and kind not in kinds:
                return False
            kinds.add(kind)
            smaller.append((small, error))
            return True
        return False

    options = settings(
        max_examples=max(examples, 1),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    if examples:
        # what keeps a state between calls fails on a graph and then passes on it
        with suppress(NoSuchExample, Flaky, _Enough):
            find(small_graphs(case.largest, case.multi_edges), fails, settings=options)
    return smaller
