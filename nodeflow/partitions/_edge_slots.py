"""The edges between resident partitions: buckets read from the folder, and graphs made of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, numpy_type
from nodeflow.graph import Graph
from nodeflow.partitions._buffer_counters import BufferCounters
from nodeflow.partitions._partition_files import read_rows
from nodeflow.partitions._partitions import Partitions

Bucket = dict[str, Array]
"""``src`` and ``dst`` of its edges, rows within their partitions, and the columns by their names in the manifest."""


class StateEdges:
    """The edges of one state.

    ``graph`` is their graph, ``buckets`` the numbers of the buckets (``j * num_parts + i`` holds the edges from
    partition i to partition j) in the order of the edge ids: those of bucket ``buckets[k]`` go from ``begin[k]`` to
    ``begin[k + 1] - 1``.
    """

    __slots__ = ("begin", "buckets", "graph")

    def __init__(self, graph: Graph, buckets: Ints, begin: Ints) -> None:
        self.graph, self.buckets, self.begin = graph, buckets, begin


class EdgeSlots:
    """Reads the buckets between resident partitions; those of two partitions that stay are kept."""

    def __init__(self, partitions: Partitions, columns: Sequence[str], *, page_cache: bool) -> None:
        self._partitions, self._page_cache = partitions, page_cache
        arrays = {name: partitions.manifest.arrays[name] for name in ("src", "dst")}
        self._columns = {f"edata/{name}": name for name in columns}
        self._arrays: dict[str, ArrayFile] = arrays | {f"edata/{name}": partitions.edge_array(name) for name in columns}
        self._kept: dict[int, Bucket] = {}

    def load(self, held: Sequence[int], counters: BufferCounters) -> StateEdges:
        """Read what is missing of the edges between the partitions in the slots ``held``, and make their graph."""
        parts = self._partitions
        count, size = parts.num_parts, parts.size
        numbers = np.add.outer(np.array(held) * count, np.array(held)).ravel()  # by slots: destination, source
        kept = {bucket: self._kept[bucket] for bucket in numbers.tolist() if bucket in self._kept}
        self._kept = kept  # before others are read, so that those that are not needed make room
        self._read(sorted(set(numbers.tolist()) - kept.keys()), counters)
        buckets = [self._kept[bucket] for bucket in numbers.tolist()]
        begin = np.concatenate([[0], np.cumsum([len(bucket["src"]) for bucket in buckets])]).astype(np.int64)
        slots = np.arange(len(held))
        dst_start, src_start = np.repeat(slots, len(held)) * size, np.tile(slots, len(held)) * size
        indptr = np.zeros(len(held) * size + 1, np.int64)
        for bucket, start in zip(buckets, dst_start.tolist(), strict=True):
            kernels.buckets.count_bucket(bucket["dst"], start, indptr)
        np.cumsum(indptr, out=indptr)
        indices = np.empty(begin[-1], _id_type(len(indptr)))
        edge_ids = np.empty(begin[-1], _id_type(begin[-1]))
        head = indptr[:-1].copy()
        for k, bucket in enumerate(buckets):
            ends = bucket["src"], bucket["dst"], int(src_start[k]), int(dst_start[k])
            kernels.buckets.place_bucket(*ends, int(begin[k]), head, indices, edge_ids)
        edata = {name: self._joined(key, buckets) for key, name in self._columns.items()}
        return StateEdges(Graph(indptr, indices, edge_ids=edge_ids, edata=edata, copy=False), numbers, begin)

    def _read(self, missing: list[int], counters: BufferCounters) -> None:
        """Read buckets, those beside each other in the files at once."""
        ptr = self._partitions.bucket_ptr
        for _, run in groupby(enumerate(missing), lambda pair: pair[1] - pair[0]):
            buckets = [bucket for _, bucket in run]
            first, last = int(ptr[buckets[0]]), int(ptr[buckets[-1] + 1])
            whole: Bucket = {}
            for key, array in self._arrays.items():
                whole[key] = np.empty((last - first, *array.shape[1:]), numpy_type(getattr(torch, array.dtype)))
                path = self._partitions.folder / array.file
                counters.edge_bytes_read += read_rows(path, whole[key], first, page_cache=self._page_cache)
            self._check(whole, first)
            for bucket in buckets:
                part = slice(int(ptr[bucket]) - first, int(ptr[bucket + 1]) - first)
                # copies, so that a bucket that is dropped leaves no memory behind that others share
                self._kept[bucket] = {key: array[part].copy() for key, array in whole.items()}

    def _check(self, whole: Bucket, first: int) -> None:
        """Raise ValueError for ends that are no rows of a partition: the loops that place edges trust them."""
        for end in ("src", "dst"):
            rows = whole[end].view(np.uint32)  # a negative number is a large one
            if rows.max(initial=0) >= self._partitions.size and self._partitions.size:
                at = int(rows.argmax())
                path = self._partitions.folder / self._arrays[end].file
                raise ValueError(
                    f"{path} is damaged: edge {first + at} ends at row {whole[end][at]} of a partition that has "
                    f"{self._partitions.size}"
                )

    def _joined(self, key: str, buckets: list[Bucket]) -> Tensor:
        tensor = torch.from_numpy(np.concatenate([bucket[key] for bucket in buckets]))
        return tensor.view(torch.bfloat16) if self._arrays[key].dtype == "bfloat16" else tensor


def _id_type(upper: int) -> type[np.signedinteger[Any]]:
    return np.int32 if upper < 2**31 else np.int64
