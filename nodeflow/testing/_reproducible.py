"""The assertion that equal calls of a sampler give equal NodeFlows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from nodeflow._base.types import NumbersLike, SeedsLike
from nodeflow.flow import NodeFlow
from nodeflow.sampling.base import SamplerBase
from nodeflow.testing._assertions import assert_same_node_flow


def assert_reproducible(sampler: SamplerBase, seeds: SeedsLike, *, times: NumbersLike | None = None) -> None:
    """Assert that ``sampler`` draws the same NodeFlow for the same seeds and epoch.

    The call is repeated: directly, after draws of other epochs, with other global random states of Python, numpy and
    torch, and from another thread. The global random states are restored at the end.

    Args:
        sampler: any sampler.
        seeds: the seeds of the calls.
        times: a time for every seed, for samplers that take times.

    Raises AssertionError that says which call differs, and names the first difference.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3], [0, 0, 0]), [2])
    >>> assert_reproducible(sampler, [0])
    """
    options: dict[str, Any] = {} if times is None else {"times": times}
    call: Callable[..., NodeFlow] = partial(sampler, seeds, **options)
    with ThreadPoolExecutor(1) as thread, _global_random_state() as change:
        change(0)
        first = call(epoch=0)

        def check(what: str, again: NodeFlow) -> None:
            try:
                assert_same_node_flow(first, again)
            except AssertionError as error:
                raise AssertionError(f"{what} with the same seeds and epoch gives another NodeFlow: {error}") from None

        check("a second call", call(epoch=0))
        for epoch in range(1, 4):
            call(epoch=epoch)
        check("a call after draws of other epochs", call(epoch=0))
        change(1)
        check("a call with another global random state", call(epoch=0))
        check("a call from another thread", thread.submit(call, epoch=0).result())


@contextmanager
def _global_random_state() -> Iterator[Callable[[int], None]]:
    """Give a function that sets the global random states of Python, numpy and torch; restore them at the end."""

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
