"""A stand-in for DGL: the few functions that the converters call, as ``_support/dgl_contract.py`` describes them.

DGL has no release for the versions of torch that this package needs, so the two are not in one process. The contract
runs on this module in the ordinary tests, and on DGL itself wherever an interpreter with DGL is named.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

NID = EID = "_ID"


class Frame(dict[str, Tensor]):
    """Columns with a row per node or edge."""

    def __init__(self, num_rows: int) -> None:
        super().__init__()
        self.num_rows = num_rows

    def __setitem__(self, name: str, column: Tensor) -> None:
        if column.shape[0] != self.num_rows:
            raise DGLError(f"Expect number of features to match number of rows, got {len(column)}, {self.num_rows}")
        super().__setitem__(name, column)


class DGLError(Exception):
    pass


class DGLGraph:
    def __init__(self, ends: tuple[Any, Any], sizes: tuple[int, int], *, is_block: bool, is_homogeneous: bool) -> None:
        self._ends = tuple(torch.as_tensor(end, dtype=torch.int64) for end in ends)
        for end, size in zip(self._ends, sizes, strict=True):
            if len(end) and int(end.max()) >= size:
                raise DGLError(f"node {int(end.max())} of {size}")
        self._sizes, self.is_block, self.is_homogeneous = sizes, is_block, is_homogeneous
        self.srcdata = Frame(sizes[0])
        self.dstdata = Frame(sizes[1]) if is_block else self.srcdata
        self.edata = Frame(len(self._ends[0]))

    @property
    def ndata(self) -> Frame:
        return self.srcdata

    def edges(self, order: str = "eid") -> tuple[Tensor, Tensor]:
        assert order == "eid"
        return self._ends[0].clone(), self._ends[1].clone()

    def num_nodes(self) -> int:
        return self._sizes[0]

    def num_edges(self) -> int:
        return len(self._ends[0])

    def num_src_nodes(self) -> int:
        return self._sizes[0]

    def num_dst_nodes(self) -> int:
        return self._sizes[1]


def graph(ends: tuple[Any, Any], *, num_nodes: int | None = None) -> DGLGraph:
    if num_nodes is None:
        num_nodes = max((int(torch.as_tensor(end).max()) + 1 for end in ends if len(end)), default=0)
    return DGLGraph(ends, (num_nodes, num_nodes), is_block=False, is_homogeneous=True)


def create_block(ends: tuple[Any, Any], *, num_src_nodes: int, num_dst_nodes: int) -> DGLGraph:
    return DGLGraph(ends, (num_src_nodes, num_dst_nodes), is_block=True, is_homogeneous=False)


def heterograph(edges: dict[tuple[str, str, str], tuple[Any, Any]]) -> DGLGraph:
    (ends,) = edges.values()
    sizes = tuple(int(torch.as_tensor(end).max()) + 1 for end in ends)
    return DGLGraph(ends, (sizes[0], sizes[1]), is_block=False, is_homogeneous=False)
