"""The processes that train one model together: what they sum up, agree on, and do once."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow.distributed import PeerError


class Processes:
    """The processes of torch's default group, or this process alone.

    All methods are collective: every process calls them, in the same order. Small tensors on the CPU are exchanged, so
    the group must have a backend for these. A process alone exchanges nothing.

    Attributes:
        rank, size: the number of this process, and of all.
        told: whether all processes have raised the same error.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size, self.told = rank, size, False

    @classmethod
    def present(cls) -> Processes:
        """Return those of the default group, where there is one."""
        there = dist.is_available() and dist.is_initialized()
        return cls(dist.get_rank(), dist.get_world_size()) if there else cls()

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
        """Return ``[count, ...]`` on the CPU: each process has given other ``rows``, those at its ``places``."""
        whole = rows.new_zeros((count, *rows.shape[1:]))
        whole[places] = rows
        return self._summed(whole)

    def of_first(self, make: Callable[[], Any]) -> Any:
        """Call ``make`` on the first process; return the result, a value of JSON, or raise its error, on all."""
        if self.size == 1:
            return make()
        with self.together():
            value = make() if self.is_first else None
        return json.loads(self.bytes_of_first(json.dumps(value).encode()))

    def bytes_of_first(self, data: bytes) -> bytes:
        """Return the bytes that the first process has given."""
        if self.size == 1:
            return data
        length = torch.tensor([len(data)])
        with _peers():
            dist.broadcast(length, 0)
            sent = torch.zeros(int(length), dtype=torch.uint8)
            if self.is_first:
                sent = torch.from_numpy(np.frombuffer(data, np.uint8).copy())
            dist.broadcast(sent, 0)
        return sent.numpy().tobytes()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Raise what the block raises on one process on all of them: a process raises its own error if it has one."""
        if self.size == 1:
            yield
            return
        error: Exception | None = None
        try:
            yield
        except Exception as caught:
            error = caught
        texts = self._texts("" if error is None else f"{type(error).__name__}\n{_words(error)}")
        failed = [rank for rank, text in enumerate(texts) if text]
        if not failed:
            return
        self.told = True
        if error is not None:
            raise error
        name, _, words = texts[failed[0]].partition("\n")
        kind = getattr(builtins, name, RuntimeError)
        kind = kind if kind in (ValueError, TypeError, IndexError, KeyError, OSError, ImportError) else PeerError
        raise kind(f"rank {failed[0]}: {words}")

    def agree(self, what: str, facts: Mapping[str, Any]) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""
        if self.size == 1:
            return
        texts = self._texts(json.dumps({name: repr(value) for name, value in facts.items()}))
        first = json.loads(texts[0])
        for rank, text in enumerate(texts):
            for name, value in json.loads(text).items():
                if value != first[name]:
                    self.told = True
                    raise ValueError(
                        f"{what} must be the same on all processes, but {name} is {first[name]} on rank 0 and {value} "
                        f"on rank {rank}"
                    )

    def _summed(self, tensor: Tensor) -> Tensor:
        if self.size > 1:
            with _peers():
                dist.all_reduce(tensor)
        return tensor

    def _texts(self, text: str) -> list[str]:
        """Return the text of each process."""
        own = np.frombuffer(text.encode(), np.uint8)
        lengths = torch.zeros(self.size, dtype=torch.int64)
        lengths[self.rank] = len(own)
        lengths = self._summed(lengths)
        rows = np.zeros((self.size, max(int(lengths.max()), 1)), np.uint8)
        rows[self.rank, : len(own)] = own
        found = self._summed(torch.from_numpy(rows)).numpy()
        return [found[rank, :length].tobytes().decode() for rank, length in enumerate(lengths.tolist())]


def _words(error: Exception) -> str:
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


@contextmanager
def _peers() -> Iterator[None]:
    """Within the block, an exchange that failed raises PeerError."""
    try:
        yield
    except RuntimeError as error:
        raise as_peer_error(error) from error


def as_peer_error(error: RuntimeError) -> RuntimeError:
    """Return PeerError for an error of torch's exchanges, else the error itself."""
    text = str(error)
    lost = isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "NCCL", "Connection closed"))
    if not lost or isinstance(error, PeerError):
        return error
    return PeerError(f"another process has ended, or does not answer: {text.strip().splitlines()[0]}")
