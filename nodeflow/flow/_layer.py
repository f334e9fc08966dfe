"""Layer: the nodes of one layer of a NodeFlow, with their frame; and moves to a device, of each
tensor once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import LARGEST, Ints, as_count, as_ids, titles
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.habits import taught
from nodeflow._core.base.types import IdsLike
from nodeflow._core.schema import Schema, sizes
from nodeflow.flow._validate import check_layer
from nodeflow.graph import Frame
from nodeflow.ops import Structure

Move: TypeAlias = Callable[[Any], Any]
"""Moves a tensor, a structure of edges or a frame to a device, and returns it there."""

Lookup: TypeAlias = Lazy[tuple[Tensor, Tensor]]
"""Parent ids in ascending order, and the local id of each."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LayerPart(Frozen):
    """The nodes of one type in a layer: ``layer.of(name)`` gives it.

    ``rows`` are their local ids in the layer, ascending, int64 ``[k]``; ``parent_nid`` their ids
    within the type; and ``data`` a frame of their own, with a row for each.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.typed({"author": 3, "paper": 2}, {}), [1])([4, 0])
    >>> batch.back.of("paper"), batch.back.of("paper").parent_nid
    (LayerPart(1 nodes), tensor([1]))
    """

    rows: Tensor
    parent_nid: Tensor
    data: Frame

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"LayerPart({len(self)} nodes{': ' if self.data else ''}{titles(self.data)})"


@taught
class Layer(Frozen):
    """One layer of a NodeFlow: its nodes, their frame, and which parent nodes they are.

    Samplers and ``create_node_flow`` make layers.

    Args:
        num_nodes: number of nodes.
        parent_nid: parent ids, int64 ``[num_nodes]``; None for nodes that are no nodes of a parent
            graph (pooled clusters, for example), then ``has_parent`` is False.
        data: the frame, with a row per node; None for a new one.
        context: int64 ``[num_nodes]``, or None where every parent node is in the layer at most
            once. Samplers that see the graph in several ways at once (at the times of different
            seeds, or in the subgraph of each seed) number these ways. Then a parent node is in the
            layer at most once per context.

    Raises TypeError for a part of another type, ValueError for parts that do not fit together.

    >>> Layer(2, torch.tensor([7, 3]))
    Layer(2 nodes)
    """

    __slots__ = (
        "_by_type",
        "_frames",
        "_lookup",
        "_parent_nid",
        "_schema",
        "context",
        "data",
        "num_nodes",
    )
    num_nodes: int
    data: Frame
    context: Tensor | None
    _parent_nid: Tensor | None
    _lookup: Lookup
    _schema: Schema | None
    _by_type: Lazy[tuple[Tensor, Ints]]
    _frames: dict[str, Frame]

    @checked
    def __init__(
        self,
        num_nodes: int,
        parent_nid: Tensor | None = None,
        data: Frame | None = None,
        *,
        context: Tensor | None = None,
    ) -> None:
        self._fill(as_count(num_nodes, "num_nodes"), parent_nid, data, context=context)
        check_layer("this layer", self, None)

    @classmethod
    def _trusted(
        cls,
        num_nodes: int,
        parent_nid: Tensor | None = None,
        data: Frame | None = None,
        **parts: Any,
    ) -> Layer:
        """Return a layer of parts that are known to fit together; ``parts`` are as for ``_fill``."""
        self = cls.__new__(cls)
        self._fill(num_nodes, parent_nid, data, **parts)
        return self

    def _fill(
        self,
        num_nodes: int,
        parent_nid: Tensor | None,
        data: Frame | None,
        *,
        context: Tensor | None = None,
        lookup: Lookup | None = None,
        schema: Schema | None = None,
        frames: dict[str, Frame] | None = None,
    ) -> None:
        """Set all attributes; ``lookup`` None is made when first needed.

        ``frames`` are those of the nodes of each type that has one already.
        """
        self._set(
            num_nodes=num_nodes,
            data=Frame(num_nodes) if data is None else data,
            context=context,
            _parent_nid=parent_nid,
            _lookup=lookup or Lazy(lambda: _sorted(parent_nid)),
            _schema=None,
        )
        self.join(schema, frames)

    def join(self, schema: Schema | None, frames: dict[str, Frame] | None = None) -> None:
        """Take the types of nodes from the graph that is the parent; for the maker of a
        NodeFlow.
        """
        # many layers share one schema, which is seldom compared entry by entry
        if schema is None or (schema is not self._schema and schema != self._schema):
            # The function must not refer to the layer, which has it: memory of such a circle is free
            # only when Python looks for circles, many batches later.
            parent_nid = self._parent_nid
            rows = Lazy(lambda: _by_type(schema, parent_nid))
            self._set(_schema=schema, _by_type=rows, _frames=frames or {})

    @property
    def has_schema(self) -> bool:
        """Whether the nodes of this layer have types, those of a parent graph."""
        return self._schema is not None and self._parent_nid is not None

    @property
    def schema(self) -> Schema:
        """The node types and relations of the parent graph; raises ValueError for a layer without
        one.
        """
        if self._schema is None or self._parent_nid is None:
            raise ValueError(
                "this layer belongs to no graph, so its nodes have no types; attach one: "
                "with_parent"
            )
        return self._schema

    def of(self, node_type: str) -> LayerPart:
        """Return the nodes of a type in this layer, with a frame of their own; it may have none of
        them.

        Every type of the parent graph is there. Columns of the parent's type, such as
        ``graph.nodes["paper"].data``, come into this frame with ``copy_from_parent``, or ``ndata=``
        of a loader. In a graph without types the only type is "node", and its frame is that of the
        layer. Raises KeyError for a type that is not there, ValueError for a layer without a parent
        graph.

        >>> from nodeflow import Graph, NeighborSampler
        >>> graph = Graph.typed({"author": 3, "paper": 2}, {("author", "writes", "paper"): ([0, 2], [1, 1])})
        >>> layer = NeighborSampler(graph, [-1])(graph.nodes["paper"].to_graph([1])).layers[0]
        >>> layer.of("author").rows, layer.of("author").parent_nid
        (tensor([1, 2]), tensor([0, 2]))
        """
        schema = self.schema
        ids = schema.ids(node_type)
        rows = self._rows(node_type)
        if node_type not in self._frames:
            # the only type shares the frame of all nodes
            only = len(schema.nodes) == 1
            self._frames[node_type] = self.data if only else Frame(len(rows))
        return LayerPart(rows, self.parent_nid[rows] - ids.start, self._frames[node_type])

    def by_type(self, rows: Tensor) -> dict[str, Tensor]:
        """Return rows of this layer's nodes, such as a model's outputs, as a dict from node type to
        its rows.

        ``rows`` is ``[num_nodes, ...]``, and so are those of a type, in the order of
        ``of(name).rows``. Every type of the parent graph is there. Raises ValueError for another
        number of rows, and for a layer without a parent graph.

        >>> from nodeflow import Graph, NeighborSampler
        >>> layer = NeighborSampler(Graph.typed({"author": 3, "paper": 2}, {}), [1])([4, 0, 3]).back
        >>> layer.by_type(torch.tensor([1.0, 2.0, 3.0]))
        {'author': tensor([2.]), 'paper': tensor([1., 3.])}
        """
        of_types = {name: self._rows(name) for name in self.schema.nodes}
        if len(rows) != self.num_nodes:
            raise ValueError(
                f"rows must have one for each of {self.num_nodes} nodes of the layer, got "
                f"{len(rows)}"
            )
        return {name: rows[of_type] for name, of_type in of_types.items()}

    @property
    def has_parent(self) -> bool:
        """Whether the nodes of this layer are nodes of a parent graph."""
        return self._parent_nid is not None

    @property
    def parent_nid(self) -> Tensor:
        """Parent id of every node, int64 ``[num_nodes]``; raises ValueError for a layer without
        parent nodes.
        """
        if self._parent_nid is None:
            raise ValueError(
                "this layer has no parent nodes: its nodes were made without parent ids"
            )
        return self._parent_nid

    def rows_of(self, parent_nid: IdsLike) -> Tensor:
        """Return the local ids of the given parent nodes, int64 ``[k]``; -1 where the layer does
        not hold one.

        Raises ValueError for a layer without parent nodes, or with copies of them in several
        contexts.
        """
        # raises the error that says why there are none
        device = self.parent_nid.device
        if self.context is not None:
            raise ValueError(
                "this layer may hold a parent node in several contexts (seeds or times), so a "
                "parent id does not tell a row; compare layer.parent_nid and layer.context instead"
            )
        if not isinstance(parent_nid, Tensor) or parent_nid.dtype != torch.int64:
            wanted = as_ids(parent_nid, "parent_nid", LARGEST, lower=-LARGEST)
            parent_nid = torch.from_numpy(wanted).to(device)
        ids, order = self._lookup.get()
        if len(ids) == 0:
            return torch.full_like(parent_nid, -1)
        # an id that is not there finds a place too, where another id stands
        places = torch.searchsorted(ids, parent_nid).clamp_(max=len(ids) - 1)
        return torch.where(ids[places] == parent_nid, order[places], -1)

    def __len__(self) -> int:
        return self.num_nodes

    def __repr__(self) -> str:
        words = f"{self.num_nodes} nodes{sizes(self.type_sizes())}"
        if not self.has_parent:
            words += " without parent ids"
        if self.context is not None:
            words += f" in {len(self.context.unique())} contexts"
        if self.data:
            words += f": {titles(self.data)}"
        return f"Layer({words})"

    def type_sizes(self) -> dict[str, int]:
        """Return the number of nodes of each type; of none where there is only one, or no parent
        graph.
        """
        if not self.has_schema or len(self.schema.nodes) == 1:
            return {}
        _, begins = self._by_type.get()
        counts = np.diff(begins).tolist()
        return dict(zip(self.schema.nodes, counts, strict=True))

    def _rows(self, node_type: str) -> Tensor:
        """Return the rows of the nodes of a type, ascending."""
        order, first = self._by_type.get()
        number = self.schema.number(node_type)
        return order[first[number] : first[number + 1]]

    def typed_frames(self) -> dict[str, Frame]:
        """Return the frames that belong to single types, by name; of types whose frame was asked
        for.
        """
        return {name: frame for name, frame in self._frames.items() if frame is not self.data}

    def with_frame(self, data: Frame | None = None, move: Move = lambda tensor: tensor) -> Layer:
        """Return a layer of the same nodes with the frame ``data`` (None: a copy of this layer's
        frame).

        The ids go through ``move``, to a device.
        """
        ids = move(self._parent_nid)
        frames = {name: move(part.copy()) for name, part in self.typed_frames().items()}
        if data is None:
            data = self.data.copy()
        return Layer._trusted(
            self.num_nodes,
            ids,
            data,
            context=move(self.context),
            # sorted once for all layers that share the ids
            lookup=self._lookup if ids is self._parent_nid else None,
            schema=self._schema,
            frames=frames,
        )

    def same_parent_nid(self, other: Layer) -> bool:
        """Whether this layer and ``other`` share one tensor of parent ids (or both have none)."""
        if not (self.has_parent and other.has_parent):
            return self.has_parent == other.has_parent
        return self.parent_nid is other.parent_nid


def rows_between(holder: Layer, wanted: Layer) -> Tensor:
    """Return the local ids in ``held`` of the nodes of ``wanted``, -1 where it has no such node.

    int64 ``[wanted.num_nodes]``; where both have contexts, nodes are the same only in one context.
    """
    if holder.context is None or wanted.context is None:
        return holder.rows_of(wanted.parent_nid)
    nodes = torch.cat([holder.parent_nid, wanted.parent_nid])
    contexts = torch.cat([holder.context, wanted.context])
    # one id for every pair of node and context
    pairs = torch.stack([contexts, nodes], 1).unique(dim=0, return_inverse=True)[1]
    size = holder.num_nodes
    return Layer._trusted(size, pairs[:size]).rows_of(pairs[size:])


def same_nodes(layer: Layer, other: Layer) -> bool:
    """Return whether two layers have the same parent nodes, and contexts where both have them."""
    if not torch.equal(layer.parent_nid, other.parent_nid):
        return False
    return (
        layer.context is None or other.context is None or torch.equal(layer.context, other.context)
    )


def dst_in_src(src: Layer, dst: Layer, device: torch.device) -> Tensor | None:
    """Return the local id in ``src`` of every node of ``dst``, -1 where it is not there; None: they
    are the first.
    """
    # samplers put destinations first among the sources: one comparison instead of a search
    size = dst.num_nodes
    if not (src.has_parent and dst.has_parent):
        return torch.full((size,), -1, device=device)
    if torch.equal(src.parent_nid[:size], dst.parent_nid) and (
        src.context is None or dst.context is None or torch.equal(src.context[:size], dst.context)
    ):
        return None
    return rows_between(src, dst)


def _by_type(schema: Schema | None, ids: Tensor | None) -> tuple[Tensor, Ints]:
    """Return the rows of a layer, type after type, ascending within one, and where those of each
    type begin.
    """
    # asked for by pickle
    if schema is None or ids is None:
        return torch.zeros(0, dtype=torch.int64, device="cpu"), np.zeros(1, np.int64)
    types = schema.types_of(ids.cpu().numpy())
    first, order = kernels.csr.sort_by_destination(types, len(schema.nodes))
    return torch.from_numpy(order).to(ids.device), first


def _sorted(ids: Tensor | None) -> tuple[Tensor, Tensor]:
    # asked for by pickle
    if ids is None:
        ids = torch.zeros(0, dtype=torch.int64, device="cpu")
    ascending, order = torch.sort(ids)
    return ascending, order


def once(change: Move) -> Move:
    """Return ``change`` with a memory: tensors that layers and flows share are moved once and stay
    shared.

    The tensors of a batch with ``reuse=True`` are prefixes of one array. They become prefixes of
    the longest one, that of the inputs, which is moved first.
    """
    moved = {}
    longest: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}

    def move(value: Any) -> Any:
        if value is None:
            return None
        if id(value) not in moved:
            # holding the value keeps its id from being used again
            moved[id(value)] = (value, moved_now(value))
        return moved[id(value)][1]

    def moved_now(value: Any) -> Any:
        if isinstance(value, Structure):
            return Structure._trusted(move(value.indptr), move(value.indices), value.num_src)
        if not isinstance(value, Tensor):
            return change(value)
        size = len(value)
        # empty tensors all lie at address 0
        start = (value.data_ptr(), value.dtype, value.shape[1:])
        if start not in longest or len(longest[start][0]) < size:
            longest[start] = (value, change(value))
        original, result = longest[start]
        if len(original) == size:
            return result
        return result[:size]

    return move
