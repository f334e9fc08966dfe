"""Views of the layers, flows and frames of a NodeFlow: by number, pair of layers, or slice."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Sequence
from itertools import takewhile
from typing import Any, SupportsIndex, overload

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_index
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame


class LayerView(tuple[Layer, ...]):
    """The layers of a NodeFlow; calling it with a number gives NodeFlow ids."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex) -> Layer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Layer, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Layer | tuple[Layer, ...]:
        # not by super(), which takes longer than the rest
        return tuple.__getitem__(
            self, index if isinstance(index, slice) else as_index(index, "layer", len(self))
        )

    def __call__(self, layer: int) -> Tensor:
        """Return the NodeFlow ids of a layer's nodes, int64."""
        i = as_index(layer, "layer", len(self))
        start = sum(layer.num_nodes for layer in self[:i])
        return torch.arange(start, start + self[i].num_nodes, device="cpu")


class FlowView(Sequence[Flow]):
    """The flows of a NodeFlow: iteration and ``len`` go over those between consecutive layers;
    ``pairs`` lists all.

    Raises ValueError for two flows that join the same layers.
    """

    __slots__ = ("_by_pair", "_flows", "_num_layers")

    def __init__(self, flows: Sequence[Flow], num_layers: int) -> None:
        by_pair = {flow.layers: flow for flow in flows}
        if len(by_pair) < len(flows):
            raise ValueError(f"two flows join the same layers: {[flow.layers for flow in flows]}")
        pairs = sorted(by_pair, key=lambda pair: (pair[1] != pair[0] + 1, pair))
        self._by_pair = {pair: by_pair[pair] for pair in pairs}
        self._flows = tuple(self._by_pair[i, j] for i, j in pairs if j == i + 1)
        self._num_layers = num_layers

    @overload
    def __getitem__(self, index: int | tuple[int, int]) -> Flow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Flow, ...]: ...
    def __getitem__(self, index: int | slice | tuple[int, int]) -> Flow | tuple[Flow, ...]:
        if isinstance(index, slice):
            return self._flows[index]
        if not isinstance(index, tuple):
            return self._flows[as_index(index, "flow", len(self._flows))]
        if len(index) != 2:
            raise TypeError(f"flows[i, j] takes two layer numbers, got {len(index)}")
        i, j = (as_index(layer, "layer", self._num_layers) for layer in index)
        if (i, j) not in self._by_pair:
            raise IndexError(
                f"there is no flow from layer {i} to layer {j}; there are {self.pairs()}"
            )
        return self._by_pair[i, j]

    def __call__(self, i: int, j: int | None = None) -> Tensor:
        """Return the NodeFlow ids of the edges from layer ``i`` to layer ``j`` (``i + 1`` unless
        given), int64.
        """
        if j is None:
            flow = self[i]
        else:
            flow = self[i, j]
        before = takewhile(lambda other: other is not flow, self._by_pair.values())
        start = sum(other.num_edges for other in before)
        return torch.arange(start, start + flow.num_edges, device="cpu")

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of layers that a flow joins: consecutive ones first, in the order of
        their NodeFlow ids.
        """
        return list(self._by_pair)

    def items(self) -> ItemsView[tuple[int, int], Flow]:
        """Give every flow with its pair of layers, in the order of ``pairs``."""
        return self._by_pair.items()

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows)

    def __len__(self) -> int:
        return len(self._flows)

    def __repr__(self) -> str:
        return repr(list(self._by_pair.values()))


class FrameView:
    """The frames of a view's layers or flows, under the same indices."""

    __slots__ = ("_view",)

    def __init__(self, view: LayerView | FlowView) -> None:
        self._view = view

    @overload
    def __getitem__(self, index: int | tuple[int, int]) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Frame, ...]: ...
    def __getitem__(self, index: Any) -> Frame | tuple[Frame, ...]:
        parts: Layer | Flow | tuple[Layer | Flow, ...] = self._view[index]
        if isinstance(parts, tuple):
            return tuple(part.data for part in parts)
        return parts.data

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[Frame]:
        return (part.data for part in self._view)

    def __repr__(self) -> str:
        return repr(list(self))
