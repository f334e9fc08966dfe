"""Dropout whose gradient reads no stored mask: what is kept is a function of a key and a number's place."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow.ops._autograd import Op


def dropout(h: Tensor, rate: float) -> Tensor:
    """Return ``h`` with each number set to 0 with probability ``rate``, and the others divided by ``1 - rate``.

    Args:
        h: floating numbers of any shape.
        rate: between 0 and 1; for bfloat16 on a CPU rounded to a multiple of 2**-16.

    bfloat16 on a CPU is done by a compiled loop, with a key from torch's global generator. All else is
    ``torch.nn.functional.dropout``. Differentiable any number of times.

    >>> bool((dropout(torch.ones(1000, dtype=torch.bfloat16), 0.5).unique() == torch.tensor([0, 2])).all())
    True
    """
    if torch.compiler.is_compiling() or h.dtype != torch.bfloat16 or not native.is_summed(h) or rate == 0:
        return F.dropout(h, rate)
    return _Dropout.apply(h, int(torch.randint(2**63 - 1, ())), rate)


class _Dropout(Op):
    """``(h, key, rate)`` to the dropped ``h``: linear, so its gradient is the same of the gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, key: int, rate: float) -> Tensor:
        ctx.key, ctx.rate = key, rate
        return native.drop(h, key, rate)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Dropout.apply(grads[0], ctx.key, ctx.rate), None, None
