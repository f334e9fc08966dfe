"""Assertions about samplers: what they draw is reproducible, and estimates the whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_count
from nodeflow.flow import Layer, NodeFlow
from nodeflow.random import Random
from nodeflow.sampling import Sampler, SamplerBase
from nodeflow.testing._assertions import assert_same_node_flow


def assert_reproducible(sampler: SamplerBase, seeds: Any, *, times: Any = None) -> None:
    """Assert that ``sampler`` draws the same NodeFlow for the same seeds and epoch, whatever happens around it.

    The same call is made twice; after draws of other epochs; with the global random state of Python, numpy and torch
    changed; and from another thread. That state is put back at the end.

    Args:
        sampler: any sampler.
        seeds: what it is called with.
        times: a time for every seed, for samplers that take times.

    Raises AssertionError that says which call differed, and what differed first.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3], [0, 0, 0]), [2])
    >>> assert_reproducible(sampler, [0])
    """

    call: Callable[..., NodeFlow] = partial(sampler, seeds, **_times(times))

    def other_epochs() -> None:
        for epoch in range(1, 4):
            call(epoch=epoch)

    def same() -> NodeFlow:
        return call(epoch=0)

    with ThreadPoolExecutor(1) as thread, _global_random_state() as change:
        change(0)
        first = same()
        tries: list[tuple[str, Callable[[], object], Callable[[], Any]]] = [
            ("a second call", lambda: None, same),
            ("a call after draws of other epochs", other_epochs, same),
            ("a call with another global random state", lambda: change(1), same),
            ("a call from another thread", lambda: None, lambda: thread.submit(same).result()),
        ]
        for name, before, again in tries:
            before()
            try:
                assert_same_node_flow(first, again())
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


def assert_unbiased(
    sampler: Sampler, seeds: Any, *, times: Any = None, draws: int = 2000, false_alarm: float = 1e-6
) -> None:
    """Assert that weighted sums over the sampled edges of the seeds are unbiased for the sums over all their edges.

    Every node of the graph gets a fixed random number. For every seed, in every flow that has it as a destination in
    every draw (with ``include_dst`` that is all of them, else the last one), the estimator weights times the numbers of
    the sources are summed; their mean over epochs 0, 1, ... is compared with the sum over all edges of the seed in the
    graph, weighted with ``sampler.estimand()``.

    Args:
        sampler: one that chooses layer by layer (a ``Sampler``) among the edges of ``sampler.graph``. Sums over
            subgraphs are unbiased given that a node is in the subgraph, or not at all: test these in ways of their own.
        seeds: nodes to look at; those with many neighbours and few draws tell most.
        times: a time for every seed, for samplers that take times: sums are then over ``sampler.estimand(time)``.
        draws: how many epochs are drawn. A bias is found when it is larger than about 5 standard errors, which
            shrink as ``1 / sqrt(draws)``.
        false_alarm: how probable it is that an unbiased sampler fails, over all seeds and flows together (a z-test,
            with Bonferroni's correction). This takes the means to be normal: where a sampler draws very rarely (less
            than about once in 100 draws) and then with a great weight, take more draws.

    The draws of an epoch are fixed, so a sampler that passes once passes always.

    Raises AssertionError that names the flow and the seed that are worst, TypeError for a sampler of another kind, and
    ValueError for no seeds, ``draws`` below 2, or a ``false_alarm`` that is not between 0 and 1.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3], [0, 0, 0]), [2, 2])
    >>> assert_unbiased(sampler, [0], draws=500)
    """
    as_count(draws, "draws", 2)
    if not 0 < false_alarm < 1:
        raise ValueError(f"false_alarm must be above 0 and below 1, got {false_alarm}")
    if not isinstance(sampler, Sampler):
        raise TypeError(
            "sampler must choose edges layer by layer, so that sums over flows can be compared with sums over the "
            f"graph; {type(sampler).__name__} is not a nodeflow.Sampler"
        )
    call: Callable[..., NodeFlow] = partial(sampler, seeds, **_times(times))
    first = call()
    nodes, contexts = first.seeds, first.back.context
    if len(nodes) == 0:
        raise ValueError("seeds must not be empty")
    x = Random(0).uniform(torch.arange(sampler.graph.num_nodes)).double()
    if times is None:
        exact = _exact_sums(sampler, x)[nodes]
    else:
        when = torch.as_tensor(times if isinstance(times, Tensor) else np.asarray(times))
        distinct, place = torch.unique(when, return_inverse=True)
        own = torch.empty_like(nodes).index_copy_(0, first.seed_index, place)  # of every row, its time
        sums_at = torch.stack([_exact_sums(sampler, x, time) for time in distinct.tolist()])
        exact = sums_at[own, nodes]
    shape = (sampler.num_flows, len(nodes))
    total, squares, times = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
    for epoch in range(draws):
        for i, flow in enumerate(call(epoch=epoch).flows):
            if flow.num_dst == 0:  # without include_dst, where no node above has neighbours
                continue
            sums = flow.aggregate(x[flow.src_layer.parent_nid], "sum", weight=flow.weight.double())
            rows = _rows_of(flow.dst_layer, nodes, contexts)
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


def _times(times: Any) -> dict[str, Any]:
    return {} if times is None else {"times": times}


def _rows_of(layer: Layer, nodes: Tensor, contexts: Tensor | None) -> Tensor:
    """Rows of nodes, each in its context, in a layer; -1 where it has none."""
    if contexts is None or layer.context is None:
        return layer.rows_of(nodes)
    rows = {pair: i for i, pair in enumerate(zip(layer.parent_nid.tolist(), layer.context.tolist(), strict=True))}
    return torch.tensor([rows.get(pair, -1) for pair in zip(nodes.tolist(), contexts.tolist(), strict=True)])


def _exact_sums(sampler: Any, x: Tensor, time: float | None = None) -> Tensor:
    """The sum over all edges of every node, float64 ``[num_nodes]``; with a time, over those that it sees."""
    src, dst = sampler.graph.edges()
    near, far = (dst, src) if sampler.direction == "out" else (src, dst)
    counts = sampler.estimand() if time is None else sampler.estimand(time)
    return torch.zeros_like(x).index_add_(0, far, counts * x[near])
