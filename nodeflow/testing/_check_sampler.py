"""``check_sampler``: all checks of a sampler in one call, and a test for each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nodeflow._core.base.checks import as_flag, check_one_of, check_type
from nodeflow._core.base.types import NumbersLike, SeedsLike
from nodeflow.graph import Graph
from nodeflow.sampling.base import SamplerBase
from nodeflow.testing import _law_checks, _sampler_checks
from nodeflow.testing._report import CheckError, Report
from nodeflow.testing._run import EXAMPLES, TRIALS, Skipped, checks_of, chosen, run_checks
from nodeflow.testing._sampler_case import FEW, given_case

SAMPLER_CHECKS = {
    **checks_of(
        _sampler_checks.structure,
        _sampler_checks.order,
        _sampler_checks.edges,
        _sampler_checks.fanouts,
        _sampler_checks.repeats,
        _sampler_checks.repeated_seeds,
        _sampler_checks.isolated_seeds,
        _sampler_checks.no_seeds,
        _sampler_checks.excluded,
        _sampler_checks.future,
        examples=EXAMPLES,
    ),
    **checks_of(
        _sampler_checks.reproducible,
        _sampler_checks.threads,
        _sampler_checks.pickles,
        _sampler_checks.calls,
        _sampler_checks.epochs,
        _sampler_checks.global_state,
        _sampler_checks.untouched,
    ),
    **checks_of(_law_checks.marginals, _law_checks.pairs, statistical=True),
    **checks_of(_law_checks.hubs, makes_graph=True),
}


def check_sampler(
    sampler: SamplerBase | Callable[[Graph], SamplerBase],
    seeds: SeedsLike | None = None,
    *,
    times: NumbersLike | None = None,
    graph: Graph | None = None,
    pairs: str | None = None,
    parallel_edges: bool = True,
    expect_fail: Mapping[str, str] | None = None,
    checks: Sequence[str] | None = None,
    budget: int = TRIALS,
) -> Report:
    """Check all that a sampler promises, and return a report that prints as a table.

    The checks run on the sampler's graph and on small graphs that have columns like those of this
    graph, with a sampler of the same settings; two graphs have a node of 90,000 and of 49,152
    edges. Where no sampler of small graphs can be made, weights are checked at a few nodes of its
    graph. The last line says so if weights were not checked.

    ========================= ==========================================================================================
    structure                 every invariant of a NodeFlow; seeds in their rows
    order                     the order of nodes that ``Sampler`` promises
    edges                     ids, and the ends and the direction of the graph's edges
    fanouts                   no more edges than ``fanouts`` say, of each type, and as many where sizes are fixed
    repeats                   no edge twice at one node, unless ``sampler.replace``
    repeated, isolated, no    calls with a repeated seed, with one that has no edges, and without seeds
    seeds
    excluded                  nothing that the view or ``without_edges`` leaves out
    future                    nothing later than the seed, of samplers that take times
    reproducible, threads     the same call gives the same batch, in any thread, beside any other; so does a sampler
                              that is made again
    pickles                   batch and sampler after pickling
    calls                     a seed draws the same beside other seeds, where ``by_row`` says so
    epochs                    another epoch has other draws
    global state, untouched   global random states, seeds and graph stay as they were
    marginals                 the mean weight of an edge is its number in ``estimand()``
    pairs                     two edges of a node are drawn together as often as their law says
    hubs                      a node with more than 65,536 edges draws those beyond as often as those before, and one
                              with 49,152 all alike (numbers of 16 bits, modulo the degree, do
                              neither)
    ========================= ==========================================================================================

    Args:
        sampler: a sampler, or a function that makes one of a graph. Of a sampler, others of smaller
            graphs are made by the arguments of the call that made it, also those that ``**options``
            passed on: each must be kept in an attribute of its name, else "reproducible" fails. A
            function needs no such attributes.
        seeds: seeds of the calls; repeated ones are left out. None: nodes of several
            degrees.
        times: a time for every seed. None, for samplers that take times: times in the column
            ``sampler.time``.
        graph: with a function, the graph on which to begin; small graphs get columns like its
            columns.
        pairs: "uniform" where all sets (with ``replace`` sequences) of as many edges of a node are
            equally likely, "independent" where edges are drawn on their own. None: known of the
            package's samplers, else not checked.
        parallel_edges: whether small graphs have parallel edges; False for a sampler that is
            defined without them.
        expect_fail: names of checks that must fail, with the reason.
        checks: names of the checks to run. None: all.
        budget: number of smaller graphs that are tried for each check that fails, to show it on a
            small one; 0: none. It is no time: the checks themselves take the same number of draws
            on any machine.

    Error rates: the statistical checks (marginals, pairs, hubs) fail on a sampler that keeps its
    promises with a probability of about 1e-6 per call, all together (z-tests with Bonferroni's
    correction, after 500 calls of 8 copies of a small graph). The report has the
    smallest bias that each would see. Other checks make no error of this kind. Draws are fixed by
    the seed, so a sampler that passes once passes always.

    Raises CheckError, an AssertionError, with all failures at once: each on the smallest graph that
    fails, with three lines of code that show it again. It is raised too if no check ran, or if a
    check in ``expect_fail`` did not fail. ValueError for an unknown name of a check.

    >>> from nodeflow import NeighborSampler
    >>> graph = Graph.from_edges([1, 2, 3, 4, 0], [0, 0, 0, 0, 4])
    >>> report = check_sampler(NeighborSampler(graph, [2, 2]), [0, 3])
    >>> report.failed, report.skipped
    ([], ['future'])
    """
    selected = chosen(SAMPLER_CHECKS, checks, expect_fail or {})
    if pairs is not None:
        check_one_of(pairs, "pairs", ("uniform", "independent"))
    first = given_case(sampler, seeds, times, graph, pairs)
    first.multi_edges = as_flag(parallel_edges, "parallel_edges")
    cases = [first]
    missing = ""
    try:
        cases.append(first.probe())
        first.size = FEW  # the small graphs see more
    except Skipped as reason:
        missing = str(reason)
    return run_checks(
        first.sampler.text(),
        selected,
        lambda check: [first] if check.makes_graph else cases,
        expect_fail or {},
        budget,
        weights="marginals",
        missing=missing,
    )


def parametrize_with_checks(
    samplers: Mapping[str, Any], checks: Sequence[str] | None = None, **options: Any
) -> Callable[[Any], Any]:
    """Return a decorator of pytest that runs a test per sampler and check; the test calls its
    argument ``check``.

    Args:
        samplers: samplers, or functions that make one of a graph, by name.
        checks: names of the checks. None: all.
        options: further arguments of ``check_sampler``.

    A check that does not apply is a skipped test, with the reason. Raises ImportError without
    pytest.

    >>> from nodeflow import NeighborSampler
    >>> @parametrize_with_checks({"two": lambda graph: NeighborSampler(graph, [2, 2])}, checks=["structure", "order"])
    ... def test_sampler(check):
    ...     check()
    """
    import pytest

    check_type(samplers, "samplers", Mapping, "a dict of samplers by name")
    inspect.signature(check_sampler).bind(None, **options)

    def check(sampler: Any, name: str) -> None:
        try:
            check_sampler(sampler, checks=[name], **options)
        except CheckError as error:
            (outcome,) = error.report.outcomes
            if outcome.status == "skipped":
                pytest.skip(outcome.note)
            raise

    tests = []
    for title, sampler in samplers.items():
        for selected in chosen(SAMPLER_CHECKS, checks, {}):
            test = partial(check, sampler, selected.name)
            tests.append(pytest.param(test, id=f"{title}-{selected.name}"))
    return pytest.mark.parametrize("check", tests)
