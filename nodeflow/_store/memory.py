"""Stores in memory."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from copy import copy, deepcopy
from typing import Any

import torch
from torch import Tensor

from nodeflow._peers.held import ALONE, Peers
from nodeflow._rows.rows import take_rows
from nodeflow._store.store import Store


class MemoryStore(Store):
    """Named arrays in memory.

    Args:
        arrays: the arrays, a dict that the store shares with its owner: commits change it in place.
        peers, what: see ``Store``. Making one is collective.
    """

    def __init__(self, arrays: MutableMapping[str, Tensor], peers: Peers = ALONE, what: str = "the rows") -> None:
        super().__init__(peers, what)
        self.arrays = arrays
        self._old: list[tuple[Tensor, Tensor, Tensor]] = []
        peers.gather(f"arrays of {what}", [])

    def successor(self) -> dict[str, Tensor]:
        """Make a second set of arrays, all zeros."""
        return {name: torch.zeros_like(array) for name, array in self.arrays.items()}

    def _keep(self, arrays: Mapping[str, Tensor], ids: Sequence[tuple[str, Tensor]]) -> None:
        self._old = [(arrays[name], which, take_rows(arrays[name], which)) for name, which in ids]

    def _take_back(self, *, in_doubt: bool) -> None:
        for array, which, rows in self._old:
            array.index_copy_(0, which, rows)
        self._let_go()

    def _let_go(self) -> None:
        self._old = []

    def _replace(self, successor: Mapping[str, Tensor]) -> None:
        self.arrays.update(successor)

    def flush(self) -> None:
        """Do nothing: memory does not outlive the process."""

    def close(self) -> None:
        """Do nothing: nobody else waits for the arrays."""

    def __deepcopy__(self, memo: dict[int, Any]) -> MemoryStore:
        memo[id(self)] = store = copy(self)  # it exchanges with the same processes
        store.arrays = deepcopy(self.arrays, memo)
        return store
