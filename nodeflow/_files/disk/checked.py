"""Contents of files: compared with their checksums, indices with their bounds, and remembered until
a file changes.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nodeflow._core.base.checks import blaming, check_indptr, check_range
from nodeflow._core.base.types import Array
from nodeflow._files.disk.arrays import ArrayFile, checksum, map_array, open_file

STAMP = ".checked"
"""File that remembers which files of a folder have been checked."""
# a later version that checks more takes another number
_CHECKS = 1
# seconds that a file must be unchanged: a later change within a tick of the clock would not be seen
_SETTLED = 2.0
_THREADS = 4
_PIECE = 2**22  # numbers that are compared at a time

State = list[int]
"""Inode, size, and the times of the last change of the contents and of the entry, in ns."""


def check_contents(
    folder: Path,
    arrays: Mapping[str, ArrayFile],
    key: str,
    verify: bool | None,
    check: Callable[[], None] | None,
) -> None:
    """Compare the files of arrays with their checksums, and call ``check``, which looks at their
    numbers.

    What was checked is remembered in a file of the folder, by size, inode and times of each file,
    so that nothing is read again until something changes; where that file cannot be written, the
    next call checks again. ``key`` stands for everything else that ``check`` depends on. ``verify``
    as for ``Manifest.read``.

    Raises ValueError, with the file, for contents that are others than when it was written, and the
    errors of ``check``.
    """
    files = {plain.file: plain.checksum for array in arrays.values() for plain in array.plain}
    # before the look: what changes during it is looked at again next time
    start = time.time_ns()
    states = {file: _state(folder / file) for file in files}
    stamp = Stamp.read(folder) if verify is not True else Stamp()
    unchanged = {
        file: value for file, (value, *state) in stamp.files.items() if states.get(file) == state
    }
    # zero checksums are those of files whose rows change
    summed = {file for file, value in files.items() if not value or unchanged.get(file) == value}
    if verify is not False:
        _compare(folder, {file: value for file, value in files.items() if file not in summed})
        summed = set(files)
    # Bounds of indices are looked at with any ``verify``: compiled loops would read outside of
    # arrays.
    if stamp.key != key or unchanged.keys() != files.keys():
        for array in arrays.values():
            check_sparse(folder, array)
        if check is not None:
            check()
    settled = {
        file: [files[file] if file in summed else None, *state]
        for file, state in states.items()
        if max(state[2:]) < start - _SETTLED * 1e9 and files[file]
    }
    new = Stamp(key, settled)
    if settled and new != stamp:
        new.write(folder)


@dataclass(frozen=True)
class Stamp:
    """What has been checked: for every file its checksum, if it was compared, and its state
    then.
    """

    key: str = ""
    files: Mapping[str, Sequence[int | None]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Stamp:
        """Return the stamp of a folder; an empty one where there is none, or one that was not
        written whole.
        """
        try:
            with open_file(folder / STAMP) as opened:
                value, _, text = opened.read().partition(b"\n")
            if int(value) != zlib.crc32(text):
                return cls()
            number, key, files = json.loads(text)
            if number == _CHECKS and all(len(facts) == 5 for facts in files.values()):
                return cls(key, files)
            return cls()
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return cls()

    def write(self, folder: Path) -> None:
        """Write the stamp where that is possible; a link is not followed."""
        text = json.dumps([_CHECKS, self.key, self.files]).encode()
        flags = (
            os.O_WRONLY
            | os.O_CREAT
            | os.O_TRUNC
            | getattr(os, "O_NOFOLLOW", 0)
            | getattr(os, "O_NONBLOCK", 0)
        )
        with suppress(OSError):
            descriptor = os.open(folder / STAMP, flags, 0o666)
            # not by a rename, which leaves drafts: a torn one is no stamp
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(b"%d\n%b" % (zlib.crc32(text), text))


def _compare(folder: Path, checksums: Mapping[str, int]) -> None:
    """Raise ValueError for the first file that has another checksum; several are read at a time."""
    # zlib lets other threads run, and a disk reads several files at once.
    with ThreadPoolExecutor(_THREADS) as pool:
        values = pool.map(lambda file: checksum(folder / file), checksums)
        for (file, expected), value in zip(checksums.items(), values, strict=True):
            if value != expected:
                raise ValueError(
                    f"{folder / file} is damaged: its contents have another checksum than when it "
                    "was written"
                )


def check_ends(folder: Path, array: ArrayFile, size: int) -> None:
    """Raise ValueError unless the numbers of a file go from 0 to ``size`` without a fall."""
    ends = _integers(folder, array)
    with blaming(f"{folder / array.file} is damaged", ValueError, IndexError):
        check_indptr(ends[[0, -1]], size)
        for start in range(0, len(ends), _PIECE):
            piece = ends[start : start + _PIECE + 1]
            if (piece[1:] < piece[:-1]).any():
                check_indptr(ends, size)


def check_ids(
    folder: Path, array: ArrayFile, upper: int, noun: str = "node", *, lower: int = 0
) -> None:
    """Raise ValueError unless all numbers of a file are in ``[lower, upper)``."""
    ids = _integers(folder, array)
    with blaming(f"{folder / array.file} is damaged", ValueError, IndexError):
        for start in range(0, len(ids), _PIECE):
            piece = ids[start : start + _PIECE]
            if piece.min() < lower or piece.max() >= upper:
                name = Path(array.file).stem.split("-")[0]
                check_range(ids[: start + _PIECE], name, upper, noun, lower=lower)


def check_sparse(folder: Path, array: ArrayFile) -> None:
    """Raise ValueError unless the files of a sparse column hold rows of it."""
    if array.csr is not None:
        indptr, indices = array.csr
        if indptr.shape != (array.shape[0] + 1,):
            raise ValueError(
                f"{folder / array.file}: the arrays of a sparse column do not fit one another"
            )
        check_ends(folder, indptr, indices.shape[0])
        check_ids(folder, indices, array.shape[1], "column")


def _integers(folder: Path, array: ArrayFile) -> Array:
    if len(array.shape) != 1 or array.dtype not in ("int32", "int64"):
        raise ValueError(
            f"{folder / array.file} must hold ids, int32 or int64, got {array.dtype} "
            f"{list(array.shape)}"
        )
    return map_array(folder, array)


def _state(file: Path) -> State:
    facts = file.stat()
    return [facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
