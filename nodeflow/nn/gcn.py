"""The graph convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodeflow.flow import Flow
from nodeflow.nn.conv import FlowConv
from nodeflow.ops import sparse_linear


class GraphConv(FlowConv):
    """Graph convolution over a node and its neighbours (Kipf, Welling 2017, equation 2, with D^-1 (A + I)).

    ``h'_v = W (h_v + sum of h_u for u in N(v)) / (1 + |N(v)|) + b``: the random-walk normalisation over the edges of
    the flow. Estimator weights play no part: it is for samplers that draw all edges of a node with equal probability,
    such as ``NeighborSampler`` without ``prob``.

    Args:
        in_features, out_features: widths of the rows of ``h`` and of the result.
        bias: add a learned bias.

    >>> from nodeflow import flow_from_edges
    >>> flow = flow_from_edges([1, 2], [0, 0], num_src=3, num_dst=1)
    >>> GraphConv(4, 3).linear.weight.shape
    torch.Size([3, 4])
    """

    def __init__(self, in_features: int, out_features: int, *, bias: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights (Glorot, Bengio 2010), and a bias of 0."""
        nn.init.xavier_uniform_(self.linear.weight)
        if self.linear.bias is not None:
            nn.init.zeros_(self.linear.bias)

    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return ``[num_dst, out_features]`` for ``h`` ``[num_src, in_features]``, dense or sparse CSR.

        Raises ValueError when a destination is not in the source layer (sample with ``include_dst=True``).
        """
        first = h.layout != torch.strided or self.linear.out_features < self.linear.in_features
        z = sparse_linear(h, self.linear.weight) if first else h
        scale = 1.0 / (1.0 + flow.in_degrees.to(z.dtype)).unsqueeze(1)
        z = (flow.aggregate(z, "sum") + flow.take_dst(z)) * scale
        if not first:
            return torch.nn.functional.linear(z, self.linear.weight, self.linear.bias)
        return z if self.linear.bias is None else z + self.linear.bias
