"""Named arrays whose rows change by commits, on all processes that hold them or on none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nodeflow._core.peers.peers import ALONE, Peers

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""By name, the shape and type of every array."""
Changes = Mapping[str, tuple[Tensor, Tensor]]
"""By name of an array, ids int64 ``[k]`` and their new rows; an array of one number has the id
0.
"""
Change = Callable[[Mapping[str, Tensor]], None]
"""A function of arrays by name; arrays of one number are ``[1]``."""


class Store(ABC):
    """Named arrays, those of this process, whose rows change by commits of all processes of a
    group.

    In a commit every process keeps its old rows, changes rows, and puts the old ones back unless
    all of them come to the end, which they tell each other in one exchange. ``commit``, ``change``
    and ``replace`` are collective, each with rows of its own. ``arrays`` are the present ones,
    which change by commits only; ``what`` says in messages what they are, as "the history".
    """

    arrays: MutableMapping[str, Tensor]
    folder: Path | None = None

    def __init__(self, peers: Peers = ALONE, what: str = "the rows") -> None:
        self.peers = peers
        self.what = what

    def commit(self, changes: Changes) -> None:
        """Write rows, all of them or none: if anything raises, or the process is killed, the old
        rows come back.

        Raises OSError where the disk cannot hold the old rows meanwhile.
        """
        self.change(
            {name: ids for name, (ids, _) in changes.items()},
            lambda arrays: copy_rows(arrays, changes),
        )

    def change(self, ids: Mapping[str, Tensor], change: Change) -> None:
        """Commit the changes that ``change``, called with the arrays by name, makes to their rows
        ``ids``.

        Where there are several processes, the function changes a number that counts commits before
        all other rows. If it raises, here or elsewhere, the old rows come back on all. A process
        that cannot know whether the others came to the end leaves that open; it is decided when the
        stores of all are opened again.
        """
        arrays = {name: as_rows(self.arrays[name]) for name in ids}
        telling = False
        try:
            self._keep(arrays, list(ids.items()))
            change(arrays)
            # From here on other processes may have completed the commit, even if this one fails.
            telling = self.peers.size > 1
            self.peers.gather(f"the end of a commit of {self.what}", [])
        except BaseException as error:
            # a reported failure has reached all processes; a broken connection may affect only some
            shared = isinstance(error, RuntimeError) and not self.peers.broken
            try:
                self._take_back(in_doubt=telling and not shared)
            except Exception as failure:
                raise RuntimeError(
                    f"{self.what} could not be put back ({failure!r}): until the next commit, "
                    "which does that first, they may be those of half a commit"
                ) from error
            raise
        self._let_go()

    def restore(self) -> None:
        """Put back the rows of a commit whose undoing was interrupted, if there are any; a commit
        begins with that.
        """
        self._take_back(in_doubt=False)

    @abstractmethod
    def successor(self) -> dict[str, Tensor]:
        """Make a second set of arrays, all zeros, for ``replace``."""

    def replace(self, successor: Mapping[str, Tensor]) -> None:
        """Replace all arrays by the result of ``successor``, on all processes or on none."""
        self.peers.gather(f"new arrays of {self.what}", [])
        self._replace(successor)

    def flush(self) -> None:  # noqa: B027
        """Wait until rows of files are on the disk, so that they outlive a power cut."""

    def close(self) -> None:  # noqa: B027
        """Release arrays in files to other processes; they must not be written afterwards."""

    @abstractmethod
    def _keep(self, arrays: Mapping[str, Tensor], ids: Sequence[tuple[str, Tensor]]) -> None:
        """Keep the rows ``ids`` of arrays as they are now."""

    @abstractmethod
    def _take_back(self, *, in_doubt: bool) -> None:
        """Restore the kept rows; ``in_doubt``: other processes may have completed the commit."""

    @abstractmethod
    def _let_go(self) -> None:
        """Drop the kept rows: the commit is complete."""

    @abstractmethod
    def _replace(self, successor: Mapping[str, Tensor]) -> None:
        """Take the second set of arrays."""


class MemoryStore(Store):
    """Named arrays in memory, in a dict that the store shares with its owner. Making one is
    collective.
    """

    def __init__(
        self, arrays: MutableMapping[str, Tensor], peers: Peers = ALONE, what: str = "the rows"
    ) -> None:
        super().__init__(peers, what)
        self.arrays = arrays
        self._old: list[tuple[Tensor, Tensor, Tensor]] = []
        peers.gather(f"arrays of {what}", [])

    def successor(self) -> dict[str, Tensor]:
        return {name: torch.zeros_like(array) for name, array in self.arrays.items()}

    def _keep(self, arrays: Mapping[str, Tensor], ids: Sequence[tuple[str, Tensor]]) -> None:
        self.restore()
        self._old = [
            (arrays[name], which, arrays[name].index_select(0, which)) for name, which in ids
        ]

    def _take_back(self, *, in_doubt: bool) -> None:
        for array, which, rows in self._old:
            array.index_copy_(0, which, rows)
        self._let_go()

    def _let_go(self) -> None:
        self._old = []

    def _replace(self, successor: Mapping[str, Tensor]) -> None:
        self.arrays.update(successor)

    def __deepcopy__(self, memo: dict[int, Any]) -> MemoryStore:
        memo[id(self)] = store = copy(self)  # it exchanges with the same processes
        store.arrays = deepcopy(self.arrays, memo)
        return store


def copy_rows(arrays: Mapping[str, Tensor], changes: Changes) -> None:
    """Write rows into arrays, in the order of ``changes``."""
    for name, (ids, rows) in changes.items():
        arrays[name].index_copy_(0, ids, rows)


def as_rows(array: Tensor) -> Tensor:
    """Return an array of one number as ``[1]``, others as they are."""
    return array if array.ndim else array.view(1)
