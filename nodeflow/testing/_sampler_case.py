"""A sampler on a graph, with the seeds of its calls; the graphs that checks make for it."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_array, check_type
from nodeflow._core.base.types import NumbersLike, SeedsLike
from nodeflow._core.edges.view import EdgeView
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling import (
    BernoulliSampler,
    NeighborSampler,
    TemporalNeighborSampler,
    first_of_epoch,
)
from nodeflow.sampling.base import BoundSampler, SamplerBase
from nodeflow.testing._graphs import dense, graph_code, graph_like
from nodeflow.testing._run import Skipped, Small

Make = Callable[[Graph], SamplerBase]
# the column that holds the filter of a sampler which was given as a mask
FILTER = "edge_filter"
# of a small graph, so that one call draws several times
COPIES = 8
# calls of a statistical check, and of one on a graph beside which small ones show more
MANY = 500
FEW = 100
_SEED = 7  # of the order of the edges of small graphs
# of seeds: samplers with small and with large fanouts draw a part of these, and few draws show it
_DEGREES = (64, 48, 32, 24, 16, 8, 4, 2, 0)


@dataclass
class SamplerCase:
    """A sampler, the seeds of its calls, and how to make the same sampler of another graph.

    Attributes:
        sampler: the sampler.
        seeds: distinct seeds.
        moments: times that the seeds take in turn, for a sampler that takes times.
        make: the function that makes the sampler; None: the call that made it is repeated.
        groups: number of the group of every edge, int64 ``[num_edges]``: edges of a group are
            alike, and a statistical check joins them; None: every edge is a group.
        law: how the edges of a destination are drawn together: "uniform" or "independent"; None:
            unknown.
        multi_edges: whether small graphs may have parallel edges.
        size: number of calls of a statistical check.
        drawn: the draws that several statistical checks read; None: none so far.
        times: time of every seed; empty for a sampler that takes no times.
    """

    sampler: SamplerBase
    seeds: list[int]
    moments: Sequence[float]
    make: Make | None
    groups: Ints | None = None
    law: str | None = None
    multi_edges: bool = True
    size: int = MANY
    drawn: Any = None

    def __post_init__(self) -> None:
        self.times: dict[int, float] = {}
        if self.sampler.takes_times:
            self.times.update(zip(self.seeds, cycle(self.moments), strict=False))

    @property
    def graph(self) -> Graph:
        return self.sampler.graph

    def call(
        self,
        seeds: Sequence[int] | Tensor | None = None,
        sampler: SamplerBase | None = None,
        **which: Any,
    ) -> NodeFlow:
        """Return the batch of ``seeds`` (None: all of the case), of a sampler (None: its own)."""
        if seeds is None:
            seeds = self.seeds
        drawing = sampler or self.sampler
        if drawing.takes_times:
            which["times"] = torch.as_tensor([self.times[int(i)] for i in seeds])
        return drawing(seeds, **first_of_epoch(drawing, which))

    def estimand(self, seed: int) -> Tensor:
        """Return the exact numbers of all edges, as ``seed`` sees them; raises Skipped for none."""
        sampler: Any = self.sampler
        try:
            if self.times:
                numbers: Tensor = sampler.estimand(self.times[seed])
            else:
                numbers = sampler.estimand()
        except TypeError as error:
            raise Skipped("it estimates no sum (estimand raises TypeError)") from error
        return numbers

    def other(self, graph: Graph, seeds: Sequence[int], groups: Ints | None = None) -> SamplerCase:
        """Return the case on another graph, with those seeds that are possible there.

        Raises Skipped where no sampler of the graph can be made.
        """
        try:
            if self.make is None:
                sampler = again(self.sampler, graph)
            else:
                sampler = self.make(graph)
        except Exception as error:  # of any code of a user
            remedy = "pass a function of a graph, and with graph= the columns that it reads"
            raise Skipped(f"no sampler of {graph}: {error}; {remedy}") from error
        if sampler.graph is not graph:
            name = type(sampler).__name__
            raise Skipped(f"{name} does not take the graph that it is made of as its own")
        possible = [seed for seed in seeds if _takes(sampler, seed)]
        moments = self.moments or [0.0]
        return SamplerCase(
            sampler, possible[: sampler.most_seeds], moments, self.make, groups, self.law
        )

    def reseeded(self) -> SamplerBase:
        """Return the sampler with another ``seed``."""
        if isinstance(self.sampler, BoundSampler):
            other: SamplerBase = self.sampler.with_reader(self.sampler.reader)
        else:
            other = copy.copy(self.sampler)
        other.__dict__["seed"] = self.sampler.seed + 1
        return other

    def code(self, check: str) -> list[str]:
        times = ""
        if self.times:
            times = f", times={list(self.times.values())}"
        more = ""
        if check == "pairs":
            more = f", pairs={self.law!r}"
        sampler = "make(graph)"
        if self.make is None:
            sampler = self.sampler.text().replace(repr(self.graph), "graph")
            if isinstance(self.sampler, BoundSampler) and self.sampler.view.where is not None:
                # small graphs have the filter as a column
                sampler = sampler.replace(repr(self.sampler.view.where), repr(FILTER))
        elif check == "hubs":  # of graphs of its own
            sampler = "make"
            more = ", graph=graph"
        return [
            graph_code(self.graph),
            f"sampler = {sampler}",
            f"check_sampler(sampler, {self.seeds}{times}, checks=[{check!r}]{more})",
        ]

    def small(self, graph: Small) -> SamplerCase:
        if self.sampler.seed_kind != "node":
            raise Skipped("seeds are not nodes")
        ends = np.array([graph.src, graph.dst], np.int64).reshape(2, -1)
        case = self.other(self._like(ends, np.arange(graph.num_nodes)), graph.seeds)
        if graph.seeds and not case.seeds:
            raise Skipped("none of the seeds is possible there")
        case.size = self.size
        return case

    def probe(self) -> SamplerCase:
        """Return the case on copies of a small graph, with columns like those of this one.

        In a copy two nodes have in-edges (out-edges, for a sampler along them) from shared sources,
        more than the sampler draws of them; among these are parallel edges and a self-loop. Some
        sources have edges too, one node has none. The order of the edges is mixed, so that an
        edge's id is not its position.
        """
        degree = self.largest
        a = 0
        b = 1
        leaves = range(3, 3 + degree)
        twice = leaves[: int(self.multi_edges)]
        # node 2 gets no edges; nodes a and b share sources, so that layers are no trees
        src = [*leaves, *twice, *leaves[1:], b, leaves[1], leaves[2]]
        dst = [*[a] * (degree + len(twice)), *[b] * (degree - 1), b, leaves[0], leaves[0]]
        size = 3 + degree
        ends = np.concatenate([np.array([src, dst]) + i * size for i in range(COPIES)], axis=1)
        kinds = np.random.default_rng(_SEED).permutation(np.arange(COPIES * len(src)))
        group = kinds % len(src)
        graph = self._like(ends[:, kinds], np.tile(np.arange(size), COPIES), group)
        # a relation has all of the edges, which are alike in it
        relations = np.arange(len(graph.schema.relations))
        groups = (group + relations[:, None] * len(src)).flatten()
        seeds = [0, 1]
        if self.sampler.seed_kind == "node":
            copies = range(0, graph.num_nodes, size)
            seeds = [start + node for start in copies for node in (b, 2, a)]
        return self.other(graph, seeds, groups)

    def hub(self, degree: int) -> SamplerCase:
        """Return the case on a node with many in-edges (out-edges, for a sampler along them)."""
        ends = np.stack([np.arange(1, degree + 1), np.zeros(degree, np.int64)])
        graph = self._like(ends, np.arange(degree + 1))
        case = self.other(graph, range(0, graph.num_nodes, degree + 1))
        with_edges = _degrees(case.sampler)
        case.seeds = [seed for seed in case.seeds if with_edges[seed] >= degree][:1]
        return case

    def _like(self, ends: Ints, node_kinds: Ints, edge_kinds: Ints | None = None) -> Graph:
        """A graph with the columns of this one and the sampler's filter, in its direction."""
        if direction_of(self.sampler) == "out":
            ends = ends[::-1]
        if edge_kinds is None:
            edge_kinds = np.arange(ends.shape[1])
        # the filter is a column, so that it goes where the edges go
        mask = mask_of(self.sampler)
        extra = {}
        if mask is not None:
            extra[FILTER] = torch.from_numpy(np.array(mask))
        return graph_like(self.graph, ends, node_kinds, edge_kinds, extra=extra, shuffle=True)

    @cached_property
    def largest(self) -> int:
        """A degree of which the sampler draws about a half."""
        wide = 400
        try:
            case = self.hub(wide)
            sizes = [case.call(epoch=epoch).flow_sizes[-1] for epoch in range(3)]
        except Exception:  # the checks say what is wrong
            return 5
        drawn = float(np.mean(sizes))
        if drawn >= wide:
            return 5
        return int(min(max(2 * drawn, 4), 60)) + 1


def _takes(sampler: SamplerBase, seed: int) -> bool:
    """Whether a seed is possible, and reaches a type for which the sampler has numbers."""
    if seed not in sampler.possible_seeds:
        return False
    if sampler.seed_kind != "node":
        return True
    try:
        sampler.check_reach(torch.tensor([seed]))
    except ValueError:
        return False
    return True


def direction_of(sampler: SamplerBase) -> str:
    """Return the direction in which a sampler looks up edges."""
    if isinstance(sampler, BoundSampler):
        return sampler.view.direction
    return "in"


def mask_of(sampler: SamplerBase) -> NDArray[np.bool_] | None:
    """Return which edges a sampler's view has; None: all, or a sampler without a view."""
    if not isinstance(sampler, BoundSampler) or sampler.view.where is None:
        return None
    return sampler.view.where.mask


def again(sampler: SamplerBase, graph: Graph) -> SamplerBase:
    """Return the sampler that the call which made this one makes of another graph.

    Raises TypeError for an argument that is not kept in an attribute of its name, and ValueError
    for a sampler that takes no graph.
    """
    values: dict[str, Any] = {}
    for name, is_graph in sampler.made_with.items():
        if is_graph:
            values[name] = _edges_of(sampler, graph)
            continue
        if name not in sampler.__dict__:
            raise TypeError(
                f"{type(sampler).__name__} does not keep its argument {name!r} in an attribute of "
                "that name"
            )
        value = sampler.__dict__[name]
        if isinstance(value, SamplerBase):
            value = again(value, graph)
        values[name] = value
    # the call is repeated: a copy would keep what was read from the old graph
    kind: Any = type(sampler)
    signature = inspect.signature(kind.__init__)
    # arguments by position are passed so, all others by name
    bound = signature.bind_partial(sampler)
    for name in signature.parameters.keys() & values.keys():
        bound.arguments[name] = values.pop(name)
    other: SamplerBase = kind(*bound.args[1:], **bound.kwargs, **values)
    if other.graph is not graph:
        raise ValueError(f"the call that made this {kind.__name__} takes no graph")
    is_same = graph is sampler.graph
    if is_same and isinstance(sampler, BoundSampler) and isinstance(other, BoundSampler):
        other = other.without_edges(sampler.reader.left_out)
    if sampler.backend == other.backend:
        return other
    return other.in_torch(sampler.form.device)


def _edges_of(sampler: SamplerBase, graph: Graph) -> Graph | EdgeView:
    """The edges of a graph that a sampler is made of: a view, unless that is of all in-edges."""
    if not isinstance(sampler, BoundSampler) or sampler.view.is_plain:
        return graph
    view = sampler.view
    where: Any = view.where
    if where is not None and graph is not view.graph:
        where = FILTER  # the column that the other graph has of it
    return graph.view(view.direction, where=where, weight=view.weight)


def given_case(
    sampler: SamplerBase | Make,
    seeds: SeedsLike | None,
    times: NumbersLike | None,
    graph: Graph | None,
    law: str | None,
) -> SamplerCase:
    """Return the case of the arguments of ``check_sampler``."""
    make: Make | None = None
    if isinstance(sampler, SamplerBase):
        if graph is not None:
            raise TypeError(
                "graph= goes with a function that makes the sampler; a sampler has its graph"
            )
        subject = sampler
    else:
        words = "a sampler, or a function that makes one of a graph"
        check_type(sampler, "sampler", Callable, words)
        make = sampler
        subject = make(_example() if graph is None else graph)
        check_type(subject, "the result of sampler(graph)", SamplerBase, "a sampler")
    ids = _default_seeds(subject)
    if seeds is not None:
        ids = as_array(seeds, "seeds").reshape(-1).tolist()
    moments: list[float] = []
    if times is not None:
        of_seeds = as_array(times, "times").tolist()
        time_of = dict(zip(ids, of_seeds, strict=True))
        moments = list(time_of.values())
    elif subject.takes_times:
        stamps = _stamps(subject)
        # the last of the first third, of the second, and of all: some see few edges
        moments = [stamps[(len(stamps) - 1) * third // 3] for third in (1, 2, 3)]
    distinct = list(dict.fromkeys(ids))
    return SamplerCase(subject, distinct, moments, make, law=law or _law_of(subject))


def _example() -> Graph:
    """A graph for a function that was given none."""
    random = np.random.default_rng(_SEED)
    return Graph.from_edges(*random.integers(0, 20, (2, 80)), num_nodes=22)


def _default_seeds(sampler: SamplerBase) -> list[int]:
    """Nodes of several degrees, or the first of other seeds."""
    if sampler.seed_kind != "node":
        return list(range(min(3, sampler.num_seeds)))[: sampler.most_seeds]
    nodes = torch.tensor(sampler.possible_seeds)
    # by their ratio, so that a node of many edges is nearer to some than one of none
    sizes = (_degrees(sampler)[nodes] + 1).log()
    seeds = []
    for size in _DEGREES if len(nodes) else ():
        nearest = (sizes - math.log(size + 1)).abs().argmin()
        seeds.append(int(nodes[nearest]))
    return list(dict.fromkeys(seeds))[: sampler.most_seeds]


def _degrees(sampler: SamplerBase) -> Tensor:
    """The number of edges at every node, along which a sampler draws."""
    direction = direction_of(sampler)
    degrees = torch.zeros(sampler.graph.num_nodes, dtype=torch.int64)
    if direction != "out":
        degrees += sampler.graph.in_degrees()
    if direction != "in":
        degrees += sampler.graph.out_degrees()
    return degrees


def _law_of(sampler: SamplerBase) -> str | None:
    """The law of pairs of the package's own samplers."""
    if isinstance(sampler, BernoulliSampler):
        return "independent"
    if not isinstance(sampler, (NeighborSampler, TemporalNeighborSampler)):
        return None
    if getattr(sampler, "prob", None) is not None or len(sampler.kinds.names) > 1:
        return None
    if getattr(sampler, "strategy", "uniform") != "uniform":  # others draw the latest edges
        return None
    return "uniform"


def _stamps(sampler: SamplerBase) -> list[float]:
    """The times in the column of a sampler, ascending: of edges or else of nodes."""
    name = str(getattr(sampler, "time", ""))
    graph = sampler.graph
    parts = [part.data for part in (*graph.relations.values(), *graph.nodes.values())]
    for frame in (graph.edata, *parts, graph.ndata):
        if name in dense(frame):
            return dense(frame)[name].sort().values.tolist() or [0]
    raise TypeError(f"{type(sampler).__name__} takes times: pass times=, a time for every seed")
