"""Batches whose rows are read as planned: batches are drawn ahead, so their rows are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_count, check_length, check_type, pinned
from nodeflow._base.sizes import as_bytes
from nodeflow._base.types import NumbersLike
from nodeflow._rows.rows import Rows, fetch_rows, is_collective, is_sparse, take_rows
from nodeflow._runtime.workers import Workers
from nodeflow.flow import NodeFlow, empty_node_flow, node_columns
from nodeflow.loader import NodeFlowLoader
from nodeflow.storage._heat import as_heat
from nodeflow.storage._memory import mean_bytes, sparse_bytes
from nodeflow.storage._plan import DensePool, Plan, SparsePool


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
    """

    batches: int = 0
    rows: int = 0
    read: int = 0
    bytes: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the rows that were in memory; NaN before the first."""
        return 1 - self.read / self.rows if self.rows else float("nan")


class Lookahead:
    """The batches of a loader, with rows that are read by plan instead of on demand.

    Coming batches are drawn without their columns, so it is known which rows they read. Those whose next use is nearest
    stay in memory; a thread reads the others in the order of the file, while the caller computes. The batches are those
    of the loader, bit for bit; ``set_epoch``, ``state_dict`` and ``load_state_dict`` are the loader's own,
    without the rows in memory.

    It plans those node columns of the loader (``ndata``) that are ``Rows``; tensors are copied as always. Columns of
    single node types cannot be ``Rows``.

    Args:
        loader: what training iterates over.
        memory: bytes of the rows that stay in memory, over all planned columns: an integer, or text such as "2 GB". Of
            sparse columns a mean row counts. Beside these it keeps 13 bytes per node, and 8 bytes for every row that
            a batch of the window reads.
        window: how many batches are drawn ahead, also over the border of epochs; None: as many as an epoch has. The
            first batch comes when they are drawn. With the whole run known, ``epochs * len(loader)``, nothing reads
            less; with fewer that holds as long as rows that the window uses fill the memory.
        epochs: how many epochs there are. What is drawn ahead does not end with an epoch: the next one is foreseen
            too, up to these. None: without end.
        prefetch: how many batches have their rows fetched ahead of the caller.
        heat: a number per node, such as ``degree_heat(graph)``. Of rows that no batch of the window uses, the hottest
            stay. It matters where the window is short.

    Attributes:
        reads: counts of what has been read, see ``Reads``.

    Raises TypeError where no column can be planned (none of ``ndata`` is ``Rows``), and where batches cannot be drawn
    ahead (see ``NodeFlowLoader.draws``); ValueError where not a single row fits into ``memory``. Errors of the rows and
    of their threads reach the caller.

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
        next(loader.draws(0, len(loader)), None)  # raises where batches cannot be drawn ahead
        self.loader, graph = loader, loader.sampler.graph
        self._layers, self._rest = _divided(loader)
        names = dict.fromkeys(name for chosen in self._layers.values() for name in chosen)
        self._columns: dict[str, Rows] = {name: cast(Rows, graph.ndata[name]) for name in names}
        if not names:
            raise TypeError(
                "no column of the loader's ndata is fetched by id, so nothing can be planned: set graph.ndata[name] to "
                "an object such as nodeflow.storage.open(...), and name it in ndata of the loader"
            )
        # also where every process has all rows: all draw a batch together, and plans ask for it at other times
        if graph.peers.size > 1 or any(map(is_collective, self._columns.values())):
            raise TypeError(
                "rows that several processes hold are fetched by all of them together, and plans of processes differ: "
                "use storage.Cached, which keeps hot rows on every process"
            )
        size, row = as_bytes(memory, "memory", 0), sum(map(mean_bytes, self._columns.values()))
        if 0 < size < row:
            raise ValueError(f"memory is {memory!r}, but a row takes {row:,} bytes: nothing would fit")
        room = min(size // max(row, 1), graph.num_nodes)
        self._window = as_count(len(loader) if window is None else window, "window")
        self._epochs = None if epochs is None else as_count(epochs, "epochs", 1)
        self._prefetch = as_count(prefetch, "prefetch", 1)
        values = None if heat is None else as_heat(heat)
        if values is not None:
            check_length(values, "heat", graph.num_nodes, "node")
        self._plan = Plan(graph.num_nodes, room, self._window, values)
        self._kept = {
            name: SparsePool(rows, room) if is_sparse(rows) else DensePool(rows, room)
            for name, rows in self._columns.items()
        }
        self._coming: Iterator[Ints] = iter(())
        self._foreseen: tuple[int, int] | None = None  # epoch and batch that the plan goes on with
        self.reads = Reads()

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch ``epoch`` (counted from 0) of the loader, from its first batch."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the loader, see ``NodeFlowLoader.state_dict``; rows in memory are no part of it."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where ``state`` was taken, from a ``Lookahead`` or its loader alone.

        Raises ValueError for a state of another loader.
        """
        self.loader.load_state_dict(state)

    def __iter__(self) -> Iterator[NodeFlow]:
        fetched: deque[Callable[[], tuple[Tensor, dict[str, Tensor]]]] = deque()
        batches = self.loader.iterate(self._rest, lambda batch: self._fill(batch, *fetched.popleft()()))
        epoch, start = self.loader.epoch, self.loader.batch_number
        if self._foreseen != (epoch, start) or (self._epochs is not None and epoch >= self._epochs):
            self._plan.forget()
            self._coming = self._ids(epoch, start)
        self._foreseen = None  # an iteration that is left early has planned more than it gave
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

    def _ids(self, epoch: int, start: int) -> Iterator[Ints]:
        """Yield the distinct nodes whose rows each batch reads: of its layer, in order, or of all; epoch by epoch."""
        for number in count(epoch) if self._epochs is None else range(epoch, max(self._epochs, epoch + 1)):
            for batch in self.loader.draws(number, start if number == epoch else 0):
                ids = torch.cat([batch.layers[i].parent_nid for i in self._layers]).numpy()
                yield ids if self._is_one_layer(batch) else np.unique(ids)

    def _is_one_layer(self, batch: NodeFlow) -> bool:
        return len(self._layers) == 1 and all(batch.layers[i].context is None for i in self._layers)

    def _fetch(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the nodes of the next batch, and by name their rows of every planned column."""
        try:
            step = self._plan.advance(lambda: next(self._coming, None))
            if step is None:
                raise RuntimeError("the loader gives more batches than it said; it was changed during an iteration")
            ids, hit, kept = step
            new, columns = np.flatnonzero(hit < 0), {}
            for name, rows in self._columns.items():
                read = fetch_rows(rows, torch.from_numpy(ids[new])).cpu()
                columns[name] = self._kept[name].serve(hit, kept, read)
                self.reads.bytes += int(sparse_bytes(read).sum()) if is_sparse(read) else read.nbytes
        except BaseException:  # rows that the plan counts as cached may not have been copied
            self._plan.empty()
            raise
        self.reads.batches, self.reads.rows = self.reads.batches + 1, self.reads.rows + len(ids)
        self.reads.read += len(new)
        return torch.from_numpy(ids), columns

    def _fill(self, batch: NodeFlow, ids: Tensor, columns: dict[str, Tensor]) -> None:
        if not self._is_one_layer(batch):
            at = {i: torch.searchsorted(ids, batch.layers[i].parent_nid) for i in self._layers}
        for i, names in self._layers.items():
            for name in names:
                rows = columns[name] if self._is_one_layer(batch) else take_rows(columns[name], at[i])
                to_pin = self.loader.pin_memory and not is_sparse(rows)
                batch.layers[i].data[name] = pinned(rows) if to_pin else rows

    def __repr__(self) -> str:
        return f"Lookahead({self.loader!r}, {self._window} batches ahead, columns {', '.join(self._columns)})"


def _divided(loader: NodeFlowLoader) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Return the node columns that are planned, and those that are copied as always: by layer, their names."""
    graph = loader.sampler.graph
    planned: dict[int, list[str]] = {}
    rest: dict[int, list[str]] = {}
    empty = empty_node_flow(graph, loader.sampler.num_flows)
    for i, names in node_columns(empty, loader.ndata):
        fetched = [name for name in names if not isinstance(graph.ndata[name], Tensor)]
        planned |= {i: fetched} if fetched else {}
        rest |= {i: [name for name in names if name not in fetched]}
    empty.copy_from_parent(loader.ndata)
    for i, layer in enumerate(empty.layers):
        for node_type, frame in layer.typed_frames().items():
            for name in frame:
                if not isinstance(graph.nodes[node_type].data[name], Tensor):
                    raise TypeError(
                        f"column {name!r} of {node_type!r} is fetched by id, and only columns of all nodes are "
                        "planned: use storage.Cached, which keeps hot rows of a type"
                    )
            rest[i] = list(dict.fromkeys([*rest.get(i, ()), *frame]))
    return planned, rest
