"""The k-th allocation of a write fails, for each k."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import torch
from chains import Apart, Chain, FaultError
from contents import files_of
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from _testcapi import remove_mem_hooks, set_nomemory
except ImportError:
    set_nomemory = None


class TensorFails(TorchDispatchMode):
    """Raises MemoryError at the k-th operation of torch, and with ``after`` at all later ones."""

    def __init__(self, k: int, *, after: bool = False) -> None:
        super().__init__()
        self.left = k
        self._after = after

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.left -= 1
        if self.left == 0 or (self._after and self.left < 0):
            raise MemoryError("no memory for a tensor")
        return func(*args, **(kwargs or {}))


class ObjectFails:
    """Lets the k-th allocation of a Python object fail; ``left`` is above 0 where there were
    fewer.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self.left = 0

    def __enter__(self) -> None:
        set_nomemory(self._k, self._k + 1)

    def __exit__(self, *_: object) -> None:
        remove_mem_hooks()

    @classmethod
    def count(cls, task: Callable[[], Any], most: int = 10**6) -> int:
        """Return how many objects a function allocates, about."""
        rest = 0
        try:
            with cls(most):
                task()
                for rest in range(1, most):  # a number and an object each  # noqa: B007
                    bytes(100)
        except MemoryError:
            pass
        return most - 2 * rest + 256  # small numbers are there already


Fails = Callable[[int], Any]


def memory(chain: Chain, fails: Fails) -> Iterator[str]:
    """Let the k-th allocation of a write fail, for each k; where that ends the process, another one
    goes on.
    """
    place = mmap.mmap(-1, 16)
    first: int | None = 1
    while first is not None:
        process = Apart(lambda: Exhausted(chain, place).run(fails, first))  # noqa: B023
        process.started()
        status, answer = process.end(lambda: bytes(place))
        last, version = (int.from_bytes(place[i : i + 8], "little") for i in (0, 8))
        if answer is None and status >= 0:
            raise FaultError(f"the process ended with {status} at k = {last}")
        if answer is not None and answer[0] is not None:
            raise FaultError(f"k = {last}: {answer[0]}")
        yield from place_outcomes(answer)
        chain.version, first = (version, last + 1) if answer is None else (answer[1][1], None)
        if chain.writer.name.endswith("memory"):
            chain.version = 0
        elif answer is None:  # the interpreter did not survive it, which is as a kill
            chain.judge()
            chain.advance()


def place_outcomes(answer: Any) -> list[str]:
    return ["process ended"] if answer is None else answer[1][0]


class Exhausted:
    """Writes of one process whose k-th allocations fail."""

    def __init__(self, chain: Chain, place: mmap.mmap) -> None:
        self.chain = chain
        self.writer = chain.writer
        self.home = chain.home
        self.version = chain.version
        self._place = place
        self._session = self.writer.open(self.home)
        self._twin = None
        self._digests = {}
        if self.writer.keeps_session:
            in_memory = self.writer.in_memory()
            self._twin = in_memory, in_memory.open(self.home)
            for version in range(1, self.version + 1):
                in_memory.act(self.home, self._twin[1], version)
            self._digests = {self.version: in_memory.seen(self._twin[1])}

    def run(self, fails: Fails, first: int) -> tuple[list[str], int]:
        """Return the outcomes of k from ``first`` on, and the last version."""
        outcomes: list[str] = []
        total = ObjectFails.count(self._act) if fails is ObjectFails else 10**6
        if fails is ObjectFails:
            self._seen(error=None)
        for k in range(first, total + 1):
            self._place[:] = k.to_bytes(8, "little") + self.version.to_bytes(8, "little")
            error: BaseException | None = None
            fail = fails(k)
            try:
                with fail:
                    self._act()
            except BaseException as raised:  # safetensors panics in Rust
                error = raised.with_traceback(None)
                # their frames would keep what they hold, such as a lock
                error.__context__ = error.__cause__ = None
            torch.set_grad_enabled(True)  # the end of torch.no_grad allocates too, and may not come
            if error is None and fail.left > 0:
                break
            outcomes.append(self._seen(error))
            if error is not None:
                self._again()
        self.writer.close(self._session)
        return outcomes, self.version

    def _act(self) -> None:
        self.writer.act(self.home, self._session, self.version + 1)

    def _seen(self, error: BaseException | None) -> str:
        if "could not be put back" in str(error):
            return "says that it is broken"
        digest = self.writer.seen(self._session) if self._twin else self.writer.read(self.home)
        if digest == self._expected(self.version + 1):
            self.version += 1
            what = "new content"
        elif digest == self._expected(self.version) and error is not None:
            what = "earlier content"
        elif digest in self.writer.between and error is not None:
            what = digest
        else:
            raise FaultError(f"other content after {error!r}")
        return what if error is None else f"error, {what}"

    def _again(self) -> None:
        """Write once more, with enough memory."""
        self._act()
        self._seen(None)
        if not self._twin and files_of(self.home) != (
            files := self.chain.expected(self.version)[1]
        ):
            raise FaultError(f"left behind: {sorted(set(files_of(self.home)) ^ set(files))[:4]}")

    def _expected(self, version: int) -> str:
        if self._twin is None:
            return self.chain.expected(version)[0]
        while version not in self._digests:
            in_memory, session = self._twin
            in_memory.act(self.home, session, max(self._digests) + 1)
            self._digests[max(self._digests) + 1] = in_memory.seen(session)
        return self._digests[version]
