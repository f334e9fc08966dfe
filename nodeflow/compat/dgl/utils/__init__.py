"""The function of ``dgl.utils`` that programs with NodeFlows call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["toindex"]


def toindex(data: Any) -> Tensor:
    """Return ids as an int64 tensor, which every call takes that takes ids.

    >>> toindex([3, 1])
    tensor([3, 1])
    """
    return torch.as_tensor(data, dtype=torch.int64)
