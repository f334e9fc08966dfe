"""Temporal sampling: every seed sees the graph as it was at its own time."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count, as_flag, as_number, check_one_of
from nodeflow._core.base.types import Array, Fanouts, NumNeighbors, SeedsLike
from nodeflow._core.edges.columns import edge_numbers
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.forms import COMPILED, Placed
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.random import hash_ids
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling._keys import Call, Step
from nodeflow.sampling._pps import Proportional
from nodeflow.sampling._relations import check_fanouts
from nodeflow.sampling._rows import DrawingRows, Drawn, RowSampler
from nodeflow.sampling._times import NO_TIME, Span, as_times, starts_of, times_of_edges
from nodeflow.sampling._uniform import PAST, Window


class TemporalNeighborSampler(RowSampler):
    """Every node draws among its past edges: those not later than the time of its seed.

    Called with a time per seed: ``sampler(seeds, times=times)``, numbers in the unit of the graph's
    times, or dates, which become seconds since 1970 (of UTC, where they have no time zone). On
    every hop the limit is the time of the *seed*, so nothing that happened after it can reach its
    output. Seeds of different times see different pasts: a layer may hold a parent node once per
    time. ``layer.context`` numbers the distinct times of the batch in ascending order, and every
    layer has a column "time" with the time of the seeds each row belongs to. Seeds of equal node
    and time collapse, and ``seed_index`` restores them.

    ``strategy="uniform"`` draws as ``NeighborSampler`` does (Hamilton, Ying, Leskovec 2017,
    algorithm 2), with the past edges instead of all. Estimator weights: number of past edges /
    number drawn. With them the weighted sum over the drawn edges is unbiased for the sum over all
    past edges, with and without replacement. ``strategy="recent"`` takes the latest ones (as
    temporal graph networks do: Rossi et al. 2020, section 4), in ascending order of time; of
    simultaneous ones those that come later in the graph's order. Nothing is random then: weights
    are 1 (times the ``weight`` column), and the sum over the latest edges is a biased estimate of
    the sum over the past.

    With ``since``, "past" means the edges of a window of time: those at most ``since`` older than
    the seed's time t, so not earlier than t - ``since``, on every hop.

    Args:
        fanouts: one number per flow **in flow order**: ``fanouts[-1]`` belongs to the seeds,
            ``fanouts[0]`` to the inputs; -1 takes the whole past. Each may be a dict by relation or
            type, as in ``NeighborSampler``.
        num_neighbors: instead of ``fanouts``, the same with the seeds' first, as in
            ``NeighborSampler``.
        time: name of columns of times: integers (compared exactly, as int64) or floats (compared as
            float64). The time of an edge is the later of its own, in the column of all edges or of
            its relation, and that of the node that it leads to, in the column of all nodes or of
            their type. An edge without any of these is always in the past, and so is one without a
            time to a node whose time is NaN or the smallest int64. Columns are read once, when the
            sampler is made.
        strategy: "uniform" or "recent".
        replace: draw with replacement ("uniform" only): a node with any past draws ``fanout``
            times.
        prob: name of an edge column of numbers that draws are proportional to ("uniform" only), as
            in ``NeighborSampler``: among the past edges, with weights 1 / probability. A call then
            reads all past edges of the nodes reached. None: uniform.
        strict: True: only edges *before* the seed's time. False: also edges at that time. Pass True
            where an event must not see itself or other events of the same moment.
        since: the length of the window, at least 0, in the unit of the time column: an integer
            where the column holds integers, else any number. An edge exactly that old is seen. A
            node whose edges (of a relation) all have no time keeps them; else those without are
            before any window. None: the whole past.
        graph, edge_type, include_dst, reuse, seed: see
            ``RowSampler``. With ``include_dst=False`` layers are sorted by time and then by parent
            id; with ``reuse`` a node draws once per time.

    A node with no more past edges than its fanout keeps all of them once, in the order of time
    (with replacement it still draws ``fanout`` of them); one without a past gets no edges.

    Cost of a call: a binary search among the edges of every node reached, and the drawn edges,
    whatever the degrees. Of making one: a sort of all edges and 16 bytes per edge (8 where the
    edges of every node are in order already).

    Raises KeyError where neither edges nor nodes have the column, TypeError for one that does not
    hold numbers or where some hold integers and others floats, ValueError for one that is not
    finite or not one-dimensional, or float32 from 2**24 on, which has been rounded; a call, for
    such times and for stamps in another unit than the column, which are 500 times later than its
    last, or earlier than its first (2**63 - 1 is after all times); ValueError for an unknown
    strategy, for "recent" with ``replace``, and for a ``since`` below 0; TypeError for a ``since``
    that is no integer against integers.

    >>> graph = Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0], edata={"time": torch.tensor([10, 20, 30, 40])})
    >>> sampler = TemporalNeighborSampler(graph, [2], strategy="recent")
    >>> flow = sampler([0, 0], times=[20, 35]).flows[0]
    >>> flow.parent_eid, flow.dst_layer.parent_nid, flow.dst_layer.data["time"]
    (tensor([0, 1, 1, 2]), tensor([0, 0]), tensor([20, 35]))
    """

    draws_as = "temporal"
    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        fanouts: Fanouts | None = None,
        *,
        num_neighbors: NumNeighbors | None = None,
        time: str = "time",
        strategy: str = "uniform",
        replace: bool = False,
        prob: str | None = None,
        strict: bool = False,
        since: float | None = None,
        edge_type: str | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.fanouts = check_fanouts(fanouts, num_neighbors, edge_type=edge_type)
        self.time = time
        check_one_of(strategy, "strategy", ("uniform", "recent"))
        self.strategy = strategy
        self.replace = as_flag(replace, "replace")
        self.strict = as_flag(strict, "strict")
        self.prob = prob
        if strategy == "recent" and (self.replace or prob is not None):
            option = "prob="
            if self.replace:
                option = "replace=True"
            raise ValueError(
                f"strategy='recent' takes the latest edges, each once: {option} goes with 'uniform'"
            )
        if isinstance(since, int | np.integer):
            since = as_count(since, "since")
        elif since is not None:
            since = as_number(since, "since", least=0)
        self.since = since
        super().__init__(
            graph,
            len(self.fanouts),
            edge_type=edge_type,
            include_dst=include_dst,
            reuse=reuse,
            seed=seed,
        )

    takes_times = True

    def read_graph(self) -> None:
        super().read_graph()
        self._read_counts(self.fanouts)
        edges = self.reader.edges
        stamps_of = times_of_edges(self.graph, self.time)
        stamps = stamps_of(edges)
        # windows of integers are compared exactly
        is_exact = self.since is not None and stamps.dtype.kind == "i"
        if is_exact and as_count(self.since, "since") >= 2**63:
            raise ValueError(f"since must be below 2**63, got {self.since}; None is the whole past")
        # most files of events are in order already, and are not sorted
        falls = stamps[1:] < stamps[:-1]
        inner = edges.indptr[(edges.indptr > 0) & (edges.indptr < len(stamps))]
        falls[inner - 1] = False  # from one row to the next
        if falls.any():
            self.reader = self.reader._replace(edges=edges.sorted_by(stamps))
            stamps = stamps_of(self.reader.edges)
        # whoever made the column may write to it later
        self._stamps = Placed(np.array(stamps))
        self._span = Span.of(stamps)
        self._lowest = stamps.dtype.type(NO_TIME[stamps.dtype.kind])
        self._longest = int(np.diff(edges.indptr).max(initial=0))
        self._prob = None
        if self.prob is not None:
            self._prob = edge_numbers(self.graph.for_sampling, self.prob, "prob", signed=False)

    def draw_batch(self, seeds: SeedsLike, call: Call) -> NodeFlow:
        ids, shape = self._seeds(seeds)
        stamps = as_times(call.times, shape, self._span)
        # a context per distinct time: seeds of one time share rows, as they see the same past
        distinct, contexts = np.unique(stamps, return_inverse=True)
        if call.step is None:
            of_step = stamps
        else:
            of_step = as_times(call.step.times, self._seeds(call.step.ids)[1], self._span)
        # the inputs of steps are the call, with the distinct times of the seeds, ascending: a
        # context each
        call = call._replace(times=distinct)
        keys = self._keys_of(call, ids, hash_ids(of_step.view(np.int64)))
        keys = keys._replace(inputs=call)
        if call.step is not None:
            in_step = np.searchsorted(np.unique(of_step), distinct)
            keys = keys._replace(contexts=self.form.placed(in_step))
        batch = self._shaped(self._sample(ids, keys, contexts), ids, shape)
        times_of = self.form.placed(distinct)
        for layer in batch.layers:
            layer.data["time"] = times_of[layer.context]
        return batch

    def _loops_only(self) -> bool:
        return self._prob is not None

    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        form = edges.form
        counts = self._counts[step.flow]
        limits = step.inputs.times
        (stamps,) = self._stamps.at(form)
        # copies of rows have positions of their own, by which stamps must be looked up
        if edges is not self.reader.edges and self.reader.edges.patch is not None:
            stamps = form.take(stamps, form.array(self.reader.edges.patch.positions))
        if self.since is None:
            starts = limits[:0]
        else:
            starts = starts_of(limits, self.since)
        limits = form.array(limits)
        starts = form.array(starts)
        window = Window(stamps, limits, starts, self._lowest, self._longest, self.strict)
        if self._prob is not None:
            return self._in_proportion(edges, rows, counts, window, step.random.key)
        indptr, num_past, positions, src = form.of(PAST)(
            edges,
            rows,
            counts,
            step.random.key,
            window,
            replace=self.replace,
            recent=self.strategy == "recent",
        )
        inverse = None
        if self.strategy == "uniform" and (counts >= 0).any():
            inverse = partial(form.inverse_rate, num_past, indptr, len(src))
        return Drawn(indptr, positions, src, inverse, varies=False)

    def _in_proportion(
        self, edges: Edges, rows: DrawingRows, counts: Array, window: Window, key: int
    ) -> Drawn:
        """Draw by tables of these rows' past alone: a table of all edges would also draw later
        ones.
        """
        assert self._prob is not None
        indptr, begin, _ = window.plan(edges, rows, np.full_like(counts, -1), replace=False)
        positions = np.repeat(begin - indptr[:-1], np.diff(indptr)) + np.arange(indptr[-1])
        past = Edges._trusted(indptr, edges.indices[positions], edges.ids(positions))
        rows = rows._replace(numbers=np.arange(len(begin)))
        drawn = Proportional(past, self._prob).draw(past, rows, counts, key, replace=self.replace)
        return drawn._replace(positions=positions[drawn.positions])

    def estimand(self, time: float | None = None) -> Tensor:
        """Return the numbers of ``BoundSampler.estimand``, and 0 for edges that a seed of this
        ``time`` does not see.

        ``time`` None: a seed after all edges.

        Raises TypeError for ``strategy="recent"``, which estimates no sum, and with ``since`` where
        ``time`` is None.
        """
        if self.strategy == "recent":
            raise TypeError(
                "strategy='recent' takes the latest edges; their sum is no estimate of a sum over "
                "the past"
            )
        if self.since is not None and time is None:
            raise TypeError(
                "with since= every time has a window of its own: pass the time of the seed, "
                "estimand(time)"
            )
        number = super().estimand()
        if self._prob is not None:
            number[torch.from_numpy(self._prob == 0)] = 0
        if time is not None:
            (stamps,) = self._stamps.at(COMPILED)
            limit = as_times([time], (1,), self._span)[0]
            if self.strict:
                late = stamps >= limit
            else:
                late = stamps > limit
            edges = self.reader.edges.in_form(COMPILED)
            early = np.zeros(len(late), np.bool_)
            if self.since is not None:
                last = np.append(stamps, 0)[np.maximum(edges.indptr[1:] - 1, 0)]
                timed = np.repeat(last > NO_TIME[last.dtype.kind], np.diff(edges.indptr))
                early = timed & (stamps < starts_of(np.array([limit]), self.since))
            number[edges.parent_eid(np.flatnonzero(late | early))] = 0
        return number
