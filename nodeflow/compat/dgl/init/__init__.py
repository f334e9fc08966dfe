"""Initialisers of columns, for ``set_n_initializer`` and ``set_e_initializer``."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["zero_initializer"]


def zero_initializer(
    shape: tuple[int, ...], dtype: torch.dtype, ctx: torch.device, id_range: slice
) -> Tensor:
    """Return zeros.

    >>> zero_initializer((2, 1), torch.float32, torch.device("cpu"), slice(0, 2))
    tensor([[0.],
            [0.]])
    """
    return torch.zeros(shape, dtype=dtype, device=ctx)
