"""Rows of a table that were pulled and wait for their step, and their gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, check_type
from nodeflow._core.rows.rows import first_not_finite


class Pulled(NamedTuple):
    """Rows that wait for their step: ids ascending and distinct, and for every row of ``leaf`` the
    place of its id.
    """

    leaf: Tensor
    ids: Ints
    places: Tensor | None


class Pulls:
    """The rows of a table that wait for their step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulled: list[Pulled] = []

    def pull(
        self, ids: Ints, fetch: Callable[[Ints], Tensor], device: torch.device | str | None
    ) -> Tensor:
        """Return the rows ``ids``, which may repeat, as a leaf that waits; ``fetch`` reads rows of
        distinct ids.
        """
        # The nodes of a layer are distinct and often in order: nothing is to be sorted then.
        if len(ids) < 2 or (ids[1:] > ids[:-1]).all():
            distinct = ids.copy()
            places = None
        else:
            distinct, inverse = np.unique(ids, return_inverse=True)
            places = torch.from_numpy(inverse.astype(np.int64, copy=False))
        rows = fetch(distinct)
        if places is not None:
            rows = rows.index_select(0, places)
        pulled = Pulled(rows.to(device).requires_grad_(), distinct, places)
        with self._lock:
            self._pulled.append(pulled)
        return pulled.leaf

    def waiting(self, rows: Sequence[Tensor]) -> list[Pulled]:
        """Return the waiting rows of these leaves, which must wait; without arguments, all."""
        if not rows:
            return self._pulled
        by_leaf = {id(pulled.leaf): pulled for pulled in self._pulled}
        for k, leaf in enumerate(rows):
            check_type(leaf, f"rows[{k}]", Tensor, "a tensor that pull returned")
            if id(leaf) not in by_leaf:
                raise ValueError(
                    f"rows[{k}] was not pulled from this table, or its step was made; pull rows "
                    "again"
                )
        return list({id(leaf): by_leaf[id(leaf)] for leaf in rows}.values())

    def forget(self, chosen: Sequence[Pulled]) -> None:
        done = {id(pulled.leaf) for pulled in chosen}
        with self._lock:
            self._pulled = [pulled for pulled in self._pulled if id(pulled.leaf) not in done]


def gradients(chosen: Sequence[Pulled], dtype: torch.dtype) -> tuple[Ints, Tensor] | None:
    """Return distinct ids and their finite gradients ``[k, width]``, added up; None where no row
    has a gradient.
    """
    parts = []
    for pulled in chosen:
        if pulled.leaf.grad is not None:
            parts.append((pulled.ids, _summed(pulled, pulled.leaf.grad, dtype)))
    if not parts:
        return None
    ids, grads = parts[0] if len(parts) == 1 else added(parts)
    check_finite(ids, grads)
    return ids, grads


def added(parts: Sequence[tuple[Ints, Tensor]]) -> tuple[Ints, Tensor]:
    """Return the distinct ids of all parts, ascending, and the sums of their rows, added in the
    order of the parts.
    """
    ids, inverse = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
    rows = torch.cat([part for _, part in parts])
    sums = rows.new_zeros(len(ids), rows.shape[1])
    return ids, sums.index_add_(0, torch.from_numpy(inverse), rows)


def check_finite(ids: Ints, grads: Tensor) -> None:
    if (row := first_not_finite(grads)) is not None:
        raise ValueError(f"the gradient of row {ids[row]} is not finite, so nothing is written")


def _summed(pulled: Pulled, grad: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a gradient per distinct id: those of repeated ids are added up."""
    if grad.layout != torch.strided:
        grad = grad.to_dense()
    grad = grad.to("cpu", dtype)
    if pulled.places is None:
        return grad
    return grad.new_zeros(len(pulled.ids), grad.shape[1]).index_add_(0, pulled.places, grad)
