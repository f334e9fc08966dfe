"""A folder of partitions: its numbering, its buckets and its columns, as ``write_partitions`` left them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids, check_indptr, describe
from nodeflow._base.types import Array, IdsLike
from nodeflow._disk.arrays import ArrayFile, map_array, map_tensor
from nodeflow._rows.base import RowsBase
from nodeflow._rows.rows import fetch_rows, put_rows
from nodeflow.partitions._cut_graph import CutGraph

KIND, VERSION = "partitions", 1


class Partitions(CutGraph):
    """A graph in a folder, cut into partitions of its nodes and buckets of its edges. ``Partitions.open`` opens it.

    Row r of partition p is row ``p * size + r`` of all rows. ``rows``, ``[num_nodes]``, is the row of every node;
    ``parents``, ``[num_parts * size]``, the node at every row, -1 for the last row of a partition that has one
    node less than the others. ``bucket_sizes``, int64 ``[num_parts, num_parts]``, has at ``[i, j]`` the
    number of edges from partition i to partition j. ``train`` are the training nodes, None where none were given.
    ``epoch`` is the number of epochs whose learned rows are in the folder. All arrays are read-only and mapped.

    >>> import tempfile
    >>> from nodeflow import Graph
    >>> from nodeflow.partitions import write_partitions
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_partitions(graph, folder + "/ring", 2, progress=False)
    ...     parts = Partitions.open(folder + "/ring")
    ...     print(parts.num_parts, parts.size, int(parts.bucket_sizes.sum()))
    Partitions(2 partitions of 2 nodes, 4 edges, 50.0% cut)
    2 2 4
    """

    __slots__ = ("bucket_ptr", "bucket_sizes", "parents", "rows")
    layout = (KIND, VERSION)
    rows: Array
    parents: Array
    bucket_ptr: Ints
    bucket_sizes: Ints

    def _map(self) -> None:
        arrays, count = self.manifest.arrays, self.num_parts
        mapped = {name: map_array(self.folder, arrays[name]) for name in ("rows", "parents", "bucket_ptr")}
        check_indptr(mapped["bucket_ptr"], self.num_edges)
        self._set(
            **mapped, train=map_array(self.folder, arrays["train"]) if "train" in arrays else None,
            bucket_sizes=np.diff(mapped["bucket_ptr"]).reshape(count, count).T.copy(),
        )  # fmt: skip

    @property
    def num_parts(self) -> int:
        """Number of partitions."""
        return int(self.manifest.facts["num_partitions"])

    @property
    def size(self) -> int:
        """Rows of a partition."""
        return int(self.manifest.facts["size"])

    @property
    def cut(self) -> float:
        """Share of the edges whose two ends are in different partitions; 0 for a graph without edges.

        >>> import tempfile
        >>> from nodeflow import Graph
        >>> from nodeflow.partitions import write_partitions
        >>> ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
        >>> write_partitions(ring, tempfile.mkdtemp(), 2, method=[0, 0, 1, 1], progress=False).cut
        0.5
        """
        return 1 - int(self.bucket_sizes.trace()) / self.num_edges if self.num_edges else 0.0

    @property
    def epoch(self) -> int:
        """Number of epochs that were committed, with a ``PartitionBuffer`` that writes columns."""
        return int(self.manifest.facts["epoch"])

    def node_array(self, name: str, partition: int) -> ArrayFile:
        """Return the description of the file of a partition of a node column; KeyError for an unknown column."""
        try:
            return self.manifest.arrays[f"ndata/{name}/{partition}"]
        except KeyError:
            raise KeyError(f"there is no node column {name!r}; there are {', '.join(self.ndata) or 'none'}") from None

    def edge_array(self, name: str) -> ArrayFile:
        """Return the description of the file of an edge column; KeyError for an unknown column."""
        try:
            return self.manifest.arrays[f"edata/{name}"]
        except KeyError:
            raise KeyError(f"there is no edge column {name!r}; there are {', '.join(self.edata) or 'none'}") from None

    def partition_of(self, nodes: IdsLike) -> Tensor:
        """Return the partitions of nodes, int64 ``[k]``; raises IndexError for an id that is no node."""
        rows = self.rows[as_ids(nodes, "nodes", self.num_nodes)]
        return torch.from_numpy(rows.astype(np.int64) // self.size)

    def column(self, name: str) -> PartitionedRows:
        """Return a node column as ``Rows`` by node id, as committed now; KeyError for an unknown column.

        So learned rows go back into a graph: ``graph.ndata["h"] = Partitions.open(folder).column("h")``.
        """
        return PartitionedRows(self, name)

    def _sizes(self) -> list[str]:
        sizes = f"{self.num_parts} partitions of {self.size} nodes"
        return [sizes, f"{self.num_edges} edges, {self.cut:.1%} cut"]

    def _fits(self) -> bool:
        arrays, count, size = self.manifest.arrays, self.num_parts, self.size
        expected = {
            "rows": (self.num_nodes,), "parents": (count * size,), "bucket_ptr": (count**2 + 1,),
            **dict.fromkeys(("src", "dst", "edge_ids"), (self.num_edges,)),
        }  # fmt: skip
        shapes = {name: arrays[name].shape for name in expected}
        firsts = {arrays[f"ndata/{name}/{p}"].shape[0] for name in self.ndata for p in range(count)}
        firsts |= {arrays[f"edata/{name}"].shape[0] - self.num_edges + size for name in self.edata}
        return shapes == expected and firsts <= {size} and self.epoch >= 0


class PartitionedRows(RowsBase):
    """The rows of a node column of a folder of partitions, fetched by node id: ``Rows`` that a graph takes as a column.

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


def chosen_columns(there: Iterable[str], names: Sequence[str] | None, argument: str, owner: str) -> list[str]:
    """Return the names of columns that a caller chose, each once; None chooses all that are there.

    Raises TypeError for a single string, KeyError for a name that ``owner`` does not have.
    """
    known = list(there)
    if names is None:
        return known
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of names of columns, got {describe(names)}")
    for name in names:
        if name not in known:
            raise KeyError(f"{argument}: {owner} has no column {name!r}; it has {', '.join(known) or 'none'}")
    return list(dict.fromkeys(names))
