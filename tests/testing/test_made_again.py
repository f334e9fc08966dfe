"""check_sampler makes a sampler again, for graphs of its own, by the arguments that its call
passed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from _support.sampler_families import graph_of_all
from torch import Tensor

from nodeflow import (
    Graph,
)
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import Choice, Step
from nodeflow.testing import CheckError, check_sampler

pytestmark = pytest.mark.usefixtures("one_thread")


class Rates(Sampler):
    """Each edge of flow i with the probability rates[i]; ``wrong``: weights of 1 in place of one
    over it.
    """

    by_row = True
    wrong = True

    def __init__(self, graph: Graph, rates: Any, **options: Any) -> None:
        self.rates = list(rates)
        super().__init__(graph, len(self.rates), **options)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        rate = self.rates[step.flow]
        keep = step.random.uniform(edges.eid) < rate
        return edges.select(keep, weight=1.0 if self.wrong else 1 / rate)


class Fixes(Rates):
    """Passes an option of its base itself, and a list of its own making."""

    def __init__(self, graph: Graph, rate: float, *, flows: int = 1, **options: Any) -> None:
        self.rate = rate
        self.flows = flows
        super().__init__(graph, [rate] * flows, reuse=True, **options)


class Deeper(Fixes):
    """Takes any number of arguments by position, and a graph that is not named graph."""

    def __init__(self, g: Graph, *shares: float, **options: Any) -> None:
        self.shares = shares
        super().__init__(g, min(shares), **options)


class Slashed(Rates):
    """Takes arguments by position alone."""

    def __init__(self, whole: Graph, rates: Any, /, *, seed: int = 0) -> None:
        super().__init__(whole, rates, seed=seed)


class Elsewhere(Rates):
    """Keeps its argument under another name."""

    def __init__(self, graph: Graph, share: float, **options: Any) -> None:
        self.kept = share
        super().__init__(graph, [share], **options)


class OfItsNodes(Rates):
    """Has a number for each node of its graph, so that no other graph will do."""

    def __init__(self, graph: Graph, table: Any, **options: Any) -> None:
        self.table = table
        if len(table) != graph.num_nodes:
            raise ValueError(
                f"table must have one entry per node ({graph.num_nodes}), got {len(table)}"
            )
        super().__init__(graph, [0.5], **options)


@pytest.fixture
def right_weights(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A call that mends the weights of ``Rates``."""
    return lambda: monkeypatch.setattr(Rates, "wrong", False)


AGAIN = {
    "a number of flows": lambda g: Rates(g.view("out"), (0.5, 0.4), seed=3),
    "an option that it passes": lambda g: Fixes(g, 0.5, flows=2, seed=3),
    "several levels": lambda g: Deeper(g, 0.6, 0.5, flows=2, seed=2),
    "by position": lambda g: Slashed(g, [0.5, 0.4], seed=1),
    "by name": lambda g: Rates(graph=g.view(where=np.arange(g.num_edges) % 5 > 0), rates=[0.5]),
    "edges left out": lambda g: Rates(g, [0.5]).without_edges([1, 2, 3]),
    "partial": partial(Rates, rates=[0.5]),
    "pickled": lambda g: pickle.loads(pickle.dumps(Rates(g, [0.5], seed=3))),
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", AGAIN)
def test_a_sampler_is_made_again_by_the_arguments_that_its_call_passed(name, right_weights):
    sampler = AGAIN[name](graph_of_all())
    with pytest.raises(CheckError, match="and should be") as error:
        check_sampler(sampler, checks=["marginals"], budget=0)
    assert "\n    sampler = " in str(error.value)
    right_weights()
    report = check_sampler(sampler, checks=["reproducible", "marginals", "hubs"])
    assert report.passed == ["reproducible", "marginals", "hubs"]
    assert not any(outcome.note for outcome in report.outcomes)  # on small graphs too
    assert report.note == ""


def many_edges() -> Graph:
    """A graph that is too large for statistics of all edges: a cycle of steps of every length below
    4, and a hub.
    """
    nodes = np.arange(500)
    src = np.concatenate([nodes, nodes, nodes, nodes])
    dst = np.concatenate([nodes, nodes + 1, nodes + 2, nodes * 0])
    return Graph.from_edges(src, dst % 500)


@pytest.mark.parametrize(
    "make",
    [lambda g: Elsewhere(g, 0.5), lambda g: OfItsNodes(g, np.ones(500))],
    ids=["no attribute", "one graph"],
)
def test_weights_are_checked_on_the_given_graph_where_there_is_no_other(make, right_weights):
    sampler = make(many_edges())
    with pytest.raises(
        CheckError, match=r"the mean weight of edge \d+ .* over \d+ draws is 0.* should be 1 "
    ):
        check_sampler(sampler, checks=["marginals"])
    right_weights()
    report = check_sampler(sampler, checks=["marginals"])
    assert report.outcomes[0].note.startswith("on the given graph only: no sampler of Graph(")
    assert report.note == ""


def test_a_sampler_that_cannot_be_made_again_fails(right_weights):
    right_weights()
    sampler = Elsewhere(graph_of_all(), 0.5)
    words = (
        "reproducible: the sampler cannot be made again: .* does not keep its argument 'share' in "
        "an attribute"
    )
    with pytest.raises(CheckError, match=words) as error:
        check_sampler(sampler)
    assert error.value.report.failed == ["reproducible"]
    # a function needs no attributes
    assert check_sampler(lambda g: Elsewhere(g, 0.5), checks=["marginals"]).note == ""
    with pytest.raises(CheckError, match="does not take the graph that it is made of as its own"):
        check_sampler(
            lambda g: Rates(Graph(g.csc()[0], g.csc()[1]), [0.5]), checks=["reproducible"]
        )
    report = check_sampler(
        OfItsNodes(graph_of_all(), np.ones(60)), checks=["reproducible", "marginals"]
    )
    assert report.passed == ["reproducible", "marginals"]
