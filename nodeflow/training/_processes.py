"""The processes that train one model together: their group, sums, checks of equal values, averaged gradients."""

from __future__ import annotations

import builtins
import gc
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nodeflow._runtime.locks import ignored_warnings
from nodeflow.distributed import PeerError

_LIMIT = 300.0  # seconds that processes wait for the others at the start


class Processes:
    """The processes of torch's default group, or this process alone.

    All methods are collective: every process calls them, in the same order. Tensors on the CPU are exchanged, so the
    group must have a backend for these. A process alone exchanges nothing.

    Attributes:
        rank, size: the rank of this process, and the number of processes.
        told: whether all processes have raised the same error.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size, self.told = rank, size, False

    @classmethod
    def present(cls) -> Processes:
        """Return the processes of the default group; without a group, this process alone."""
        grouped = dist.is_available() and dist.is_initialized()
        return cls(dist.get_rank(), dist.get_world_size()) if grouped else cls()

    @property
    def is_first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    def totals(self, *counts: int) -> list[int]:
        """Return the sum of each count over the processes."""
        return list(counts) if self.size == 1 else self._summed(torch.tensor(counts)).tolist()

    def mean(self, value: float) -> float:
        """Return the mean of a value over the processes, the same bits on all."""
        return value if self.size == 1 else self._summed(torch.tensor([value], dtype=torch.float64)).item() / self.size

    def rows_of_all(self, places: Tensor, rows: Tensor, count: int) -> Tensor:
        """Return ``[count, ...]`` on the CPU: each process passes its ``rows`` and their disjoint ``places``."""
        whole = rows.new_zeros((count, *rows.shape[1:]))
        whole[places] = rows
        return self._summed(whole)

    def of_first(self, make: Callable[[], Any]) -> Any:
        """Call ``make`` on the first process; return the result, or raise its error, on all."""
        if self.size == 1:
            return make()
        with self.together():
            values = [make() if self.is_first else None]
        with _peer_errors():
            dist.broadcast_object_list(values, 0, device=torch.device("cpu"))
        return values[0]

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise on all processes if the block raises on any; a process with an error of its own raises that one."""
        if self.size == 1:
            yield
            return
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        # collective: processes without an error report too, since the others wait for them
        failures = self._of_all(None if error is None else (type(error).__name__, _words(error)))
        failed = [rank for rank, failure in enumerate(failures) if failure]
        if not failed:
            return
        self.told = True
        if error is not None:
            raise error
        name, words = failures[failed[0]]
        kind = getattr(builtins, name, RuntimeError)
        kind = kind if kind in (ValueError, TypeError, IndexError, KeyError, OSError, ImportError) else PeerError
        raise kind(f"rank {failed[0]}: {words}")

    def agree(self, what: str, facts: Mapping[str, Any]) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""
        if self.size == 1:
            return
        first, *others = self._of_all({name: repr(value) for name, value in facts.items()})
        for rank, words in enumerate(others, 1):
            for name, value in words.items():
                if value != first[name]:
                    self.told = True
                    raise ValueError(
                        f"{what} must be the same on all processes, but {name} is {first[name]} on rank 0 and {value} "
                        f"on rank {rank}"
                    )

    def _summed(self, tensor: Tensor) -> Tensor:
        if self.size > 1:
            with _peer_errors():
                dist.all_reduce(tensor)
        return tensor

    def _of_all(self, value: object) -> list[Any]:
        """Return the value of each process."""
        values: list[Any] = [None] * self.size
        with _peer_errors():
            dist.all_gather_object(values, value)
        return values


def _words(error: Exception) -> str:
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


@contextmanager
def _peer_errors() -> Iterator[None]:
    """Within the block, failed communication raises PeerError instead of torch's errors."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        lost = isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "NCCL", "Connection closed"))
        if not lost or isinstance(error, PeerError):
            raise
        first = text.strip().splitlines()[0]
        raise PeerError(f"another process has ended, or does not answer: {first}") from error


class _LossOf(nn.Module):
    """A module whose forward pass returns the loss, so that DDP also sees the parameters of a decoder as used."""

    def __init__(self, network: nn.Module, loss: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.network, self._loss = network, loss

    def forward(self, batch: Any) -> Tensor:
        return self._loss(batch)


class Averaged(DistributedDataParallel):
    """The loss of a network, whose gradients are averaged over all processes in the backward pass.

    Every step looks for unused parameters. This also keeps the order of sums as in the first step, so that a resumed
    run gives the same bits as an uninterrupted one.

    Args:
        network: the same on all processes; parameters and buffers are copied from rank 0.
        loss: ``loss(batch)``, a scalar.
    """

    def __init__(self, network: nn.Module, loss: Callable[[Any], Tensor]) -> None:
        _spend_warning()
        super().__init__(_LossOf(network, loss), find_unused_parameters=True)

    @contextmanager
    def backward(self, *, postponed: bool) -> Iterator[None]:
        """Within the block, losses and their backward passes belong to one step.

        ``postponed``: gradients are accumulated locally, and averaged in a later step.
        """
        with _peer_errors(), self.no_sync() if postponed else nullcontext():
            yield


def _spend_warning() -> None:
    """Trigger DDP's one-time warning about unused parameters now, where it is ignored.

    In the first step, a thread would hold the warnings lock while it waits for other processes. A backward pass is
    needed, because warnings of this module's forward pass go to standard error.
    """

    def step(gradient: Tensor) -> None:
        with torch.enable_grad():
            DistributedDataParallel(nn.Linear(1, 1), find_unused_parameters=True)(gradient)

    x = torch.zeros(1, 1, requires_grad=True)
    x.register_hook(step)
    with ignored_warnings("find_unused_parameters=True"):
        x.sum().backward()


@contextmanager
def process_group() -> Iterator[Processes]:
    """Within the block, torch's default group has the processes that torchrun started.

    An existing group is used unchanged. On a machine with GPUs, each process uses the GPU of its local rank, and
    GPU tensors go through NCCL.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1 or dist.is_initialized():
        yield Processes.present()
        return
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK") or 0) % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    store, rank, size = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=own_store(store, rank, size), rank=rank, world_size=size)
    try:
        yield Processes.present()
    finally:
        # a thread of gloo may drop the last reference to a tensor; if it does so while the interpreter ends, it aborts
        # the process. These threads end with their group, and graphs and models, which are garbage now, hold groups
        gc.collect()
        dist.destroy_process_group()
        gc.collect()


def restarts(processes: Processes) -> int:
    """Return the sum of the processes' restart counts by torchrun; each machine counts its own restarts; collective."""
    return processes.totals(int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0))[0]


def own_store(store: Any, rank: int, size: int) -> Any:
    """Return a part of the store that only the present processes use.

    After a restart, torchrun's store may still hold addresses of processes that have ended; connecting to one would
    hang. So rank 0 makes a new prefix. Every other rank requests it under a fresh unique key, so that no answer is
    stale, and confirms it; rank 0 answers until all have confirmed.
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
                # the key may be left over from a process that has ended: answer again until this rank confirms
                word = store.get(f"nodeflow/asks/{other}").decode()
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
