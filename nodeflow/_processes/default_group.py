"""The processes of torch's default group, found where they are needed."""

from __future__ import annotations

import atexit
import os

import torch.distributed as dist
from torch.distributed import distributed_c10d

from nodeflow._core.peers.held_part import GraphOfPeers
from nodeflow._core.peers.peers import ALONE, Peers
from nodeflow._core.runtime import process
from nodeflow._processes.group import PeerGroup
from nodeflow._processes.transport import GroupTransport, say_end

# seconds that a process waits for another one, which may save or measure a large model meanwhile
_PATIENCE = 1800.0


def default_peers() -> Peers:
    """Return the processes of torch's default group; without one, or alone in it, this process.

    They connect, by a gloo group of their own, for their first exchange.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return ALONE
    group = dist.group.WORLD
    if group not in process.groups:
        process.groups.clear()
        process.groups[group] = new_group("present", _PATIENCE)
    peers: Peers = process.groups[group]
    return peers


def peers_of(graph: GraphOfPeers) -> Peers:
    """Return the processes that hold a graph, or for a whole one those of torch's default group."""
    return default_peers() if graph.peers.size == 1 else graph.peers


def new_group(name: str, timeout: float) -> PeerGroup:
    """Return the processes of torch's default group, with exchanges of their own.

    ``name`` is the same on all of them; ``timeout`` is in seconds.
    """
    rank = dist.get_rank()
    # the store by which the processes found each other; under torchrun it outlives each of them. No
    # public name
    store = dist.PrefixStore(f"nodeflow/{name}", distributed_c10d._get_default_store())  # type: ignore[attr-defined]  # noqa: SLF001
    # from now on: others may wait for this process before its first exchange
    atexit.register(say_end, store, rank, os.getpid())
    return PeerGroup(rank, dist.get_world_size(), lambda: GroupTransport(store, timeout))


@atexit.register
def release() -> None:
    """Let go of the group, whose threads must end before the interpreter does."""
    process.groups.clear()
