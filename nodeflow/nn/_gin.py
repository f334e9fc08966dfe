"""Convolutions around a network of the user's: GINConv and GINEConv, and EdgeConv with a message
per edge.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import check_one_of, check_type
from nodeflow.flow import Flow
from nodeflow.nn._conv import EQUAL_PROBABILITY, FlowConv, edge_rows


class GINConv(FlowConv):
    """Graph isomorphism convolution (Xu, Hu, Leskovec, Jegelka 2019, equation 4.1).

    ``h'_v = mlp((1 + eps) h_v + sum of h_u for u in N(v))``. Only the sum tells multisets of
    neighbours apart; the paper compares it with mean and maximum (section 5). Unless ``weighted``,
    the sum goes over the edges of the flow and ignores estimator weights: a sum over drawn
    neighbours is smaller than that over all, and a flow with ``needs_weight`` gives an
    ``IgnoredWeightWarning``.

    Args:
        mlp: a module that maps ``[num_dst, in_features]`` to rows of the result, usually two linear
            maps with batch normalisation and ReLU.
        eps: the weight of a node's own row, minus 1.
        train_eps: learn ``eps``, starting from the given number.
        aggregator: "sum", "mean" or "max".
        weighted: with "sum": multiply each edge by its estimator weight. The sum is then an
            unbiased estimate of the sum over all edges, for every sampler with unbiased weights,
            and equal to it with all edges.

    Raises ValueError for another ``aggregator``, and for ``weighted`` with another one than "sum";
    TypeError for an ``mlp`` that is no module.

    >>> from nodeflow import create_node_flow, flow_from_edges
    >>> batch = create_node_flow([flow_from_edges([1, 2], [0, 0], num_src=3, num_dst=1)], [[0, 1, 2], [0]])
    >>> GINConv(nn.Identity(), eps=0.5)(batch, 0, torch.tensor([[2.0], [3.0], [4.0]]))
    tensor([[10.]])
    """

    eps: Tensor

    def __init__(
        self,
        mlp: nn.Module,
        *,
        eps: float = 0.0,
        train_eps: bool = False,
        aggregator: str = "sum",
        weighted: bool = False,
    ) -> None:
        super().__init__()
        check_type(mlp, "mlp", nn.Module, "a torch.nn.Module")
        check_one_of(aggregator, "aggregator", ("sum", "mean", "max"))
        if weighted and aggregator != "sum":
            raise ValueError(f"weighted=True needs aggregator='sum', got {aggregator!r}")
        self.weighted = bool(weighted)
        if not weighted and aggregator != "max":
            self.weight_advice = (
                EQUAL_PROBABILITY if aggregator == "mean" else "use GINConv(weighted=True)"
            )
        self.mlp = mlp
        self.aggregator = aggregator
        self.initial_eps = float(eps)
        number = torch.tensor(self.initial_eps)
        if train_eps:
            self.eps = nn.Parameter(number)
        else:
            self.register_buffer("eps", number)

    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return the rows of ``mlp``, ``[num_dst, out_features]``, for dense ``h``
        ``[num_src, in_features]``.

        Raises TypeError for sparse rows, and what ``FlowConv`` says.
        """
        own_rows = (1 + self.eps) * flow.take_dst(h)
        weight = None
        if self.weighted:
            # weights of 16 bits would be rounded before the sum, which adds in
            # float32
            weight = flow.weight.to(torch.promote_types(h.dtype, torch.float32))
        total = flow.aggregate(h, self.aggregator, weight=weight).to(h.dtype)
        return cast("Tensor", self.mlp(own_rows + total))

    def extra_repr(self) -> str:
        words = f"aggregator={self.aggregator!r}, eps={self.initial_eps:g}"
        words += " (learned)" * isinstance(self.eps, nn.Parameter)
        return words + ", weighted" * self.weighted


class GINEConv(FlowConv):
    """Graph isomorphism convolution with edge features (Hu et al. 2020, "Strategies for
    pre-training").

    ``h'_v = mlp((1 + eps) h_v + sum of relu(h_u + W_e e_uv) over the edges u -> v)``. The sum
    goes over the edges of the flow and ignores estimator weights, so it is for full neighbourhoods.

    Args:
        mlp: a module that maps rows of width ``in_features`` to rows of the result.
        in_features: width of the rows of ``h``.
        edge_features: width of the edge features, which a learned ``W_e`` maps to ``in_features``;
            None: they have this width already and are added without a map.
        eps: start value of ``eps``; it is learned with ``train_eps``.
        edge_column: the column of ``flow.data`` with the edge features, for calls without them.

    Memory: two rows of ``in_features`` per edge.

    >>> from nodeflow import flow_from_edges, create_node_flow
    >>> batch = create_node_flow([flow_from_edges([1, 1], [0, 0], num_src=2, num_dst=1)], [[7, 8], [7]])
    >>> GINEConv(nn.Identity(), 1)(batch, 0, torch.tensor([[1.0], [5.0]]), torch.tensor([[2.0], [-9.0]]))
    tensor([[8.]])
    """

    weight_advice = EQUAL_PROBABILITY

    def __init__(
        self,
        mlp: nn.Module,
        in_features: int,
        *,
        edge_features: int | None = None,
        eps: float = 0.0,
        train_eps: bool = False,
        edge_column: str = "feat",
    ) -> None:
        super().__init__()
        check_type(mlp, "mlp", nn.Module, "a torch.nn.Module")
        self.mlp = mlp
        self.edge_column = edge_column
        self.edge = None
        if edge_features is not None:
            self.edge = nn.Linear(edge_features, in_features, bias=False)
        self.eps = nn.Parameter(torch.tensor(float(eps)), requires_grad=train_eps)

    def forward(self, flow: Flow, h: Tensor, edge_features: Tensor | None = None) -> Tensor:
        """Return ``[num_dst, out_features]`` for dense ``h`` ``[num_src, in_features]``.

        ``edge_features``: ``[num_edges, ...]``; None: the flow's column. Raises as ``GINConv``.
        """
        edge = edge_rows(flow, edge_features, self.edge_column)
        if self.edge is not None:
            edge = self.edge(edge)
        total = flow.aggregate_edges((flow.gather_src(h) + edge).relu(), "sum")
        return cast("Tensor", self.mlp((1 + self.eps) * flow.take_dst(h) + total))


class EdgeConv(FlowConv):
    """Edge convolution (Wang et al. 2019, equations 7 and 8).

    ``h'_v = max over the edges u -> v of mlp([h_v, h_u - h_v])``, entry by entry; 0 for a node
    without edges.

    Args:
        mlp: a module that maps rows of width ``2 * in_features``, plus the width of the edge
            features, to rows of the result.
        edge_column: a column of ``flow.data`` with features of the edges:
            ``mlp([h_v, h_u - h_v, e_uv])``; None: the messages depend on the ends only.

    Memory: ``mlp`` is computed for a row per edge.

    >>> from nodeflow import flow_from_edges, create_node_flow
    >>> batch = create_node_flow([flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)], [[7, 8], [7]])
    >>> EdgeConv(nn.Identity())(batch, 0, torch.tensor([[1.0], [5.0]]))
    tensor([[1., 4.]])
    """

    def __init__(self, mlp: nn.Module, *, edge_column: str | None = None) -> None:
        super().__init__()
        check_type(mlp, "mlp", nn.Module, "a torch.nn.Module")
        self.mlp = mlp
        self.edge_column = edge_column

    def forward(self, flow: Flow, h: Tensor, edge_features: Tensor | None = None) -> Tensor:
        """Return ``[num_dst, out_features]`` for dense ``h`` ``[num_src, in_features]``.

        ``edge_features`` ``[num_edges, k]`` take the place of the flow's column. Raises as
        ``GINConv``.
        """
        src = flow.gather_src(h)
        dst = flow.gather_dst(flow.take_dst(h))
        parts = [dst, src - dst]
        if edge_features is not None or self.edge_column is not None:
            parts.append(edge_rows(flow, edge_features, self.edge_column or "edge_features"))
        return flow.aggregate_edges(self.mlp(torch.cat(parts, 1)), "max")
