"""Convolutions whose sum over the neighbours is linear, so that it may come before or after the matrix."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from nodeflow._base.checks import describe
from nodeflow.flow import Flow
from nodeflow.nn._conv import FlowConv, check_width
from nodeflow.nn._promises import promised, promises
from nodeflow.ops import linear_sum
from nodeflow.ops._opaque import opaque

ORDERS: Final = ("auto", "aggregate", "transform")
"""What the argument ``order`` of a convolution may be."""

EDGE_COST: Final = 10
"""Time of adding one number of a neighbour's row, over that of one operation inside a matrix product."""

ROW_COST: Final = 60
"""Likewise, time of one number of a new matrix between sum and product: new memory is dear.

Both are measured: see "The cheaper order" in docs/layers.md.
"""


class LinearConv(FlowConv):
    """A convolution ``h' = A h W^T (+ h_own W_own^T) + b``, with A a linear map from source rows to destination rows.

    ``(A h) W^T`` and ``A (h W^T)`` are the same: the first sums rows as wide as the inputs and multiplies a row per
    destination, the second sums rows as wide as the outputs and multiplies a row per source. Both give the same values
    and gradients up to rounding. Sparse CSR rows are always multiplied first, since their sums would be dense.

    Of the ``nn.Linear`` modules the weights and biases are read; their own ``forward``, and hooks on it, are not called
    (``torch.nn.utils.parametrize`` works, the old ``weight_norm`` does not).

    Subclasses call ``set_maps`` in their ``__init__``, and define ``aggregate``.

    Args:
        order: "aggregate" (sum first), "transform" (multiply first), or "auto": the cheaper one, from the sizes of the
            flow and of the matrix, and whether gradients are wanted.
        relu: return the positive part of h', which costs less than to take it afterwards.

    Raises ValueError for another order.

    >>> from nodeflow import flow_from_edges
    >>> class Sum(LinearConv):
    ...     def __init__(self, in_features, out_features, order="auto"):
    ...         super().__init__(order)
    ...         self.linear = nn.Linear(in_features, out_features)
    ...         self.set_maps("linear")
    ...     def aggregate(self, flow, h):
    ...         return flow.aggregate(h, "sum")
    >>> flow = flow_from_edges([0, 1, 2], [0, 0, 0], num_src=3, num_dst=1)
    >>> Sum(4, 8).order_for(flow), Sum(8, 1).flops(flow)
    ('aggregate', {'aggregate': 40, 'transform': 51})
    """

    weighted = False
    """Whether ``aggregate`` multiplies the rows by numbers on the edges (two operations per number then, not one)."""

    loops = False
    """Whether ``aggregate`` adds a node's own row to the sum; its gradient takes two matrices of its own."""

    def __init__(self, order: str = "auto", *, relu: bool = False) -> None:
        super().__init__()
        if order not in ORDERS:
            raise ValueError(f"order must be 'auto', 'aggregate' or 'transform', got {describe(order)}")
        self.order, self.relu = order, bool(relu)

    def set_maps(self, neigh: str, own: str | None = None) -> None:
        """Say which ``nn.Linear`` modules hold W (with the bias) and W_own: names of attributes."""
        self._names = neigh, own
        self._joins_own = promised(self.aggregate, "own")

    @property
    def maps(self) -> tuple[nn.Linear, nn.Linear | None]:
        """The linear maps of the summed rows and of a node's own row; the second may be missing."""
        neigh, own = self._names
        return getattr(self, neigh), None if own is None else getattr(self, own)

    def aggregate(self, flow: Flow, h: Tensor) -> Tensor:
        """Return A h, ``[num_dst, width]``, for dense rows ``h`` ``[num_src, width]`` of any width, in their type."""
        raise NotImplementedError(f"{type(self).__name__} must define aggregate(flow, h)")

    @promises("relu")
    @opaque  # the order depends on sizes, and a model is not to be compiled again for every size
    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return ``[num_dst, out_features]`` for ``h`` ``[num_src, in_features]``, dense or sparse CSR.

        Raises ValueError for rows of another width, and, where the convolution reads a node's own row, when a
        destination is not in the source layer (sample with ``include_dst=True``).
        """
        neigh, own = self.maps
        check_width(self, h, neigh.in_features)
        if self.order_for(flow, h) == "aggregate":
            if own is None or not self._joins_own:
                rows = None if own is None else flow.take_dst(h)
                return map_rows(self.maps, self.aggregate(flow, h), rows, relu=self.relu)
            joined = self.aggregate(flow, h, own=True)  # type: ignore[call-arg]  # as it promises
            weight = torch.cat([own.weight, neigh.weight], 1)
            return linear_sum((joined, weight), bias=neigh.bias, relu=self.relu)
        if own is None:
            out = self.aggregate(flow, linear_sum((h, neigh.weight)))
            out = out if neigh.bias is None else out + neigh.bias
        else:
            rows, h = flow.share_dst(h)
            total = self.aggregate(flow, linear_sum((h, neigh.weight)))
            out = linear_sum((rows, own.weight), bias=neigh.bias) + total
        return out.relu() if self.relu else out

    def order_for(self, flow: Flow, h: Tensor | None = None) -> str:
        """Return the order in which the convolution is computed, "aggregate" or "transform".

        Args:
            flow: the flow.
            h: its rows; None stands for dense rows that need a gradient.
        """
        if h is not None and h.layout != torch.strided:
            return "transform"
        if self.order != "auto":
            return self.order
        backward = torch.is_grad_enabled() and self.maps[0].weight.requires_grad
        work = self._work(flow, backward, h is None or h.requires_grad)
        return min(work, key=lambda order: work[order].cost)  # of equal ones the first, "aggregate"

    def flops(self, flow: Flow, h: Tensor | None = None, *, backward: bool = False) -> dict[str, int]:
        """Return how many floating-point operations each order takes on a flow: ``{"aggregate": n, "transform": m}``.

        Counted are matrix products (a multiplication and an addition each) and sums over edges (an addition for every
        number, and a multiplication where edges have weights), as ``flop_counter`` counts them while a model runs;
        what is done once per number of a row (bias, division by degrees) is not.

        Args:
            flow: the flow.
            h: its rows; None stands for dense rows that need a gradient. For sparse rows there is one order.
            backward: add those of the backward pass: gradients of the matrices, and of ``h`` where it needs one.
        """
        neigh, own = self.maps
        per_sum = 2 if self.weighted else 1
        if h is not None and h.layout != torch.strided:
            passes = 2 if backward else 1
            total = 2 * h.values().numel() * neigh.out_features + per_sum * flow.num_edges * neigh.out_features
            if own is not None:
                total += 2 * flow.take_dst(h).values().numel() * own.out_features
            return {"transform": passes * total}
        needed = h is None or h.requires_grad
        extra = 0
        if own is not None:
            extra = 2 * flow.num_dst * own.in_features * own.out_features * _passes(backward, needed)
        work = self._work(flow, backward, needed)
        return {order: part.products + per_sum * part.sums + extra for order, part in work.items()}

    def _work(self, flow: Flow, backward: bool, needed: bool) -> dict[str, _Work]:
        """What each order does; the product with a node's own row, which both have, is left out."""
        neigh, _ = self.maps
        wide, narrow = neigh.in_features, neigh.out_features
        product = 2 * wide * narrow * _passes(backward, needed)
        # summed first, the rows get a gradient through the edges only where they need one; the matrix always does
        first, after = 2 if backward and needed else 1, 2 if backward else 1
        loops = 2 * flow.num_src if self.loops else 0
        rows = flow.num_dst * first + loops * (first - 1), flow.num_src * after + loops * (after - 1)
        return {
            "aggregate": _Work(product * flow.num_dst, flow.num_edges * wide * first, rows[0] * wide),
            "transform": _Work(product * flow.num_src, flow.num_edges * narrow * after, rows[1] * narrow),
        }

    def extra_repr(self) -> str:
        """The order where it is forced, and the ReLU where there is one."""
        words = ["" if self.order == "auto" else f"order={self.order!r}", "relu=True" if self.relu else ""]
        return ", ".join(filter(None, words))


def map_rows(
    maps: tuple[nn.Linear, nn.Linear | None], total: Tensor, own: Tensor | None, *, relu: bool = False
) -> Tensor:
    """Return the result for summed rows ``total`` and own rows ``own``, ``[num_dst, in_features]`` each.

    ``maps`` are those of a ``LinearConv``; ``own`` is read where there is a second map.
    """
    neigh, mine = maps
    pairs = [(total, neigh.weight)]
    if mine is not None and own is not None:
        pairs.append((own, mine.weight))
    return linear_sum(*pairs, bias=neigh.bias, relu=relu)


class _Work(NamedTuple):
    """Operations of the matrix product, numbers added along edges, and numbers of matrices between the two steps."""

    products: int
    sums: int
    rows: int

    @property
    def cost(self) -> int:
        """Time, in operations of a matrix product."""
        return self.products + EDGE_COST * self.sums + ROW_COST * self.rows


def _passes(backward: bool, needed: bool) -> int:
    """Matrix products per layer: the result, the gradient of the matrix, and that of the rows."""
    return 1 + backward + (backward and needed)
