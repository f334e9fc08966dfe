"""Several ranks in one process: threads that exchange through memory, for properties of many graphs
and partitions.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from nodeflow import Graph
from nodeflow._core.rows.rows import take_rows
from nodeflow._processes.group import PeerGroup
from nodeflow.distributed import DistributedGraph, PeerError


class Meeting:
    """Where the threads meet: by channel and number of an operation, what each rank has put
    down.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._tables = dict[tuple[int, int], list[Any]]()
        self._changed = threading.Condition()
        self._over = False

    def put(self, place: tuple[int, int], rank: int, parcels: list[Any]) -> None:
        with self._changed:
            self._tables.setdefault(place, [None] * self.size)[rank] = parcels
            self._changed.notify_all()

    def take(self, place: tuple[int, int], rank: int) -> list[Any]:
        """Wait for what all ranks put down; return what is for ``rank``."""
        table = self._tables[place]
        with self._changed:
            self._changed.wait_for(lambda: self._over or None not in table, timeout=600)
        if None in table:
            raise PeerError("another rank ended")
        return [parcels[rank] for parcels in table]

    def abort(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()


HALOS = 0.0, 0.2, 1.0, 9.0
"""Shares of a halo: none, some nodes, as many edges as one's own, and all near ones."""


class ThreadTransport:
    """Moves bytes between threads: every rank puts its parcels down, and later takes those of all
    that are for it.
    """

    def __init__(self, rank: int, meeting: Meeting, channels: list[int] | None = None) -> None:
        self.rank = rank
        self.size = meeting.size
        self.broken = ""
        self._meeting = meeting
        self._channels = [0] if channels is None else channels  # those opened by this rank
        self._channel = self._channels[-1]
        self._begun = 0

    def beside(self) -> ThreadTransport:
        self._channels.append(len(self._channels))
        return ThreadTransport(self.rank, self._meeting, self._channels)

    def leave(self, what: str) -> None:
        self.broken = f"this rank left an exchange before its end, at {what}"
        self._meeting.abort()

    def begin(
        self, what: str, parcels: Sequence[Any], sizes: Sequence[int]
    ) -> Callable[[], list[Any]]:
        wait = self._passed([parcel.copy() for parcel in parcels])

        def received() -> list[Any]:
            came = [parcel.copy() for parcel in wait()]
            assert [len(parcel) for parcel in came] == list(sizes)
            return came

        return received

    def add_up(self, what: str, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            came = self._passed([tensor.clone()] * self.size)()
            tensor.copy_(sum(theirs.clone() for theirs in came))

    def copy_first(self, what: str, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            tensor.copy_(self._passed([tensor.clone()] * self.size)()[0])

    def _passed(self, mine: list[Any]) -> Callable[[], list[Any]]:
        if self.broken:
            raise PeerError(self.broken)
        self._begun += 1
        place = self._channel, self._begun
        self._meeting.put(place, self.rank, mine)
        return lambda: self._taken(place)

    def _taken(self, place: tuple[int, int]) -> list[Any]:
        try:
            return self._meeting.take(place, self.rank)
        except PeerError as error:
            self.broken = str(error)
            raise


def run_ranks(size: int, work: Callable[[ThreadTransport], Any]) -> list[Any]:
    """Run ``work`` on ranks that are threads; return their results. The first error that is no
    PeerError is raised.
    """
    meeting = Meeting(size)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadTransport(rank, meeting))
        except BaseException as error:
            results[rank] = error
            meeting.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, PeerError)), errors[0])
    return results


def group(transport: ThreadTransport, parts: Any = None) -> PeerGroup:
    """The group of all ranks as one of them sees it, which has opened ``parts``."""
    return PeerGroup(transport.rank, transport.size, lambda: transport, parts)


class Parts:
    """The parts of a graph in memory, cut by an array: what ``GraphParts`` is in files, written
    independently.
    """

    def __init__(
        self, graph: Graph, owner: Sequence[int], size: int, edges: str = "in", halo: float = 0.2
    ) -> None:
        self.graph = graph
        self.owner = np.array(owner, np.int64)
        self.edges = edges
        self.halo = halo
        self.num_nodes = graph.num_nodes
        self.num_edges = graph.num_edges
        self.num_parts = size
        self.schema = graph.schema
        src, dst = (end.numpy() for end in graph.edges())
        self.edge_owner = self.owner[dst if edges == "in" else src]
        self.place = np.full(graph.num_nodes, -1)
        self.edge_place = np.full(graph.num_edges, -1)
        self.all = [self._part(k, src, dst) for k in range(size)]

    def _part(self, k: int, src: np.ndarray, dst: np.ndarray) -> SimpleNamespace:
        masters = np.flatnonzero(self.owner == k)
        self.place[masters] = np.arange(len(masters))
        ids = self.graph.csc()[2]
        ids = np.arange(self.num_edges) if ids is None else ids
        # in the order of the whole
        here = np.array([e for e in ids if self.edge_owner[e] == k], np.int64)
        self.edge_place[here] = np.arange(len(here))
        rows = masters if self.edges == "in" else np.unique(dst[here])
        counts = np.array([(dst[here] == v).sum() for v in rows], np.int64)
        at = torch.from_numpy(masters), torch.from_numpy(here)
        own = {"nodes": masters, "edges": np.sort(here)}

        def ids_here(kind: str, ids: range) -> np.ndarray:
            return own[kind][(own[kind] >= ids.start) & (own[kind] < ids.stop)]

        frames = {
            f"{kind}{i}_": {
                name: take_rows(column, torch.from_numpy(ids_here(kind, of.ids) - of.ids.start))
                for name, column in of.data.items()
            }
            for kind, parts in (("nodes", self.graph.nodes), ("edges", self.graph.relations))
            for i, of in enumerate(parts.values())
        }
        return SimpleNamespace(
            part=k, masters=masters, rows=rows, indptr=np.append(0, np.cumsum(counts)).astype(np.int64),
            src=src[here].astype(np.int32), edge_ids=here.astype(np.int32), frames=frames, ids_here=ids_here,
            ndata={name: take_rows(column, at[0]) for name, column in self.graph.ndata.items()},
            edata={name: column[at[1]] for name, column in self.graph.edata.items()},
        )  # fmt: skip

    def owners(self, ids: np.ndarray, kind: str = "node") -> np.ndarray:
        return (self.owner if kind == "node" else self.edge_owner)[ids]

    def places(self, ids: np.ndarray, kind: str = "node") -> np.ndarray:
        return (self.place if kind == "node" else self.edge_place)[ids]

    def on(self, transport: ThreadTransport) -> Graph:
        """The graph as the rank of a transport holds it; a rank alone holds the graph itself."""
        if transport.size == 1:
            return self.graph
        peers = group(transport, self)
        return DistributedGraph(self, self.all[transport.rank], peers, self.halo)

    def run(self, work: Callable[[Graph, int], Any]) -> list[Any]:
        """Call ``work`` on every rank with its graph and its number; return the results."""
        return run_ranks(self.num_parts, lambda transport: work(self.on(transport), transport.rank))

    def on_every_rank(self, test: Callable[..., None]) -> Callable[..., None]:
        """Run a test on every rank: it takes the graph of the rank, its number, and then
        fixtures.
        """

        @functools.wraps(test)
        def on_all(**fixtures: Any) -> None:
            self.run(functools.partial(test, **fixtures))

        # pytest reads here what it must pass
        on_all.__signature__ = inspect.Signature([*inspect.signature(test).parameters.values()][2:])
        return on_all
