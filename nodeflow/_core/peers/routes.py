"""Routing of entries to the processes that own them, and of answers back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array


class Routes:
    """Routes entries to the processes that own them, and one answer per entry back.

    ``owner``, int ``[k]``, is the process of every entry, of ``size`` processes. Entries of one
    process keep their order. Processes answer each with an answer per entry that went there, in
    that order; here answers are a list by process.
    """

    def __init__(self, owner: Ints, size: int) -> None:
        self.size = size
        self._begin, self.order = kernels.csr.sort_by_destination(owner, size)

    def to(self, rank: int) -> Ints:
        """Return the numbers of the entries of a process, ascending."""
        return self.order[self._begin[rank] : self._begin[rank + 1]]  # type: ignore[no-any-return]

    def parcels(self, *columns: Array) -> list[list[Array]]:
        """Return, by process, its entries of some arrays ``[k, ...]``; nothing for a process
        without entries.
        """
        parcels = []
        for rank in range(self.size):
            entries = self.to(rank)
            parcels.append([column[entries] for column in columns if len(entries)])
        return parcels

    @property
    def in_order(self) -> bool:
        """Whether answers, one process after the other, are in the order of the entries."""
        return bool(np.count_nonzero(np.diff(self._begin)) <= 1)  # of one process alone

    def back(self) -> Ints:
        """Return where the answer for each entry is among all answers, one process after the other,
        int64 ``[k]``.
        """
        # the inverse of a permutation by assignment, without a sort
        place: Ints = np.empty_like(self.order)
        place[self.order] = np.arange(len(self.order))
        return place


def narrowed(values: Ints, upper: int) -> Array:
    """Return non-negative integers below ``upper`` as int32 where that holds them, to halve the
    bytes.
    """
    return values.astype(np.int32 if upper < 2**31 else np.int64, copy=False)


def first_of_each(parts: Sequence[tuple[Ints, Tensor]]) -> tuple[Ints, Tensor]:
    """Return the ids of all parts, without repeats, and for each the row in the first part; a part
    has distinct ids.
    """
    if len(parts) == 1:
        return parts[0]
    ids, first = np.unique(np.concatenate([part for part, _ in parts]), return_index=True)
    return ids, torch.cat([rows for _, rows in parts])[torch.from_numpy(first)]
