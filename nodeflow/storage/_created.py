"""Arrays in files that a program writes itself, such as the outputs of all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from nodeflow._base.checks import as_count, check_type, describe
from nodeflow._base.types import FileLike
from nodeflow._disk.arrays import create_array, numpy_type
from nodeflow._rows.rows import from_numpy


def create(path: FileLike, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    """Make a file ``.npy`` of zeros and return a tensor that maps it: what is written to it reaches the file.

    It may be larger than memory. ``FlowModel.inference(..., out=)`` writes into it, and ``numpy.load`` reads the file.

    Args:
        path: the file, whose name ends in ``.npy``.
        shape: shape of the array.
        dtype: type of its numbers. bfloat16, which numpy does not know, lies in the file as uint16.

    Raises FileExistsError for a file that exists, ValueError for another ending or a wrong shape, OSError where the
    disk cannot hold the array.

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
    sizes = tuple(as_count(size, "a size in shape") for size in shape)
    if file.exists():
        raise FileExistsError(f"{file} exists; remove it, or choose another path")
    return from_numpy(create_array(file, numpy_type(dtype), sizes), dtype)
