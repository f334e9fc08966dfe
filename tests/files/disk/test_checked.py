"""Checks of the arrays of a folder: indptr, ids, and the three arrays of a sparse column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodeflow._files.disk import arrays, checked


def saved(folder: Path, name: str, values: object, dtype: str = "int64") -> arrays.ArrayFile:
    array = np.array(values, dtype)
    np.save(folder / f"{name}.npy", array)
    return arrays.ArrayFile(f"{name}.npy", dtype, array.shape, 0)


def sparse(
    folder: Path, indptr: list[int], indices: list[int], values: list[float], dtype: str = "int64"
) -> arrays.ArrayFile:
    csr = saved(folder, "indptr", indptr, dtype), saved(folder, "indices", indices, dtype)
    saved(folder, "x", values, "float32")
    return arrays.ArrayFile("x.npy", "float32", (2, 3), 0, csr)


@pytest.mark.parametrize(
    ("ends", "size", "message"),
    [
        ([0, 2, 1, 3], 3, "indptr"),
        ([1, 2, 3], 3, "indptr"),
        ([0, 2, 4], 3, "indptr"),
    ],
)
def test_ends_that_fall_or_miss_their_borders_are_found(tmp_path, ends, size, message):
    with pytest.raises(ValueError, match=rf"x\.npy.*{message}"):
        checked.check_ends(tmp_path, saved(tmp_path, "x", ends), size)
    checked.check_ends(tmp_path, saved(tmp_path, "x", [0, 0, 3]), 3)


def test_every_piece_of_ids_is_looked_at(tmp_path, small_pieces):
    small_pieces(2)
    for place in range(5):
        for wrong in (-1, 4):
            ids = np.arange(5) % 4
            ids[place] = wrong
            with pytest.raises(
                ValueError,
                match=rf"ids\.npy is damaged: ids\[{place}\] is {wrong}, but node ids go",
            ):
                checked.check_ids(tmp_path, saved(tmp_path, "ids", ids), 4)
    checked.check_ids(tmp_path, saved(tmp_path, "ids", np.arange(5) % 4), 4)
    checked.check_ids(tmp_path, saved(tmp_path, "ids", [-2, 3]), 4, lower=-2)
    with pytest.raises(ValueError, match=r"ids\[1\] is 4, but node ids go from -2 to 3"):
        checked.check_ids(tmp_path, saved(tmp_path, "ids", [-2, 4]), 4, lower=-2)
    for piece, ends in enumerate(
        ([0, -1, 1, 3, 3], [0, 2, 1, 3, 3], [0, 1, 3, 2, 3], [0, 1, 2, 4, 3])
    ):
        with pytest.raises(ValueError, match="indptr"):
            checked.check_ends(tmp_path, saved(tmp_path, f"ends{piece}", ends), 3)


def test_ids_of_another_type_or_shape_are_refused(tmp_path):
    for values, dtype in (([0.0], "float64"), ([[0]], "int64"), ([0], "int16")):
        with pytest.raises(ValueError, match=r"x\.npy must hold ids, int32 or int64, got"):
            checked.check_ids(tmp_path, saved(tmp_path, "x", values, dtype), 1)


def test_arrays_of_a_sparse_column_must_fit_one_another(tmp_path):
    checked.check_sparse(tmp_path, saved(tmp_path, "dense", [1]))
    column = sparse(tmp_path, [0, 1, 2], [2, 0], [5, 7])
    checked.check_sparse(tmp_path, column)
    assert [part.plain for part in column.plain] == [[part] for part in column.plain]
    assert [part.shape for part in column.plain] == [(3,), (2,), (2,)]
    assert arrays.map_tensor(tmp_path, column).to_dense().tolist() == [[0, 0, 5], [7, 0, 0]]
    with pytest.raises(
        ValueError, match=r"x\.npy: the arrays of a sparse column do not fit one another"
    ):
        checked.check_sparse(tmp_path, sparse(tmp_path, [0, 2], [2, 0], [5, 7]))
    with pytest.raises(
        ValueError,
        match=r"indices\.npy is damaged: indices\[1\] is 3, but column ids go from 0 to 2",
    ):
        checked.check_sparse(tmp_path, sparse(tmp_path, [0, 1, 2], [2, 3], [5, 7]))
    # what a manifest is read by, which compares all three with their description first
    with pytest.raises(ValueError, match=r"x\.npy holds float32 \[3\], but the manifest says"):
        arrays.check_array(tmp_path, sparse(tmp_path, [0, 1, 2], [2, 0], [5, 7, 9]))
    for indptr, dtype in (([1, 1, 2], "int64"), ([0, 1, 2], "int16")):
        with pytest.raises(ValueError, match=r"indptr\.npy"):
            checked.check_sparse(tmp_path, sparse(tmp_path, indptr, [2, 0], [5, 7], dtype))
