"""Files: the arrays of a history in a folder, which may be larger than memory."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

_FORMAT = 1
_POINTER, _DESCRIPTION, _OPEN = "current", "history.json", "commit-begun"
_PIECE = 2**20  # bytes written at a time
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]


class Files:
    """Named arrays in a folder, memory-mapped. A whole new set can replace the old one at once.

    Args:
        folder: made when missing. Files that are there must be of the same propagation and arrays, else ValueError.
        shapes: by name, the shape and dtype of every array.
        propagation: the hash of the propagation whose history the arrays are.

    Raises ValueError for a folder of something else, a file of the wrong size, or a commit that was interrupted;
    OSError when the disk cannot hold the arrays, which leaves the folder as it was.
    """

    def __init__(self, folder: Path, shapes: Shapes, propagation: int) -> None:
        self.folder, self.shapes = folder, dict(shapes)
        arrays = {name: [list(shape), str(kind)] for name, (shape, kind) in shapes.items()}
        description = {"format": _FORMAT, "propagation": propagation, "arrays": arrays}
        if (folder / _POINTER).exists():
            try:
                known = json.loads((folder / _DESCRIPTION).read_text())
            except (OSError, ValueError):
                raise ValueError(
                    f"{folder / _DESCRIPTION} is damaged or missing, so the owner of the rows is unknown"
                ) from None
            wrong = [name for name in description if known.get(name) != description[name]]
            if wrong:
                what = {"propagation": "of another graph, edge weights, direction or filter"}.get(
                    wrong[0], f"with {wrong[0]} {known.get(wrong[0])}, not {description[wrong[0]]}"
                )
                raise ValueError(f"{folder} holds a history {what}; choose another folder, or delete that one")
            if (folder / _OPEN).exists():
                raise ValueError(
                    f"{folder}: writing a commit was interrupted, so its rows may be of two steps; delete the folder "
                    "and fill the history anew"
                )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise ValueError(f"{folder} holds other files; a history needs a folder of its own")
            (folder / _DESCRIPTION).write_text(json.dumps(description))
            try:
                self._point_to(self._make("0"))
            except OSError:
                (folder / _DESCRIPTION).unlink()
                raise
        self.arrays = self._map((folder / _POINTER).read_text())

    def begin(self) -> None:
        """Mark that rows are being written. If the process ends before ``end``, the next opening finds the mark."""
        (self.folder / _OPEN).touch()

    def end(self) -> None:
        """Remove the mark of ``begin``: all rows are written."""
        (self.folder / _OPEN).unlink()

    def successor(self) -> tuple[str, dict[str, Tensor]]:
        """Make a second set of arrays, all zeros. Return its name and the arrays."""
        name = str(int((self.folder / _POINTER).read_text()) + 1)
        shutil.rmtree(self.folder / name, ignore_errors=True)  # of a pass that did not end
        return self._make(name), self._map(name)

    def replace(self, name: str) -> None:
        """Replace the present set by the set ``name``."""
        old = (self.folder / _POINTER).read_text()
        self._point_to(name)
        self.arrays = self._map(name)
        shutil.rmtree(self.folder / old, ignore_errors=True)

    def _make(self, name: str) -> str:
        path = self.folder / name
        path.mkdir()
        try:
            for array, (shape, dtype) in self.shapes.items():
                make_file(path / array, num_bytes(shape, dtype))
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            total = sum(num_bytes(*value) for value in self.shapes.values())
            raise OSError(
                error.errno, f"{os.strerror(error.errno or 0)}: a history of {total:,} bytes", str(path)
            ) from None
        return name

    def _point_to(self, name: str) -> None:
        draft = self.folder / (_POINTER + ".new")
        draft.write_text(name)
        os.replace(draft, self.folder / _POINTER)

    def _map(self, name: str) -> dict[str, Tensor]:
        return {array: map_file(self.folder / name / array, *kind) for array, kind in self.shapes.items()}


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
