"""Reading plain files safely: no pickles, and errors that name the file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import LARGEST, Ints, first_true
from nodeflow._base.sizes import check_memory
from nodeflow._base.types import Array, FileLike
from nodeflow._text.table import reading


def existing_folder(path: FileLike, layout: str) -> Path:
    """Return ``path`` as a Path; raises FileNotFoundError or NotADirectoryError, with ``layout`` as what to do."""
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}; expected {layout}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; expected {layout}")
    return folder


def load_array(path: Path) -> Array:
    """Return the array of a ``.npy`` file of numbers."""
    with reading(path, "a .npy file of numbers"), path.open("rb") as file:
        if file.peek(2)[:2] == b"PK":
            raise ValueError("it is an archive of several arrays")
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
    for name, array in arrays.items():
        if array.dtype.itemsize > 8 and array.dtype.kind == "f":
            raise ValueError(f"{path}, array {name!r}, holds {array.dtype}, which torch does not have; use float64")
    return {name: _numbers(array, f"{path}, array {name!r},") for name, array in arrays.items()}


def load_sparse(path: Path) -> Any:
    """Return the matrix of a ``.npz`` file written by ``scipy.sparse.save_npz``, its indices checked."""
    import scipy.sparse

    with reading(path, "a sparse matrix as scipy.sparse.save_npz writes it"), path.open("rb") as file:
        _check_members(file)
        matrix: Any = scipy.sparse.load_npz(file)
        if matrix.ndim != 2:
            raise ValueError(f"it has the shape {matrix.shape}")
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        _numbers(matrix.data, str(path))
    check_room(8 * matrix.shape[0], f"{path}: a matrix {list(matrix.shape)}")
    return matrix


def as_float32(numbers: Array, where: str) -> Array:
    """Return an array as float32; raises ValueError for the first number that would become infinite."""
    with np.errstate(over="ignore"):
        values = numbers.astype(np.float32, copy=False)
    if (at := first_true(np.ravel(np.isinf(values) & ~np.isinf(numbers)))) is not None:
        raise ValueError(f"{where} holds {np.ravel(numbers)[at]} in entry {at}, beyond the largest float32")
    return values


def check_room(size: int, what: str) -> None:
    """Raise ValueError where ``what`` of a data set takes more bytes than the memory of this machine."""
    check_memory(size, what, "nodeflow build makes a graph folder, whose columns stay in its files")


def _check_size(file: IO[bytes], size: int) -> None:
    """Raise ValueError unless a ``.npy`` file of ``size`` bytes holds what its header says; nothing is allocated."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it has version {version} of the .npy format, which is for arrays with names of columns")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    expected = file.tell() + math.prod(shape) * dtype.itemsize
    words = f"an array {dtype} {list(shape)}"
    if not dtype.hasobject:  # which numpy refuses
        if expected != size:
            raise ValueError(f"it has {size:,} bytes, but {words} takes {expected:,}")
        check_room(size, words)


def _check_members(file: IO[bytes]) -> None:
    """Raise ValueError unless each array of an ``.npz`` file is as large as it says, and all fit into memory."""
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no archive of arrays")
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            with archive.open(member) as array:
                _check_size(array, member.file_size)
        check_room(sum(member.file_size for member in archive.infolist()), "all its arrays together")
    file.seek(0)


def integers(array: Array, where: str, what: str) -> Ints:
    """Return ``array`` as int64 ``[n]``; raises ValueError when it is not a row of integers."""
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        hint = "; ids of a mask are numpy.flatnonzero(mask)" if array.dtype.kind == "b" else ""
        raise ValueError(
            f"{where} must hold {what}: integers in one dimension, got {array.dtype} of shape {array.shape}{hint}"
        )
    return array.astype(np.int64)


def ids_below(size: int, array: Array, where: str, what: str = "ids of nodes,") -> Ints:
    """Return ``array`` as int64 ids; raises ValueError with the first that is not in ``[0, size)``."""
    words = f"{what} from 0 to {size - 1}"
    ids = integers(array, where, words)
    if (at := first_true((ids < 0) | (ids >= size))) is not None:
        raise ValueError(f"{where} must hold {words}, but entry {at} is {ids[at]}")
    return ids


def split_of(arrays: dict[str, Array], num_nodes: int) -> list[Ints]:
    """Return the parts of a split, given by the names of their files, as int64 node ids.

    Raises ValueError for what is no node, and for a node that is twice in one part, or in two parts.
    """
    owner = np.full(num_nodes, -1, dtype=np.int8)
    names, parts = list(arrays), []
    for number, (name, array) in enumerate(arrays.items()):
        ids = ids_below(num_nodes, array, name)
        taken = ids[owner[ids] >= 0]
        if len(taken):
            other = names[owner[taken[0]]]
            raise ValueError(f"{name} holds node {taken[0]}, which {other} holds too; remove it from one")
        owner[ids] = number
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"{name} holds node {values[counts.argmax()]} {counts.max()} times; keep it once")
        parts.append(ids)
    return parts


def labelled_split(
    parts: list[Ints] | None, where: str, label: Tensor | None, num_nodes: int, names: Sequence[str] | None = None
) -> list[Tensor]:
    """Return a split of nodes; None splits those with a label at random, always the same way: 1/2, 1/4, 1/4.

    Raises ValueError, which names the file or folder ``where``, for a training node without label.
    """
    labelled = np.zeros(num_nodes, np.bool_) if label is None else has_label(label).numpy()
    if parts is None:
        nodes = np.flatnonzero(labelled)
        order = np.random.default_rng(0).permutation(len(nodes))
        half, quarter = len(nodes) // 2, len(nodes) // 4
        parts = [nodes[np.sort(chosen)] for chosen in np.split(order, [half, half + quarter])]
    elif label is not None and label.ndim == 1 and len(bare := parts[0][~labelled[parts[0]]]):
        node = bare[0] if names is None else repr(names[bare[0]])
        raise ValueError(f"{where} holds node {node} for training, which has no label; take it out")
    return [torch.from_numpy(part) for part in parts]


def has_label(labels: Tensor) -> Tensor:
    """Return whether each node has a label, bool ``[num_nodes]``."""
    if labels.ndim == 2:
        return (labels > 0).any(1)
    return ~labels.isnan() if labels.is_floating_point() else labels >= 0


def label_column(label: Tensor, where: str) -> tuple[Tensor, int]:
    """Return a column of labels in the types of ``Dataset``, and the number of classes; ValueError for another one."""
    if label.layout != torch.strided or label.ndim not in (1, 2) or label.is_complex():
        raise ValueError(f"{where} must have one number, or one row, per node")
    if label.ndim == 2:
        return label.float(), label.shape[1]
    if label.is_floating_point():
        return label.float(), 0
    return class_column(label.long().numpy(), where)


def class_column(numbers: Ints, where: str) -> tuple[Tensor, int]:
    """Return the column ``label`` of class numbers, and the number of classes; ValueError for a number below -1."""
    if (at := first_true(numbers < -1)) is not None:
        raise ValueError(f"{where} must hold labels from 0, or -1 for none, but node {at} has {numbers[at]}")
    return torch.from_numpy(numbers), int(numbers.max(initial=-1)) + 1


def _numbers(array: Array, where: str) -> Array:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{where} must hold integers, floats or bools, got dtype {array.dtype}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > LARGEST:
        raise ValueError(f"{where} holds {array.max()}, beyond the largest 64-bit signed integer")
    # torch computes little with unsigned integers wider than a byte, and nothing with another machine's byte order
    dtype = (
        np.dtype(np.int64) if array.dtype.kind == "u" and array.dtype.itemsize > 1 else array.dtype.newbyteorder("=")
    )
    return array.astype(dtype, copy=False)
