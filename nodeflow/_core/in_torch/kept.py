"""The edges of rows that a rule keeps, in tensors: loops over all in-edges, of which few are
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor

from nodeflow._core.in_torch.ragged import (
    Triple,
    ends_of,
    indices_of,
    positions_of,
    spread_integers,
)

# edges looked at together, all in-edges of their rows: on a processor what is made of them stays in
# caches, and on a device large pieces make few waits
_PIECE: Final = 1 << 17
_LARGE_PIECE: Final = 1 << 22


class RowsPiece(NamedTuple):
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


Rule: TypeAlias = Callable[[Tensor, RowsPiece], Tensor]
"""Says which edges of a piece are kept, a bool each; it gets the number of each source first."""


def kept(
    begin: Tensor,
    degree: Tensor,
    indices: Tensor,
    num_nodes: int,
    number_of: Callable[[Tensor], Tensor],
    rule: Rule = lambda number, piece: number,
) -> Triple:
    """Return ``(indptr [n + 1], positions [E], sources [E])`` of the edges that n rows keep, int64.

    ``number_of`` returns a number for each of some sources, all below ``num_nodes``: by it the rule
    decides. Without a rule it is a bool, whether the edge is kept.
    """
    out = ends_of(degree)
    size = int(out[-1])  # waits
    # where rows have many more edges than there are nodes, a table of all nodes is faster
    if size >= 2 * num_nodes:
        every = torch.arange(num_nodes, dtype=indices.dtype, device=indices.device)
        table = torch.cat([number_of(ids) for ids in every.split(_PIECE)])
        number_of = partial(table.index_select, 0)
    counts = torch.empty_like(degree)
    parts = []
    for piece in pieces(begin, out, size, indices):
        chosen = indices_of(rule(number_of(piece.sources), piece))
        counts[piece.rows] = torch.searchsorted(chosen, piece.indptr).diff()
        parts.append(
            [column.index_select(0, chosen) for column in (piece.positions, piece.sources)]
        )
    positions, sources = map(torch.cat, zip(*parts, strict=True))
    return ends_of(counts), positions, sources.long()


def pieces(begin: Tensor, indptr: Tensor, size: int, indices: Tensor) -> Iterator[RowsPiece]:
    """Yield all edges of rows that begin at ``begin``, piece by piece; ``size`` is the last of
    ``indptr [n + 1]``.
    """
    most = _PIECE if indptr.device.type == "cpu" else _LARGE_PIECE
    cuts = [0, len(begin)]
    if size > most:
        ends = torch.arange(most, size, most, device=indptr.device)
        cuts = sorted({*cuts, *torch.searchsorted(indptr, ends).tolist()})  # waits
    for first, last in pairwise(cuts):
        rows = slice(first, last)
        ends = indptr[first : last + 1] - indptr[first]
        length = int(ends[-1]) if size > most else size  # waits
        positions = positions_of(begin[rows], ends, length)
        yield RowsPiece(rows, begin[rows], ends, positions, indices.index_select(0, positions))
