"""Reading plain files safely: no pickles, and errors that name the file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from nodeflow._core.base.checks import LARGEST, Ints, first_true
from nodeflow._core.base.sizes import check_memory
from nodeflow._core.base.types import Array, FileLike
from nodeflow._files.disk.arrays import header_of
from nodeflow._files.text.table import reading


def existing_folder(path: FileLike, layout: str) -> Path:
    """Return ``path`` as a Path; raises FileNotFoundError or NotADirectoryError, with ``layout`` as
    what to do.
    """
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}; expected {layout}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; expected {layout}")
    return folder


def load_array(path: Path) -> Array:
    """Return the array of a ``.npy`` file of numbers."""
    with reading(path, "a .npy file of numbers"), path.open("rb") as file:
        _check_size(file, path.stat().st_size)
        file.seek(0)
        array = np.load(file, allow_pickle=False)
    return _numbers(array, str(path))


def load_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a ``.npz`` file of numbers, by name."""
    # opened here, because numpy leaves a damaged archive open when it opens it itself
    with reading(path, "a .npz file of arrays of numbers"), path.open("rb") as file:
        _check_members(file)
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    return {name: _numbers(array, f"{path}, array {name!r},") for name, array in arrays.items()}


def load_sparse(path: Path) -> Any:
    """Return the matrix of a ``.npz`` file written by ``scipy.sparse.save_npz``, its indices
    checked.
    """
    import scipy.sparse

    with (
        reading(path, "a sparse matrix as scipy.sparse.save_npz writes it"),
        path.open("rb") as file,
    ):
        _check_members(file)
        # scipy checks little when it loads: indices outside of the matrix would be read far from
        # it.
        matrix: Any = scipy.sparse.load_npz(file)
        if matrix.ndim != 2:
            raise ValueError(f"it has the shape {matrix.shape}")
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        _numbers(matrix.data, str(path))
    check_room(8 * matrix.shape[0], f"{path}: a matrix {list(matrix.shape)}")
    return matrix


def check_room(size: int, title: str) -> None:
    """Raise ValueError where ``what`` of a data set takes more bytes than the memory of this
    machine.
    """
    check_memory(
        size, title, "nodeflow build makes a graph folder, whose columns stay in its files"
    )


def _check_size(file: IO[bytes], size: int) -> None:
    """Raise ValueError unless a ``.npy`` file of ``size`` bytes holds what its header says; nothing
    is allocated.
    """
    # a damaged header may state any size, and numpy would allocate it before it reads a number
    dtype, shape, _ = header_of(file, size)
    check_room(size, f"an array {dtype} {list(shape)}")


def _check_members(file: IO[bytes]) -> None:
    """Raise ValueError unless each array of an ``.npz`` file is as large as it says, and all fit
    into memory.
    """
    # Sizes are looked at before anything is unpacked: a small file may hold an array larger than
    # memory.
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no archive of arrays")
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            with archive.open(member) as array:
                _check_size(array, member.file_size)
        check_room(
            sum(member.file_size for member in archive.infolist()), "all its arrays together"
        )
    file.seek(0)


def integers(array: Array, where: str, words: str) -> Ints:
    """Return ``array`` as int64 ``[n]``; raises ValueError when it is not a row of integers."""
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        hint = "; ids of a mask are numpy.flatnonzero(mask)" if array.dtype.kind == "b" else ""
        raise ValueError(
            f"{where} must hold {words}: integers in one dimension, got {array.dtype} of shape "
            f"{array.shape}{hint}"
        )
    return array.astype(np.int64)


def ids_below(size: int, array: Array, where: str, noun: str = "ids of nodes,") -> Ints:
    """Return ``array`` as int64 ids; raises ValueError with the first that is not in
    ``[0, size)``.
    """
    words = f"{noun} from 0 to {size - 1}"
    ids = integers(array, where, words)
    if (entry := first_true((ids < 0) | (ids >= size))) is not None:
        raise ValueError(f"{where} must hold {words}, but entry {entry} is {ids[entry]}")
    return ids


def ids_of_integers(numbers: Array, id_of: Mapping[Any, int], where: str, listed_in: str) -> Ints:
    """Return the ids of nodes whose names are integers, such as from 1 on; ValueError for an
    integer without a node.
    """
    stated = numbers.ravel().tolist()
    unlisted = next((number for number in stated if number not in id_of), None)
    if unlisted is not None:
        raise ValueError(f"{where} has node {unlisted}, which {listed_in} does not list")
    return np.array([id_of[number] for number in stated], np.int64).reshape(numbers.shape)


def _numbers(array: Array, where: str) -> Array:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{where} must hold integers, floats or bools, got dtype {array.dtype}")
    if array.dtype.itemsize > 8:
        raise ValueError(f"{where} holds {array.dtype}, which torch does not have; use float64")
    if array.dtype.kind == "u" and array.size and int(array.max()) > LARGEST:
        raise ValueError(f"{where} holds {array.max()}, beyond the largest 64-bit signed integer")
    # torch computes little with unsigned integers wider than a byte, and nothing with another
    # machine's byte order
    dtype = array.dtype.newbyteorder("=")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        dtype = np.dtype(np.int64)
    return array.astype(dtype, copy=False)
