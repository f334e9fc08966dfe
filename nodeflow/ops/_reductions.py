"""The reductions by name, an entry each, and the executors that run them on the messages of any
operation.

Faster code for a pair of message and reduction goes in the executor of the reduction; nothing that
calls it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import torch
from torch import Tensor

from nodeflow.ops._autograd import SegmentSum, Spmm
from nodeflow.ops._chunked import (
    LARGEST,
    SMALLEST,
    SQUARES,
    TOTAL,
    EdgeSum,
    Extreme,
    Product,
    read_once,
)
from nodeflow.ops._edgewise import OPERATIONS, EdgeFunction, Operands, paired_dot
from nodeflow.ops._structure import Structure

Executor = Callable[[Structure, Operands], Tensor]
"""Returns the reduced messages, ``[num_dst, *message shape]``."""


class Reduction(NamedTuple):
    """A reduction of rows to one per destination.

    Attributes:
        run: its executor, for any message; None: ``aggregate`` alone has it, for rows of sources.
        reads: which result of ``read_once`` it is made of, where ``aggregate`` makes several at
            once; None: it has a pass of its own.
        finish: makes the reduction of that result and the in-degrees, at least 1.
        selects: whether the result is one of the messages, so that it has their type.
        divides: whether messages must be floating numbers.
    """

    run: Executor | None
    reads: int | None = None
    finish: Callable[[Tensor, Tensor], Tensor] = lambda result, degree: result
    selects: bool = False
    divides: bool = False


def summed_source(operands: Operands) -> int | None:
    """Return which operand has the rows of sources that one loop adds, maybe times edge weights.

    Each number of a weight multiplies a block of consecutive numbers of a row: one number all of
    them, those of heads ``[heads, 1]`` a part of ``[heads, width]`` each. None: messages are made
    in pieces. These are faster for heads of less than 4 numbers, and for all heads on other devices
    than the CPU.
    """
    kinds = operands.kinds
    if operands.op == "copy":
        if kinds == ("u",):
            return 0
        return None
    if operands.op != "mul" or sorted(kinds) != ["e", "u"]:
        return None
    source = kinds.index("u")
    row, weight = (tuple(operands.tensors[k].shape[1:]) for k in (source, 1 - source))
    if math.prod(weight) == 1:
        return source
    # trailing ones broadcast over consecutive numbers, what is before them must be as in the rows
    leading = len(weight)
    while leading and weight[leading - 1] == 1:
        leading -= 1
    is_of_heads = weight[:leading] == row[:leading] and 0 not in row
    if operands.tensors[0].device.type != "cpu" or not is_of_heads:
        return None
    if math.prod(row[leading:]) >= 4:
        return source
    return None


def _add(structure: Structure, operands: Operands, mean: bool = False) -> Tensor:
    tensors = operands.tensors
    floating = tensors[0].is_floating_point()
    source = None
    if floating:
        source = summed_source(operands)
    if source is not None:
        weight = None
        if len(tensors) > 1:
            weight = tensors[1 - source]
            groups = weight.shape[1:].numel()
            if groups == 1:
                weight = weight.reshape(-1)
            else:
                weight = weight.reshape(-1, groups)
        return Spmm.apply(structure, tensors[source], weight, "v", None, mean)
    if floating and operands.op == "copy" and operands.kinds == ("e",):
        out = SegmentSum.apply(structure, tensors[0], "v")
    else:
        out = EdgeSum.apply(structure, "v", OPERATIONS[operands.op], operands.kinds, *tensors)
    # in place: a second matrix costs more than the division
    if mean:
        return out.div_(structure.divisor(out))
    return out


def _extreme(structure: Structure, operands: Operands, largest: bool) -> Tensor:
    kind = operands.kinds[0]
    wanted = (False, largest, not largest, False)
    if operands.op == "copy" and kind != "v":
        return read_once(structure, kind, operands.tensors[0], wanted)[wanted.index(True)]
    return Extreme.apply(
        structure, largest, _repeatable(operands.op), operands.kinds, *operands.tensors
    )


def _product(structure: Structure, operands: Operands) -> Tensor:
    return Product.apply(structure, _repeatable(operands.op), operands.kinds, *operands.tensors)


def _repeatable(op: str) -> EdgeFunction:
    """Return the message function that gives a message the same bits when it is computed again."""
    if op == "dot":
        return paired_dot
    return OPERATIONS[op]


def _mean(total: Tensor, degree: Tensor) -> Tensor:
    return total / degree


def _deviation(squares: Tensor, degree: Tensor) -> Tensor:
    """The square root of the variance, with a gradient of 0 where that is 0."""
    variance = squares / degree
    is_zero = variance == 0
    return torch.where(is_zero, 0, torch.where(is_zero, 1, variance).sqrt())


REDUCTIONS: Final = {
    "sum": Reduction(_add, TOTAL),
    "mean": Reduction(partial(_add, mean=True), TOTAL, _mean, divides=True),
    "max": Reduction(partial(_extreme, largest=True), LARGEST, selects=True),
    "min": Reduction(partial(_extreme, largest=False), SMALLEST, selects=True),
    "prod": Reduction(_product),
    "var": Reduction(None, SQUARES, _mean, divides=True),
    "std": Reduction(None, SQUARES, _deviation, divides=True),
}
"""All reductions. ``nodeflow.fn`` has a function for each that has an executor."""

OF_MESSAGES: Final = {
    name: reduction.run for name, reduction in REDUCTIONS.items() if reduction.run
}
"""The executors of those that ``message_reduce`` has."""
