"""Assertions about NodeFlows and samplers: valid, the same, reproducible, unbiased; messages name
what is not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_array, as_count, as_ids, as_number, check_type, lasting
from nodeflow._core.base.types import IdsLike, NumbersLike, SeedsLike
from nodeflow._core.random import Random
from nodeflow.flow import Flow, NodeFlow, rows_between
from nodeflow.graph import Frame
from nodeflow.sampling import Sampler, first_of_epoch
from nodeflow.sampling.base import SamplerBase, SubgraphSampler

# the choice of seeds is independent of the numbers of the nodes
_ORDER = int.from_bytes(b"order", "big")
# minimum number of draws with a node, so that their mean is about normal
_LEAST = 100


@checked
def assert_valid(batch: NodeFlow) -> None:
    """Assert that every invariant of ``batch`` holds; the message names the first broken one.

    It is ``batch.validate()`` for tests: a broken invariant fails the test as an AssertionError,
    where ``validate`` raises ValueError, as programs expect.

    >>> from nodeflow import Graph, create_full_node_flow
    >>> assert_valid(create_full_node_flow(Graph.from_edges([0], [1]), 2))
    """
    try:
        batch.validate()
    except ValueError as error:
        raise AssertionError(str(error)) from error


@checked
def assert_same_node_flow(a: NodeFlow, b: NodeFlow, *, frames: bool = True) -> None:
    """Assert that two NodeFlows are the same, bit for bit: structure, ids, estimator weights, seed
    index and frames.

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
    for (name, x), (_, y) in zip(parts_of(a), parts_of(b), strict=True):
        if isinstance(x, Frame) and isinstance(y, Frame) and frames:
            _same(sorted(x), sorted(y), f"columns of {name}")
            for column in x:
                _same_tensor(x[column], y[column], f"{name}[{column!r}]")
        elif isinstance(x, Tensor) and isinstance(y, Tensor):
            _same_tensor(x, y, name)
        elif (x is None) != (y is None):
            raise AssertionError(f"only one of the NodeFlows has {name}")


def assert_reproducible(
    sampler: SamplerBase, seeds: SeedsLike, *, times: NumbersLike | None = None
) -> None:
    """Assert that ``sampler`` draws the same NodeFlow for the same seeds and epoch.

    The call is repeated: directly, after draws of other epochs, with other global random states of
    Python, numpy and torch, and from another thread. The global random states are restored at the
    end.

    Args:
        sampler: any sampler.
        seeds: the seeds of the calls.
        times: a time for every seed, for samplers that take times.

    Raises AssertionError that says which call differs, and names the first difference.

    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3], [0, 0, 0]), [2])
    >>> assert_reproducible(sampler, [0])
    """
    options = _options_of(sampler, times)
    call: Callable[..., NodeFlow] = partial(sampler, lasting(seeds), **options)
    # each call differs from the first in one thing that must not matter
    with ThreadPoolExecutor(1) as thread, _kept_random_state():
        _seed_all(0)
        first = call(epoch=0)
        alike = "with the same seeds and epoch"
        same(f"a second call {alike}", first, call(epoch=0))
        for epoch in range(1, 4):
            call(epoch=epoch)
        same(f"a call after draws of other epochs {alike}", first, call(epoch=0))
        _seed_all(1)
        same(f"a call with another global random state {alike}", first, call(epoch=0))
        same(f"a call from another thread {alike}", first, thread.submit(call, epoch=0).result())


def _options_of(sampler: SamplerBase, times: NumbersLike | None) -> dict[str, Any]:
    """Return the options of all calls: the times of the seeds, for samplers that take times."""
    options: dict[str, Any] = {}
    if times is not None:
        options["times"] = times
    return first_of_epoch(sampler, options)


def same(what: str, first: NodeFlow, again: NodeFlow) -> None:
    """Raise AssertionError that names ``what`` unless two NodeFlows are the same."""
    try:
        assert_same_node_flow(first, again)
    except AssertionError as error:
        raise AssertionError(f"{what} gives another NodeFlow: {error}") from None


def _seed_all(seed: int) -> None:
    """Set the global random states of Python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  the global state is what is meant
    torch.default_generator.manual_seed(seed)


@contextmanager
def _kept_random_state() -> Iterator[None]:
    """Restore the global random states of Python, numpy and torch at the end of the block."""
    python = random.getstate()
    arrays = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)  # noqa: NPY002


def parts_of(batch: NodeFlow) -> Iterator[tuple[str, Tensor | Frame | None]]:
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
    x = x.detach().cpu()
    y = y.detach().cpu()
    kind, other = ((part.dtype, tuple(part.shape), part.layout) for part in (x, y))
    _same(kind, other, f"type and shape of {name}")
    if x.layout == torch.sparse_csr:
        for part in ("crow_indices", "col_indices", "values"):
            _same_tensor(getattr(x, part)(), getattr(y, part)(), f"{name}.{part}()")
        return
    # bytes are compared, because 0 equals -0 and NaN does not equal itself
    differs = (tensor_as_bytes(x) != tensor_as_bytes(y)).nonzero()
    if len(differs):
        first = int(differs[0, 0]) // x.element_size()
        row = [int(i) for i in np.unravel_index(first, x.shape)]
        a = x[tuple(row)].item()
        b = y[tuple(row)].item()
        raise AssertionError(f"{name} differs first at {row}: {a} and {b}")


def tensor_as_bytes(x: Tensor) -> Tensor:
    """Return the bytes of a dense tensor, uint8 ``[numel * element size]``."""
    # torch refuses to view some empty tensors as another type
    if not x.numel():
        return torch.empty(0, dtype=torch.uint8)
    return x.contiguous().view(-1).view(torch.uint8)


def assert_unbiased(
    sampler: Sampler | SubgraphSampler,
    seeds: SeedsLike,
    *,
    times: NumbersLike | None = None,
    nodes: IdsLike | None = None,
    batch_size: int | None = None,
    draws: int = 2000,
    false_alarm: float = 1e-6,
) -> None:
    """Assert that weighted sums over sampled edges are unbiased estimates of the sums over all
    edges of a node.

    Every node of the graph gets a fixed random number x. In every flow of a draw, the sum of
    estimator weight times x of the source is computed at the destinations. The mean of these sums
    over epochs 0, 1, ... is compared with the exact sum: over all edges of the destination in the
    graph, each weighted with ``sampler.estimand()``.

    For a ``Sampler`` the destinations are the seeds, in every flow that has them as destinations in
    every draw (with ``include_dst`` all flows, else the last one). For a ``SubgraphSampler`` they
    are ``nodes``, and the sums must be unbiased *given that the node is in the subgraph*: the mean
    is over the draws that contain the node.

    Args:
        sampler: a sampler that chooses edges of ``sampler.graph``, layer by layer or as a subgraph.
        seeds: the seeds of the calls. For a ``Sampler``, take a few nodes with many neighbours of
            which few are drawn.
        times: a time for every seed, for samplers that take times; edges then count by
            ``sampler.estimand(time)``.
        nodes: parent ids of the destinations, for a ``SubgraphSampler`` only. None: the seeds where
            seeds are nodes, else all nodes. Nodes that are in fewer than ``min(100, draws)`` draws
            are not tested.
        batch_size: for a ``SubgraphSampler`` only: call the sampler with this number of the
            ``seeds``, other ones in every draw, as a loader with ``shuffle`` does. A
            ``ClusterSampler`` needs it, with all parts as seeds, because it draws nothing itself.
            None: all seeds in every draw.
        draws: number of epochs. The test finds a bias that is larger than about 5 standard errors,
            which shrink as ``1 / sqrt(draws)``.
        false_alarm: probability that an unbiased sampler fails, over all nodes and flows together
            (a z-test with Bonferroni's correction). The test takes the means to be normal. An edge
            that is drawn less than about once in 100 draws, and then has a large weight, needs more
            draws.

    Cost: that of ``draws`` batches, with a ``choose`` in Python about ``draws`` times the
    candidates of all flows, hubs among them. Begin with a few seeds and one flow, or on a part of
    the graph (``transform.subgraph``).

    The draws of an epoch are fixed, so a sampler that passes once passes always. Coefficients that
    are estimates themselves, as in ``SaintSampler(coefficients="presampled")``, have a bias that
    enough draws find.

    Raises AssertionError that names the flow and the node with the largest bias; TypeError for a
    sampler of another kind, or for ``nodes`` or ``batch_size`` with a ``Sampler``; ValueError for
    no seeds, for ``nodes`` of which none is in enough draws, for ``draws`` below 2, or a
    ``false_alarm`` that is not between 0 and 1.

    >>> from nodeflow import Graph, NeighborSampler, SaintSampler
    >>> graph = Graph.from_edges([1, 2, 3], [0, 0, 0])
    >>> assert_unbiased(NeighborSampler(graph, [2, 2]), [0], draws=500)
    >>> assert_unbiased(SaintSampler(graph, 2, kind="edge", budget=2), [0], draws=500)
    """
    as_count(draws, "draws", 2)
    as_number(false_alarm, "false_alarm", above=0, below=1)
    check_type(
        sampler,
        "sampler",
        Sampler | SubgraphSampler,
        "a nodeflow.Sampler or a nodeflow.sampling.base.SubgraphSampler, whose sums over flows can "
        "be compared with sums over the graph",
    )
    x = Random(0).uniform(torch.arange(sampler.graph.num_nodes)).double()
    ids = torch.as_tensor(as_array(seeds, "seeds"))
    if len(ids) == 0:
        raise ValueError("seeds must not be empty")
    if isinstance(sampler, SubgraphSampler):
        sums = _at_nodes(sampler, x, ids, nodes, batch_size, draws)
    elif nodes is not None or batch_size is not None:
        raise TypeError(
            f"nodes and batch_size are for samplers of subgraphs, {type(sampler).__name__} is none"
        )
    else:
        sums = _at_seeds(sampler, x, seeds, times, draws)
    _compare(sums, x, sampler.num_flows, draws, false_alarm)


def _compare(sums: _Sums, x: Tensor, num_flows: int, draws: int, false_alarm: float) -> None:
    """Compare the means of sums of ``draws`` draws with the exact ones; raises AssertionError."""
    exact = sums.exact.numpy()
    # of the errors of every flow and destination: sum, sum of squares, and number
    total = np.zeros((num_flows, len(exact)))
    squares = np.zeros_like(total)
    counts = np.zeros_like(total)
    for epoch in range(draws):
        for number, flow, rows in sums.drawn(epoch):
            is_there = (rows >= 0).numpy()
            sums_of_flow = flow.aggregate(x[flow.src_layer.parent_nid], weight=flow.weight.double())
            error = (sums_of_flow[rows].numpy() - exact) * is_there
            total[number] += error
            squares[number] += error * error
            counts[number] += is_there
    tested = counts >= sums.least
    if not tested.any():
        raise ValueError(
            f"none of the {len(exact)} nodes is in {sums.least} of the {draws} draws; take more "
            "draws, or nodes that are in more of them"
        )
    # sums in place of all errors: thousands of draws need no memory
    mean = total / np.maximum(counts, 1)
    variance = np.maximum(squares / np.maximum(counts, 1) - mean**2, 0)
    allowed = np.sqrt(variance / np.maximum(counts - 1, 1))
    allowed *= NormalDist().inv_cdf(1 - false_alarm / (2 * int(tested.sum())))
    # 1e-6 for estimator weights, which may be float32
    excess = np.abs(mean) - allowed - 1e-6 * (1 + np.abs(exact))
    worst = int(np.where(tested, excess, -np.inf).argmax())
    i, j = divmod(worst, len(exact))
    if tested[i, j] and excess[i, j] > 0:
        total = exact + mean
        where = f"flow {i} are biased at {sums.word} {int(sums.nodes[j])}"
        raise AssertionError(
            f"weighted sums over {where}: their mean over "
            f"{int(counts[i, j])} draws is {total[i, j]:.6g}, the sum over all edges, "
            f"weighted by sampler.estimand(), is {exact[j]:.6g}, and the two may differ by "
            f"{allowed[i, j]:.2g}; a sampler that leaves edges out on purpose overrides estimand() "
            "with 0 for them"
        )


class _Sums(NamedTuple):
    """The destinations whose sums are compared, the word for one in messages, exact sums, and the
    flows of a draw.

    A destination must be in ``least`` draws. ``drawn(epoch)`` gives the number of a flow, the flow,
    and the rows of the destinations, -1 for one that is not in it.
    """

    word: str
    nodes: Tensor
    exact: Tensor
    least: int
    drawn: Callable[[int], Iterable[tuple[int, Flow, Tensor]]]


def _at_seeds(
    sampler: Sampler, x: Tensor, seeds: SeedsLike, times: NumbersLike | None, draws: int
) -> _Sums:
    options = _options_of(sampler, times)
    first: NodeFlow = sampler(seeds, **options)
    nodes = first.seeds
    if times is None:
        exact = _exact_sums(sampler, x)[nodes]
    else:
        moments = as_array(times, "times").tolist()
        time_of = dict(zip(first.seed_index.tolist(), moments, strict=True))
        # a row of the last layer is a seed at one time
        rows = enumerate(nodes.tolist())
        exact = torch.stack([_exact_sums(sampler, x, time_of[row])[node] for row, node in rows])

    def drawn(epoch: int) -> Iterator[tuple[int, Flow, Tensor]]:
        for i, flow in enumerate(sampler(seeds, epoch=epoch, **options).flows):
            # none without include_dst where no node above has neighbours
            if flow.num_dst:
                yield i, flow, rows_between(flow.dst_layer, first.back)

    # a seed must be in the flow in every draw: the sum of one that is there by chance is
    # conditional on that draw
    return _Sums("seed", nodes, exact, draws, drawn)


def _at_nodes(
    sampler: SubgraphSampler,
    x: Tensor,
    seeds: Tensor,
    nodes: IdsLike | None,
    batch_size: int | None,
    draws: int,
) -> _Sums:
    if nodes is not None:
        ids = as_ids(nodes, "nodes", len(x))
        tested = torch.from_numpy(np.unique(ids))
    elif sampler.seed_kind == "node":
        tested = seeds.unique()
    else:
        tested = torch.arange(len(x))
    if batch_size is not None:
        as_count(batch_size, "batch_size", 1)

    def drawn(epoch: int) -> Iterator[tuple[int, Flow, Tensor]]:
        chosen = seeds
        if batch_size is not None:
            chosen = seeds[Random(_ORDER + epoch).permutation(len(seeds))[:batch_size]]
        flows = sampler(chosen, **first_of_epoch(sampler, {"epoch": epoch})).flows
        last = len(flows) - 1  # all flows of a subgraph are one
        if flows[last].num_dst:
            yield last, flows[last], flows[last].dst_layer.rows_of(tested)

    return _Sums("node", tested, _exact_sums(sampler, x)[tested], min(_LEAST, draws), drawn)


def _exact_sums(sampler: Any, x: Tensor, time: float | None = None) -> Tensor:
    """The sum over all edges of every node, float64 ``[num_nodes]``; with a time, over the edges
    until then.
    """
    src, dst = sampler.graph.edges()
    if time is None:
        counts = sampler.estimand()
    else:
        counts = sampler.estimand(time)
    sums = torch.zeros_like(x)
    direction = sampler.view.direction
    if direction != "out":
        sums.index_add_(0, dst, counts * x[src])
    if direction != "in":
        if direction == "both":  # a self-loop is one way
            counts = counts * (src != dst)
        sums.index_add_(0, src, counts * x[dst])
    return sums
