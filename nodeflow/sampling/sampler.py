"""The protocol of samplers: choose edges for a set of destinations; the package makes a NodeFlow of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from nodeflow._check import as_count, as_ids, as_int, describe
from nodeflow._frozen import Frozen
from nodeflow.graph import Graph
from nodeflow.node_flow import NodeFlow
from nodeflow.random import Random, derive_key, hash_ids
from nodeflow.sampling.assemble import assemble, edges_along
from nodeflow.sampling.choice import Candidates, Choice, Edges

_MOST = int(np.iinfo(np.int64).max)


class Step(Frozen):
    """Which draw a sampler is asked for: ``flow`` is the flow's number, ``random`` the numbers that belong to it."""

    __slots__ = ("flow", "random")
    flow: int
    random: Random

    def __init__(self, flow: int, random: Random) -> None:
        self._set(flow=flow, random=random)


class Sampler(ABC):
    """Base of all samplers: bound to a graph, called with seeds, returns a NodeFlow.

    A sampler of your own says in ``choose`` which edges the destinations of a flow get; layers, ids, order and weights
    follow from that.

    Args:
        graph: the parent graph; it is never written to.
        num_flows: number of flows, L.
        direction: "in" walks from a node to the sources of its in-edges, "out" to the destinations of its out-edges.
        include_dst: every layer begins with the nodes of the next one, in their order; else a layer holds the sampled
            neighbours only, sorted by parent id.
        reuse: a node draws once, all flows share that draw, and the structure is stored once (needs ``include_dst``);
            else every flow draws afresh.
        seed: any integer.

    Raises ValueError for a direction that is neither, or ``reuse`` without ``include_dst``.

    >>> import torch
    >>> class HalfOfThem(Sampler):
    ...     '''Keeps every edge with probability one half.'''
    ...     def choose(self, dst, step):
    ...         edges = self.candidates(dst)
    ...         return edges.select(step.random.uniform(edges.eid) < 0.5, weight=2.0)
    >>> graph = Graph.from_edges([0, 1, 2, 3], [4, 4, 4, 4])
    >>> HalfOfThem(graph, num_flows=1, seed=3)([4]).flows[0].weight
    tensor([2.])
    """

    fixed: ClassVar[tuple[str, ...]] = ("num_flows", "direction", "include_dst", "reuse", "seed")
    """Names of the settings, which can be set once; a subclass may add its own."""

    def __init__(
        self,
        graph: Graph,
        num_flows: int,
        *,
        direction: str = "in",
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a nodeflow.Graph, got {describe(graph)}")
        if reuse and not include_dst:
            raise ValueError("reuse=True shares prefixes of one structure, which needs include_dst=True")
        self.graph = graph
        self.num_flows = as_count(num_flows, "num_flows", 1)
        self.direction = direction
        self.include_dst = bool(include_dst)
        self.reuse = bool(reuse)
        self.seed = as_int(seed, "seed")
        self._edges: Edges = edges_along(graph, direction)

    @property
    def settings(self) -> dict[str, Any]:
        """What draws depend on, but for the graph: the names in ``fixed`` that this sampler has, and their values."""
        return {name: self.__dict__[name] for name in self.fixed if name in self.__dict__}

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("graph", *self.fixed) and name in self.__dict__:
            raise AttributeError(f"{name} of a sampler is fixed when it is made; make a new {type(self).__name__}")
        super().__setattr__(name, value)

    @abstractmethod
    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Choose edges for the destinations ``dst`` (distinct parent ids, int64) of flow ``step.flow``.

        Must depend on ``dst``, ``step`` and the sampler's own fixed settings only, and must not change them: it is
        called from several threads.
        """

    def candidates(self, dst: Tensor) -> Candidates:
        """Return all edges that the destinations ``dst`` (parent ids) could draw."""
        return Candidates(self._edges, torch.from_numpy(as_ids(dst, "dst", self.graph.num_nodes)))

    def __getstate__(self) -> dict[str, Any]:
        # the edge arrays are the graph's, which travels as itself: by file name where it is memory-mapped
        return {name: value for name, value in self.__dict__.items() if name != "_edges"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._edges = edges_along(self.graph, self.direction)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({self.graph}, {settings})"

    def __call__(self, seeds: Any, *, epoch: int = 0, batch: int | None = None) -> NodeFlow:
        """Sample the NodeFlow of ``seeds``.

        The result is a pure function of the sampler's settings and these arguments, on any thread and in any process.

        Args:
            seeds: parent ids of the nodes whose outputs are wanted; repeats collapse, and ``seed_index`` restores them.
                A list of ids works too, so a sampler can be the ``collate_fn`` of a ``torch.utils.data.DataLoader``
                (which does not tell it the epoch: equal batches are then equal draws; see ``functools.partial``).
            epoch: another epoch is another, independent draw.
            batch: number that tells this batch from the others of its epoch; None takes a hash of the seed ids.

        Raises TypeError for float or bool seeds, IndexError for an id out of range.
        """
        ids = as_ids(_stack(seeds), "seeds", self.graph.num_nodes)
        # the leading word keeps numbered batches and hashed ones apart
        named = (0, hash_ids(ids)) if batch is None else (1, as_int(batch, "batch"))
        root = derive_key(self.seed, as_int(epoch, "epoch"), *named)

        def choose(dst: Tensor, flow: int) -> Choice:
            return self.choose(dst, Step(flow, Random(derive_key(root, flow))))

        options = {"include_dst": self.include_dst, "reuse": self.reuse}
        return assemble(self.graph, self._edges, ids, self.num_flows, choose, **options)


def _stack(seeds: Any) -> Any:
    """A torch DataLoader over a tensor hands its ``collate_fn`` a list of zero-dimensional tensors."""
    if isinstance(seeds, Sequence) and seeds and all(isinstance(seed, Tensor) and seed.ndim == 0 for seed in seeds):
        return torch.stack(list(seeds))
    return seeds


def check_fanouts(fanouts: Any) -> tuple[int, ...]:
    """Return ``fanouts`` as ints: one per flow, each -1 (all) or at least 1; else TypeError or ValueError."""
    array = isinstance(fanouts, (Tensor, np.ndarray)) and fanouts.ndim == 1
    if not array and (isinstance(fanouts, (str, bytes)) or not isinstance(fanouts, Sequence)):
        raise TypeError(f"fanouts must be a list with one number per flow, as in [10, 25], got {describe(fanouts)}")
    found = tuple(as_int(fanout, f"fanouts[{i}]") for i, fanout in enumerate(fanouts))
    if not found:
        raise ValueError("fanouts must have one number per flow, got none")
    for i, fanout in enumerate(found):
        if fanout < -1 or fanout == 0:
            raise ValueError(f"fanouts[{i}] must be -1 (all neighbours) or at least 1, got {fanout}")
        if fanout > _MOST:
            raise ValueError(f"fanouts[{i}] must be a 64-bit integer, -1 takes all neighbours; got {fanout}")
    return found
