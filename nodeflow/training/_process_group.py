"""The process group of a command that torchrun has started."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from nodeflow.distributed import PeerError
from nodeflow.training._processes import Processes

_LIMIT = 300.0  # seconds that processes wait for the others at the start


@contextmanager
def process_group() -> Iterator[Processes]:
    """Within the block, torch's default group is that of the processes that torchrun has started.

    A group that exists is taken as it is. On a machine with GPUs, each process has the GPU of its number there, and
    tensors on GPUs go through NCCL.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1 or dist.is_initialized():
        yield Processes.present()
        return
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK") or 0) % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    store, rank, size = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=_own_store(store, rank, size), rank=rank, world_size=size)
    try:
        yield Processes.present()
    finally:
        dist.destroy_process_group()


def restarts(processes: Processes) -> int:
    """Return how often torchrun has started processes again, summed up: each machine counts its own; collective."""
    return processes.totals(int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0))[0]


def _own_store(store: Any, rank: int, size: int) -> Any:
    """Return a part of the store that only the present processes use.

    torchrun may keep its store when it starts processes again, with the addresses of those that have ended: who reads
    one waits for ever. So the first process makes a new name. Another one asks for it under a word that nobody has used
    before, so that no answer is old, and confirms it; the first answers until all have confirmed.
    """
    end = time.monotonic() + _LIMIT
    if rank:
        word = uuid.uuid4().hex
        store.set(f"nodeflow/asks/{rank}", word)
        _wait(store, f"nodeflow/answer/{word}", end, 0)
        name = store.get(f"nodeflow/answer/{word}").decode()
        store.set(f"nodeflow/{name}/knows/{rank}", "")
    else:
        name = uuid.uuid4().hex
        for other in range(1, size):
            while not store.check([f"nodeflow/{name}/knows/{other}"]):
                _wait(store, f"nodeflow/asks/{other}", end, other)
                word = store.get(f"nodeflow/asks/{other}").decode()  # of a process that has ended, at first perhaps
                store.set(f"nodeflow/answer/{word}", name)
                _pause(end, other)
    return dist.PrefixStore(f"nodeflow/{name}", store)  # type: ignore[attr-defined]


def _wait(store: Any, key: str, end: float, rank: int) -> None:
    while not store.check([key]):
        _pause(end, rank)


def _pause(end: float, rank: int) -> None:
    if time.monotonic() > end:
        raise PeerError(f"rank {rank} did not start within {_LIMIT:.0f} seconds")
    time.sleep(0.01)
