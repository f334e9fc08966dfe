"""Which code runs a pair of message and reduction: a pure, cached decision, apart from running it.

Faster code for a pair goes in ``choose``; nothing that calls it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from nodeflow.ops.edgewise import OPERATIONS, paired_dot
from nodeflow.ops.generic import EdgeSum, Extreme, Product
from nodeflow.ops.operands import Operands
from nodeflow.ops.spmm import SegmentSum, Spmm
from nodeflow.structure import Structure

Executor = Callable[[Structure, Operands], Tensor]
"""Runs one pair: returns the reduced messages, ``[num_dst, *message shape]``, "mean" still as a sum."""


@cache
def choose(
    op: str, kinds: tuple[str, ...], scalar: tuple[bool, ...], reduce: str, dtype: torch.dtype, device: str
) -> Executor:
    """Return the executor of a pair.

    ``scalar`` says of each operand whether it has one number per row, ``dtype`` is what the messages are computed in,
    ``device`` the device type (not yet a reason to choose).
    """
    if reduce in ("max", "min"):
        return _largest if reduce == "max" else _smallest
    if reduce == "prod":
        return _product
    if dtype.is_floating_point:
        if op == "copy" and kinds != ("v",):
            return _copied[kinds[0]]
        if op == "mul" and kinds == ("u", "e") and scalar[1]:
            return _weighted
        if op == "mul" and kinds == ("e", "u") and scalar[0]:
            return _weighted_right
    return _summed


def _copied_source(structure: Structure, given: Operands) -> Tensor:
    out: Tensor = Spmm.apply(structure, given.tensors[0], None)
    return out


def _copied_edge(structure: Structure, given: Operands) -> Tensor:
    out: Tensor = SegmentSum.apply(structure, given.tensors[0], "v")
    return out


_copied: dict[str, Executor] = {"u": _copied_source, "e": _copied_edge}


def _spmm(structure: Structure, h: Tensor, weight: Tensor) -> Tensor:
    out: Tensor = Spmm.apply(structure, h, weight.reshape(-1))
    return out


def _weighted(structure: Structure, given: Operands) -> Tensor:
    return _spmm(structure, *given.tensors)


def _weighted_right(structure: Structure, given: Operands) -> Tensor:
    weight, h = given.tensors
    return _spmm(structure, h, weight)


def _summed(structure: Structure, given: Operands) -> Tensor:
    out: Tensor = EdgeSum.apply(structure, "v", OPERATIONS[given.op], given.kinds, *given.tensors)
    return out


def _largest(structure: Structure, given: Operands) -> Tensor:
    function = paired_dot if given.op == "dot" else OPERATIONS[given.op]
    out: Tensor = Extreme.apply(structure, True, function, given.kinds, *given.tensors)
    return out


def _smallest(structure: Structure, given: Operands) -> Tensor:
    function = paired_dot if given.op == "dot" else OPERATIONS[given.op]
    out: Tensor = Extreme.apply(structure, False, function, given.kinds, *given.tensors)
    return out


def _product(structure: Structure, given: Operands) -> Tensor:
    function = paired_dot if given.op == "dot" else OPERATIONS[given.op]
    out: Tensor = Product.apply(structure, function, given.kinds, *given.tensors)
    return out
