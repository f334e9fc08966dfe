"""Control variates against enumeration: exact where they must be, unbiased, with the variances of
the paper.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import Graph, NodeFlow, Sampler
from nodeflow.control_variates import (
    ControlVariateSampler,
    History,
    control_variate,
    control_variate_dropout,
    neighbor_sampling,
)
from nodeflow.sampling.base import Choice, Step
from nodeflow.testing import graphs


class Fixed(Sampler):
    """Draws the edges it is told to, D of n, with the weights n / D of neighbour sampling."""

    def __init__(self, graph: Graph, rows: list[int], weight: str | None = None) -> None:
        super().__init__(graph.view(weight=weight), 1)
        self.rows = rows

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(self.rows, prob=len(self.rows) / max(len(edges), 1))


def weighted(graph: Graph, dtype: torch.dtype = torch.float32) -> Graph:
    graph.edata["p"] = torch.linspace(-1, 2, graph.num_edges, dtype=torch.float64).to(dtype)
    return graph


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def full_sum(graph: Graph, h: Tensor, v: int) -> Tensor:
    src, _, eid = graph.in_edges([v])
    return (graph.edata["p"][eid].double().unsqueeze(1) * h[src]).sum(0)


def with_history(batch: NodeFlow, history: History) -> NodeFlow:
    history.pull(batch)
    degree = batch.parent.in_degrees()[batch.back.parent_nid]
    batch.ldata[-1]["scale"] = degree / batch.flows[0].in_degrees.clamp(min=1)
    return batch


STAR, EXACT = (
    weighted(Graph.from_edges([1, 2, 3, 4, 5], [0, 0, 0, 0, 0], num_nodes=6), dtype)
    for dtype in (torch.float32, torch.float64)
)


def history_of(graph: Graph, rows: Tensor) -> History:
    history = History(graph.view(weight="p"), {0: rows.shape[1]}, dtype=torch.float64)
    history.write(0, range(graph.num_nodes), rows)
    history.commit()
    return history


@pytest.mark.parametrize("drawn", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("graph", "error"), [(STAR, 1e-6), (EXACT, 1e-14)], ids=["float32", "float64"]
)
def test_over_all_draws_the_mean_is_the_sum_and_the_variance_that_of_the_difference(
    graph, error, drawn
):
    """With weights of float64 the mean is exact to float64."""
    h = random(6, 2)
    old = random(6, 2, seed=1)
    history = history_of(graph, old)
    exact = full_sum(graph, h, 0)
    found = {"ns": [], "cv": []}
    for rows in itertools.combinations(range(5), drawn):
        batch = with_history(Fixed(graph, list(rows), "p")([0]), history)
        x = h[batch.front.parent_nid]
        found["ns"].append(neighbor_sampling(batch.flows[0], x)[0])
        found["cv"].append(control_variate(batch.flows[0], x)[0])
    p = graph.edata["p"].double().unsqueeze(1)
    for kind, values in (("ns", p * h[1:]), ("cv", p * (h - old)[1:])):
        estimates = torch.stack(found[kind])
        torch.testing.assert_close(estimates.mean(0), exact, rtol=0, atol=error)
        spread = (values - values.mean(0)).square().sum(0) / 4
        # of n times a mean of D of n without replacement
        expected = 25 / drawn * (1 - drawn / 5) * spread
        torch.testing.assert_close(estimates.var(0, unbiased=False), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
@given(graph=graphs(min_nodes=1), fanout=st.integers(1, 3), seed=st.integers(0, 99))
def test_exact_with_all_edges_and_where_the_history_is_right(dtype, error, graph, fanout, seed):
    weighted(graph, dtype)
    size = graph.num_nodes
    h = random(size, 3)
    old = random(size, 3, seed=1)
    exact = torch.stack([full_sum(graph, h, v) for v in range(size)])
    for rows, fanouts in ((old, [-1]), (h, [fanout])):
        batch = ControlVariateSampler(history_of(graph, rows), fanouts, seed=seed)(range(size))
        x = h[batch.front.parent_nid]
        torch.testing.assert_close(
            control_variate(batch.flows[0], x), exact, rtol=error, atol=error
        )
        both = control_variate_dropout(batch.flows[0], x, x)
        for one in both:
            torch.testing.assert_close(one, exact, rtol=error, atol=error)


def test_gradients_are_those_of_the_drawn_part_only():
    history = history_of(STAR, random(6, 2, seed=1))
    batch = with_history(Fixed(STAR, [1, 3], "p")([0]), history)
    x = random(6, 2)[batch.front.parent_nid].requires_grad_()
    (with_cv,) = torch.autograd.grad(
        control_variate(batch.flows[0], x).square().sum(), x, retain_graph=True
    )
    estimate = control_variate(batch.flows[0], x)
    (plain,) = torch.autograd.grad(
        neighbor_sampling(batch.flows[0], x), x, grad_outputs=2 * estimate.detach()
    )
    torch.testing.assert_close(with_cv, plain)
    assert all(not buffer.requires_grad for buffer in history.buffers())


def test_the_moments_of_estimates_under_dropout():
    """All draws of 2 of 5, times all masks of dropout 1/2: means, and variances of exact, NS, CV
    and CVD.
    """
    n = 5
    drawn = 2
    mean = random(6, 1)
    old = random(6, 1, seed=1)
    history = history_of(STAR, old)
    p = STAR.edata["p"].double()
    found: dict[str, list[Tensor]] = {"exact": [], "ns": [], "cv": [], "cvd": []}
    for mask in itertools.product([0.0, 2.0], repeat=n):
        h = mean * torch.tensor([1.0, *mask], dtype=torch.float64).unsqueeze(1)
        found["exact"].append(full_sum(STAR, h, 0))
        for rows in itertools.combinations(range(n), drawn):
            batch = with_history(Fixed(STAR, list(rows), "p")([0]), history)
            flow = batch.flows[0]
            ids = batch.front.parent_nid
            found["ns"].append(neighbor_sampling(flow, h[ids])[0])
            found["cv"].append(control_variate(flow, h[ids])[0])
            found["cvd"].append(control_variate_dropout(flow, h[ids], mean[ids])[0][0])
    moments = {kind: torch.cat(values).double() for kind, values in found.items()}
    full = full_sum(STAR, mean, 0).item()
    for values in moments.values():
        assert values.mean().item() == pytest.approx(full, abs=1e-6)
    # of dropout: h has the variance mean^2 for a rate of one half
    noise = float((p * mean[1:, 0]).square().sum())

    def of_draw(x: Tensor) -> float:
        return n**2 / drawn * (1 - drawn / n) * float(x.var())

    expected = {
        "exact": noise,
        "ns": of_draw(p * mean[1:, 0]) + n / drawn * noise,
        "cv": of_draw(p * (mean - old)[1:, 0]) + n / drawn * noise,
        "cvd": of_draw(p * (mean - old)[1:, 0]) + noise,
    }
    for kind, values in moments.items():
        assert values.var(unbiased=False).item() == pytest.approx(expected[kind], rel=1e-5)


def test_the_scale_of_a_node_that_draws_nothing_is_one():
    graph = Graph.from_edges([0, 1, 0], [2, 2, 1], num_nodes=4)
    history = History(graph, {1: 2}, inputs=torch.ones(4, 3))
    batch = ControlVariateSampler(history, [0, 1])([2, 3])
    assert batch.ldata[2]["scale"].tolist() == [2, 1]
    assert batch.ldata[1]["scale"].eq(1).all()
