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

from nodeflow._core.base.checks import as_count, short
from nodeflow._core.random import derive_key, hash_ids
from nodeflow._core.rows.rows import as_dense, fetch_rows
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

    def _iterate(self, current: Pass) -> Generator[NodeFlow]:
        counts = self._batches_per_state(current.epoch)
        # states without seeds give no batch, and are passed over by the search
        ends = np.cumsum(counts)
        number = current.start
        # the state that has this batch, and the number of the batch in it
        first = int(np.searchsorted(ends, number, side="right"))
        done = number - int(ends[first]) + counts[first]
        self.buffer.set_epoch(current.epoch, first)
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
                        self.reached(current, number)
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
    for fact, there, here in _facts(parts, dataset, graph, settings, edge_columns):
        if there != here:
            raise ValueError(
                f"{storage.partitions} does not hold the partitions of data set {dataset.name!r}: "
                f"{fact} is {short(there)} there, and {short(here)} in the data set; write them "
                "again with nodeflow partition"
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


def _facts(
    parts: Partitions, dataset: Dataset, graph: Graph, settings: Settings, edge_columns: list[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield facts with their values in the folder and in the data set, quick ones first.

    Each takes for granted that those before are equal.
    """
    yield "the number of nodes", parts.num_nodes, graph.num_nodes
    yield "the types of nodes", list(parts.schema.nodes.items()), list(graph.schema.nodes.items())
    yield "the list of relations", list(parts.schema.relations), list(graph.schema.relations)
    present = [name for name in edge_columns if name in parts.edata]
    yield "the list of edge columns for training", present, edge_columns
    columns = {name: _column(parts, name) for name in _features(parts)}
    features = features_of(dataset.graph)
    for name, x in features.items():
        yield f"the form of features of type {name!r}", _form(columns.get(name)), _form(x)

    trained = np.zeros(0, np.int64) if parts.train is None else np.asarray(parts.train)
    train = np.unique(dataset.train.numpy())
    for node in np.setxor1d(trained, train)[:1].tolist():
        yield f"whether node {node} is for training", node in trained, node in train
    labels = (parts.column("label"), dataset.graph.ndata["label"])
    for i, *values in _first_other(*labels, torch.from_numpy(train)):
        yield f"the label of training node {train[i]}", *values
    for name, x in features.items():
        num_rows = x.shape[0]
        places = np.linspace(0, num_rows - 1, min(_COMPARED, num_rows)).astype(np.int64)
        for i, *values in _first_other(columns[name], x, torch.from_numpy(places)):
            node = places[i] + graph.nodes[name].ids.start
            yield f"the row of features of node {node}", *values
    yield from _facts_of_edges(parts, dataset, graph, settings, edge_columns)


def _facts_of_edges(
    parts: Partitions, dataset: Dataset, graph: Graph, settings: Settings, edge_columns: list[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield facts of the edges of messages, as ``_facts`` does."""
    along = f"along messages with direction {settings.graph.direction!r}"
    yield f"the number of edges {along}", parts.num_edges, graph.num_edges
    yield f"the schema {along}", parts.schema, graph.schema
    # counts of edges between parts tell a cut of other edges, or along another direction
    buckets = EdgeGroups.of("buckets", parts.num_parts)
    counts = GroupedEdges(graph, parts.owner, buckets).count()
    sizes = counts.reshape(parts.num_parts, parts.num_parts).T
    for i, j in np.argwhere(sizes != parts.bucket_sizes)[:1].tolist():
        fact = f"the number of edges from partition {i} to partition {j}, {along},"
        yield fact, int(parts.bucket_sizes[i, j]), int(sizes[i, j])
    names = read_names(parts.folder)
    known = Names.of(dataset).categories
    for name in edge_columns:
        if names is not None:
            words = f"what the numbers of edge column {name!r} stand for"
            yield words, names.categories.get(name), known.get(name)
        if kind_of(settings.model.name).typed:
            largest = _largest(map_tensor(parts.folder, parts.edge_array(name)))
            yield f"the largest type in edge column {name!r}", largest, _largest(graph.edata[name])


def _column(parts: Partitions, node_type: str) -> Any:
    """Return the features of a type in a folder."""
    return parts.column(_features(parts)[node_type].partition("/")[2], node_type)


def _form(column: Any) -> str:
    return "none" if column is None else f"{column.dtype} {list(column.shape)}"


def _features(parts: Partitions) -> dict[str, str]:
    """Return what the manifest of a folder calls the column "feat" or "x" of each type that has
    one.
    """
    types = list(parts.schema.nodes)
    keys = {}
    for i, name in enumerate(types):
        prefix = columns_of("nodes", i) if len(types) > 1 else "ndata"
        for column in ("x", "feat"):
            if f"{prefix}/{column}" in parts.columns["nodes"]:
                keys[name] = f"{prefix}/{column}"
    return keys


def _first_other(there: Any, here: Any, ids: Tensor) -> Iterator[tuple[int, Any, Any]]:
    """Yield the first place in ``ids`` whose rows of two columns differ, with these rows."""
    left, right = (as_dense(fetch_rows(column, ids)) for column in (there, here))
    differs = torch.ones(len(ids), 1, dtype=torch.bool)
    if left.shape == right.shape:
        both_missing = left.isnan() & right.isnan()
        differs = (left != right) & ~both_missing
    rows = differs.reshape(len(ids), -1).any(1)
    for i in rows.nonzero()[:1, 0].tolist():
        yield i, left[i].tolist(), right[i].tolist()


def _largest(types: Tensor) -> int:
    """Return the largest type of edges, 0 without any, of which a piece at a time is in memory."""
    return max((int(piece.max()) for piece in types.split(_EDGES) if len(piece)), default=0)
