"""Assertions about samplers: what they draw is reproducible, and estimates the whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._check import as_count
from nodeflow.random import Random
from nodeflow.sampling import Sampler
from nodeflow.testing.assertions import assert_same_node_flow


def assert_reproducible(sampler: Sampler, seeds: Any) -> None:
    """Assert that ``sampler`` draws the same NodeFlow for the same seeds and epoch, whatever happens around it.

    The same call is made twice; after draws of other epochs; with the global random state of Python, numpy and torch
    changed; and from another thread. That state is put back at the end.

    Raises AssertionError that says which call differed, and what differed first.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3], [0, 0, 0]), [2])
    >>> assert_reproducible(sampler, [0])
    """

    def other_epochs() -> None:
        for epoch in range(1, 4):
            sampler(seeds, epoch=epoch)

    def same() -> Any:
        return sampler(seeds, epoch=0)

    with ThreadPoolExecutor(1) as thread, _global_random_state() as change:
        change(0)
        first = same()
        tries: list[tuple[str, Callable[[], object], Callable[[], Any]]] = [
            ("a second call", lambda: None, same),
            ("a call after draws of other epochs", other_epochs, same),
            ("a call with another global random state", lambda: change(1), same),
            ("a call from another thread", lambda: None, lambda: thread.submit(same).result()),
        ]
        for name, before, call in tries:
            before()
            try:
                assert_same_node_flow(first, call())
            except AssertionError as error:
                raise AssertionError(f"{name} with the same seeds and epoch gives another NodeFlow: {error}") from None


@contextmanager
def _global_random_state() -> Iterator[Callable[[int], None]]:
    """Give a function that sets the global random state of Python, numpy and torch; put it back in the end."""

    def change(seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the global state is what is meant
        torch.default_generator.manual_seed(seed)

    python, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        try:
            yield change
        finally:
            random.setstate(python)
            np.random.set_state(arrays)  # noqa: NPY002


def assert_unbiased(sampler: Sampler, seeds: Any, *, draws: int = 2000, false_alarm: float = 1e-6) -> None:
    """Assert that weighted sums over the sampled edges of the seeds are unbiased for the sums over all their edges.

    Every node of the graph gets a fixed random number. For every seed, in every flow that has it as a destination in
    every draw (with ``include_dst`` that is all of them, else the last one), the estimator weights times the numbers of
    the sources are summed; their mean over epochs 0, 1, ... is compared with the sum over all edges of the seed in the
    graph, weighted with ``sampler.estimand()``.

    Args:
        sampler: its edges must be edges of ``sampler.graph``.
        seeds: nodes to look at; those with many neighbours and few draws tell most.
        draws: how many epochs are drawn. A bias is found when it is larger than about 5 standard errors, which
            shrink as ``1 / sqrt(draws)``.
        false_alarm: how probable it is that an unbiased sampler fails, over all seeds and flows together (a z-test,
            with Bonferroni's correction). This takes the means to be normal: where a sampler draws very rarely (less
            than about once in 100 draws) and then with a great weight, take more draws.

    The draws of an epoch are fixed, so a sampler that passes once passes always.

    Raises AssertionError that names the flow and the seed that are worst, and ValueError for no seeds, ``draws``
    below 2, or a ``false_alarm`` that is not between 0 and 1.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3], [0, 0, 0]), [2, 2])
    >>> assert_unbiased(sampler, [0], draws=500)
    """
    as_count(draws, "draws", 2)
    if not 0 < false_alarm < 1:
        raise ValueError(f"false_alarm must be above 0 and below 1, got {false_alarm}")
    nodes = sampler(seeds).seeds
    if len(nodes) == 0:
        raise ValueError("seeds must not be empty")
    x = Random(0).uniform(torch.arange(sampler.graph.num_nodes)).double()
    exact = _exact_sums(sampler, x, nodes)
    shape = (sampler.num_flows, len(nodes))
    total, squares, times = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
    for epoch in range(draws):
        for i, flow in enumerate(sampler(seeds, epoch=epoch).flows):
            if flow.num_dst == 0:  # without include_dst, where no node above has neighbours
                continue
            sums = flow.aggregate(x[flow.src_layer.parent_nid], "sum", weight=flow.weight.double())
            rows = flow.dst_layer.rows_of(nodes)
            there = rows >= 0
            error = torch.where(there, sums[rows.clamp(min=0)] - exact, 0)
            total[i] += error
            squares[i] += error**2
            times[i] += there
    mean = total / draws
    deviation = ((squares / draws - mean**2).clamp(min=0) / (draws - 1)).sqrt()
    tested = times == draws  # the last flow always
    allowed = NormalDist().inv_cdf(1 - false_alarm / (2 * int(tested.sum())))
    # estimator weights are float32
    excess = torch.where(tested, mean.abs() - allowed * deviation - 1e-6 * (1 + exact.abs()), -torch.inf)
    worst = int(excess.argmax())
    if excess.flatten()[worst] > 0:
        at, seed = divmod(worst, len(nodes))
        raise AssertionError(
            f"weighted sums over flow {at} are biased at seed {int(nodes[seed])}: their mean over {draws} draws is "
            f"{float(exact[seed] + mean[at, seed]):.6g}, the sum over all edges is {float(exact[seed]):.6g}, and the "
            f"two may differ by {float(allowed * deviation[at, seed]):.2g}"
        )


def _exact_sums(sampler: Sampler, x: Tensor, nodes: Tensor) -> Tensor:
    src, dst = sampler.graph.edges()
    near, far = (dst, src) if sampler.direction == "out" else (src, dst)
    return torch.zeros_like(x).index_add_(0, far, sampler.estimand() * x[near])[nodes]
