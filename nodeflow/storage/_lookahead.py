"""Batches whose rows are read as planned: batches are drawn ahead, so their rows are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_count, check_length, check_type, pinned
from nodeflow._core.base.sizes import as_bytes
from nodeflow._core.base.types import Floats, NumbersLike
from nodeflow._core.rows.base import decoded, stored
from nodeflow._core.rows.rows import Rows, fetch_rows, is_collective, is_sparse, take_rows
from nodeflow._core.runtime.workers import Workers
from nodeflow.flow import Layer, LayerPart, NodeFlow, empty_node_flow
from nodeflow.graph import Frame, Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.storage._heat import as_heat
from nodeflow.storage._memory import mean_bytes, sparse_bytes
from nodeflow.storage._plan import DensePool, ReadPlan, SparsePool

Fetched: TypeAlias = tuple[Tensor, dict[str, Tensor]]
"""Nodes, and their rows of each column."""


@dataclass
class Reads:
    """Counts of the rows that a ``Lookahead`` has read so far.

    Attributes:
        batches: how many batches were served.
        rows: rows that they needed, of every column.
        read: rows that were read; the others were in memory.
        bytes: bytes of the rows that were read.

    >>> reads = Reads(batches=2, rows=100, read=25, bytes=1600)
    >>> reads.hit_rate
    0.75
    >>> reads
    Reads(batches=2, rows=100, read=25, bytes=1600)
    """

    batches: int = 0
    rows: int = 0
    read: int = 0
    bytes: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the rows that were in memory; NaN before the first."""
        if self.rows:
            return 1 - self.read / self.rows
        return float("nan")


class Lookahead:
    """The batches of a loader, with rows that are read by plan instead of on demand.

    Coming batches are drawn without their columns, so it is known which rows they read. Those whose
    next use is nearest stay in memory; a thread reads the others in the order of the file, while
    the caller computes. The batches are those of the loader, bit for bit; ``set_epoch``,
    ``state_dict`` and ``load_state_dict`` are the loader's own, without the rows in memory.

    It plans those node columns of the loader (``ndata``) that are ``Rows``, each node type on its
    own; tensors are copied as always. Types share the memory in proportion to the bytes that the
    first batch reads of each.

    Args:
        loader: what training iterates over.
        memory: bytes of the rows that stay in memory, over all planned columns: an integer, or text
            such as "2 GB". Of sparse columns a mean row counts. Beside these it keeps 13 bytes per
            node, and 8 bytes for every row that a batch of the window reads.
        window: how many batches are drawn ahead, also over the border of epochs; None: as many as
            an epoch has. The first batch comes when they are drawn. With the whole run known,
            ``epochs * len(loader)``, nothing reads less; with fewer that holds as long as rows that
            the window uses fill the memory.
        epochs: how many epochs there are. What is drawn ahead does not end with an epoch: the next
            one is foreseen too, up to these. None: without end.
        prefetch: how many batches have their rows fetched ahead of the caller.
        heat: a number per node, such as ``degree_heat(graph)``. Of rows that no batch of the window
            uses, the hottest stay. It matters where the window is short.

    Attributes:
        reads: counts of what has been read, see ``Reads``.

    Raises TypeError where no column can be planned (none of ``ndata`` is ``Rows``), and where
    batches cannot be drawn ahead (see ``NodeFlowLoader.draws``); ValueError where not a single row
    fits into ``memory``. Errors of the rows and of their threads reach the caller.

    >>> from nodeflow import Graph, NeighborSampler, storage
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> graph.ndata["x"] = storage.Tiered([torch.eye(4)])
    >>> loader = NodeFlowLoader(NeighborSampler(graph, [1]), [0, 1, 2, 3], batch_size=2, ndata={0: ["x"]})
    >>> lookahead = Lookahead(loader, memory="16 B")
    >>> [batch.layers[0].data["x"].shape for batch in lookahead]
    [torch.Size([3, 4]), torch.Size([3, 4])]
    >>> lookahead.reads.read
    5
    """

    def __init__(
        self,
        loader: NodeFlowLoader,
        memory: int | str,
        *,
        window: int | None = None,
        epochs: int | None = None,
        prefetch: int = 2,
        heat: NumbersLike | None = None,
    ) -> None:
        check_type(loader, "loader", NodeFlowLoader, "a NodeFlowLoader")
        first = next(loader.draws(0), None)  # raises where batches cannot be drawn ahead
        self.loader = loader
        graph = loader.sampler.graph
        self._parts, self._unplanned, self._copied = _divided(loader)
        # Tensors in memory need no plan, and are copied by the loader as always.
        columns = [rows for part in self._parts for rows in part.columns.values()]
        if not columns:
            raise TypeError(
                "no column of the loader's ndata is fetched by id, so nothing can be planned: set "
                "graph.ndata[name] to an object such as nodeflow.storage.open(...), and name it in "
                "ndata of the loader"
            )
        # also where every process has all rows: all draw a batch together, and plans ask for it at
        # other times
        if graph.in_parts or any(map(is_collective, columns)):
            raise TypeError(
                "rows that several processes hold are fetched by all of them together, and plans "
                "of processes differ: use storage.Cached, which keeps hot rows on every process"
            )
        size = as_bytes(memory, "memory", 0)
        row = min(part.row for part in self._parts)
        if 0 < size < row:
            raise ValueError(
                f"memory is {memory!r}, but a row takes {row:,} bytes: nothing would fit"
            )
        self._window = as_count(len(loader) if window is None else window, "window")
        self._epochs = None if epochs is None else as_count(epochs, "epochs", 1)
        self._prefetch = as_count(prefetch, "prefetch", 1)
        values = None
        if heat is not None:
            values = as_heat(heat)
        if values is not None:
            check_length(values, "heat", graph.num_nodes, "node")
        # those of which the largest part would fit come first: what they leave of their shares goes
        # to the others
        reads = dict.fromkeys(self._parts, 1)
        if first is not None:
            reads = {part: len(part.ids(first)) * part.row + 1 for part in self._parts}
        left = sum(reads.values())

        def largest_fit(part: _Part) -> float:
            return len(part.nodes) * part.row / reads[part]

        for part in sorted(self._parts, key=largest_fit):
            size -= part.start(size * reads[part] // left, self._window, values)
            left -= reads[part]
        self._coming: Iterator[NodeFlow] = iter(())
        self._foreseen: tuple[int, int] | None = None  # epoch and batch that the plan goes on with
        self.reads = Reads()

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch ``epoch`` (counted from 0) of the loader, from its first
        batch.
        """
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the loader, see ``NodeFlowLoader.state_dict``; rows in memory are no
        part of it.
        """
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where ``state`` was taken, from a ``Lookahead`` or its
        loader alone.

        Raises ValueError for a state of another loader.
        """
        self.loader.load_state_dict(state)

    def __iter__(self) -> Iterator[NodeFlow]:
        fetched: deque[Callable[[], list[Fetched]]] = deque()

        def fill(batch: NodeFlow) -> None:
            rows_of_batch = fetched.popleft()
            self._fill(batch, rows_of_batch())

        batches = self.loader.iterate(self._unplanned, fill)
        epoch = self.loader.epoch
        start = self.loader.batch_number
        if self._foreseen != (epoch, start) or (self._epochs is not None and epoch >= self._epochs):
            for part in self._parts:
                part.plan.forget()
            self._coming = self._draws(epoch, start)
        # an iteration that is left early has planned more than it gave
        self._foreseen = None
        # One thread: a plan serves batches in their order, and each copies rows that the one
        # before kept.
        workers = Workers(1, "nodeflow-lookahead")
        try:
            tasks = (workers.submit(self._fetch) for _ in range(len(self) - start))
            fetched.extend(islice(tasks, self._prefetch))
            for batch in batches:
                fetched.extend(islice(tasks, 1))
                yield batch
            self._foreseen = epoch + 1, 0
        finally:
            workers.stop()
            batches.close()

    def _draws(self, epoch: int, start: int) -> Iterator[NodeFlow]:
        """Yield the batches to come without their columns, epoch by epoch."""
        numbers: Iterable[int] = count(epoch)
        if self._epochs is not None:
            numbers = range(epoch, max(self._epochs, epoch + 1))
        for number in numbers:
            yield from self.loader.draws(number, start)
            start = 0

    def _fetch(self) -> list[Fetched]:
        """Return the nodes of the next batch, and by name their rows of every planned column, of
        each part.
        """
        try:
            # all plans are served together, so that they lack the same batches
            while self._parts[0].plan.lacks_batches:
                batch = next(self._coming, None)
                if batch is None:
                    break
                for part in self._parts:
                    part.plan.foresee(part.ids(batch))
            fetched = [part.fetch(self.reads) for part in self._parts]
        except BaseException:
            for part in self._parts:
                # rows that its plan counts as cached may not have been copied
                part.plan.empty()
            raise
        self.reads.batches += 1
        return fetched

    def _fill(self, batch: NodeFlow, fetched: list[Fetched]) -> None:
        graph = self.loader.sampler.graph
        pin = self.loader.pin_memory
        for part, (ids, columns) in zip(self._parts, fetched, strict=True):
            part.fill(batch, ids, columns, pin)
        for i, node_type, name in self._copied:
            nodes = _of(batch.layers[i], node_type)
            rows = fetch_rows(_frame(graph, node_type)[name], nodes.parent_nid)
            nodes.data[name] = pinned(rows) if pin else rows

    def __repr__(self) -> str:
        names = dict.fromkeys(name for part in self._parts for name in part.columns)
        return (
            f"Lookahead({self.loader!r}, {self._window} batches ahead, columns {', '.join(names)})"
        )


class _Part:
    """The planned columns of one node type, or of all nodes, and the rows of them that are in
    memory.

    ``layers`` are the names of the columns by layer, ``row`` the bytes of a row of all.
    """

    plan: ReadPlan

    def __init__(self, graph: Graph, node_type: str | None, layers: dict[int, list[str]]) -> None:
        self.node_type = node_type
        self.layers = layers
        frame = _frame(graph, node_type)
        self.nodes = range(graph.num_nodes) if node_type is None else graph.nodes[node_type].ids
        names = dict.fromkeys(name for chosen in layers.values() for name in chosen)
        self.columns: dict[str, Rows] = {name: cast(Rows, frame[name]) for name in names}
        self.stored = {name: stored(rows) for name, rows in self.columns.items()}
        self.row = sum(map(mean_bytes, self.stored.values()))

    def start(self, memory: int, window: int, heat: Floats | None) -> int:
        """Begin with nothing in memory; returns how many bytes of ``memory`` the rows will take at
        most.
        """
        room = min(memory // max(self.row, 1), len(self.nodes))
        if heat is not None:
            heat = heat[self.nodes.start : self.nodes.stop]
        self.plan = ReadPlan(len(self.nodes), room, window, heat)
        self.kept = {
            name: SparsePool(rows, room) if is_sparse(rows) else DensePool(rows, room)
            for name, rows in self.stored.items()
        }
        return room * self.row

    def ids(self, batch: NodeFlow) -> Ints:
        """Return the distinct nodes whose rows a batch reads: of its layer, in order, or of all."""
        nodes = [_of(batch.layers[i], self.node_type).parent_nid for i in self.layers]
        ids: Ints = torch.cat(nodes).numpy()
        if self._is_one_layer(batch):
            return ids
        return np.unique(ids)

    def _is_one_layer(self, batch: NodeFlow) -> bool:
        return len(self.layers) == 1 and all(batch.layers[i].context is None for i in self.layers)

    def fetch(self, reads: Reads) -> Fetched:
        """Return the nodes of the next batch, and by name their rows of every column; adds to the
        counts of reads.
        """
        step = self.plan.advance()
        if step is None:
            raise RuntimeError(
                "the loader gives more batches than it said; it was changed during an iteration"
            )
        missing = step.ids[step.hit < 0]
        columns = {}
        for name, column in self.stored.items():
            rows = fetch_rows(column, torch.from_numpy(missing)).cpu()
            reads.bytes += int(sparse_bytes(rows).sum()) if is_sparse(rows) else rows.nbytes
            columns[name] = decoded(
                self.columns[name], self.kept[name].serve(step.hit, step.kept, rows)
            )
        reads.rows += len(step.ids)
        reads.read += len(missing)
        return torch.from_numpy(step.ids), columns

    def fill(self, batch: NodeFlow, ids: Tensor, columns: dict[str, Tensor], pin: bool) -> None:
        """Set the columns of a batch whose rows were fetched."""
        for i, names in self.layers.items():
            part = _of(batch.layers[i], self.node_type)
            places = None if self._is_one_layer(batch) else torch.searchsorted(ids, part.parent_nid)
            for name in names:
                rows = columns[name] if places is None else take_rows(columns[name], places)
                part.data[name] = pinned(rows) if pin else rows


def _of(layer: Layer, node_type: str | None) -> Layer | LayerPart:
    """Return the nodes of a type in a layer; None: all."""
    if node_type is None:
        return layer
    return layer.of(node_type)


def _frame(graph: Graph, node_type: str | None) -> Frame:
    """Return the columns of a node type; None: those of all nodes."""
    if node_type is None:
        return graph.ndata
    return graph.nodes[node_type].data


def _divided(
    loader: NodeFlowLoader,
) -> tuple[list[_Part], dict[int, list[str]], list[tuple[int, str | None, str]]]:
    """Return the planned node columns, and those that are copied as always: by layer, their names.

    Last come columns, by layer and type, that are copied though those of another type with the same
    name are planned.
    """
    graph = loader.sampler.graph
    empty = empty_node_flow(graph, loader.sampler.num_flows)
    planned: dict[str | None, dict[int, list[str]]] = {}
    others: dict[int, list[str]] = {}
    copied: list[tuple[int, str | None, str]] = []
    # An empty batch says which columns each layer and type gets, with the rules of the loader
    # itself.
    empty.copy_from_parent(loader.ndata)
    for i, layer in enumerate(empty.layers):
        in_memory: dict[tuple[str | None, str], bool] = {}
        frames: list[tuple[str | None, Frame]] = [(None, layer.data), *layer.typed_frames().items()]
        for node_type, frame in frames:
            for name in frame:
                in_memory[node_type, name] = isinstance(_frame(graph, node_type)[name], Tensor)
        fetched = {name for (_, name), is_tensor in in_memory.items() if not is_tensor}
        others[i] = []
        for (type_name, name), is_tensor in in_memory.items():
            if not is_tensor:
                planned.setdefault(type_name, {}).setdefault(i, []).append(name)
            # the loader copies by name, for all types at once: a tensor whose name a fetched column
            # of another type has is copied here
            elif name in fetched:
                copied.append((i, type_name, name))
            elif name not in others[i]:
                others[i].append(name)
    parts = [_Part(graph, node_type, layers) for node_type, layers in planned.items()]
    return parts, others, copied
