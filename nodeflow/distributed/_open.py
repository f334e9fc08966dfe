"""Opening the part of a graph that belongs to this process, after all processes have agreed on what they open."""

from __future__ import annotations

from importlib.metadata import version

import torch.distributed as dist
from torch.distributed import distributed_c10d

from nodeflow._base.checks import as_number
from nodeflow._base.types import FileLike
from nodeflow.distributed._graph import DistributedGraph
from nodeflow.distributed._graph_parts import GraphParts
from nodeflow.distributed._peers import PeerGroup, Transport
from nodeflow.distributed._transport import GroupTransport, LocalTransport
from nodeflow.distributed._watch import Watch

_opened = 0  # graphs opened by this process: the same on all processes, which open them together


def open(folder: FileLike, *, timeout: float = 300.0, verify: bool = False) -> DistributedGraph:
    """Open the part of a graph that belongs to this process, of a folder that ``partition_graph`` wrote; collective.

    Rank r of the default process group holds part r. Exchanges use a gloo group of their own, so the default group may
    be of any backend. A process alone, without a group, opens a folder of one part.

    Args:
        folder: the folder. On a machine that does not share it, a copy of its own files and of the folder of its part.
        timeout: seconds after which an exchange that has not ended is an error, on all processes that wait for it.
        verify: check the checksums of all files that this process reads.

    Raises RuntimeError without a process group, ValueError for another number of processes than parts, for folders,
    versions or timeouts that differ between processes, and for files that are missing or damaged; on all processes.

    >>> import tempfile
    >>> from nodeflow import Graph, NeighborSampler, distributed
    >>> folder = tempfile.mkdtemp()
    >>> parts = distributed.partition_graph(Graph.from_edges([0, 1, 2], [1, 2, 0]), folder, 1, method="ranges")
    >>> graph = distributed.open(folder)
    >>> NeighborSampler(graph, [2, 2])([1])
    NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
    """
    seconds = as_number(timeout, "timeout", above=0)
    if not (dist.is_available() and dist.is_initialized()):
        parts = GraphParts.open(folder, verify=verify)
        if parts.num_parts != 1:
            raise RuntimeError(
                f"{folder} has {parts.num_parts} parts, one for each of {parts.num_parts} processes, and there is no "
                "process group: start the program with torchrun, and call "
                "torch.distributed.init_process_group('gloo') first"
            )
        return DistributedGraph(parts, parts.part(0), PeerGroup(LocalTransport(), parts))
    return _open_together(folder, _transport(seconds), verify=verify, timeout=seconds)


def _transport(timeout: float) -> GroupTransport:
    global _opened
    _opened += 1
    # the store by which the processes found each other; under torchrun it outlives each of them. It has no public name
    whole = distributed_c10d._get_default_store()  # noqa: SLF001
    store = dist.PrefixStore(f"nodeflow/{_opened}", whole)  # type: ignore[attr-defined]
    return GroupTransport(Watch(store, dist.get_rank(), dist.get_world_size()), timeout)


def _open_together(folder: FileLike, transport: Transport, *, verify: bool, timeout: float) -> DistributedGraph:
    peers = PeerGroup(transport)
    with peers.together(f"opening {folder}", exchanges=1):
        parts = GraphParts.open(folder, verify=verify)
        if parts.num_parts != transport.size:
            raise ValueError(
                f"{folder} has {parts.num_parts} parts, but there are {transport.size} processes; start "
                f"{parts.num_parts} of them, or partition the graph again"
            )
        part = parts.part(transport.rank)
        facts = {"version of nodeflow": version("nodeflow"), "identity of the partition": parts.identity}
        peers.agree("what is opened", {**facts, "timeout": repr(timeout)})
    peers.book = parts
    return DistributedGraph(parts, part, peers)
