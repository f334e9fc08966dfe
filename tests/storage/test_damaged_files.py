"""Files of rows that are damaged, or are no files of rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

from nodeflow import storage


@pytest.mark.skipif(
    np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 on this machine"
)
def test_numbers_that_torch_does_not_know_are_named(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 2), np.longdouble))
    with pytest.raises(ValueError, match=r"x\.npy has numbers of type"):
        storage.open(tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.npy", "x.safetensors", "x.raw"])
def test_a_pipe_is_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    options: dict[str, Any] = {"shape": (1, 1), "dtype": torch.float32} if name == "x.raw" else {}
    with pytest.raises(ValueError, match=f"{name}.*it is a pipe or a device"):
        storage.open(tmp_path / name, **options)


@pytest.mark.parametrize("part", ["indptr", "indices", "values"])
def test_a_flipped_bit_of_sparse_rows_is_found(tmp_path, part):
    storage.save_sparse(tmp_path / "x", torch.eye(5).to_sparse_csr())
    (file,) = (tmp_path / "x").glob(f"*{part}*")
    data = bytearray(file.read_bytes())
    data[-3] ^= 16
    file.write_bytes(data)
    with pytest.raises(ValueError, match=file.name):
        storage.open(tmp_path / "x")
    if part != "values":  # which no loop relies on
        with pytest.raises(ValueError, match=file.name):
            storage.open(tmp_path / "x", verify=False)
