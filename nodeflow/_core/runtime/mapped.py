"""Memory-mapped files: which file an array lies in, and its name in place of its contents in a
pickle.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from nodeflow._core.base.types import Array

# A tensor does not know the array it was made from. While it lives it keeps that array's map alive,
# so an address found here still belongs to the map.
_read_only_maps: weakref.WeakValueDictionary[int, np.memmap[Any, Any]] = (
    weakref.WeakValueDictionary()
)


class FilePart(NamedTuple):
    """An array that lies in a file: it begins at byte ``offset`` and has no gaps."""

    file: str
    offset: int
    dtype: str
    shape: tuple[int, ...]

    def open(self) -> Array:
        """Map the array again, read-only.

        Raises FileNotFoundError where the file is missing, ValueError where it is too short.
        """
        if 0 in self.shape:  # nothing to map
            return np.zeros(self.shape, self.dtype)
        try:
            return np.memmap(self.file, self.dtype, "r", self.offset, self.shape)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no file {self.file}: the pickle names it, because an array of shape "
                f"{self.shape} was mapped from it; put the file back under this path, or pickle a "
                "copy of the array, which is stored by value"
            ) from None
        except ValueError as error:
            raise ValueError(
                f"{self.file} must hold {self.dtype} {self.shape} from byte {self.offset} on, as "
                f"it did when the pickle was made, but it cannot be mapped ({error}); put the same "
                "file back"
            ) from None


def file_of(array: object) -> np.memmap[Any, Any] | None:
    """Return the memory map that an array is, or is a view of; None for other memory."""
    # a view does not say so itself
    while isinstance(base := getattr(array, "base", None), np.ndarray):
        array = base
    return array if isinstance(array, np.memmap) else None


def part_of_file(array: Array, mapped: np.memmap[Any, Any] | None = None) -> FilePart | None:
    """Return the location of a contiguous array in its file; None for an array without a file.

    ``mapped`` is the map that the array's memory belongs to; None looks for it among the bases of
    the array.
    """
    if mapped is None:
        mapped = file_of(array)
    # "c": changes are not in the file
    if mapped is None or mapped.filename is None or mapped.mode == "c":
        return None
    # a slice keeps the offset of the whole memmap, so the offset is computed from addresses
    offset = mapped.offset + array.ctypes.data - mapped.ctypes.data
    return FilePart(str(mapped.filename), offset, array.dtype.str, array.shape)


def remember(array: Array) -> None:
    """Remember which file the memory of a tensor made from ``array`` lies in, while that memory
    lives.

    Maps that can be written are left out: a pickle of a column has its values at the time.
    """
    mapped = file_of(array)
    if mapped is not None and mapped.filename is not None and mapped.mode == "r":
        _read_only_maps[array.ctypes.data] = mapped


def find_map(address: int) -> np.memmap[Any, Any] | None:
    """Return the read-only map that a tensor shares whose storage begins at ``address``, if it
    shares one.
    """
    return _read_only_maps.get(address)
