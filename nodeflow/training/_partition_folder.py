"""A folder of partitions in a training run: whether it holds the data set, and a hash of what it holds."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow._disk.arrays import map_tensor
from nodeflow._rows.rows import as_dense, fetch_rows, take_rows
from nodeflow.datasets import Dataset
from nodeflow.graph import Graph
from nodeflow.partitions import EdgeGroups, GroupedEdges, PartitionBuffer, Partitions
from nodeflow.random import derive_key, hash_ids
from nodeflow.training._models import kind_of
from nodeflow.training._settings import Settings

_COMPARED = 256  # nodes whose features are compared
_EDGES = 2**22  # edges whose types are read at a time


def open_partitions(dataset: Dataset, graph: Graph, settings: Settings, edge_columns: list[str]) -> PartitionBuffer:
    """Return the partition buffer of a run, with features, labels and ``edge_columns``.

    The folder must hold the partitions of ``graph``, the one along whose edges messages go: as many nodes, as many
    edges in every bucket, the same training nodes with the same labels, and features of the same width and type, of
    which those of some nodes are compared. Raises ValueError where it does not, and the errors of ``PartitionBuffer``.
    """
    storage = settings.storage
    parts = Partitions.open(storage.partitions)
    problem = _columns_problem(parts, dataset, graph, edge_columns) or _nodes_problem(parts, dataset)
    problem = problem or _edges_problem(parts, graph, settings, edge_columns)
    if problem:
        raise ValueError(
            f"{storage.partitions} does not hold the partitions of data set {dataset.name!r}: {problem}; write them "
            "again with nodeflow partition"
        )
    return PartitionBuffer(
        storage.partitions,
        storage.slots,
        order=storage.order,
        seed=settings.run.seed,
        epoch=0,
        ndata=("feat", "label"),
        edata=edge_columns,
    )


def hash_of_partitions(parts: Partitions) -> int:
    """Return a hash of a folder, by the checksums of its files: of its cut, its edges and the columns of training."""
    columns = [f"ndata/{name}/{p}" for name in ("feat", "label") for p in range(parts.num_parts)]
    named = [name for name in parts.manifest.arrays if name.startswith("edata/")]
    arrays = [parts.manifest.arrays[name] for name in ("rows", "src", "dst", "train", *columns, *sorted(named))]
    return derive_key(hash_ids(np.array([array.checksum for array in arrays], np.int64)))


def _columns_problem(parts: Partitions, dataset: Dataset, graph: Graph, edge_columns: list[str]) -> str:
    if parts.num_nodes != graph.num_nodes:
        return f"it has {parts.num_nodes:,} nodes, and the data set {graph.num_nodes:,}"
    for kind, needed, there in (("node", ("feat", "label"), parts.ndata), ("edge", edge_columns, parts.edata)):
        missing = [name for name in needed if name not in there]
        if missing:
            return f"it has no {kind} column {missing[0]!r}"
    x, column = dataset.graph.ndata["feat"], parts.column("feat")
    if (tuple(column.shape), column.dtype) != (tuple(x.shape), x.dtype):
        return (
            f"its features are {column.dtype} {list(column.shape)}, and those of the data set {x.dtype} {list(x.shape)}"
        )
    return ""


def _nodes_problem(parts: Partitions, dataset: Dataset) -> str:
    own = np.zeros(0, np.int64) if parts.train is None else np.asarray(parts.train)
    train = np.unique(dataset.train.numpy())
    if other := np.setxor1d(own, train)[:1].tolist():
        whose = "the folder" if other[0] in own else "the data set"
        return f"node {other[0]} is a training node of {whose} only"
    nodes = torch.from_numpy(train)
    labels = [fetch_rows(column, nodes) for column in (parts.column("label"), dataset.graph.ndata["label"])]
    if wrong := _first_other(*labels):
        return f"the label of training node {int(nodes[wrong[0]])} is another one"
    some = torch.from_numpy(np.unique(np.linspace(0, parts.num_nodes - 1, _COMPARED).astype(np.int64)))
    x = take_rows(dataset.graph.ndata["feat"], some)
    if wrong := _first_other(as_dense(parts.column("feat").fetch(some)), as_dense(x)):
        return f"the features of node {int(some[wrong[0]])} are others"
    return ""


def _first_other(one: Tensor, other: Tensor) -> list[int]:
    """Return the number of the first row in which two columns differ, nothing where they are equal."""
    if one.shape != other.shape:
        return [0]
    same = (one == other) | ((one != one) & (other != other))  # a missing value is NaN in both
    rows: list[int] = (~same.reshape(len(one), -1).all(1)).nonzero().flatten()[:1].tolist()
    return rows


def _edges_problem(parts: Partitions, graph: Graph, settings: Settings, edge_columns: list[str]) -> str:
    direction = (
        f"messages go along {graph.num_edges:,} edges with direction {settings.graph.direction!r}, which must be that "
    )
    if parts.num_edges != graph.num_edges:
        return f"it has {parts.num_edges:,} edges, and {direction}of the partitions too"
    count = parts.num_parts
    edges = GroupedEdges(graph, parts.owner, EdgeGroups.of("buckets", count))
    sizes = edges.count().reshape(count, count).T
    if other := np.argwhere(sizes != parts.bucket_sizes)[:1].tolist():
        i, j = other[0]
        return (
            f"it has {parts.bucket_sizes[i, j]:,} edges from partition {i} to partition {j}, and the data set "
            f"{sizes[i, j]:,}, where {direction}of the partitions too"
        )
    if kind_of(settings.model.name).typed:
        (name,) = edge_columns
        largest = [_largest(map_tensor(parts.folder, parts.edge_array(name))), _largest(graph.edata[name])]
        if largest[0] != largest[1]:
            return (
                f"the largest type of an edge in column {name!r} is {largest[0]}, and that of the data set {largest[1]}"
            )
    return ""


def _largest(types: Tensor) -> int:
    return max((int(piece.max()) for piece in types.split(_EDGES)), default=0) if len(types) else 0
