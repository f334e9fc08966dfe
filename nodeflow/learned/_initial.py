"""Initial rows of a table: a pure function of a key and the id of the node."""

from __future__ import annotations

import math

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._base.types import Floats
from nodeflow.random import Random

INITS = ("normal", "uniform", "zeros")
_PIECE = 2**20  # numbers made at a time


def initial_rows(init: str, scale: float, key: int, ids: Ints, width: int) -> Floats:
    """Return rows ``[len(ids), width]`` in float64; a row is the same whatever other ids are asked for.

    "normal" has standard deviation ``scale``, "uniform" goes from ``-scale`` to ``scale``.
    """
    rows = np.zeros((len(ids), width))
    if init == "zeros":
        return rows
    random, number = Random(key), math.ceil(width / 2) if init == "normal" else width
    step = max(1, _PIECE // number)
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        bits = random.bits((part[:, None] * number + np.arange(number)).ravel()).reshape(len(part), number)
        out = rows[start : start + step]
        if init == "uniform":
            np.multiply((bits >> np.uint64(11)) * 2.0**-52 - 1, scale, out=out)
        else:
            _normal_pairs(bits, scale, out)
    return rows


def _normal_pairs(bits: np.ndarray[tuple[int, ...], np.dtype[np.uint64]], scale: float, out: Floats) -> None:
    """Write two independent normal numbers for every 64 bits (Box and Muller 1958), the second half to the right."""
    radius = ((bits >> np.uint64(32)) + 0.5) * 2.0**-32
    np.log(radius, out=radius)
    radius *= -2 * scale**2
    np.sqrt(radius, out=radius)
    angle = (bits & np.uint64(0xFFFFFFFF)) * (2 * math.pi * 2.0**-32)
    half, rest = bits.shape[1], out.shape[1] - bits.shape[1]
    np.multiply(radius, np.cos(angle), out=out[:, :half])
    np.multiply(radius[:, :rest], np.sin(angle[:, :rest]), out=out[:, half:])
