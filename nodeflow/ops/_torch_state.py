"""The state of torch: its private names, in one file that a new version of torch is checked with,
and its compiler.

The compiled loops and the fused linear maps see plain memory. They must not run while a transform,
a mode that watches operations, or forward-mode differentiation expects to see torch's own
operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, _is_zerotensor
from torch._C import _are_functorch_transforms_active, _len_torch_dispatch_stack
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd import forward_ad

from nodeflow._core.rows.coded import CodedTensor

P = ParamSpec("P")
R = TypeVar("R")

PLAIN_TYPES = (Tensor, torch.nn.Parameter)
"""Subclasses of tensors may give operations another meaning, so only these are read as memory, and
coded rows.
"""


def is_watched() -> bool:
    """Whether a dispatch mode is active, such as a counter of operations: it sees torch's own
    operations only.
    """
    return _len_torch_dispatch_stack() > 0


def is_transforming() -> bool:
    """Whether the compiler, a functional transform (vmap, grad, jvp) or forward-mode
    differentiation is at work.
    """
    if torch.compiler.is_compiling():
        return True
    level = forward_ad._current_level  # noqa: SLF001 (torch has no public name for it)
    return _are_functorch_transforms_active() or level >= 0


def is_memory(tensor: Tensor) -> bool:
    """Whether a tensor is its memory, rather than a stand-in for others in a transform or for
    zeros.

    So are coded rows: whoever reads their memory gets that of the unpacked ones.
    """
    if isinstance(tensor, CodedTensor):
        return True
    if type(tensor) not in PLAIN_TYPES:
        return False
    return not is_functorch_wrapped_tensor(tensor) and not _is_zerotensor(tensor)


def has_tiles() -> bool:
    """Whether the processor has instructions for tiles of bfloat16 (AMX), and the system lets this
    process use them.
    """
    return torch.cpu._is_amx_tile_supported() and torch.cpu._init_amx()  # noqa: SLF001 (torch has no public name)


def opaque(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` such that a compiled model calls it as it is.

    For operations on a structure: their loops are compiled already, they keep what they derive from
    a structure on it, and how many steps they take depends on its values. Traced, they would be
    compiled again and again.
    """
    # made when first needed, because that imports the compiler, which takes seconds
    plain: list[Callable[P, R]] = []

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # the compiler gives up on a caller after a few looks, and then looks into what that calls:
        # not compiled, but called from a compiled model, is the same here as compiled
        if not plain:
            if not torch.compiler.is_compiling():
                return function(*args, **kwargs)
            plain.append(torch.compiler.disable(function))
        return plain[0](*args, **kwargs)

    # The compiler counts by code object how often it has looked at a function, and gives up after a
    # few. All these functions would share the code of ``call``, so each gets a copy.
    call.__code__ = call.__code__.replace(co_name=function.__name__)  # type: ignore[attr-defined]
    return call
