"""check_sampler: planted faults are found by name, right samplers pass, failures are small and can
be run again.
"""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from _support.planted_samplers import SAMPLERS, NotInverse, Plain, Window
from _support.sampler_families import FAMILIES, call_of, graph_of_all
from torch import Tensor

import nodeflow
from nodeflow import (
    BernoulliSampler,
    ClusterSampler,
    FullSampler,
    Graph,
    LaborSampler,
    NeighborSampler,
    SaintSampler,
    ShadowSampler,
)
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import Choice, Step
from nodeflow.testing import CheckError, assert_unbiased, check_sampler, parametrize_with_checks
from nodeflow.testing._check_sampler import SAMPLER_CHECKS
from nodeflow.testing._law_checks import Draws, _means, uniform_pairs

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = [
    name
    for name, check in SAMPLER_CHECKS.items()
    if not check.statistical and not check.makes_graph
]
BIASED = {"labor, hajek", "ladies, normalised", "saint, edge", "saint, walk"}
"""Families whose sums are biased, as their pages say."""


def failures(name: str, checks: list[str] | None) -> list[str]:
    make, wanted = SAMPLERS[name]
    more = {"pairs": "uniform"} if wanted == "pairs" else {}
    with pytest.raises(CheckError) as error:
        check_sampler(make, graph=graph_of_all(), checks=checks, budget=0, **more)
    return error.value.report.failed


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_planted_fault_is_found_by_name(name):
    assert failures(name, [SAMPLERS[name][1]]) == [SAMPLERS[name][1]]


@pytest.mark.slow
def test_all_planted_faults_are_found():
    for name, (_, wanted) in SAMPLERS.items():
        assert wanted in failures(
            name, [wanted] if wanted in ("marginals", "pairs", "hubs") else QUICK
        )


def check(name: str, checks: list[str] | None, **options: Any) -> Any:
    seeds, more = call_of(name)
    every = [c for c in checks or SAMPLER_CHECKS if c != "marginals" or name not in BIASED]
    return check_sampler(FAMILIES[name](graph_of_all(), **options), seeds, checks=every, **more)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_false_alarm_of_quick_checks(name):
    report = check(name, QUICK)
    assert not report.failed
    assert "structure" in report.passed


# with seed 18, ten draws at a hub have equal sums by chance; with 843 two edges are never drawn
# together in 100 draws
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("neighbor", 3),
        ("ladies", 4),
        ("labor", 5),
        ("neighbor, types", 18),
        ("bernoulli", 843),
        ("bernoulli", 933),
    ],
)
def test_no_false_alarm_of_statistical_checks(name, seed):
    assert "marginals" in check(name, ["marginals", "pairs", "hubs"], seed=seed).passed


@pytest.mark.slow
def test_no_false_alarm_of_many_seeds():
    """All families that draw at random, with ten seeds from 100 on."""
    random = [name for name in FAMILIES if name not in ("full", "cluster")]
    for seed, name in itertools.product(range(100, 110), random):
        check(name, ["structure", "marginals", "pairs"], seed=seed)


def test_the_report_is_a_table():
    report = check_sampler(NeighborSampler(graph_of_all(), [2, 3]), [5, 11])
    assert report.skipped == ["future"]
    lines = repr(report).splitlines()
    assert lines[1] == "19 passed, 1 skipped"
    assert lines[2].split() == ["check", "result", "least", "bias"]
    outcome = {o.name: o for o in report.outcomes}
    assert 0 < (outcome["marginals"].least_bias or 0) < 0.5
    assert outcome["future"].note == "it takes no times"
    assert "it takes no times" in repr(report)


def test_all_failures_come_at_once_and_run_again():
    with pytest.raises(CheckError) as error:
        check_sampler(
            lambda g: Wrong(g),
            graph=graph_of_all(),
            checks=["edges", "repeats", "excluded", "marginals"],
            budget=60,
        )
    text = str(error.value)
    assert text.startswith("4 of 4 checks failed")
    # an id that is drawn twice is found on a small graph alone
    assert error.value.report.failed == ["edges", "repeats", "excluded", "marginals"]
    for name in ("edges", "repeats", "excluded"):
        lines = re.search(rf"^{name}: .*\n((?:    .*\n?){{3}})", text, re.MULTILINE)
        assert lines is not None
        code = "\n".join(line.strip() for line in lines.group(1).splitlines())
        session: dict[str, Any] = {
            **vars(nodeflow),
            "torch": torch,
            "make": Wrong,
            "check_sampler": check_sampler,
        }
        with pytest.raises(CheckError, match=f"{name}: "):
            exec(code, session)
    small = re.search(r"edges: .*\n    graph = Graph.typed\(.*?\): \((\[.*?\]),", text)
    assert small is not None
    assert len(eval(small.group(1))) <= 3


def test_a_failure_on_graphs_of_the_check_runs_again_from_the_function():
    make = SAMPLERS["hub repeats"][0]
    with pytest.raises(CheckError) as error:
        check_sampler(make, graph=Graph.from_edges([1, 2], [0, 0]), checks=["hubs"])
    code = "\n".join(
        line.strip() for line in str(error.value).splitlines() if line.startswith("    ")
    )
    with pytest.raises(CheckError, match="hubs: a node with 90,000 edges draws one of them twice"):
        exec(code, {**vars(nodeflow), "make": make, "check_sampler": check_sampler})


class Wrong(Plain):
    """Wrong ids, a filter that is ignored, and no weights."""

    def choose(self, dst: torch.Tensor, step: Any) -> Any:
        edges = NeighborSampler(self.graph, [-1]).candidates(dst)
        keep = step.random.uniform(edges.eid) < 0.5
        return nodeflow.sampling.base.Choice(
            np.searchsorted(keep.nonzero().flatten().numpy(), edges.indptr.numpy()),
            src=edges.src[keep],
            eid=torch.where(edges.eid == 0, self.graph.num_edges - 1, edges.eid)[keep],
        )


def test_a_failure_of_a_sampler_shows_its_settings():
    with pytest.raises(CheckError, match=r"    sampler = NotInverse\(graph, k=3, num_flows=1, "):
        check_sampler(
            NotInverse(graph_of_all(), k=3, num_flows=1), [5], checks=["marginals"], budget=0
        )


def test_the_most_significant_edge_is_named():
    """An edge that is drawn too often makes its neighbours rare, which misses more where these
    count more.
    """
    random = np.random.default_rng(0)
    chance = np.array([0.4, *[0.15] * 4])
    exact = np.array([1.0, *[30.0] * 4])
    draws: Any = object.__new__(Draws)
    draws.counts = random.multinomial(1, chance, 2_000)[:, None]
    draws.weights = draws.counts * 5 * exact
    draws.exact = exact
    draws.row = np.zeros(5, int)
    draws.nodes = np.array([7])
    draws.eid = draws.group = np.arange(5)
    draws.tested = 1
    draws.case = SimpleNamespace(groups=None, size=2_000)
    with pytest.raises(AssertionError, match="the mean weight of edge 0 of node 7 in flow -1"):
        _means(draws)


def test_expected_failures_must_fail():
    reason = "windows are drawn"
    report = check_sampler(
        lambda g: Window(g),
        pairs="uniform",
        checks=["structure", "pairs"],
        expect_fail={"pairs": reason},
        budget=0,
    )
    assert [(o.name, o.status) for o in report.outcomes] == [
        ("structure", "passed"),
        ("pairs", "expected"),
    ]
    assert report.outcomes[1].note == reason
    with pytest.raises(CheckError, match=r"structure: it was expected to fail \(none\) and passed"):
        check_sampler(lambda g: Plain(g), checks=["structure"], expect_fail={"structure": "none"})


def failure_of(make: Any, checks: list[str], **options: Any) -> str:
    """The message of a call that must fail."""
    with pytest.raises(CheckError) as error:
        check_sampler(make, graph=graph_of_all(), checks=checks, **options)
    return str(error.value)


def test_a_call_that_is_repeated_finds_shrinks_and_says_the_same():
    make = SAMPLERS["not inverse"][0]
    checks = ["structure", "marginals"]
    assert failure_of(make, checks, budget=5) == failure_of(make, checks, budget=5)


def test_the_budget_counts_smaller_graphs():
    make = SAMPLERS["wrong ids"][0]
    sizes = [failure_of(make, ["edges"], budget=budget).count(",") for budget in (0, 10, 60)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 10 * sizes[2]


@pytest.mark.parametrize("replace", [False, True])
def test_the_law_of_pairs_is_that_of_enumeration(replace):
    for degree, k in ((2, 1), (4, 2), (4, 3), (3, 3)):
        every = (
            itertools.product(range(degree), repeat=k)
            if replace
            else itertools.combinations(range(degree), k)
        )
        products = [outcome.count(0) * outcome.count(1) for outcome in every]
        assert uniform_pairs(degree, np.array([k]), replace)[0] == pytest.approx(np.mean(products))


@pytest.mark.parametrize(
    ("checks", "why"),
    [
        (["structure"], "'marginals' is not among the checks that ran"),
        (["structure", "marginals"], "it estimates no sum (estimand raises TypeError)"),
    ],
)
def test_the_last_line_says_that_weights_were_not_checked(checks, why):
    report = check_sampler(lambda g: Odd(g, "no sum"), checks=checks)
    assert repr(report).splitlines()[-1] == report.note == f"weights were not checked: {why}"


class Odd(Plain):
    """Has one property that checks look at, and cannot be made again: it keeps its argument under
    another name.
    """

    def __init__(self, graph: Graph, odd: str, **options: Any) -> None:
        super().__init__(graph, 2, 1, **options)
        self.what = odd
        self.takes_times = odd == "times"

    def estimand(self, *time: float) -> torch.Tensor:
        if self.what == "no sum":
            raise TypeError("it is no estimate")
        return super().estimand()

    def choose(self, dst: torch.Tensor, step: Any) -> Any:
        if self.what == "refuses" and not len(dst):
            raise ValueError("there must be seeds")
        edges = self.candidates(dst)
        return edges.select([]) if self.what == "nothing" else super().choose(dst, step)


@pytest.mark.parametrize(
    ("name", "sampler", "options", "note"),
    [
        ("marginals", lambda g: Odd(g, "no sum"), {}, "it estimates no sum"),
        ("hubs", lambda g: Odd(g, "no sum"), {}, "it estimates no sum"),
        ("hubs", lambda g: Odd(g, "nothing"), {}, "0 edges of a hub were drawn in"),
        ("hubs", lambda g: ShadowSampler(g, 1, 1, 2), {}, "it does not derive from Sampler"),
        (
            "pairs",
            lambda g: ShadowSampler(g, 1, 1, 2),
            {"pairs": "uniform"},
            "its flows have no candidates",
        ),
        (
            "marginals",
            lambda g: SaintSampler(g, 1, kind="edge", budget=1),
            {"seeds": []},
            "seeds must not be empty",
        ),
        (
            "marginals",
            lambda g: ClusterSampler(g, 1, 3),
            {},
            "seeds are parts: assert_unbiased takes batch_size=",
        ),
        (
            "marginals",
            Odd(Graph.from_edges([0] * 1001, [1] * 1001), ""),
            {},
            "on seeds of at most 1000 edges together",
        ),
        (
            "marginals",
            Odd(graph_of_all(), "nothing"),
            {},
            "no edge was drawn 40 times in 500 draws: too few",
        ),
        (
            "pairs",
            Odd(Graph.from_edges([1], [0]), ""),
            {"pairs": "uniform"},
            "no seed has two edges",
        ),
        ("repeated seeds", Odd(graph_of_all(), ""), {"seeds": []}, "there are no seeds"),
        (
            "future",
            lambda g: Odd(g, "times"),
            {"seeds": [0], "times": [1]},
            "it has no attribute time",
        ),
    ],
)
def test_a_check_that_does_not_apply_says_why(name, sampler, options, note):
    with pytest.raises(CheckError, match="no check ran, so nothing is known") as error:
        check_sampler(sampler, checks=name, **options)
    (outcome,) = error.value.report.outcomes
    assert note in outcome.note
    assert repr(outcome) == f"{name}: skipped"


class Either(Sampler):
    """Keeps the even edges of a node or the odd ones; cannot be made again, so that its graph alone
    is tested.
    """

    def __init__(self, graph: Graph, unkept: int) -> None:
        super().__init__(graph, unkept)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        is_even = step.random.uniform(dst)[edges.rows] < 0.5
        return edges.select(is_even == (edges.eid % 2 == 0), prob=0.5)


def test_edges_that_are_never_drawn_together_are_found():
    sampler = Either(Graph.from_edges([0, 1], [2, 2]), 1)
    with pytest.raises(CheckError, match="at a rate of 0, which should be 1"):
        check_sampler(sampler, [2], checks=["pairs"], pairs="independent", budget=30)


class Broken(ClusterSampler):
    def complete(self, batch: Any) -> Any:
        raise RuntimeError("it is broken")


@pytest.mark.parametrize(
    ("name", "sampler", "words"),
    [
        ("no seeds", lambda g: Odd(g, "refuses"), "raised ValueError: there must be seeds"),
        (
            "marginals",
            lambda g: Odd(g, "nothing"),
            "was drawn 0 times in 500 draws, but counts 1 in estimand",
        ),
        ("structure", Broken(graph_of_all(), 1, 3), "raised RuntimeError: it is broken"),
        ("no seeds", Odd(graph_of_all(), "refuses"), r"sampler = Odd\(graph, k=2"),
        (
            "marginals",
            NotInverse(graph_of_all().view(where=np.arange(500) % 5 > 0)),
            "where='edge_filter'",
        ),
    ],
)
def test_more_faults_are_found_and_shown(name, sampler, words):
    with pytest.raises(CheckError, match=words):
        check_sampler(sampler, checks=[name], budget=0)


@pytest.mark.parametrize(
    ("name", "sampler", "graph"),
    [
        ("marginals", lambda g: SaintSampler(g, 1, kind="node", budget=8), None),
        ("pairs", lambda g: BernoulliSampler(g, [2]), None),
        ("order", lambda g: NeighborSampler(g.view("out"), [2, 2], include_dst=False), None),
        (
            "edges",
            lambda g: Plain(g),
            Graph.from_edges([], [], num_nodes=3, edata={"w": torch.zeros(0)}),
        ),
    ],
)
def test_more_right_samplers_pass(name, sampler, graph):
    assert check_sampler(sampler, graph=graph, checks=[name]).passed == [name]


@pytest.mark.parametrize("period", [4, None])
def test_samplers_whose_batches_are_numbered(period):
    sampler = LaborSampler(graph_of_all(), [2, 3], batch_dependency=period)
    report = check_sampler(sampler, [5, 11, 5, 30])
    assert not report.failed
    assert {"reproducible", "threads", "pickles", "marginals", "epochs"} <= set(report.passed)
    assert_unbiased(sampler, [5, 11], draws=200)


class BySource(Plain):
    """Edges of one source share a random number, of which the first edge takes the place."""

    def keys(self, edges: Any, step: Any) -> torch.Tensor:
        numbers: torch.Tensor = step.random.uniform(edges.src)
        return numbers


def test_samplers_without_parallel_edges():
    options: dict[str, Any] = {
        "graph": Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0]),
        "checks": ["marginals"],
    }
    assert check_sampler(lambda g: BySource(g), parallel_edges=False, **options).passed == [
        "marginals"
    ]
    with pytest.raises(CheckError, match="marginals: the mean weight of edge"):
        check_sampler(lambda g: BySource(g), budget=0, **options)


@parametrize_with_checks(
    {"full": lambda g: FullSampler(g, 1), "two": lambda g: NeighborSampler(g, [2])},
    checks=["structure", "order"],
)
def test_a_test_per_check(check):
    check()


def test_parametrized_checks_skip_and_fail():
    mark = parametrize_with_checks(
        {"NotInverse": NotInverse(graph_of_all())}, checks=["future", "marginals"], budget=0
    ).args[1]
    assert [case.id for case in mark] == ["NotInverse-future", "NotInverse-marginals"]
    with pytest.raises(pytest.skip.Exception, match="it takes no times"):
        mark[0].values[0]()
    with pytest.raises(CheckError):
        mark[1].values[0]()
