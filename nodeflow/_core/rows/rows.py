"""Rows of columns: dense, sparse CSR, or fetched by id (``Rows``). They are taken by id, joined,
made of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.rows.csr import check_csr, csr_positions, csr_tensor
from nodeflow._core.runtime.mapped import remember
from nodeflow._core.runtime.memory import as_tensor, reused
from nodeflow._core.runtime.process import ignored_warnings

_READ_ONLY = "_nodeflow_read_only"
# bytes from which on a result is gathered by our own loop
_LARGE = 2**16
_BITS = {1: torch.uint8, 2: torch.uint16}
# Rows are copied as words, whatever their numbers are: few types, so that few loops are compiled.
_WORDS = tuple(np.dtype(kind) for kind in (np.uint64, np.uint32, np.uint8))


@runtime_checkable
class Rows(Protocol):
    """Rows of a column that are fetched by id.

    A column of a graph, the features that enter a full pass and the inputs of a history are a
    tensor or such an object. An object with the attribute ``layout = torch.sparse_csr`` fetches
    sparse CSR rows; ``fetch`` then gets no ``out``.

    >>> from nodeflow import Graph
    >>> class Squares:
    ...     shape, dtype = (3, 1), torch.float32
    ...     def fetch(self, ids, out=None):
    ...         rows = (ids.float() ** 2).unsqueeze(1)
    ...         return rows if out is None else out.copy_(rows)
    >>> Graph.from_edges([0, 1], [1, 2], ndata={"x": Squares()})
    Graph(3 nodes, 2 edges, ndata: x)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole column, ``(num_rows, ...)``."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers."""

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]`` on the CPU, as a tensor ``[k, ...]``.

        With ``out``, a tensor of that shape and type, they are written there, and ``out`` is
        returned.
        """


def layout_of(column: Tensor | Rows) -> torch.layout:
    """Return the layout of a column, strided or sparse CSR; ``Rows`` without one are dense."""
    return getattr(column, "layout", torch.strided)


def is_sparse(column: Tensor | Rows) -> bool:
    """Return whether a column has sparse rows."""
    return layout_of(column) != torch.strided


def entries_of(column: Tensor) -> Tensor:
    """Return the numbers that a column stores: of a sparse one the entries, else all."""
    return column.values() if is_sparse(column) else column


def as_dense(rows: Tensor) -> Tensor:
    """Return rows as a dense tensor: themselves, or a copy of sparse ones."""
    return rows.to_dense() if is_sparse(rows) else rows


def first_not_finite(rows: Tensor) -> int | None:
    """Return the first row that has NaN or inf, None where there is none."""
    # a finite sum has finite terms, and takes a fraction of the time; a sum that is not finite may
    # only be too large
    entries = entries_of(rows)
    if bool(entries.sum().isfinite()):
        return None
    bad = (~torch.isfinite(entries)).nonzero()
    if not len(bad):
        return None
    first = bad[0, 0]
    if is_sparse(rows):
        # the row of an entry is the last that begins at it or before
        first = torch.searchsorted(rows.crow_indices(), first, right=True) - 1
    return int(first)


def row_bytes(column: Tensor | Rows) -> int:
    """Return how many bytes a row of a dense column takes."""
    return math.prod(column.shape[1:]) * column.dtype.itemsize


def column_bytes(column: Tensor | Rows) -> int:
    """Return how many bytes a column takes; nothing is fetched, and fetched rows count as dense."""
    if isinstance(column, Tensor) and is_sparse(column):
        parts = (column.crow_indices(), column.col_indices(), column.values())
        return sum(part.nbytes for part in parts)
    return column.shape[0] * row_bytes(column)


def is_collective(column: object) -> bool:
    """Return whether all processes must call ``fetch`` together, even to get no rows."""
    return bool(getattr(column, "collective", False))


def from_numpy(array: Array, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor that shares the array's memory. Never write to it where the array is
    read-only.

    ``dtype``, as wide as the type of the array, is that of the numbers where numpy does not know it
    (bfloat16).
    """
    remember(array)
    with ignored_warnings(".*non-writable.*") if not array.flags.writeable else nullcontext():
        tensor = torch.from_numpy(array)
    if dtype is not None:
        tensor = tensor.view(dtype)
    if not array.flags.writeable:
        setattr(tensor, _READ_ONLY, True)  # torch itself has no read-only tensors
    return tensor


def as_array(tensor: Tensor) -> Array:
    """Return an array that shares the memory of a dense tensor on the CPU.

    Numbers that numpy does not know (bfloat16, float8) are unsigned integers of the same bits.
    """
    try:
        array: Array = tensor.numpy()
    except TypeError:
        array = tensor.view(_BITS[tensor.itemsize]).numpy()
    return array


def is_read_only(column: Tensor) -> bool:
    """Return whether a column's memory is read-only: a write to it could end the process."""
    return bool(getattr(column, _READ_ONLY, False))


def take_rows(column: Tensor | Rows, ids: Tensor) -> Tensor:
    """Return the rows ``ids`` (int64 ``[k]``) of a dense ``[n, ...]`` or sparse CSR
    ``[n, columns]`` column.

    The result lies where the column lies. Sparse rows come back as a sparse CSR tensor
    ``[k, columns]``. Raises IndexError for an id that is not a row (of a dense tensor).
    """
    if not isinstance(column, Tensor):
        return _fetched(column, ids)
    ids = ids.to(column.device)
    if column.layout == torch.strided:
        return column.index_select(0, ids)
    indptr, position = csr_positions(check_csr(column, "the column").crow_indices(), ids)
    shape = (len(ids), column.shape[1])
    return csr_tensor(indptr, column.col_indices()[position], column.values()[position], shape)


def fetch_rows(column: Tensor | Rows, ids: Tensor) -> Tensor:
    """Return the same as ``take_rows``, with a compiled gather for large dense columns on the CPU.

    A column that requires a gradient gets it. Forward-mode and functional transforms must take
    ``take_rows``.
    """
    if not isinstance(column, Tensor):
        return _fetched(column, ids)
    # the size first: most calls are small
    if (
        column.layout == torch.strided
        and ids.shape[0] * column.nbytes >= _LARGE * column.shape[0] > 0
        and column.device.type == "cpu"
        and column.is_contiguous()
        and not column.dtype.is_complex
        and not column.requires_grad
    ):
        # ``index_select`` in half of the time or less: rows are prefetched, buffers are reused
        rows = ids.cpu().contiguous()
        out = new_rows(len(rows), column.shape[1:], column.dtype)
        move_rows(column, rows.numpy(), out)
        return out
    return take_rows(column, ids)


def _fetched(column: Rows, ids: Tensor) -> Tensor:
    """Fetch rows from a store, maybe a user's own, and check that they are what it says."""
    # What a user wrote is checked each time: a wrong shape would be read far outside of the rows.
    rows = column.fetch(ids.cpu())
    name = f"fetch of {type(column).__name__}"
    if not isinstance(rows, Tensor):
        raise TypeError(f"{name} must return a tensor, got {type(rows).__name__}")
    if rows.dtype != column.dtype:
        raise TypeError(f"{name} must return {column.dtype}, got {rows.dtype}")
    if rows.layout != layout_of(column):
        raise TypeError(
            f"{name} must return rows of its layout {layout_of(column)}, got {rows.layout}"
        )
    shape = (len(ids), *column.shape[1:])
    if rows.shape != shape:
        raise ValueError(
            f"{name} must return {list(shape)} for {len(ids)} ids, got {list(rows.shape)}"
        )
    return rows


def gather_into(rows: Tensor, places: Ints, out: Tensor) -> None:
    """Copy row ``at[i]`` to row i of ``out``, for all i where it is not -1.

    Both tensors are contiguous, on the CPU and of one type and shape of rows.
    """
    words, width, target = _as_words(rows, out)
    kernels.copying.copy_found(words, width, places, target)


def move_rows(rows: Tensor, places: Ints, out: Tensor, to: Ints | None = None) -> None:
    """Copy row ``at[i]`` to row ``to[i]`` of ``out`` (None: to row i), for all i.

    The tensors are as for ``gather_into``. Raises IndexError for a number that is not a row.
    """
    if len(places) and row_bytes(rows):
        words, width, target = _as_words(rows, out)
        # The loop checks ids as it goes, which costs nothing beside the memory that it waits for.
        bad = kernels.copying.copy_rows(words, width, places, target, to)
        if bad >= 0:
            raise IndexError(f"there is no row {int(places[bad])} in a column of {len(rows)} rows")


def _as_words(rows: Tensor, out: Tensor) -> tuple[Array, int, Array]:
    """Return two tensors as words of one type, as wide as fits their rows, and a row's words."""
    row = row_bytes(rows)
    # a row and both addresses are multiples of what divides all their bits
    bits = row | rows.data_ptr() | out.data_ptr()
    kind = next(kind for kind in _WORDS if bits % kind.itemsize == 0)
    words, target = (as_array(part).reshape(-1).view(kind) for part in (rows, out))
    return words, row // kind.itemsize, target


def new_rows(count: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return ``count`` rows of undefined content, ``[count, *shape]``, in memory that is used again
    if it is much.
    """
    size = count * math.prod(shape) * dtype.itemsize
    # malloc gives large memory back to the system, and takes it page by page again
    if size < _LARGE:
        return torch.empty((count, *shape), dtype=dtype, device="cpu")
    return as_tensor(reused((size,), np.uint8), dtype, (count, *shape))


def put_rows(parts: Iterable[tuple[Tensor, Ints]], count: int) -> Tensor:
    """Return ``count`` rows, of which each part ``(rows, places)`` has those at its places; all on
    the CPU.

    No two parts share a place. Rows at no place are undefined, or sparse ones without entries. The
    rows are dense, or all sparse CSR.
    """
    parts = list(parts)
    # sparse rows cannot be written to a place: they are joined, behind them a row without entries
    # for places that no part has, and taken in order
    if is_sparse(parts[0][0]):
        rows = concat_rows([*(rows for rows, _ in parts), zero_rows(parts[0][0], 1)])
        order = np.full(count, len(rows) - 1)
        order[np.concatenate([places for _, places in parts])] = np.arange(len(rows) - 1)
        return take_rows(rows, torch.from_numpy(order))
    out = new_rows(count, tuple(parts[0][0].shape[1:]), parts[0][0].dtype)
    for rows, places in parts:
        move_rows(rows.contiguous(), np.arange(len(rows)), out, places)
    return out


def whole_column(column: Tensor | Rows) -> Tensor:
    """Return all rows of a column: a tensor itself, else all rows fetched into memory."""
    if isinstance(column, Tensor):
        return column
    return _fetched(column, torch.arange(column.shape[0]))


def slice_rows(column: Tensor, start: int, stop: int) -> Tensor:
    """Return the rows ``start`` to ``stop - 1`` of a column, as a view of its entries."""
    if not is_sparse(column):
        return column[start:stop]
    indptr = check_csr(column, "the column").crow_indices()[start : stop + 1]
    first = int(indptr[0])
    last = int(indptr[-1])
    # only a slice from the beginning shares its indptr: others begin at 0 anew
    if first:
        indptr = indptr - first
    return csr_tensor(
        indptr,
        column.col_indices()[first:last],
        column.values()[first:last],
        (stop - start, column.shape[1]),
    )


def concat_rows(parts: Sequence[Tensor]) -> Tensor:
    """Return the rows of several columns, one after another; all dense, or all sparse CSR."""
    if not is_sparse(parts[0]):
        return torch.cat(list(parts))
    # torch.cat does not take sparse CSR tensors
    indptr = [parts[0].crow_indices()[:1]]
    end = 0
    for part in parts:
        indptr.append(part.crow_indices()[1:] + end)
        end += len(part.values())
    indices = torch.cat([part.col_indices() for part in parts])
    values = torch.cat([part.values() for part in parts])
    shape = (sum(map(len, parts)), parts[0].shape[1])
    return csr_tensor(torch.cat(indptr), indices, values, shape)


def zero_rows(column: Tensor | Rows, count: int) -> Tensor:
    """Return ``count`` rows of zeros in the layout of a dense or sparse CSR column."""
    device = column.device if isinstance(column, Tensor) else torch.device("cpu")
    shape = (count, *column.shape[1:])
    if not is_sparse(column):
        return torch.zeros(shape, dtype=column.dtype, device=device)
    indptr = torch.zeros(count + 1, dtype=torch.int64, device=device)
    return csr_tensor(
        indptr, indptr[:0], torch.empty(0, dtype=column.dtype, device=device), (count, shape[1])
    )


def to_arrays(rows: Tensor) -> list[Array]:
    """Return rows as arrays that travel: the dense ones, or sizes, indices and values."""
    rows = rows.detach().cpu()
    if not is_sparse(rows):
        return [as_array(rows.contiguous())]
    # a row has fewer entries than there are columns: both fit into the type of the columns
    kind = np.int32 if rows.shape[1] < 2**31 else np.int64
    # Sizes travel, and not where rows end: they are small, and fit into half of the bytes.
    sizes = np.diff(rows.crow_indices().numpy())
    indices = rows.col_indices().numpy()
    return [sizes.astype(kind), indices.astype(kind), as_array(rows.values().contiguous())]


def from_arrays(arrays: Sequence[Array], like: Tensor | Rows) -> Tensor:
    """Return the rows of which ``to_arrays`` made the arrays, for the column ``like``."""
    if not is_sparse(like):
        return from_numpy(arrays[0], like.dtype)
    sizes, indices, values = arrays
    indptr = torch.from_numpy(np.append(0, np.cumsum(sizes, dtype=np.int64)))
    shape = (len(sizes), like.shape[1])
    return csr_tensor(
        indptr, torch.from_numpy(indices.astype(np.int64)), from_numpy(values, like.dtype), shape
    )
