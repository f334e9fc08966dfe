"""The undo journal of a store: rows as they were before a commit, in a mapped file that is used
again and again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.types import Array
from nodeflow._core.rows.rows import row_bytes
from nodeflow._files.disk.arrays import replacing, take_room

_MAGIC = int.from_bytes(b"undorows", "little")
# blocks begin at multiples of it, so that every type of number is aligned
_LINE = 64
_MARK, _SUM, _INDEX, _KIND = range(4)  # words of the first line
_LEAST = 2**16


class Journal:
    """Rows to be put back if a commit does not end.

    The first line of the file has four words: a mark, which is the number of bytes that follow or
    0, their checksum, the length of the index, and the kind of file. Then come the index as JSON,
    ``[[name, number of rows], ...]``, and for every entry its ids and its old rows. The mark is
    written last and removed first: a killed process has written to mapped memory in order, so it
    says whether all old rows are there. The checksum, the sum of all 64-bit words, finds pages that
    a power cut kept from the disk, which CRC-32 would do at the cost of a second commit.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._map()

    @property
    def marked(self) -> bool:
        """Whether the journal holds rows to be put back."""
        # another store of this process created or removed the file
        if self._number != _number_of(self._file):
            self._map()
        return bool(len(self._words) and self._words[_MARK])

    def record(self, arrays: Mapping[str, Tensor], ids: Sequence[tuple[str, Tensor]]) -> None:
        """Copy the rows ``ids`` of arrays into the file, and mark it unless that raises OSError or
        IndexError.
        """
        if self.marked:
            raise RuntimeError(
                f"{self._file} holds rows of a commit that did not end; undo it first"
            )
        index = json.dumps([[name, len(which)] for name, which in ids]).encode()
        end = _aligned(_LINE + len(index))
        places = []
        for name, which in ids:
            after = _aligned(end + which.nbytes)
            places.append((end, after))
            end = _aligned(after + len(which) * row_bytes(arrays[name]))
        self._grow(end)
        self._memory[_LINE : _LINE + len(index)] = np.frombuffer(index, np.uint8)
        for (name, which), (first, after) in zip(ids, places, strict=True):
            self._block(first, torch.int64, which.shape).copy_(which)
            array = arrays[name]
            torch.index_select(
                array, 0, which, out=self._block(after, array.dtype, (len(which), *array.shape[1:]))
            )
        # The old rows are in place; these words say where, and are nothing without the mark.
        self._words[_INDEX] = len(index)
        self._words[_KIND] = _MAGIC
        self._words[_SUM] = self._sum(end)
        # The mark comes last: a killed process leaves either no mark or a complete journal.
        self._words[_MARK] = end

    def undo(self, arrays: Mapping[str, Tensor]) -> None:
        """Put the old rows back, if the journal is marked, and remove the mark; ValueError where it
        is not complete.
        """
        if not self.marked:
            return
        end = int(self._words[_MARK])
        length = int(self._words[_INDEX])
        is_whole = (
            _LINE <= end <= len(self._memory) and end % _LINE == 0 and self._words[_KIND] == _MAGIC
        )
        if not is_whole or self._words[_SUM] != self._sum(end):
            raise ValueError(
                f"{self._file} is damaged, as by a power cut: the rows of a commit that did not "
                "end cannot be put back and are partly those after it; take the folder of a "
                "backup, or remove the journal to go on with them"
            )
        try:
            self._put_back(arrays, length)
        except (ValueError, TypeError, KeyError, IndexError, RuntimeError, OverflowError) as error:
            raise ValueError(f"{self._file} is damaged or foreign: {error!r}") from None
        self.erase()

    def _put_back(self, arrays: Mapping[str, Tensor], length: int) -> None:
        # Rows are put back in the order in which they were kept, whatever the arrays are called.
        place = _aligned(_LINE + length)
        for name, count in json.loads(self._memory[_LINE : _LINE + length].tobytes()):
            array = arrays[name]
            ids = self._block(place, torch.int64, (count,))
            place = _aligned(place + ids.nbytes)
            array.index_copy_(0, ids, self._block(place, array.dtype, (count, *array.shape[1:])))
            place = _aligned(place + count * row_bytes(array))

    def erase(self) -> None:
        if len(self._words):
            self._words[_MARK] = 0

    def close(self) -> None:
        """Remove the file, unless it is marked."""
        if not self.marked:
            self._unmap()
            # where a map keeps the file, another store of this process goes on with it
            with suppress(PermissionError):
                self._file.unlink(missing_ok=True)

    def _unmap(self) -> None:
        """Let go of the file: some systems neither replace nor remove one that is mapped."""
        self._memory: Array = np.zeros(0, np.uint8)
        self._words = self._memory.view(np.int64)

    def _map(self) -> None:
        self._unmap()
        self._number = _number_of(self._file)
        if self._number is not None and self._file.stat().st_size >= _LINE:
            self._memory = np.asarray(np.memmap(self._file, np.uint8, "r+"))
        self._words = self._memory[:_LINE].view(np.int64)

    def _grow(self, size: int) -> None:
        if size <= len(self._memory):
            return
        try:
            # a file with all its disk space replaces the old one: a write to a map that lacks space
            # kills the process
            with replacing(self._file) as draft:
                with draft.open("wb") as opened:
                    take_room(opened.fileno(), 0, max(_LEAST, _aligned(size + size // 4)))
                self._unmap()
        finally:
            self._map()

    def _block(self, start: int, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
        size = math.prod(shape) * dtype.itemsize
        return torch.from_numpy(self._memory[start : start + size]).view(dtype).view(*shape)

    def _sum(self, end: int) -> np.int64:
        with np.errstate(over="ignore"):
            return np.add.reduce(self._memory[_LINE:end].view(np.int64)) + self._words[_INDEX]  # type: ignore[no-any-return]


def _number_of(file: Path) -> int | None:
    """Return the inode number of a file; None if it does not exist."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE
