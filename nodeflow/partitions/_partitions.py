"""A folder of parts: its numbering, its buckets and its columns, as ``write_partitions`` left them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_count, as_ids, check_indptr, describe
from nodeflow._base.types import Array, IdsLike
from nodeflow._disk.arrays import ArrayFile, map_tensor
from nodeflow._rows.base import RowsBase
from nodeflow._rows.rows import fetch_rows, put_rows
from nodeflow.partitions._cut import part_type
from nodeflow.partitions._cut_graph import CutGraph


class Partitions(CutGraph):
    """A graph in a folder, cut into parts of its nodes and buckets of its edges. ``Partitions.open`` opens it.

    Row r of part p is row ``p * size + r`` of all rows. ``rows``, ``[num_nodes]``, is the row of every node;
    ``parents``, ``[num_parts * size]``, the node at every row, -1 for the last row of a part that has one node less
    than the others. ``bucket_sizes``, int64 ``[num_parts, num_parts]``, has at ``[i, j]`` the number of edges from part
    i to part j. ``epoch`` is the number of epochs whose learned rows a ``PartitionBuffer`` has committed.

    >>> import nodeflow, tempfile
    >>> ring = nodeflow.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> folder = nodeflow.partitions.write_partitions(ring, tempfile.mkdtemp(), 2, progress=False).folder
    >>> parts = Partitions.open(folder)
    >>> parts, parts.size, int(parts.bucket_sizes.sum())
    (Partitions(2 parts of 2 nodes, 4 edges, 50.0% cut), 2, 4)
    """

    layout = ("partitions", 1)
    size: int
    epoch: int
    rows: Array
    parents: Array
    bucket_ptr: Ints
    bucket_sizes: Ints

    def _read(self, facts: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        count, size = self.num_parts, int(facts["size"])
        self._set(size=size, epoch=as_count(facts["epoch"], "epoch"))
        return {
            "rows": (self.num_nodes,),
            "parents": (count * size,),
            "bucket_ptr": (count**2 + 1,),
            **{f"ndata/{name}/{p}": (size,) for name in self.ndata for p in range(count)},
            **dict.fromkeys(["src", "dst", "edge_ids", *(f"edata/{name}" for name in self.edata)], (self.num_edges,)),
        }

    def _take_arrays(self) -> None:
        self._set(**{name: self._arrays[name] for name in ("rows", "parents", "bucket_ptr")})
        check_indptr(self.bucket_ptr, self.num_edges)
        self._set(bucket_sizes=np.diff(self.bucket_ptr).reshape(self.num_parts, self.num_parts).T.copy())

    @property
    def cut(self) -> float:
        """Share of the edges whose two ends are in different parts; 0 for a graph without edges."""
        return 1 - int(self.bucket_sizes.trace()) / self.num_edges if self.num_edges else 0.0

    @property
    def owner(self) -> Array:
        """The part of every node, ``[num_nodes]``, in the narrowest type."""
        return (self.rows // self.size).astype(part_type(self.num_parts))

    def node_array(self, name: str, partition: int) -> ArrayFile:
        """Return the description of the file of a part of a node column; KeyError for an unknown column."""
        return self._array("node", f"ndata/{name}/{partition}", name, self.ndata)

    def edge_array(self, name: str) -> ArrayFile:
        """Return the description of the file of an edge column; KeyError for an unknown column."""
        return self._array("edge", f"edata/{name}", name, self.edata)

    def _array(self, kind: str, key: str, name: str, names: list[str]) -> ArrayFile:
        if key not in self.manifest.arrays:
            raise KeyError(f"there is no {kind} column {name!r}; there are {', '.join(names) or 'none'}")
        return self.manifest.arrays[key]

    def partition_of(self, nodes: IdsLike) -> Tensor:
        """Return the parts of nodes, int64 ``[k]``; raises IndexError for an id that is no node."""
        rows = self.rows[as_ids(nodes, "nodes", self.num_nodes)]
        return torch.from_numpy(rows.astype(np.int64) // self.size)

    def visible_share(self, held: Sequence[int]) -> float:
        """Return the share of in-edges of nodes of ``held`` whose sources are in ``held`` too; 1 without in-edges."""
        reached = int(self.bucket_sizes[:, held].sum())
        return int(self.bucket_sizes[np.ix_(held, held)].sum()) / reached if reached else 1.0

    def column(self, name: str) -> PartitionedRows:
        """Return a node column as ``Rows`` by node id, as committed now; KeyError for an unknown column.

        So learned rows go back into a graph: ``graph.ndata["h"] = Partitions.open(folder).column("h")``.
        """
        return PartitionedRows(self, name)

    def __repr__(self) -> str:
        sizes = f"{self.num_parts} parts of {self.size} nodes"
        return self._shown(sizes, f"{self.num_edges} edges, {self.cut:.1%} cut")


class PartitionedRows(RowsBase):
    """The rows of a node column of a folder of parts, fetched by node id: ``Rows`` that a graph takes as a column.

    Files are mapped when their first row is asked for.
    """

    _kind = "node"

    def __init__(self, partitions: Partitions, name: str) -> None:
        self._partitions = partitions
        self._arrays = [partitions.node_array(name, p) for p in range(partitions.num_parts)]
        first = self._arrays[0]
        self.shape, self.dtype, self.layout = (partitions.num_nodes, *first.shape[1:]), first.torch_type, first.layout
        self._maps: dict[int, Tensor] = {}

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        numbers, places = np.divmod(self._partitions.rows[ids].astype(np.int64), self._partitions.size)
        parts = []
        for p in np.unique(numbers).tolist() or [0]:
            at = np.flatnonzero(numbers == p)
            parts.append((fetch_rows(self._map(p), torch.from_numpy(places[at])), at))
        return put_rows(parts, len(ids))

    def _map(self, partition: int) -> Tensor:
        if partition not in self._maps:
            self._maps[partition] = map_tensor(self._partitions.folder, self._arrays[partition])
        return self._maps[partition]


def chosen_columns(columns: Iterable[str], names: Sequence[str] | None, argument: str, owner: str) -> list[str]:
    """Return the names of columns that a caller chose, each once; None chooses all.

    Raises TypeError for a single string, KeyError for a name that ``owner`` does not have.
    """
    present = list(columns)
    if names is None:
        return present
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of names of columns, got {describe(names)}")
    for name in names:
        if name not in present:
            raise KeyError(f"{argument}: {owner} has no column {name!r}; it has {', '.join(present) or 'none'}")
    return list(dict.fromkeys(names))
