"""A sampler on a graph, with the seeds it is called with; the small graphs that checks make for
it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._base.checks import Ints, as_array, check_type
from nodeflow._base.types import NumbersLike, SeedsLike
from nodeflow._edges.view import EdgeView
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling import (
    BernoulliSampler,
    NeighborSampler,
    TemporalNeighborSampler,
    first_of_epoch,
)
from nodeflow.sampling.base import BoundSampler, SamplerBase
from nodeflow.testing._foreign import ForeignSampler
from nodeflow.testing._run import Skipped
from nodeflow.testing._shrink import Parts, all_parts, dense, graph_code, smaller_graph

Make = Callable[[Graph], SamplerBase]
FILTER = "edge_filter"  # the column that holds the filter of a sampler which was given as a mask
COPIES = 8  # of a small graph, so that one call draws several times
# numbers of calls after which a test is made: what is far off is found at the first
STAGES = (100, 500)
_PROBE = 7  # seed of the numbers that make small graphs
# of which samplers with small and with large fanouts draw a part
_DEGREES = (2, 4, 8, 16, 24, 32, 48, 64)


class SamplerCase:
    """A sampler, the seeds of its calls, and how to make the same sampler of another graph.

    Attributes:
        sampler: the sampler.
        seeds: distinct seeds.
        times: time of every seed, for a sampler that takes times, else empty.
        groups: number of the group of every edge, int64 ``[num_edges]``: edges of a group are
            alike, and a statistical check joins them; None: every edge is a group.
        law: how the edges of a destination are drawn together: "uniform" or "independent"; None:
            unknown.
        stages: numbers of calls after which statistical tests are made.
        draws: number of calls so far.
    """

    def __init__(
        self,
        sampler: SamplerBase,
        seeds: Sequence[int],
        times: Mapping[int, float],
        make: Make,
        *,
        groups: Ints | None = None,
        law: str | None = None,
        stages: Sequence[int] = STAGES,
    ) -> None:
        self.sampler = sampler
        self.seeds = list(seeds)
        self.times = dict(times)
        self.make = make
        self.groups = groups
        self.law = law
        self.stages = stages
        self.draws = 0
        self.kept: dict[str, Any] = {}  # what several checks read

    @property
    def graph(self) -> Graph:
        return self.sampler.graph

    def call(
        self,
        seeds: Sequence[int] | Tensor | None = None,
        sampler: SamplerBase | None = None,
        **which: Any,
    ) -> NodeFlow:
        """Return the batch of ``seeds`` (None: all of the case), of another sampler if one is
        passed.
        """
        self.draws += 1
        ids = self.seeds if seeds is None else seeds
        drawing = sampler or self.sampler
        if drawing.takes_times:
            which["times"] = torch.as_tensor([self.times[int(i)] for i in ids])
        return drawing(ids, **first_of_epoch(drawing, which))

    def other(self, graph: Graph, seeds: Sequence[int], **parts: Any) -> SamplerCase:
        """Return the case of the same sampler on another graph; raises Skipped where it cannot be
        made.
        """
        try:
            sampler = self.make(graph)
        except Exception as error:  # of any code of a user
            remedy = "graph= may show the columns that it reads"
            if not getattr(self.make, "own", True):
                remedy = "a function that makes one of a graph may be passed in place of a sampler"
            raise Skipped(f"no sampler of {graph}: {error}; {remedy}") from error
        if sampler.graph is not graph:
            raise Skipped(
                f"{type(sampler).__name__} does not take the graph that it is made of as its own"
            )
        times = list(self.times.values()) or [0.0]
        moments = (
            {seed: times[i % len(times)] for i, seed in enumerate(seeds)}
            if sampler.takes_times
            else {}
        )
        return SamplerCase(sampler, seeds, moments, self.make, law=self.law, **parts)

    def of_few_edges(self) -> SamplerCase:
        """Return the case with seeds of several small degrees in its graph, for checks that count
        every edge.
        """
        if self.sampler.seed_kind != "node":
            return self
        nodes = torch.tensor(self.sampler.possible_seeds)
        degrees = _degrees(self.sampler)[nodes]
        nearest = [int((degrees - size).abs().argmin()) for size in _DEGREES] if len(nodes) else []
        few = [int(nodes[i]) for i in dict.fromkeys(nearest) if 0 < degrees[i] <= 2 * _DEGREES[-1]]
        times = list(self.times.values())
        moments = {seed: times[i % len(times)] for i, seed in enumerate(few)} if times else {}
        return SamplerCase(
            self.sampler, few or self.seeds, moments or self.times, self.make, law=self.law
        )

    def reseeded(self) -> SamplerBase:
        """Return the sampler with another ``seed``."""
        other = (
            copy.copy(self.sampler)
            if not isinstance(self.sampler, BoundSampler)
            else self.sampler.with_reader(self.sampler.reader)
        )
        other.__dict__["seed"] = self.sampler.seed + 1
        return other

    def parts(self) -> Parts:
        return all_parts(self.graph, self.seeds)

    def smaller(self, parts: Parts) -> SamplerCase:
        if self.sampler.seed_kind != "node":
            raise Skipped("seeds are not nodes")
        graph = smaller_graph(self.graph, parts, extra_columns(self.sampler, self.graph))
        seeds = np.searchsorted(parts.nodes, parts.seeds).tolist()
        groups = None if self.groups is None else self.groups[parts.edges]
        case = self.other(graph, seeds, groups=groups, stages=self.stages)
        if self.times:
            case.times = {new: self.times[old] for new, old in zip(seeds, parts.seeds, strict=True)}
        return case

    def code(self, check: str) -> list[str]:
        times = f", times={[self.times[s] for s in self.seeds]}" if self.times else ""
        code = "make(graph)"
        more = f", pairs={self.law!r}" if check == "pairs" else ""
        if not getattr(self.make, "own", True):
            code = _call(self.sampler)
        elif check == "hubs":  # of graphs of its own
            code = "make"
            more = ", graph=graph"
        return [
            graph_code(self.graph),
            f"sampler = {code}",
            f"check_sampler(sampler, {self.seeds}{times}, checks=[{check!r}]{more})",
        ]

    def probe(self, copies: int = COPIES, *, parallel_edges: bool = True) -> SamplerCase:
        """Return the case on copies of a small graph, with columns like those of this one.

        In a copy two nodes have in-edges (out-edges, for a sampler along them) from shared sources,
        more than the sampler draws of them; among these are parallel edges and a self-loop. Some
        sources have edges too, one node has none. The order of the edges is mixed, so that an
        edge's id is not its position.
        """
        degree = self._degree()
        a = 0
        b = 1
        first = 3
        leaves = range(first, first + degree)
        twice = leaves[: int(parallel_edges)]
        src = [*leaves, *twice, *leaves[1:], b, leaves[1], leaves[2]]
        dst = [*[a] * (degree + len(twice)), *[b] * (degree - 1), b, leaves[0], leaves[0]]
        size = first + degree
        ends = np.array([src, dst])
        if direction_of(self.sampler) == "out":
            ends = ends[::-1]
        whole = np.concatenate([ends + i * size for i in range(copies)], axis=1)
        groups = np.tile(np.arange(len(src)), copies)
        random = np.random.default_rng(_PROBE)
        order = random.permutation(len(groups))
        group = torch.from_numpy(groups[order])
        copied = torch.arange(size).repeat(copies)
        graph = self._made(whole[:, order], (size, copied), (len(src), group))
        limit = self.sampler.most_seeds
        types = self.graph.schema.nodes
        starts = range(0, graph.num_nodes, size * copies)[: len(types)]
        seeds = [t + i * size + s for t in starts for i in range(copies) for s in (b, 2, a)]
        # a relation has all of the edges, which are alike in it
        groups = np.concatenate(
            [group.numpy() + i * len(src) for i in range(len(self.graph.schema.relations))]
        )
        case = self.other(graph, [], groups=groups)
        if self.sampler.seed_kind == "node":
            own = [seed for seed in seeds if seed in case.sampler.possible_seeds]
        else:
            own = [0, 1]
        return self.other(graph, own[:limit], groups=groups)

    def hub(self, degree: int) -> SamplerCase:
        """Return the case on a node with many in-edges (out-edges, for a sampler along them)."""
        nodes = np.arange(1, degree + 1)
        hub = np.zeros(degree, np.int64)
        ends = (hub, nodes) if direction_of(self.sampler) == "out" else (nodes, hub)
        graph = self._made(
            np.stack(ends), (degree + 1, torch.arange(degree + 1)), (degree, torch.arange(degree))
        )
        end = 0 if direction_of(self.sampler) == "out" else 2
        first = [graph.schema.ids(relation[end]).start for relation in graph.schema.relations]
        possible = self.other(graph, []).sampler.possible_seeds
        return self.other(graph, [seed for seed in first if seed in possible][:1])

    def _made(self, ends: Ints, nodes: tuple[int, Tensor], edges: tuple[int, Tensor]) -> Graph:
        """A graph of the types of this one: each relation has the edges ``ends`` ``[2, E]`` between
        nodes of its types.

        Columns are made of so many different rows, and an index of these for each node of a type,
        or edge.
        """
        schema = self.graph.schema
        num_rows, of_nodes = nodes
        num_groups, of_edges = edges
        graph = Graph.typed(
            dict.fromkeys(schema.nodes, len(of_nodes)),
            dict.fromkeys(schema.relations, (ends[0], ends[1])),
        )
        extra = extra_columns(self.sampler, self.graph)
        types = len(schema.nodes)
        relations = len(schema.relations)
        parts = [(graph.ndata, self.graph.ndata, num_rows, of_nodes.repeat(types))]
        parts += [
            (new.data, old.data, num_rows, of_nodes)
            for new, old in zip(graph.nodes.values(), self.graph.nodes.values(), strict=True)
        ]
        relations_of_both = zip(
            graph.relations.values(), self.graph.relations.values(), strict=True
        )
        parts += [(new.data, old.data, num_groups, of_edges) for new, old in relations_of_both]
        for frame, like, size, index in parts:
            frame.update(
                {name: column[index] for name, column in self._columns(like, size).items()}
            )
        columns = self._columns(self.graph.edata, num_groups, extra)
        graph.edata.update(
            {name: column[of_edges.repeat(relations)] for name, column in columns.items()}
        )
        return graph

    def _degree(self) -> int:
        """A degree of which the sampler draws about a half."""
        if self.sampler.seed_kind != "node":
            return 5
        wide = 400
        try:
            case = self.hub(wide)
            drawn = (
                float(np.mean([case.call(epoch=e).flow_sizes[-1] for e in range(3)]))
                if case.sampler.num_flows
                else 0
            )
        except Exception:  # the checks say what is wrong
            drawn = 0
        return 5 if drawn >= wide else int(min(max(2 * drawn, 4), 60)) + 1

    def _columns(
        self, frame: Any, size: int, extra: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Columns of ``size`` rows like those of a frame; numbers that differ by large factors are
        left out.
        """
        random = np.random.default_rng(_PROBE)
        columns = {}
        for name, column in {**dense(frame), **(extra or {})}.items():
            rows = np.arange(len(column))
            if column.is_floating_point() and column.ndim == 1 and len(rows):
                values = column.detach().double().abs().numpy()
                middle = np.median(values[values > 0]) if (values > 0).any() else 0
                # rare edges would need many draws to be seen
                rows = np.flatnonzero(
                    (values == 0) | ((values >= middle / 2) & (values <= 2 * middle))
                )
            if not len(rows):
                columns[name] = column.new_zeros(size, *column.shape[1:])
            else:
                columns[name] = column.detach()[torch.from_numpy(random.choice(rows, size))].clone()
        return columns


def extra_columns(sampler: SamplerBase, graph: Graph) -> dict[str, Tensor]:
    """Return the filter of a sampler as a column of its graph, so that it goes where the edges
    go.
    """
    mask = mask_of(sampler)
    return {} if mask is None else {FILTER: torch.from_numpy(np.array(mask))}


def direction_of(sampler: SamplerBase) -> str:
    """Return the direction in which a sampler looks up edges."""
    return sampler.view.direction if isinstance(sampler, BoundSampler) else "in"


def mask_of(sampler: SamplerBase) -> NDArray[np.bool_] | None:
    """Return which edges a sampler's view has; None: all, or a sampler without a view."""
    if not isinstance(sampler, BoundSampler) or sampler.view.where is None:
        return None
    return sampler.view.where.mask


def settings_maker(sampler: SamplerBase) -> Make:
    """Return a function that makes a sampler with the same settings of another graph."""

    def make(graph: Graph) -> SamplerBase:
        if isinstance(sampler, ForeignSampler) and graph is not sampler.graph:
            raise TypeError("the function of as_sampler draws of its own graph")
        return _again(sampler, graph)

    make.own = False  # type: ignore[attr-defined]
    return make


def _again(sampler: SamplerBase, graph: Graph, mask: Tensor | None = None) -> SamplerBase:
    """The sampler that the call which made this one makes of a graph, with another filter."""
    values = _values(sampler)
    for name, value in values.items():
        if value is sampler.graph:
            values[name] = graph if mask is None else graph.view(where=mask)
        elif isinstance(value, EdgeView):
            values[name] = _view(value, graph, mask)
        elif isinstance(value, SamplerBase):
            values[name] = _again(value, graph)
    kind: Any = type(sampler)
    own = inspect.signature(kind.__init__)
    bound = own.bind_partial(sampler)
    bound.arguments |= {name: values.pop(name) for name in own.parameters.keys() & values.keys()}
    other: SamplerBase = kind(*bound.args[1:], **bound.kwargs, **values)
    if other.graph is not graph:
        raise ValueError(f"the call that made this {kind.__name__} takes no graph")
    if (
        isinstance(sampler, BoundSampler)
        and isinstance(other, BoundSampler)
        and graph is sampler.graph
    ):
        left_out = sampler.reader.left_out
        other = other if left_out is None else other.without_edges(left_out)
    return other if sampler.backend == other.backend else other.in_torch(sampler.form.device)


def _view(view: EdgeView, graph: Graph, mask: Tensor | None) -> EdgeView:
    """The view of another graph, or with another filter."""
    where: Any = view.where if mask is None else mask
    if where is not None and graph is not view.graph:
        where = FILTER  # the column that the other graph has of it
    return graph.view(view.direction, where=where, weight=view.weight)


def _values(sampler: SamplerBase) -> dict[str, Any]:
    """The arguments that the call passed which made a sampler, by name."""
    values: dict[str, Any] = {}
    for name, is_graph in sampler.made_with.items():
        if is_graph:
            values[name] = sampler.graph
            if isinstance(sampler, BoundSampler) and not sampler.view.is_plain:
                values[name] = sampler.view
        elif name in sampler.__dict__:
            values[name] = sampler.__dict__[name]
        else:
            raise TypeError(
                f"{type(sampler).__name__} does not keep its argument {name!r} in an attribute of "
                "that name"
            )
    return values


def with_filter(sampler: SamplerBase, mask: Tensor) -> SamplerBase | None:
    """Return the sampler of filtered edges; None where it has a filter, or cannot have one."""
    if not isinstance(sampler, BoundSampler) or sampler.view.where is not None:
        return None
    try:
        return _again(sampler, sampler.graph, mask)
    except (TypeError, ValueError):
        return None


def _text(view: EdgeView) -> str:
    """The text of the call that makes a view of a graph that is named ``graph``."""
    words = [] if view.direction == "in" else [repr(view.direction)]
    if view.where is not None:
        words.append(f"where={FILTER!r}")
    if view.weight is not None:
        words.append(f"weight={view.weight!r}")
    return f"graph.view({', '.join(words)})"


def _call(sampler: SamplerBase) -> str:
    """The text of the call that made a sampler, of a graph that is named ``graph``."""
    name = type(sampler).__name__
    try:
        values = _values(sampler)
    except TypeError:
        return f"...  # {name}, as given"
    words = []
    for argument, value in values.items():
        if value is sampler.graph:
            words.append("graph")
        elif isinstance(value, EdgeView):
            words.append(_text(value))
        else:
            words.append(
                f"{argument}={_call(value) if isinstance(value, SamplerBase) else repr(value)}"
            )
    call = f"{name}({', '.join(words)})"
    # functions have no text, and large arrays one of many lines
    return f"...  # {name}, as given" if {"<", "\n"} & set(call) else call


def given_case(
    sampler: SamplerBase | Make,
    seeds: SeedsLike | None,
    times: NumbersLike | None,
    graph: Graph | None,
    law: str | None,
) -> SamplerCase:
    """Return the case of the arguments of ``check_sampler``."""
    if isinstance(sampler, SamplerBase):
        if graph is not None:
            raise TypeError(
                "graph= goes with a function that makes the sampler; a sampler has its graph"
            )
        subject = sampler
        make = settings_maker(sampler)
    else:
        check_type(
            sampler, "sampler", Callable, "a sampler, or a function that makes one of a graph"
        )
        make = sampler
        subject = make(_example() if graph is None else graph)
        check_type(subject, "the result of sampler(graph)", SamplerBase, "a sampler")
    chosen = (
        _default_seeds(subject) if seeds is None else as_array(seeds, "seeds").reshape(-1).tolist()
    )
    if times is not None:
        own = dict(zip(chosen, as_array(times, "times").tolist(), strict=True))
    elif subject.takes_times:
        column = _column_of_times(subject.graph, str(getattr(subject, "time", "")))
        if column is None:
            raise TypeError(
                f"{type(subject).__name__} takes times: pass times=, a time for every seed"
            )
        moments = column.sort().values.tolist() or [0]
        own = {s: moments[(len(moments) - 1) * (i % 3 + 1) // 3] for i, s in enumerate(chosen)}
    else:
        own = {}
    return SamplerCase(subject, list(dict.fromkeys(chosen)), own, make, law=law or _law_of(subject))


def _example() -> Graph:
    random = np.random.default_rng(_PROBE)
    return Graph.from_edges(*random.integers(0, 20, (2, 80)), num_nodes=22)


def _default_seeds(sampler: SamplerBase) -> list[int]:
    if sampler.seed_kind != "node":
        return list(range(min(3, sampler.num_seeds)))[: sampler.most_seeds]
    degrees = sampler.graph.in_degrees() + sampler.graph.out_degrees()
    order = degrees.argsort(descending=True, stable=True).tolist()
    order = [seed for seed in order if seed in sampler.possible_seeds]
    return list(dict.fromkeys([*order[:4], *order[-2:]]))[: sampler.most_seeds]


def _degrees(sampler: SamplerBase) -> Tensor:
    """The number of edges at every node, along which a sampler draws."""
    direction = direction_of(sampler)
    sides = {"in": sampler.graph.in_degrees, "out": sampler.graph.out_degrees}
    return torch.stack(
        [degrees() for side, degrees in sides.items() if direction in (side, "both")]
    ).sum(0)


def _law_of(sampler: SamplerBase) -> str | None:
    if isinstance(sampler, BernoulliSampler):
        return "independent"
    plain = (
        getattr(sampler, "prob", None) is None
        and len(getattr(getattr(sampler, "kinds", None), "names", ())) < 2
    )
    uniform = isinstance(sampler, (NeighborSampler, TemporalNeighborSampler)) and plain
    return "uniform" if uniform and getattr(sampler, "strategy", "uniform") == "uniform" else None


def _column_of_times(graph: Graph, name: str) -> Tensor | None:
    """The first column of this name, of edges or of nodes."""
    parts = (part.data for part in (*graph.relations.values(), *graph.nodes.values()))
    return next(
        (
            dense(frame)[name]
            for frame in (graph.edata, *parts, graph.ndata)
            if name in dense(frame)
        ),
        None,
    )
