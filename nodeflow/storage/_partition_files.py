"""The files of a folder of partitions: one ``.npy`` file per node column, partition and generation."""

from __future__ import annotations

import math
import os
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from nodeflow._base.types import Array
from nodeflow._disk.arrays import read_header

NODES = "nodes"
"""The folder of the node columns."""
_PIECE = 2**24  # bytes written at a time


def node_file(column: str, partition: int, generation: int) -> str:
    """Return the name of the file of a partition of a node column. A partition that is written anew gets a new name."""
    return f"{NODES}/{quote(column, safe='')}.{partition}.{generation}.npy"


def begin_file(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Begin the ``.npy`` file of an array of which the rows follow; return the checksum so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
    return zlib.crc32(path.read_bytes())


def append_rows(path: Path, rows: Array, checksum: int, *, flush: bool = False) -> int:
    """Append rows to a file that was begun; return the checksum so far. ``flush`` waits until the disk has them all."""
    data = _bytes_of(np.ascontiguousarray(rows))
    try:
        with path.open("ab", buffering=0) as file:
            for first in range(0, len(data), _PIECE):
                piece = data[first : first + _PIECE]
                checksum = zlib.crc32(piece, checksum)
                while len(piece):
                    piece = piece[file.write(piece) :]
            if flush:
                os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)}, writing {len(data):,} bytes", str(path)) from None
    return checksum


def sync_file(path: Path) -> None:
    """Wait until the disk has all of a file; raises OSError."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


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


def _forget(descriptor: int, page_cache: bool) -> None:
    if not page_cache and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes_of(array: Array) -> memoryview:
    """The bytes of an array without gaps, shared with it."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
