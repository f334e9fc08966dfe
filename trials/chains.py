"""Functions in processes of their own, and a folder that goes through versions, with what each of
them must hold.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from contents import files_of
from writers import Writer

LIMIT = 600.0  # seconds without progress after which a process hangs


class FaultError(Exception):
    """What no trial may end with."""


class Apart:
    """A function in a forked process, which leads a group of its own; ``started`` waits until it
    begins.
    """

    def __init__(self, task: Callable[[], Any]) -> None:
        self._receive, send = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(send)
            return
        os.setsid()
        try:
            os.write(send, b"-")
            try:
                answer: Any = (None, task())
            except BaseException as error:
                answer = (f"{type(error).__name__}: {error}", None)
            os.write(send, pickle.dumps(answer))
        finally:
            os._exit(0)

    def started(self) -> None:
        self._wait()
        os.read(self._receive, 1)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(
        self, progress: Callable[[], object] = lambda: None
    ) -> tuple[int, tuple[str | None, Any] | None]:
        """Wait for the end; return the exit status (negative: a signal) and the error and result of
        the function.

        ``progress`` returns something else as long as the function gets on.
        """
        answer = b""
        while self._wait(progress) and (piece := os.read(self._receive, 2**16)):
            answer += piece
        os.close(self._receive)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
            raise FaultError("a process is left")
        return status, pickle.loads(answer) if answer else None

    def _wait(self, progress: Callable[[], object] = lambda: None) -> bool:
        state = progress()
        while not select.select([self._receive], [], [], LIMIT)[0]:
            if progress() == state:
                self.kill()
                raise FaultError("hangs")
            state = progress()
        return True


def apart(task: Callable[[], Any]) -> Any:
    """Return the result of a function in a process of its own; raises FaultError where it fails,
    dies or hangs.
    """
    process = Apart(task)
    process.started()
    status, answer = process.end()
    if answer is None:
        raise FaultError(f"the process ended with {status}")
    if answer[0] is not None:
        raise FaultError(answer[0])
    return answer[1]


class Chain:
    """A writer with a folder in which faults happen, and its twin without faults, which says what
    is expected.
    """

    def __init__(self, writer: Writer, scratch: Path, home: Path) -> None:
        self.writer = writer
        self.home = home
        self.version = 0
        self._twin = Path(tempfile.mkdtemp(dir=scratch, prefix="twin-"))
        self._digests = [writer.begins(self._twin)]
        self._files = [[]]
        home.mkdir()

    def expected(self, version: int) -> tuple[str, list[str]]:
        if self.writer.alternates:
            version = min(version, 2 - version % 2)
        while len(self._digests) <= version:
            apart(lambda: self.writer.write(self._twin, len(self._digests)))
            self._digests.append(apart(lambda: self.writer.read(self._twin)))
            self._files.append(files_of(self._twin))
        return self._digests[version], self._files[version]

    def read(self) -> str:
        return str(apart(lambda: self.writer.read(self.home)))

    def advance(self) -> None:
        """Write the next version, which must succeed, be whole and leave nothing else."""
        self.version += 1
        apart(lambda: self.writer.write(self.home, self.version))
        digest, files = self.expected(self.version)
        if self.read() != digest:
            raise FaultError("the next save has other content")
        if files_of(self.home) != files:
            raise FaultError(f"left behind: {sorted(set(files_of(self.home)) ^ set(files))[:4]}")

    def judge(self) -> str:
        """Say which version the folder holds after a fault on the way to the next one; raises
        FaultError for none.
        """
        try:
            digest = self.read()
        except FaultError as error:
            raise FaultError(f"lost: {error}") from None
        earlier, new = (self.expected(version)[0] for version in (self.version, self.version + 1))
        if digest == new != earlier:
            self.version += 1
            return "new content"
        if digest == earlier or digest in self.writer.between:
            return "earlier content"
        raise FaultError("other content than that of either version")
