"""The edges of rows that a rule keeps, in tensors: loops over all in-edges, of which few are
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor

from nodeflow._tensors.ragged import ends_of, positions_of, spread_integers

# edges looked at together, all in-edges of their rows: on a processor what is made of them stays in
# caches, and on a device large pieces make few waits
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
    """Return ``(indptr [n + 1], positions [E], sources [E])`` of the edges of n rows that a rule
    keeps, int64.

    ``rule_for`` returns the rule for so many edges.
    """
    out = ends_of(degree)
    size = int(out[-1])  # waits
    rule = rule_for(size)
    counts = torch.empty_like(degree)
    parts = []
    for piece in pieces(begin, out, size, indices):
        chosen = rule(piece).nonzero().view(-1)  # waits
        counts[piece.rows] = torch.searchsorted(chosen, piece.indptr).diff()
        parts.append(
            [column.index_select(0, chosen) for column in (piece.positions, piece.sources)]
        )
    positions, sources = map(torch.cat, zip(*parts, strict=True))
    return ends_of(counts), positions, sources.long()


def pieces(begin: Tensor, indptr: Tensor, size: int, indices: Tensor) -> Iterator[Piece]:
    """Yield all edges of rows that begin at ``begin``, piece by piece; ``size`` is the last of
    ``indptr [n + 1]``.
    """
    most = _PIECE if indptr.device.type == "cpu" else _LARGE_PIECE
    cuts = [0, len(begin)]
    if size > most:
        at = torch.searchsorted(indptr, torch.arange(most, size, most, device=indptr.device))
        cuts = sorted({*cuts, *at.tolist()})  # waits
    for first, last in pairwise(cuts):
        own = indptr[first : last + 1] - indptr[first]
        # waits
        positions = positions_of(begin[first:last], own, int(own[-1]) if size > most else size)
        yield Piece(
            slice(first, last),
            begin[first:last],
            own,
            positions,
            indices.index_select(0, positions),
        )


def by_node(
    of_ids: Callable[[Tensor], Tensor], size: int, num_nodes: int, like: Tensor
) -> Callable[[Tensor], Tensor]:
    """Return a function that gives what ``of_ids`` does, from a table of all nodes where that is
    faster.

    ``of_ids`` returns a number for each of some ids of nodes, which have the type of ``like``;
    ``size`` ids are asked for in all.
    """
    if size < 2 * num_nodes:
        return of_ids
    every = torch.arange(num_nodes, dtype=like.dtype, device=like.device)
    table = torch.cat([of_ids(ids) for ids in every.split(_PIECE)])
    return lambda ids: table.index_select(0, ids)
