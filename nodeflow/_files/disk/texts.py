"""Lists of texts in two arrays: UTF-8 bytes, and where each text ends. They are read on access."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch

from nodeflow._core.base.checks import Ints, as_index
from nodeflow._core.base.types import Array
from nodeflow._core.runtime.mapped import FilePart, part_of_file
from nodeflow._files.disk.arrays import ArrayFile, map_array
from nodeflow._files.disk.streams import ArrayWriter

_TEXTS = 2**16  # texts written at a time


class Texts(Sequence[str]):
    """Texts of a folder, mapped: opened at once, read one by one, pickled by the names of their
    files.

    ``data`` are the bytes of all texts, uint8, and ``ends`` where each of them ends, int64.
    """

    __slots__ = ("_data", "_ends")

    def __init__(self, data: Array, ends: Ints) -> None:
        self._data = data
        self._ends = ends

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            places = index.indices(len(self))
            return tuple(self[i] for i in range(*places))
        i = as_index(index, "index", len(self))
        begin = self._ends[i - 1] if i else 0
        return bytes(self._data[begin : self._ends[i]]).decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._ends)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = [*map(repr, self[:3]), *["..."][: len(self) > 3]]
        return f"Texts({len(self)}: {', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, tuple(part_of_file(array) or array for array in (self._data, self._ends))


def _opened(*parts: FilePart | Array) -> Texts:
    return Texts(*(part.open() if isinstance(part, FilePart) else part for part in parts))


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> dict[str, ArrayFile]:
    """Write texts and return the descriptions of their arrays, ``name`` and ``name.ends``."""
    end = 0
    remaining = iter(texts)
    data = ArrayWriter(folder / f"{name}.npy", torch.uint8)
    ends = ArrayWriter(folder / f"{name}.ends.npy", torch.int64)
    while piece := [text.encode("utf-8", "surrogatepass") for text in islice(remaining, _TEXTS)]:
        data.append(np.frombuffer(b"".join(piece), np.uint8))
        stops = end + np.cumsum(list(map(len, piece)))
        ends.append(stops)
        end = int(stops[-1])
    return {name: data.finish(), f"{name}.ends": ends.finish()}


def map_texts(folder: Path, arrays: Mapping[str, ArrayFile], name: str) -> Texts | None:
    """Return the texts ``name`` of a folder, None where it has none; raises ValueError for arrays
    that do not fit.
    """
    if name not in arrays:
        return None
    if f"{name}.ends" not in arrays:
        raise ValueError(
            f"{folder} has texts {name!r}, but not where they end: its manifest is damaged"
        )
    data = map_array(folder, arrays[name])
    ends = map_array(folder, arrays[f"{name}.ends"])
    last = int(ends[-1]) if len(ends) else 0
    if ends.dtype != np.int64 or data.dtype != np.uint8 or last != len(data):
        raise ValueError(
            f"{folder}: the texts {name!r} do not end where their bytes end; the folder is damaged"
        )
    return Texts(data, ends)
