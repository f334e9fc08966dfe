"""Functions of one edge's operands: what a message is, and its derivatives, on rows already gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

EdgeFunction = Callable[..., Tensor]
"""Takes tensors ``[c, ...]``, one row per edge each, and returns one ``[c, ...]``; works row by row."""


def _copy(a: Tensor) -> Tensor:
    return a


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def paired_dot(a: Tensor, b: Tensor) -> Tensor:
    """The dot product by elementwise halving.

    ``sum`` may add in another order when the number of rows differs (it does on CUDA from about 100 columns on); this
    one gives the same bits for a row however many rows there are. Needed where a recomputed message is compared with a
    kept one.
    """
    product = a * b
    while (width := product.shape[-1]) > 1:
        half = width // 2
        folded = product[..., :half] + product[..., half : 2 * half]
        product = torch.cat([folded, product[..., 2 * half :]], -1) if width % 2 else folded
    return product if width else product.sum(-1, keepdim=True)


OPERATIONS: Final[dict[str, EdgeFunction]] = {
    "copy": _copy,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "dot": _dot,
}
"""Message operations on operands of equal rank; all but "copy" take two. "dot" keeps the contracted dimension as 1."""


def derivative(function: EdgeFunction, k: int) -> EdgeFunction:
    """Return the edge function ``(*operands, g) -> gradient of operand k`` when ``g`` is that of the message.

    It is recomputed from the operands, keeps nothing, and can itself be differentiated.
    """

    def pull(*tensors: Tensor) -> Tensor:
        *operands, g = tensors
        further = torch.is_grad_enabled()  # a derivative of this derivative is being taken
        with torch.enable_grad():
            x = operands[k] if operands[k].requires_grad else operands[k].detach().requires_grad_()
            operands[k] = x
            message = function(*operands)
            if not message.requires_grad:  # the function does not depend on this operand
                return torch.zeros_like(x)
            (grad,) = torch.autograd.grad(message, x, g, create_graph=further, materialize_grads=True)
        return grad

    return pull
