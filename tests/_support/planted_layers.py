"""Small wrong layers, each with the name of the check that must find its fault."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nodeflow.nn import FlowConv

WIDTH = 3


class Right(FlowConv):
    """A weighted sum of the neighbours, beside the node itself; subclasses have one fault each."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, 2)
        self.own = nn.Linear(WIDTH, 2)

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        return self.own(flow.take_dst(h)) + flow.aggregate(
            self.linear(h), "sum", weight=flow.weight.to(h.dtype)
        )


class Saturated(Right):
    """Sums in bfloat16, one by one: 256 + 1 is 256."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        src, dst = flow.edges()
        rows: list[Any] = [h.new_zeros(WIDTH)] * flow.num_dst
        for u, v, weight in zip(src.tolist(), dst.tolist(), flow.weight.to(h.dtype), strict=True):
            rows[v] = rows[v] + h[u] * weight
        return self.linear(torch.stack(rows) if rows else h.new_zeros(0, WIDTH))


class NanMean(Right):
    """The sum of nothing, divided by nothing."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        total = flow.aggregate(h, "sum", weight=flow.weight.to(h.dtype))
        return self.linear(total / flow.in_degrees[:, None])


class Unweighted(Right):
    """Weights are ignored without a word."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        return self.linear(flow.aggregate(h, "mean"))


class Claims(Right):
    """Weights are read, and said to be unused."""

    weight_advice = "none"


class Numbered(Right):
    """The number of a row goes into it."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        return super().forward(flow, h) + torch.arange(flow.num_dst)[:, None].to(h.dtype)


class LastEdge(Right):
    """The first edge of a node counts twice."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        first = torch.zeros(flow.num_edges, dtype=h.dtype)
        first[flow.indptr[:-1][flow.in_degrees > 0]] = 1
        weight = flow.weight.to(h.dtype) + first
        return self.linear(flow.aggregate(h, "sum", weight=weight))


class AcrossNodes(Right):
    """The mean of all rows of the batch is subtracted."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        out = super().forward(flow, h)
        return out - out.mean(0) if len(out) else out


class InPlace(Right):
    """The rows are changed in place."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        with torch.no_grad():
            h.clamp_(min=0)
        return super().forward(flow, h)


class TornHistory(Right):
    """A history is read after the first half of it was written."""

    history: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("history", torch.zeros(0))

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        out = super().forward(flow, h)
        if self.history.shape != out.shape:
            self.history = torch.zeros_like(out).detach()
        self.history[: len(out) // 2] = out[: len(out) // 2].detach()
        return out - 0.5 * self.history


class Doubled(torch.autograd.Function):
    """The identity, with twice its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * grad


class WrongGradient(Right):
    """A gradient that is twice too large."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        out: Tensor = Doubled.apply(super().forward(flow, h))
        return out


class Sources(Right):
    """Rows of the sources."""

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        return torch.cat([super().forward(flow, h)] * 2)


LAYERS: dict[str, tuple[type[Right], str]] = {
    "saturated": (Saturated, "narrow types"),
    "NaN mean": (NanMean, "no neighbours"),
    "unweighted": (Unweighted, "weights"),
    "claims": (Claims, "weights"),
    "numbered": (Numbered, "nodes permuted"),
    "first edge": (LastEdge, "edges permuted"),
    "across nodes": (AcrossNodes, "batch"),
    "in place": (InPlace, "untouched"),
    "torn history": (TornHistory, "repeatable"),
    "wrong gradient": (WrongGradient, "gradients"),
    "rows of the sources": (Sources, "shapes"),
}
