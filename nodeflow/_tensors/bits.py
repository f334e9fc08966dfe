"""The counter-based generator of ``_kernels/rng.py`` in int64 tensors, which wrap as unsigned
integers do.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor


def signed(bits: int) -> int:
    """Return the integer that has the same 64 bits in int64 as ``bits`` in uint64."""
    return bits - (1 << 64) if bits >> 63 else bits


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
    return shifted(mix(state), 11).double().mul_(2.0**-53)


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
    # a number below the bound there is rejected by few bounds, and such numbers are rare
    doubtful = low < bound
    # waits
    also, again = divmod(int(doubtful.any() if read is None else 2 * read + doubtful.any()), 2)
    if not again:
        return number, also
    at = doubtful.nonzero().view(-1)  # waits
    number_at, low_at, bound_at = (values.index_select(0, at) for values in (number, low, bound))
    # waits
    at = at.index_select(0, _is_rejected(number_at, low_at, bound_at, most).nonzero().view(-1))
    if len(at):
        draws_again = torch.zeros_like(start, dtype=torch.bool)
        draws_again[row.index_select(0, at)] = True
        at = draws_again.index_select(0, row).nonzero().view(-1)  # waits
        number[at] = _redrawn(
            start, row.index_select(0, at), nth.index_select(0, at), bound.index_select(0, at), most
        )
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
    """The numbers that states give, and what is compared with the bound to tell whether they may be
    rejected.
    """
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
