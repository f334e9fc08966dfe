"""Rows of nodes that have several, one per kind of edges: what ``_edges/node_rows.py`` does, in tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._tensors.ragged import ends_of, places


def rows_of_nodes(
    nodes: Tensor, ends: Tensor, begins: Tensor, first_kind: Tensor, kinds: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows of ``nodes``, node by node, the kind of each, and where the rows of each node begin.

    Arguments as of ``kernels.csr.rows_of_nodes``, int64.
    """
    part = torch.searchsorted(ends[:-1], nodes, right=True)  # the last range has no end that matters
    count = first_kind.diff().index_select(0, part)
    before = torch.cat([ends.new_zeros(1), ends[:-1]]).index_select(0, part)
    row = begins.index_select(0, part).add_((nodes - before).mul_(count))
    indptr = ends_of(count)
    node, nth = places(indptr, int(indptr[-1]))  # waits
    of = kinds.index_select(0, first_kind.index_select(0, part).index_select(0, node).add_(nth))
    return row.index_select(0, node).add_(nth), of, indptr
