"""Draws of layers, whose nodes are drawn for all rows together: ``_kernels/draw/layerwise.py`` and
parts of ``pps.py``.

Of draws with different probabilities only those whose probabilities are known before the batch have
this form: sums of floats would depend on their order.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from nodeflow._core.in_torch.bits import GOLDEN, bounded, mix, stream, uniform
from nodeflow._core.in_torch.kept import kept, pieces
from nodeflow._core.in_torch.numbering import TensorNumbering
from nodeflow._core.in_torch.ragged import (
    Triple,
    ends_of,
    indices_of,
    integers_for,
    is_among,
    positions_of,
    spans,
)


def draw_edges(
    indptr: Tensor, indices: Tensor, rows: Tensor, left_out: Tensor, size: int, key: int
) -> tuple[Tensor, Tensor, int]:
    """Draw ``size`` edges of ``rows`` uniformly with replacement, but those at the positions
    ``left_out``, ascending.

    Returns the distinct sources, ascending, how often each was drawn, and the number of all edges.
    """
    begin, end = (ends - torch.searchsorted(left_out, ends) for ends in spans(indptr, rows))
    ends = (end - begin).cumsum(0)
    total = int(ends[-1:].sum())  # waits
    nth = torch.arange(size if total else 0, device=rows.device)
    start = stream(key, nth.new_zeros(1))
    number, _ = bounded(start, torch.zeros_like(nth), nth, torch.full_like(nth, total), total)
    row = torch.searchsorted(ends, number, right=True)
    position = end.index_select(0, row).add_(number).sub_(ends.index_select(0, row))
    stay = left_out - torch.arange(len(left_out), device=rows.device)
    position += torch.searchsorted(stay, position, right=True)
    nodes, times = indices.index_select(0, position).long().unique(return_counts=True)  # waits
    return nodes, times, total


def sources_of(
    indptr: Tensor, indices: Tensor, num_nodes: int, rows: Tensor, left_out: Tensor
) -> Tensor:
    """Return the distinct sources of the edges of ``rows``, in order of first appearance, int64.

    They are below ``num_nodes``; the edges at the positions ``left_out``, ascending, do not count.
    """
    begin, end = spans(indptr, rows)
    out = ends_of(end - begin)
    size = int(out[-1])  # waits
    if 8 * size < num_nodes:  # a table of all nodes would take longer
        positions = positions_of(begin, out, size)
        if len(left_out):
            stay = indices_of(~is_among(left_out, positions))
            positions = positions.index_select(0, stay)
        numbering = TensorNumbering(num_nodes, rows.device)
        numbering.extend(indices.index_select(0, positions).long())
        return numbering.nodes
    kind = integers_for(size + 1)
    # the number of each node's first edge
    first = torch.full((num_nodes,), size, dtype=kind, device=rows.device)
    before = 0
    parts = []
    for piece in pieces(begin, out, size, indices):
        source = piece.sources.long()
        number = torch.arange(before, before + len(source), dtype=kind, device=rows.device)
        before += len(source)
        counted = number
        if len(left_out):
            counted = torch.where(is_among(left_out, piece.positions), size, number)
        first.scatter_reduce_(0, source, counted, "amin")
        places = indices_of(first.index_select(0, source) == number)
        parts.append(piece.sources.index_select(0, places))
    return torch.cat(parts).long()


def edges_from(
    indptr: Tensor, indices: Tensor, num_nodes: int, rows: Tensor, nodes: Tensor
) -> Triple:
    """Find the edges of ``rows`` whose sources, all below ``num_nodes``, are among the distinct
    ``nodes``.

    Returns ``(indptr [rows + 1], positions [E], index of the source in nodes [E])``.
    """
    begin, end = spans(indptr, rows)
    ascending, order = nodes.sort()
    narrow = ascending.to(indices.dtype)
    is_drawn = partial(is_among, narrow)
    out, positions, source = kept(begin, end - begin, indices, num_nodes, is_drawn)
    return out, positions, order.index_select(0, torch.searchsorted(ascending, source))


def edges_by_chance(
    indptr: Tensor, indices: Tensor, rows: Tensor, prob: Tensor, key: int
) -> tuple[Tensor, Tensor]:
    """Find the edges of ``rows`` whose source is drawn; node u is drawn independently with
    probability ``prob[u]``.
    """
    begin, end = spans(indptr, rows)

    def is_drawn(ids: Tensor) -> Tensor:
        return is_below(ids.long(), prob.index_select(0, ids), key)

    return kept(begin, end - begin, indices, len(prob), is_drawn)[:2]


def is_below(ids: Tensor, prob: Tensor | float, key: int) -> Tensor:
    """Return for each id whether its random number is below a probability."""
    return uniform(stream(key, ids) + GOLDEN) < prob


def hash_order(ids: Tensor, key: int) -> Tensor:
    """Return the indices of distinct ``ids`` in a random order of the ids, as
    ``kernels.pps.hash_order`` does.
    """
    # the sign bit turned: unsigned numbers in the order of signed ones; no two ids have the same
    # number
    return (mix(stream(key, ids) + GOLDEN) ^ -(2**63)).argsort()
