"""Several ranks in one process: threads that exchange through memory, for properties of many graphs and partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from nodeflow import Graph
from nodeflow.distributed._graph import DistributedGraph
from nodeflow.distributed._peers import PeerError, PeerGroup


class ThreadTransport:
    """Moves bytes between threads: every rank puts its parcels down, waits for all, and takes those that are for it."""

    def __init__(self, rank: int, table: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._table, self._barrier = rank, len(table), table, barrier

    def enter(self, what: str) -> None:
        pass

    def swap(self, words):
        return np.array([row.copy() for row in self._passed(words)])

    def send(self, parcels, sizes):
        found = [part.copy() for part in self._passed(parcels)]
        assert [len(part) for part in found] == list(sizes)
        return found

    def _passed(self, mine):
        try:
            self._barrier.wait()
            self._table[self.rank] = mine
            self._barrier.wait()
            return [theirs[self.rank] for theirs in self._table]
        except threading.BrokenBarrierError:
            raise PeerError("another rank ended") from None


def run_ranks(size: int, work: Callable[[ThreadTransport], Any]) -> list[Any]:
    """Run ``work`` on ranks that are threads; return their results. The first error that is no PeerError is raised."""
    table: list[Any] = [None] * size
    barrier = threading.Barrier(size, timeout=60)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadTransport(rank, table, barrier))
        except BaseException as error:
            results[rank] = error
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, PeerError)), errors[0])
    return results


class Parts:
    """The parts of a graph in memory, cut by an array: what ``GraphParts`` is in files, written independently."""

    def __init__(self, graph: Graph, owner: Sequence[int], size: int, edges: str = "in") -> None:
        self.graph, self.owner, self.edges = graph, np.array(owner, np.int64), edges
        self.num_nodes, self.num_edges, self.num_parts = graph.num_nodes, graph.num_edges, size
        src, dst = (end.numpy() for end in graph.edges())
        self.edge_owner = self.owner[dst if edges == "in" else src]
        self.place, self.edge_place = np.full(graph.num_nodes, -1), np.full(graph.num_edges, -1)
        self.all = [self._part(k, src, dst) for k in range(size)]

    def _part(self, k: int, src: np.ndarray, dst: np.ndarray) -> SimpleNamespace:
        masters = np.flatnonzero(self.owner == k)
        self.place[masters] = np.arange(len(masters))
        ids = self.graph.csc()[2]
        ids = np.arange(self.num_edges) if ids is None else ids
        here = np.array([e for e in ids if self.edge_owner[e] == k], np.int64)  # in the order of the whole
        self.edge_place[here] = np.arange(len(here))
        rows = masters if self.edges == "in" else np.unique(dst[here])
        counts = np.array([(dst[here] == v).sum() for v in rows], np.int64)
        at = torch.from_numpy(masters), torch.from_numpy(here)
        return SimpleNamespace(
            part=k, masters=masters, rows=rows, indptr=np.append(0, np.cumsum(counts)).astype(np.int64),
            src=src[here].astype(np.int32), edge_ids=here.astype(np.int32),
            ndata={name: column[at[0]] for name, column in self.graph.ndata.items()},
            edata={name: column[at[1]] for name, column in self.graph.edata.items()},
        )  # fmt: skip

    def owners(self, nodes: np.ndarray) -> np.ndarray:
        return self.owner[nodes]

    def places(self, nodes: np.ndarray) -> np.ndarray:
        return self.place[nodes]

    def edge_owners(self, eid: np.ndarray) -> np.ndarray:
        return self.edge_owner[eid]

    def edge_places(self, eid: np.ndarray) -> np.ndarray:
        return self.edge_place[eid]

    def on(self, transport: ThreadTransport) -> DistributedGraph:
        """The graph as the rank of a transport holds it."""
        return DistributedGraph(self, self.all[transport.rank], PeerGroup(transport, self))
