"""NodeFlow: an immutable, layered computation graph with a frame per layer and per flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

import nodeflow.flow._compute as compute
import nodeflow.flow._parent as parent
from nodeflow._base.checks import ALL, as_index
from nodeflow._base.frozen import Frozen
from nodeflow.flow._append import append
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer
from nodeflow.flow._move import once
from nodeflow.flow._pickle import pack, unpack
from nodeflow.flow._validate import validate
from nodeflow.flow._views import FlowView, FrameView, LayerView

if TYPE_CHECKING:
    from nodeflow._base.types import IdsLike
    from nodeflow.flow._types import (
        ColumnsOfEdges,
        ColumnsOfNodes,
        FlowLike,
        MessageLike,
        MessagesLike,
        NamesLike,
        RangeLike,
        ReduceLike,
        ReducesLike,
        SomeIds,
        UpdatesLike,
    )
    from nodeflow.fn import MessageFunction
    from nodeflow.graph import Frame, Graph


class NodeFlow(Frozen):
    """A layered computation graph: layers of nodes, and flows of edges from one layer to a later one.

    Layer 0 holds the inputs, the last layer (also -1) the seeds; flow ``i`` joins layer ``i`` to layer ``i + 1``.
    Samplers make NodeFlows, and so do ``create_node_flow`` and ``create_full_node_flow``. The constructor takes layers
    and the flows between them, and raises ValueError when they do not fit together. The structure never changes;
    columns of the frames can be set.

    ========================  ==========================================================================
    ``layers[i]``             layer i (negative indices, slices, ``len`` and iteration work)
    ``layers(i)``             NodeFlow ids of its nodes (local id + sizes of the layers before)
    ``flows[i]``              flow from layer i to layer i + 1; also ``flows[i, i + 1]``
    ``flows[0, 2]``           a flow that skips layer 1, where there is one
    ``flows(i, j)``           NodeFlow ids of the edges from layer i to layer j
    ``ldata[i]["h"]``         column "h" of the nodes of layer i; short for ``layers[i].data["h"]``
    ``fdata[i]["w"]``         column "w" of the edges of flow i; short for ``flows[i].data["w"]``
    ``seeds``                 parent ids of the last layer, int64 ``[layer_sizes[-1]]``
    ``seed_index``            row of the last layer for every seed asked for, repeats included, int64 ``[num_seeds]``;
                              ``[num_seeds, 2 + K]`` where seeds are edges (see ``LinkSampler``)
    ``seed_ids``              the seeds as they were asked for: ids of nodes, of edges, or of parts, ``[num_seeds]``
    ========================  ==========================================================================

    Ids and structure are handed out without a copy: do not write to these tensors (``validate`` notices most harm).
    A new NodeFlow made from others (a slice, ``append``, ``to``) has frames of its own, whose columns share memory with
    the originals where they can: setting a column in one is not seen in the other. Registered layer computations stay
    with the original.

    >>> from nodeflow import Graph, create_full_node_flow
    >>> batch = create_full_node_flow(Graph.from_edges([0, 1, 2], [1, 2, 0]), num_layers=2)
    >>> batch
    NodeFlow(3 -> 3 -> 3 nodes, 3 + 3 edges)
    >>> batch.layers(1), batch.flows[0].edges()
    (tensor([3, 4, 5]), (tensor([2, 0, 1]), tensor([0, 1, 2])))
    """

    __slots__ = ("_consecutive", "_layers", "_parent", "_registry", "_seed_ids", "_skips", "seed_index")
    _layers: tuple[Layer, ...]
    _consecutive: tuple[Flow, ...]
    _skips: dict[tuple[int, int], Flow]
    _parent: Graph | None
    _registry: dict[int, Any]
    _seed_ids: Tensor | None
    seed_index: Tensor

    def __init__(
        self,
        layers: Sequence[Layer],
        flows: Sequence[Flow],
        skips: Mapping[tuple[int, int], Flow] | None = None,
        *,
        parent: Graph | None = None,
        seed_index: Tensor | None = None,
        seed_ids: Tensor | None = None,
    ) -> None:
        self._fill(layers, flows, skips or {}, parent, seed_index, seed_ids)
        validate(self)

    @classmethod
    def trusted(
        cls, layers: Sequence[Layer], flows: Sequence[Flow], skips: Mapping[tuple[int, int], Flow] | None = None, *,
        parent: Graph | None = None, seed_index: Tensor | None = None, seed_ids: Tensor | None = None,
    ) -> Self:  # fmt: skip
        """Return a NodeFlow of parts that are known to fit together."""
        batch = cls.__new__(cls)
        cls._fill(batch, layers, flows, skips or {}, parent, seed_index, seed_ids)
        return batch

    def _fill(
        self, layers: Sequence[Layer], flows: Sequence[Flow], skips: Mapping[tuple[int, int], Flow],
        parent: Graph | None, seed_index: Tensor | None, seed_ids: Tensor | None,
    ) -> None:  # fmt: skip
        if seed_index is None:
            seed_index = torch.arange(layers[-1].num_nodes if layers else 0, device="cpu")
        self._set(
            _layers=tuple(layers), _consecutive=tuple(flows), _skips=dict(sorted(skips.items())),
            _parent=parent, _registry={}, seed_index=seed_index, _seed_ids=seed_ids,
        )  # fmt: skip

    # ---- views

    @property
    def num_layers(self) -> int:
        """Number of layers, L + 1."""
        return len(self._layers)

    @property
    def num_flows(self) -> int:
        """Number of flows between consecutive layers, L."""
        return len(self._consecutive)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Number of nodes of every layer."""
        return tuple(layer.num_nodes for layer in self._layers)

    @property
    def flow_sizes(self) -> tuple[int, ...]:
        """Number of edges of every flow between consecutive layers."""
        return tuple(flow.num_edges for flow in self._consecutive)

    @property
    def layers(self) -> LayerView:
        """The layers: indexed they are ``Layer`` objects, called they give NodeFlow ids."""
        return LayerView(self._layers)

    @property
    def flows(self) -> FlowView:
        """The flows: indexed they are ``Flow`` objects, called they give NodeFlow ids."""
        return FlowView(self._consecutive, self._skips, len(self._layers))

    @property
    def ldata(self) -> FrameView[LayerView]:
        """Frames of the layers: ``ldata[i]`` is ``layers[i].data``."""
        return FrameView(self.layers)

    @property
    def fdata(self) -> FrameView[FlowView]:
        """Frames of the flows: ``fdata[i]`` is ``flows[i].data``, ``fdata[i, j]`` is ``flows[i, j].data``."""
        return FrameView(self.flows)

    def frames(self) -> list[Frame]:
        """Return the frames of all layers, then those of all flows."""
        flows = (*self._consecutive, *self._skips.values())
        return [*(layer.data for layer in self._layers), *(flow.data for flow in flows)]

    @property
    def front(self) -> Layer:
        """The first layer, the inputs."""
        return self._layers[0]

    @property
    def back(self) -> Layer:
        """The last layer, the seeds."""
        return self._layers[-1]

    @property
    def seeds(self) -> Tensor:
        """Parent ids of the last layer, int64 ``[layer_sizes[-1]]``, without repeats."""
        return self.back.parent_nid

    @property
    def has_seed_ids(self) -> bool:
        """Whether ``seed_ids`` are of another kind than nodes: ids of edges, parts or subgraphs."""
        return self._seed_ids is not None

    @property
    def seed_ids(self) -> Tensor:
        """The seeds as the sampler was asked for them, in that order, with repeats, int64 ``[num_seeds]``.

        Ids of nodes, ``seeds[seed_index]``, unless the sampler has seeds of another kind: edge ids for ``LinkSampler``,
        numbers of parts or subgraphs. In a shuffled epoch they tell which rows of a table of your own a batch is about.
        """
        return self.seeds[self.seed_index] if self._seed_ids is None else self._seed_ids

    @property
    def parent(self) -> Graph | None:
        """The parent graph, or None."""
        return self._parent

    @property
    def device(self) -> torch.device:
        """Where the structure lies."""
        return self.seed_index.device

    def in_degrees(self, layer: int) -> Tensor:
        """Edges that enter each node of a layer through the flow before it, int64 ``[nodes]``; 0 for layer 0."""
        i = as_index(layer, "layer", self.num_layers)
        return self._consecutive[i - 1].in_degrees if i else self._zeros(i)

    def out_degrees(self, layer: int) -> Tensor:
        """Edges that leave each node of a layer through the flow after it, int64 ``[nodes]``; 0 for the last layer."""
        i = as_index(layer, "layer", self.num_layers)
        return self._consecutive[i].out_degrees if i < self.num_flows else self._zeros(i)

    def _zeros(self, layer: int) -> Tensor:
        return torch.zeros(self._layers[layer].num_nodes, dtype=torch.int64, device=self.device)

    # ---- parent graph

    def map_to_parent_nid(self, nid: IdsLike) -> Tensor:
        """Return the parent ids of nodes given by NodeFlow id, int64 ``[k]``. Raises IndexError for an unknown id."""
        return parent.map_to_parent_nid(self, nid)

    def map_to_parent_eid(self, eid: IdsLike) -> Tensor:
        """Return the parent ids of edges given by NodeFlow id, int64 ``[k]`` (-1 for an edge without a parent edge)."""
        return parent.map_to_parent_eid(self, eid)

    def map_from_parent_nid(
        self, layer: int, parent_nid: IdsLike, *, remap_local: bool = False, allow_missing: bool = False
    ) -> Tensor:
        """Return the NodeFlow ids that parent nodes have in one layer, int64 ``[k]``.

        Args:
            layer: the layer to look in.
            parent_nid: parent ids.
            remap_local: give local ids (rows of the layer) instead of NodeFlow ids.
            allow_missing: give -1 for a parent node that is not in the layer, which else raises KeyError.
        """
        return parent.map_from_parent_nid(self, layer, parent_nid, remap_local, allow_missing)

    def copy_from_parent(self, ndata: NamesLike = ALL, edata: NamesLike = ALL) -> None:
        """Copy columns of the parent's frames to the frames of layers and flows, on this NodeFlow's device.

        Args:
            ndata: which node columns: ``ALL``, None, a list of names for every layer, or a dict from layer number to
                ``ALL`` or a list of names, as in ``{0: ["feat"], -1: ["label"]}``.
            edata: which edge columns, likewise by flow number (or pair of layers for flows that skip layers). Edges
                without a parent edge get zeros.

        Raises KeyError for an unknown column, ValueError without a parent graph; then no frame has changed.
        """
        parent.copy_from_parent(self, ndata, edata)

    def copy_to_parent(self, ndata: NamesLike = ALL, edata: NamesLike = ALL) -> None:
        """Write columns of layers and flows into the parent's frames, at the rows of their parent ids.

        The arguments choose columns as in ``copy_from_parent``. Layers are written in order, so where several layers
        hold one parent node, **the value of the layer nearest to the seeds stays**; likewise for flows (flow numbers
        first, then flows that skip layers), and for an edge that one flow holds repeatedly, or a node that a layer
        holds in several contexts: the last row stays. A
        column that the parent has is written in place, without gradient (graphs that share the tensor see it too); one
        that it has not is made, with zeros in all other rows.

        Raises ValueError for a column whose rows have another shape or type than the parent's, or whose memory in the
        parent cannot be written (a memory-mapped file); then the parent is as it was.
        """
        parent.copy_to_parent(self, ndata, edata)

    # ---- message passing

    def flow_compute(
        self,
        flow: FlowLike,
        message: MessageLike,
        reduce: ReduceLike,
        update: ColumnsOfNodes | None = None,
        v: SomeIds = ALL,
    ) -> None:
        """Send messages along a flow, reduce them per destination, and update the destinations.

        Args:
            flow: flow number, or the pair ``(i, j)`` of the layers it joins.
            message: a built-in of ``nodeflow.fn``, or a function of ``edges`` that returns columns.
            reduce: a built-in of ``nodeflow.fn``, or a function of ``nodes`` (with ``nodes.mailbox``) that returns
                columns; called once per distinct in-degree.
            update: any callable or module that takes ``nodes`` and returns columns; None for none.
            v: local ids of the destinations to compute; the rows of the others stay (0 in a new column).

        The reduced columns and those returned by ``update`` are stored in the destination layer's frame. If anything
        raises, no frame has changed.
        """
        compute.flow_compute(self, flow, message, reduce, update, v)

    def flow_send_and_recv(
        self,
        flow: FlowLike,
        edges: SomeIds,
        message: MessageLike,
        reduce: ReduceLike,
        update: ColumnsOfNodes | None = None,
    ) -> None:
        """Like ``flow_compute``, with messages on the given edges only (local edge ids); others stay as they are."""
        compute.flow_send_and_recv(self, flow, edges, message, reduce, update)

    def apply_layers(self, layer: RangeLike, func: ColumnsOfNodes, v: SomeIds = ALL) -> None:
        """Apply ``func`` to the nodes of a layer (a number, a slice or ``ALL``) and store the columns it returns."""
        compute.apply_layers(self, layer, func, v)

    def apply_flows(
        self, flow: RangeLike | tuple[int, int], func: MessageFunction | ColumnsOfEdges, edges: SomeIds = ALL
    ) -> None:
        """Apply ``func`` (or a built-in message function) to the edges of a flow and store the columns it returns."""
        compute.apply_flows(self, flow, func, edges)

    def forward(
        self, message: MessagesLike, reduce: ReducesLike, update: UpdatesLike = None, flows: RangeLike = ALL
    ) -> None:
        """Run ``flow_compute`` over a range of flows (a number, a slice or ``ALL``), in order.

        Each of ``message``, ``reduce`` and ``update`` is one function for all, or a list with one per flow.
        """
        compute.forward(self, message, reduce, update, flows)

    def register_layer_computation(
        self,
        layer: int,
        message: MessageLike | None = None,
        reduce: ReduceLike | None = None,
        update: ColumnsOfNodes | None = None,
    ) -> None:
        """Say how a layer is computed from the one before it; ``compute`` runs what is registered, in layer order."""
        i = as_index(layer, "layer", self.num_layers)
        compute.register_layer_computation(self._registry, i, message, reduce, update)

    def compute(self) -> None:
        """Compute every layer that has a registered computation, one by one."""
        compute.compute(self, self._registry)

    # ---- new NodeFlows from this one

    def __getitem__(self, layers: slice) -> NodeFlow:
        """Return the NodeFlow of consecutive layers: ``batch[1:]`` leaves out the first layer and flow."""
        if not isinstance(layers, slice):
            raise TypeError(f"a NodeFlow is sliced by layers, batch[i:j]; for one layer use batch.layers[{layers!r}]")
        start, stop, step = layers.indices(self.num_layers)
        if step != 1 or stop <= start:
            raise ValueError(f"a slice must take consecutive layers, at least one of {self.num_layers}, got {layers}")
        return self._rebuild(start, stop, parent=self._parent)

    def append(self, other: NodeFlow) -> NodeFlow:
        """Return a NodeFlow that continues after this one's last layer with ``other``.

        The last layer of this one and the first of ``other`` must hold the same parent nodes, in any order; the joint
        layer keeps this one's order. Its frame has the columns of both, this one's where both have a column. Structure
        and columns are shared with both.

        Raises ValueError when the layers do not hold the same nodes or the two belong to different parent graphs, and
        IndexError when only one has a parent graph, which lacks an id of the other.
        """
        return append(self, other)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> NodeFlow:
        """Return this NodeFlow with structure, ids and columns on ``device``; frames of the parent stay."""
        return self._rebuild(0, self.num_layers, lambda x: x.to(device, non_blocking=non_blocking), parent=self._parent)

    def pin_memory(self) -> NodeFlow:
        """Return this NodeFlow in page-locked memory, for fast copies to a GPU."""
        return self._rebuild(0, self.num_layers, lambda x: x.pin_memory(), parent=self._parent)

    def with_parent(self, graph: Graph | None) -> NodeFlow:
        """Return this NodeFlow with ``graph`` as its parent; None detaches it.

        Raises IndexError for a parent id that ``graph`` does not have.
        """
        if graph is not None:
            parent.check_fits(self, graph)
        return self._rebuild(0, self.num_layers, parent=graph)

    def with_seeds(self, *, seed_index: Tensor | None = None, seed_ids: Tensor | None = None) -> NodeFlow:
        """Return this NodeFlow with another ``seed_index`` or other ``seed_ids``; None: as they are."""
        index = self.seed_index if seed_index is None else seed_index
        ids = self._seed_ids if seed_ids is None else seed_ids
        return self._rebuild(0, self.num_layers, parent=self._parent, seeds=(index, ids))

    def _rebuild(
        self,
        start: int,
        stop: int,
        change: Callable[[Any], Any] | None = None,
        *,
        parent: Graph | None,
        seeds: tuple[Tensor, Tensor | None] | None = None,
    ) -> NodeFlow:
        """Layers ``start`` to ``stop`` with new frames; ``change`` moves the tensors, shared ones stay shared."""
        move: Callable[[Any], Any] = once(change) if change is not None else lambda x: x
        layers = [layer.moved(move, move(layer.data.copy())) for layer in self._layers[start:stop]]
        flows: dict[tuple[int, int], Flow] = {}
        for (i, j), flow in self.flows.items():
            if start <= i and j < stop:
                pair = (i - start, j - start)
                flows[pair] = flow.between(layers[pair[0]], layers[pair[1]], pair, move=change and move)
        consecutive = [flows.pop((i, i + 1)) for i in range(len(layers) - 1)]
        if seeds is None:
            whole = stop == self.num_layers  # another last layer has seeds of its own, none repeated
            index = self.seed_index if whole else torch.arange(layers[-1].num_nodes, device=self.device)
            seeds = index, self._seed_ids if whole else None
        index, ids = move(seeds[0]), None if seeds[1] is None else move(seeds[1])
        return NodeFlow.trusted(layers, consecutive, flows, parent=parent, seed_index=index, seed_ids=ids)

    def validate(self) -> None:
        """Check every invariant of the structure again; raises ValueError that names the first broken one."""
        validate(self)

    def __len__(self) -> int:
        return self.num_layers

    def __repr__(self) -> str:
        text = f"{' -> '.join(map(str, self.layer_sizes))} nodes, {' + '.join(map(str, self.flow_sizes)) or 0} edges"
        skips = "".join(f", {i}->{j}: {flow.num_edges} edges" for (i, j), flow in self._skips.items())
        return f"NodeFlow({text}{skips})"

    def __reduce__(self) -> tuple[Any, ...]:
        # the parent graph stays behind: a batch travels between processes, where it finds its graph by identity
        return unpack, (NodeFlow, pack(self))
