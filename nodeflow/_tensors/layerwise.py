"""Draws of layers, whose nodes are drawn for all rows together: ``_kernels/draw/layerwise.py`` and parts of ``pps.py``.

Of draws with different probabilities only those whose probabilities are known before the batch have this form: sums of
floats would depend on their order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._tensors.bits import GOLDEN, bounded, mix, stream, uniform
from nodeflow._tensors.kept import Rule, by_node, kept
from nodeflow._tensors.ragged import spans


def draw_edges(
    indptr: Tensor, indices: Tensor, rows: Tensor, left_out: Tensor, size: int, key: int
) -> tuple[Tensor, Tensor, int]:
    """Draw ``size`` edges of ``rows`` uniformly with replacement, but those at the positions ``left_out``, ascending.

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


def edges_from(
    indptr: Tensor, indices: Tensor, num_nodes: int, rows: Tensor, nodes: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the edges of ``rows`` whose sources, all below ``num_nodes``, are among ``nodes``, ascending.

    Returns ``(indptr [rows + 1], positions [E], index of the source in nodes [E])``.
    """
    begin, end = spans(indptr, rows)
    narrow = nodes.to(indices.dtype)

    def is_drawn(ids: Tensor) -> Tensor:
        if not len(narrow):
            return ids != ids
        return narrow.index_select(0, torch.searchsorted(narrow, ids).clamp_(max=len(narrow) - 1)) == ids

    def rule_for(size: int) -> Rule:
        among = by_node(is_drawn, size, num_nodes, indices)
        return lambda piece: among(piece.sources)

    out, positions, source = kept(begin, end - begin, indices, rule_for)
    return out, positions, torch.searchsorted(nodes, source)


def edges_by_chance(indptr: Tensor, indices: Tensor, rows: Tensor, prob: Tensor, key: int) -> tuple[Tensor, Tensor]:
    """Find the edges of ``rows`` whose source is drawn; node u is drawn independently with probability ``prob[u]``."""
    begin, end = spans(indptr, rows)

    def is_drawn(ids: Tensor) -> Tensor:
        return is_below(ids.long(), prob.index_select(0, ids), key)

    def rule_for(size: int) -> Rule:
        among = by_node(is_drawn, size, len(prob), indices)
        return lambda piece: among(piece.sources)

    return kept(begin, end - begin, indices, rule_for)[:2]


def is_below(ids: Tensor, prob: Tensor | float, key: int) -> Tensor:
    """Return for each id whether its random number is below a probability."""
    return uniform(stream(key, ids) + GOLDEN) < prob


def hash_order(ids: Tensor, key: int) -> Tensor:
    """Return the indices of distinct ``ids`` in a random order of the ids, as ``kernels.pps.hash_order`` does."""
    # the sign bit turned: unsigned numbers in the order of signed ones; no two ids have the same number
    return (mix(stream(key, ids) + GOLDEN) ^ -(2**63)).argsort()


def edges_of_drawn(local: Tensor, indptr: Tensor, places: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``indptr``, indices and sources of the edges from the candidates at ``places``, numbered in their order.

    ``local`` ``[E]`` are the sources of all edges, candidates below ``size``.
    """
    number = torch.full((size,), -1, dtype=torch.int64, device=local.device)
    number.scatter_(0, places, torch.arange(len(places), device=local.device))
    source = number.index_select(0, local)
    index = (source >= 0).nonzero().view(-1)  # waits
    return torch.searchsorted(index, indptr), index, source.index_select(0, index)
