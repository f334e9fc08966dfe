"""Types of numbers: those that columns have, those that become one of these, and their names in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

COLUMN_TYPES: Final = frozenset(
    (torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    + (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.complex64, torch.complex128)
)
"""The types of numbers that columns have: torch gathers, joins, writes and adds them all."""

WIDER: Final[Mapping[torch.dtype, torch.dtype]] = {
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
}
"""Types that torch computes little with, and the type that a column of such numbers gets."""

DTYPES: Final[Mapping[str, torch.dtype]] = {
    str(kind).removeprefix("torch."): kind for kind in COLUMN_TYPES | WIDER.keys()
}
"""The types of numbers that files may hold, by torch's word: no other name that a file holds is looked up."""
