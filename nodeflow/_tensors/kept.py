"""The edges of rows that a rule keeps, in tensors: loops over all in-edges, of which few are drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor

from nodeflow._tensors.ragged import ends_of, positions_of, spread_integers

# edges looked at together, all in-edges of their rows: on a processor what is made of them stays in caches, and on a
# device large pieces make few waits
_PIECE: Final = 1 << 17
_LARGE_PIECE: Final = 1 << 22


class Piece(NamedTuple):
    """All edges of some rows, which are looked at together.

    Attributes:
        rows: which rows they are.
        begin: the position of the first edge of each, int64.
        indptr: where the edges of each begin among those of the piece, int64.
        positions: the position of every edge, int64.
        sources: the source of every edge, of the type of ``indices``.
    """

    rows: slice
    begin: Tensor
    indptr: Tensor
    positions: Tensor
    sources: Tensor

    def spread(self, values: Tensor) -> Tensor:
        """Return the integer of each edge's row, of integers of all rows."""
        return spread_integers(values[self.rows], self.indptr, len(self.sources))


Rule: TypeAlias = Callable[[Piece], Tensor]
"""Says which edges of a piece are kept, a bool each."""


def kept(
    begin: Tensor, degree: Tensor, indices: Tensor, rule_for: Callable[[int], Rule]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(indptr [n + 1], positions [E], sources [E])`` of the edges of n rows that a rule keeps, int64.

    ``rule_for`` returns the rule for so many edges.
    """
    out = ends_of(degree)
    size, cuts = int(out[-1]), [0, len(degree)]  # waits
    rule = rule_for(size)
    most = _PIECE if out.device.type == "cpu" else _LARGE_PIECE
    if size > most:
        at = torch.searchsorted(out, torch.arange(most, size, most, device=out.device))
        cuts = sorted({*cuts, *at.tolist()})  # waits
    counts, parts = torch.empty_like(degree), []
    for first, last in pairwise(cuts):
        rows = slice(first, last)
        indptr = ends_of(degree[rows])
        positions = positions_of(begin[rows], indptr, int(indptr[-1]) if size > most else size)  # waits
        sources = indices.index_select(0, positions)
        chosen = rule(Piece(rows, begin[rows], indptr, positions, sources)).nonzero().view(-1)  # waits
        counts[rows] = torch.searchsorted(chosen, indptr).diff()
        parts.append([column.index_select(0, chosen) for column in (positions, sources)])
    positions, sources = map(torch.cat, zip(*parts, strict=True))
    return ends_of(counts), positions, sources.long()


def by_node(of_ids: Callable[[Tensor], Tensor], size: int, num_nodes: int, like: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function that gives what ``of_ids`` does, from a table of all nodes where that is faster.

    ``of_ids`` returns a number for each of some ids of nodes, which have the type of ``like``; ``size`` ids are asked
    for in all.
    """
    if size < 2 * num_nodes:
        return of_ids
    every = torch.arange(num_nodes, dtype=like.dtype, device=like.device)
    table = torch.cat([of_ids(ids) for ids in every.split(_PIECE)])
    return lambda ids: table.index_select(0, ids)
