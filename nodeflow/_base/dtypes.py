"""Types of numbers by their names in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

DTYPES: Final[Mapping[str, torch.dtype]] = {
    str(kind).removeprefix("torch."): kind
    for kind in (torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    + (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
    + (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu)
    + (torch.complex64, torch.complex128)
}
"""The types of numbers that columns may have, by torch's word: no other name that a file holds is looked up."""
