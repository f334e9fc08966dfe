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
from nodeflow.ops._chunked import EdgeSum, Extreme, Product, read_once
from nodeflow.ops._edgewise import OPERATIONS, EdgeFunction, Operands, paired_dot
from nodeflow.ops._structure import Structure

Executor = Callable[[Structure, Operands], Tensor]
"""Returns the reduced messages, ``[num_dst, *message shape]``."""


class RowStatistics(NamedTuple):
    """Reductions per destination, computed in one pass over the rows of its sources; empty where
    none needs them.

    ``squares`` are sums of squared deviations from the mean; ``degree`` has the numbers of edges,
    at least 1.
    """

    total: Tensor
    largest: Tensor
    smallest: Tensor
    squares: Tensor
    degree: Tensor


class Reduction(NamedTuple):
    """A reduction of rows to one per destination.

    Attributes:
        run: its executor, for any message; None: ``aggregate`` alone has it, for rows of sources.
        reads: the fields of ``RowStatistics`` that ``finish`` reads, which ``aggregate`` makes for
            several reductions at once; none: it has a pass of its own.
        finish: makes the result of these.
        selects: whether the result is one of the messages, so that it has their type.
        divides: whether messages must be floating numbers.
    """

    run: Executor | None
    reads: tuple[str, ...] = ()
    finish: Callable[[RowStatistics], Tensor] = lambda rows: rows.total
    selects: bool = False
    divides: bool = False


def summed_source(operands: Operands) -> int | None:
    """Return which operand has the rows, where one loop adds rows of sources, as they are or times
    weights of edges.

    Each number of a weight multiplies a block of consecutive numbers of a row: one number all of
    them, those of heads ``[heads, 1]`` a part of ``[heads, width]`` each. None: messages are made
    in pieces. These are faster for heads of less than 4 numbers, and for all heads on other devices
    than the CPU.
    """
    kinds = operands.kinds
    if operands.op == "copy":
        return 0 if kinds == ("u",) else None
    if operands.op != "mul" or sorted(kinds) != ["e", "u"]:
        return None
    source = kinds.index("u")
    row, weight = (tuple(operands.tensors[k].shape[1:]) for k in (source, 1 - source))
    if math.prod(weight) == 1:
        return source
    leading = len(weight)
    while leading and weight[leading - 1] == 1:
        leading -= 1
    heads = (
        operands.tensors[0].device.type == "cpu"
        and 0 not in row
        and weight[:leading] == row[:leading]
    )
    return source if heads and math.prod(row[leading:]) >= 4 else None


def _add(structure: Structure, operands: Operands, mean: bool = False) -> Tensor:
    tensors = operands.tensors
    kinds = operands.kinds
    floating = tensors[0].is_floating_point()
    source = summed_source(operands) if floating else None
    if source is not None:
        weight = tensors[1 - source] if len(tensors) > 1 else None
        if weight is not None:
            groups = weight.shape[1:].numel()
            weight = weight.reshape(-1) if groups == 1 else weight.reshape(-1, groups)
        return Spmm.apply(structure, tensors[source], weight, "v", mean)
    if floating and operands.op == "copy" and kinds == ("e",):
        out = SegmentSum.apply(structure, tensors[0], "v")
    else:
        out = EdgeSum.apply(structure, "v", OPERATIONS[operands.op], kinds, *tensors)
    # in place: a second matrix costs more than the division
    return out.div_(structure.divisor(out)) if mean else out


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
    return paired_dot if op == "dot" else OPERATIONS[op]


def _root(variance: Tensor) -> Tensor:
    """The square root, with a gradient of 0 where the variance is 0."""
    is_zero = variance == 0
    return torch.where(is_zero, 0, torch.where(is_zero, 1, variance).sqrt())


REDUCTIONS: Final = {
    "sum": Reduction(_add, ("total",)),
    "mean": Reduction(
        partial(_add, mean=True), ("total",), lambda rows: rows.total / rows.degree, divides=True
    ),
    "max": Reduction(
        partial(_extreme, largest=True), ("largest",), lambda rows: rows.largest, selects=True
    ),
    "min": Reduction(
        partial(_extreme, largest=False), ("smallest",), lambda rows: rows.smallest, selects=True
    ),
    "prod": Reduction(_product),
    "var": Reduction(None, ("squares",), lambda rows: rows.squares / rows.degree, divides=True),
    "std": Reduction(
        None, ("squares",), lambda rows: _root(rows.squares / rows.degree), divides=True
    ),
}
"""All reductions. ``nodeflow.fn`` has a function for each that has an executor."""

OF_MESSAGES: Final = {
    name: reduction.run for name, reduction in REDUCTIONS.items() if reduction.run
}
"""The executors of those that ``message_reduce`` has."""
