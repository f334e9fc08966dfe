"""Convolutions with attention: GAT, and GATv2, in which the ranking of neighbours depends on the
node.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from nodeflow._core.base.checks import as_count
from nodeflow.flow import Flow
from nodeflow.nn._conv import (
    EQUAL_PROBABILITY,
    FlowConv,
    check_width,
    draw_glorot,
    edge_rows,
    linear_map,
    with_own_row,
)
from nodeflow.ops import sparse_linear


class AttentionConv(FlowConv):
    """The base class of convolutions with attention; subclasses define ``scores``.

    Per head, ``h'_v = sum of alpha_vu W h_u`` over the neighbours u of v and, with ``self_loops``,
    v itself. ``alpha`` is the softmax of their scores. Attention weighs the edges of the flow and
    ignores estimator weights: a flow with ``needs_weight`` gives an ``IgnoredWeightWarning``. No
    matrix ``[num_edges, heads * out_features]`` is made here.

    Args:
        in_features: width of the rows of ``h``.
        out_features: width of one head.
        heads: number of heads.
        concat: return the heads side by side, ``[num_dst, heads * out_features]``; False: return
            their mean, ``[num_dst, out_features]``.
        attention_dropout: probability that an ``alpha`` is set to zero while training.
        negative_slope: slope of the LeakyReLU in the scores for negative numbers.
        self_loops: a node attends to itself too. No edge is added to the flow for that. Edges from
            a node to itself count in addition.
        residual: add a linear map of a node's own row.
        bias: add a learned bias.
        edge_features: width of the edge features that the scores depend on; None: the scores depend
            on the ends of an edge only. For the score of a node for itself the edge features are 0.
        edge_column: the column of ``flow.data`` with the edge features, for calls without them.

    Raises ValueError for sizes below 1.

    >>> from nodeflow import flow_from_edges
    >>> class Equal(AttentionConv):
    ...     def scores(self, flow, h, z, edge):
    ...         own = z.new_zeros(flow.num_dst, self.heads) if self.self_loops else None
    ...         return z.new_zeros(flow.num_edges, self.heads), own
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> Equal(4, 3, heads=2, self_loops=False)(flow, torch.ones(2, 4)).shape
    torch.Size([1, 6])
    """

    weight_advice = EQUAL_PROBABILITY

    def __init__(
        self,
        in_features: int,
        out_features: int,
        heads: int = 1,
        *,
        concat: bool = True,
        attention_dropout: float = 0.0,
        negative_slope: float = 0.2,
        self_loops: bool = True,
        residual: bool = False,
        bias: bool = True,
        edge_features: int | None = None,
        edge_column: str = "feat",
    ) -> None:
        super().__init__()
        self.heads = as_count(heads, "heads", 1)
        self.out_features = as_count(out_features, "out_features", 1)
        self.concat = concat
        self.negative_slope = negative_slope
        self.self_loops = self_loops
        self.edge_features = edge_features
        self.edge_column = edge_column
        self.dropout = nn.Dropout(attention_dropout)
        width = out_features
        if concat:
            width = heads * out_features
        self.linear = linear_map(in_features, heads * out_features, bias=False)
        self.own = nn.Linear(in_features, width, bias=False) if residual else None
        self.bias = nn.Parameter(torch.empty(width)) if bias else None
        self.make_scores(in_features)
        self.reset_parameters()

    def make_scores(self, in_features: int) -> None:
        """Make the parameters of ``scores``, if there are any; they are drawn by
        ``reset_parameters``.
        """

    reset_parameters = draw_glorot

    @abstractmethod
    def scores(
        self, flow: Flow, h: Tensor, z: Tensor, edge: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return scores of the edges ``[num_edges, heads]``, and of destinations for themselves
        ``[num_dst, heads]``.

        ``z`` is W h, ``[num_src, heads, out_features]``. ``edge`` has the edge features, if scores
        depend on them. Without ``self_loops`` the second result is None.
        """

    def forward(self, flow: Flow, h: Tensor, edge_features: Tensor | None = None) -> Tensor:
        """Return ``[num_dst, heads * out_features]``, or ``[num_dst, out_features]`` without
        ``concat``.

        Args:
            h: ``[num_src, in_features]``, dense or sparse CSR.
            edge_features: ``[num_edges, edge_features]``; None: the flow's column.

        The softmax and the sums of float16 and bfloat16 rows are computed in float32. Raises
        TypeError for edge features that the layer was not made for, and what ``FlowConv`` says.
        """
        if self.edge_features is None and edge_features is not None:
            raise TypeError(
                f"edge_features were given, but this {type(self).__name__} has none: make it with "
                "edge_features="
            )
        edge = None
        if self.edge_features is not None:
            edge = edge_rows(flow, edge_features, self.edge_column)
        check_width(self, h, self.linear.in_features)
        z = self.map(self.linear, h)
        near, own_score = self.scores(flow, h, z, edge)
        near = near.to(torch.promote_types(near.dtype, torch.float32))
        if own_score is None:
            share = self.dropout(flow.softmax(near)).unsqueeze(-1)
            out = flow.aggregate(z, "sum", weight=share)
        else:
            # the own score joins the softmax of the edges; dividing sums takes one operation per
            # node, not per edge
            # subtracting the largest score keeps exp from overflowing
            with torch.no_grad():
                has_edges = flow.in_degrees.unsqueeze(1) > 0
                largest = torch.where(has_edges, flow.aggregate_edges(near, "max"), own_score)
                largest = largest.maximum(own_score)
            near = (near - flow.gather_dst(largest)).exp()
            own_score = (own_score - largest).exp()
            total = flow.aggregate_edges(near, "sum") + own_score
            out = flow.aggregate(z, "sum", weight=self.dropout(near).unsqueeze(-1))
            out = (
                out + self.dropout(own_score).unsqueeze(-1) * flow.take_dst(z)
            ) / total.unsqueeze(-1)
        if self.concat:
            out = out.flatten(1)
        else:
            out = out.mean(1)
        return with_own_row(out.to(z.dtype), flow, h, self.own, self.bias)

    def map(self, linear: nn.Linear, x: Tensor) -> Tensor:
        """Return rows ``[n, k]``, dense or sparse CSR, through a linear map,
        ``[n, heads, out_features]``.
        """
        return sparse_linear(x, linear.weight).view(len(x), self.heads, self.out_features)


class GATConv(AttentionConv):
    """Graph attention (Velickovic et al. 2018, equations 1 to 6); arguments as for
    ``AttentionConv``.

    The score of u for v is ``LeakyReLU(a_dst . W h_v + a_src . W h_u)``; ``a_dst`` and ``a_src``
    are the halves of the paper's vector. Edge features add ``w_edge . e_uv`` inside. Memory:
    ``W h``, and a few numbers per edge and head.

    >>> from nodeflow import flow_from_edges, create_node_flow
    >>> batch = create_node_flow([flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)], [[7, 8], [7]])
    >>> GATConv(5, 4, heads=2)(batch, 0, torch.ones(2, 5)).shape
    torch.Size([1, 8])
    """

    def make_scores(self, in_features: int) -> None:
        self.src = nn.Parameter(torch.empty(self.heads, self.out_features))
        self.dst = nn.Parameter(torch.empty(self.heads, self.out_features))
        self.edge = None
        if self.edge_features is not None:
            self.edge = nn.Linear(self.edge_features, self.heads, bias=False)

    def scores(
        self, flow: Flow, h: Tensor, z: Tensor, edge: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        src = torch.einsum("nhk,hk->nh", z, self.src)
        dst = torch.einsum("nhk,hk->nh", flow.take_dst(z), self.dst)
        near = flow.gather_src(src) + flow.gather_dst(dst)
        if self.edge is not None:
            near = near + self.edge(edge)
        own_score = None
        if self.self_loops:
            own_score = leaky_relu(flow.take_dst(src) + dst, self.negative_slope)
        return leaky_relu(near, self.negative_slope), own_score


class GATv2Conv(AttentionConv):
    """Graph attention, version 2 (Brody, Alon, Yahav 2022, equation 7); arguments as for
    ``AttentionConv``.

    The score of u for v is ``a . LeakyReLU(W_dst h_v + W h_u)``. It ranks the neighbours of every
    node differently, where the score of ``GATConv`` ranks them alike. Edge features add
    ``W_edge e_uv`` inside.

    >>> from nodeflow import flow_from_edges
    >>> flow = flow_from_edges([], [], num_src=1, num_dst=1)
    >>> GATv2Conv(5, 4, heads=2, concat=False).own is None
    True
    """

    def make_scores(self, in_features: int) -> None:
        width = self.heads * self.out_features
        self.attention = nn.Parameter(torch.empty(self.heads, self.out_features))
        self.dst = nn.Linear(in_features, width, bias=False)
        self.edge = None
        if self.edge_features is not None:
            self.edge = nn.Linear(self.edge_features, width, bias=False)

    def scores(
        self, flow: Flow, h: Tensor, z: Tensor, edge: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        def score(x: Tensor) -> Tensor:
            return torch.einsum("nhk,hk->nh", leaky_relu(x, self.negative_slope), self.attention)

        dst = self.map(self.dst, flow.take_dst(h))
        near = flow.gather_src(z) + flow.gather_dst(dst)
        if self.edge is not None and edge is not None:
            near = near + self.map(self.edge, edge)
        return score(near), score(flow.take_dst(z) + dst) if self.self_loops else None
