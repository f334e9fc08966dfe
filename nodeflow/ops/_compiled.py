"""Calls of the compiled loops: which tensors they take, where results are stored, how threads share
the work.

The loops take plain tensors of float32 and float64 in the processor's memory; sums and dropout take
bfloat16 too, as words: 16-bit integers that hold its bits. Other devices and types, and tensors
inside a functional transform, go through torch's own operations. Results have the same bits on
every run and with every number of threads: these do ranges of rows or columns, and each number is
computed by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._rows.coded import CodedTensor
from nodeflow._runtime.memory import reused
from nodeflow._runtime.threads import run_all
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import is_memory, is_watched

_NUMPY: dict[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.bfloat16: np.uint16,
}
_SINGLE = (torch.float32, torch.bfloat16)
_PIECE = 512  # numbers that ``dropout.drop`` does at a time
_ROWS = 1024  # rows whose gradients are added before the next sum begins
THREAD_ELEMENTS = 2**19
"""The least count of numbers per thread: fewer are done before a second thread is awake."""
NARROW = 256
"""Bytes of a row up to which it is faster to add to the rows of the sources than to sort the edges
by source first.
"""
CACHED = 2**21
"""Bytes of rows that stay in a processor's own cache while others are read one after another."""
LARGE = 2**20
"""Bytes from which on a result lies in a reused buffer: malloc would give such memory back to the
system.
"""
REREAD = 3
"""Edges per source up to which rows are read as codes, and unpacked for every edge; then it is
faster to do so once.
"""
STREAMED = 2**23
"""Bytes from which on sums are written past the caches."""


def is_native(*tensors: Tensor | None) -> bool:
    """Whether the compiled loops take these tensors (all of one floating type; None is left
    out).
    """
    return _are_memory((torch.float32, torch.float64), tensors)


def is_summed(x: Tensor, weight: Tensor | None = None) -> bool:
    """Whether the loops of sums take these tensors: those of ``is_native``, and bfloat16, which is
    added in float32.
    """
    return _are_memory(_SINGLE if x.dtype in _SINGLE else (torch.float64,), (x, weight))


def _are_memory(types: tuple[torch.dtype, ...], tensors: tuple[Tensor | None, ...]) -> bool:
    return not is_watched() and all(
        tensor is None
        or (tensor.device.type == "cpu" and tensor.dtype in types and is_memory(tensor))
        for tensor in tensors
    )


def weighted_sum(
    structure: Structure,
    end: str,
    x: Tensor,
    weight: Tensor | None,
    mean: bool,
    own: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sum the rows of ``x`` over the edges of each row of ``end``, as ``Spmm`` does; ``dtype`` as
    there.

    With ``own``, for matrices and "v" only, the row of ``x`` with the destination's number comes
    before the sum.
    """
    rows = structure.num_dst if end == "v" else structure.num_src
    groups = 1 if weight is None or weight.ndim == 1 else weight.shape[1]
    weights = (
        None
        if weight is None
        else _flat(weight.float() if weight.dtype == torch.bfloat16 else weight)
    )
    if (
        isinstance(x, CodedTensor)
        and end == "v"
        and dtype in (None, x.dtype)
        and groups == 1
        and _pays(structure, x)
    ):
        return _sum_codes(structure, x, weights, mean, own)
    size = x.shape[1:].numel()
    width = size // max(groups, 1)
    numbers = _flat(x)
    dtype = x.dtype if dtype is None else dtype
    shape = (rows, 2 * size) if own else (rows, *x.shape[1:])
    if 0 in (rows, size) or not (own or structure.num_edges):
        return torch.zeros(shape, dtype=dtype)
    row = size * numbers.itemsize
    # rather than summed for one source after another, which needs its edges beside each other
    added = (
        dtype == x.dtype != torch.bfloat16
        and (row <= NARROW or rows * row <= CACHED < numbers.nbytes)
        and (groups == 1 or width >= kernels.simd.HALF)
    )
    if end == "u" and added and not structure.is_transposed:
        indptr = _ints(structure.indptr)
        indices = _ints(structure.indices)
        out = _new(shape, numbers.dtype)
        out.fill(0)
        _in_threads(
            lambda a, b, c, d: kernels.row_sums.add_rows(
                indptr, indices, numbers, weights, groups, width, out.reshape(-1), (a, b), (c, d)
            ),
            _column_ranges(groups, width, structure.num_edges),
        )
        return torch.from_numpy(out)
    by, order = structure.grouped(end)
    edges = None if order is None or weight is None else _ints(order)
    return _sum_rows(
        by,
        _ints(by.indices),
        edges,
        numbers,
        weights,
        (groups, width),
        shape,
        dtype,
        mean=mean,
        own=own,
    )


def _pays(structure: Structure, x: CodedTensor) -> bool:
    """Whether rows are better summed as codes: they have not been made, and few edges read each of
    them.
    """
    return x.is_coded and 0 < structure.num_edges <= REREAD * structure.num_src


def _sum_codes(
    structure: Structure, x: CodedTensor, weights: Array | None, mean: bool, own: bool
) -> Tensor:
    """Sum rows over the edges of each destination, as ``weighted_sum`` does, from their codes."""
    rows = structure.num_dst
    width = x.shape[1]
    before = width if own else 0
    out = _new((rows, before + width), np.dtype(np.float32))
    codes, ids, zero, scale = x.arrays()
    stride = x.coding.stride
    target = out.reshape(-1)
    row = before + width
    indices = _ints(structure.indices)
    indptr = _ints(structure.indptr)
    none = np.empty(0, np.float32), 0, 0, np.empty(0, np.int64)  # no wide columns

    def run(first: int, last: int) -> None:
        if own:
            part = target[first * row :]
            kernels.narrow.gather_unpacked(
                codes, stride, ids[first:last], zero, scale, *none, part, row
            )
        kernels.narrow.sum_unpacked(
            indptr,
            indices,
            ids,
            codes,
            stride,
            zero,
            scale,
            weights,
            mean,
            target,
            row,
            before,
            first,
            last,
        )

    _in_threads(run, _row_ranges(indptr, width))
    return torch.from_numpy(out)


def edge_sum(structure: Structure, end: str, x: Tensor) -> Tensor:
    """Sum the rows of the edges per row of ``end``, as ``SegmentSum`` does."""
    by, order = structure.grouped(end)
    numbers = _flat(x)
    shape = (by.num_dst, *x.shape[1:])
    if 0 in shape or not structure.num_edges:
        return torch.from_numpy(np.zeros(shape, numbers.dtype))
    indices = None if order is None else _ints(order)
    return _sum_rows(by, indices, None, numbers, None, (1, x.shape[1:].numel()), shape, x.dtype)


def _sum_rows(
    by: Structure,
    indices: Ints | None,
    edges: Ints | None,
    numbers: Array,
    weights: Array | None,
    groups: tuple[int, int],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    *,
    mean: bool = False,
    own: bool = False,
) -> Tensor:
    """Return the sums of rows of ``groups`` (how many, and numbers in each); threads do a range of
    rows each.
    """
    out = _new(shape, np.dtype(_NUMPY[dtype]))
    size = math.prod(groups)
    streamed = (
        not own
        and dtype != torch.bfloat16
        and groups[1] % kernels.simd.LANES == 0
        and _is_streamed(out)
    )
    _by_row(
        kernels.row_sums.sum_rows,
        _ints(by.indptr),
        size,
        indices,
        edges,
        None,
        numbers,
        size,
        weights,
        *groups,
        mean,
        own,
        streamed,
        out.reshape(-1),
    )
    return _tensor(out, dtype)


def drop(x: Tensor, key: int, rate: float, bias: Tensor | None = None) -> Tensor:
    """Return ``x``, bfloat16, with the numbers that ``key`` chooses set to 0, and the others scaled
    by 1 / (1 - rate).

    ``rate`` is rounded to a multiple of 2**-16. With ``bias``, a number per column of a matrix, it
    is the positive part of ``x + bias`` that is dropped.
    """
    words = _flat(x)
    least = _least(rate)
    added = None
    width = 1
    if bias is not None:
        width = bias.numel()
        added = np.resize(bias.detach().float().numpy(), width + kernels.simd.LANES)
    out = _new(tuple(x.shape), words.dtype)
    ranges = _even_ranges(-(-words.size // _PIECE), _PIECE)
    _in_threads(
        lambda a, b: kernels.activation.drop(
            words,
            added,
            width,
            np.uint64(key),
            np.uint64(least),
            np.float32(drop_scale(rate)),
            out.reshape(-1),
            a,
            b,
        ),
        [(a * _PIECE, min(b * _PIECE, words.size)) for a, b in ranges],
    )
    return _tensor(out, x.dtype)


def _least(rate: float) -> int:
    return round(rate * 2**16)


def drop_scale(rate: float) -> float:
    """Return the factor by which ``drop`` scales the kept numbers."""
    least = _least(rate)
    return 2**16 / (2**16 - least) if least < 2**16 else 0.0


def is_words(x: Tensor) -> bool:
    """Whether the loops of linear maps take a matrix: of bfloat16, in the processor's memory."""
    return (
        x.dtype == torch.bfloat16 and x.device.type == "cpu" and x.is_contiguous() and is_summed(x)
    )


def add_bias(rows: Tensor, bias: Tensor, relu: bool) -> None:
    """Add ``bias`` to rows ``[n, width]`` of bfloat16 in place, and with ``relu`` set negative
    numbers to 0.
    """
    words = rows.view(torch.uint16).view(-1).numpy()
    added = bias.detach().float().numpy()
    ranges = _even_ranges(len(rows), bias.numel())
    _in_threads(lambda a, b: kernels.activation.add_bias(words, added, relu, a, b), ranges)


def relu_gradient(g: Tensor, out: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return the gradient ``[n, width]`` of rows whose ReLU, times ``scale``, is ``out``, and its
    sum in float32.

    Where ``out`` is 0 the gradient is 0, so it may come from ``drop`` too. Rows are added in
    pieces, which are added in turn: the same sum for every number of threads.
    """
    gradient = _flat(g)
    result = _flat(out)
    masked = _new(tuple(out.shape), np.dtype(np.uint16))
    count, width = out.shape
    sums = np.zeros((-(-count // _ROWS), width), np.float32)

    def piece(first: int, last: int) -> None:
        for k in range(first, last):
            kernels.activation.relu_gradient(
                gradient,
                result,
                np.float32(scale),
                masked.reshape(-1),
                sums[k],
                k * _ROWS,
                min((k + 1) * _ROWS, count),
            )

    _in_threads(piece, _even_ranges(len(sums), _ROWS * width))
    return _tensor(masked, out.dtype), torch.from_numpy(sums.sum(0))


def dots(structure: Structure, a: Tensor, b: Tensor, groups: int) -> Tensor:
    """Dot products ``[E, groups]`` of the groups of the rows at both ends, as ``EdgeDot`` does."""
    left = _flat(a)
    right = _flat(b)
    size = a.shape[1:].numel()
    if 0 in (size, structure.num_edges):
        return torch.from_numpy(np.zeros((structure.num_edges, groups), left.dtype))
    out = _new((structure.num_edges, groups), left.dtype)
    _by_row(
        kernels.row_sums.edge_dots,
        _ints(structure.indptr),
        size,
        _ints(structure.indices),
        left,
        right,
        groups,
        size // groups,
        out.reshape(-1),
    )
    return torch.from_numpy(out)


def reductions(
    structure: Structure, kind: str, x: Tensor, wanted: tuple[bool, ...], counted: bool
) -> list[Tensor | None]:
    """Sum, extremes and squared deviations of the rows of sources ("u") or edges ("e"), None where
    not ``wanted``.

    Then how many edges share each maximum and minimum: None unless ``counted``.
    """
    numbers = _flat(x)
    size = x.shape[1:].numel()
    shape = (structure.num_dst, *x.shape[1:])
    written = (*wanted, *(counted and want for want in wanted[1:3]))
    outs = [_new(shape, numbers.dtype) if write else None for write in written]
    if size and structure.num_dst:
        results = [None if out is None else out.reshape(-1) for out in outs]
        _by_row(
            kernels.extremes.reduce_rows,
            _ints(structure.indptr),
            size * sum(wanted),
            _ints(structure.indices) if kind == "u" else None,
            numbers,
            size,
            *results,
        )
    return [None if out is None else torch.from_numpy(out) for out in outs]


def share(
    structure: Structure,
    kind: str,
    x: Tensor,
    outs: Sequence[Tensor | None],
    grads: Sequence[Tensor | None],
) -> Tensor:
    """The gradient of ``reductions`` for the rows ``x``; a gradient that is None counts as 0."""
    total, largest, smallest, _, *ties = outs
    mean = None if grads[3] is None or total is None else total / structure.divisor(total)
    bests = [
        None if g is None else best for g, best in zip(grads[1:3], (largest, smallest), strict=True)
    ]
    read, shares = (
        [None if t is None else _flat(t) for t in tensors] for tensors in ((mean, *bests), grads)
    )
    indices = _ints(structure.indices) if kind == "u" else None
    numbers = _flat(x)
    counts = tuple(numbers[:0] if count is None else _flat(count) for count in ties)
    inputs = indices, numbers, x.shape[1:].numel(), *read, counts, *shares
    out = _new(tuple(x.shape), np.dtype(_NUMPY[x.dtype]))
    indptr = _ints(structure.indptr)
    out.fill(0)
    # a loop adds to any row, so threads do a range of columns each
    if out.size and structure.num_dst:
        _in_threads(
            lambda _a, _b, c, d: kernels.extremes.share_rows(
                indptr, *inputs, out.reshape(-1), (c, d)
            ),
            _column_ranges(1, x.shape[1:].numel(), structure.num_edges),
        )
    return torch.from_numpy(out)


def by_destination(structure: Structure, loop: Callable[..., None], *tensors: Tensor) -> Tensor:
    """Return the rows of the edges that a loop makes of one or more such rows, ``[E, ...]``, per
    destination.
    """
    arrays = [_flat(tensor) for tensor in tensors]
    out = _new(tuple(tensors[0].shape), arrays[0].dtype)
    size = tensors[0].shape[1:].numel()
    if out.size:
        _by_row(loop, _ints(structure.indptr), 8 * size, *arrays, size, out.reshape(-1))
    return torch.from_numpy(out)


def _by_row(loop: Callable[..., None], indptr: Ints, size: int, *inputs: Any) -> None:
    """Run a loop over rows of ``indptr``, a range per thread; ``size``: numbers that it does for an
    edge.
    """
    _in_threads(lambda a, b: loop(indptr, *inputs, a, b), _row_ranges(indptr, size))


def _ints(tensor: Tensor) -> Ints:
    return tensor.contiguous().numpy()


def _flat(tensor: Tensor) -> Array:
    flat = tensor.detach().contiguous().resolve_neg().view(-1)
    return (flat.view(torch.uint16) if flat.dtype == torch.bfloat16 else flat).numpy()


def _tensor(out: Array, dtype: torch.dtype) -> Tensor:
    """Return an array as a tensor; one of words is no view either, which could not be changed in
    place outside.
    """
    tensor = torch.from_numpy(out)
    if dtype != torch.bfloat16:
        return tensor
    words = torch.empty(0, dtype=dtype)
    words.set_(tensor.untyped_storage())
    return words.resize_(out.shape)


def _new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array to be filled; a large one lies in a reused buffer."""
    large = math.prod(shape) * dtype.itemsize >= LARGE
    return reused(shape, dtype) if large else np.empty(shape, dtype)


def _is_streamed(out: Array) -> bool:
    """Whether a result is written past the caches, because they could hold a part of it only."""
    return out.nbytes >= STREAMED and out.ctypes.data % 64 == 0


def _count(elements: int) -> int:
    """Return the number of threads for work on this many numbers."""
    return max(1, min(torch.get_num_threads(), elements // THREAD_ELEMENTS))


def _row_ranges(indptr: Ints, size: int) -> Sequence[tuple[int, int]]:
    """Return one range of rows per thread, with about equal numbers of edges and rows."""
    rows = len(indptr) - 1
    count = _count((int(indptr[-1]) + rows) * size)
    if count == 1:
        return [(0, rows)]
    load = indptr + np.arange(rows + 1)
    cuts = np.searchsorted(load, load[-1] * np.arange(1, count) // count)
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), rows], strict=True))


def _column_ranges(groups: int, width: int, edges: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield one range per thread: first and last group, first and last column; whole vectors if
    there is one group.
    """
    unit = 1 if groups > 1 else kernels.simd.LANES
    units = groups if groups > 1 else -(-width // unit)
    for a, b in _even_ranges(units, edges * groups * width // max(units, 1)):
        yield (a, b, 0, width) if groups > 1 else (0, 1, a * unit, min(b * unit, width))


def _even_ranges(count: int, size: int) -> list[tuple[int, int]]:
    """Return one range of ``count`` items of ``size`` numbers per thread, of about equal
    lengths.
    """
    threads = min(_count(count * size), max(count, 1))
    return list(pairwise([count * k // threads for k in range(threads + 1)]))


def _in_threads(run: Callable[..., None], ranges: Iterable[tuple[int, ...]]) -> None:
    """Call ``run`` with every range, each on a thread of its own."""
    parts = list(ranges)
    if len(parts) == 1:  # quicker, which small sums feel
        run(*parts[0])
        return
    run_all(lambda k: run(*parts[k]), len(parts))
