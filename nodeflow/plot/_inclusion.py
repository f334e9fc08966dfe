"""Frequencies with which edges are drawn, beside those that their weights state."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._base.checks import as_count, check_type
from nodeflow._base.types import SeedsLike
from nodeflow._display.axes import axes_for
from nodeflow.sampling.base import BoundSampler

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_inclusion(
    sampler: BoundSampler, seeds: SeedsLike, *, draws: int = 500, ax: Axes | None = None, **call: Any
) -> Axes:
    """Plot how often each edge into the seeds is drawn against the probability that its weight states.

    An estimator weight is the edge's number in the sum (``sampler.estimand()``, 1 as a rule) divided by the probability
    that the edge is drawn, or with replacement by the mean number of times. So number / weight is the stated
    probability. If the sampler keeps its word, 95 % of the points lie within the grey band about the diagonal: that of
    a share of ``draws`` independent draws, 1.96 standard errors wide on each side. With replacement it is about that.

    Args:
        sampler: a sampler of edges of its graph.
        seeds: few nodes with many neighbours; the last flow of their batches is looked at.
        draws: number of batches; they are those of the epochs 0, 1, ...
        ax: the matplotlib axes to draw on; None: new ones.
        call: further arguments of the calls, such as ``times``.

    Edges that no batch draws state no probability and have no point. Where weights vary from draw to draw (LADIES,
    LABOR with ``method="sequential"``), a point lies at the mean of the probabilities that were stated when the edge
    was drawn. This is larger than the probability of being drawn, so points lie below the diagonal there.

    Raises TypeError for another sampler, ValueError for fewer than one draw, what the calls raise, ImportError without
    matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0]), [1])
    >>> axis = plot_inclusion(sampler, [0], draws=100, ax=Figure().subplots())
    >>> stated, drawn = axis.collections[-1].get_offsets().T.tolist()
    >>> stated, sum(drawn)  # one of four edges in every draw
    ([0.25, 0.25, 0.25, 0.25], 1.0)
    """
    check_type(sampler, "sampler", BoundSampler, "a sampler that draws edges of its graph")
    number = as_count(draws, "draws", 1)
    size = sampler.graph.num_edges
    times, stated, value = np.zeros(size), np.zeros(size), sampler.estimand().numpy()
    for epoch in range(number):
        flow = sampler(seeds, epoch=epoch, **call).flows[-1]
        edges, weight = flow.parent_eid.numpy(), flow.weight.double().numpy()
        some = (edges >= 0) & (weight != 0)
        times += np.bincount(edges[some], minlength=size)
        stated += np.bincount(edges[some], weights=value[edges[some]] / weight[some], minlength=size)
    seen = times > 0
    at = stated[seen] / times[seen]
    axis = axes_for(ax, (4, 3.6))
    most = max(float(at.max(initial=0)), float((times[seen] / number).max(initial=0)), 1e-9)
    line = np.linspace(0, 1.02 * most, 200)
    spread = NormalDist().inv_cdf(0.975) * np.sqrt(np.clip(line * (1 - line), 0, None) / number)
    axis.fill_between(line, line - spread, line + spread, color="0.5", alpha=0.25, linewidth=0, label="95 % band")
    axis.plot(line, line, color="0.5", linewidth=1)
    axis.scatter(at, times[seen] / number, s=12, zorder=3, label=f"{int(seen.sum()):,} edges")
    axis.set(xlabel="stated probability", ylabel=f"share of {number:,} draws")
    axis.legend(fontsize=8, frameon=False)
    return axis
