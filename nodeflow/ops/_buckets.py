"""Groups of destinations of equal degree, for functions that take a mailbox
``[nodes, degree, ...]``.

Everything moves by permutations of whole columns and views into them, forward and backward, so the
cost does not grow with the number of distinct degrees.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nodeflow._core.base.checks import check_type
from nodeflow.ops._autograd import Permute, inverse
from nodeflow.ops._edgewise import check_rows
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque


@opaque
def split_messages(structure: Structure, values: Tensor) -> list[Tensor]:
    """Return ``values`` ``[num_edges, ...]`` as one mailbox ``[nodes, degree, ...]`` per bucket of
    the structure.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> [mailbox.shape for mailbox in split_messages(structure, torch.ones(3, 4))]
    [torch.Size([1, 1, 4]), torch.Size([1, 2, 4])]
    """
    check_rows(structure, "e", values, "values")
    buckets = structure.buckets()
    if not buckets:
        return []
    ordered = Permute.apply(values, torch.cat([bucket.edges.reshape(-1) for bucket in buckets]))
    parts = ordered.split([bucket.edges.numel() for bucket in buckets])
    return [
        part.reshape(*bucket.edges.shape, *values.shape[1:])
        for part, bucket in zip(parts, buckets, strict=True)
    ]


@opaque
def split_sources(structure: Structure, values: Tensor) -> list[Tensor]:
    """Return ``split_messages`` of the source row of every edge, ``values`` ``[num_src, ...]``, in
    one gather.

    Not recorded for gradients.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> split_sources(structure, torch.tensor([10.0, 20.0, 30.0]))
    [tensor([[30.]]), tensor([[10., 20.]])]
    """
    check_rows(structure, "u", values, "values")
    near = [structure.indices[bucket.edges] for bucket in structure.buckets()]
    return [
        values.index_select(0, rows.flatten()).reshape(*rows.shape, *values.shape[1:])
        for rows in near
    ]


@opaque
def split_rows(structure: Structure, values: Tensor) -> list[Tensor]:
    """Return the rows of ``values`` ``[num_dst, ...]`` per bucket of the structure,
    ``[nodes, ...]`` each.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> split_rows(structure, torch.tensor([10.0, 20.0]))
    [tensor([20.]), tensor([10.])]
    """
    check_rows(structure, "v", values, "values")
    order, sizes = _row_order(structure)
    return list(Permute.apply(values, order).split(sizes)[1:])


@opaque
def join_rows(structure: Structure, parts: Sequence[Tensor]) -> Tensor:
    """Put one tensor ``[nodes, ...]`` per bucket together to ``[num_dst, ...]``; destinations
    without edges are 0.

    ``parts`` must not be empty; without buckets, its only tensor has no rows and gives shape and
    type. Raises ValueError for parts that do not fit the buckets.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> join_rows(structure, split_rows(structure, torch.tensor([10.0, 20.0])))
    tensor([10., 20.])
    """
    check_type(structure, "structure", Structure, "a Structure (flow.structure is one)")
    order, sizes = _row_order(structure)
    counts = [len(part) for part in parts]
    if counts != (sizes[1:] or [0]):
        raise ValueError(
            f"parts must have one row per node of the buckets {sizes[1:]}, got {counts}"
        )
    # rows bucket by bucket, behind zeros for destinations without edges, then put in their order
    joined = torch.cat([parts[0].new_zeros((sizes[0], *parts[0].shape[1:])), *parts])
    return Permute.apply(joined, inverse(order), order)


def _row_order(structure: Structure) -> tuple[Tensor, list[int]]:
    """All destinations, those without edges first, then bucket by bucket; and how many of each."""
    buckets = structure.buckets()
    empty = (structure.in_degrees == 0).nonzero().squeeze(1)
    order = torch.cat([empty, *(bucket.rows for bucket in buckets)])
    return order, [len(empty), *(len(bucket.rows) for bucket in buckets)]
