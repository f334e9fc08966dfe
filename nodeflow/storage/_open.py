"""Columns in files: opened, and made by a program that writes them itself."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_count, as_flag, blaming, check_type, describe
from nodeflow._core.base.types import FileLike
from nodeflow._core.rows.columns import check_numbers
from nodeflow._core.rows.csr import from_scipy
from nodeflow._core.rows.narrow import NarrowRows
from nodeflow._core.rows.rows import Rows, as_array, from_numpy, is_sparse
from nodeflow._core.runtime.mapped import find_map, part_of_file
from nodeflow._files.disk.arrays import (
    ArrayFile,
    create_array,
    map_array,
    numpy_type,
    open_file,
    read_header,
    sizes_of,
)
from nodeflow._files.disk.folders import new_folder
from nodeflow._files.disk.manifest import Manifest
from nodeflow._files.disk.streams import stream_column
from nodeflow.storage._files import Extent, FileRows, SparseFileRows

_KIND = "sparse rows"
_VERSION = 1
_SAFETENSORS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@checked
def open(
    path: FileLike | Tensor | NarrowRows,
    name: str | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: torch.dtype | None = None,
    offset: int = 0,
    direct: bool = False,
    threads: int = 8,
    verify: bool | None = None,
) -> FileRows | SparseFileRows | NarrowRows:
    """Open a column in a file: rows are read when they are fetched, and only those.

    Args:
        path: a ``.npy`` file; a ``.safetensors`` file; with ``shape`` and ``dtype``, any file of
            raw numbers; the folder of a sparse column that ``save_sparse`` wrote; or a tensor that
            maps files, dense or sparse, or narrow rows, such as a column of a graph that
            ``Graph.open`` gave.
        name: the tensor of a ``.safetensors`` file; None takes the only one.
        shape, dtype: of raw numbers, row by row, in the byte order of the machine.
        offset: the byte where raw numbers begin.
        direct: read past the page cache of the operating system, so that a measurement is of the
            disk, and other files stay in the cache. Reads are whole blocks of 512 or 4,096 bytes
            then, so that small rows cost more.
        threads: how many read at a time; more than one gains nothing on a hard disk with one head.
        verify: for a folder, which files are compared with their checksums, as for ``Graph.open``.

    Raises FileNotFoundError and OSError where the file cannot be opened, ValueError for a file that
    is damaged or cut off, that holds no such tensor, or whose size is not that of ``shape`` and
    ``dtype``, and for a tensor in memory, TypeError for an argument that this kind of file does not
    take.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/feat.npy", np.arange(8.0).reshape(4, 2))
    ...     rows = open(f"{folder}/feat.npy")
    ...     rows.fetch(torch.tensor([2, 0]))
    tensor([[4., 5.],
            [0., 1.]], dtype=torch.float64)
    """
    rows = partial(
        FileRows, direct=as_flag(direct, "direct"), threads=as_count(threads, "threads", 1)
    )
    if (shape is None) != (dtype is None):
        raise TypeError("shape and dtype belong together: pass both for raw numbers, or neither")
    given = {"name": name, "shape": shape, "dtype": dtype, "offset": offset or None}
    given["verify"] = verify
    if isinstance(path, Tensor | NarrowRows):
        _check_takes(given, (), "a tensor", "path")
        if (column := opened(path, rows)) is None:
            raise ValueError(
                f"path is a tensor in memory, {describe(path)}: only one that maps a file can be "
                "opened"
            )
        return column
    place = Path(path).absolute()
    if place.is_dir():
        _check_takes(given, ("verify",), "a folder", place)
        return _sparse_folder(place, rows, verify)
    if place.suffix == ".safetensors":
        _check_takes(given, ("name",), "a .safetensors file, which says what it holds", place)
        extent = _safetensors_extent(place, name)
    elif place.suffix == ".npy":
        _check_takes(given, (), "a .npy file, which says what it holds", place)
        extent = _npy_extent(place)
    elif shape is not None and dtype is not None:
        _check_takes(given, ("shape", "dtype", "offset"), "a file of raw numbers", place)
        extent = _raw_extent(place, shape, dtype, as_count(offset, "offset"))
    else:
        raise ValueError(
            f"{place.name} must end in .npy or .safetensors; for raw numbers pass shape and dtype"
        )
    if not extent[1]:
        raise ValueError(f"{place} holds a single number, not rows")
    return rows(place, extent)


def _check_takes(
    given: Mapping[str, object], takes: Sequence[str], kind: str, where: str | Path
) -> None:
    """Raise TypeError for the first argument that is given and that this kind of file does not
    take.
    """
    for name, value in given.items():
        if value is not None and name not in takes:
            raise TypeError(f"{where}: {name} is no argument for {kind}: leave it out")


def opened(
    column: Tensor | Rows, rows: Callable[[Path, Extent], FileRows] = FileRows
) -> FileRows | SparseFileRows | NarrowRows | None:
    """Return the rows of a tensor, or of the codes of narrow rows, that map files read-only; None
    for any others.
    """
    if isinstance(column, NarrowRows):
        codes = opened(column.stored, rows)
        if codes is None:
            return None
        return NarrowRows(codes, column.coding)
    if not isinstance(column, Tensor):
        return None
    if not is_sparse(column):
        return _mapped(column, rows)
    indices = _mapped(column.col_indices(), rows)
    values = _mapped(column.values(), rows)
    if indices is None or values is None:
        return None
    return SparseFileRows(
        values.path, column.crow_indices().long(), indices, values, column.shape[1]
    )


def _mapped(column: Tensor, rows: Callable[[Path, Extent], FileRows]) -> FileRows | None:
    # The storage of a slice of rows, too, begins where the map does.
    mapped = find_map(column.untyped_storage().data_ptr())
    if mapped is None or not column.is_contiguous():
        return None
    part = part_of_file(as_array(column), mapped)
    if part is None:
        return None
    return rows(Path(part.file), (part.offset, tuple(column.shape), column.dtype))


def _sparse_folder(
    folder: Path, rows: Callable[[Path, Extent], FileRows], verify: bool | None
) -> SparseFileRows:
    array = Manifest.read(folder, _KIND, _VERSION, verify=verify).arrays.get("rows")
    if array is None or array.csr is None:
        raise ValueError(f"{folder} has a manifest without sparse rows: it is damaged")

    def opened_part(part: ArrayFile) -> FileRows:
        start, shape, _ = _npy_extent(folder / part.file)
        # of the type in the manifest: numpy does not know bfloat16
        return rows(folder / part.file, (start, shape, part.torch_type))

    ends, indices, values = array.plain
    indptr = torch.tensor(map_array(folder, ends))
    return SparseFileRows(folder, indptr, opened_part(indices), opened_part(values), array.shape[1])


def _npy_extent(path: Path) -> Extent:
    with blaming(f"{path} is damaged, was cut off or is no .npy file", ValueError):
        kind, shape, start = read_header(path)
    if not kind.isnative:
        raise ValueError(f"{path} has numbers of another byte order ({kind}); convert it once")
    try:
        dtype = torch.from_numpy(np.empty(0, kind)).dtype
    except TypeError:
        raise ValueError(
            f"{path} has numbers of type {kind}, which torch does not know; convert it once"
        ) from None
    return start, shape, dtype


def _raw_extent(path: Path, shape: tuple[int, ...], dtype: torch.dtype, start: int) -> Extent:
    check_type(dtype, "dtype", torch.dtype, "a torch.dtype")
    check_numbers(dtype, str(path))
    sizes = sizes_of(shape)
    expected = start + math.prod(sizes) * dtype.itemsize
    with blaming(f"{path} cannot be read", ValueError), open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
    if size != expected:
        raise ValueError(
            f"{path} has {size} bytes, but {dtype} {list(sizes)} from byte {start} on takes "
            f"{expected}"
        )
    return start, sizes, dtype


def _safetensors_extent(path: Path, name: str | None) -> Extent:
    """Return where a tensor lies in a ``.safetensors`` file, by default its only one."""
    damage = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
    with blaming(f"{path} is damaged, was cut off or is no .safetensors file", *damage):
        with open_file(path) as file:
            begin = 8 + int.from_bytes(file.read(8), "little")
            end = path.stat().st_size
            if begin > end:
                raise ValueError("its header is longer than the file")
            header = json.loads(file.read(begin - 8))
        header.pop("__metadata__", None)
        names = ", ".join(header) or "none"
    if name is None and len(header) != 1:
        raise ValueError(f"{path} holds {len(header)} tensors: pass name=, one of {names}")
    chosen = name
    if name is None:
        chosen = next(iter(header))
    if chosen not in header:
        raise ValueError(f"{path} has no tensor {chosen!r}; it has {names}")
    with blaming(f"{path} is damaged, or was cut off: of the tensor {chosen!r}", *damage):
        facts = header[chosen]
        shape = sizes_of(facts["shape"])
        first, last = (as_count(place, "an offset") for place in facts["data_offsets"])
        kind = _SAFETENSORS.get(facts["dtype"])
        if kind is None:
            raise ValueError(f"numbers of type {facts['dtype']} cannot be read")
        if last - first != math.prod(shape) * kind.itemsize or begin + last > end:
            raise ValueError("it does not hold all of it")
    return begin + first, shape, kind


@checked
def create(path: FileLike, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    """Make a file ``.npy`` of zeros and return a tensor that maps it: what is written to it reaches
    the file.

    It may be larger than memory. ``FlowModel.inference(..., out=)`` writes into it, and
    ``numpy.load`` reads the file.

    Args:
        path: the file, whose name ends in ``.npy``.
        shape: shape of the array.
        dtype: type of its numbers. bfloat16, which numpy does not know, lies in the file as uint16.

    Raises FileExistsError for a file that exists, ValueError for another ending or a wrong shape,
    OSError where the disk cannot hold the array.

    >>> import tempfile
    >>> out = create(tempfile.mkdtemp() + "/out.npy", (3, 2))
    >>> out[1] = torch.tensor([5.0, 6.0])
    >>> out.sum()
    tensor(11.)
    """
    file = Path(path)
    if file.suffix != ".npy":
        raise ValueError(f"path must end in .npy, got {file.name!r}")
    check_type(dtype, "dtype", torch.dtype, "a torch.dtype")
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise TypeError(f"shape must be a sequence of sizes, got {describe(shape)}")
    sizes = sizes_of(shape)
    if os.path.lexists(file):
        raise FileExistsError(f"{file} exists; remove it, or choose another path")
    return from_numpy(create_array(file, numpy_type(dtype), sizes), dtype)


@checked
def save_sparse(path: FileLike, column: object, *, overwrite: bool = False) -> None:
    """Write a sparse column into a folder for ``open``: arrays and a manifest, as a graph folder
    has them.

    Args:
        path: the folder, which appears whole or not at all.
        column: a sparse CSR tensor ``[n, width]``, ``Rows`` that are sparse, or a scipy sparse
            matrix.
        overwrite: replace a folder that is there.

    Raises TypeError for anything else, FileExistsError for a folder that is there, OSError where
    the disk is full.

    >>> import tempfile
    >>> import scipy.sparse
    >>> path = tempfile.mkdtemp() + "/x"
    >>> save_sparse(path, scipy.sparse.eye_array(3, format="csr", dtype="float32"))
    >>> open(path).fetch(torch.tensor([2])).to_dense()
    tensor([[0., 0., 1.]])
    """
    rows = column if isinstance(column, Tensor | Rows) else from_scipy(column)
    check_type(
        rows, "column", Tensor | Rows, "a sparse CSR tensor, sparse rows or a scipy sparse matrix"
    )
    if not is_sparse(rows):
        raise TypeError(
            "column must be sparse CSR, got a dense one; storage.create makes a file for it"
        )
    with new_folder(Path(path), overwrite=overwrite) as draft:
        Manifest(_KIND, _VERSION, {"rows": stream_column(draft / "rows.npy", rows)}).write(draft)
