"""The counter-based generator of ``_kernels/rng.py`` in int64 tensors, which wrap as unsigned
integers do.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from nodeflow._core.in_torch.ragged import indices_of


def signed(bits: int, width: int = 64) -> int:
    """Return the integer that has the same bits in int64 as ``bits`` in uint64, or so in 32 bits."""
    return bits - (1 << width) if bits >> (width - 1) else bits


GOLDEN: Final = signed(0x9E3779B97F4A7C15)
LOW: Final = (1 << 32) - 1
"""The largest bound of the method that needs 32 random bits."""


def shifted(z: Tensor, by: int) -> Tensor:
    """Return ``z >> by`` with zeros from the left, where torch would repeat the sign."""
    return (z >> by).bitwise_and_((1 << (64 - by)) - 1)


def mix(z: Tensor) -> Tensor:
    """Return the 64 random bits of states: the finalizer of SplitMix64, see ``kernels.rng.mix``."""
    z = z ^ shifted(z, 30)
    z.mul_(signed(0xBF58476D1CE4E5B9))
    z.bitwise_xor_(shifted(z, 27)).mul_(signed(0x94D049BB133111EB))
    return z.bitwise_xor_(shifted(z, 31))


def stream(key: int, ident: Tensor) -> Tensor:
    """Return the state before the first draw of every ``ident`` (int64) under a key of 64 bits."""
    return mix(mix(ident * GOLDEN + GOLDEN) ^ signed(key))


def uniform(state: Tensor) -> Tensor:
    """Return a number uniform in [0, 1) with 53 bits for each state, float64."""
    bits = shifted(mix(state), 11)
    return bits.double().mul_(2.0**-53)


def bounded(
    start: Tensor, row: Tensor, nth: Tensor, bound: Tensor, most: int, read: Tensor | None = None
) -> tuple[Tensor, int]:
    """Return integers exactly uniform in ``[0, bound)``, int64 ``[E]``: those that
    ``kernels.rng.bounded`` gives.

    The second result is the number ``read`` on the host, or 0.

    Args:
        start: state of the stream of each row, int64 ``[n]``.
        row: the row of every draw, ascending, int64 ``[E]``.
        nth: which draw of its row it is, from 0 on without a gap, int64 ``[E]``.
        bound: int64 ``[E]``, at least 1.
        most: no bound is larger.
        read: an int64 without dimensions, at least 0, that the host needs; to read it here saves a
            wait.
    """
    number, low = _attempt(_state(start, row, nth), bound, most)
    # Few numbers are rejected, and telling which takes a division. So the draws are narrowed down
    # in steps, each of which is left out where the one before finds none: to those with a small
    # number below (rejected by few bounds), to those that are rejected, and from these to all draws
    # of their rows, since a draw that is made again shifts the later ones of its row.
    doubtful = low < bound
    if read is None:
        flags = doubtful.any()
    else:
        flags = 2 * read + doubtful.any()
    also, some_are_doubtful = divmod(int(flags), 2)  # waits
    if not some_are_doubtful:
        return number, also
    places = indices_of(doubtful)
    some, some_low, some_bound = (part.index_select(0, places) for part in (number, low, bound))
    rejected = _is_rejected(some, some_low, some_bound, most)
    places = places.index_select(0, indices_of(rejected))
    if len(places):
        draws_again = torch.zeros_like(start, dtype=torch.bool)
        draws_again[row.index_select(0, places)] = True
        places = indices_of(draws_again.index_select(0, row))
        row, nth, bound = (values.index_select(0, places) for values in (row, nth, bound))
        number[places] = _redrawn(start, row, nth, bound, most)
    return number, also


def _redrawn(start: Tensor, row: Tensor, nth: Tensor, bound: Tensor, most: int) -> Tensor:
    """Return the numbers of rows of which at least one was rejected."""
    state = _state(start, row, nth)
    first = torch.arange(len(row), device=row.device).sub_(nth)
    while True:
        number, low = _attempt(state, bound, most)
        rejected = _is_rejected(number, low, bound, most)
        if not bool(rejected.any()):  # waits
            return number
        # a draw that is made again takes the next number of its stream, and all later draws of the
        # row one further
        count = rejected.cumsum(0)
        before = (count - rejected.long()).index_select(0, first)
        state = torch.where(count > before, state + GOLDEN, state)


def _state(start: Tensor, row: Tensor, nth: Tensor) -> Tensor:
    """Return the state of draw number ``nth`` of each row's stream."""
    return start.index_select(0, row).add_((nth + 1).mul_(GOLDEN))


def _is_rejected(number: Tensor, low: Tensor, bound: Tensor, most: int) -> Tensor:
    rejected = low < ((1 << 32) - bound).remainder_(bound)
    return rejected if most <= LOW else torch.where(bound > LOW, number >= bound, rejected)


def _attempt(state: Tensor, bound: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the numbers that states give, and what is below the bound where one is doubtful."""
    bits = mix(state)
    product = shifted(bits, 32).mul_(bound)
    number = shifted(product, 32)
    low = product.bitwise_and_(LOW)
    if most <= LOW:
        return number, low
    mask = bound - 1
    for by in (1, 2, 4, 8, 16, 32):
        mask |= mask >> by
    wide = bound > LOW
    # whoever has a bound beyond 32 bits often has to draw again
    return torch.where(wide, bits & mask, number), torch.where(wide, 0, low)
