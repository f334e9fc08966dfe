"""Private names of torch that tell its state, in one file, so that a new version of torch is checked here only.

The compiled loops and the fused linear maps see plain memory. They must not run while a transform, a mode that watches
operations, or forward-mode differentiation expects to see torch's own operations.
"""

from __future__ import annotations

import torch
from torch import Tensor, _is_zerotensor
from torch._C import _are_functorch_transforms_active, _len_torch_dispatch_stack
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd import forward_ad

PLAIN_TYPES = (Tensor, torch.nn.Parameter)
"""Subclasses of tensors may give operations another meaning, so only these are read as memory."""


def is_watched() -> bool:
    """Whether a dispatch mode is active, such as a counter of operations: it sees torch's own operations only."""
    return _len_torch_dispatch_stack() > 0


def is_transforming() -> bool:
    """Whether a functional transform (vmap, grad, jvp) or forward-mode differentiation is active."""
    level: int = forward_ad._current_level  # noqa: SLF001 (torch has no public name for it)
    return _are_functorch_transforms_active() or level >= 0


def is_memory(tensor: Tensor) -> bool:
    """Whether a tensor is its memory, rather than a stand-in for others in a transform or for zeros."""
    return type(tensor) in PLAIN_TYPES and not is_functorch_wrapped_tensor(tensor) and not _is_zerotensor(tensor)
