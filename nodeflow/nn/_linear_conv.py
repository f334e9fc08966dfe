"""LinearConv: convolutions that sum before or after the matrix product; and flop_counter, which
counts operations.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import check_one_of
from nodeflow.flow import Flow
from nodeflow.nn._conv import FlowConv, check_width, draw_glorot
from nodeflow.ops import dropout as drop, linear_sum, opaque

EDGE_COST: Final = 10
"""Time to add one number of a neighbour's row, in operations of a matrix product."""

ROW_COST: Final = 60
"""Time to make one number of a new matrix between sum and product, in operations of a matrix
product.

Both costs are measured, see "The cheaper order" in docs/layers.md.
"""


class LinearConv(FlowConv):
    """A convolution ``h' = A h W^T (+ h_own W_own^T) + b``, with A a linear map from source rows to
    destination rows.

    ``(A h) W^T`` and ``A (h W^T)`` are equal up to rounding, and so are their gradients. The first
    sums rows as wide as the inputs and multiplies a row per destination. The second sums rows as
    wide as the outputs and multiplies a row per source. Sparse CSR rows are always multiplied
    first, since their sums would be dense.

    The convolution reads the weights and biases of its ``nn.Linear`` modules. It does not call
    their ``forward``, nor hooks on it (``torch.nn.utils.parametrize`` works, the old
    ``weight_norm`` does not).

    Subclasses call ``set_maps`` in their ``__init__``, and define ``aggregate``.

    Args:
        order: "aggregate" (sum first), "transform" (multiply first), or "auto", the cheaper one for
            the sizes of the flow and of the matrix, and for whether gradients are needed.
        relu: apply ReLU to h', which is faster than applying it afterwards.

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
    """Whether ``aggregate`` multiplies rows by weights of the edges, which takes two operations per
    number, not one.
    """

    loops = False
    """Whether ``aggregate`` adds a node's own row to the sum, whose gradient takes two more
    matrices.
    """

    def __init__(self, order: str = "auto", *, relu: bool = False) -> None:
        super().__init__()
        check_one_of(order, "order", ("auto", "aggregate", "transform"))
        self.order = order
        self.relu = bool(relu)

    def set_maps(self, neigh: str, own_map: str | None = None) -> None:
        """Name the attributes that hold the ``nn.Linear`` modules of W (with the bias) and of
        W_own.
        """
        self._names = neigh, own_map

    @property
    def maps(self) -> tuple[nn.Linear, nn.Linear | None]:
        """The linear maps of the summed rows and of a node's own row, or None for the second."""
        neigh, own_map = self._names
        return getattr(self, neigh), None if own_map is None else getattr(self, own_map)

    reset_parameters = draw_glorot

    def aggregate(self, flow: Flow, h: Tensor) -> Tensor:
        """Return A h, ``[num_dst, width]``, in the type of ``h``: dense rows ``[num_src, width]``
        of any width.
        """
        raise NotImplementedError(f"{type(self).__name__} must define aggregate(flow, h)")

    def summands(self, flow: Flow, h: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return rows of destinations and the matrices for them, where the sum comes first."""
        neigh, own_map = self.maps
        pairs = [(self.aggregate(flow, h), neigh.weight)]
        if own_map is None:
            return pairs
        return [*pairs, (flow.take_dst(h), own_map.weight)]

    @opaque  # the order depends on sizes: traced, a model would be compiled again for every size
    def forward(self, flow: Flow, h: Tensor, *, dropout: float = 0.0) -> Tensor:
        """Return ``[num_dst, out_features]`` for ``h`` ``[num_src, in_features]``, dense or sparse
        CSR.

        Numbers of the result are dropped with the probability ``dropout``. Raises ValueError for
        rows of another width, and what ``FlowConv`` says.
        """
        neigh, own_map = self.maps
        check_width(self, h, neigh.in_features)
        if self.order_for(flow, h) == "aggregate":
            return linear_sum(
                *self.summands(flow, h), bias=neigh.bias, relu=self.relu, dropout=dropout
            )
        if own_map is None:
            out = self.aggregate(flow, linear_sum((h, neigh.weight)))
            if neigh.bias is not None:
                out = out + neigh.bias
        else:
            rows, h = flow.share_dst(h)
            total = self.aggregate(flow, linear_sum((h, neigh.weight)))
            out = linear_sum((rows, own_map.weight), bias=neigh.bias) + total
        if self.relu:
            out = out.relu()
        if dropout:
            return drop(out, dropout)
        return out

    def order_for(self, flow: Flow, h: Tensor | None = None) -> str:
        """Return the order for a flow and its rows ``h``: "aggregate" or "transform".

        None stands for dense rows that need a gradient.
        """
        # loops of sums take dense rows, which the product makes of sparse ones
        if h is not None and h.layout != torch.strided:
            return "transform"
        if self.order != "auto":
            return self.order
        backward = torch.is_grad_enabled() and self.maps[0].weight.requires_grad
        work = self._work(flow, backward, h is None or h.requires_grad)

        # in operations of a matrix product
        def time(order: str) -> int:
            products, sums, rows = work[order]
            return products + EDGE_COST * sums + ROW_COST * rows

        # of equal ones the first, "aggregate"
        return min(work, key=time)

    @checked
    def flops(
        self, flow: Flow, h: Tensor | None = None, *, backward: bool = False
    ) -> dict[str, int]:
        """Return the number of floating-point operations of each order,
        ``{"aggregate": n, "transform": m}``.

        Matrix products count two operations per product of two numbers. Sums over edges count one
        operation for every number that is added, two where edges have weights. ``flop_counter``
        counts the same while a model runs. Operations done once per number of a row (bias, division
        by degrees) are not counted.

        Args:
            flow, h: as for ``order_for``. Sparse rows have one order.
            backward: add the operations of the backward pass: gradients of the matrices, and of
                ``h`` if it needs one.
        """
        neigh, own_map = self.maps
        per_sum = 1
        if self.weighted:
            per_sum = 2
        if h is not None and h.layout != torch.strided:
            total = (2 * h.values().numel() + per_sum * flow.num_edges) * neigh.out_features
            if own_map is not None:
                total += 2 * flow.take_dst(h).values().numel() * own_map.out_features
            return {"transform": total * (1 + backward)}
        needed = h is None or h.requires_grad
        extra = 0
        if own_map is not None:
            extra = 2 * flow.num_dst * own_map.weight.numel() * _passes(backward, needed)
        counts = {}
        for order, (products, sums, _) in self._work(flow, backward, needed).items():
            counts[order] = products + per_sum * sums + extra
        return counts

    def _work(self, flow: Flow, backward: bool, needed: bool) -> dict[str, tuple[int, int, int]]:
        """Return of each order operations of products, numbers added along edges, and numbers in
        matrices in between.

        The product with own rows, which both orders have, is left out.
        """
        neigh, _ = self.maps
        wide = neigh.in_features
        narrow = neigh.out_features
        product = 2 * wide * narrow * _passes(backward, needed)
        # a backward sum over edges: for "aggregate" only if the rows need a gradient, for
        # "transform" always
        first = 1 + (backward and needed)
        after = 1 + backward
        loops = 2 * flow.num_src * self.loops
        sums_first = flow.num_dst * first + loops * (first - 1)
        sums_after = flow.num_src * after + loops * (after - 1)
        edges = flow.num_edges
        return {
            "aggregate": (product * flow.num_dst, edges * wide * first, sums_first * wide),
            "transform": (product * flow.num_src, edges * narrow * after, sums_after * narrow),
        }

    def extra_repr(self) -> str:
        return f"order={self.order!r}, relu={self.relu}"


def _passes(backward: bool, needed: bool) -> int:
    """Return the number of matrix products: the result, the gradient of the matrix, the gradient of
    the rows.
    """
    return 1 + backward + (backward and needed)


@checked
def flop_counter(*, display: bool = False) -> FlopCounterMode:
    """Return torch's counter of floating-point operations, which then also counts sums over the
    edges of flows.

    Torch's own counter knows matrix products; a sum over edges counts one addition for every number
    of a row that is added, and one multiplication more where edges have weights.

    Args:
        display: print a table when the ``with`` block ends, which needs the package tabulate.

    >>> from nodeflow import flow_from_edges
    >>> from nodeflow.nn import GraphConv
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> conv = GraphConv(4, 3, norm="none", self_loops=False)
    >>> with flop_counter() as counter:
    ...     out = conv(flow, torch.ones(2, 4))
    >>> counter.get_total_flops() == conv.flops(flow)[conv.order_for(flow)]
    True
    """
    aten = torch.ops.aten
    # what embedding_bag calls; torch gives them no public name
    bags = [getattr(aten, name) for name in ("_embedding_bag", "_embedding_bag_forward_only")]
    counts = {aten.addmm_: _added, **dict.fromkeys(bags, _bag)}
    return FlopCounterMode(display=display, custom_mapping=counts)


def _bag(rows: torch.Size, indices: torch.Size, *rest: object, **kwargs: object) -> int:
    # ``rest``: offsets, scale_grad_by_freq, mode, sparse, per_sample_weights
    is_weighted = len(rest) > 4 and rest[4] is not None
    return indices[0] * rows[1] * (2 if is_weighted else 1)


def _added(
    total: torch.Size, left: torch.Size, right: torch.Size, *rest: object, **kwargs: object
) -> int:
    """Count a matrix product that is added to a matrix in place, which torch's own counter leaves
    out.
    """
    return 2 * left[0] * left[1] * right[1]
