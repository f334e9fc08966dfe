"""The choice of the code that runs a pair of message and reduction: pure and cached, apart from running it.

Faster code for a pair goes in ``choose``; nothing that calls it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from nodeflow.ops._autograd import SegmentSum, Spmm
from nodeflow.ops._chunked import EdgeSum, Extreme, Product
from nodeflow.ops._edgewise import OPERATIONS, EdgeFunction, paired_dot
from nodeflow.ops._operands import Operands
from nodeflow.ops._structure import Structure

Executor = Callable[[Structure, Operands], Tensor]
"""Runs one pair: returns the reduced messages, ``[num_dst, *message shape]``."""


@cache
def choose(
    op: str, kinds: tuple[str, ...], scales: tuple[bool, ...], reduce: str, dtype: torch.dtype, device: str
) -> Executor:
    """Return the executor of a pair.

    ``scales`` says of each operand whether each of its numbers multiplies a block of consecutive numbers of the other's
    row (see ``scales``), ``dtype`` is what the messages are computed in, ``device`` the device type.
    """
    if reduce in ("max", "min"):
        return partial(_extreme, largest=reduce == "max")
    if reduce == "prod":
        return _product
    if dtype.is_floating_point:
        if op == "copy" and kinds == ("u",):
            return partial(_copied_source, mean=reduce == "mean")
        if op == "mul" and kinds == ("u", "e") and scales[1]:
            return partial(_weighted, source=0, mean=reduce == "mean")
        if op == "mul" and kinds == ("e", "u") and scales[0]:
            return partial(_weighted, source=1, mean=reduce == "mean")
        run = _copied_edge if op == "copy" and kinds == ("e",) else _summed
        return partial(_averaged, run) if reduce == "mean" else run
    return _summed


def is_one_sum(operands: Operands, reduce: str) -> bool:
    """Whether one loop makes the sums or means of these messages: of rows of sources, as they are or times weights."""
    if reduce not in ("sum", "mean"):
        return False
    if operands.op == "copy":
        return operands.kinds == ("u",)
    kinds = (("u", "e"), scales(operands)[1]), (("e", "u"), scales(operands)[0])
    return operands.op == "mul" and any(operands.kinds == pair and scaled for pair, scaled in kinds)


def scales(operands: Operands) -> tuple[bool, ...]:
    """Say of each operand whether each of its numbers multiplies a block of consecutive numbers of the other's row.

    One number does; so do those of heads ``[heads, 1]`` with ``[heads, width]``. Only sums of wide enough blocks on a
    CPU are faster than messages made in pieces, so heads of less than 4 numbers, or elsewhere, do not count.
    """
    if len(operands.tensors) == 1:
        return (False,)
    shapes = [tuple(tensor.shape[1:]) for tensor in operands.tensors]
    heads = operands.tensors[0].device.type == "cpu"
    return tuple(_scales(mine, other, heads) for mine, other in (shapes, shapes[::-1]))


def _scales(mine: tuple[int, ...], other: tuple[int, ...], heads: bool) -> bool:
    if math.prod(mine) == 1:
        return True
    leading = len(mine)
    while leading and mine[leading - 1] == 1:
        leading -= 1
    return heads and 0 not in other and mine[:leading] == other[:leading] and math.prod(other[leading:]) >= 4


def _copied_source(structure: Structure, operands: Operands, mean: bool) -> Tensor:
    return Spmm.apply(structure, operands.tensors[0], None, "v", mean)


def _copied_edge(structure: Structure, operands: Operands) -> Tensor:
    return SegmentSum.apply(structure, operands.tensors[0], "v")


def _weighted(structure: Structure, operands: Operands, source: int, mean: bool) -> Tensor:
    h, weight = operands.tensors[source], operands.tensors[1 - source]
    groups = weight.shape[1:].numel()
    rows = weight.reshape(-1) if groups == 1 else weight.reshape(-1, groups)
    return Spmm.apply(structure, h, rows, "v", mean)


def _summed(structure: Structure, operands: Operands) -> Tensor:
    return EdgeSum.apply(structure, "v", OPERATIONS[operands.op], operands.kinds, *operands.tensors)


def _averaged(run: Executor, structure: Structure, operands: Operands) -> Tensor:
    out = run(structure, operands)
    return out.div_(structure.divisor(out))  # in place: a second matrix costs more than the division


def _extreme(structure: Structure, operands: Operands, largest: bool) -> Tensor:
    return Extreme.apply(structure, largest, _repeatable(operands.op), operands.kinds, *operands.tensors)


def _product(structure: Structure, operands: Operands) -> Tensor:
    return Product.apply(structure, _repeatable(operands.op), operands.kinds, *operands.tensors)


def _repeatable(op: str) -> EdgeFunction:
    """Return the message function that gives a message the same bits when it is computed again."""
    return paired_dot if op == "dot" else OPERATIONS[op]
