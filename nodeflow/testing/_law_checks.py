"""Statistical checks of a sampler: weights are unbiased edge by edge, pairs keep their law, and
hubs draw from all of their edges.

All are z-tests; the rate of false alarms is that of all tests of a call together (Bonferroni).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from statistics import NormalDist
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow.flow import Flow, NodeFlow, rows_between
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import SubgraphSampler
from nodeflow.testing._assertions import assert_unbiased
from nodeflow.testing._run import Skipped
from nodeflow.testing._sampler_case import MANY, SamplerCase
from nodeflow.testing._sampler_checks import parents

FALSE_ALARM = 1e-6
"""The probability that the checks of one call fail on a sampler without a bias, all together."""
_TESTS = 3  # marginals, pairs, hubs
_CASES = 2  # the given graph and small ones
# draws of an edge from which its mean is about normal
_SEEN = 40
# expected draws of an edge that has fewer than ``_SEEN``
_RARE = 60
# the largest ratio of columns on the graphs that checks make, see ``_graphs.graph_like``
_SPREAD = 4
# degree of a hub, how many of its first and of its last edges are compared, and about how many are
# drawn in all. Places beyond 2**16 need more than 16 bits; a number of 16 bits modulo 2**16 - 2**14
# is one of the first 2**14 places twice as often
_HUBS = ((90_000, 90_000 - 2**16, 200), (2**16 - 2**14, 2**14, 900))
_HUB_TESTS = 2 * len(_HUBS)  # their ends, and all their edges
_SYMMETRIC = 2 * math.e**3 / 9
# the least number of draws: of fewer, that all differ in one way may be chance
_HUB_CALLS = 60
_MOST_CALLS = 600
# of a hub, drawn in all calls: not many more
_HUB_EDGES = 1_000_000
# edges of seeds in a given graph on which the statistical checks run too
_LARGEST = 1_000
# edges of a destination whose pairs are compared
_PAIRED = 8


class Draws:
    """The weights and counts of the candidate edges of the seeds, in all draws of a case.

    ``weights`` and ``counts`` are ``[draws, flows, candidates]``; ``exact`` is the mean that the
    weights of an edge should have, ``row`` the index of its destination, ``group`` the group of
    edges that are alike.
    """

    def __init__(self, case: SamplerCase) -> None:
        sampler = case.sampler
        if not isinstance(sampler, Sampler):
            raise Skipped("it does not derive from Sampler: its flows have no candidates")
        first = case.call()
        candidates = sampler.candidates(first.seeds)
        self.case = case
        self.back = first.back
        self.nodes = first.seeds
        self.row = candidates.rows.numpy()
        self.eid = candidates.eid.numpy()
        if not len(self.eid):
            raise Skipped("the seeds have no edges")
        if len(self.eid) > _LARGEST and case.groups is None:
            raise Skipped(f"statistical checks run on seeds of at most {_LARGEST} edges together")
        self.exact = np.zeros(len(self.eid))
        for row, node in enumerate(self.nodes.tolist()):
            is_candidate = self.row == row
            self.exact[is_candidate] = case.estimand(node).numpy()[self.eid[is_candidate]]
        # the rows of the copies of a seed are alike: an edge belongs to one of them
        if case.groups is None:
            groups = self.eid
        else:
            groups = case.groups[self.eid]
        self.group = np.unique(groups, return_inverse=True)[1]
        self.keys = self._keys(self.row, self.eid)
        self.order = self.keys.argsort(kind="stable")
        self.tested = 1
        if sampler.include_dst:
            self.tested = sampler.num_flows
        self.weights = np.zeros((case.size, self.tested, len(self.eid)))
        self.counts = self.weights.astype(np.int64)
        for epoch in range(case.size):
            self._add(case.call(epoch=epoch), self.weights[epoch], self.counts[epoch])

    def _keys(self, rows: Ints, ids: Ints) -> Ints:
        """A number for every pair of a row and an edge."""
        return rows * self.case.graph.num_edges + ids

    def by_group(self, values: Array) -> Array:
        """Return the sums ``[..., groups]`` of ``values`` ``[..., candidates]`` over the candidates
        of each group.
        """
        # a product with zeros and ones sums all groups at once, whatever their order
        return values @ np.eye(int(self.group.max()) + 1)[self.group]

    def _add(self, batch: NodeFlow, weights: Array, counts: Array) -> None:
        """Count the edges of the last flows of a batch."""
        for i, flow in enumerate(list(batch.flows)[-self.tested :]):
            # a flow may hold other destinations than the seeds, in another order
            rows = rows_between(flow.dst_layer, self.back).numpy()
            # the last entry is for seeds that are not in the flow, whose row is -1
            seed_of = np.full(flow.num_dst + 1, -1)
            seed_of[rows] = np.arange(len(rows))
            row = seed_of[flow.edges()[1].numpy()]
            is_of_seed = row >= 0
            row = row[is_of_seed]
            eid = flow.parent_eid.numpy()[is_of_seed]
            nearest = np.searchsorted(self.keys, self._keys(row, eid), sorter=self.order)
            # the last place is that of keys beyond all
            place = np.append(self.order, 0)[nearest]
            is_candidate = (self.row[place] == row) & (self.eid[place] == eid)
            if not is_candidate.all():
                wrong = int(is_candidate.argmin())
                raise AssertionError(
                    f"edge {eid[wrong]} is drawn for node {int(self.nodes[row[wrong]])}, but it is "
                    "none of its candidates"
                )
            weights[i] = np.bincount(place, flow.weight.numpy()[is_of_seed], len(self.eid))
            counts[i] = np.bincount(place, minlength=len(self.eid))

    def name(self, group: int) -> str:
        """Return the name of the first edge of a group."""
        first = int((self.group == group).argmax())
        return f"edge {self.eid[first]} of node {int(self.nodes[self.row[first]])}"


def marginals(case: SamplerCase) -> float | None:
    """The mean weight of every edge is its number in ``estimand()``."""
    if isinstance(case.sampler, SubgraphSampler):
        _subgraphs(case, case.sampler)
        return None
    return _least_bias(case, _means)


def _least_bias(case: SamplerCase, test: Callable[[Draws], float | None]) -> float:
    """Test the draws of a case, which several checks read; returns the bias that would be seen."""
    draws = case.drawn = case.drawn or Draws(case)
    bias = test(draws)
    if bias is None:
        raise Skipped(
            f"no edge was drawn {_SEEN} times in {len(draws.weights)} draws: too few to compare "
            "means"
        )
    return bias


def _subgraphs(case: SamplerCase, sampler: SubgraphSampler) -> None:
    """Test sums over subgraphs at all nodes."""
    if sampler.seed_kind == "part":
        raise Skipped(
            "seeds are parts: assert_unbiased takes batch_size=, and draws other parts each time"
        )
    if case.groups is None and case.graph.num_edges > _LARGEST:
        raise Skipped(f"statistical checks of subgraphs run on graphs of at most {_LARGEST} edges")
    false_alarm = FALSE_ALARM / (_TESTS * _CASES)
    try:
        assert_unbiased(sampler, case.seeds, draws=MANY, false_alarm=false_alarm)
    except (ValueError, TypeError) as error:
        raise Skipped(str(error)) from None


def _ratio(x: Array, y: Array, otherwise: float) -> NDArray[np.float64]:
    """Return x / y, and ``otherwise`` where y is 0."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    return cast("NDArray[np.float64]", np.divide(x, y, out=np.full(shape, otherwise), where=y != 0))


def _limit(tests: float) -> float:
    """The deviations of a normal variable at which one of so many tests of a check fails."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * _TESTS * _CASES * tests))


def _means(draws: Draws) -> float | None:
    """Test the means of groups of edges; returns the smallest bias that would be seen."""
    weights = draws.weights
    size = np.bincount(draws.group)
    # [draws, flows, groups], the mean over the edges that are alike
    error = draws.by_group(weights - draws.exact) / size
    mean = error.mean(0)
    # few draws may all be alike by chance. So the variance is at least that of one draw with the
    # weights seen: weight * p is exact, which makes it exact * (weight - exact)
    typical = _ratio((weights**2).sum(0), np.abs(weights).sum(0), 0.0)
    least = np.clip(np.abs(draws.exact) * typical - draws.exact**2, 0, None)
    least = draws.by_group(least) / size**2
    deviation = np.sqrt(np.maximum(error.var(0), least) / draws.case.size)
    seen = draws.by_group(draws.counts.sum(0))
    wanted = draws.by_group(draws.exact) / size
    allowed = _limit(mean.size) * deviation
    tested = seen >= _SEEN
    is_far = tested & (np.abs(mean) > allowed + 1e-5 * (1 + np.abs(wanted)))
    if is_far.any():
        # the weights of others at its node may be off too, by more where they count more: the most
        # significant one is named
        significance = np.where(is_far, _ratio(np.abs(mean), deviation, np.inf), -np.inf)
        flow, group = np.unravel_index(int(significance.argmax()), mean.shape)
        where = f"{draws.name(int(group))} in flow {flow - draws.tested}"
        raise AssertionError(
            f"the mean weight of {where} over "
            f"{draws.case.size} draws is {wanted[group] + mean[flow, group]:.4g}, and should be "
            f"{wanted[group]:.4g} (estimand()); the two may differ by {allowed[flow, group]:.2g}"
        )
    if draws.case.groups is not None:
        _check_rare(draws, seen, wanted)
    if not tested.any():
        return None
    allowed /= np.maximum(np.abs(wanted), 1e-9)
    return float(allowed[tested].max())


def _check_rare(draws: Draws, seen: Array, wanted: Array) -> None:
    """Fail for an edge that was hardly drawn, though its weight would have to be very large.

    Columns are of about one size on the small graphs, and with them probabilities.
    """
    largest = _SPREAD * np.abs(draws.weights).max(axis=(0, 2))[:, None]
    # where nothing at all is drawn, any edge that counts is missing
    expected = _ratio(draws.case.size * np.bincount(draws.group) * np.abs(wanted), largest, np.inf)
    rare = (seen < _SEEN) & (expected >= _RARE) & (wanted != 0)
    if rare.any():
        flow, group = np.argwhere(rare)[0]
        name = draws.name(int(group))
        count = int(seen[flow, group])
        most = largest[flow, 0] / _SPREAD
        raise AssertionError(
            f"{name} was drawn {count} times in {draws.case.size} draws, but counts "
            f"{wanted[group]:.4g} in estimand(), and other weights are at most {most:.3g}"
        )


def pairs(case: SamplerCase) -> float | None:
    """Two edges of a destination are drawn together as often as the law says."""
    if case.law is None:
        raise Skipped(
            "the law of pairs is not known; pass pairs='uniform' or 'independent' where it is one "
            "of these"
        )
    return _least_bias(case, _pair_rates)


def _pairs_of(draws: Draws) -> dict[tuple[int, int], list[tuple[Array, Array, float]]]:
    """The pairs of edges in the last flow, by their groups: those that are alike are in one list.

    Of each: the products of counts or weights of the two edges, draw by draw, their means by law,
    and the size of a product that is not 0.
    """
    drawn = draws.counts[:, -1].astype(float)
    replace = getattr(draws.case.sampler, "replace", False)
    is_uniform = draws.case.law == "uniform"
    sizes = np.ones(len(draws.exact))
    if not is_uniform:
        # weights over their exact numbers, where edges are drawn: so the size of a product is known
        # of pairs that were never drawn together too
        drawn = _ratio(draws.weights[:, -1], draws.exact, 0.0)
        sizes = _ratio((drawn**2).sum(0), drawn.sum(0), 0.0)
    pairs_of_groups = defaultdict(list)
    for row in range(len(draws.nodes)):
        # edges that a seed does not see at its time count 0
        alive = np.flatnonzero((draws.row == row) & ((draws.exact != 0) | (not draws.case.times)))
        expected = np.ones(len(drawn))
        if is_uniform:
            expected = uniform_pairs(len(alive), drawn[:, alive].sum(1), replace)
        # the same edges in every copy, and few: pairs grow with the square of the degree
        compared = alive[np.argsort(draws.group[alive])][:_PAIRED]
        for i, j in combinations(compared, 2):
            groups = int(draws.group[i]), int(draws.group[j])
            pair = drawn[:, i] * drawn[:, j], expected, float(sizes[i] * sizes[j])
            pairs_of_groups[groups].append(pair)
    return pairs_of_groups


def _pair_rates(draws: Draws) -> float | None:
    """Test the rates of pairs in the last flow."""
    number = draws.case.size
    of_groups = _pairs_of(draws)
    if not of_groups:
        raise Skipped("no seed has two edges")
    limit = _limit(len(of_groups))
    bias = 0.0
    for (a, b), alike in of_groups.items():
        products_of_copies, expected_of_copies, sizes = zip(*alike, strict=True)
        products = np.mean(products_of_copies, axis=0)
        expected = np.mean(expected_of_copies, axis=0)
        error = products - expected
        wanted = expected.mean()
        copies = len(alike)
        typical = max(sizes)
        if products.any():
            # a pair that is drawn more often has products as large as those seen
            squares = np.square(products_of_copies).sum()
            typical = max(typical, squares / (products.sum() * copies))
        # one of the two is never drawn, or both too seldom
        if typical == 0 or wanted * copies * number < _RARE * max(1.0, typical):
            continue
        # at least the variance of a pair that occurs as often as the law says
        by_law = max(wanted * typical - wanted**2, 0) / (copies * number)
        deviation = math.sqrt(max(error.var() / number, by_law))
        bias = max(bias, limit * deviation / wanted)
        if abs(error.mean()) > limit * deviation + 1e-5:
            raise AssertionError(
                f"{draws.name(a)} and {draws.name(b)} are drawn together at a rate of "
                f"{products.mean():.4g}, which should be {wanted:.4g} ({draws.case.law}) and may "
                f"differ by {limit * deviation:.2g} after {number} draws"
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
    if replace:
        other = degree
    else:
        other = degree - 1
    return drawn * (drawn - 1) / max(degree * other, 1)


def hubs(case: SamplerCase) -> float | None:
    """Nodes with very many edges draw the last as often as the first, none twice."""
    if not isinstance(case.sampler, Sampler) or case.sampler.seed_kind != "node":
        raise Skipped("it does not derive from Sampler")
    return max(_hub(case, *sizes) for sizes in _HUBS)


def _hub(case: SamplerCase, degree: int, compared: int, edges: int) -> float:
    """Test one hub; returns the smallest bias that would be seen."""
    hub = case.hub(degree)
    sampler: Any = hub.sampler
    ids = sampler.candidates(torch.tensor(hub.seeds)).eid.numpy()
    number = hub.estimand(hub.seeds[0]).numpy()[ids]
    # the first edges, those between, and the last ones
    part = np.full(hub.graph.num_edges, -1)
    part[ids] = 1
    part[ids[:compared]] = 0
    part[ids[-compared:]] = 2
    distinct = None
    if not getattr(sampler, "replace", False):
        distinct = degree
    sums_of_calls = []
    seen = 0
    squares = 0.0
    for epoch in range(_MOST_CALLS):
        flow = hub.call(epoch=epoch).flows[-1]
        eid = _edges_of_hub(flow, hub.seeds[0], distinct)
        weight = flow.weight.double().numpy()
        sums_of_calls.append(np.bincount(part[eid], weight, 3))
        seen += len(eid)
        squares += float((weight**2).sum())
        # ends when enough edges are drawn, which tells nothing of their weights
        if seen >= _HUB_EDGES or (seen >= edges and epoch + 1 >= _HUB_CALLS):
            break
    sums = np.array(sums_of_calls)
    if seen < 3 * _SEEN:
        raise Skipped(
            f"{seen} edges of a hub were drawn in {len(sums)} draws, which is too few to compare parts"
        )
    exact = np.bincount(part[ids], number, 3)
    typical = squares / max(float(sums.sum()), 1e-9)
    _check_total(sums.sum(1), number, typical)
    return _ends_alike(sums, exact, typical, len(number), compared)


def _edges_of_hub(flow: Flow, node: int, degree: int | None) -> Ints:
    """The ids of the edges of a flow: of one node, and distinct where its degree is given."""
    assert bool((parents(flow)[1] == node).all()), "an edge of a hub goes to another node"
    eid = flow.parent_eid.numpy()
    assert eid.min(initial=0) >= 0, "an edge of a hub has no id"
    is_distinct = degree is None or len(np.unique(eid)) == len(eid)
    assert is_distinct, f"a node with {degree:,} edges draws one of them twice"
    return eid


def _check_total(sums: Array, number: Array, typical: float) -> None:
    """Compare the mean sum of all weights with the exact one.

    Skewed weights make it too small, but not half of it.
    """
    total = float(number.sum())
    by_weight = abs(total) * max(typical - total / len(number), 0) / len(sums)
    deviation = math.sqrt(max(sums.var() / len(sums), by_weight))
    half = float(np.abs(number).sum()) / 2
    allowed = max(_limit(_SYMMETRIC * _HUB_TESTS) * deviation, half)
    assert abs(sums.mean() - total) <= allowed, (
        f"the edges of a node with {len(number):,} have weights of {sums.mean():,.0f} in the mean, "
        f"and should have {total:,.0f}; the two may differ by {allowed:,.0f} after {len(sums)} "
        "draws"
    )


def _ends_alike(sums: Array, exact: Array, typical: float, degree: int, compared: int) -> float:
    """Compare the mean sums of the first and of the last edges of a hub.

    They are compared with each other, because weights may be very skewed, such as one over the
    smallest of many random numbers, and then a mean is below the exact number in most runs. Edges
    of a hub are alike, so the difference is as likely positive as negative. Of such variables, a
    sum over the root of the sum of squares has tails of at most ``_SYMMETRIC`` times those of a
    normal variable, however few they are (Pinelis 1994, after Efron 1969).
    """
    difference = exact[2] - exact[0]
    ends = exact[0] + exact[2]
    error = sums[:, 2] - sums[:, 0] - difference
    # few draws may all be alike by chance: at least the variance of as many independent draws, in
    # which a drawn unit of weight is on an edge of ``typical``
    of_all = exact.sum()
    excess = max(typical - of_all / degree, 0)
    of_one = (ends - difference**2 / max(of_all, 1e-9)) * excess
    variance = max((error**2).sum() / len(sums) ** 2, of_one / len(sums))
    deviation = _limit(_SYMMETRIC * _HUB_TESTS) * math.sqrt(variance)
    allowed = deviation + 1e-4 * (1 + abs(exact[0]) + abs(exact[2]))
    first, _, last = sums.mean(0)
    assert abs(error.mean()) <= allowed, (
        f"of a node with {degree:,} edges the last {compared:,} have weights of {last:,.0f} in the "
        f"mean, and the first {compared:,} of {first:,.0f}; they should have {exact[2]:,.0f} and "
        f"{exact[0]:,.0f}, and their difference may be off by {allowed:,.0f} after {len(sums)} "
        "draws"
    )
    return deviation / max(float(min(exact[0], exact[2])), 1e-9)
