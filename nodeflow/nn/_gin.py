"""GINConv, the graph isomorphism convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nodeflow._base.checks import check_one_of, check_type
from nodeflow.flow import Flow
from nodeflow.nn._conv import EQUAL_PROBABILITY, FlowConv


class GINConv(FlowConv):
    """Graph isomorphism convolution (Xu, Hu, Leskovec, Jegelka 2019, equation 4.1).

    ``h'_v = mlp((1 + eps) h_v + sum of h_u for u in N(v))``. Only the sum tells multisets of neighbours apart; the
    paper compares it with mean and maximum (section 5). Unless ``weighted``, the sum goes over the edges of the flow
    and ignores estimator weights: a sum over drawn neighbours is smaller than that over all, and a flow with
    ``needs_weight`` gives an ``IgnoredWeightWarning``.

    Args:
        mlp: a module that maps ``[num_dst, in_features]`` to rows of the result, usually two linear maps with batch
            normalisation and ReLU.
        eps: the weight of a node's own row, minus 1.
        train_eps: learn ``eps``, starting from the given number.
        aggregator: "sum", "mean" or "max".
        weighted: with "sum": multiply each edge by its estimator weight. The sum is then an unbiased estimate of the
            sum over all edges, for every sampler with unbiased weights, and equal to it with all edges.

    Raises ValueError for another ``aggregator``, and for ``weighted`` with another one than "sum"; TypeError for an
    ``mlp`` that is no module.

    >>> from nodeflow import create_node_flow, flow_from_edges
    >>> flow = flow_from_edges([1, 2], [0, 0], num_src=3, num_dst=1)
    >>> batch = create_node_flow([flow], [[0, 1, 2], [0]])
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
            self.weight_advice = EQUAL_PROBABILITY if aggregator == "mean" else "use GINConv(weighted=True)"
        self.mlp, self.aggregator, self.initial_eps = mlp, aggregator, float(eps)
        number = torch.tensor(self.initial_eps)
        if train_eps:
            self.eps = nn.Parameter(number)
        else:
            self.register_buffer("eps", number)

    def forward(self, flow: Flow, h: Tensor) -> Tensor:
        """Return ``[num_dst, out_features]``, the rows of ``mlp``, for dense ``h`` ``[num_src, in_features]``.

        Raises ValueError when a destination is not in the source layer (sample with ``include_dst=True``), TypeError
        for sparse rows.
        """
        own = (1 + self.eps) * flow.take_dst(h)
        weight = flow.weight.to(torch.promote_types(h.dtype, torch.float32)) if self.weighted else None
        out: Tensor = self.mlp(own + flow.aggregate(h, self.aggregator, weight=weight).to(h.dtype))
        return out

    def extra_repr(self) -> str:
        """The aggregator and eps, for ``repr``."""
        learned = isinstance(self.eps, nn.Parameter)
        weighted = ", weighted" if self.weighted else ""
        return f"aggregator={self.aggregator!r}, eps={self.initial_eps:g}{' (learned)' if learned else ''}{weighted}"
