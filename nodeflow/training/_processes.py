"""The processes that torchrun started, joined in a group; the device and the random generators of a
run.
"""

from __future__ import annotations

import gc
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow._core.peers.peers import Peers
from nodeflow._processes.default_group import default_peers, release
from nodeflow._processes.transport import PeerError

# seconds that processes wait for the others at the start
_LIMIT = 300.0


@contextmanager
def process_group() -> Iterator[Peers]:
    """Within the block, torch's default group has the processes that torchrun started.

    An existing group is used unchanged. On a machine with GPUs, each process uses the GPU of its
    local rank, and GPU tensors go through NCCL.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1 or dist.is_initialized():
        yield default_peers()
        return
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK") or 0) % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    store, rank, size = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=own_store(store, rank, size), rank=rank, world_size=size)
    try:
        yield default_peers()
    finally:
        # a thread of gloo may drop the last reference to a tensor; if it does so while the
        # interpreter ends, it aborts the process. These threads end with their group, and graphs
        # and models, which are garbage now, hold groups
        release()
        gc.collect()
        dist.destroy_process_group()
        gc.collect()


def own_store(store: Any, rank: int, size: int) -> Any:
    """Return a part of the store that only the present processes use.

    After a restart, torchrun's store may still hold addresses of processes that have ended;
    connecting to one would hang. So rank 0 makes a new prefix. Every other rank requests it under a
    fresh unique key, so that no answer is stale, and confirms it; rank 0 answers until all have
    confirmed.
    """
    end = time.monotonic() + _LIMIT
    if rank:
        answer = uuid.uuid4().hex
        store.set(f"nodeflow/asks/{rank}", answer)
        while not store.check([f"nodeflow/answer/{answer}"]):
            _pause(end, 0)
        name = store.get(f"nodeflow/answer/{answer}").decode()
        store.set(f"nodeflow/{name}/knows/{rank}", "")
    else:
        name = uuid.uuid4().hex
        for other in range(1, size):
            while not store.check([f"nodeflow/{name}/knows/{other}"]):
                # the key may be left over from a process that has ended: answer again until this
                # rank confirms
                if store.check([f"nodeflow/asks/{other}"]):
                    answer = store.get(f"nodeflow/asks/{other}").decode()
                    store.set(f"nodeflow/answer/{answer}", name)
                _pause(end, other)
    return dist.PrefixStore(f"nodeflow/{name}", store)  # type: ignore[attr-defined]


def _pause(end: float, rank: int) -> None:
    if time.monotonic() > end:
        raise PeerError(f"rank {rank} did not start within {_LIMIT:.0f} seconds")
    time.sleep(0.01)


State = dict[str, Tensor]
"""The states of generators by "cpu" and, for a GPU, "cuda"."""


class OwnRandom:
    """A run's own generator states; within ``inside()`` torch's global generators have them.

    They start as if seeded with ``seed``, an int of any size.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._cuda = [device] if device.type == "cuda" else []
        self._inside = False
        # generators take no larger ones
        seed = seed & 2**63 - 1
        self.states = {
            place.type: torch.Generator(place).manual_seed(seed).get_state()
            for place in (torch.device("cpu"), *self._cuda)
        }

    def present(self) -> State:
        """Return the states as they are, also inside."""
        if self._inside:
            self.states = {"cpu": torch.get_rng_state()}
            for gpu in self._cuda:
                self.states["cuda"] = torch.cuda.get_rng_state(gpu)
        return self.states

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within the block, torch's generators are those of the run; after it, they are as
        before.
        """
        if self._inside:
            yield
            return
        with torch.random.fork_rng(devices=self._cuda):
            torch.set_rng_state(self.states["cpu"])
            for gpu in self._cuda:
                torch.cuda.set_rng_state(self.states["cuda"], gpu)
            self._inside = True
            try:
                yield
            finally:
                # before torch's generators are set back
                self.present()
                self._inside = False


def find_device(name: str, *, several: bool = False) -> torch.device:
    """Return the device ``name``; "auto" is a GPU if there is one. Raises ValueError for a missing
    device.

    ``several``: whether several processes run, each on a GPU of its own.
    """
    processes = 1
    if several:
        if name.startswith("cuda:"):
            raise ValueError(
                "device must be cpu, cuda or auto with several processes, which take a GPU each; "
                f"got {name!r}"
            )
        processes = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    # processes of one machine never share a GPU: their steps would wait for each other
    num_gpus = torch.cuda.device_count()
    if name == "auto":
        name = "cpu"
        if processes <= num_gpus:
            name = "cuda"
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", name):
        raise ValueError(f"device must be cpu, cuda, cuda:N or auto, got {name!r}")
    device = torch.device(name)
    if device.type == "cuda" and max(processes, (device.index or 0) + 1) > num_gpus:
        raise ValueError(
            f"device {name!r} is not there for {processes} processes, a GPU each: torch sees "
            f"{num_gpus} GPUs; start fewer (--nproc-per-node), or give device 'cpu'"
        )
    return device
