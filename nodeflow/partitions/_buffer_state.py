"""One state of a partition buffer: an ordinary graph of what is in memory, and what to train on; and its counters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids
from nodeflow._base.types import IdsLike
from nodeflow._disk.arrays import map_array
from nodeflow.graph import Graph
from nodeflow.partitions._edge_slots import StateEdges
from nodeflow.partitions._orders import Order
from nodeflow.partitions._partitions import Partitions


@dataclass
class BufferCounters:
    """Counts of a ``PartitionBuffer``, over all of its epochs.

    ``bytes_read`` are those of node columns: (slots + swaps) times the bytes of a partition in every epoch;
    ``edge_bytes_read`` those of edges and their columns. ``bytes_written`` are those of writable columns.
    ``seconds_filling`` went by before the first state of an epoch and after the last, when there is nothing to compute.
    In between, ``seconds_reading`` are those of reading, writing and making graphs for coming states, and
    ``seconds_waited`` those for which the caller waited. ``states`` counts the states that were given out.
    """

    bytes_read: int = 0
    edge_bytes_read: int = 0
    bytes_written: int = 0
    swaps: int = 0
    states: int = 0
    epochs: int = 0
    seconds_filling: float = 0.0
    seconds_reading: float = 0.0
    seconds_waited: float = 0.0

    @property
    def hidden(self) -> float:
        """The share of ``seconds_reading`` that went by behind the caller's own work; 1 where nothing was read.

        >>> BufferCounters(seconds_reading=4.0, seconds_waited=1.0).hidden
        0.75
        """
        return 1.0 if not self.seconds_reading else max(1 - self.seconds_waited / self.seconds_reading, 0.0)


class BufferState:
    """A state of a ``PartitionBuffer``: the partitions that are in memory, until the next state is asked for.

    Local node ``slot * size + r`` is row r of the partition in that slot, so a partition that stays keeps its ids.
    A partition with one node less than the others ends with a local node that stands for none: it has no edges, its
    parent id is -1, its rows are zeros. (There are none where ``num_parts`` divides the number of nodes.)

    ``nodes``, int64 ``[slots * size]``, is the parent id of every local node. ``number`` counts the states of the epoch
    from 0; ``partitions`` are those in the slots; ``seed`` is a number of its own for this state, for loaders and
    samplers, whose draws would repeat from state to state otherwise.

    >>> import tempfile
    >>> from nodeflow import Graph
    >>> from nodeflow.partitions import PartitionBuffer, write_partitions
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_partitions(graph, folder + "/ring", 2, progress=False)
    ...     for state in PartitionBuffer(folder + "/ring", slots=2):
    ...         print(state.number, sorted(state.partitions), state.graph)
    Partitions(2 partitions of 2 nodes, 4 edges, 50.0% cut)
    0 [0, 1] Graph(4 nodes, 4 edges)
    """

    __slots__ = ("_edges", "_order", "_over", "_parts", "_seeds", "nodes", "number", "partitions", "seed")

    def __init__(
        self, parts: Partitions, order: Order, number: int, edges: StateEdges, seeds: Ints | None, seed: int
    ) -> None:
        self._parts, self._order, self._edges, self._seeds, self._over = parts, order, edges, seeds, False
        self.number, self.partitions, self.seed = number, order.states[number], seed
        parents = parts.parents.reshape(parts.num_parts, parts.size)[list(self.partitions)]
        self.nodes = torch.from_numpy(parents.reshape(-1).astype(np.int64))

    @property
    def graph(self) -> Graph:
        """The graph of all edges between resident partitions, with the columns asked for.

        Its node columns are the memory of the buffer: those that are writable are written back with what they hold when
        the state ends (write into them; a new column in their place is not seen), the others are not to be written to.
        Raises RuntimeError after the state has ended, when that memory holds other rows.
        """
        if self._over:
            raise RuntimeError(
                f"state {self.number} has ended, and its memory holds other partitions now; use a state before the "
                "next one is asked for, and copy what you need later"
            )
        return self._edges.graph

    @property
    def seeds(self) -> Tensor:
        """The local ids of the training nodes of this state, int64, ascending; over an epoch each comes once.

        Raises ValueError where no training nodes were given.
        """
        if self._seeds is None:
            raise ValueError("there are no training nodes; pass train to write_partitions or to PartitionBuffer")
        return torch.from_numpy(self._seeds)

    @property
    def edges(self) -> Tensor:
        """The ids in ``graph`` of the edges to train on in this state, int64; over an epoch each comes once.

        Raises ValueError for an order that leaves out pairs of partitions: some edges would never come.
        """
        if not self._order.complete:
            missing = int((self._order.bucket_state < 0).sum())
            raise ValueError(
                f"edges cannot be seeds with this order: no state holds {missing} of the "
                f"{self._order.bucket_state.size} pairs of partitions; take order='comet' or order='beta'"
            )
        dst, src = np.divmod(self._edges.buckets, self._order.num_parts)
        trained = self._order.bucket_state[src, dst] == self.number
        return torch.from_numpy(np.flatnonzero(np.repeat(trained, np.diff(self._edges.begin))))

    def parent_edges(self, eid: IdsLike) -> Tensor:
        """Return the parent ids of edges of ``graph``, int64 ``[k]``; they are read from the folder now."""
        begin = self._edges.begin
        local = as_ids(eid, "eid", int(begin[-1]), "edge")
        bucket = np.searchsorted(begin, local, side="right") - 1
        place = self._parts.bucket_ptr[self._edges.buckets[bucket]] + local - begin[bucket]
        ids = map_array(self._parts.folder, self._parts.manifest.arrays["edge_ids"])
        return torch.from_numpy(np.asarray(ids[place]).astype(np.int64))

    @property
    def visible_edges(self) -> float:
        """The share of the in-edges of resident nodes that the state holds; 1 where they have none."""
        return self._parts.visible_share(self.partitions)

    def end(self) -> None:
        """Mark that the memory now holds other rows."""
        self._over = True

    def __repr__(self) -> str:
        held = ", ".join(map(str, self.partitions))
        return f"BufferState({self.number}: partitions {held}; {int(self._edges.begin[-1])} edges)"
