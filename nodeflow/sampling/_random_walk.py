"""PinSAGE's neighbours: the nodes that random walks from a node visit most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_count, as_flag, as_number, first_true
from nodeflow._core.base.sizes import check_memory
from nodeflow._core.base.types import Array, PerFlow
from nodeflow._core.edges.view import EdgeView
from nodeflow._core.schema import Relation
from nodeflow.graph import Graph
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._keys import Step
from nodeflow.sampling._one_process import check_one_process
from nodeflow.sampling._relations import relations
from nodeflow.sampling._sampler import Sampler, check_draws, check_sizes


class RandomWalkSampler(Sampler):
    """The neighbours of a node are the nodes that short random walks from it visit most.

    This is the sampling of PinSAGE (Ying et al. 2018, section 3.2).

    Every destination runs ``num_walks`` walks of exactly ``walk_length`` steps. A step follows a
    uniformly random edge of the node where the walk is (``direction="in"``: an in-edge, to its
    source). Before each step but the first the walk returns to its start with probability
    ``restart``; from a node without edges it always returns. The nodes that were visited after some
    step, without the start itself, are its neighbours, or the ``num_neighbors`` most visited of
    them; of equally often visited ones the one visited first (earlier step, then earlier walk).

    The graph does not have the edges of such a flow: ``parent_eid`` is -1. The flow's frame has a
    column "visits", int64, and ``flow.weight`` is

    - with ``normalize=True``: visits / sum of the visits of the chosen neighbours, which adds up to
      1 (the weights of PinSAGE's importance pooling);
    - with ``normalize=False``: visits / (num_walks * walk_length). With all visited nodes kept this
      is unbiased for the probability that a walk is at that node after a step, on average over its
      steps.

    Args:
        num_flows: number of flows.
        num_neighbors: how many neighbours a node gets at most: a number for every flow, or a list
            with one per flow **in flow order** (``num_neighbors[-1]`` belongs to the seeds). None
            or -1 keeps all that were visited.
        num_walks: walks per destination and flow.
        walk_length: steps of a walk.
        restart: probability of going back to the start, from 0 to 1. With 1 every step is a first
            step.
        normalize: which weights, see above.
        metapath: relations of the graph's schema, by name or triple, in the order of a walk's
            edges; each begins where the one before ends: with ``direction="in"`` a relation leads
            from its destinations to its sources. The path ends at the type where it begins, unless
            there is one flow and one step. Seeds have this type; other nodes have no walks. None: a
            step is any edge.
        graph, include_dst, seed: see ``Sampler``; the filter says which
            edges walks may take.
        reuse: see ``Sampler``; flows then have no column "visits" (with ``normalize=False`` it is
            ``weight * num_walks * walk_length``).

    With ``metapath``, a step is a whole pass of the path: an edge of its first relation, one of its
    second, and so on, and only the node at its end is visited. A walk that finds no edge on the way
    goes back to its start, and visits nothing in that step. So walks along author, paper, author
    visit authors (Dong, Chawla, Swami 2017, section 3.2).

    Walks that pass no node with an edge that ``without_edges`` leaves out stay as they were.

    Cost: ``num_walks * walk_length`` steps per destination, whatever the degrees. A destination
    without edges gets no neighbours, and neither does one whose only edges are self-loops.

    Raises ValueError for numbers below 1, a list that has not one entry per flow, a restart outside
    0 to 1, ``num_walks * walk_length`` above 2**24, a metapath that does not join, and seeds of
    another type than where it begins; TypeError for arguments that are not numbers, and for a graph
    on several processes; KeyError for an unknown relation.

    >>> graph = Graph.from_edges([0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2])  # a path, in both directions
    >>> flow = RandomWalkSampler(graph, num_flows=1, num_neighbors=2, seed=1)([0]).flows[0]
    >>> flow.src_layer.parent_nid[flow.indices], flow.data["visits"]
    (tensor([1, 2]), tensor([16,  3]))
    >>> flow.weight
    tensor([0.8421, 0.1579])
    """

    draws_as = "random walk"

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        num_neighbors: int | PerFlow | Sequence[int | None] | None = None,
        *,
        num_walks: int = 10,
        walk_length: int = 2,
        restart: float = 0.5,
        normalize: bool = True,
        metapath: Sequence[str | Relation] | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.num_neighbors = _limits(num_neighbors, as_count(num_flows, "num_flows", 1))
        self.num_walks = as_count(num_walks, "num_walks", 1)
        self.walk_length = as_count(walk_length, "walk_length", 1)
        check_draws(self.num_walks * self.walk_length, "num_walks * walk_length")
        self.restart = as_number(restart, "restart", least=0, most=1)
        self.normalize = as_flag(normalize, "normalize")
        if metapath is not None and (not isinstance(metapath, list | tuple) or not metapath):
            raise TypeError(
                "metapath must be a list of relations, as in ['writes', 'rev_writes'], got "
                f"{metapath!r}"
            )
        self.metapath = None if metapath is None else tuple(metapath)
        super().__init__(graph, num_flows, include_dst=include_dst, reuse=reuse, seed=seed)

    def read_graph(self) -> None:
        check_one_process(self.graph, "RandomWalkSampler")
        if self.view.weight is not None:
            raise ValueError(
                f"walks take every edge alike; leave weight={self.view.weight!r} out of the view"
            )
        super().read_graph()
        self._starts = range(self.graph.num_nodes)
        self._path = np.array([[0, 0, 1]])
        if self.metapath is not None:
            self._read_path(self.metapath)

    @property
    def possible_seeds(self) -> range:
        """The nodes where the metapath begins; without one all."""
        return self._starts

    def _read_path(self, metapath: Sequence[str | Relation]) -> None:
        """Set the nodes where walks may start, and how the row of a node is found for each relation
        of the path.
        """
        if self.view.direction == "both":
            raise ValueError(
                "metapath goes with direction='in' or 'out': with 'both' a relation has no end to "
                "begin at"
            )
        schema = self.graph.schema
        kinds = relations(self.graph, self.view.direction)
        path = [schema.relation(name) for name in metapath]
        begin, end = (2, 0) if self.view.direction == "in" else (0, 2)
        is_repeated = self.walk_length > 1 or self.num_flows > 1
        for step, following in pairwise([*path, path[0]] if is_repeated else path):
            if step[end] != following[begin]:
                raise ValueError(
                    f"metapath must join with direction={self.view.direction!r}: {step} leads to "
                    f"{step[end]!r}, but {following} begins at {following[begin]!r}"
                )
        self._starts = schema.ids(path[0][begin])
        self.reader = self.reader._replace(edges=kinds.lay_out(self.reader.edges, self.graph))
        # of relation k node v has the row ``first + (v - start) * count``, where its type begins at
        # ``start``
        starts = np.array([schema.ids(relation[begin]).start for relation in path])
        numbers = np.array([schema.number(relation) for relation in path])
        first = kinds.rows.of_edges(starts, numbers)
        self._path = np.stack([first, starts, kinds.rows.first(starts)[1]], axis=1)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        # nodes of other types are destinations too, with ``include_dst``: they have no walks
        starts = self._nodes_of(dst)
        may_walk = (starts >= self._starts.start) & (starts < self._starts.stop)
        if step.flow == self.num_flows - 1 and (i := first_true(~may_walk)) is not None:
            raise ValueError(
                f"seeds must be nodes where the metapath begins, {self._starts}, but seeds[{i}] is "
                f"{starts[i]}"
            )
        visited = self._visited(starts[may_walk], step)
        if not may_walk.all():
            every = np.empty((len(starts), *visited.shape[1:]), visited.dtype)
            every[:] = starts[:, None, None]  # where a walk stays, nothing is visited
            every[may_walk] = visited
            visited = every
        indptr, src, visits = kernels.walk.most_visited(
            visited, starts, self.num_neighbors[step.flow]
        )
        # with reuse the flows are prefixes of one structure, which has no columns
        if self.reuse:
            columns = {}
        else:
            columns = {"visits": torch.from_numpy(visits)}
        weight = partial(self._importance, indptr, visits)
        return Choice.of_kernel(indptr, None, src, weight, needs_weight=True, edata=columns)

    def _visited(self, dst: Ints, step: Step) -> Array:
        """Return the nodes that walks visit, ``[n, walk_length, num_walks]``, as ``walk.walk``
        does.
        """
        edges = self.reader.edges
        check_memory(
            4 * self.num_walks * self.walk_length * len(dst),
            f"num_walks * walk_length of {len(dst)} nodes",
            "take fewer, or shorter ones",
        )
        visited: Array = kernels.walk.walk(
            edges.indptr,
            edges.indices,
            edges.left_out,
            self._path,
            dst,
            np.uint64(step.random.key),
            self.num_walks,
            self.walk_length,
            self.restart,
        )
        return visited

    def _importance(self, indptr: Ints, visits: Ints) -> Tensor:
        total: Any = self.num_walks * self.walk_length
        if self.normalize:
            ends = np.append(0, np.cumsum(visits))[indptr]
            total = np.repeat(np.diff(ends), np.diff(indptr))
        return torch.from_numpy((visits / total).astype(np.float32))

    def estimand(self) -> NoReturn:
        """Raise TypeError: walks estimate probabilities of visits, not sums over edges of the
        graph.
        """
        raise TypeError(
            "a RandomWalkSampler estimates no sum over edges of the graph, so there is no number "
            "per edge; with normalize=False its weights are unbiased for the probabilities of "
            "visits (see the class)"
        )


def _limits(value: Any, num_flows: int) -> tuple[int, ...]:
    """The largest number of neighbours for every flow, -1 for all."""
    if not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        value = [value] * num_flows
    if isinstance(value, (list, tuple)):
        value = [-1 if number is None else number for number in value]
    limits = check_sizes(value, "num_neighbors")
    if len(limits) != num_flows:
        raise ValueError(
            f"num_neighbors must have one number per flow ({num_flows}), got {len(limits)}"
        )
    return limits
