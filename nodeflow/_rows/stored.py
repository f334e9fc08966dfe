"""Tensors in files: raw numbers, of which the room on the disk is taken before they are mapped."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

_PIECE = 2**20  # bytes written at a time
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


def num_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """Return how many bytes rows of a shape and type take."""
    return math.prod(shape) * dtype.itemsize


def make_file(file: Path, size: int) -> None:
    """Make a file of ``size`` bytes of zeros. Raises OSError when the disk cannot hold it.

    A write to a mapped page that the disk cannot hold would end the process, so the room is taken now.
    """
    with file.open("wb") as opened:
        if size and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(opened.fileno(), 0, size)
                return
            except OSError as error:
                if error.errno not in _NOT_SUPPORTED:
                    raise
        zeros = bytes(min(size, _PIECE))  # macOS has no such call, and some file systems do not support it
        for start in range(0, size, _PIECE):
            opened.write(zeros[: size - start])


def map_file(file: Path, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a tensor that maps a file of raw numbers; what is written to it reaches the file.

    Raises ValueError for a file that is missing, or not of the very size.
    """
    size = num_bytes(shape, dtype)
    if not file.exists() or file.stat().st_size != size:
        found = f"has {file.stat().st_size}" if file.exists() else "is missing"
        raise ValueError(f"{file} should have {size} bytes, but it {found}: it is damaged, or was cut off")
    if size == 0:  # nothing to map
        return torch.zeros(shape, dtype=dtype)
    return torch.from_numpy(np.memmap(file, np.uint8, "r+")).view(dtype).view(shape)
