"""Assertions about NodeFlows, and about the calls of a sampler; their messages name the first difference."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.types import NumbersLike, SeedsLike
from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame
from nodeflow.sampling.base import SamplerBase


def assert_valid(batch: NodeFlow) -> None:
    """Assert that every invariant of ``batch`` holds; the message names the first broken one.

    It is ``batch.validate()`` for tests: a broken invariant fails the test as an AssertionError, where ``validate``
    raises ValueError, as programs expect.

    >>> from nodeflow import Graph, create_full_node_flow
    >>> assert_valid(create_full_node_flow(Graph.from_edges([0], [1]), 2))
    """
    try:
        batch.validate()
    except ValueError as error:
        raise AssertionError(str(error)) from error


def assert_same_node_flow(a: NodeFlow, b: NodeFlow, *, frames: bool = True) -> None:
    """Assert that two NodeFlows are the same, bit for bit: structure, ids, estimator weights, seed index and frames.

    Args:
        a, b: the NodeFlows; their parent graphs are not compared.
        frames: compare the columns of layers, flows and seeds too.

    Raises AssertionError that names the first difference.

    >>> from nodeflow import FullSampler, Graph
    >>> sampler = FullSampler(Graph.from_edges([0, 1], [1, 2]), num_flows=2)
    >>> assert_same_node_flow(sampler([2]), sampler([2]))
    >>> assert_same_node_flow(sampler([2]), sampler([1]))
    Traceback (most recent call last):
        ...
    AssertionError: layer sizes differ: (3, 2, 1) and (2, 2, 1)
    """
    _same(a.layer_sizes, b.layer_sizes, "layer sizes")
    _same(a.flows.pairs(), b.flows.pairs(), "pairs of layers joined by flows")
    for (name, x), (_, y) in zip(_parts(a), _parts(b), strict=True):
        if isinstance(x, Frame) and isinstance(y, Frame) and frames:
            _same(sorted(x), sorted(y), f"columns of {name}")
            for column in x:
                _same_tensor(x[column], y[column], f"{name}[{column!r}]")
        elif isinstance(x, Tensor) and isinstance(y, Tensor):
            _same_tensor(x, y, name)
        elif (x is None) != (y is None):
            raise AssertionError(f"only one of the NodeFlows has {name}")


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
    """Yield a function that sets the global random states of Python, numpy and torch; restore them at the end."""

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


def _parts(batch: NodeFlow) -> Iterator[tuple[str, Tensor | Frame | None]]:
    """Return all parts of a NodeFlow by name; None stands for missing ids."""
    for i, layer in enumerate(batch.layers):
        yield f"layers[{i}].parent_nid", layer.parent_nid if layer.has_parent else None
        yield f"layers[{i}].context", layer.context
        yield f"layers[{i}].data", layer.data
    for (i, j), flow in batch.flows.items():
        yield f"flows[{i}, {j}].indptr", flow.indptr
        yield f"flows[{i}, {j}].indices", flow.indices
        yield f"flows[{i}, {j}].parent_eid", flow.parent_eid if flow.has_parent else None
        yield f"flows[{i}, {j}].weight", flow.weight
        yield f"flows[{i}, {j}].data", flow.data
    yield "seed_index", batch.seed_index
    yield "seed_ids", batch.seed_ids if batch.back.has_parent else None
    yield "seed_data", batch.seed_data


def _same(x: object, y: object, name: str) -> None:
    if x != y:
        raise AssertionError(f"{name} differ: {x} and {y}")


def _same_tensor(x: Tensor, y: Tensor, name: str) -> None:
    x, y = x.detach().cpu(), y.detach().cpu()
    _same((x.dtype, tuple(x.shape), x.layout), (y.dtype, tuple(y.shape), y.layout), f"type and shape of {name}")
    if x.layout == torch.sparse_csr:
        for part in ("crow_indices", "col_indices", "values"):
            _same_tensor(getattr(x, part)(), getattr(y, part)(), f"{name}.{part}()")
        return
    # bytes are compared, because 0 equals -0 and NaN does not equal itself
    differs = (_bytes(x) != _bytes(y)).nonzero()
    if len(differs):
        first = int(differs[0, 0]) // x.element_size()
        row = tuple(int(i) for i in torch.unravel_index(torch.tensor(first), x.shape))
        raise AssertionError(f"{name} differs first at {list(row)}: {x[row].item()} and {y[row].item()}")


def _bytes(x: Tensor) -> Tensor:
    # torch refuses to view some empty tensors as another type
    return x.contiguous().view(-1).view(torch.uint8) if x.numel() else torch.empty(0, dtype=torch.uint8)
