"""A view of edges: which edges of a graph count, in which direction, and by which number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints, check_one_of, describe
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array, EdgeFilter
from nodeflow._core.edges.columns import EdgeMask, edge_mask, edge_numbers, is_float64
from nodeflow._core.edges.edges import NOTHING, Edges, edges_along
from nodeflow._core.edges.forms import COMPILED, Form, Placed
from nodeflow._core.peers.held_part import GraphOfPeers, HeldPart
from nodeflow._core.peers.peers import collective_call


class Reader(NamedTuple):
    """The arrays of an ``EdgeView``, as draws read them."""

    edges: Edges  # along which neighbours are looked up
    column: Placed | None  # the ``weight`` column by edge id, ``[num_edges]``
    # of estimator weights: float64 where the ``weight`` column is
    weight_type: type[np.float32] | type[np.float64]
    mask: NDArray[np.bool_] | None  # which edges the filter keeps, ``[num_edges]``; None: all
    left_out: Ints = NOTHING  # ids of the edges that ``without`` leaves out

    @property
    def weights(self) -> Array | None:
        """The ``weight`` column on the host."""
        return None if self.column is None else self.column.at(COMPILED)[0]

    def in_form(self, form: Form) -> Reader:
        """Return the same for draws in another form."""
        return self._replace(edges=self.edges.in_form(form))

    def without(self, eid: Ints, held: HeldPart) -> Reader:
        """Return the same without the edges ``eid`` (parent edge ids); nothing is read again."""
        if not len(eid):
            return self
        left_out = np.concatenate([self.left_out, eid])
        return self._replace(edges=self.edges.without(held.edges_here(left_out)), left_out=left_out)

    def intact(self) -> Reader:
        """Return the same with the edges that ``without`` leaves out."""
        return self._replace(edges=self.edges.intact(), left_out=NOTHING)

    def weight_of(
        self, positions: Ints, inverse: Callable[[], Array | None] | None
    ) -> Callable[[], Tensor] | None:
        """Return what makes the estimator weights of the edges at ``positions``: those of the edges
        times ``inverse()``. None: all are 1.
        """
        if self.column is None and inverse is None:
            return None

        def weight() -> Tensor:
            factor = None if inverse is None else inverse()
            return self.estimator_weight(self.weighted(positions, factor))

        return weight

    def weighted(self, positions: Ints, factor: Array | None = None) -> Array:
        """Return the weights of the edges at ``positions`` times ``factor`` (None: 1), ``[E]``."""
        if self.column is None:
            return np.ones(len(positions)) if factor is None else factor
        form = self.edges.form
        weights: Array = form.take(self.column.at(form)[0], self.edges.ids(positions))
        return weights if factor is None else weights * factor

    def estimator_weight(self, weights: Array) -> Tensor:
        """Return weights as a tensor of the type that estimator weights have."""
        return self.edges.form.weights(weights, self.weight_type)


class EdgeView(Frozen):
    """Edges of a graph as samplers, sums and histories see them. ``Graph.view`` makes one.

    Whatever takes a view shares its arrays, which are read when they are first used. It never
    changes: what is written to the columns later is seen by new views only.

    Args:
        graph: the parent graph; it is never written to.
        direction: "in" looks up the sources of a node's in-edges, "out" the destinations of its
            out-edges, "both" either way: draws are those of ``transform.add_reverse_edges(graph)``,
            but a reverse has the id of its edge. "both" takes 8 or 16 bytes per edge, and a graph
            that lies on one process.
        where: which edges exist, decided before any draw, so that fanouts stay full: the name of a
            bool edge column, a bool mask ``[num_edges]`` by edge id, or a function of
            ``graph.edata`` that returns one. It is read at once. Relations without the column keep
            all edges. None: all.
        weight: name of an edge column (finite numbers), by which edges count in sums; None: 1, and
            so in relations without the column.

    Raises ValueError for another direction and a mask of another length, TypeError for one that is
    not bool, KeyError for an unknown column; at the first use ValueError for a weight that is not
    finite.

    >>> from nodeflow import Graph, NeighborSampler
    >>> graph = Graph.from_edges([0, 1], [1, 2], edata={"w": torch.tensor([2.0, 3.0])})
    >>> edges: EdgeView = graph.view(weight="w")
    >>> edges
    Graph(3 nodes, 2 edges, edata: w).view(weight='w')
    >>> NeighborSampler(edges, [1])([2]).flows[0].weight
    tensor([3.])
    """

    __slots__ = ("_reader", "direction", "graph", "weight", "where")
    graph: Any
    direction: str
    where: EdgeMask | None
    weight: str | None
    _reader: Lazy[Reader]

    def __init__(
        self,
        graph: GraphOfPeers,
        direction: str = "in",
        *,
        where: EdgeFilter | EdgeMask | None = None,
        weight: str | None = None,
    ) -> None:
        check_one_of(direction, "direction", ("in", "out", "both"))
        self._set(graph=graph, direction=direction, weight=weight)
        self._set(where=self._mask(where), _reader=Lazy(self._read))

    @collective_call("making a view of edges")
    def _mask(self, where: EdgeFilter | EdgeMask | None) -> EdgeMask | None:
        return edge_mask(self.graph.for_sampling, where)

    @property
    def reader(self) -> Reader:
        """The arrays that draws read."""
        return self._reader.get()

    def _read(self) -> Reader:
        graph = self.graph.for_sampling
        edges = edges_along(graph, self.direction)
        mask = None if self.where is None else self.where.mask
        if mask is not None:
            edges = edges.keep(mask)
        if self.weight is None:
            return Reader(edges, None, np.float32, mask)
        weights = edge_numbers(graph, self.weight, "weight")
        # integers are read as float64, but their weights are float32
        kind = np.float64 if is_float64(graph, self.weight) else np.float32
        return Reader(edges, Placed(weights), kind, mask)

    def among(self, edges: Edges) -> tuple[Edges, Array | None]:
        """Return those of all ``edges`` held here that count, and their weights by position.

        Weights None: all are 1.
        """
        weights = None
        # a process alone has read them; of several, draws read edges of other processes too
        if not self.graph.in_parts:
            weights = self.reader.weights
            edges = self.reader.edges
        else:
            mask = edge_mask(self.graph, self.where)
            if mask is not None:
                edges = edges.keep(mask.mask)
            if self.weight is not None:
                weights = edge_numbers(self.graph, self.weight, "weight")
        return edges, None if weights is None else edges.by_position(weights)

    def with_weight(self, weight: str | None) -> EdgeView:
        """Return the same edges with other weights."""
        return EdgeView(self.graph, self.direction, where=self.where, weight=weight)

    def backwards(self) -> EdgeView:
        """Return the same edges, looked up from their other ends, without weights."""
        opposite = {"in": "out", "out": "in", "both": "both"}[self.direction]
        return EdgeView(self.graph, opposite, where=self.where)

    def numbers(self) -> Tensor:
        """Return by which number every edge counts, float64 ``[num_edges]``; 0: it does not exist.

        Of a graph that lies on several processes these are the edges held here.
        """
        reader = self.reader
        if reader.weights is None:
            number = np.ones(self.graph.for_sampling.held_part.num_edges)
        else:
            number = reader.weights.astype(np.float64)
        if reader.mask is not None:
            number[~reader.mask] = 0
        return torch.from_numpy(number)

    @property
    def settings(self) -> dict[str, Any]:
        """What tells views of one graph apart, by the names in files of settings."""
        named = {"direction": self.direction, "edge_filter": self.where, "weight": self.weight}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def is_plain(self) -> bool:
        """Whether these are all in-edges without weights, for which a graph stands."""
        return self.settings == {"direction": "in"}

    def __repr__(self) -> str:
        options = {"where": self.where, "weight": self.weight}
        words = [f"{name}={value!r}" for name, value in options.items() if value is not None]
        if self.direction != "in":
            words.insert(0, repr(self.direction))
        return f"{self.graph!r}.view({', '.join(words)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # arrays are read anew, of copies too
        named = partial(EdgeView, where=self.where, weight=self.weight)
        return named, (self.graph, self.direction)


def graph_of(edges: GraphOfPeers | EdgeView) -> Any:
    """Return the graph of a view, or the graph itself; raises TypeError for anything else."""
    if isinstance(edges, EdgeView):
        return edges.graph
    if not hasattr(type(edges), "for_sampling"):
        raise TypeError(
            f"graph must be a nodeflow.Graph, or a view of one (graph.view), got {describe(edges)}"
        )
    return edges


def as_view(edges: GraphOfPeers | EdgeView) -> EdgeView:
    """Return a view as it is, and of a graph the view of all its in-edges; else a TypeError."""
    return edges if isinstance(edges, EdgeView) else EdgeView(graph_of(edges))
