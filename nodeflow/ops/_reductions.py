"""The reductions by name: one entry adds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor


class Sums(NamedTuple):
    """Reductions of the rows of each destination's sources that one reading of them gives; empty where not needed.

    ``squares`` are sums of squared deviations from the mean; ``degree`` has the numbers of edges, at least 1.
    """

    total: Tensor
    largest: Tensor
    smallest: Tensor
    squares: Tensor
    degree: Tensor


class Reduction(NamedTuple):
    """A reduction of rows to one per destination.

    Attributes:
        needs: the field of ``Sums`` that it is made of; None: ``message_reduce`` makes it alone.
        finish: what it makes of ``Sums``.
        of_messages: whether ``message_reduce`` has it, for any message; else ``aggregate`` alone.
    """

    needs: str | None = None
    finish: Callable[[Sums], Tensor] = lambda sums: sums.total
    of_messages: bool = True


def _root(variance: Tensor) -> Tensor:
    """The square root, with a gradient of 0 where the variance is 0."""
    is_zero = variance == 0
    return torch.where(is_zero, 0, torch.where(is_zero, 1, variance).sqrt())


REDUCTIONS: Final = {
    "sum": Reduction("total"),
    "mean": Reduction("total", lambda sums: sums.total / sums.degree),
    "max": Reduction("largest", lambda sums: sums.largest),
    "min": Reduction("smallest", lambda sums: sums.smallest),
    "prod": Reduction(),
    "var": Reduction("squares", lambda sums: sums.squares / sums.degree, of_messages=False),
    "std": Reduction("squares", lambda sums: _root(sums.squares / sums.degree), of_messages=False),
}
"""All reductions. ``_plan.choose`` has the code that runs those of messages."""

OF_MESSAGES: Final = tuple(name for name, reduction in REDUCTIONS.items() if reduction.of_messages)
"""Names of those that ``message_reduce`` has."""
