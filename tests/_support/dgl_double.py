"""A stand-in for DGL: the few functions that the converters call, as ``_support/dgl_contract.py``
describes them.

DGL has no release for the versions of torch that this package needs, so the two are not in one
process. The contract runs on this module in the ordinary tests, and on DGL itself wherever an
interpreter with DGL is named.
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
            raise DGLError(
                f"Expect number of features to match number of rows, got {len(column)}, "
                f"{self.num_rows}"
            )
        super().__setitem__(name, column)


class DGLError(Exception):
    pass


class OfType:
    """What ``graph.nodes[name]`` and ``graph.edges[relation]`` return."""

    def __init__(self, num_rows: int) -> None:
        self.data = Frame(num_rows)


class Edges(dict[Any, OfType]):
    """``graph.edges``: by relation, and a function that returns the ends."""

    ends: dict[Any, tuple[Tensor, Tensor]]

    def __call__(self, order: str = "eid", etype: Any = None) -> tuple[Tensor, Tensor]:
        assert order == "eid"
        src, dst = self.ends[etype] if etype is not None else next(iter(self.ends.values()))
        return src.clone(), dst.clone()


class DGLGraph:
    def __init__(
        self, ends: dict[Any, tuple[Any, Any]], sizes: dict[str, int], *, is_block: bool = False
    ) -> None:
        self.ntypes = sorted(sizes)
        self.canonical_etypes = sorted(ends)
        self.is_block = is_block
        self.nodes = {name: OfType(sizes[name]) for name in self.ntypes}
        self.edges = Edges()
        self.edges.ends = {
            r: tuple(torch.as_tensor(end, dtype=torch.int64) for end in ends[r])
            for r in sorted(ends)
        }  # type: ignore[misc]
        for relation, both in self.edges.ends.items():
            self.edges[relation] = OfType(len(both[0]))
            for end, name in zip(both, relation[::2], strict=True):
                if len(end) and int(end.max()) >= sizes[name]:
                    raise DGLError(f"node {int(end.max())} of {sizes[name]}")
        self._sizes = sizes

    @property
    def is_homogeneous(self) -> bool:
        return len(self.ntypes) == len(self.canonical_etypes) == 1

    @property
    def ndata(self) -> Frame:
        return self.nodes[self.ntypes[0]].data

    @property
    def edata(self) -> Frame:
        return self.edges[self.canonical_etypes[0]].data

    @property
    def srcdata(self) -> Frame:
        return self.nodes[self.canonical_etypes[0][0]].data

    @property
    def dstdata(self) -> Frame:
        return self.nodes[self.canonical_etypes[0][2]].data

    def num_nodes(self, ntype: str | None = None) -> int:
        return sum(self._sizes.values()) if ntype is None else self._sizes[ntype]

    def num_edges(self) -> int:
        return sum(len(src) for src, _ in self.edges.ends.values())

    def num_src_nodes(self) -> int:
        return self._sizes[self.canonical_etypes[0][0]]

    def num_dst_nodes(self) -> int:
        return self._sizes[self.canonical_etypes[0][2]]


def graph(ends: tuple[Any, Any], *, num_nodes: int | None = None) -> DGLGraph:
    if num_nodes is None:
        num_nodes = max(
            (int(torch.as_tensor(end).max()) + 1 for end in ends if len(end)), default=0
        )
    return DGLGraph({("_N", "_E", "_N"): ends}, {"_N": num_nodes})


def create_block(ends: tuple[Any, Any], *, num_src_nodes: int, num_dst_nodes: int) -> DGLGraph:
    return DGLGraph(
        {("SRC/_N", "_E", "DST/_N"): ends},
        {"SRC/_N": num_src_nodes, "DST/_N": num_dst_nodes},
        is_block=True,
    )


def heterograph(
    edges: dict[Any, tuple[Any, Any]], num_nodes_dict: dict[str, int] | None = None
) -> DGLGraph:
    sizes = {} if num_nodes_dict is None else num_nodes_dict
    if num_nodes_dict is None:
        for relation, ends in edges.items():
            for end, name in zip(ends, relation[::2], strict=True):
                sizes[name] = max([sizes.get(name, 0), *(torch.as_tensor(end) + 1).tolist()])
    return DGLGraph(edges, sizes)
