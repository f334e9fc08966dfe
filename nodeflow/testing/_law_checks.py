"""Statistical checks of a sampler: estimator weights unbiased edge by edge, pairs by their law,
hubs in all parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.flow import NodeFlow, rows_between
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import SubgraphSampler
from nodeflow.testing._assertions import assert_unbiased
from nodeflow.testing._run import FALSE_ALARM, Skipped
from nodeflow.testing._sampler_case import STAGES, SamplerCase
from nodeflow.testing._structure_checks import parents

_TESTS = 3 * len(STAGES)  # marginals, pairs, hubs
_CASES = 2  # the given graph and small ones
_SEEN = 40  # draws of an edge from which its mean is about normal
_RARE = 60  # expected draws of an edge that has fewer than ``_SEEN``
# the largest ratio of columns on the graphs that checks make, see ``SamplerCase.probe``
_SPREAD = 4
# degree of a hub, how many of its first and of its last edges are compared, and about how many are
# drawn in all. Places beyond 2**16 need more than 16 bits; a number of 16 bits modulo 2**16 - 2**14
# is one of the first 2**14 places twice as often
_HUBS = ((90_000, 90_000 - 2**16, 200), (2**16 - 2**14, 2**14, 900))
_HUB_TESTS = 2 * len(_HUBS)  # their ends, and all their edges
_SYMMETRIC = 2 * math.e**3 / 9
_HUB_CALLS = 60  # the least number of draws: of fewer, that all differ in one way may be chance
_HUB_EDGES = 1_000_000  # of a hub, drawn in all calls: not many more
_LARGEST = 1_000  # edges of seeds in a given graph on which the statistical checks run too


class Draws:
    """The weights and counts of the candidate edges of the seeds, draw by draw.

    ``weights`` and ``counts`` are ``[draws, flows, candidates]``; ``exact`` is what an edge's
    weights have as their mean, ``row`` the index of its destination, ``group`` the group of edges
    that are alike.
    """

    def __init__(self, case: SamplerCase) -> None:
        sampler: Any = case.sampler
        if not isinstance(sampler, Sampler):
            raise Skipped("it does not derive from Sampler: its flows have no candidates")
        with suppress(TypeError):
            first = case.call()
            nodes = first.seeds
            candidates = sampler.candidates(nodes)
            self.row = candidates.rows.numpy()
            self.eid = candidates.eid.numpy()
            times = [case.times[int(v)] for v in nodes] if case.times else []
            whole: Any = sampler.estimand
            if not len(self.eid):
                raise Skipped("the seeds have no edges")
            if len(self.eid) > _LARGEST and case.groups is None:
                raise Skipped(
                    f"statistical checks run on seeds of at most {_LARGEST} edges together"
                )
            # a row of numbers of the candidates for each time, or one for all
            each = [whole(time)[candidates.eid] for time in times] or [whole()[candidates.eid]]
            rows = candidates.rows if times else torch.zeros_like(candidates.rows)
            self.exact: NDArray[np.float64] = torch.stack(each).gather(0, rows[None])[0].numpy()
            keys = self.eid if case.groups is None else case.groups[self.eid]
            # the rows of the copies of a seed are alike: an edge belongs to one of them
            self.group = np.unique(keys, return_inverse=True)[1]
            self.case = case
            self.back = first.back
            self.nodes = nodes
            keys = self.row * case.graph.num_edges + self.eid
            self.sorted = keys.argsort(kind="stable")
            self.keys = keys[self.sorted]
            self.tested = sampler.num_flows if sampler.include_dst else 1
            self.weights = np.zeros((0, self.tested, len(self.eid)))
            self.counts = np.zeros((0, self.tested, len(self.eid)), np.int64)
            return
        raise Skipped("it estimates no sum (estimand raises TypeError)")

    def extend(self, size: int) -> None:
        """Draw until there are ``size`` draws."""
        start = len(self.weights)
        if size <= start:
            return
        weights = np.zeros((size - start, *self.weights.shape[1:]))
        counts = np.zeros(weights.shape, np.int64)
        for epoch in range(start, size):
            self._add(self.case.call(epoch=epoch), weights[epoch - start], counts[epoch - start])
        self.weights = np.concatenate([self.weights, weights])
        self.counts = np.concatenate([self.counts, counts])

    def by_group(self, values: Array) -> Array:
        """Return the sums ``[..., groups]`` of ``values`` ``[..., candidates]`` over the candidates
        of each group.
        """
        order = self.group.argsort(kind="stable")
        begins = np.searchsorted(self.group[order], np.arange(int(self.group.max()) + 1))
        return np.add.reduceat(values[..., order], begins, axis=-1)

    def _add(self, batch: NodeFlow, weights: Array, counts: Array) -> None:
        num_edges = self.case.graph.num_edges
        flows = batch.flows
        for i in range(self.tested):
            flow = flows[len(flows) - self.tested + i]
            rows = rows_between(flow.dst_layer, self.back).numpy()
            seed_of = np.full(flow.num_dst + 1, -1)
            seed_of[rows] = np.arange(len(rows))
            row = seed_of[flow.edges()[1].numpy()]
            at = row >= 0
            eid = flow.parent_eid.numpy()[at]
            keys = row[at] * num_edges + eid
            place = np.append(self.sorted, 0)[np.searchsorted(self.keys, keys)]
            is_candidate = (self.row[place] == row[at]) & (self.eid[place] == eid)
            if not is_candidate.all():
                wrong = int(is_candidate.argmin())
                node = int(self.nodes[row[at][wrong]])
                raise AssertionError(
                    f"edge {int(eid[wrong])} is drawn for node {node}, but it is none of its "
                    "candidates"
                )
            weights[i] = np.bincount(place, flow.weight.numpy()[at], len(self.eid))
            counts[i] = np.bincount(place, minlength=len(self.eid))


def _draws(case: SamplerCase) -> Draws:
    draws: Draws = case.kept.setdefault("draws", None) or Draws(case)
    case.kept["draws"] = draws
    return draws


def marginals(case: SamplerCase) -> float | None:
    """The mean weight of every edge is its number in ``estimand()``: weighted sums over the sample
    are unbiased.
    """
    if isinstance(case.sampler, SubgraphSampler):
        return _subgraphs(case)
    return _in_stages(case, _means)


def _in_stages(case: SamplerCase, test: Callable[[Draws, int], float | None]) -> float | None:
    """Test after every stage; a case made from this one to shrink it ends at the stage that
    failed.
    """
    draws = _draws(case)
    bias = None
    for i, stage in enumerate(case.stages):
        draws.extend(stage)
        try:
            bias = test(draws, stage)
        except AssertionError:
            case.stages = case.stages[: i + 1]
            raise
    if bias is None:
        raise Skipped(
            f"no edge was drawn {_SEEN} times in {len(draws.weights)} draws: too few to compare "
            "means"
        )
    return bias


def _subgraphs(case: SamplerCase) -> float | None:
    if case.sampler.seed_kind == "part":
        raise Skipped(
            "seeds are parts: assert_unbiased takes batch_size=, and draws other parts each time"
        )
    if case.groups is None and case.graph.num_edges > _LARGEST:
        raise Skipped(f"statistical checks of subgraphs run on graphs of at most {_LARGEST} edges")
    assert isinstance(case.sampler, SubgraphSampler)
    case.draws += STAGES[1]
    try:
        assert_unbiased(
            case.sampler, case.seeds, draws=STAGES[1], false_alarm=FALSE_ALARM / (_TESTS * _CASES)
        )
    except (ValueError, TypeError) as error:
        raise Skipped(str(error)) from None
    return None


def _means(draws: Draws, stage: int) -> float | None:
    """Test the means of groups of edges after ``stage`` draws; returns the smallest bias that would
    be seen.
    """
    weights = draws.weights[:stage]
    counts = draws.counts[:stage]
    exact = draws.exact
    size = np.bincount(draws.group)
    # [draws, flows, groups], the mean over the edges that are alike
    error = draws.by_group(weights - exact) / size
    mean = error.mean(0)
    of_draws = error.var(0) / stage
    total = np.abs(weights).sum(0)
    squares = (weights**2).sum(0)
    # of one draw, by the weights seen: weight * p is exact, so the variance is exact * (weight -
    # exact)
    typical = np.divide(squares, total, out=np.zeros_like(total), where=total > 0)
    by_weight = draws.by_group(np.clip(np.abs(exact) * typical - exact**2, 0, None)) / (
        size**2 * stage
    )
    deviation = np.sqrt(np.maximum(of_draws, by_weight))
    seen = draws.by_group(counts.sum(0))
    limit = NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * _TESTS * _CASES * mean.size))
    wanted = draws.by_group(exact) / size
    tested = seen >= _SEEN
    excess = np.where(
        tested, np.abs(mean) - limit * deviation - 1e-5 * (1 + np.abs(wanted)), -np.inf
    )
    # others at its node may be off too, by more where they count more: the most significant one is
    # named
    significance = np.divide(
        np.abs(mean), deviation, out=np.full_like(mean, np.inf), where=deviation > 0
    )
    at = np.unravel_index(int(np.where(excess > 0, significance, -np.inf).argmax()), excess.shape)
    name = _name(draws, int(at[1]))
    if excess[at] > 0:
        raise AssertionError(
            f"the mean weight of {name} in flow {int(at[0]) - draws.tested} over {stage} draws is "
            f"{wanted[at[1]] + mean[at]:.4g}, and should be {wanted[at[1]]:.4g} (estimand()); the "
            f"two may differ by {limit * deviation[at]:.2g}"
        )
    if draws.case.groups is not None:  # columns are of one size here, and with them probabilities
        largest = _SPREAD * np.abs(weights).max(axis=(0, 2))[:, None]
        # where nothing at all is drawn, any edge that counts is missing
        expected = np.divide(
            stage * size * np.abs(wanted),
            largest,
            out=np.full_like(mean, np.inf),
            where=largest > 0,
        )
        rare = (seen < _SEEN) & (expected >= _RARE) & (wanted != 0)
        if rare.any():
            flow, group = np.argwhere(rare)[0]
            raise AssertionError(
                f"{_name(draws, int(group))} was drawn {int(seen[flow, group])} times in {stage} "
                f"draws, but counts {wanted[group]:.4g} in estimand(), and other weights are at "
                f"most {largest[flow, 0] / _SPREAD:.3g}"
            )
    relative = np.where(tested, limit * deviation / np.maximum(np.abs(wanted), 1e-9), 0)
    return float(relative.max()) if tested.any() else None


def _name(draws: Draws, group: int) -> str:
    first = int((draws.group == group).argmax())
    node = int(draws.nodes[draws.row[first]])
    place = int(first - (draws.row < draws.row[first]).sum())
    degree = int((draws.row == draws.row[first]).sum())
    return f"edge {int(draws.eid[first])} (place {place} of the {degree} of node {node})"


def pairs(case: SamplerCase) -> float | None:
    """Two edges of a destination are drawn together as often as the law says, wherever they
    stand.
    """
    if case.law is None:
        raise Skipped(
            "the law of pairs is not known; pass pairs='uniform' or 'independent' where it is one "
            "of these"
        )
    return _in_stages(case, _pair_rates)


def _pair_rates(draws: Draws, stage: int) -> float | None:
    """Test the rates of pairs in the last flow after ``stage`` draws."""
    law = draws.case.law
    replace = getattr(draws.case.sampler, "replace", False)
    counts = draws.counts[:stage, -1]
    weights = draws.weights[:stage, -1]
    # weights of edges where they are drawn, over their exact numbers: so the size of a product is
    # known of pairs that were never drawn together too
    total = weights.sum(0) * draws.exact
    sizes = np.divide((weights**2).sum(0), total, out=np.zeros_like(total), where=total != 0)
    of_pair: dict[tuple[int, int], list[Array]] = {}
    typical_of: dict[tuple[int, int], float] = {}
    for row in range(int(draws.row.max()) + 1):
        # what a seed of a time does not see counts 0
        alive = (draws.row == row) & ((draws.exact != 0) | (not draws.case.times))
        own = np.flatnonzero(alive)
        degree = int(alive.sum())
        drawn = counts[:, alive].sum(1)
        own = own[np.argsort(draws.group[own])][:8]
        for a in range(len(own)):
            for b in range(a):
                i = own[b]
                j = own[a]
                pair = int(draws.group[i]), int(draws.group[j])
                if law == "uniform":
                    products = counts[:, i] * counts[:, j]
                    expected = uniform_pairs(degree, drawn, replace)
                    typical = 1.0
                else:
                    products = weights[:, i] * weights[:, j] / (draws.exact[i] * draws.exact[j])
                    expected = np.ones(stage)
                    typical = float(sizes[i] * sizes[j])
                of_pair.setdefault(pair, []).append(np.stack([products, expected]))
                typical_of[pair] = max(typical, typical_of.get(pair, 0.0))
    if not of_pair:
        raise Skipped("no seed has two edges")
    limit = NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * _TESTS * _CASES * len(of_pair)))
    bias = 0.0
    for (a, b), several in of_pair.items():
        products, expected = np.mean(several, axis=0)
        error = products - expected
        wanted = expected.mean()
        size = len(several) * stage
        # variance of a pair that occurs as often as the law says, of the size that its products
        # have
        mass = products.sum()
        typical = typical_of[a, b]
        if mass:
            typical = max(
                typical, float((np.array(several)[:, 0] ** 2).sum() / (mass * len(several)))
            )
        if typical == 0:
            continue  # one of the two is never drawn
        by_law = max(wanted * typical - wanted**2, 0) / size
        deviation = float(np.sqrt(max(error.var() / stage, by_law)))
        if wanted * size < _RARE * max(1.0, typical):
            continue
        bias = max(bias, limit * deviation / wanted)
        if abs(error.mean()) > limit * deviation + 1e-5:
            raise AssertionError(
                f"{_name(draws, a)} and {_name(draws, b)} are drawn together at a rate of "
                f"{products.mean():.4g}, which should be {wanted:.4g} ({law}) and may differ by "
                f"{limit * deviation:.2g} after {stage} draws"
            )
    return bias or None


def uniform_pairs(degree: int, drawn: Ints, replace: bool) -> NDArray[np.float64]:
    """Return the mean product of the counts of two edges, where ``drawn`` of ``degree`` edges are
    drawn uniformly.

    Without replacement all sets of the size are equally likely: k (k - 1) / (d (d - 1)); with it
    all sequences: k (k - 1) / d^2.

    >>> uniform_pairs(3, np.array([1, 2]), False).tolist()
    [0.0, 0.3333333333333333]
    """
    other = degree if replace else max(degree - 1, 1)
    return drawn * (drawn - 1) / (degree * other)


def hubs(case: SamplerCase) -> float | None:
    """Of nodes with very many edges the last are drawn as often as the first, none twice; weights
    count them all.
    """
    if not isinstance(case.sampler, Sampler) or case.sampler.seed_kind != "node":
        raise Skipped("it does not derive from Sampler")
    return max(_hub(case, *sizes) for sizes in _HUBS)


def _hub(case: SamplerCase, degree: int, compared: int, edges: int) -> float:
    hub = case.hub(degree)
    sampler: Any = hub.sampler
    candidates = sampler.candidates(torch.tensor(hub.seeds))
    try:
        number = sampler.estimand(*hub.times.values()).numpy()[candidates.eid.numpy()]
    except TypeError as error:
        raise Skipped("it estimates no sum (estimand raises TypeError)") from error
    part = np.full(hub.graph.num_edges, -1)
    part[candidates.eid.numpy()] = 1  # between the two that are compared
    part[candidates.eid.numpy()[:compared]] = 0
    part[candidates.eid.numpy()[-compared:]] = 2
    drawn = float(np.mean([hub.call(epoch=epoch).flow_sizes[-1] for epoch in range(3)]))
    calls = int(min(max(edges / max(drawn, 1), _HUB_CALLS), _HUB_EDGES / max(drawn, 1), 600))
    case.draws += calls
    sums = np.zeros((calls, 3))
    seen = 0
    squares = 0.0
    for epoch in range(calls):
        flow = hub.call(epoch=epoch).flows[-1]
        parents_of = parents(flow)
        assert bool((parents_of[1] == hub.seeds[0]).all()), "an edge of a hub goes to another node"
        eid = flow.parent_eid.numpy()
        assert not len(eid) or eid.min() >= 0, "an edge of a hub has no id"
        distinct = len(np.unique(eid)) == len(eid) or getattr(sampler, "replace", False)
        assert distinct, f"a node with {len(number):,} edges draws one of them twice"
        weight = flow.weight.double().numpy()
        sums[epoch] = np.bincount(part[eid], weight, 3)
        seen = seen + len(eid)
        squares = squares + float((weight**2).sum())
    if seen < 3 * _SEEN:
        raise Skipped(
            f"{seen} edges of a hub were drawn in {calls} draws, which is too few to compare parts"
        )
    exact = np.array(
        [number[:compared].sum(), number[compared:-compared].sum(), number[-compared:].sum()]
    )
    typical = squares / max(float(sums.sum()), 1e-9)
    _check_total(sums.sum(1), number, typical)
    return _ends_alike(sums, exact, typical, len(number), compared)


def _limit() -> float:
    """The deviations of a normal variable at which a test of one hub fails."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * _SYMMETRIC * _TESTS * _CASES * _HUB_TESTS))


def _check_total(sums: Array, number: Array, typical: float) -> None:
    """Compare the mean sum of all weights with the exact one; skewed weights make it too small, but
    not half of it.
    """
    total = float(number.sum())
    by_weight = abs(total) * max(typical - total / len(number), 0) / len(sums)
    allowed = max(
        _limit() * float(np.sqrt(max(sums.var() / len(sums), by_weight))),
        float(np.abs(number).sum()) / 2,
    )
    assert abs(sums.mean() - total) <= allowed, (
        f"the edges of a node with {len(number):,} have weights of {sums.mean():,.0f} in the mean, "
        f"and should have {total:,.0f}; the two may differ by {allowed:,.0f} after {len(sums)} "
        "draws"
    )


def _ends_alike(sums: Array, exact: Array, typical: float, degree: int, compared: int) -> float:
    """Compare the mean sums of the first and the last edges; a drawn unit of weight is on an edge
    of ``typical``.

    They are compared with each other, because weights may be very skewed, such as one over the
    smallest of many random numbers, and then a mean is below the exact number in most runs. Edges
    of a hub are alike, so the difference is as likely positive as negative. Of such variables, a
    sum over the root of the sum of squares has tails of at most ``_SYMMETRIC`` times those of a
    normal variable, however few they are (Pinelis 1994, after Efron 1969).
    """
    difference = exact[2] - exact[0]
    total = max(exact.sum(), 1e-9)
    error = sums[:, 2] - sums[:, 0] - difference
    # few draws may all be alike by chance: at least the variance of as many independent draws, each
    # of weight typical
    variance = (
        (exact[0] + exact[2] - difference**2 / total) * max(typical - total / degree, 0) / len(sums)
    )
    deviation = float(np.sqrt(max((error**2).sum() / len(sums) ** 2, variance)))
    allowed = _limit() * deviation + 1e-4 * (1 + abs(exact[0]) + abs(exact[2]))
    first, last = sums.mean(0)[[0, 2]]
    assert abs(error.mean()) <= allowed, (
        f"of a node with {degree:,} edges the last {compared:,} have weights of {last:,.0f} in the "
        f"mean, and the first {compared:,} of {first:,.0f}; they should have {exact[2]:,.0f} and "
        f"{exact[0]:,.0f}, and their difference may be off by {allowed:,.0f} after {len(sums)} "
        "draws"
    )
    return _limit() * deviation / max(float(exact[[0, 2]].min()), 1e-9)
