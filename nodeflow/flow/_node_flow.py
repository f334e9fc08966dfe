"""NodeFlow: an immutable, layered computation graph with a frame per layer and per flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Self, TypeAlias

import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_ids, as_index, check_type, describe, pinned
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.habits import taught
from nodeflow.flow import _append, _columns_of_parent, _message_passing, _validate
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer, Move, once
from nodeflow.flow._pickle import pack, unpack
from nodeflow.flow._pictures import node_flow_html, plot
from nodeflow.flow._types import Computation
from nodeflow.flow._views import FlowView, FrameView, LayerView
from nodeflow.graph import Frame, Graph

SeedLayout: TypeAlias = "Callable[[NodeFlow], list[Any]]"
"""Gives the seeds of a batch, which are links, in groups that share negatives; ``LinkSampler`` has
one.
"""


@taught
class NodeFlow(Frozen):
    """A layered computation graph: layers of nodes, and flows of edges from one layer to a later
    one.

    Layer 0 holds the inputs, the last layer (also -1) the seeds; flow ``i`` joins layer ``i`` to
    layer ``i + 1``. Samplers make NodeFlows, and so do ``create_node_flow`` and
    ``create_full_node_flow``. The constructor takes layers and the flows between them, and raises
    ValueError when they do not fit together. The structure never changes; columns of the frames can
    be set.

    ========================  ==========================================================================
    ``layers[i]``             layer i (negative indices, slices, ``len`` and iteration work)
    ``layers(i)``             NodeFlow ids of its nodes (local id + sizes of the layers before)
    ``flows[i]``              flow from layer i to layer i + 1; also ``flows[i, i + 1]``
    ``flows[0, 2]``           a flow that skips layer 1, where there is one
    ``flows(i, j)``           NodeFlow ids of the edges from layer i to layer j
    ``ldata[i]["h"]``         column "h" of the nodes of layer i; short for ``layers[i].data["h"]``
    ``fdata[i]["w"]``         column "w" of the edges of flow i; short for ``flows[i].data["w"]``
    ``inputs["feat"]``        column "feat" of the first layer; short for ``ldata[0]["feat"]``
    ``outputs["label"]``      column "label" of the last layer; short for ``ldata[-1]["label"]``
    ``seeds``                 parent ids of the last layer, int64 ``[layer_sizes[-1]]``
    ``seed_index``            row of the last layer for every seed asked for, repeats included, int64 ``[num_seeds]``;
                              ``[num_seeds, 2 + K]`` where seeds are edges (see ``LinkSampler``)
    ``parent``                the parent graph, or None
    ``seed_ids``              the seeds as they were asked for: ids of nodes, of edges, or of parts, ``[num_seeds]``
    ``chunks``                seeds that are links, in groups that share negatives; only for a ``LinkSampler``
    ``seed_data["y"]``        column "y" of the seeds as they were asked for, ``[num_seeds, ...]``
    ========================  ==========================================================================

    Ids and structure are handed out without a copy: do not write to these tensors (``validate``
    notices most harm). A new NodeFlow made from others (a slice, ``append``, ``to``) has frames of
    its own, whose columns share memory with the originals where they can: setting a column in one
    is not seen in the other. Registered layer computations stay with the original.

    >>> from nodeflow import Graph, create_full_node_flow
    >>> batch = create_full_node_flow(Graph.from_edges([0, 1, 2], [1, 2, 0]), num_layers=2)
    >>> batch
    NodeFlow(3 -> 3 -> 3 nodes, 3 + 3 edges)
    >>> batch.layers(1), batch.flows[0].edges()
    (tensor([3, 4, 5]), (tensor([2, 0, 1]), tensor([0, 1, 2])))
    """

    __slots__ = (
        "_seed_ids",
        "computations",
        "flows",
        "layers",
        "parent",
        "seed_data",
        "seed_index",
        "seed_layout",
    )
    layers: LayerView
    """The layers: indexed they are ``Layer`` objects, called they give NodeFlow ids."""
    flows: FlowView
    """The flows: indexed they are ``Flow`` objects, called they give NodeFlow ids."""
    parent: Graph | None
    computations: dict[int, Computation]
    """Functions of ``register_layer_computation``, by the number of the layer."""
    _seed_ids: Tensor | None
    seed_data: Frame
    seed_index: Tensor
    seed_layout: SeedLayout | None

    @checked
    def __init__(
        self,
        layers: Sequence[Layer] = (),
        flows: Sequence[Flow] = (),
        *,
        parent: Graph | None = None,
        seed_index: Tensor | None = None,
        seed_ids: Tensor | None = None,
    ) -> None:
        for name, parts, kind in (("layers", layers, Layer), ("flows", flows, Flow)):
            check_type(parts, name, Sequence, f"a list of {kind.__name__} objects")
            for i, part in enumerate(parts):
                check_type(part, f"{name}[{i}]", kind, f"a {kind.__name__}")
        self._fill(layers, flows, parent=parent, seed_index=seed_index, seed_ids=seed_ids)
        self.validate()

    @classmethod
    def _trusted(cls, layers: Sequence[Layer], flows: Sequence[Flow], **parts: Any) -> Self:
        """Return a NodeFlow of parts that fit together; ``parts`` are as for ``_fill``."""
        self = cls.__new__(cls)
        self._fill(layers, flows, **parts)
        return self

    def _fill(
        self,
        layers: Sequence[Layer],
        flows: Sequence[Flow],
        *,
        parent: Graph | None = None,
        seed_index: Tensor | None = None,
        seed_ids: Tensor | None = None,
        seed_layout: SeedLayout | None = None,
    ) -> None:
        if seed_index is None:
            seed_index = torch.arange(layers[-1].num_nodes if layers else 0, device="cpu")
        self._set(
            layers=LayerView(layers),
            flows=FlowView(flows, len(layers)),
            parent=parent,
            seed_index=seed_index,
            seed_data=Frame(len(seed_index if seed_ids is None else seed_ids)),
            seed_layout=seed_layout,
            computations={},
            _seed_ids=seed_ids,
        )
        if parent is not None:
            for layer in layers:
                layer.join(parent.schema)

    # ---- views

    @property
    def ldata(self) -> FrameView:
        """Frames of the layers: ``ldata[i]`` is ``layers[i].data``."""
        return FrameView(self.layers)

    @property
    def fdata(self) -> FrameView:
        """Frames of the flows: ``fdata[i]`` is ``flows[i].data``, ``fdata[i, j]`` is
        ``flows[i, j].data``.
        """
        return FrameView(self.flows)

    @property
    def num_layers(self) -> int:
        """Number of layers of nodes, L + 1; a model for this batch has
        ``num_layers=batch.num_flows``.
        """
        return len(self.layers)

    @property
    def num_flows(self) -> int:
        """Number of flows between consecutive layers, L."""
        return len(self.flows)

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Number of nodes of every layer."""
        return tuple(layer.num_nodes for layer in self.layers)

    @property
    def flow_sizes(self) -> tuple[int, ...]:
        """Number of edges of every flow between consecutive layers."""
        return tuple(flow.num_edges for flow in self.flows)

    def frames(self) -> list[Frame]:
        """Return the frames of all layers, then those of all flows."""
        return [*self.ldata, *(flow.data for _, flow in self.flows.items())]

    @property
    def front(self) -> Layer:
        """The first layer, the inputs."""
        return self.layers[0]

    @property
    def back(self) -> Layer:
        """The last layer, the seeds."""
        return self.layers[-1]

    @property
    def inputs(self) -> Frame:
        """The frame of the first layer: ``batch.inputs["feat"]`` are the features of all inputs."""
        return self.front.data

    @property
    def outputs(self) -> Frame:
        """The frame of the last layer: ``batch.outputs["label"]`` are the labels of the seeds."""
        return self.back.data

    @property
    def seeds(self) -> Tensor:
        """Parent ids of the last layer, int64 ``[layer_sizes[-1]]``, without repeats."""
        return self.back.parent_nid

    @property
    def has_seed_ids(self) -> bool:
        """Whether ``seed_ids`` are of another kind than nodes: ids of edges, parts or subgraphs."""
        return self._seed_ids is not None

    @property
    def chunks(self) -> Any:
        """The seeds of a ``LinkSampler`` in groups that share negatives, a list of ``LinkChunk``.

        Raises AttributeError for a batch of another sampler.
        """
        if self.seed_layout is None:
            raise AttributeError(
                "this NodeFlow has no chunks: only batches of a LinkSampler have links as seeds"
            )
        return self.seed_layout(self)

    @property
    def seed_ids(self) -> Tensor:
        """The seeds as they were given to the sampler, in that order, with repeats, int64
        ``[num_seeds]``.

        Ids of nodes, ``seeds[seed_index]``, unless the sampler has seeds of another kind: edge ids
        for ``LinkSampler``, numbers of parts or subgraphs. In a shuffled epoch they index a table
        of your own with a row per seed.
        """
        if self._seed_ids is None:
            return self.seeds[self.seed_index]
        return self._seed_ids

    @property
    def device(self) -> torch.device:
        """The device of the structure."""
        return self.seed_index.device

    def in_degrees(self, layer: int) -> Tensor:
        """Edges that enter each node of a layer through the flow before it, int64 ``[nodes]``; 0
        for layer 0.
        """
        i = as_index(layer, "layer", self.num_layers)
        if i == 0:
            return self.seed_index.new_zeros(self.front.num_nodes)
        return self.flows[i - 1].in_degrees

    def out_degrees(self, layer: int) -> Tensor:
        """Edges that leave each node of a layer through the flow after it, int64 ``[nodes]``; 0 for
        the last layer.
        """
        i = as_index(layer, "layer", self.num_layers)
        if i == self.num_flows:
            return self.seed_index.new_zeros(self.back.num_nodes)
        return self.flows[i].out_degrees

    # ---- parent graph; these functions, from a file of their own, become methods

    map_to_parent_nid = _columns_of_parent.map_to_parent_nid
    map_to_parent_eid = _columns_of_parent.map_to_parent_eid
    map_from_parent_nid = _columns_of_parent.map_from_parent_nid
    copy_from_parent = _columns_of_parent.copy_from_parent
    copy_to_parent = _columns_of_parent.copy_to_parent

    # ---- message passing; methods in the same way

    flow_compute = _message_passing.flow_compute
    flow_send_and_recv = _message_passing.flow_send_and_recv
    apply_layers = _message_passing.apply_layers
    apply_flows = _message_passing.apply_flows
    forward = _message_passing.forward

    register_layer_computation = _message_passing.register_layer_computation
    compute = _message_passing.compute

    # ---- new NodeFlows from this one

    def __getitem__(self, layers: slice) -> NodeFlow:
        """Return the NodeFlow of consecutive layers: ``batch[1:]`` leaves out the first layer and
        flow.
        """
        if not isinstance(layers, slice):
            raise TypeError(
                "a NodeFlow is sliced by layers, batch[i:j]; for one layer use "
                f"batch.layers[{layers!r}]"
            )
        start, stop, step = layers.indices(self.num_layers)
        if step != 1 or stop <= start:
            raise ValueError(
                f"a slice must take consecutive layers, at least one of {self.num_layers}, got "
                f"{layers}"
            )
        return self._rebuild(start, stop)

    # ---- one graph over all layers
    def layer_offsets(self) -> tuple[int, ...]:
        """Return the NodeFlow id at which each layer begins, and the number of all nodes: L + 2
        numbers.
        """
        return tuple(accumulate(self.layer_sizes, initial=0))

    def flow_offsets(self) -> tuple[int, ...]:
        """Return the NodeFlow id at which each flow begins, and the number of all edges.

        The flows are those of ``flows.pairs()``: first those between consecutive layers, then those
        that skip layers.
        """
        return tuple(accumulate((flow.num_edges for _, flow in self.flows.items()), initial=0))

    def as_graph(self) -> Graph:
        """Return the structure over all layers as one graph: its nodes and edges are those of the
        NodeFlow, by NodeFlow id.

        So it answers questions across layers, with ``find_edges``, ``has_edges``, ``edge_ids``,
        ``in_edges`` and the degrees. It has no columns, lies on the CPU, and takes memory of its
        own.

        >>> from nodeflow import FullSampler
        >>> batch = FullSampler(Graph.from_edges([0, 1], [1, 2]), 2)([2])
        >>> batch.as_graph(), batch.layer_offsets()
        (Graph(6 nodes, 3 edges), (0, 3, 5, 6))
        >>> batch.as_graph().edges()
        (tensor([1, 2, 4]), tensor([3, 4, 5]))
        """
        starts = self.layer_offsets()
        # a batch without flows has a graph without edges
        src = [torch.zeros(0, dtype=torch.int64)]
        dst = [torch.zeros(0, dtype=torch.int64)]
        for (i, j), flow in self.flows.items():
            sources, destinations = flow.edges()
            src.append(sources.cpu() + starts[i])
            dst.append(destinations.cpu() + starts[j])
        return Graph.from_edges(torch.cat(src), torch.cat(dst), num_nodes=starts[-1])

    append = _append.append

    @checked
    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> NodeFlow:
        """Return this NodeFlow with structure, ids and columns on ``device``; frames of the parent
        stay.
        """
        return self._rebuild(change=lambda x: x.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> NodeFlow:
        """Return this NodeFlow in page-locked memory, for fast copies to a GPU; ValueError where
        there is none.
        """
        return self._rebuild(
            change=lambda x: pinned(x) if isinstance(x, Tensor) else x.pin_memory()
        )

    def with_parent(self, graph: Graph | None) -> NodeFlow:
        """Return this NodeFlow with ``graph`` as its parent; None detaches it.

        Raises IndexError for a parent id that ``graph`` does not have.
        """
        if graph is not None:
            _columns_of_parent.check_fits(self, graph)
        return self._rebuild(parent=graph)

    def with_seeds(
        self,
        *,
        seed_index: Tensor | None = None,
        seed_ids: Tensor | None = None,
        seed_layout: SeedLayout | None = None,
    ) -> NodeFlow:
        """Return this NodeFlow with another ``seed_index`` or other ``seed_ids``; None leaves them
        as they are.

        The new one has no ``seed_data``, which belongs to the seeds, and the ``chunks`` of
        ``seed_layout``.

        Raises TypeError for what is no int64 tensor, IndexError for an index that is no row of the
        last layer.
        """
        for name, value in (("seed_index", seed_index), ("seed_ids", seed_ids)):
            if value is not None and not (isinstance(value, Tensor) and value.dtype == torch.int64):
                raise TypeError(f"{name} must be an int64 tensor, got {describe(value)}")
        if seed_index is not None:
            as_ids(
                seed_index.flatten(),
                "seed_index",
                self.back.num_nodes,
                "row of the last layer, whose",
            )
        index = self.seed_index if seed_index is None else seed_index
        ids = self._seed_ids if seed_ids is None else seed_ids
        return self._rebuild(seed_index=index, seed_ids=ids, seed_layout=seed_layout)

    def _rebuild(
        self, start: int = 0, stop: int | None = None, change: Move | None = None, **new: Any
    ) -> NodeFlow:
        """Return layers ``start`` to ``stop`` with new frames.

        ``change`` moves the tensors, of which shared ones stay shared; ``new`` are parts that
        replace those of this NodeFlow.
        """
        if stop is None:
            stop = self.num_layers
        # tensors that several layers and flows share are moved once, and stay shared
        move: Move = (lambda value: value) if change is None else once(change)
        layers = [
            layer.with_frame(move(layer.data.copy()), move) for layer in self.layers[start:stop]
        ]
        flows = []
        for pair, flow in self.flows.items():
            i = pair[0] - start
            j = pair[1] - start
            if i >= 0 and j < len(layers):
                flows.append(flow.between(layers[i], layers[j], (i, j), move=change and move))
        parts: dict[str, Any] = {"parent": self.parent}
        keeps_last = stop == self.num_layers
        if keeps_last:
            parts["seed_index"] = self.seed_index
            parts["seed_ids"] = self._seed_ids
            parts["seed_layout"] = self.seed_layout
        else:  # another last layer has seeds of its own, none repeated
            parts["seed_index"] = torch.arange(layers[-1].num_nodes, device=self.device)
        parts |= new
        for name in ("seed_index", "seed_ids"):
            parts[name] = move(parts.get(name))
        batch = NodeFlow._trusted(layers, flows, **parts)
        # columns of seeds belong to the very seeds, in their order
        if keeps_last and "seed_index" not in new:
            batch.seed_data.update(move(self.seed_data.copy()))
        return batch

    validate = _validate.validate
    plot = plot

    _repr_html_ = node_flow_html

    def __len__(self) -> int:
        return self.num_layers

    def __repr__(self) -> str:
        nodes = " -> ".join(map(str, self.layer_sizes))
        words = f"{nodes} nodes, {' + '.join(map(str, self.flow_sizes)) or 0} edges"
        for (i, j), flow in self.flows.items():
            if j != i + 1:
                words += f", {i}->{j}: {flow.num_edges} edges"
        return f"NodeFlow({words})"

    def __reduce__(self) -> tuple[Any, ...]:
        # the parent graph stays behind: a batch travels between processes, where it finds its graph
        # by identity
        return unpack, (NodeFlow, *pack(self))
