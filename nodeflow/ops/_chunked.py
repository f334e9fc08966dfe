"""Reductions of the messages of any operation, in pieces of bounded size that the backward pass
computes again.

EdgeSum sums messages per destination, per source, or not at all; its gradient with respect to an
operand is an EdgeSum again, of the message's derivative, over that operand's rows. Extreme and
Product reduce destinations of equal degree together, and their gradients are EdgeSums of recomputed
messages. No tensor of the size of all messages is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow.ops._autograd import Op, Recorded, Spmm, bag
from nodeflow.ops._edgewise import OPERATIONS, EdgeFunction, derivative
from nodeflow.ops._structure import Structure

CHUNK_ELEMENTS = 2**20
"""Elements of the widest tensor made for one piece of edges (one edge at least): the bound on
working memory.
"""


class MailboxPiece(NamedTuple):
    """Some edges: source row, destination row and id of each; the ids are a slice when they are
    consecutive.
    """

    src: Tensor
    dst: Tensor
    edge: Tensor | slice

    def take(self, kinds: tuple[str, ...], tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """Return the operands' rows for these edges."""
        rows = {"u": self.src, "v": self.dst, "e": self.edge}
        taken = []
        for kind, tensor in zip(kinds, tensors, strict=True):
            places = rows[kind]
            # a view of a leaf says that it requires a gradient even where none is recorded
            if isinstance(places, slice):
                taken.append(tensor.detach()[places])
            else:
                taken.append(tensor.index_select(0, places))
        return taken


def _pieces(
    structure: Structure, target: str, size: int
) -> Iterator[tuple[int, int, MailboxPiece]]:
    """Cut all edges, grouped by the target's rows, into consecutive pieces of at most ``size``."""
    by, edges = structure.grouped(target)
    for a in range(0, structure.num_edges, size):
        b = min(a + size, structure.num_edges)
        if edges is None:
            yield a, b, MailboxPiece(by.indices[a:b], by.dst[a:b], slice(a, b))
        else:
            yield a, b, MailboxPiece(by.dst[a:b], by.indices[a:b], edges[a:b])


def _probe(function: EdgeFunction, tensors: tuple[Tensor, ...]) -> Tensor:
    """Return the message of no edges, which has the shape and type of all others."""
    return function(*(tensor[:0].detach() for tensor in tensors))


def _piece_size(tensors: tuple[Tensor, ...], message: Tensor) -> int:
    """Return how many edges a piece may have."""
    widest = max(tensor.shape[1:].numel() for tensor in (*tensors, message))
    return max(1, CHUNK_ELEMENTS // max(1, widest))


class EdgeSum(Op):
    """``(structure, target, function, kinds, *operands)``: the sum of
    ``function(*operands of the edge)`` over edges.

    ``kinds`` says for each operand whether it has a row per source ("u"), destination ("v") or edge
    ("e"); ``target`` likewise for the result: with "e" nothing is summed.
    """

    @staticmethod
    def forward(
        ctx: Any,
        structure: Structure,
        target: str,
        function: EdgeFunction,
        kinds: tuple[str, ...],
        *tensors: Tensor,
    ) -> Tensor:
        ctx.structure = structure
        ctx.target = target
        ctx.function = function
        ctx.kinds = kinds
        ctx.save_for_backward(*tensors)
        empty = _probe(function, tensors)
        size = _piece_size(tensors, empty)
        by, _ = structure.grouped(target)
        rows = by.num_dst
        if target == "e":
            rows = by.num_edges
        out = empty.new_zeros((rows, *empty.shape[1:]))
        if target == "e":
            for a, b, piece in _pieces(structure, target, size):
                out[a:b] = function(*piece.take(kinds, tensors))
            return out
        # Pieces of edges may begin and end within a row: each adds to the rows that it touches.
        pieces = _pieces(structure, target, size)
        touched = _rows_touched(by.dst, size)
        for (a, b, piece), (first, last) in zip(pieces, touched, strict=True):
            message = function(*piece.take(kinds, tensors))
            if message.is_floating_point():
                bounds = by.indptr[first : last + 2].clamp(a, b) - a
                every = torch.arange(b - a, device=out.device)
                out[first : last + 1] += bag(bounds, every, message)
            else:
                out.index_add_(0, by.dst[a:b], message)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        # the gradient of the result is one operand more, with a row per row of the target
        pull = partial(derivative, ctx.function)
        return _gradients(ctx, pull, (*ctx.kinds, ctx.target), *ctx.saved_tensors, *grads)


def _gradients(
    ctx: Any, pull: Callable[[int], EdgeFunction], kinds: tuple[str, ...], *tensors: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of all arguments: of operand k the sum of ``pull(k)`` of ``tensors``."""
    others = len(ctx.needs_input_grad) - len(ctx.kinds)
    gradients: list[Tensor | None] = [None] * len(ctx.needs_input_grad)
    for k, kind in enumerate(ctx.kinds):
        if ctx.needs_input_grad[others + k]:
            gradients[others + k] = EdgeSum.apply(ctx.structure, kind, pull(k), kinds, *tensors)
    return tuple(gradients)


def _rows_touched(row: Tensor, size: int) -> list[tuple[int, int]]:
    """First and last of the rows of each piece of ``size`` edges, read from the device at once."""
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
    within: Callable[[Tensor, int], Tensor],
    between: Callable[[Tensor, Tensor], Tensor],
    empty: float,
) -> Tensor:
    """Reduce messages ``[rows, degree, ...]`` with ``within`` (over dimension 1); ``empty`` for
    rows without edges.

    Rows of more edges than a piece may have are reduced in parts, which ``between`` combines.
    """
    probe = _probe(function, tensors)
    size = _piece_size(tensors, probe)
    out = probe.new_full((structure.num_dst, *probe.shape[1:]), empty)

    def reduced(edge: Tensor) -> Tensor:
        flat = edge.reshape(-1)
        src = structure.indices.index_select(0, flat)
        piece = MailboxPiece(src, structure.dst.index_select(0, flat), flat)
        message = function(*piece.take(kinds, tensors))
        return within(message.reshape(*edge.shape, *message.shape[1:]), 1)

    # Rows of one degree are a matrix of edges, which is reduced at once; wide ones in parts of a
    # piece.
    for degree, rows, edges in structure.buckets():
        count = max(1, size // degree)
        for row, edge in zip(rows.split(count), edges.split(count), strict=True):
            first, *others = edge.split(size, 1)
            value = reduced(first)
            for other in others:
                value = between(value, reduced(other))
            out.index_copy_(0, row, value)
    return out


def _routed(
    function: EdgeFunction, count: int, share: Callable[..., Tensor], k: int
) -> EdgeFunction:
    """The gradient of operand k of ``count`` where that of a message is ``share(message, ...)``."""
    pull = derivative(function, k)

    def run(*tensors: Tensor) -> Tensor:
        operands = tensors[:count]
        return pull(*operands, share(function(*operands), *tensors[count:]))

    return run


class Extreme(Op):
    """``(structure, largest, function, kinds, *operands)``: maximum or minimum of the messages, 0
    without edges.

    Messages that share the extreme value share the gradient equally, however the edges are ordered.
    """

    @staticmethod
    def forward(
        ctx: Any,
        structure: Structure,
        largest: bool,
        function: EdgeFunction,
        kinds: tuple[str, ...],
        *tensors: Tensor,
    ) -> Tensor:
        ctx.structure = structure
        ctx.function = function
        ctx.kinds = kinds
        within, between = (torch.amax, torch.maximum) if largest else (torch.amin, torch.minimum)
        out = _by_degree(structure, function, kinds, tensors, within, between, 0)
        ctx.save_for_backward(out, *tensors)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        out, *tensors = ctx.saved_tensors
        kinds = ctx.kinds
        out = out.detach()
        function: EdgeFunction = ctx.function

        def is_winner(*operands: Tensor) -> Tensor:
            won = function(*operands[:-1]).eq(operands[-1])
            return won.to(torch.promote_types(out.dtype, torch.float32))

        def share(message: Tensor, out: Tensor, part: Tensor) -> Tensor:
            return torch.where(message == out, part, 0)

        # The number of winners is a constant to the gradient: it changes only where messages meet.
        with torch.no_grad():
            ties = EdgeSum.apply(ctx.structure, "v", is_winner, (*kinds, "v"), *tensors, out)
        part = g / ties.clamp(min=1).to(g.dtype)
        pull = partial(_routed, function, len(kinds), share)
        return _gradients(ctx, pull, (*kinds, "v", "v"), *tensors, out, part)


# places of the results of ``read_once``
TOTAL = 0
LARGEST = 1
SMALLEST = 2
SQUARES = 3
Wanted = tuple[bool, bool, bool, bool]
"""Whether sum, maximum, minimum and squared deviations are wanted; the last takes the first."""


def read_once(structure: Structure, kind: str, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
    """Return the four reductions of rows ``h`` of sources ("u"), or the extremes of those of edges
    ("e").

    They are ``[num_dst, ...]``, with nothing in the place of those not ``wanted``. Differentiable
    twice and more. Rows that share an extreme share its gradient equally.
    """
    if not native.is_native(h) or torch.compiler.is_compiling():
        return _one_by_one(structure, kind, h, wanted)
    return cast("tuple[Tensor, ...]", _ReadOnce.apply(structure, kind, h, wanted))


def _one_by_one(structure: Structure, kind: str, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
    """The same, made of one differentiable operation each."""
    none = h.new_empty(0)
    copy = OPERATIONS["copy"]
    total = none
    if wanted[TOTAL]:
        total = Spmm.apply(structure, h, None)
    extremes = [
        Extreme.apply(structure, k == LARGEST, copy, (kind,), h) if wanted[k] else none
        for k in (LARGEST, SMALLEST)
    ]
    if not wanted[SQUARES]:
        return total, *extremes, none
    mean = total / structure.divisor(total)
    squares = EdgeSum.apply(structure, "v", _squared_difference, ("u", "v"), h, mean)
    return total, *extremes, squares


def _squared_difference(x: Tensor, mean: Tensor) -> Tensor:
    return (x - mean).square()


class _ReadOnce(Recorded):
    """``(structure, kind, h, wanted)`` to the four reductions, by one compiled loop."""

    @staticmethod
    def forward(
        ctx: Any, structure: Structure, kind: str, h: Tensor, wanted: Wanted
    ) -> tuple[Tensor | None, ...]:
        # a gradient of None is left out of the loop; zeros would be read like any other
        ctx.set_materialize_grads(False)
        ctx.structure = structure
        ctx.kind = kind
        ctx.wanted = wanted
        outs = native.reductions(structure, kind, h, wanted, ctx.needs_input_grad[2])
        ctx.save_for_backward(h, *outs)
        return tuple(outs[:4])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        h, *outs = ctx.saved_tensors
        present = [k for k, g in enumerate(grads) if g is not None]
        if not present:
            return None, None, None, None
        known_grads = [grads[k] for k in present]
        if torch.is_grad_enabled() or not native.is_native(h, *known_grads):
            # A gradient of this gradient may be asked for: differentiate the separate operations
            # instead.
            with torch.enable_grad():
                x = h
                if not h.requires_grad:
                    x = h.detach().requires_grad_()
                separate = _one_by_one(ctx.structure, ctx.kind, x, ctx.wanted)
                (gradient,) = torch.autograd.grad(
                    [separate[k] for k in present],
                    x,
                    known_grads,
                    create_graph=torch.is_grad_enabled(),
                )
            return None, None, gradient, None
        return None, None, native.share(ctx.structure, ctx.kind, h, outs, grads), None


class Product(Op):
    """``(structure, function, kinds, *operands)``: the product of the messages, 1 without edges.

    The gradient of a message is the product of the others, also where some are 0. Differentiable
    once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        structure: Structure,
        function: EdgeFunction,
        kinds: tuple[str, ...],
        *tensors: Tensor,
    ) -> Tensor:
        ctx.structure = structure
        ctx.function = function
        ctx.kinds = kinds
        ctx.save_for_backward(*tensors)
        return _by_degree(structure, function, kinds, tensors, torch.prod, torch.mul, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        # once_differentiable would let some second gradients pass as zero
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the gradient of prod cannot be differentiated again: call backward without "
                "create_graph"
            )
        (g,) = grads
        tensors = ctx.saved_tensors
        structure = ctx.structure
        kinds = ctx.kinds
        function: EdgeFunction = ctx.function

        def nonzero(*operands: Tensor) -> Tensor:
            message = function(*operands)
            return torch.where(message == 0, 1, message)

        def is_zero(*operands: Tensor) -> Tensor:
            return function(*operands).eq(0).to(g.dtype)

        # The product of the others is the whole divided by the message. Where a message is 0, that
        # is the product of those that are not, and 0 if another one is 0 too.
        product = _by_degree(structure, nonzero, kinds, tensors, torch.prod, torch.mul, 1)
        zeros = EdgeSum.apply(structure, "v", is_zero, kinds, *tensors)

        def share(message: Tensor, product: Tensor, zeros: Tensor, g: Tensor) -> Tensor:
            is_null = message == 0
            # no other message is 0
            alone = zeros == is_null.to(zeros.dtype)
            others = torch.where(is_null, product, product / torch.where(is_null, 1, message))
            return g * torch.where(alone, others, 0)

        pull = partial(_routed, function, len(kinds), share)
        return _gradients(ctx, pull, (*kinds, "v", "v", "v"), *tensors, product, zeros, g)
