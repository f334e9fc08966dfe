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
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.rows.coded import CodedTensor
from nodeflow._core.rows.rows import as_array
from nodeflow._core.runtime.memory import reused
from nodeflow._core.runtime.threads import run_all
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import is_memory, is_watched

_NUMPY: dict[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.bfloat16: np.uint16,
}
_SINGLE = (torch.float32, torch.bfloat16)
# of codes without wide columns
_NO_WIDE = {"whole": np.empty(0, np.float32), "last": 0, "first": 0, "wide": np.empty(0, np.int64)}
# numbers that ``dropout.drop`` does at a time
_PIECE = 512
# rows whose gradients are added before the next sum begins
_ROWS = 1024
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
    """Whether compiled loops take these tensors: all of one floating type; None is left out."""
    return _are_memory((torch.float32, torch.float64), tensors)


def is_summed(x: Tensor, weight: Tensor | None = None) -> bool:
    """Whether loops of sums do: as ``is_native``, and bfloat16, which is added in float32."""
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
    if dtype is None:
        dtype = x.dtype
    groups = 1
    if not (weight is None or weight.ndim == 1):
        groups = weight.shape[1]
    weights = None
    if weight is not None:
        weights = _flat(weight.float() if weight.dtype == torch.bfloat16 else weight)
    # Codes are added up where they lie: unpacking them first would write and read all rows once
    # more.
    is_matrix = end == "v" and dtype == x.dtype and groups == 1
    if is_matrix and isinstance(x, CodedTensor) and _pays(structure, x):
        return _sum_codes(structure, x, weights, mean, own)
    rows = structure.num_src
    if end == "v":
        rows = structure.num_dst
    size = x.shape[1:].numel()
    if own:
        shape = (rows, 2 * size)
    else:
        shape = (rows, *x.shape[1:])
    if 0 in (rows, size):
        return torch.zeros(shape, dtype=dtype)
    numbers = _flat(x)
    width = size // groups
    row = size * numbers.itemsize
    # Rows of sources may be added to as they come, rather than summed one source after another,
    # which needs the edges of each beside each other.
    if (
        end == "u"
        and not structure.is_transposed
        and dtype == x.dtype != torch.bfloat16
        and (row <= NARROW or rows * row <= CACHED < numbers.nbytes)
        and (groups == 1 or width >= kernels.simd.HALF)
    ):
        out = _zeros(shape, numbers.dtype)
        add = partial(
            kernels.row_sums.add_rows,
            indptr=_ints(structure.indptr),
            indices=_ints(structure.indices),
            g=numbers,
            weight=weights,
            groups=groups,
            width=width,
            out=out.reshape(-1),
        )
        in_threads(
            lambda a, b, c, d: add(group_range=(a, b), column_range=(c, d)),
            _column_ranges(groups, width, structure.num_edges),
        )
        return torch.from_numpy(out)
    by, order = structure.grouped(end)
    return _sum_rows(
        by,
        numbers,
        shape,
        dtype,
        indices=_ints(by.indices),
        edges=None if order is None or weights is None else _ints(order),
        weight=weights,
        groups=groups,
        width=width,
        mean=mean,
        own=own,
    )


def edge_sum(structure: Structure, end: str, x: Tensor) -> Tensor:
    """Sum the rows of the edges per row of ``end``, as ``SegmentSum`` does."""
    by, order = structure.grouped(end)
    shape = (by.num_dst, *x.shape[1:])
    if 0 in shape:
        return torch.zeros(shape, dtype=x.dtype)
    indices = None
    if order is not None:
        indices = _ints(order)
    return _sum_rows(by, _flat(x), shape, x.dtype, indices=indices, width=x.shape[1:].numel())


def _sum_rows(
    by: Structure,
    numbers: Array,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    *,
    indices: Ints | None,
    width: int,
    groups: int = 1,
    edges: Ints | None = None,
    weight: Array | None = None,
    mean: bool = False,
    own: bool = False,
) -> Tensor:
    """Return the sums that the loop ``sum_rows`` makes; threads do a range of rows each."""
    out = _new(shape, np.dtype(_NUMPY[dtype]))
    size = groups * width
    # A large result would push the rows that are read out of the caches. It is written past them
    # where a row is whole vectors, which begin a line each.
    whole_vectors = width % kernels.simd.LANES == 0
    _by_row(
        kernels.row_sums.sum_rows,
        by,
        size,
        indices=indices,
        edges=edges,
        rows=None,
        x=numbers,
        stride=size,
        weight=weight,
        groups=groups,
        width=width,
        mean=mean,
        own=own,
        streamed=whole_vectors and not own and dtype != torch.bfloat16 and _is_streamed(out),
        out=out.reshape(-1),
    )
    return _tensor(out, dtype)


def _pays(structure: Structure, x: CodedTensor) -> bool:
    """Whether rows are better summed as codes: not made yet, and each read by few edges."""
    return x.is_coded and 0 < structure.num_edges <= REREAD * structure.num_src


def _sum_codes(
    structure: Structure, x: CodedTensor, weights: Array | None, mean: bool, own: bool
) -> Tensor:
    """Sum rows over the edges of each destination, as ``weighted_sum`` does, from their codes."""
    width = x.shape[1]
    before = 0
    if own:
        before = width
    row = before + width
    out = _new((structure.num_dst, row), np.dtype(np.float32))
    codes, ids, zero, scale = x.arrays()
    column = {"codes": codes, "stride": x.coding.stride, "zero": zero, "scale": scale}
    indptr = _ints(structure.indptr)
    indices = _ints(structure.indices)
    target = out.reshape(-1)

    def run(first: int, last: int) -> None:
        if own:
            kernels.narrow.gather_unpacked(
                **column,
                **_NO_WIDE,
                ids=ids[first:last],
                out=target[first * row :],
                row=row,
            )
        kernels.narrow.sum_unpacked(
            **column,
            indptr=indptr,
            indices=indices,
            ids=ids,
            weight=weights,
            mean=mean,
            out=target,
            row=row,
            before=before,
            first=first,
            last=last,
        )

    in_threads(run, _row_ranges(indptr, width))
    return torch.from_numpy(out)


def drop(x: Tensor, key: int, rate: float, bias: Tensor | None = None) -> Tensor:
    """Return ``x``, bfloat16, with the numbers that ``key`` chooses set to 0, and the others scaled
    by 1 / (1 - rate).

    ``rate`` is rounded to a multiple of 2**-16. With ``bias``, a number per column of a matrix, it
    is the positive part of ``x + bias`` that is dropped.
    """
    words = _flat(x)
    out = _new(tuple(x.shape), words.dtype)
    added = None
    width = 1
    if bias is not None:
        width = bias.numel()
        numbers = bias.detach().float().numpy()
        added = np.resize(numbers, width + kernels.simd.LANES)
    run = partial(
        kernels.activation.drop,
        x=words,
        bias=added,
        width=width,
        key=np.uint64(key),
        least=np.uint64(_least(rate)),
        scale=np.float32(drop_scale(rate)),
        out=out.reshape(-1),
    )
    in_threads(
        lambda a, b: run(first=a * _PIECE, last=min(b * _PIECE, words.size)),
        even_ranges(-(-words.size // _PIECE), _PIECE),
    )
    return _tensor(out, x.dtype)


def _least(rate: float) -> int:
    return round(rate * 2**16)


def drop_scale(rate: float) -> float:
    """Return the factor by which ``drop`` scales the kept numbers."""
    least = _least(rate)
    if least < 2**16:
        return 2**16 / (2**16 - least)
    return 0.0


def is_words(x: Tensor) -> bool:
    """Whether the loops of linear maps take a matrix: of bfloat16, in the processor's memory."""
    return (
        x.dtype == torch.bfloat16 and x.device.type == "cpu" and x.is_contiguous() and is_summed(x)
    )


def add_bias(rows: Tensor, bias: Tensor, relu: bool) -> None:
    """Add ``bias`` to rows ``[n, width]`` of bfloat16 in place, and with ``relu`` set negative
    numbers to 0.
    """
    words = _flat(rows)
    added = bias.detach().float().numpy()
    ranges = even_ranges(len(rows), bias.numel())
    in_threads(lambda a, b: kernels.activation.add_bias(words, added, relu, a, b), ranges)


def relu_gradient(g: Tensor, out: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return the gradient ``[n, width]`` of rows whose ReLU, times ``scale``, is ``out``, and its
    sum in float32.

    Where ``out`` is 0 the gradient is 0, so it may come from ``drop`` too. Rows are added in
    pieces, which are added in turn: the same sum for every number of threads.
    """
    masked = _new(tuple(out.shape), np.dtype(np.uint16))
    count, width = out.shape
    sums = np.zeros((-(-count // _ROWS), width), np.float32)
    run = partial(
        kernels.activation.relu_gradient,
        g=_flat(g),
        result=_flat(out),
        scale=np.float32(scale),
        out=masked.reshape(-1),
    )

    def pieces(first: int, last: int) -> None:
        for k in range(first, last):
            run(sums=sums[k], first=k * _ROWS, last=min((k + 1) * _ROWS, count))

    in_threads(pieces, even_ranges(len(sums), _ROWS * width))
    return _tensor(masked, out.dtype), torch.from_numpy(sums.sum(0))


def dots(structure: Structure, a: Tensor, b: Tensor, groups: int) -> Tensor:
    """Dot products ``[E, groups]`` of the groups of the rows at both ends, as ``EdgeDot`` does."""
    size = a.shape[1:].numel()
    shape = (structure.num_edges, groups)
    if 0 in (size, structure.num_edges):
        return torch.zeros(shape, dtype=a.dtype)
    left = _flat(a)
    out = _new(shape, left.dtype)
    _by_row(
        kernels.row_sums.edge_dots,
        structure,
        size,
        indices=_ints(structure.indices),
        a=left,
        b=_flat(b),
        groups=groups,
        width=size // groups,
        out=out.reshape(-1),
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
    ties = [counted and extreme for extreme in wanted[1:3]]
    outs = [
        torch.from_numpy(_new(shape, numbers.dtype)) if write else None
        for write in (*wanted, *ties)
    ]
    names = ("total", "largest", "smallest", "squares", "most", "least")
    if size and structure.num_dst:
        # the loop writes into the memory of these tensors
        results = dict(zip(names, map(_flat_or_none, outs), strict=True))
        _by_row(
            kernels.extremes.reduce_rows,
            structure,
            size * sum(wanted),
            indices=_indices(structure, kind),
            x=numbers,
            width=size,
            **results,
        )
    return outs


def share(
    structure: Structure,
    kind: str,
    x: Tensor,
    outs: Sequence[Tensor | None],
    grads: Sequence[Tensor | None],
) -> Tensor:
    """The gradient of ``reductions`` for the rows ``x``; a gradient that is None counts as 0."""
    total, largest, smallest, _, *ties = outs
    g_sum, g_largest, g_smallest, g_squares = map(_flat_or_none, grads)
    mean = None
    if g_squares is not None and total is not None:
        mean = total / structure.divisor(total)
    numbers = _flat(x)
    width = x.shape[1:].numel()
    out = _zeros(tuple(x.shape), numbers.dtype)
    # what no gradient is given of is not read, and the compiled code has nothing of it
    if g_largest is None:
        largest = None
    if g_smallest is None:
        smallest = None
    counts = tuple(numbers[:0] if count is None else _flat(count) for count in ties)
    run = partial(
        kernels.extremes.share_rows,
        indptr=_ints(structure.indptr),
        indices=_indices(structure, kind),
        x=numbers,
        width=width,
        mean=_flat_or_none(mean),
        largest=_flat_or_none(largest),
        smallest=_flat_or_none(smallest),
        ties=counts,
        g_sum=g_sum,
        g_largest=g_largest,
        g_smallest=g_smallest,
        g_squares=g_squares,
        out=out.reshape(-1),
    )
    # the loop adds to any row, so threads do a range of columns each
    if out.size and structure.num_dst:
        ranges = _column_ranges(1, width, structure.num_edges)
        in_threads(lambda _a, _b, *columns: run(columns=columns), ranges)
    return torch.from_numpy(out)


def _flat_or_none(tensor: Tensor | None) -> Array | None:
    if tensor is None:
        return None
    return _flat(tensor)


def _indices(structure: Structure, kind: str) -> Ints | None:
    """Return which row each edge reads, None where edges have rows of their own."""
    if kind == "u":
        return _ints(structure.indices)
    return None


def by_destination(structure: Structure, loop: Callable[..., None], *tensors: Tensor) -> Tensor:
    """Return the rows of the edges that a loop makes of one or more such rows, ``[E, ...]``, per
    destination.
    """
    arrays = [_flat(tensor) for tensor in tensors]
    out = _new(tuple(tensors[0].shape), arrays[0].dtype)
    size = tensors[0].shape[1:].numel()
    if out.size:
        indptr = _ints(structure.indptr)
        in_threads(
            lambda a, b: loop(indptr, *arrays, size, out.reshape(-1), a, b),
            _row_ranges(indptr, 8 * size),
        )
    return torch.from_numpy(out)


def _by_row(loop: Callable[..., None], by: Structure, size: int, **arguments: Any) -> None:
    """Run a loop over rows, a range per thread; ``size``: numbers that it does for an edge."""
    # by keyword: a loop has up to 15 arguments, which no reader could count
    indptr = _ints(by.indptr)
    run = partial(loop, indptr=indptr, **arguments)
    in_threads(lambda a, b: run(first=a, last=b), _row_ranges(indptr, size))


def _ints(tensor: Tensor) -> Ints:
    return tensor.contiguous().numpy()


def _flat(tensor: Tensor) -> Array:
    plain = tensor.detach().contiguous().resolve_neg()
    return as_array(plain.view(-1))


def _tensor(out: Array, dtype: torch.dtype) -> Tensor:
    """Return an array as a tensor; words become bfloat16."""
    tensor = torch.from_numpy(out)
    if dtype != torch.bfloat16:
        return tensor
    # not a view, which could not be changed in place outside
    words = torch.empty(0, dtype=dtype)
    words.set_(tensor.untyped_storage())
    return words.resize_(out.shape)


def _new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array to be filled; a large one lies in a reused buffer."""
    large = math.prod(shape) * dtype.itemsize >= LARGE
    if large:
        return reused(shape, dtype)
    return np.empty(shape, dtype)


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    out = _new(shape, dtype)
    out.fill(0)
    return out


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
    # a row without edges takes time too, since its sum is written
    load = indptr + np.arange(rows + 1)
    cuts = np.searchsorted(load, load[-1] * np.arange(1, count) // count)
    return list(pairwise([0, *cuts.tolist(), rows]))


def _column_ranges(groups: int, width: int, edges: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield one range per thread: first and last group, first and last column.

    A single group is cut into whole vectors.
    """
    if groups > 1:
        for a, b in even_ranges(groups, edges * width):
            yield a, b, 0, width
        return
    unit = kernels.simd.LANES
    units = -(-width // unit)
    for a, b in even_ranges(units, edges * width // max(units, 1)):
        yield 0, 1, a * unit, min(b * unit, width)


def even_ranges(count: int, size: int) -> list[tuple[int, int]]:
    """Return one range of ``count`` items of ``size`` numbers per thread, about equally long."""
    threads = min(_count(count * size), max(count, 1))
    return list(pairwise([count * k // threads for k in range(threads + 1)]))


def in_threads(run: Callable[..., None], ranges: Iterable[tuple[int, ...]]) -> None:
    """Call ``run`` with every range, each on a thread of its own."""
    parts = list(ranges)
    # quicker, which small sums feel
    if len(parts) == 1:
        run(*parts[0])
        return
    run_all(lambda k: run(*parts[k]), len(parts))
