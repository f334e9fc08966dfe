"""The processes of torch's default group, found where they are needed."""

from __future__ import annotations

import atexit
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from nodeflow._peers.group import PeerGroup
from nodeflow._peers.held import HeldGraph
from nodeflow._peers.peers import ALONE, Peers
from nodeflow._peers.transport import GroupTransport, Watch

_PATIENCE = 1800.0  # seconds that a process waits for another one, which may save or measure a large model meanwhile
_latest: tuple[Any, Peers] = None, ALONE  # torch's group, and its processes


def present() -> Peers:
    """Return the processes of torch's default group; without one, or alone in it, this process.

    They connect, by a gloo group of their own, for their first exchange.
    """
    global _latest
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return ALONE
    if _latest[0] is not dist.group.WORLD:
        _latest = dist.group.WORLD, new_group("present", _PATIENCE)
    return _latest[1]


def peers_of(graph: HeldGraph) -> Peers:
    """Return the processes that hold a graph, or for a whole one those of torch's default group."""
    return present() if graph.peers.size == 1 else graph.peers


def new_group(name: str, timeout: float) -> PeerGroup:
    """Return the processes of torch's default group, with exchanges of their own.

    ``name`` is the same on all of them; ``timeout`` is in seconds.
    """
    rank, size = dist.get_rank(), dist.get_world_size()

    def connect() -> GroupTransport:
        # the store by which the processes found each other; under torchrun it outlives each of them. No public name
        store = dist.PrefixStore(f"nodeflow/{name}", distributed_c10d._get_default_store())  # type: ignore[attr-defined]  # noqa: SLF001
        return GroupTransport(Watch(store, rank, size), timeout)

    return PeerGroup(rank, size, connect)


@atexit.register
def release() -> None:
    """Let go of the group, whose threads must end before the interpreter does."""
    global _latest
    _latest = None, ALONE
