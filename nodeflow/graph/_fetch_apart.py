"""Rows that lie on several processes, fetched from those that hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._rows.rows import as_array, fetch_rows, from_numpy
from nodeflow.graph._held import Peers
from nodeflow.graph._routes import Routes


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
    routes = Routes(owners(distinct), peers.size)
    questions = peers.exchange(f"ids of {what}", routes.parcels(distinct))
    if before is not None:
        before(np.unique(np.concatenate([part[0] for part in questions if part] or [distinct[:0]])))
    answers = [[as_array(held(part[0]).cpu().contiguous())] if part else [] for part in questions]
    found = peers.exchange(f"rows of {what}", answers)
    empty = held(distinct[:0]).cpu()
    rows = empty
    if len(ids):
        rows = routes.joined([from_numpy(arrays[0], empty.dtype) if arrays else None for arrays in found])
    if index is not None:
        rows = fetch_rows(rows, torch.from_numpy(index))
    return rows if out is None else out.copy_(rows)


def _distinct(ids: Ints) -> tuple[Ints, Ints | None]:
    """Ids without repeats, and where each is among them; None where nothing repeats (the nodes of a layer, say)."""
    ordered = np.sort(ids)  # a fraction of the time of an inverse, which is seldom needed
    if (ordered[1:] != ordered[:-1]).all():
        return ids, None
    return np.unique(ids, return_inverse=True)
