"""Opening columns in files: what kind of file it is, and where its numbers are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_count, check_indptr, describe
from nodeflow._base.types import FileLike
from nodeflow._disk.arrays import ArrayFile, map_array
from nodeflow._disk.manifest import Manifest
from nodeflow._rows.rows import as_array, is_sparse
from nodeflow._runtime.mapped import find_map, part_of_file
from nodeflow.storage._files import Extent, FileReader, FileRows, npy_extent, raw_extent, safetensors_header, tensor_in
from nodeflow.storage._sparse_files import KIND, VERSION, SparseFileRows

_CSR = "indptr", "indices", "values"


class Access(NamedTuple):
    """How files are read: ``direct``, past the page cache, and by how many threads."""

    direct: bool = False
    threads: int = 8

    def rows(self, path: Path, extent: Extent) -> FileRows:
        """Open the rows that lie somewhere in a file."""
        return FileRows(FileReader(path, direct=self.direct, threads=self.threads), *extent)


_USUAL = Access()


def open(
    path: FileLike | Tensor,
    name: str | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: torch.dtype | None = None,
    offset: int = 0,
    direct: bool = False,
    threads: int = 8,
) -> FileRows | SparseFileRows:
    """Open a column in a file: rows are read when they are fetched, and only those.

    Args:
        path: a ``.npy`` file; a ``.safetensors`` file; with ``shape`` and ``dtype``, any file of raw numbers; the
            folder of a sparse column that ``save_sparse`` wrote; or a tensor that maps files, dense or sparse, such as
            a column of a graph that ``Graph.open`` gave.
        name: the tensor of a ``.safetensors`` file; None takes the only one.
        shape, dtype: of raw numbers, row by row, in the byte order of the machine.
        offset: the byte where raw numbers begin.
        direct: read past the page cache of the operating system, so that a measurement is of the disk, and other files
            stay in the cache. Reads are whole blocks of 512 or 4,096 bytes then, so that small rows cost more.
        threads: how many read at a time. A disk answers several requests at once; a hard disk with one head gains
            nothing.

    Raises FileNotFoundError and OSError where the file cannot be opened, ValueError for a file that is damaged or cut
    off, that holds no such tensor, or whose numbers do not fit ``shape`` and ``dtype``, and for a tensor in memory.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/feat.npy", np.arange(8.0).reshape(4, 2))
    ...     rows = open(f"{folder}/feat.npy")
    ...     rows.fetch(torch.tensor([2, 0]))
    tensor([[4., 5.],
            [0., 1.]], dtype=torch.float64)
    """
    access = Access(bool(direct), as_count(threads, "threads", 1))
    if isinstance(path, Tensor):
        if name is not None or shape is not None or dtype is not None or offset:
            raise TypeError("name, shape, dtype and offset are those of a file: leave them out for a tensor")
        rows = opened(path, access)
        if rows is None:
            raise ValueError(f"path is a tensor in memory, {describe(path)}: only one that maps a file can be opened")
        return rows
    place = Path(path).absolute()
    if (shape is None) != (dtype is None):
        raise TypeError("shape and dtype belong together: pass both for raw numbers, or neither")
    if place.is_dir():
        return _sparse_folder(place, access)
    if shape is not None and dtype is not None:
        extent = raw_extent(place, shape, dtype, as_count(offset, "offset"))
    elif place.suffix == ".safetensors":
        header, begin = safetensors_header(place)
        if name is None and "columns" in header.get("__metadata__", {}):
            return _sparse_safetensors(place, header, begin, access)
        extent = _only_tensor(place, header, begin, name)
    elif place.suffix == ".npy":
        extent = npy_extent(place)
    else:
        raise ValueError(f"{place.name} must end in .npy or .safetensors; for raw numbers pass shape and dtype")
    if not extent[1]:
        raise ValueError(f"{place} holds a single number, not rows")
    return access.rows(place, extent)


def opened(column: Tensor, access: Access = _USUAL) -> FileRows | SparseFileRows | None:
    """Return the rows of a tensor that maps files read-only, None for a tensor in memory."""
    if not is_sparse(column):
        return _mapped(column, access)
    indices, values = _mapped(column.col_indices(), access), _mapped(column.values(), access)
    if indices is None or values is None:
        return None
    return SparseFileRows(values.path, column.crow_indices().long(), indices, values, column.shape[1])


def _mapped(column: Tensor, access: Access) -> FileRows | None:
    mapped = find_map(column.untyped_storage().data_ptr())
    part = part_of_file(as_array(column), mapped) if mapped is not None and column.is_contiguous() else None
    if part is None:
        return None
    return access.rows(Path(part.file), (part.offset, tuple(column.shape), column.dtype))


def _sparse_folder(folder: Path, access: Access) -> SparseFileRows:
    array = Manifest.read(folder, KIND, VERSION).arrays.get("rows")
    if array is None or array.csr is None:
        raise ValueError(f"{folder} has a manifest without sparse rows: it is damaged")
    _, indices, values = array.plain

    def rows(part: ArrayFile) -> FileRows:
        start, shape, _ = npy_extent(folder / part.file)
        return access.rows(folder / part.file, (start, shape, part.torch_type))  # numpy does not know bfloat16

    indptr = _checked(folder, lambda: np.array(map_array(folder, array.plain[0])), indices.shape[0])
    return SparseFileRows(folder, indptr, rows(indices), rows(values), array.shape[1])


def _sparse_safetensors(path: Path, header: dict[str, Any], begin: int, access: Access) -> SparseFileRows:
    """Open a sparse column that an earlier version wrote into one file."""
    if missing := [name for name in _CSR if name not in header]:
        raise ValueError(f"{path} is damaged: it has no tensor {missing[0]!r}")
    (start, (size,), _), indices, values = (tensor_in(path, header, begin, name) for name in _CSR)
    indptr = _checked(path, lambda: np.fromfile(path, np.int64, size, offset=start), indices[1][0])
    try:
        width = int(header["__metadata__"]["columns"])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    reader = FileReader(path, direct=access.direct, threads=access.threads)
    return SparseFileRows(path, indptr, FileRows(reader, *indices), FileRows(reader, *values), width)


def _checked(path: Path, read: Callable[[], Any], entries: int) -> Tensor:
    indptr = read()
    try:
        check_indptr(indptr, entries)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return torch.from_numpy(indptr)


def _only_tensor(path: Path, header: dict[str, Any], begin: int, name: str | None) -> Extent:
    names = [key for key in header if key != "__metadata__"]
    if name is None and len(names) != 1:
        raise ValueError(f"{path} holds {len(names)} tensors: pass name=, one of {', '.join(names)}")
    chosen = names[0] if name is None else name
    if chosen not in names:
        raise ValueError(f"{path} has no tensor {chosen!r}; it has {', '.join(names) or 'none'}")
    return tensor_in(path, header, begin, chosen)
