"""Routing of entries to the processes that own them and of answers back; rows fetched from their owners."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._peers.held import Peers
from nodeflow._rows.rows import as_array, fetch_rows, from_arrays, from_numpy, put_rows, take_rows, to_arrays


class Routes:
    """Routes entries to the processes that own them, and one answer per entry back.

    ``owner``, int ``[k]``, is the process of every entry, of ``size`` processes. Entries of one process keep their
    order. Processes answer each with an answer per entry that went there, in that order; here answers are a list by
    process.
    """

    def __init__(self, owner: Ints, size: int) -> None:
        self.size = size
        self._begin, self.order = kernels.csr.sort_by_destination(owner, size)

    def to(self, rank: int) -> Ints:
        """Return the numbers of the entries of a process, ascending."""
        entries: Ints = self.order[self._begin[rank] : self._begin[rank + 1]]
        return entries

    def parcels(self, *columns: Array) -> list[list[Array]]:
        """Return, by process, its entries of some arrays ``[k, ...]``; nothing for a process without entries."""
        own = [self.to(r) for r in range(self.size)]
        return [[column[entries] for column in columns] if len(entries) else [] for entries in own]

    @property
    def in_order(self) -> bool:
        """Whether answers, one process after the other, are in the order of the entries."""
        return bool(np.count_nonzero(np.diff(self._begin)) <= 1)  # of one process alone

    def back(self) -> Ints:
        """Return where the answer for each entry is among all answers, one process after the other, int64 ``[k]``."""
        # the inverse of a permutation by assignment, without a sort
        place: Ints = np.empty_like(self.order)
        place[self.order] = np.arange(len(self.order))
        return place

    def joined(self, answers: Sequence[Tensor | None]) -> Tensor:
        """Return the answers ``[k, ...]`` in the order of the entries, from those of each process, or None of one.

        Raises ValueError where no process has answered.
        """
        parts = [(answer, self.to(r)) for r, answer in enumerate(answers) if answer is not None]
        if not parts:
            raise ValueError("there is no answer")
        return parts[0][0] if len(parts) == 1 else put_rows(parts, len(self.order))

    def joined_array(self, answers: Sequence[Array]) -> Ints:
        """Return whole numbers ``[k]`` in the order of the entries, from those of the processes with entries."""
        result = np.empty(len(self.order), np.int64)
        result[self.order] = np.concatenate([self.order[:0], *answers])
        return result


def narrowed(values: Ints, upper: int | None = None) -> Array:
    """Return non-negative integers as int32 where they fit, to halve the bytes; ``upper`` bounds them."""
    most = values.max(initial=0) if upper is None else upper
    return values.astype(np.int32 if most < 2**31 else np.int64, copy=False)


def fetch_from_owners(
    peers: Peers,
    what: str,
    ids: Ints,
    owners: Callable[[Ints], Ints],
    held: Callable[[Ints], Tensor],
    before: Callable[[Ints], None] | None = None,
) -> Tensor:
    """Return the rows ``ids``, ``[len(ids), ...]``, in two exchanges; an id that is asked for repeatedly travels once.

    Args:
        peers: the processes, all of which call this, each with ids of its own, which may be none.
        what: says in messages what is fetched.
        owners: says which process holds each of some ids.
        held: returns rows that this process holds, by parent id.
        before: called with all ids that are asked of this process, distinct, before ``held``. It may exchange.
    """
    if peers.size == 1:
        if before is not None:
            before(np.unique(ids))
        return held(ids)
    distinct, index = _distinct(ids)
    routes = Routes(owners(distinct), peers.size)
    questions = peers.exchange(f"ids of {what}", routes.parcels(distinct))
    if before is not None:
        before(np.unique(np.concatenate([part[0] for part in questions if part] or [distinct[:0]])))
    answers = [to_arrays(held(part[0])) if part else [] for part in questions]
    received = peers.exchange(f"rows of {what}", answers)
    # no rows, but their shape and type: needed to read answers, and the result where no id is asked for
    rows = empty = held(distinct[:0]).cpu()
    if len(ids):
        rows = routes.joined([from_arrays(arrays, empty) if arrays else None for arrays in received])
    if index is not None:
        rows = fetch_rows(rows, torch.from_numpy(index))
    return rows


def send_to_owners(
    peers: Peers, what: str, facts: Array, columns: Sequence[tuple[Ints, Tensor]]
) -> tuple[Array, list[list[tuple[Ints, Tensor]]]]:
    """Send dense rows to the processes that own their ids, in one exchange.

    Args:
        peers: the processes, all of which call this, with as many columns.
        what: says in messages what is sent.
        facts: numbers that every process tells all others.
        columns: ids ``[k]``, and the row of each ``[k, ...]``.

    Returns the facts of all processes, ``[size, ...]``, and for every column the ids and rows that came, by process.
    """
    if peers.size == 1:
        return facts[None], [[column] for column in columns]
    parcels: list[list[Array]] = [[facts] for _ in range(peers.size)]
    for ids, rows in columns:
        routes = Routes(peers.owners(ids), peers.size)
        for rank, parcel in enumerate(parcels):
            own = routes.to(rank)
            parcel += [ids[own], as_array(take_rows(rows.cpu(), torch.from_numpy(own)).contiguous())]
    received = peers.exchange(what, parcels)
    return np.stack([arrays[0] for arrays in received]), [
        [(arrays[1 + 2 * k], from_numpy(arrays[2 + 2 * k], rows.dtype)) for arrays in received]
        for k, (_, rows) in enumerate(columns)
    ]


def first_of_each(parts: Sequence[tuple[Ints, Tensor]]) -> tuple[Ints, Tensor]:
    """Return the ids of all parts, without repeats, and for each the row in the first part; a part has distinct ids."""
    if len(parts) == 1:
        return parts[0]
    ids, first = np.unique(np.concatenate([part for part, _ in parts]), return_index=True)
    return ids, torch.cat([rows for _, rows in parts])[torch.from_numpy(first)]


def _distinct(ids: Ints) -> tuple[Ints, Ints | None]:
    """Ids without repeats, and where each is among them; None where nothing repeats (the nodes of a layer, say)."""
    ordered = np.sort(ids)  # a fraction of the time of an inverse, which is seldom needed
    if (ordered[1:] != ordered[:-1]).all():
        return ids, None
    return np.unique(ids, return_inverse=True)
