"""Training on a partition buffer: its batches state after state, and whether a folder holds the
data set.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count
from nodeflow._core.random import derive_key, hash_ids
from nodeflow._core.rows.rows import as_array, as_dense, fetch_rows
from nodeflow._files.disk.arrays import map_tensor
from nodeflow.datasets import Dataset, features_of
from nodeflow.distributed import BufferState, GroupedEdges, PartitionBuffer, Partitions
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph, columns_of
from nodeflow.loader import Epochs, NodeFlowLoader, Pass
from nodeflow.training._data import read_names
from nodeflow.training._names import Names
from nodeflow.training._settings import Settings

_COMPARED = 256  # rows of a column that are compared


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

    def _iterate(self, current: Pass) -> Generator[NodeFlow, None, None]:
        counts = self._batches_per_state(current.epoch)
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
        return f"PartBatches({self.buffer!r}, {len(self)} batches of {self.batch_size})"


def open_partitions(
    dataset: Dataset, graph: Graph, settings: Settings, edge_columns: list[str]
) -> PartitionBuffer:
    """Return the partition buffer of a run, with features, labels and ``edge_columns``.

    Raises ValueError where the folder does not hold the partitions of ``graph``, the graph of
    messages; features are compared on a sample of nodes.
    """
    storage = settings.storage
    parts = Partitions.open(storage.partitions)
    for what, in_folder, in_data in _compared(parts, dataset, graph, edge_columns):
        if in_folder != in_data:
            raise ValueError(
                f"{storage.partitions} does not hold the partitions of data set {dataset.name!r}: "
                f"its {what} are {in_folder}, and those of the data set {in_data}, with direction "
                f"{settings.graph.direction!r}; write them again with nodeflow partition"
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


def _compared(
    parts: Partitions, dataset: Dataset, graph: Graph, edge_columns: list[str]
) -> Iterator[tuple[str, object, object]]:
    """Yield what parts and ``graph`` must agree in, and its value in both, what is quick to find
    first: a value may be asked for only after those before it have agreed.

    Of rows it is a checksum, of edges that of a sample, which says where they lie.
    """
    yield "types and sizes", str(parts.schema), str(graph.schema)
    features = features_of(dataset.graph)
    yield "types with features", list(_features(parts)), list(features)
    needed = ["label", *edge_columns]
    present = {*parts.ndata, *parts.edata}
    yield "columns", [name for name in needed if name in present], needed
    trained = np.zeros(0, np.int64) if parts.train is None else np.array(parts.train)
    train = np.unique(dataset.train.numpy())
    yield "training nodes", _checksum(torch.from_numpy(trained)), _checksum(torch.from_numpy(train))
    nodes = torch.from_numpy(train)
    labels = fetch_rows(dataset.graph.ndata["label"], nodes)
    yield "labels", _checksum(parts.column("label").fetch(nodes)), _checksum(labels)
    yield from _compared_features(parts, graph, features)
    yield from _compared_edges(parts, dataset, graph, edge_columns)


def _compared_features(
    parts: Partitions, graph: Graph, features: Mapping[str, Any]
) -> Iterator[tuple[str, object, object]]:
    """Yield some rows of the features of each type that has some."""
    keys = _features(parts)
    for name, x in features.items():
        column = parts.column(keys[name].partition("/")[2], name)
        of = ""
        if len(graph.nodes) > 1:
            of = f" of type {name!r}"
        some = _some(x.shape[0])
        rows = _checksum(as_dense(column.fetch(some))), _checksum(as_dense(fetch_rows(x, some)))
        yield f"features{of}", *rows


def _compared_edges(
    parts: Partitions, dataset: Dataset, graph: Graph, edge_columns: list[str]
) -> Iterator[tuple[str, object, object]]:
    """Yield how many edges lie between two parts, and the columns that training reads."""
    sizes = GroupedEdges(graph, parts.owner, parts.num_parts, "buckets").count()
    in_folder = np.diff(parts.bucket_ptr)
    rows = _checksum(torch.from_numpy(in_folder)), _checksum(torch.from_numpy(sizes))
    yield "edges between parts", *rows
    names = read_names(parts.folder)
    of_folder = {}
    if names is not None:
        of_folder = names.categories
    known = Names.of(dataset).categories
    places = _some(parts.num_edges)
    ids = map_tensor(parts.folder, parts.manifest.arrays["edge_ids"])[places].long()
    for name in edge_columns:
        yield f"words of edge column {name!r}", of_folder.get(name), known.get(name)
        values = map_tensor(parts.folder, parts.manifest.arrays[f"edata/{name}"])[places]
        expected = fetch_rows(graph.edata[name], ids)
        yield f"values of edge column {name!r}", _checksum(values), _checksum(expected)


def _some(num_rows: int) -> Tensor:
    """Return the rows that are compared, spread over all."""
    places = np.linspace(0, num_rows - 1, min(_COMPARED, num_rows))
    return torch.from_numpy(places.astype(np.int64))


def _checksum(rows: Tensor) -> str:
    return f"{_width(rows)} with checksum {crc32(as_array(rows.contiguous()).data):08x}"


def _width(column: Any) -> str:
    return f"{column.dtype} {list(column.shape)}"


def _features(parts: Partitions) -> dict[str, str]:
    """Return what the manifest of a folder calls the column "feat" or "x" of each type that has
    one.
    """
    types = list(parts.schema.nodes)
    keys = {}
    for i, name in enumerate(types):
        of = "ndata"
        if len(types) > 1:
            of = columns_of("nodes", i)
        for column in ("x", "feat"):
            if f"{of}/{column}" in parts.columns["nodes"]:
                keys[name] = f"{of}/{column}"
    return keys
