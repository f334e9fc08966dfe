"""Structure: the edges of one flow as a CSR matrix, and the values derived from them, made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_array, as_count, check_indptr, check_range, describe
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.in_torch.ragged import ends_of
from nodeflow._core.rows.csr import csr_positions

T = TypeVar("T")


class Bucket(NamedTuple):
    """The destinations of one in-degree: ``rows`` ``[n]``, and their edges ``[n, degree]``."""

    degree: int
    rows: Tensor
    edges: Tensor


class Structure(Frozen):
    """Edges of one flow as a CSR matrix over destinations.

    Args:
        indptr: int64 ``[num_dst + 1]``: the edges into destination v are ``indptr[v]`` to
            ``indptr[v + 1] - 1``.
        indices: int64 ``[E]``, the source row of every edge.
        num_src: number of source rows.

    Several flows may share one Structure. Its tensors are shared, so do not write to them.

    Raises TypeError for what is no int64 tensor, ValueError for an ``indptr`` that decreases, does
    not start at 0 or does not end at the number of edges, and for tensors on two devices,
    IndexError for a source out of range.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([1, 2, 0]), num_src=3)
    >>> structure.in_degrees, structure.dst
    (tensor([2, 1]), tensor([0, 0, 1]))
    """

    __slots__ = ("_derived", "indices", "indptr", "num_src")
    indptr: Tensor
    indices: Tensor
    num_src: int
    _derived: dict[str, Any]

    def __init__(self, indptr: Tensor, indices: Tensor, num_src: int) -> None:
        arrays = []
        for name, part in (("indptr", indptr), ("indices", indices)):
            if (
                not isinstance(part, Tensor)
                or part.dtype != torch.int64
                or part.layout != torch.strided
            ):
                raise TypeError(f"{name} must be an int64 tensor, got {describe(part)}")
            if part.ndim != 1:
                raise ValueError(f"{name} must be one-dimensional, got shape {tuple(part.shape)}")
            arrays.append(as_array(part, name))
        if indptr.device != indices.device:
            raise ValueError(
                f"indptr and indices must be on one device, got {indptr.device} and "
                f"{indices.device}"
            )
        num_src = as_count(num_src, "num_src")
        check_indptr(arrays[0], len(indices))
        check_range(arrays[1], "indices", num_src, "source")
        # compiled loops take plain memory, entry after entry
        self._set(
            indptr=indptr.contiguous(), indices=indices.contiguous(), num_src=num_src, _derived={}
        )

    @classmethod
    def _trusted(cls, indptr: Tensor, indices: Tensor, num_src: int) -> Structure:
        """Return a structure of parts that are known to be right."""
        self = cls.__new__(cls)
        self._set(indptr=indptr, indices=indices, num_src=num_src, _derived={})
        return self

    def __repr__(self) -> str:
        return (
            f"Structure({self.num_src} sources, {self.num_dst} destinations, {self.num_edges} "
            "edges)"
        )

    @property
    def num_dst(self) -> int:
        """Number of destination rows."""
        # quicker than len
        return self.indptr.size(0) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.indices.size(0)

    @property
    def device(self) -> torch.device:
        """The device of the structure."""
        return self.indptr.device

    @property
    def in_degrees(self) -> Tensor:
        """Number of edges of each destination, int64 ``[num_dst]``."""
        return self.indptr[1:] - self.indptr[:-1]

    @property
    def out_degrees(self) -> Tensor:
        """Number of edges of each source, int64 ``[num_src]``."""
        return torch.bincount(self.indices, minlength=self.num_src)

    # The derived values below depend on the structure only: two threads that race store the same
    # value.

    @property
    def dst(self) -> Tensor:
        """Destination row of every edge, int64 ``[E]``."""
        return self._kept("dst", self._make_dst)

    def transposed(self) -> tuple[Structure, Tensor]:
        """Return the structure with sources and destinations swapped, and the edge each of its
        edges came from.
        """
        return self._kept("transposed", self._make_transposed)

    def grouped(self, end: str) -> tuple[Structure, Tensor | None]:
        """Return the edges grouped by the rows of one end, "u" or "v", and the id of each; None: in
        order.
        """
        if end == "u":
            return self.transposed()
        return (self, None)

    def divisor(self, rows: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Return the in-degrees, at least 1, as a divisor of the rank of ``rows``,
        ``[num_dst, 1, ...]``.

        It has the type of ``rows``, or ``dtype``.
        """
        degrees = self.in_degrees.clamp(min=1).to(dtype or rows.dtype)
        return degrees.view(-1, *[1] * (rows.ndim - 1))

    @property
    def is_transposed(self) -> bool:
        """Whether ``transposed`` was made: then it costs nothing more."""
        return "transposed" in self._derived

    def buckets(self) -> tuple[Bucket, ...]:
        """Return the destinations grouped by in-degree, ascending; those without edges are left
        out.
        """
        return self._kept("buckets", self._make_buckets)

    def _kept(self, name: str, make: Callable[[], T]) -> T:
        if name not in self._derived:
            # the cached result serves later calls, which may need gradients
            with torch.inference_mode(mode=False):
                self._derived[name] = make()
        return cast("T", self._derived[name])

    def _make_dst(self) -> Tensor:
        # torch's own wakes all its threads, whatever the size
        if self.device.type == "cpu":
            numbers = np.arange(self.num_dst)
            return torch.from_numpy(np.repeat(numbers, self.in_degrees.numpy()))
        rows = torch.arange(self.num_dst, device=self.device)
        return torch.repeat_interleave(rows, self.in_degrees, output_size=self.num_edges)

    def _make_transposed(self) -> tuple[Structure, Tensor]:
        if self.device.type == "cpu":
            parts = kernels.csr.transpose(self.indptr.numpy(), self.indices.numpy(), self.num_src)
            indptr, rows, edges = map(torch.from_numpy, parts)
        else:
            edges = torch.argsort(self.indices, stable=True)
            rows = self.dst[edges]
            indptr = ends_of(self.out_degrees)
        return Structure._trusted(indptr, rows, self.num_dst), edges

    def _make_buckets(self) -> tuple[Bucket, ...]:
        # one sort for all buckets: there may be as many degrees as destinations
        degrees = self.in_degrees
        order = torch.argsort(degrees, stable=True)
        sizes, counts = torch.unique_consecutive(degrees[order], return_counts=True)
        buckets = []
        for degree, rows in zip(sizes.tolist(), order.split(counts.tolist()), strict=True):
            if degree:
                edges = self.indptr[rows, None] + torch.arange(degree, device=self.device)
                buckets.append(Bucket(degree, rows, edges))
        return tuple(buckets)

    def select_rows(self, rows: Tensor) -> tuple[Structure, Tensor]:
        """Return the structure of the destinations ``rows`` (in that order) and the edges it kept,
        int64 ``[k]``.
        """
        chosen, edges = csr_positions(self.indptr, rows)
        return Structure._trusted(chosen, self.indices[edges], self.num_src), edges

    @checked
    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Structure:
        """Return the structure on ``device``."""
        indptr = self.indptr.to(device, non_blocking=non_blocking)
        indices = self.indices.to(device, non_blocking=non_blocking)
        return Structure._trusted(indptr, indices, self.num_src)
