"""The files of a folder of partitions: one ``.npy`` file per node column, partition and generation."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import check_indptr, check_range
from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, map_csr, read_header
from nodeflow._rows.rows import as_array

NODES = "nodes"
"""The folder of the node columns."""


def node_file(column: str, partition: int, generation: int) -> str:
    """Return the name of the file of a partition of a node column. A partition that is written anew gets a new name."""
    return f"{NODES}/{quote(column, safe='')}.{partition}.{generation}.npy"


def read_rows(path: Path, out: Array, first: int = 0, *, page_cache: bool = True) -> int:
    """Fill ``out`` with the rows of a file from row ``first`` on; return the number of bytes read.

    Without ``page_cache`` the system forgets the file before and after, so that it is the disk that is read. Raises
    ValueError for a file that is too short or has rows of another type, FileNotFoundError.
    """
    try:
        dtype, shape, start = read_header(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: the folder is not whole, or was replaced while it was read"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged or was cut off: {error}") from None
    if dtype != out.dtype or shape[1:] != out.shape[1:] or shape[0] < first + len(out):
        raise ValueError(
            f"{path} holds {dtype} {list(shape)}, but {len(out)} rows of {out.dtype} {list(out.shape[1:])} from row "
            f"{first} on are to be read"
        )
    data = _bytes_of(out)
    with path.open("rb", buffering=0) as file:
        _forget(file.fileno(), page_cache)
        file.seek(start + first * math.prod(shape[1:]) * dtype.itemsize)
        done = 0
        while done < len(data):
            size = file.readinto(data[done:])
            if not size:
                raise ValueError(f"{path} was cut off while it was read")
            done += size
        _forget(file.fileno(), page_cache)
    return len(data)


def read_sparse(folder: Path, array: ArrayFile, *, page_cache: bool = True) -> Tensor:
    """Return a sparse column read from its files into memory; raises as ``read_rows``, and for rows that are none."""
    parts = [torch.empty(plain.shape, dtype=plain.torch_type) for plain in array.plain]
    for part, plain in zip(parts, array.plain, strict=True):
        read_rows(folder / plain.file, as_array(part), page_cache=page_cache)
    indptr, indices, values = parts
    try:
        check_indptr(indptr.numpy(), len(indices))
        check_range(indices.numpy(), "the columns of a sparse column", array.shape[1], "column")
        return map_csr(indptr, indices, values, (array.shape[0], array.shape[1]))
    except (ValueError, IndexError) as error:
        raise ValueError(f"{folder / array.file} is damaged: {error}") from None


def _forget(descriptor: int, page_cache: bool) -> None:
    if not page_cache and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes_of(array: Array) -> memoryview:
    """The bytes of an array without gaps, shared with it."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
