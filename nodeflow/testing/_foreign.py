"""Samplers of other libraries behind the interface of ``Sampler``, so that they can be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_array, as_flag, as_ids, check_length, check_type
from nodeflow._base.types import Array, PerFlow
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.random import derive_key
from nodeflow.sampling import Draw, Sampler
from nodeflow.sampling.base import Choice, Step, assemble

Drawn = tuple[Any, Any, Any, Any]
"""The drawn edges of a flow: ids of sources, of destinations, of edges or None, and weights or None, ``[E]`` each."""


def as_sampler(
    fn: Callable[[Tensor, int], Sequence[Drawn]],
    graph: Graph,
    num_flows: int,
    *,
    fanouts: PerFlow | None = None,
    replace: bool = False,
) -> Sampler:
    """Return a sampler whose batches are what a function draws, such as one of another library.

    Args:
        fn: called as ``fn(seeds, seed)`` with distinct seeds, int64 ``[B]``, and an integer from 0 to 2**31 - 1 that
            differs between epochs and batches. It returns one tuple ``(src, dst, eid, weight)`` per flow, **in flow
            order**: the seeds are the destinations of the last one. Ids are those of ``graph``; ``eid`` may be None
            (then the edges between the two nodes are taken in turn), and ``weight`` may be None (then an edge stands
            for degree / number drawn edges, as where a mean of the sample is taken for that of the neighbours).
        graph: the parent graph.
        num_flows: number of flows.
        fanouts: the fanouts that ``fn`` keeps to, in flow order, for the checks; None: none are known.
        replace: whether ``fn`` draws with replacement.

    A call raises ValueError where ``fn`` returns another number of flows, arrays of different lengths, or edges of a
    node that is no destination; IndexError for an id that is none.

    >>> import torch
    >>> graph = Graph.from_edges([1, 2, 3], [0, 0, 0])
    >>> def one_of_three(seeds, seed):
    ...     e = torch.randint(3, (1,), generator=torch.Generator().manual_seed(seed))
    ...     return [(e + 1, torch.zeros_like(e), e, None)]
    >>> as_sampler(one_of_three, graph, 1)([0]).flows[0].weight
    tensor([3.])
    """
    check_type(fn, "fn", Callable, "a function of (seeds, seed)")  # type: ignore[arg-type]
    return ForeignSampler(graph, num_flows, fn, fanouts, replace)


class ForeignSampler(Sampler):
    """A sampler whose batches a function draws as a whole; ``as_sampler`` makes one."""

    draws_as = "foreign"
    draws_together = True

    def __init__(self, graph: Graph, num_flows: int, fn: Any, fanouts: PerFlow | None, replace: bool) -> None:
        self.fn, self.replace = fn, as_flag(replace, "replace")
        self.fanouts = None if fanouts is None else [int(size) for size in fanouts]
        super().__init__(graph, num_flows)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Raise TypeError: all flows are drawn together."""
        raise TypeError("the function of as_sampler draws all flows together")

    def _sample(self, seeds: Ints, draw: Draw, inputs: Any, contexts: Ints | None = None) -> NodeFlow:
        distinct = np.array(list(dict.fromkeys(seeds.tolist())), np.int64)
        flows = self.fn(torch.from_numpy(distinct), derive_key(draw.key, "foreign") >> 33)
        if len(flows) != self.num_flows:
            raise ValueError(f"fn must return one tuple per flow ({self.num_flows}), got {len(flows)}")

        def choose(dst: Tensor, flow: int) -> Choice:
            return self._choice(dst, flow, *flows[flow])

        return assemble(self.graph, self.reader.edges, seeds, self.num_flows, choose)

    def _choice(self, dst: Tensor, flow: int, src: Any, to: Any, eid: Any, weight: Any) -> Choice:
        """The edges of a flow, grouped by destination."""
        size = self.graph.num_nodes
        sources, ends = as_ids(src, f"src of flow {flow}", size), as_ids(to, f"dst of flow {flow}", size)
        row_of = np.full(size, -1)
        row_of[dst.numpy()] = np.arange(len(dst))
        for value, name in ((ends, "dst"), *((v, n) for v, n in ((eid, "eid"), (weight, "weight")) if v is not None)):
            check_length(value, f"{name} of flow {flow}", len(sources), "drawn edge")
        rows = row_of[ends]
        if len(rows) and rows.min() < 0:
            raise ValueError(f"flow {flow} has edges of node {ends[rows.argmin()]}, which is not in the layer after it")
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=len(dst))
        if eid is None:
            ids = self._ids_between(sources, ends)
        else:
            ids = as_ids(eid, f"eid of flow {flow}", self.graph.num_edges, "edge")
        if weight is None:
            degrees = self.graph.in_degrees(dst).numpy()
            values: Array = np.repeat(degrees / np.maximum(counts, 1), counts)
        else:
            values = as_array(weight, f"weight of flow {flow}", "numbers")[order]
        indptr = np.append(0, np.cumsum(counts))
        return Choice(indptr, src=sources[order], eid=ids[order], weight=torch.from_numpy(values.astype(np.float32)))

    def _ids_between(self, src: Ints, dst: Ints) -> Ints:
        """The id of an edge between each two nodes, parallel ones in turn; -1 where there is none."""
        ends: dict[tuple[int, int], list[int]] = {}
        turn: dict[tuple[int, int], int] = {}
        for u, v, e in zip(*(part.tolist() for part in self.graph.in_edges(np.unique(dst))), strict=True):
            ends.setdefault((u, v), []).append(e)
        ids = np.full(len(src), -1)
        for i, pair in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            if pair in ends:
                turn[pair] = turn.get(pair, -1) + 1
                ids[i] = ends[pair][turn[pair] % len(ends[pair])]
        return ids
