"""A folder of partitions: its numbering, its buckets and its columns, as ``write_partitions`` left them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids, check_indptr, describe
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array, FileLike, IdsLike
from nodeflow._disk.arrays import ArrayFile, map_array, map_tensor
from nodeflow._disk.manifest import Manifest

KIND, VERSION = "partitions", 1


class Partitions(Frozen):
    """A graph in a folder, cut into partitions of its nodes and buckets of its edges. ``Partitions.open`` opens it.

    Row r of partition p is row ``p * size + r`` of all rows. ``rows``, ``[num_nodes]``, is the row of every node;
    ``parents``, ``[num_partitions * size]``, the node at every row, -1 for the last row of a partition that has one
    node less than the others. ``bucket_sizes``, int64 ``[num_partitions, num_partitions]``, has at ``[i, j]`` the
    number of edges from partition i to partition j. ``train`` are the training nodes, None where none were given.
    ``epoch`` is the number of epochs whose learned rows are in the folder. All arrays are read-only and mapped.

    >>> import tempfile
    >>> from nodeflow import Graph
    >>> from nodeflow.storage import write_partitions
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_partitions(graph, folder + "/ring", 2, progress=False)
    ...     parts = Partitions.open(folder + "/ring")
    ...     print(parts.num_partitions, parts.size, int(parts.bucket_sizes.sum()))
    Partitions(2 partitions of 2 nodes, 4 edges, 50.0% cut)
    2 2 4
    """

    __slots__ = ("bucket_ptr", "bucket_sizes", "folder", "manifest", "parents", "rows", "train")
    folder: Path
    manifest: Manifest
    rows: Array
    parents: Array
    bucket_ptr: Ints
    bucket_sizes: Ints
    train: Ints | None

    def __init__(self, folder: FileLike, *, verify: bool = False) -> None:
        path = Path(folder).absolute()
        manifest = Manifest.read(path, KIND, VERSION, contents=verify)
        self._set(folder=path, manifest=manifest)
        self._check()
        arrays = {name: map_array(path, manifest.arrays[name]) for name in ("rows", "parents", "bucket_ptr")}
        train = manifest.arrays.get("train")
        count = self.num_partitions
        check_indptr(arrays["bucket_ptr"], self.num_edges)
        self._set(
            **arrays, train=None if train is None else map_array(path, train),
            bucket_sizes=np.diff(arrays["bucket_ptr"]).reshape(count, count).T.copy(),
        )  # fmt: skip

    @classmethod
    def open(cls, folder: FileLike, *, verify: bool = False) -> Partitions:
        """Open a folder that ``write_partitions`` wrote.

        Sizes and types of all files are checked; ``verify`` checks the checksums too, which reads everything. Raises
        FileNotFoundError for a folder without a manifest, ValueError for one of another kind or version and for files
        that are missing, damaged or foreign.
        """
        return cls(folder, verify=verify)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.manifest.facts["num_nodes"])

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return int(self.manifest.facts["num_edges"])

    @property
    def num_partitions(self) -> int:
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
        >>> from nodeflow.storage import write_partitions
        >>> ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
        >>> write_partitions(ring, tempfile.mkdtemp(), 2, method=[0, 0, 1, 1], progress=False).cut
        0.5
        """
        return 1 - int(self.bucket_sizes.trace()) / self.num_edges if self.num_edges else 0.0

    @property
    def epoch(self) -> int:
        """Number of epochs that were committed, with a ``PartitionBuffer`` that writes columns."""
        return int(self.manifest.facts["epoch"])

    @property
    def ndata(self) -> list[str]:
        """Names of the node columns."""
        return list(self.manifest.facts["ndata"])

    @property
    def edata(self) -> list[str]:
        """Names of the edge columns."""
        return list(self.manifest.facts["edata"])

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

    def __repr__(self) -> str:
        columns = [f"{kind}: {', '.join(f)}" for kind, f in (("ndata", self.ndata), ("edata", self.edata)) if f]
        sizes = f"{self.num_partitions} partitions of {self.size} nodes", f"{self.num_edges} edges, {self.cut:.1%} cut"
        return f"Partitions({', '.join([*sizes, *columns])})"

    def _check(self) -> None:
        """Raise ValueError where the facts of the manifest and the arrays do not fit together."""
        arrays = self.manifest.arrays
        try:
            count, size = self.num_partitions, self.size
            expected = {
                "rows": (self.num_nodes,), "parents": (count * size,), "bucket_ptr": (count**2 + 1,),
                **dict.fromkeys(("src", "dst", "edge_ids"), (self.num_edges,)),
            }  # fmt: skip
            found = {name: arrays[name].shape for name in expected}
            firsts = {arrays[f"ndata/{name}/{p}"].shape[0] for name in self.ndata for p in range(count)}
            firsts |= {arrays[f"edata/{name}"].shape[0] - self.num_edges + size for name in self.edata}
            whole = found == expected and firsts <= {size} and self.epoch >= 0
        except (KeyError, TypeError, ValueError, IndexError):
            whole = False
        if not whole:
            raise ValueError(f"{self.folder} has a manifest whose sizes and arrays do not fit together: it is damaged")


class PartitionedRows:
    """The rows of a node column of a folder of partitions, fetched by node id: ``Rows`` that a graph takes as a column.

    Files are mapped when their first row is asked for.
    """

    def __init__(self, partitions: Partitions, name: str) -> None:
        arrays = [partitions.node_array(name, p) for p in range(partitions.num_partitions)]
        self._partitions, self._arrays = partitions, arrays
        self._maps: dict[int, Tensor] = {}
        self._dtype: torch.dtype = getattr(torch, arrays[0].dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole column, ``(num_nodes, ...)``."""
        return (self._partitions.num_nodes, *self._arrays[0].shape[1:])

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers."""
        return self._dtype

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows of nodes, int64 ``[k]``, as ``[k, ...]``; IndexError for an id that is no node."""
        nodes = as_ids(ids, "ids", self.shape[0])
        rows = self._partitions.rows[nodes].astype(np.int64)
        result = torch.empty((len(nodes), *self.shape[1:]), dtype=self._dtype) if out is None else out
        number = rows // self._partitions.size
        for p in np.unique(number).tolist():
            at = np.flatnonzero(number == p)
            places = torch.from_numpy(rows[at] - p * self._partitions.size)
            result[torch.from_numpy(at)] = self._map(p)[places]
        return result

    def _map(self, partition: int) -> Tensor:
        if partition not in self._maps:
            self._maps[partition] = map_tensor(self._partitions.folder, self._arrays[partition])
        return self._maps[partition]

    def __repr__(self) -> str:
        return f"PartitionedRows({str(self._dtype).removeprefix('torch.')} {list(self.shape)})"


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
