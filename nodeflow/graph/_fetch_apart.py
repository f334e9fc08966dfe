"""Rows that lie on several processes, fetched from those that hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._rows.rows import as_array, from_numpy
from nodeflow.graph._held import Peers


def fetch_apart(
    peers: Peers, what: str, ids: Ints, owners: Callable[[Ints], Ints], held: Callable[[Ints], Tensor],
    out: Tensor | None = None, before: Callable[[Ints], None] | None = None,
) -> Tensor:  # fmt: skip
    """Return the rows ``ids``, ``[len(ids), ...]``, in two exchanges; an id that is asked for repeatedly travels once.

    Args:
        peers: the processes, all of which call this, each with ids of its own, which may be none.
        what: says in messages what is fetched.
        owners: says which process holds each of some ids.
        held: returns rows that this process holds, by parent id.
        out: takes the rows, if given.
        before: called with all ids that are asked of this process, distinct, before ``held``. It may exchange.
    """
    distinct, index = _distinct(ids)
    begin, order = kernels.csr.sort_by_destination(owners(distinct), peers.size)
    wanted = distinct[order]
    asked = [wanted[begin[r] : begin[r + 1]] for r in range(peers.size)]
    questions = peers.exchange(f"ids of {what}", [[part] if len(part) else [] for part in asked])
    if before is not None:
        before(np.unique(np.concatenate([part[0] for part in questions if part] or [distinct[:0]])))
    answers = [[as_array(held(part[0]).cpu().contiguous())] if part else [] for part in questions]
    found = peers.exchange(f"rows of {what}", answers)
    empty = held(wanted[:0])
    if out is None:
        out = empty.new_empty((len(ids), *empty.shape[1:]), device="cpu")
    if len(ids):
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        rows = torch.cat([from_numpy(arrays[0], empty.dtype) for arrays in found if arrays])
        torch.index_select(rows, 0, torch.from_numpy(place if index is None else place[index]), out=out)
    return out


def _distinct(ids: Ints) -> tuple[Ints, Ints | None]:
    """Ids without repeats, and where each is among them; None where nothing repeats (the nodes of a layer, say)."""
    ordered = np.sort(ids)  # a fraction of the time of an inverse, which is seldom needed
    if (ordered[1:] != ordered[:-1]).all():
        return ids, None
    return np.unique(ids, return_inverse=True)
