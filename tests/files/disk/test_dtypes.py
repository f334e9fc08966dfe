"""Types of numbers that a manifest may name: those of a table, and nothing that a name of torch
happens to be.
"""

from __future__ import annotations

import warnings

import pytest
import torch

from nodeflow._core.base.dtypes import DTYPES
from nodeflow._core.rows.columns import as_column
from nodeflow._files.disk.arrays import ArrayFile, numpy_type


@pytest.mark.parametrize(
    "name",
    [
        "half",
        "double",
        "qint8",
        "float4_e2m1fn_x2",
        "complex32",
        "float8_e5m2",
        "Tensor",
        "load",
        "",
    ],
)
def test_no_other_name_is_looked_up(name):
    with pytest.raises(ValueError, match="is said to hold"):
        ArrayFile.of({"file": "x.npy", "dtype": name, "shape": [1], "checksum": 0})


def test_all_types_that_are_written_are_in_the_table():
    kinds = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    for kind in kinds:
        try:
            with warnings.catch_warnings(action="ignore"):
                written = as_column(torch.ones(1, dtype=kind), "x").dtype
        except (
            TypeError,
            RuntimeError,
        ):  # no column has it; also NotImplementedError: a type without numbers
            continue
        assert DTYPES[str(written).removeprefix("torch.")] is written
        numpy_type(written)
    assert set(DTYPES.values()) <= kinds
