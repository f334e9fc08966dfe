"""Draws with replacement in proportion to weights, by alias tables: ``_kernels/draw/alias.py`` in
tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nodeflow._core.in_torch.bits import GOLDEN, LOW, mix, shifted, stream
from nodeflow._core.in_torch.ragged import ends_of, places, spans
from nodeflow._core.in_torch.uniform import per_kind


class Tables(NamedTuple):
    """What ``kernels.alias.build_tables`` makes: the table (the bits of uint64), and the sum of
    weights of every row. ``positive`` says how many edges before each position have a weight above
    0, int64 ``[edges + 1]``.
    """

    table: Tensor
    totals: Tensor
    positive: Tensor


def draw(
    indptr: Tensor,
    indices: Tensor,
    tables: Tables,
    rows: Tensor,
    ident: Tensor,
    key: int,
    counts: Sequence[int],
    kinds: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``(indptr of the draw [n + 1], positions [E], sources [E], unit [n])`` of n ``rows``.

    Arguments but ``tables`` are as of ``uniform.draw``. A row whose count is -1 keeps all edges of
    weight above 0. ``unit`` is the weight that is drawn once on average, float64, or 0 in such
    rows.
    """
    table, totals, positive = tables
    begin, end = spans(indptr, rows)
    fanout = per_kind(counts, kinds, begin)
    total = totals.index_select(0, rows)
    before = positive.index_select(0, begin)
    upto = positive.index_select(0, end)
    out = ends_of(torch.where(fanout < 0, upto - before, fanout * (total > 0)))
    row, nth = places(out, int(out[-1]))  # waits
    state = stream(key, ident).index_select(0, row).add_((nth + 1).mul_(GOLDEN))
    pick = _edge_of(
        mix(state), begin.index_select(0, row), (end - begin).index_select(0, row), table
    )
    if min(counts) < 0:
        kept = torch.searchsorted(positive[1:], before.index_select(0, row).add_(nth), right=True)
        pick = torch.where(fanout.index_select(0, row) < 0, kept, pick)
    unit = torch.where((fanout > 0) & (total > 0), total / fanout, 0.0)
    return out, pick, indices.index_select(0, pick).long(), unit


def _edge_of(bits: Tensor, begin: Tensor, degree: Tensor, table: Tensor) -> Tensor:
    """Return the positions of the edges to which points of rows belong, see ``kernels.alias.ask``
    and ``edge_of``.
    """
    # 64 bits times the degree have more than 64: the upper ones are the cell, the lower ones the
    # point in it
    upper = shifted(bits, 32).mul_(degree).add_(shifted((bits & LOW).mul_(degree), 32))
    cell = shifted(upper, 32)
    point = bits * degree
    entry = table.index_select(0, begin + cell)
    powers = torch.tensor([1 << i for i in range(63)], dtype=torch.int64, device=bits.device)
    width = torch.searchsorted(powers, degree - 1, right=True)  # of an offset, in bits
    is_own = (point >> (width + 18)) & ((1 << (46 - width)) - 1) < entry >> (width + 16)
    return torch.where(is_own, cell, entry & ((1 << width) - 1)).add_(begin)
