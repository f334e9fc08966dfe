"""Folders of cut graphs: their base, and that of a buffer, with its numbering, its buckets and its
columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, blaming, describe, titles
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Array, FileLike, IdsLike
from nodeflow._core.rows.base import RowsBase
from nodeflow._core.rows.rows import fetch_rows, layout_of, put_rows
from nodeflow._core.schema import sizes as in_words
from nodeflow._files.disk.arrays import ArrayFile, map_array, map_column
from nodeflow._files.disk.checked import check_ends, check_ids
from nodeflow._files.disk.manifest import Manifest
from nodeflow.distributed._cut import part_type
from nodeflow.graph import Schema, columns_of


class CutGraph(Frozen):
    """A graph in a folder, cut into ``num_parts`` parts; ``num_nodes`` and ``num_edges`` are those
    of the whole.

    ``method`` says how the nodes were cut: the name of a method, or "given". ``ndata`` and
    ``edata`` are the names of the columns, ``train`` the training nodes, None where none were
    given. All arrays are read-only and mapped.

    A subclass has the kind and version of its folders in ``layout``.
    """

    layout: ClassVar[tuple[str, int]]
    folder: Path
    manifest: Manifest
    num_nodes: int
    num_edges: int
    num_parts: int
    method: str
    ndata: list[str]
    edata: list[str]
    train: Ints | None
    schema: Schema
    _arrays: dict[str, Array]
    _verify: bool | None

    @checked
    def __init__(self, folder: FileLike, *, verify: bool | None = None) -> None:
        self._set(folder=Path(folder).absolute(), _verify=verify)
        manifest = Manifest.read(self.folder, *self.layout, verify=verify, check=self._check_files)
        self._take_facts(manifest)
        arrays = {
            name: map_array(self.folder, array)
            for name, array in manifest.arrays.items()
            if "/" not in name
        }
        self._set(_arrays=arrays, train=arrays.get("train"))
        self._take_arrays()

    def _check_files(self, manifest: Manifest) -> None:
        """Check what no checksum says of files that are new or have changed: see ``_check``."""
        self._take_facts(manifest)
        self._check(manifest.arrays)

    def _take_facts(self, manifest: Manifest) -> None:
        """Set the attributes that a manifest holds, and compare the shapes of its arrays with
        them.
        """
        facts = manifest.facts
        self._set(manifest=manifest)
        with sound(self.folder):
            # the folders of ``Partitions`` have had this word from the first version on
            count = facts.get("num_partitions", facts.get("num_parts"))
            self._set(
                num_nodes=as_count(facts["num_nodes"], "num_nodes"),
                num_edges=as_count(facts["num_edges"], "num_edges"),
                num_parts=as_count(count, "the number of parts", 1),
            )
            # folders of an earlier version may have no schema
            schema = Schema.of_one_type(self.num_nodes, self.num_edges)
            if "schema" in facts:
                schema = Schema.from_json(facts["schema"])
            if (schema.num_nodes, schema.num_edges) != (self.num_nodes, self.num_edges):
                raise ValueError("the schema is of another size")
            self._set(schema=schema)
            for kind in ("ndata", "edata"):
                # a folder of parts says more of a column than its name
                columns = [
                    {"name": column} if isinstance(column, str) else column
                    for column in facts[kind]
                ]
                names = [str(column["name"]) for column in columns]
                if len(set(names)) < len(names):
                    raise ValueError(kind)
                self._set(**{kind: names})
            self._set(method=str(facts["method"]))
            check_shapes(manifest.arrays, self._read(facts))

    @classmethod
    def open(cls, folder: FileLike, *, verify: bool | None = None) -> Self:
        """Open a folder.

        Files are checked as by ``Graph.open``: ``verify`` None compares the checksums of those that
        have changed, True of all, False of none. Folders of parts are checked when ``part`` opens
        them. Raises FileNotFoundError for a folder without a manifest, ValueError for one of
        another kind or version and for files that are missing, damaged or foreign.
        """
        return cls(folder, verify=verify)

    @abstractmethod
    def _check(self, arrays: Mapping[str, ArrayFile]) -> None:
        """Check the arrays that say where something lies: raises ValueError for numbers out of
        bounds.
        """

    @abstractmethod
    def _read(self, facts: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Set the facts of the manifest; return the shapes of arrays by name, of columns without
        their rows.
        """

    @abstractmethod
    def _take_arrays(self) -> None:
        """Set attributes from the mapped arrays, which have the right shapes."""

    def _shown(self, *sizes: str) -> str:
        words = list(sizes)
        if self.ndata:
            words.append(f"ndata: {titles(self.ndata)}")
        if self.edata:
            words.append(f"edata: {titles(self.edata)}")
        return f"{type(self).__name__}({', '.join(words)})"


def sound(folder: Path) -> AbstractContextManager[None]:
    """Raise one ValueError for whatever a damaged manifest causes in its reader, within the
    block.
    """
    damage = f"{folder} is damaged: in its manifest sizes and arrays do not fit together"
    return blaming(
        damage, AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError
    )


def rows_of_part(schema: Schema, num_parts: int) -> Schema:
    """Return the types with the rows that each has in a part: as many in every part, type after
    type.
    """
    return Schema({name: -(-len(ids) // num_parts) for name, ids in schema.nodes.items()}, {})


def check_shapes(arrays: Mapping[str, ArrayFile], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise KeyError or ValueError unless arrays have these shapes; rows of columns, "ndata/x", may
    be of any.
    """
    for name, shape in shapes.items():
        if arrays[name].shape[: len(shape) if "/" in name else None] != shape:
            raise ValueError(name)


class Partitions(CutGraph):
    """A graph in a folder, cut into parts of its nodes and buckets of its edges.
    ``Partitions.open`` opens it.

    Row r of part p is row ``p * size + r`` of all rows. ``rows``, ``[num_nodes]``, is the row of
    every node; ``parents``, ``[num_parts * size]``, the node at every row, -1 for the last row of a
    type in a part that has one node less of it than others. ``schema`` has the node types and
    relations, ``part`` the rows of each type in a part. ``bucket_sizes``, int64
    ``[num_parts, num_parts]``, has at ``[i, j]`` the number of edges from part i to part j.
    ``epoch`` is the number of epochs whose learned rows a ``PartitionBuffer`` has committed.

    >>> import nodeflow, tempfile
    >>> ring = nodeflow.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> nodeflow.distributed.write_partitions(ring, tempfile.mkdtemp(), 2, progress=False)
    Partitions(2 parts of 2 nodes, 4 edges, 50.0% cut)
    """

    layout = ("partitions", 1)
    size: int
    epoch: int
    part: Schema
    columns: dict[str, dict[str, int]]
    rows: Array
    parents: Array
    bucket_ptr: Ints
    bucket_sizes: Ints

    def _read(self, facts: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        count = self.num_parts
        size = int(facts["size"])
        part = rows_of_part(self.schema, count)
        if part.num_nodes != size:
            raise ValueError("the parts are of another size")
        self._set(size=size, epoch=as_count(facts["epoch"], "epoch"), part=part)
        relations = self.schema.relations
        shapes: dict[str, tuple[int, ...]] = {
            "rows": (self.num_nodes,),
            "parents": (count * size,),
            "bucket_ptr": (count**2 * len(relations) + 1,),
            **dict.fromkeys(["src", "dst", "edge_ids"], (self.num_edges,)),
        }
        self._set(columns={"nodes": {}, "edges": {}})
        for kind, num_all, types in (
            ("nodes", size, part.nodes),
            ("edges", self.num_edges, relations),
        ):
            # number -1 is all nodes, or all edges
            for i, num_rows in enumerate([num_all, *map(len, types.values())], -1):
                frame = f"{kind[0]}data" if i < 0 else columns_of(kind, i)
                for name in facts.get(frame, ()):
                    key = f"{frame}/{name}"
                    self.columns[kind][key] = i
                    # a file for all edges, but one per part for nodes, which come and go
                    keys = [key] if kind == "edges" else [f"{key}/{p}" for p in range(count)]
                    shapes |= dict.fromkeys(keys, (num_rows,))
        return shapes

    def _check(self, arrays: Mapping[str, ArrayFile]) -> None:
        # ends of edges are checked as they are read
        check_ids(self.folder, arrays["rows"], self.num_parts * self.size, "row")
        check_ids(self.folder, arrays["parents"], self.num_nodes, lower=-1)
        check_ends(self.folder, arrays["bucket_ptr"], self.num_edges)
        if "train" in arrays:
            check_ids(self.folder, arrays["train"], self.num_nodes)

    def _take_arrays(self) -> None:
        self._set(**{name: self._arrays[name] for name in ("rows", "parents", "bucket_ptr")})
        # buckets lie by destination, then source; users read them the other way round
        by_destination = self._by_relation.sum(1).reshape(self.num_parts, -1)
        self._set(bucket_sizes=by_destination.T.copy())

    @property
    def _by_relation(self) -> Ints:
        return np.diff(self.bucket_ptr).reshape(self.num_parts**2, len(self.schema.relations))

    def begin_in_relations(self) -> Ints:
        """Return where the edges of each bucket begin among those of each relation, and where they
        end.
        """
        sizes = self._by_relation
        return np.concatenate([np.zeros_like(sizes[:1]), sizes.cumsum(0)])

    def keys(self, kind: str, names: Collection[str]) -> dict[str, int]:
        """Return what the manifest calls columns of "nodes" or "edges", and the numbers of their
        types, -1 for all.
        """
        return {
            key: number
            for key, number in self.columns[kind].items()
            if key.partition("/")[2] in names
        }

    def names(self, kind: str) -> list[str]:
        """Return the names of the columns of all "nodes" or "edges" and of single types, each
        once.
        """
        return list(dict.fromkeys(key.partition("/")[2] for key in self.columns[kind]))

    def local_ids(self, slots: int, slot: Ints, row: Ints) -> Ints:
        """Return the ids in a state of ``slots`` parts of rows of the parts in ``slot``.

        The ids of a type are consecutive there too, and slot after slot.
        """
        # the ids of a type follow each other in a state, slot after slot, so a type is a range
        # there too
        begin = self.part.bounds()
        kind = self.part.types_of(row)
        return slots * begin[kind] + slot * np.diff(begin)[kind] + row - begin[kind]

    @property
    def cut(self) -> float:
        """Share of the edges whose two ends are in different parts; 0 for a graph without edges."""
        return 1 - int(self.bucket_sizes.trace()) / self.num_edges if self.num_edges else 0.0

    @property
    def owner(self) -> Array:
        """The part of every node, ``[num_nodes]``, in the narrowest type."""
        return (self.rows // self.size).astype(part_type(self.num_parts))

    def partition_of(self, nodes: IdsLike) -> Tensor:
        """Return the parts of nodes, int64 ``[k]``; raises IndexError for an id that is no node."""
        rows = self.rows[as_ids(nodes, "nodes", self.num_nodes)]
        return torch.from_numpy(rows.astype(np.int64) // self.size)

    def visible_share(self, resident: Sequence[int]) -> float:
        """Return the share of in-edges of nodes of ``resident`` parts whose sources are in such
        parts too; 1 without in-edges.
        """
        reached = int(self.bucket_sizes[:, resident].sum())
        return (
            int(self.bucket_sizes[np.ix_(resident, resident)].sum()) / reached if reached else 1.0
        )

    def column(self, name: str, node_type: str | None = None) -> PartitionedRows:
        """Return a node column as ``Rows`` by node id, as committed now; KeyError for an unknown
        column.

        With ``node_type``, it is a column of that type, by ids within it.

        So learned rows go back into a graph:
        ``graph.ndata["h"] = Partitions.open(folder).column("h")``.
        """
        return PartitionedRows(self, name, node_type)

    def __repr__(self) -> str:
        types = in_words({name: len(ids) for name, ids in self.part.nodes.items()})
        return self._shown(
            f"{self.num_parts} parts of {self.size} nodes{types}",
            f"{self.num_edges} edges, {self.cut:.1%} cut",
        )


class PartitionedRows(RowsBase):
    """The rows of a node column, fetched by node id from mapped files."""

    _kind = "node"

    @checked
    def __init__(self, partitions: Partitions, name: str, node_type: str | None = None) -> None:
        self._partitions = partitions
        schema = partitions.schema
        frame = "ndata"
        ids = range(partitions.num_nodes)
        self._begin = 0
        if node_type is not None:
            ids = schema.ids(node_type)
            self._begin = partitions.part.ids(node_type).start
            if len(schema.nodes) > 1:
                frame = columns_of("nodes", list(schema.nodes).index(node_type))
        self._first = ids.start
        key = f"{frame}/{name}"
        if key not in partitions.columns["nodes"]:
            names = ", ".join(partitions.names("nodes")) or "none"
            raise KeyError(f"there is no node column {name!r}; there are {names}")
        arrays = [partitions.manifest.arrays[f"{key}/{p}"] for p in range(partitions.num_parts)]
        # mapped now: a buffer that writes the folder removes files of older epochs
        self._parts = [map_column(partitions.folder, array) for array in arrays]
        first = self._parts[0]
        self.shape = (len(ids), *first.shape[1:])
        self.dtype = first.dtype
        self.layout = layout_of(first)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        # a row says the part and the place in it; parts are asked one after another, each once
        rows = self._partitions.rows[ids + self._first].astype(np.int64)
        numbers, places = np.divmod(rows, self._partitions.size)
        parts = []
        for p in np.unique(numbers).tolist() or [0]:  # no rows are those of a part, of its type
            to = np.flatnonzero(numbers == p)
            local = torch.from_numpy(places[to] - self._begin)
            parts.append((fetch_rows(self._parts[p], local), to))
        return put_rows(parts, len(ids))


def chosen_columns(
    columns: Iterable[str], names: Sequence[str] | None, argument: str, owner: str
) -> list[str]:
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
            raise KeyError(
                f"{argument}: {owner} has no column {name!r}; it has {', '.join(present) or 'none'}"
            )
    return list(dict.fromkeys(names))
