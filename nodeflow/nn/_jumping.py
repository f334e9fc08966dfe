"""Jumping knowledge: outputs from the rows of every layer."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor, nn

from nodeflow._base.checks import check_one_of
from nodeflow.ops import linear_sum


class Jumping(nn.Module):
    """A linear map of the rows that a node had in every layer (Xu et al. 2018, section 4).

    Args:
        mode: "cat" concatenates the rows of all layers, "max" takes the maximum of every entry.
        width: width of the rows of every layer.
        num_layers: number of layers.
        out_features: width of the result.

    Raises ValueError for another mode.

    >>> Jumping("max", 2, 3, 1).linear.weight.shape, Jumping("cat", 2, 3, 1).linear.weight.shape
    (torch.Size([1, 2]), torch.Size([1, 6]))
    """

    def __init__(self, mode: str, width: int, num_layers: int, out_features: int) -> None:
        super().__init__()
        check_one_of(mode, "jumping", ("cat", "max"))
        self.mode, self.width = mode, width
        self.linear = nn.Linear(width * num_layers if mode == "cat" else width, out_features)

    def forward(self, rows: list[Tensor]) -> Tensor:
        """Return ``[n, out_features]`` for the rows of every layer, ``[n, width]`` each."""
        if self.mode == "max":
            out: Tensor = self.linear(reduce(torch.maximum, rows))
            return out
        return linear_sum(*zip(rows, self.linear.weight.split(self.width, 1), strict=True), bias=self.linear.bias)
