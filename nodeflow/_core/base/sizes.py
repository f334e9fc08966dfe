"""Amounts of memory as users write them: "256 MB"."""

from __future__ import annotations

import os
import re
from functools import cache

from nodeflow._core.base.checks import as_count, describe

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {f"{unit[0]}iB": 2 ** (10 * power) for power, unit in enumerate(_UNITS) if power}


def as_bytes(value: object, name: str, least: int = 1) -> int:
    """Return an amount of memory in bytes: an integer, or text such as "256 MB", "1.5 GB" or "64
    MiB".

    Raises TypeError for another type, ValueError for text that is none of these and for less than
    ``least``.

    >>> as_bytes("256 MB", "memory"), as_bytes("1.5 KiB", "memory"), as_bytes(4096, "memory")
    (256000000, 1536, 4096)
    """
    if not isinstance(value, str):
        return as_count(value, name, least)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", value)
    if match is None or match[2] not in _UNITS:
        units = ", ".join(_UNITS)
        raise ValueError(
            f"{name} must be a number and a unit ({units}) such as '256 MB', got {describe(value)}"
        )
    return as_count(int(float(match[1]) * _UNITS[match[2]]), name, least)


def check_memory(size: float, what: str, remedy: str) -> None:
    """Raise ValueError for an amount of bytes beyond the memory of this machine, before it is asked
    for.
    """
    if size > (memory := _machine()):
        raise ValueError(
            f"{what} takes {bytes_text(size)}, and this machine has {bytes_text(memory)} of "
            f"memory; {remedy}"
        )


@cache
def _machine() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # systems that do not tell
        return 2.0**40


def bytes_text(size: float) -> str:
    """Return an amount of memory as text, in decimal units with three digits.

    >>> bytes_text(999), bytes_text(1_536), bytes_text(256_000_000)
    ('999 B', '1.54 kB', '256 MB')
    """
    # 999.5 and above would print as 1e+03
    units = iter(("B", "kB", "MB", "GB", "TB", "PB", "EB"))
    unit = next(units)
    while size >= 999.5 and unit != "EB":
        size /= 1000
        unit = next(units)
    return f"{size:.3g} {unit}"
