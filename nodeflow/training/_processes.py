"""The processes that train one model together, with their group and exchanges; their device and random generators."""

from __future__ import annotations

import builtins
import gc
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow.distributed import PeerError, check_same

_LIMIT = 300.0  # seconds that processes wait for the others at the start
_LOST = ("gloo", "NCCL", "Connection closed")  # words of torch's errors when communication fails


class Processes:
    """The processes of torch's default group, or this process alone.

    All methods are collective: every process calls them, in the same order. Tensors on the CPU are exchanged, so the
    group must have a backend for these. A process alone exchanges nothing, and gets back what it gave. ``told``:
    whether all processes have raised the same error.
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
        return self._summed(torch.tensor(counts)).tolist()

    def mean(self, value: float) -> float:
        """Return the mean of a value over the processes, the same bits on all."""
        return self._summed(torch.tensor([value], dtype=torch.float64)).item() / self.size

    def rows_of_all(self, places: Tensor, rows: Tensor, count: int) -> Tensor:
        """Return ``[count, ...]`` on the CPU: each process passes its ``rows`` and their disjoint ``places``."""
        whole = rows.new_zeros((count, *rows.shape[1:]))
        whole[places] = rows
        return self._summed(whole)

    def of_first(self, make: Callable[[], Any]) -> Any:
        """Call ``make`` on the first process; return the result, or raise its error, on all."""
        with self.together():
            values = [make() if self.is_first else None]
        self._exchange(lambda: dist.broadcast_object_list(values, 0, device=torch.device("cpu")))
        return values[0]

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Give the tensors of all processes the values that they have on the first one."""
        for tensor in tensors:
            self._exchange(partial(dist.broadcast, tensor, 0))

    def average(self, parameters: Iterable[Tensor]) -> None:
        """Average the gradient of each parameter over the processes; where some have none, theirs counts as zeros.

        Sums are always in the same order, so that a resumed run gives the same bits as an uninterrupted one.
        """
        trained = [one for one in parameters if one.requires_grad]
        gradients, counts = [], self.totals(*(int(one.grad is not None) for one in trained))
        for one, count in zip(trained, counts, strict=True):
            if count:
                one.grad = torch.zeros_like(one) if one.grad is None else one.grad.contiguous()
                gradients.append(one.grad)

        def average() -> None:
            # begun together, because most are small
            for work in [dist.all_reduce(each, async_op=True) for each in gradients]:
                work.wait()
            for each in gradients:
                each /= self.size

        self._exchange(average)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise on all processes if the block raises on any; a process with an error of its own raises that one."""
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        # collective: processes without an error report too, since the others wait for them
        failures = self._of_all(None if error is None else (type(error).__name__, _words(error)))
        failed = [rank for rank, failure in enumerate(failures) if failure]
        self.told = bool(failed)
        if error is not None:
            raise error
        if failed:
            name, words = failures[failed[0]]
            kind = getattr(builtins, name, RuntimeError)
            kind = kind if kind in (ValueError, TypeError, IndexError, KeyError, OSError, ImportError) else PeerError
            raise kind(f"rank {failed[0]}: {words}")

    def agree(self, what: str, facts: Mapping[str, Any]) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""
        with self.together():
            check_same(what, self._of_all({name: repr(value) for name, value in facts.items()}))

    def _summed(self, tensor: Tensor) -> Tensor:
        self._exchange(lambda: dist.all_reduce(tensor))
        return tensor

    def _of_all(self, value: object) -> list[Any]:
        values = [value] * self.size
        self._exchange(lambda: dist.all_gather_object(values, value))
        return values

    def _exchange(self, operation: Callable[[], object]) -> None:
        """Run an operation of torch's group, whose errors become PeerError; a process alone has no group."""
        if self.size == 1:
            return
        try:
            operation()
        except RuntimeError as error:
            # others, such as a lack of memory, are errors of this process
            if not (isinstance(error, dist.DistError) or any(word in str(error) for word in _LOST)):
                raise
            first = str(error).strip().splitlines()[0]
            raise PeerError(f"another process has ended, or does not answer: {first}") from error


def _words(error: Exception) -> str:
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


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


def own_store(store: Any, rank: int, size: int) -> Any:
    """Return a part of the store that only the present processes use.

    After a restart, torchrun's store may still hold addresses of processes that have ended; connecting to one would
    hang. So rank 0 makes a new prefix. Every other rank requests it under a fresh unique key, so that no answer is
    stale, and confirms it; rank 0 answers until all have confirmed.
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
                # the key may be left over from a process that has ended: answer again until this rank confirms
                if store.check([f"nodeflow/asks/{other}"]):
                    store.set(f"nodeflow/answer/{store.get(f'nodeflow/asks/{other}').decode()}", name)
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
        self._cuda, self._inside, seed = [device] if device.type == "cuda" else [], False, seed & 2**63 - 1
        every = torch.device("cpu"), *self._cuda
        self.states = {each.type: torch.Generator(each).manual_seed(seed).get_state() for each in every}

    def present(self) -> State:
        """Return the states as they are, also inside."""
        if self._inside:
            cuda = {each.type: torch.cuda.get_rng_state(each) for each in self._cuda}
            self.states = {"cpu": torch.get_rng_state(), **cuda}
        return self.states

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Within the block, torch's generators are those of the run; after it, they are as before."""
        if self._inside:
            yield
            return
        with torch.random.fork_rng(devices=self._cuda):
            torch.set_rng_state(self.states["cpu"])
            for each in self._cuda:
                torch.cuda.set_rng_state(self.states["cuda"], each)
            self._inside = True
            try:
                yield
            finally:
                self.present()
                self._inside = False


def find_device(name: str, *, several: bool = False) -> torch.device:
    """Return the device ``name``; "auto" is a GPU if there is one. Raises ValueError for a missing device.

    ``several``: whether several processes run, each on a GPU of its own.
    """
    if several and name.startswith("cuda:"):
        raise ValueError(
            f"device must be cpu, cuda or auto with several processes, which take a GPU each; got {name!r}"
        )
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu, cuda, cuda:N or auto, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} GPUs")
    return device
