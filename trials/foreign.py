"""Samplers of other libraries behind the interface of ``Sampler``, so that ``judge.py`` can check
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_array, as_flag, as_ids, check_length, check_type
from nodeflow._core.base.dates import as_moments
from nodeflow._core.base.types import Array, PerFlow, SeedsLike
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.random import derive_key, hash_ids
from nodeflow.sampling import Call, Keys, Sampler
from nodeflow.sampling.base import Choice, Step

Drawn = Sequence[Any]
"""The drawn edges of a flow: ids of sources, of destinations, of edges or None, and weights or
None, ``[E]`` each.

With trees, the number of the seed to whose tree each edge belongs comes fifth.
"""


def as_sampler(
    fn: Callable[..., Sequence[Drawn]],
    graph: Graph,
    num_flows: int,
    *,
    fanouts: PerFlow | None = None,
    replace: bool = False,
    reuse: bool = False,
    trees: bool = False,
    time: str | None = None,
    strict: bool = False,
) -> Sampler:
    """Return a sampler whose batches are what a function draws, such as one of another library.

    Args:
        fn: called as ``fn(seeds, seed)`` with distinct seeds, int64 ``[B]``, and an integer from 0
            to 2**31 - 1 that differs between epochs and batches. It returns one tuple
            ``(src, dst, eid, weight)`` per flow, **in flow order**: the seeds are the destinations
            of the last one. Ids are those of ``graph``; ``eid`` may be None (then the edges between
            the two nodes are taken in turn), and ``weight`` may be None (then an edge stands for
            degree / number drawn edges, as where a mean of the sample is taken for that of the
            neighbours).
        graph: the parent graph.
        num_flows: number of flows.
        fanouts: the fanouts that ``fn`` keeps to, in flow order, for the checks; None: none are
            known.
        replace: whether ``fn`` draws with replacement.
        reuse: whether a node draws once, in the last flow that has it as a destination; ``fn``
            returns its edges there alone, and the flows before have them too.
        trees: whether every seed has a tree of its own; ``fn`` returns a fifth array per flow, the
            position in ``seeds`` of the seed to which each edge belongs.
        time: name of the edge column of times, for an ``fn`` whose seeds see their past alone. It
            is called as ``fn(seeds, seed, times)``, for distinct pairs of seed and time, and
            returns trees. Degrees count past edges. None: ``fn`` takes no times.
        strict: whether the past ends before the time of the seed, rather than with it.

    A call raises ValueError where ``fn`` returns another number of flows, arrays of different
    lengths, or edges of a node that is no destination; IndexError for an id that is none.

    >>> import torch
    >>> graph = Graph.from_edges([1, 2, 3], [0, 0, 0])
    >>> def one_of_three(seeds, seed):
    ...     e = torch.randint(3, (1,), generator=torch.Generator().manual_seed(seed))
    ...     return [(e + 1, torch.zeros_like(e), e, None)]
    >>> as_sampler(one_of_three, graph, 1)([0]).flows[0].weight
    tensor([3.])
    """
    check_type(fn, "fn", Callable, "a function of (seeds, seed)")
    return ForeignSampler(graph, num_flows, fn, fanouts, replace, reuse, trees, time, strict)


class ForeignSampler(Sampler):
    """A sampler whose batches a function draws as a whole; ``as_sampler`` makes one."""

    draws_as = "foreign"
    draws_together = True

    def __init__(
        self,
        graph: Graph,
        num_flows: int,
        fn: Any,
        fanouts: PerFlow | None,
        replace: bool,
        reuse: bool,
        trees: bool,
        time: str | None,
        strict: bool,
    ) -> None:
        self.fn = fn
        self.replace = as_flag(replace, "replace")
        self.strict = as_flag(strict, "strict")
        self.time = time
        self.takes_times = time is not None
        self.trees = as_flag(trees, "trees") or self.takes_times
        self.fanouts = None if fanouts is None else [int(size) for size in fanouts]
        super().__init__(graph, num_flows, reuse=reuse)

    def read_graph(self) -> None:
        super().read_graph()
        self._stamps = (
            None if self.time is None else as_array(self.graph.edata[self.time], "time", "numbers")
        )

    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Return the edges that the function drew for this flow, in ``step.inputs``."""
        flows, times = step.inputs
        context = None if step.contexts is None else step.contexts.numpy()
        return self._choice(dst.numpy(), context, times, step.flow, *flows[step.flow])

    def estimand(self, time: float | None = None) -> Tensor:
        """Return 1 for every edge, and 0 for edges that a seed of this ``time`` does not see."""
        number = super().estimand()
        if time is not None and self._stamps is not None:
            number[torch.from_numpy(~self._seen(self._stamps, time))] = 0
        return number

    def _seen(self, stamps: Array, limit: Any) -> Any:
        return stamps < limit if self.strict else stamps <= limit

    def draw_batch(self, seeds: SeedsLike, call: Call) -> NodeFlow:
        if not self.takes_times:
            return super().draw_batch(seeds, call)
        ids, shape = self._seeds(seeds)
        if call.times is None:
            raise TypeError(
                "times is missing: pass a time for every seed, as in sampler(seeds, times=times)"
            )
        times = as_moments(call.times, "times", f"seed ({len(ids)})", (len(ids),))
        keys = self._keys_of(call, ids, hash_ids(times.astype(np.float64).view(np.int64)))
        return self._shaped(self._sample(ids, keys._replace(inputs=times)), ids, shape)

    def _sample(self, seeds: Ints, keys: Keys, contexts: Ints | None = None) -> NodeFlow:
        times = keys.inputs if self.takes_times else np.zeros(len(seeds))
        number_of: dict[tuple[int, float], int] = {}
        pairs = zip(seeds.tolist(), times.tolist(), strict=True)
        tree_of = np.array([number_of.setdefault(pair, len(number_of)) for pair in pairs], np.int64)
        first = np.unique(tree_of, return_index=True)[1]
        own = [torch.from_numpy(times[first])] if self.takes_times else []
        flows = self.fn(torch.from_numpy(seeds[first]), derive_key(keys.key, "foreign") >> 33, *own)
        if len(flows) != self.num_flows:
            raise ValueError(
                f"fn must return one tuple per flow ({self.num_flows}), got {len(flows)}"
            )
        keys = keys._replace(inputs=(flows, times[first]))
        return super()._sample(seeds, keys, tree_of if self.trees else None)

    def _choice(
        self,
        dst: Ints,
        context: Ints | None,
        times: Array,
        flow: int,
        src: Any,
        to: Any,
        eid: Any = None,
        weight: Any = None,
        tree: Any = None,
    ) -> Choice:
        """The edges of a flow, grouped by destination."""
        size = self.graph.num_nodes
        sources = as_ids(src, f"src of flow {flow}", size)
        ends = as_ids(to, f"dst of flow {flow}", size)
        for value, name in ((ends, "dst"), (eid, "eid"), (weight, "weight"), (tree, "tree")):
            if value is not None:
                check_length(value, f"{name} of flow {flow}", len(sources), "drawn edge")
        rows = self._rows(
            dst,
            context,
            ends,
            None if tree is None else as_ids(tree, "tree", len(times), "seed"),
            flow,
        )
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=len(dst))
        if eid is None:
            ids = self._ids_between(sources, ends)
        else:
            ids = as_ids(eid, f"eid of flow {flow}", self.graph.num_edges, "edge")
        if weight is None:
            degrees = self._degrees(dst, context, times)
            values: Array = np.repeat(degrees / np.maximum(counts, 1), counts)
        else:
            values = as_array(weight, f"weight of flow {flow}", "numbers")[order]
        indptr = np.append(0, np.cumsum(counts))
        return Choice(
            indptr,
            src=sources[order],
            eid=ids[order],
            weight=torch.from_numpy(values.astype(np.float32)),
        )

    def _rows(
        self, dst: Ints, context: Ints | None, ends: Ints, tree: Ints | None, flow: int
    ) -> Ints:
        """The row of every edge's destination."""
        keys = dst
        wanted = ends
        if context is not None:
            if tree is None:
                raise ValueError(
                    "with trees, fn must return five arrays per flow, got none of trees in flow "
                    f"{flow}"
                )
            keys = dst + self.graph.num_nodes * context
            wanted = ends + self.graph.num_nodes * tree
        order = np.argsort(keys)
        place = np.searchsorted(keys, wanted, sorter=order)
        rows: Ints = np.where(
            np.append(keys[order], -1)[place] == wanted, np.append(order, -1)[place], -1
        )
        if len(rows) and rows.min() < 0:
            where = "is not in the layer after it" + " for the first time" * self.reuse
            where += "" if tree is None else f", in tree {tree[rows.argmin()]}"
            raise ValueError(f"flow {flow} has edges of node {ends[rows.argmin()]}, which {where}")
        return rows

    def _degrees(self, dst: Ints, context: Ints | None, times: Array) -> Ints:
        """The number of edges among which every destination draws."""
        if self._stamps is None or context is None:
            return self.graph.in_degrees(torch.from_numpy(dst)).numpy()
        edges = self.candidates(torch.from_numpy(dst))
        rows = edges.rows.numpy()
        return np.bincount(
            rows[self._seen(self._stamps[edges.eid.numpy()], times[context][rows])],
            minlength=len(dst),
        )

    def _ids_between(self, src: Ints, dst: Ints) -> Ints:
        """The id of an edge between each two nodes, parallel ones in turn; -1 where there is
        none.
        """
        ends: dict[tuple[int, int], list[int]] = {}
        turn: dict[tuple[int, int], int] = {}
        for u, v, e in zip(
            *(part.tolist() for part in self.graph.in_edges(np.unique(dst))), strict=True
        ):
            ends.setdefault((u, v), []).append(e)
        ids = np.full(len(src), -1)
        for i, pair in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            if pair in ends:
                turn[pair] = turn.get(pair, -1) + 1
                ids[i] = ends[pair][turn[pair] % len(ends[pair])]
        return ids
