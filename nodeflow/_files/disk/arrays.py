"""Arrays in ``.npy`` files: made with disk space allocated at once, opened as maps, described with
a checksum.
"""

from __future__ import annotations

import ast
import errno
import math
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path, PureWindowsPath
from typing import IO, Any, BinaryIO, Literal

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count, as_flag, blaming
from nodeflow._core.base.dtypes import DTYPES
from nodeflow._core.base.types import Array
from nodeflow._core.rows.csr import csr_tensor
from nodeflow._core.rows.narrow import KINDS, Coding, NarrowRows
from nodeflow._core.rows.rows import Rows, as_array, from_numpy
from nodeflow._core.runtime import process

_PIECE = 2**22  # bytes read or written at a time
_PAGE = 4096  # bytes of a header
# bytes that a header has at most: a table of three short entries and blanks
_HEADER = 10_000
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


@dataclass(frozen=True)
class ArrayFile:
    """An array as a manifest describes it: its file, the type of its numbers in torch's words,
    shape and CRC-32.

    The checksum covers the whole file. bfloat16, which numpy does not know, lies in the file as
    uint16. A sparse column ``[n, width]`` lies in three files: ``csr`` describes the arrays indptr
    and indices of its CSR matrix, and ``file`` has the values. Of narrow rows ``file`` has the
    codes, and ``narrow`` describes the table of their columns beside it, and the shape of a row.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    checksum: int
    csr: tuple[ArrayFile, ArrayFile] | None = None
    narrow: tuple[ArrayFile, tuple[int, ...]] | None = None

    @classmethod
    def of(cls, facts: dict[str, Any]) -> ArrayFile:
        """Return the description that ``facts`` made; raises TypeError or ValueError for anything
        else.
        """
        csr = facts.get("csr")
        if csr is not None:
            indptr, indices = map(cls.of, csr)
            csr = indptr, indices
        sizes = sizes_of(facts["shape"])
        narrow = facts.get("narrow")
        if narrow is not None:
            narrow = cls.of(narrow["columns"]), sizes_of(narrow["row"])
        array = cls(**{**facts, "shape": sizes, "csr": csr, "narrow": narrow})
        # which has the drives and separators of every system
        place = PureWindowsPath(array.file)
        if place.anchor or ".." in place.parts or "\0" in array.file:
            raise ValueError(f"the file {array.file!r} lies outside of the folder")
        as_count(array.checksum, "a checksum")
        is_known = array.dtype in DTYPES and not _is_huge(sizes)
        if csr is not None:
            is_known &= [len(part.shape) for part in (array, *csr)] == [2, 1, 1]
        if narrow is not None:
            is_codes = array.dtype in KINDS and len(sizes) == 2 and csr is None
            is_known &= is_codes and narrow[0].dtype == "float32"
        if not is_known:
            raise ValueError(f"{array.file} is said to hold {array.dtype} {array.shape}")
        return array

    def facts(self) -> dict[str, Any]:
        """Return the description as JSON has it."""
        facts = {
            "file": self.file,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "checksum": self.checksum,
        }
        if self.narrow is not None:
            columns, row = self.narrow
            facts["narrow"] = {"columns": columns.facts(), "row": list(row)}
        elif self.csr is not None:
            facts["csr"] = [part.facts() for part in self.csr]
        return facts

    @property
    def plain(self) -> list[ArrayFile]:
        """The arrays in its files: itself; indptr, indices, values of sparse rows; codes and table
        of narrow ones.
        """
        if self.narrow is not None:
            return [replace(self, narrow=None), self.narrow[0]]
        if self.csr is None:
            return [self]
        return [*self.csr, replace(self, shape=self.csr[1].shape, csr=None)]

    @property
    def torch_type(self) -> torch.dtype:
        return DTYPES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return sum(math.prod(array.shape) * array.torch_type.itemsize for array in self.plain)


def sizes_of(numbers: Sequence[Any]) -> tuple[int, ...]:
    """Return the sizes of a shape; raises TypeError or ValueError for anything else."""
    return tuple(as_count(size, "a size") for size in numbers)


def numpy_type(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the type that numbers of ``dtype`` have in a file: unsigned integers where numpy does
    not know it.
    """
    return as_array(torch.empty(0, dtype=dtype)).dtype


def create_array(
    file: Path, dtype: np.dtype[Any] | type, shape: tuple[int, ...]
) -> np.memmap[Any, Any]:
    """Make a ``.npy`` file of zeros and return a map of it that can be written.

    Disk space is allocated now: a write to a mapped page that the disk cannot hold would end the
    process. Raises OSError where the disk cannot hold it; then there is no file.
    """
    # The file gets its name when its room is taken, so that none is left that cannot be written.
    with making(file.parent), replacing(file) as draft, draft.open("wb") as opened:
        write_header(opened, np.dtype(dtype), shape)
        opened.flush()
        take_room(opened.fileno(), opened.tell(), math.prod(shape) * np.dtype(dtype).itemsize)
    return map_file(file, "r+")


def write_header(opened: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Write the header of a ``.npy`` file, padded to a page: rows of whole blocks of the disk begin
    with a block.
    """
    facts = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    begin = np.lib.format.magic(2, 0)
    size = _PAGE - len(begin) - 4
    opened.write(begin + size.to_bytes(4, "little") + f"{facts!r}".ljust(size - 1).encode() + b"\n")


def scratch_array(folder: Path, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of zeros that maps a file without a name, which is gone with the tensor or
    the process.

    Raises OSError where the disk cannot hold it.
    """
    kind = numpy_type(dtype)
    with (
        making(folder),
        naming(folder),
        tempfile.TemporaryFile(prefix=".scratch-", dir=folder) as opened,
    ):
        if 0 in shape:  # nothing to map
            return torch.zeros(shape, dtype=dtype)
        take_room(opened.fileno(), 0, math.prod(shape) * kind.itemsize)
        return from_numpy(np.memmap(opened, kind, "r+", 0, shape), dtype)


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Make a folder with its parents; those that were missing are removed again, if empty, where
    the block fails.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for place in missing:
            with suppress(OSError):  # one that is not empty, or was not made
                place.rmdir()
        raise


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield where a file is written first: it gets its name when the block ends, and until then an
    older one stays.

    If the block fails, the draft is removed; that of a killed process is overwritten by the next
    one.
    """
    draft = draft_of(path)
    try:
        with naming(path):
            yield draft
            draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def draft_of(path: Path) -> Path:
    """Return where ``replacing`` writes a file first; a killed process may leave it."""
    return path.with_name(f".{path.name}.unfinished")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a path in an OSError of the system that names none, as those of writes to a full
    disk.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def take_room(descriptor: int, start: int, size: int) -> None:
    """Fill a file with ``size`` bytes of zeros from ``start``; raises OSError where the disk cannot
    hold them.
    """
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, start, size)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    # macOS has no such call, and some file systems do not support it
    os.lseek(descriptor, start, os.SEEK_SET)
    zeros = bytes(min(size, _PIECE))
    while size > 0:
        size -= os.write(descriptor, zeros[:size])


def read_header(file: Path) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return the type and shape of the array in a ``.npy`` file, and the byte where its numbers
    begin.

    Raises ValueError for a file that is something else, that was cut off, or whose array is in
    Fortran order or holds anything but numbers; FileNotFoundError.
    """
    with open_file(file) as opened:
        dtype, shape, fortran = header_of(opened, os.fstat(opened.fileno()).st_size)
        start = opened.tell()
    if dtype.kind not in "biufc":
        raise ValueError(f"its array has dtype {dtype}, not numbers")
    if fortran and len(shape) > 1:
        raise ValueError("its array is in Fortran order, so that a row does not lie in one place")
    return dtype, shape, start


def header_of(opened: FileIO | IO[bytes], size: int) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Read the header of a ``.npy`` file of ``size`` bytes: type and shape of its array, and
    whether that is in Fortran order; ValueError as for ``read_header``.
    """
    begin = opened.read(8)
    width = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}.get(begin)
    if width is None:
        raise ValueError(f"it begins with {begin!r}, not as a .npy file of version 1.0 or 2.0")
    length = int.from_bytes(opened.read(width), "little")
    if length > _HEADER:
        raise ValueError(f"its header has {length} bytes")
    text = opened.read(length)
    if len(text) < length or b"\\" in text or b"\0" in text:
        raise ValueError("its header is no table")
    # not by numpy, which takes minutes for the headers of some damaged files, and lets pass what it
    # does not expect
    damage = (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError)
    with blaming("its header cannot be read", *damage), process.syntax_lock:
        words = ast.literal_eval(text.decode())
        fortran = as_flag(words["fortran_order"], "fortran_order")
        shape = sizes_of(words["shape"])
        dtype = np.lib.format.descr_to_dtype(words["descr"])
    if _is_huge(shape):
        raise ValueError(f"its header says that it has the shape {list(shape)}")
    expected = opened.tell() + math.prod(shape) * dtype.itemsize
    if size != expected and not dtype.hasobject:  # whose size no header says
        raise ValueError(
            f"it has {size:,} bytes, but an array {dtype} {list(shape)} takes {expected:,}"
        )
    return dtype, shape, fortran


def open_file(file: Path) -> FileIO:
    """Open a file for reading, without a buffer; raises ValueError for a pipe or a device, which
    might never end.
    """
    # the pipe would be waited for already when it is opened
    opened = open(  # noqa: SIM115
        file,
        "rb",
        0,
        opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0)),
    )
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise ValueError("it is a pipe or a device, not a file")
    return opened


def _is_huge(shape: Sequence[int]) -> bool:
    """Whether no array has this shape, not even one without numbers."""
    return math.prod(max(size, 1) for size in shape) >= 2**59


def checksum(file: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    piece = bytearray(_PIECE)
    with open_file(file) as opened:
        while size := opened.readinto(piece):
            value = zlib.crc32(memoryview(piece)[:size], value)
    return value


def check_array(folder: Path, array: ArrayFile) -> None:
    """Raise ValueError unless files hold an array of the type and shape that its description
    says.
    """
    for plain in array.plain:
        path = folder / plain.file
        try:
            dtype, shape, _ = read_header(path)
        except FileNotFoundError:
            raise ValueError(
                f"{path} is missing: the folder is damaged, or was not copied whole"
            ) from None
        except (ValueError, IsADirectoryError) as error:
            raise ValueError(
                f"{path} is damaged, was cut off or is no .npy file: {error}"
            ) from None
        if dtype != numpy_type(plain.torch_type) or shape != plain.shape:
            raise ValueError(
                f"{path} holds {dtype} {list(shape)}, but the manifest says {plain.dtype} "
                f"{list(plain.shape)}"
            )


def map_array(folder: Path, array: ArrayFile, mode: Literal["r", "r+"] = "r") -> Array:
    """Return the array of a file, mapped, read-only unless the mode is "r+"; bfloat16 as uint16."""
    return map_file(folder / array.file, mode)


def map_file(file: Path, mode: Literal["r", "r+"] = "r") -> np.memmap[Any, Any]:
    """Return the array of a ``.npy`` file of numbers, mapped; raises as ``read_header`` does."""
    dtype, shape, start = read_header(file)
    if 0 in shape:  # nothing to map
        return np.zeros(shape, dtype).view(np.memmap)
    return np.memmap(file, dtype, mode, start, shape)


def map_column(folder: Path, array: ArrayFile) -> Tensor | Rows:
    """Return the column of an array, mapped read-only; raises ValueError for a damaged coding."""
    return narrow_column(folder, array, map_tensor(folder, array))


def narrow_column(folder: Path, array: ArrayFile, stored: Tensor | Rows) -> Tensor | Rows:
    """Return the column of an array, whose stored rows are ``stored``; see ``map_column``."""
    if array.narrow is None:
        return stored
    columns, row = array.narrow
    table = torch.tensor(map_array(folder, columns))
    coding = Coding(array.dtype, row, table)
    with blaming(f"{folder / columns.file} is damaged", ValueError):
        coding.check(array.shape)
    return NarrowRows(stored, coding)


def map_tensor(folder: Path, array: ArrayFile) -> Tensor:
    """Return the tensor of an array, or the sparse CSR tensor of three, mapped read-only; of narrow
    rows, the codes.

    It pickles as the names of its files. ``Manifest.read`` has seen that the arrays of sparse rows
    fit one another.
    """
    tensors = [from_numpy(map_array(folder, plain), plain.torch_type) for plain in array.plain]
    if array.csr is None:
        return tensors[0]
    indptr, indices, values = tensors
    rows, width = array.shape
    return csr_tensor(indptr, indices, values, (rows, width))
