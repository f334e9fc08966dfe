"""Reductions of the messages of any operation, in pieces of bounded size that the backward pass computes again.

EdgeSum sums messages per destination, per source, or not at all; its gradient with respect to an operand is an EdgeSum
again, of the message's derivative, over that operand's rows. Extreme and Product reduce destinations of equal degree
together, and their gradients are EdgeSums of recomputed messages. No tensor of the size of all messages is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

import nodeflow.ops._compiled as native
from nodeflow.ops._autograd import bag
from nodeflow.ops._edgewise import OPERATIONS, EdgeFunction, derivative
from nodeflow.ops._structure import Structure

CHUNK_ELEMENTS = 2**20
"""Elements of the widest tensor made for one piece of edges (one edge at least): the bound on working memory."""


class Piece(NamedTuple):
    """Some edges: source row, destination row and id of each; the ids are a slice when they are consecutive."""

    src: Tensor
    dst: Tensor
    edge: Tensor | slice

    def take(self, kinds: tuple[str, ...], tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """Return the operands' rows for these edges."""
        rows = {"u": self.src, "v": self.dst, "e": self.edge}
        taken = []
        for kind, tensor in zip(kinds, tensors, strict=True):
            at = rows[kind]
            # a view of a leaf says that it requires a gradient even where none is recorded
            taken.append(tensor.detach()[at] if isinstance(at, slice) else tensor.index_select(0, at))
        return taken


def _pieces(structure: Structure, target: str, size: int) -> Iterator[tuple[int, int, Piece]]:
    """Cut all edges, grouped by the target's rows, into consecutive pieces of at most ``size``."""
    swapped, edges = structure.transposed() if target == "u" else (None, None)
    for a in range(0, structure.num_edges, size):
        b = min(a + size, structure.num_edges)
        if swapped is None or edges is None:
            yield a, b, Piece(structure.indices[a:b], structure.dst[a:b], slice(a, b))
        else:
            yield a, b, Piece(swapped.dst[a:b], swapped.indices[a:b], edges[a:b])


def _probe(function: EdgeFunction, tensors: tuple[Tensor, ...]) -> Tensor:
    """Return the message of no edges, which has the shape and type of all others."""
    return function(*(tensor[:0].detach() for tensor in tensors))


def _piece_size(tensors: tuple[Tensor, ...], message: Tensor) -> int:
    """Return how many edges a piece may have."""
    return max(1, CHUNK_ELEMENTS // max(1, *(tensor.shape[1:].numel() for tensor in (*tensors, message))))


class EdgeSum(Function):
    """``(structure, target, function, kinds, *operands)``: the sum of ``function(*operands of the edge)`` over edges.

    ``kinds`` says for each operand whether it has a row per source ("u"), destination ("v") or edge ("e"); ``target``
    likewise for the result: with "e" nothing is summed.
    """

    @staticmethod
    def forward(
        ctx: Any, structure: Structure, target: str, function: EdgeFunction, kinds: tuple[str, ...], *tensors: Tensor
    ) -> Tensor:
        ctx.structure, ctx.target, ctx.function, ctx.kinds = structure, target, function, kinds
        ctx.save_for_backward(*tensors)
        empty = _probe(function, tensors)
        size = _piece_size(tensors, empty)
        rows = {"u": structure.num_src, "v": structure.num_dst, "e": structure.num_edges}[target]
        out = empty.new_zeros((rows, *empty.shape[1:]))
        if target == "e":
            for a, b, piece in _pieces(structure, target, size):
                out[a:b] = function(*piece.take(kinds, tensors))
            return out
        indptr = structure.indptr if target == "v" else structure.transposed()[0].indptr
        touched = _rows_touched(structure, target, size)
        for (a, b, piece), (first, last) in zip(_pieces(structure, target, size), touched, strict=True):
            message = function(*piece.take(kinds, tensors))
            if message.is_floating_point():
                bounds = indptr[first : last + 2].clamp(a, b) - a
                out[first : last + 1] += bag(bounds, torch.arange(b - a, device=out.device), message)
            else:
                out.index_add_(0, piece.dst if target == "v" else piece.src, message)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), tensors = grads, ctx.saved_tensors
        kinds = (*ctx.kinds, ctx.target)
        gradients = [
            EdgeSum.apply(ctx.structure, kind, derivative(ctx.function, k), kinds, *tensors, g)
            if ctx.needs_input_grad[4 + k]
            else None
            for k, kind in enumerate(ctx.kinds)
        ]
        return None, None, None, None, *gradients


def _rows_touched(structure: Structure, target: str, size: int) -> list[tuple[int, int]]:
    """First and last target row of each piece, read from the device at once."""
    row = structure.dst if target == "v" else structure.transposed()[0].dst
    if len(row) == 0:
        return []
    starts = torch.arange(0, len(row), size, device=row.device)
    ends = (starts + (size - 1)).clamp(max=len(row) - 1)
    first, last = torch.stack([row[starts], row[ends]]).tolist()
    return list(zip(first, last, strict=True))


def _by_degree(
    structure: Structure,
    function: EdgeFunction,
    kinds: tuple[str, ...],
    tensors: tuple[Tensor, ...],
    within: Callable[[Tensor], Tensor],
    between: Callable[[Tensor, Tensor], Tensor],
    empty: float,
) -> Tensor:
    """Reduce messages ``[rows, degree, ...]`` with ``within`` (over dimension 1); ``empty`` for rows without edges.

    Rows of more edges than a piece may have are reduced in parts, which ``between`` combines.
    """
    probe = _probe(function, tensors)
    size = _piece_size(tensors, probe)
    out = probe.new_full((structure.num_dst, *probe.shape[1:]), empty)

    def reduced(edge: Tensor) -> Tensor:
        flat = edge.reshape(-1)
        piece = Piece(structure.indices.index_select(0, flat), structure.dst.index_select(0, flat), flat)
        message = function(*piece.take(kinds, tensors))
        return within(message.reshape(*edge.shape, *message.shape[1:]))

    for degree, rows, edges in structure.buckets():
        count = max(1, size // degree)
        for row, edge in zip(rows.split(count), edges.split(count), strict=True):
            first, *others = edge.split(size, 1)
            value = reduced(first)
            for other in others:
                value = between(value, reduced(other))
            out.index_copy_(0, row, value)
    return out


def _routed(function: EdgeFunction, k: int, count: int, share: Callable[..., Tensor]) -> EdgeFunction:
    """The gradient of operand ``k`` of ``count`` when that of a message is ``share(message, *further operands)``."""
    pull = derivative(function, k)

    def run(*tensors: Tensor) -> Tensor:
        own, further = tensors[:count], tensors[count:]
        return pull(*own, share(function(*own), *further))

    return run


class Extreme(Function):
    """``(structure, largest, function, kinds, *operands)``: maximum or minimum of the messages, 0 without edges.

    Messages that share the extreme value share the gradient equally, however the edges are ordered. Rows that are only
    copied are compared by compiled loops, where those can; second gradients are made from messages here too.
    """

    @staticmethod
    def forward(
        ctx: Any, structure: Structure, largest: bool, function: EdgeFunction, kinds: tuple[str, ...], *tensors: Tensor
    ) -> Tensor:
        ctx.structure, ctx.function, ctx.kinds = structure, function, kinds
        ctx.copied = function is OPERATIONS["copy"] and kinds[0] != "v" and native.is_native(*tensors)
        if ctx.copied:
            out, ties = native.extreme(structure, kinds[0], tensors[0], largest, ctx.needs_input_grad[4])
            ctx.save_for_backward(out, ties, *tensors)
            return out
        if largest:
            out = _by_degree(structure, function, kinds, tensors, lambda m: m.amax(1), torch.maximum, 0)
        else:
            out = _by_degree(structure, function, kinds, tensors, lambda m: m.amin(1), torch.minimum, 0)
        ctx.save_for_backward(out, None, *tensors)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), (out, counted, *tensors) = grads, ctx.saved_tensors
        structure, kinds, out = ctx.structure, ctx.kinds, out.detach()
        if ctx.copied and native.is_native(g) and not torch.is_grad_enabled():
            return None, None, None, None, native.share(structure, kinds[0], tensors[0], out, counted, g)
        function: EdgeFunction = ctx.function

        def is_winner(*operands: Tensor) -> Tensor:
            won = function(*operands[:-1]).eq(operands[-1])
            return won.to(torch.promote_types(out.dtype, torch.float32))

        def share(message: Tensor, out: Tensor, part: Tensor) -> Tensor:
            return torch.where(message == out, part, 0)

        with torch.no_grad():
            ties = EdgeSum.apply(structure, "v", is_winner, (*kinds, "v"), *tensors, out)
        part = g / ties.clamp(min=1).to(g.dtype)
        gradients = [
            EdgeSum.apply(
                structure, kind, _routed(function, k, len(kinds), share), (*kinds, "v", "v"), *tensors, out, part
            )
            if ctx.needs_input_grad[4 + k]
            else None
            for k, kind in enumerate(kinds)
        ]
        return None, None, None, None, *gradients


class Product(Function):
    """``(structure, function, kinds, *operands)``: the product of the messages, 1 without edges.

    The gradient of a message is the product of the others, also where some are 0. Differentiable once.
    """

    @staticmethod
    def forward(
        ctx: Any, structure: Structure, function: EdgeFunction, kinds: tuple[str, ...], *tensors: Tensor
    ) -> Tensor:
        ctx.structure, ctx.function, ctx.kinds = structure, function, kinds
        ctx.save_for_backward(*tensors)
        return _by_degree(structure, function, kinds, tensors, lambda m: m.prod(1), torch.mul, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled():  # once_differentiable would let some second gradients pass as zero
            raise RuntimeError(
                "the gradient of prod cannot be differentiated again: call backward without create_graph"
            )
        (g,), tensors = grads, ctx.saved_tensors
        structure, kinds = ctx.structure, ctx.kinds
        function: EdgeFunction = ctx.function

        def nonzero(*operands: Tensor) -> Tensor:
            message = function(*operands)
            return torch.where(message == 0, 1, message)

        def is_zero(*operands: Tensor) -> Tensor:
            return function(*operands).eq(0).to(g.dtype)

        product = _by_degree(structure, nonzero, kinds, tensors, lambda m: m.prod(1), torch.mul, 1)
        zeros = EdgeSum.apply(structure, "v", is_zero, kinds, *tensors)

        def share(message: Tensor, product: Tensor, zeros: Tensor, g: Tensor) -> Tensor:
            is_null = message == 0
            alone = zeros == is_null.to(zeros.dtype)  # no other message is 0
            others = torch.where(is_null, product, product / torch.where(is_null, 1, message))
            return g * torch.where(alone, others, 0)

        further = (product, zeros, g)
        gradients = [
            EdgeSum.apply(
                structure, kind, _routed(function, k, len(kinds), share), (*kinds, "v", "v", "v"), *tensors, *further
            )
            if ctx.needs_input_grad[3 + k]
            else None
            for k, kind in enumerate(kinds)
        ]
        return None, None, None, *gradients
