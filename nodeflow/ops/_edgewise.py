"""Functions of one edge's operands: what a message is, and its derivatives; and checks of whole
operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor

from nodeflow._core.base.checks import check_one_of, check_type, describe
from nodeflow.ops._structure import Structure

EdgeFunction = Callable[..., Tensor]
"""Takes tensors ``[c, ...]``, one row per edge each, and returns one ``[c, ...]``; works row by
row.
"""

_KINDS: Final = {
    "u": ("num_src", "source"),
    "v": ("num_dst", "destination"),
    "e": ("num_edges", "edge"),
}


def paired_dot(a: Tensor, b: Tensor) -> Tensor:
    """The dot product by elementwise halving.

    ``sum`` may add in another order when the number of rows differs (it does on CUDA from about 100
    columns on); this one gives the same bits for a row however many rows there are. Needed where a
    recomputed message is compared with a kept one.
    """
    product = a * b
    while (width := product.shape[-1]) > 1:
        half = width // 2
        folded = product[..., :half] + product[..., half : 2 * half]
        if width % 2:
            folded = torch.cat([folded, product[..., 2 * half :]], -1)
        product = folded
    if width:
        return product
    return product.sum(-1, keepdim=True)


OPERATIONS: Final[dict[str, EdgeFunction]] = {
    "copy": lambda a: a,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "dot": lambda a, b: (a * b).sum(-1, keepdim=True),
}
"""Message operations on operands of equal rank; all but "copy" take two. "dot" keeps the contracted
dimension as 1.
"""


def derivative(function: EdgeFunction, k: int) -> EdgeFunction:
    """Return the edge function ``(*operands, g) -> gradient of operand k`` when ``g`` is that of
    the message.

    It is recomputed from the operands, keeps nothing, and can itself be differentiated.
    """

    def pull(*tensors: Tensor) -> Tensor:
        *operands, g = tensors
        # a derivative of this derivative is being taken
        further = torch.is_grad_enabled()
        with torch.enable_grad():
            if operands[k].requires_grad:
                x = operands[k]
            else:
                x = operands[k].detach().requires_grad_()
            operands[k] = x
            message = function(*operands)
            # the function does not depend on this operand
            if not message.requires_grad:
                return torch.zeros_like(x)
            (grad,) = torch.autograd.grad(
                message, x, g, create_graph=further, materialize_grads=True
            )
        return grad

    return pull


class Operands(NamedTuple):
    """Operands of one message operation, ready to run.

    ``kinds``: of each, whether it has a row per source ("u"), destination ("v") or edge ("e").
    ``tensors``: of one floating (or integer) type and one rank, so that they broadcast edge by
    edge. ``dtype``: type of the message.
    """

    op: str
    kinds: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    dtype: torch.dtype


def check_rows(structure: Structure, kind: str, value: object, name: object) -> Tensor:
    """Return ``value``, a dense tensor with a row per source, destination or edge on the
    structure's device.

    Raises TypeError for what is no dense tensor, ValueError for another number of rows or another
    device.
    """
    check_type(structure, "structure", Structure, "a Structure (flow.structure is one)")
    rows, row_kind = _KINDS[kind]
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} must be a tensor with one row per {row_kind}, got {describe(value)}"
        )
    if value.layout != torch.strided:
        raise TypeError(
            f"{name} is a sparse matrix (layout {value.layout}), but rows of features are combined "
            "dense: multiply it by a weight matrix first with nodeflow.ops.sparse_linear(x, "
            "weight), or call .to_dense()"
        )
    expected = getattr(structure, rows)
    if value.ndim == 0 or value.shape[0] != expected:
        layer = {"u": "src_layer", "v": "dst_layer"}.get(kind)
        hint = ""
        if layer:
            hint = f" (of a column of the graph take the rows flow.{layer}.parent_nid)"
        raise ValueError(
            f"{name} must have {expected} rows, one per {row_kind}, got shape "
            f"{tuple(value.shape)}{hint}"
        )
    if value.device != structure.device:
        raise ValueError(
            f"{name} is on {value.device}, but the flow is on {structure.device}: move one with "
            ".to(...)"
        )
    if value.is_complex():
        raise TypeError(f"{name} must hold real numbers, got dtype {value.dtype}")
    return value


def check_operands(
    structure: Structure,
    op: str,
    lhs_kind: str,
    lhs: object,
    rhs_kind: str | None,
    rhs: object,
    names: tuple[object, object],
) -> Operands:
    """Check and align the operands of one message operation; raises TypeError or ValueError with
    their ``names``.
    """
    check_one_of(op, "op", OPERATIONS)
    for kind in (lhs_kind,) if op == "copy" else (lhs_kind, rhs_kind):
        check_one_of(kind, "an operand's kind", _KINDS)
    left = check_rows(structure, lhs_kind, lhs, names[0])
    if op == "copy" or rhs_kind is None:
        return Operands(op, (lhs_kind,), (left,), left.dtype)
    right = check_rows(structure, rhs_kind, rhs, names[1])
    # types of results are those of torch's own operators on whole tensors
    dtype = torch.promote_types(left.dtype, right.dtype)
    if dtype == torch.bool:
        dtype = torch.int64
    if op == "div" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    left, right = _aligned(op, left, right, names)
    return Operands(op, (lhs_kind, rhs_kind), (left.to(dtype), right.to(dtype)), dtype)


def _aligned(
    op: str, left: Tensor, right: Tensor, names: tuple[object, object]
) -> tuple[Tensor, Tensor]:
    """Give both one rank (views): feature dimensions align at the right, a row of one number fits
    any.
    """
    shapes = [tuple(left.shape[1:]), tuple(right.shape[1:])]
    rank = max(len(shapes[0]), len(shapes[1]), 1 if op == "dot" else 0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    if any(a != b and 1 not in (a, b) for a, b in zip(*padded, strict=True)):
        raise ValueError(
            f"the feature shapes of {names[0]}, {shapes[0]}, and of {names[1]}, {shapes[1]}, do "
            f"not broadcast for {op!r}: aligned at the right, each size must be equal or 1"
        )
    pairs = zip((left, right), padded, strict=True)
    # rows that have their rank already stay as they are, coded or not
    left, right = (
        rows if rows.shape[1:] == shape else rows.reshape(len(rows), *shape)
        for rows, shape in pairs
    )
    return left, right
