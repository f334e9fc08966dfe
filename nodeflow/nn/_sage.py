"""SAGEConv, the GraphSAGE convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import check_one_of
from nodeflow.flow import Flow
from nodeflow.nn._conv import linear_map
from nodeflow.nn._gcn import degree_column
from nodeflow.nn._linear_conv import LinearConv
from nodeflow.ops import sparse_linear
from nodeflow.transform import IN_DEGREE


class SAGEConv(LinearConv):
    """GraphSAGE convolution (Hamilton, Ying, Leskovec 2017).

    - ``aggregator="mean"``: ``h'_v = W_own h_v + W_neigh mean(h_u for u in N(v)) + b`` (algorithm
      1);
    - ``aggregator="gcn"``: ``h'_v = W_neigh mean(h_u for u in N(v) and v itself) + b`` (equation
      2);
    - ``aggregator="pool"``:
      ``h'_v = W_own h_v + W_neigh max(relu(W_pool h_u + b_pool) for u in N(v)) + b``, with the
      maximum of every entry (equation 3).

    W_own and W_neigh are the halves of the matrix that the paper applies to the concatenation, and
    are initialised as that matrix. A node without neighbours has a mean and a maximum of 0. Unless
    ``weighted``, means ignore estimator weights. They are for samplers that draw all edges of a
    node with equal probability, such as ``NeighborSampler`` without ``prob``; other batches
    (``flow.needs_weight``) give an ``IgnoredWeightWarning``.

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result.
        aggregator: "mean", "gcn" or "pool".
        weighted: with "mean": the sum of estimator weight times row over the edges, divided by the
            number of in-edges in the parent graph (the column "in_degree" of the destination layer,
            see ``transform.degrees``). The result before a nonlinearity is an unbiased estimate of
            the mean over all in-edges for every sampler whose weights are unbiased, and equal to it
            with all edges. The sampler must have no ``weight`` column. A flow does not tell along
            which edges it was drawn: for ``direction="out"`` sample from
            ``transform.reverse(graph)`` instead, with the degrees of that graph.
        bias: add a learned bias b.
        order, relu: see ``LinearConv``. With "pool" only "auto" and "aggregate", since a maximum is
            not linear.

    Raises ValueError for another ``aggregator`` or ``order``, and for ``weighted`` with another
    aggregator than "mean".

    >>> from nodeflow import flow_from_edges
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> SAGEConv(4, 3).neigh.weight.shape, SAGEConv(4, 3, aggregator="pool").pool.weight.shape
    (torch.Size([3, 4]), torch.Size([4, 4]))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        aggregator: str = "mean",
        weighted: bool = False,
        bias: bool = True,
        order: str = "auto",
        relu: bool = False,
    ) -> None:
        check_one_of(aggregator, "aggregator", ("mean", "gcn", "pool"))
        if aggregator == "pool" and order == "transform":
            raise ValueError(
                "order must be 'auto' or 'aggregate' with aggregator='pool': a maximum is not "
                "linear"
            )
        if weighted and aggregator != "mean":
            raise ValueError(f"weighted=True needs aggregator='mean', got {aggregator!r}")
        super().__init__(order, relu=relu)
        self.weighted = bool(weighted)
        if not weighted and aggregator != "pool":
            self.weight_advice = (
                "use GraphSAGE(weighted=True), or SAGEConv(weighted=True), with aggregator='mean'"
            )
        self.aggregator = aggregator
        self.loops = aggregator == "gcn"
        self.neigh = linear_map(in_features, out_features, bias=bias)
        self.set_maps("neigh", None if aggregator == "gcn" else "own")
        if aggregator != "gcn":
            self.own = nn.Linear(in_features, out_features, bias=False)
        if aggregator == "pool":
            self.pool = nn.Linear(in_features, in_features)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, uniform in +-1/sqrt(fan-in) for the fan-in of the concatenated
        matrix.
        """
        linear, own_map = self.maps
        if own_map is None:
            modules = [linear]
        else:
            modules = [linear, own_map]
        bound = (linear.in_features * len(modules)) ** -0.5
        for module in modules:
            for parameter in module.parameters():
                nn.init.uniform_(parameter, -bound, bound)
        if self.aggregator == "pool":
            self.pool.reset_parameters()

    def order_for(self, flow: Flow, h: Tensor | None = None) -> str:
        if self.aggregator == "pool":
            return "aggregate"
        return super().order_for(flow, h)

    @checked
    def flops(
        self, flow: Flow, h: Tensor | None = None, *, backward: bool = False
    ) -> dict[str, int]:
        """Return the operations of each order, see ``LinearConv``; ValueError with "pool", which
        has one order.
        """
        if self.aggregator == "pool":
            raise ValueError(
                "with aggregator='pool' there is one order; count operations with nn.flop_counter()"
            )
        return super().flops(flow, h, backward=backward)

    def aggregate(self, flow: Flow, h: Tensor) -> Tensor:
        """Return the means of the neighbours' rows, with "gcn" also the node's own, or maxima:
        ``[num_dst, width]``.
        """
        if self.aggregator == "pool":
            return flow.aggregate(sparse_linear(h, self.pool.weight, self.pool.bias).relu(), "max")
        if self.aggregator == "mean":
            reduce, weight = self._mean(flow, h)
            return flow.aggregate(h, reduce, weight=weight).to(h.dtype)
        rows, h = flow.share_dst(h)
        count = flow.in_degrees.unsqueeze(1).to(torch.promote_types(h.dtype, torch.float32)) + 1
        # in place, as a mean is divided
        return flow.aggregate(h, "sum").add_(rows).div_(count)

    def summands(self, flow: Flow, h: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return rows and weights; a mean and the node's own row are written side by side, for one
        product.
        """
        # the joint loop would pass by sums that a subclass makes itself
        if self.aggregator != "mean" or type(self).aggregate is not SAGEConv.aggregate:
            return super().summands(flow, h)
        reduce, weight = self._mean(flow, h)
        joined = flow.aggregate_beside_own(h, reduce, weight=weight).to(h.dtype)
        return [(joined, torch.cat([self.own.weight, self.neigh.weight], 1))]

    def _mean(self, flow: Flow, h: Tensor) -> tuple[str, Tensor | None]:
        """Return the reduction and the weights of a mean: with ``weighted``, estimator weights /
        parent in-degrees.
        """
        if not self.weighted:
            return "mean", None
        dtype = torch.promote_types(h.dtype, torch.float32)
        degree = degree_column(flow.dst_layer, IN_DEGREE, "destination", "weighted=True").to(dtype)
        return "sum", flow.weight.to(dtype) / degree[flow.structure.dst]

    def extra_repr(self) -> str:
        return f"aggregator={self.aggregator!r}, {super().extra_repr()}"
