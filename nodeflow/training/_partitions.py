"""Training on a partition buffer: its batches state after state, and whether a folder holds the
data set.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_count
from nodeflow._disk.arrays import map_tensor
from nodeflow._rows.rows import as_dense, fetch_rows, take_rows
from nodeflow.datasets import Dataset, features_of
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph, columns_of
from nodeflow.loader import Epochs, NodeFlowLoader, Pass
from nodeflow.partitions import BufferState, EdgeGroups, GroupedEdges, PartitionBuffer, Partitions
from nodeflow.random import derive_key, hash_ids
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
        epoch = this.epoch
        start = this.start
        counts = self._batches_per_state(this.epoch)
        ends = np.cumsum(counts)
        # the state that has batch ``start``
        first = int(np.searchsorted(ends, start, side="right"))
        done = start - int(ends[first]) + counts[first]
        number = start
        self.buffer.set_epoch(epoch, first)
        states: Any = iter(self.buffer)
        with closing(states):
            for state in states:
                if not counts[state.number]:
                    continue
                loader = self._make(state)
                loader.set_epoch(0)
                loader.load_state_dict({**loader.state_dict(), "batch_number": done})
                done = 0
                batches = iter(loader)
                # close before the next state loads: it overwrites memory that this loader's threads
                # read
                with closing(batches):  # type: ignore[type-var]  # iterations of a loader are generators
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
        nodes = [*_features(parts).values(), "ndata/label"]
        columns = [f"{key}/{p}" for key in nodes for p in range(parts.num_parts)]
        columns += sorted(parts.columns["edges"])
        files = [parts.manifest.arrays[name] for name in ("rows", "src", "dst", "train", *columns)]
        tables = [file.narrow[0] for file in files if file.narrow]
        return derive_key(
            hash_ids(np.array([file.checksum for file in (*files, *tables)], np.int64))
        )

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
    one holds for sure.
    """
    if parts.num_nodes != graph.num_nodes:
        yield f"it has {parts.num_nodes:,} nodes, and the data set {graph.num_nodes:,}"
    types = f"its types are {parts.schema}, and those of the data set {graph.schema}"
    kinds = [[*schema.nodes.items(), *schema.relations] for schema in (parts.schema, graph.schema)]
    if kinds[0] != kinds[1]:
        yield types
    for kind, needed, held in (
        ("node", ("label",), parts.ndata),
        ("edge", edge_columns, parts.edata),
    ):
        for name in needed:
            if name not in held:
                yield f"it has no {kind} column {name!r}"
    features = features_of(dataset.graph)
    several = len(graph.nodes) > 1
    for name, x in features.items():
        of = f" of type {name!r}" if several else ""
        if name not in _features(parts):
            yield f"it has no node column 'feat'{of}"
        column = parts.column(_features(parts)[name].partition("/")[2], name)
        widths = [f"{each.dtype} {list(each.shape)}" for each in (column, x)]
        if widths[0] != widths[1]:
            yield f"its features{of} are {widths[0]}, and those of the data set {widths[1]}"
    own = np.zeros(0, np.int64) if parts.train is None else np.asarray(parts.train)
    train = np.unique(dataset.train.numpy())
    for node in np.setxor1d(own, train).tolist():
        yield (
            f"node {node} is a training node of {'the folder' if node in own else 'the data set'} "
            "only"
        )
    nodes = torch.from_numpy(train)
    labels = [
        fetch_rows(each, nodes) for each in (parts.column("label"), dataset.graph.ndata["label"])
    ]
    for row in _first_other(*labels):
        yield f"the label of training node {int(nodes[row])} is another one"
    for name, x in features.items():
        column = parts.column(_features(parts)[name].partition("/")[2], name)
        begin = graph.nodes[name].ids.start
        some = torch.from_numpy(
            np.unique(np.linspace(0, x.shape[0] - 1, _COMPARED).astype(np.int64))[: x.shape[0]]
        )
        for row in _first_other(as_dense(column.fetch(some)), as_dense(take_rows(x, some))):
            yield f"the features of node {int(some[row]) + begin} are others"
    direction = (
        f"messages go along {graph.num_edges:,} edges with direction {settings.graph.direction!r}, "
        "which must be that of the partitions too"
    )
    if parts.num_edges != graph.num_edges:
        yield f"it has {parts.num_edges:,} edges, and {direction}"
    if parts.schema != graph.schema:
        yield types
    names = read_names(parts.folder)
    known = Names.of(dataset).categories
    for name in edge_columns:
        if names is not None and names.categories.get(name) != known.get(name):
            yield f"the numbers of its edge column {name!r} stand for other words, or for none"
    count = parts.num_parts
    sizes = (
        GroupedEdges(graph, parts.owner, EdgeGroups.of("buckets", count))
        .count()
        .reshape(count, count)
        .T
    )
    for i, j in np.argwhere(sizes != parts.bucket_sizes).tolist():
        yield (
            f"it has {parts.bucket_sizes[i, j]:,} edges from partition {i} to partition {j}, and "
            f"the data set {sizes[i, j]:,}, where {direction}"
        )
    for name in edge_columns if kind_of(settings.model.name).typed else ():
        largest = [
            _largest(map_tensor(parts.folder, parts.edge_array(name))),
            _largest(graph.edata[name]),
        ]
        if largest[0] != largest[1]:
            types = f"the largest type of an edge in column {name!r}"
            yield f"{types} is {largest[0]}, and that of the data set {largest[1]}"


def _features(parts: Partitions) -> dict[str, str]:
    """Return what the manifest of a folder calls the column "feat" or "x" of each type that has
    one.
    """
    types = list(parts.schema.nodes)
    held = parts.columns["nodes"]
    kinds = {
        name: columns_of("nodes", i) if len(types) > 1 else "ndata" for i, name in enumerate(types)
    }
    keys = ((name, f"{of}/{column}") for name, of in kinds.items() for column in ("x", "feat"))
    return {name: key for name, key in keys if key in held}


def _first_other(one: Tensor, other: Tensor) -> list[int]:
    """Return the number of the first row in which two columns differ; nothing if they are equal."""
    if one.shape != other.shape:
        return [0]
    same = (one == other) | ((one != one) & (other != other))  # a missing value is NaN in both
    return (~same.reshape(len(one), -1).all(1)).nonzero().flatten()[:1].tolist()


def _largest(types: Tensor) -> int:
    return max((int(piece.max()) for piece in types.split(_EDGES)), default=0) if len(types) else 0
