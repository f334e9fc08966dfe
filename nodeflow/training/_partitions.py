"""Training on a partition buffer: its batches state after state, and whether a folder holds the
data set.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count
from nodeflow._core.random import derive_key, hash_ids
from nodeflow._core.rows.rows import as_dense, fetch_rows, take_rows
from nodeflow._files.disk.arrays import map_tensor
from nodeflow.datasets import Dataset, features_of
from nodeflow.distributed import BufferState, EdgeGroups, GroupedEdges, PartitionBuffer, Partitions
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph, columns_of
from nodeflow.loader import Epochs, NodeFlowLoader, Pass
from nodeflow.training._data import read_names
from nodeflow.training._models import kind_of
from nodeflow.training._names import Names
from nodeflow.training._settings import Settings

_COMPARED = 256  # nodes whose features are compared
_EDGES = 2**22  # edges whose types are read at a time


class PartBatches(Epochs):
    """Iterates over the batches of a partition buffer, state by state; an iteration is an epoch.

    A state and its batches are pure functions of the epoch and the state's number, so an epoch can
    resume at any batch without reading earlier states. The number of batches varies between epochs.
    ``make`` returns the loader of a state, whose first epoch yields its batches, of ``batch_size``
    seeds; they must not share the state's memory.
    """

    def __init__(
        self,
        buffer: PartitionBuffer,
        batch_size: int,
        make: Callable[[BufferState], NodeFlowLoader],
    ) -> None:
        super().__init__()
        self.buffer = buffer
        self.batch_size = as_count(batch_size, "batch_size", 1)
        self._make = make
        self._counts: dict[int, list[int]] = {}

    def num_batches(self, epoch: int) -> int:
        return sum(self._batches_per_state(epoch))

    def __iter__(self) -> Iterator[NodeFlow]:
        return self._iterate(self.begin())

    def _iterate(self, this: Pass) -> Generator[NodeFlow, None, None]:
        counts = self._batches_per_state(this.epoch)
        ends = np.cumsum(counts)
        number = this.start
        # the state that has this batch, and the number of the batch in it
        first = int(np.searchsorted(ends, number, side="right"))
        done = number - int(ends[first]) + counts[first]
        self.buffer.set_epoch(this.epoch, first)
        states: Any = iter(self.buffer)
        with closing(states):
            for state in states:
                if not counts[state.number]:
                    continue
                loader = self._make(state)
                loader.set_epoch(0)
                loader.load_state_dict({**loader.state_dict(), "batch_number": done})
                done = 0
                batches: Any = iter(loader)
                # close before the next state loads: it overwrites memory that this loader's threads
                # read
                with closing(batches):
                    for batch in batches:
                        number += 1
                        self.reached(this, number)
                        yield batch

    def _batches_per_state(self, epoch: int) -> list[int]:
        if epoch not in self._counts:
            self._counts[epoch] = [
                -(-seeds // self.batch_size) for seeds in self.buffer.seeds_per_state(epoch)
            ]
        return self._counts[epoch]

    def settings(self) -> dict[str, Any]:
        return {
            "batch_size": self.batch_size,
            "num_partitions": self.buffer.partitions.num_parts,
            "slots": self.buffer.slots,
            "seed": self.buffer.seed,
        }

    @property
    def digest(self) -> int:
        """A hash of the folder's file checksums: the cut, the edges and the columns that training
        reads.
        """
        parts = self.buffer.partitions
        names = ["rows", "src", "dst", "train"]
        for key in (*_features(parts).values(), "ndata/label"):
            names += [f"{key}/{p}" for p in range(parts.num_parts)]
        names += sorted(parts.columns["edges"])
        files = [parts.manifest.arrays[name] for name in names]
        files += [file.narrow[0] for file in files if file.narrow]
        return derive_key(hash_ids(np.array([file.checksum for file in files], np.int64)))

    def __repr__(self) -> str:
        parts = self.buffer.partitions.num_parts
        slots = self.buffer.slots
        states = len(self.buffer.order_of(max(self.epoch, 0)).states)
        return (
            f"PartBatches({slots} of {parts} parts in memory, {states} states, {len(self)} batches "
            f"of {self.batch_size})"
        )


def open_partitions(
    dataset: Dataset, graph: Graph, settings: Settings, edge_columns: list[str]
) -> PartitionBuffer:
    """Return the partition buffer of a run, with features, labels and ``edge_columns``.

    Raises ValueError where the folder does not hold the partitions of ``graph``, the graph of
    messages; features are compared on a sample of nodes.
    """
    storage = settings.storage
    parts = Partitions.open(storage.partitions)
    if problem := next(_problems(parts, dataset, graph, settings, edge_columns), ""):
        raise ValueError(
            f"{storage.partitions} does not hold the partitions of data set {dataset.name!r}: "
            f"{problem}; write them again with nodeflow partition"
        )
    features = dict.fromkeys(key.partition("/")[2] for key in _features(parts).values())
    return PartitionBuffer(
        storage.partitions,
        storage.slots,
        order=storage.order,
        seed=settings.run.seed,
        epoch=0,
        ndata=(*features, "label"),
        edata=edge_columns,
    )


def _problems(
    parts: Partitions, dataset: Dataset, graph: Graph, settings: Settings, edge_columns: list[str]
) -> Iterator[str]:
    """Yield why parts are not those of ``graph``, what is quick to compare first; only the first
    one holds for sure, as each comparison takes the ones before for granted.
    """
    yield from _other_contents(parts, dataset, graph, edge_columns)
    yield from _other_nodes(parts, dataset, graph)
    yield from _other_edges(parts, graph, settings.graph.direction)
    names = read_names(parts.folder)
    known = Names.of(dataset).categories
    for name in edge_columns:
        if names is not None and names.categories.get(name) != known.get(name):
            yield f"the numbers of its edge column {name!r} stand for other words, or for none"
    for name in edge_columns if kind_of(settings.model.name).typed else ():
        largest = _largest(map_tensor(parts.folder, parts.edge_array(name)))
        expected = _largest(graph.edata[name])
        if largest != expected:
            yield (
                f"the largest type of an edge in column {name!r} is {largest}, and that of the "
                f"data set {expected}"
            )


def _other_contents(
    parts: Partitions, dataset: Dataset, graph: Graph, edge_columns: list[str]
) -> Iterator[str]:
    """Yield differences of counts, types and columns."""
    if parts.num_nodes != graph.num_nodes:
        yield f"it has {parts.num_nodes:,} nodes, and the data set {graph.num_nodes:,}"
    same_nodes = [*parts.schema.nodes.items()] == [*graph.schema.nodes.items()]
    if not same_nodes or [*parts.schema.relations] != [*graph.schema.relations]:
        yield _other_types(parts, graph)
    if "label" not in parts.ndata:
        yield "it has no node column 'label'"
    for name in edge_columns:
        if name not in parts.edata:
            yield f"it has no edge column {name!r}"
    keys = _features(parts)
    for name, x in features_of(dataset.graph).items():
        of = f" of type {name!r}" if len(graph.nodes) > 1 else ""
        if name not in keys:
            yield f"it has no node column 'feat'{of}"
        width = _width(_column(parts, keys, name))
        if width != _width(x):
            yield f"its features{of} are {width}, and those of the data set {_width(x)}"


def _other_types(parts: Partitions, graph: Graph) -> str:
    return f"its types are {parts.schema}, and those of the data set {graph.schema}"


def _other_nodes(parts: Partitions, dataset: Dataset, graph: Graph) -> Iterator[str]:
    """Yield training nodes of one of the two alone, and values that differ, on a sample of
    features.
    """
    trained = np.zeros(0, np.int64) if parts.train is None else np.asarray(parts.train)
    train = np.unique(dataset.train.numpy())
    for node in np.setxor1d(trained, train).tolist():
        holder = "the folder" if node in trained else "the data set"
        yield f"node {node} is a training node of {holder} only"
    nodes = torch.from_numpy(train)
    labels = fetch_rows(parts.column("label"), nodes)
    for row in _first_other(labels, fetch_rows(dataset.graph.ndata["label"], nodes)):
        yield f"the label of training node {int(nodes[row])} is another one"
    keys = _features(parts)
    for name, x in features_of(dataset.graph).items():
        num_rows = x.shape[0]
        places = np.linspace(0, num_rows - 1, min(_COMPARED, num_rows)).astype(np.int64)
        some = torch.from_numpy(places)
        column = as_dense(_column(parts, keys, name).fetch(some))
        for row in _first_other(column, as_dense(take_rows(x, some))):
            node = int(some[row]) + graph.nodes[name].ids.start
            yield f"the features of node {node} are others"


def _other_edges(parts: Partitions, graph: Graph, direction: str) -> Iterator[str]:
    """Yield differences of the numbers of edges: of all, of each relation, between two parts."""
    along = (
        f"messages go along {graph.num_edges:,} edges with direction {direction!r}, which must be "
        "that of the partitions too"
    )
    if parts.num_edges != graph.num_edges:
        yield f"it has {parts.num_edges:,} edges, and {along}"
    if parts.schema != graph.schema:
        yield _other_types(parts, graph)
    buckets = EdgeGroups.of("buckets", parts.num_parts)
    counts = GroupedEdges(graph, parts.owner, buckets).count()
    sizes = counts.reshape(parts.num_parts, parts.num_parts).T
    for i, j in np.argwhere(sizes != parts.bucket_sizes).tolist():
        yield (
            f"it has {parts.bucket_sizes[i, j]:,} edges from partition {i} to partition {j}, and "
            f"the data set {sizes[i, j]:,}, where {along}"
        )


def _column(parts: Partitions, keys: Mapping[str, str], node_type: str) -> Any:
    """Return the features of a type in a folder; ``keys`` are those of ``_features``."""
    return parts.column(keys[node_type].partition("/")[2], node_type)


def _width(column: Any) -> str:
    return f"{column.dtype} {list(column.shape)}"


def _features(parts: Partitions) -> dict[str, str]:
    """Return what the manifest of a folder calls the column "feat" or "x" of each type that has
    one.
    """
    types = list(parts.schema.nodes)
    keys = {}
    for i, name in enumerate(types):
        of = columns_of("nodes", i) if len(types) > 1 else "ndata"
        for column in ("x", "feat"):
            if f"{of}/{column}" in parts.columns["nodes"]:
                keys[name] = f"{of}/{column}"
    return keys


def _first_other(left: Tensor, right: Tensor) -> list[int]:
    """Return the number of the first row in which two columns differ; nothing if they are equal."""
    if left.shape != right.shape:
        return [0]
    both_missing = left.isnan() & right.isnan()
    same = (left == right) | both_missing
    other = ~same.reshape(len(left), -1).all(1)
    return other.nonzero()[:1, 0].tolist()


def _largest(types: Tensor) -> int:
    """Return the largest type of edges, 0 without any, of which a piece at a time is in memory."""
    return max((int(piece.max()) for piece in types.split(_EDGES) if len(piece)), default=0)
