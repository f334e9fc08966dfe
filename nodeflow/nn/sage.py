"""The GraphSAGE convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodeflow.flow import Flow
from nodeflow.nn.conv import FlowConv
from nodeflow.ops import linear_sum, sparse_linear


class SAGEConv(FlowConv):
    """GraphSAGE convolution with mean aggregation (Hamilton, Ying, Leskovec 2017, algorithm 1).

    ``h'_v = W_self h_v + W_neigh mean(h_u for u in N(v)) + b``: the two weights are the halves of the matrix that the
    paper applies to the concatenation, and start as that one matrix would. A node without neighbours has a mean of 0.
    The mean is plain, without estimator weights: it is for samplers that draw all edges of a node with equal
    probability, such as ``NeighborSampler`` without ``prob``.

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result.
        bias: add a learned bias.

    >>> from nodeflow import flow_from_edges
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> SAGEConv(4, 3).neigh.weight.shape
    torch.Size([3, 4])
    """

    def __init__(self, in_features: int, out_features: int, *, bias: bool = True) -> None:
        super().__init__()
        self.neigh = nn.Linear(in_features, out_features, bias=bias)
        self.own = nn.Linear(in_features, out_features, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights: uniform in +-1/sqrt(fan-in) of the concatenated matrix."""
        bound = (2 * self.own.in_features) ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return ``[num_dst, out_features]`` for ``h`` ``[num_src, in_features]``, dense or sparse CSR.

        Raises ValueError when a destination is not in the source layer (sample with ``include_dst=True``).
        """
        # the mean is linear, so the narrower side goes through the edges; sparse rows are multiplied first in any case
        if h.layout != torch.strided or self.own.out_features < self.own.in_features:
            own = linear_sum((flow.take_dst(h), self.own.weight), bias=self.neigh.bias)
            return own + flow.aggregate(sparse_linear(h, self.neigh.weight), "mean")
        own, mean = flow.aggregate_with_own(h, "mean")
        return linear_sum((own, self.own.weight), (mean, self.neigh.weight), bias=self.neigh.bias)
