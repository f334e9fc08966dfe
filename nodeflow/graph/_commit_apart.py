"""Commits of rows that lie on several processes: all of them change their rows, or none does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from nodeflow._disk.store import Change, Store, change_rows
from nodeflow.graph._held import Peers


def change_apart(
    peers: Peers, what: str, place: Store | Mapping[str, Tensor], ids: Mapping[str, Tensor], change: Change
) -> None:
    """Call ``change``, which changes the rows ``ids`` of arrays here, on all processes; collective, in one exchange.

    Every process changes its rows, and keeps the old ones until all have done so: the exchange at the end. If one of
    them raises or is gone by then, all put the old rows back. A process that cannot know whether the others came to the
    end leaves this open in its folder; ``settle_apart`` decides it when the folders are opened again.

    Args:
        peers: the processes.
        what: says in messages what is changed.
        place: the arrays of this process: a store, or a dict of arrays in memory.
        ids: by name of an array, the rows that are changed.
        change: see ``Store.change``. A number that counts commits is changed before all other rows.
    """
    telling = [False]

    def changed_everywhere(arrays: Mapping[str, Tensor]) -> None:
        change(arrays)
        telling[0] = True
        peers.gather(f"the end of {what}", [])

    def in_doubt(error: BaseException) -> bool:
        # a failure that was told is one on all processes; a connection that broke may have broken for some only
        told = isinstance(error, RuntimeError) and not peers.broken
        return telling[0] and not told

    if isinstance(place, Store):
        place.change(ids, changed_everywhere, in_doubt)
    else:
        change_rows(place, ids, changed_everywhere)


def settle_apart(peers: Peers, what: str, store: Store, counter: str) -> None:
    """End alike on all processes what was interrupted, in stores that are not settled; collective, in two exchanges.

    ``counter`` is the array that counts commits. A commit is kept where one process has ended it, since then all had
    written their rows; else it is undone. Arrays that one process has replaced are replaced on all.

    Raises ValueError, on all, for folders that are not of one commit.
    """
    here = np.array([store.number, store.interrupted, int(store.arrays[counter])], np.int64)
    told = np.stack([facts for (facts,) in peers.gather(f"commits of {what}", [here])])
    ended = told[told[:, 1] == 0, 2]
    latest = int(told[:, 0].max())
    if latest - store.number <= 1:  # others are folders of another run, of which the next lines tell
        # the counter is written first: it is that of the others here only where all rows may be written
        store.settle(latest, undo=not (len(ended) and here[2] == ended.max()))
    counts = {counter: str(int(store.arrays[counter])), "number of its arrays": str(store.number)}
    peers.agree(f"the commit of {what}, whose folders belong together,", counts)
