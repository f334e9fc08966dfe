"""Rows that lie in several tensors, put together without a copy in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.rows.rows import fetch_rows, is_sparse, move_rows, new_rows, put_rows


class Piece(NamedTuple):
    """Some of the rows that were asked for: row ``at[i]`` of ``rows`` is number ``to[i]`` of them;
    at None: in turn.
    """

    rows: Tensor
    at: Ints | None
    to: Ints

    def copied(self) -> Tensor:
        """Return the rows one after another."""
        if self.at is None:
            return self.rows
        return fetch_rows(self.rows, torch.from_numpy(self.at))


def write_pieces(pieces: Sequence[Piece], out: Tensor) -> None:
    """Write dense rows to their numbers in ``out``."""
    for rows, places, to in pieces:
        move_rows(rows.contiguous(), np.arange(len(to)) if places is None else places, out, to)


def put_pieces(pieces: Sequence[Piece], count: int, empty: Tensor) -> Tensor:
    """Return ``count`` rows, each of which is in one piece; ``empty`` are no rows, of their type
    and shape.
    """
    # Usually all rows lie in one tensor, in their order: it is the result.
    if len(pieces) == 1 and pieces[0].at is None and (pieces[0].to[1:] > pieces[0].to[:-1]).all():
        return pieces[0].rows
    if is_sparse(empty):
        if not pieces:
            return empty
        return put_rows([(piece.copied(), piece.to) for piece in pieces], count)
    out = new_rows(count, tuple(empty.shape[1:]), empty.dtype)
    write_pieces(pieces, out)
    return out


def distinct_in_place(ids: Ints) -> tuple[Ints, Ints | None]:
    """Return ids without repeats, and where each is among them; None where nothing repeats (the
    nodes of a layer).
    """
    # a fraction of the time of an inverse, which is seldom needed
    ordered = np.sort(ids)
    if (ordered[1:] != ordered[:-1]).all():
        return ids, None
    return np.unique(ids, return_inverse=True)
