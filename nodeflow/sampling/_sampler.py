"""The base class of samplers that choose edges layer by layer; the package makes NodeFlows of the
choices.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import LARGEST, Ints, as_flag, as_ids, as_int, check_range, describe
from nodeflow._core.edges.forms import COMPILED
from nodeflow._core.edges.view import EdgeView
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling._bound import BoundSampler, Candidates
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._draw import draw_node_flow
from nodeflow.sampling._keys import Keys, Step
from nodeflow.sampling._reached_types import DrawnByKind, check_reach


class Sampler(BoundSampler):
    """Base of the samplers that choose edges layer by layer, from the seeds down to the inputs.

    A subclass implements ``choose``, which returns the edges that the destinations of a flow get.
    This class makes layers, ids, order and weights of them.

    Args:
        graph: the parent graph, or a view of it (``Graph.view``): along which edges neighbours are
            drawn, and by which numbers edges count. Estimator weights make weighted sums over the
            sample unbiased for the sum of weight times value over all edges of the view.
        num_flows: number of flows, L.
        include_dst: True: every layer begins with the nodes of the next one, in their order. False:
            a layer holds the sampled neighbours only, sorted by parent id.
        reuse: True: a node draws once, all flows share that draw, and the structure is stored once
            (needs ``include_dst``). False: every flow draws afresh.
        seed: any integer.

    Raises ValueError for ``reuse`` without ``include_dst``, and what reading the view raises.

    >>> class HalfOfThem(Sampler):
    ...     def choose(self, dst, step):
    ...         edges = self.candidates(dst)
    ...         return edges.select(step.random.uniform(edges.eid) < 0.5, prob=0.5)
    >>> graph = Graph.from_edges([0, 1, 2, 3], [4, 4, 4, 4])
    >>> HalfOfThem(graph, num_flows=1, seed=3)([4]).flows[0].weight
    tensor([2., 2., 2.])
    """

    whole_only = False
    has_torch_form: ClassVar[bool] = False
    """Whether this very class also draws in operations of torch; a class that derives from it may
    draw otherwise.
    """

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        *,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.include_dst = as_flag(include_dst, "include_dst")
        self.reuse = as_flag(reuse, "reuse")
        if self.reuse and not self.include_dst:
            raise ValueError(
                "reuse=True shares prefixes of one structure, which needs include_dst=True"
            )
        super().__init__(graph, num_flows, seed=seed)

    def _drawn_by_kind(self) -> DrawnByKind | None:
        """Return how much every flow draws of each relation or node type; None where a sampler does
        not say so.
        """
        return None

    def check_reach(self, nodes: Tensor) -> None:
        numbers = self._drawn_by_kind()
        if numbers is None or all(counts.all() for counts in numbers.counts):
            return
        schema = self.graph.schema
        names = list(schema.nodes)
        types = [names[i] for i in np.unique(schema.types_of(nodes.numpy()))]
        check_reach(numbers, schema, self.view.direction, types, self.include_dst)

    @abstractmethod
    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Choose edges for the destinations ``dst``, parent ids, int64.

        They are distinct, except for samplers of the package that draw a tree per seed or per time
        (``step.contexts``). Look up edges by ``candidates``, or in ``reader.edges`` the rows
        ``reader.edges.rows_of(dst)`` alone. The result must depend on ``dst``, ``step`` and the
        sampler's settings only. The method must not change them: it is called from several threads.
        """

    def _nodes_of(self, dst: Tensor) -> Ints:
        """Return the destinations of ``choose`` as an array of the form; raises IndexError for ids
        that are no nodes.
        """
        nodes: Ints = self.reader.edges.form.array(dst)
        # compiled loops trust them; operations of torch check
        if self.form is COMPILED:
            check_range(nodes, "dst", self.graph.num_nodes, "node")
        return nodes

    def candidates(self, dst: Tensor) -> Candidates:
        """Return all edges that the destinations ``dst`` (parent ids) could draw."""
        return Candidates(
            self.reader.in_form(COMPILED),
            torch.from_numpy(as_ids(dst, "dst", self.graph.num_nodes)),
        )

    def _sample(self, seeds: Ints, keys: Keys, contexts: Ints | None = None) -> NodeFlow:
        return draw_node_flow(self, seeds, keys, contexts)


MOST_DRAWS: Final = 2**24
"""Draws with replacement that one node, or the layer of a graph with fewer nodes, may ask for: each
is made.
"""


def check_draws(number: int, name: str, num_nodes: int = 0) -> None:
    """Raise ValueError for more draws with replacement than make sense among ``num_nodes``
    nodes.
    """
    most = max(MOST_DRAWS, num_nodes)
    if number > most:
        raise ValueError(
            f"{name} must be at most {most}, since every single draw is made, got {number}"
        )


def check_sizes(sizes: Any, name: str, *, every: bool = True) -> tuple[int, ...]:
    """Return one int per flow, each at least 1, or with ``every`` -1 for all; raise TypeError or
    ValueError.
    """
    values = as_list(sizes, name, "one number per flow, as in [10, 25]")
    return tuple(check_size(size, f"{name}[{i}]", every=every) for i, size in enumerate(values))


def as_list(value: Any, name: str, content: str) -> list[Any]:
    """Return a list, tuple, or one-dimensional tensor or array as a list that is not empty; else
    raise an error.
    """
    array = isinstance(value, (Tensor, np.ndarray)) and value.ndim == 1
    if not array and (isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence)):
        raise TypeError(f"{name} must be a list with {content}, got {describe(value)}")
    if len(value) == 0:
        raise ValueError(f"{name} must have one number per flow, got none")
    return value.tolist() if array else list(value)


def check_size(value: object, name: str, *, every: bool = True) -> int:
    """Return one number of ``check_sizes`` as an int."""
    size = as_int(value, name)
    if not 1 <= size <= LARGEST and not (every and size == -1):
        rule = "at least 1"
        if every:
            rule = "-1 (all neighbours) or at least 1"
        raise ValueError(f"{name} must be {rule}, got {size}; the most is 2**63 - 1")
    return size
