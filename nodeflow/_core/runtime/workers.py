"""Threads that work for a caller who may be interrupted at any moment.

An interrupt (Ctrl-C) arrives between two lines of Python in the main thread. The conditions,
semaphores and futures of the standard library are Python code: an interrupt within them leaves a
lock taken, so that a thread waits for ever, or raises RuntimeError in place of KeyboardInterrupt.
Here the main thread shares only queues with the others, each step of which is a single call into C.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from nodeflow._core.runtime import process

Result = TypeVar("Result")


class Workers:
    """At most ``count`` threads, which run tasks in the order of ``submit``. Close with
    ``stop``.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._begun = 0
        self._process = os.getpid()
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        self._threads: SimpleQueue[Thread] = SimpleQueue()
        self._stopped = False
        _running.add(self)

    def submit(self, task: Callable[[], Result]) -> Callable[[], Result]:
        """Have a task run; return a function that waits for its result, and returns or raises it.

        Both raise RuntimeError in a child made by fork, which has none of the threads.
        """
        self._check()
        outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._tasks.put((task, outcome))
        if self._begun < self._count:
            start_new_thread(self._begin, ())
            # after an interrupt between the two lines ``stop`` waits for one thread less
            self._begun += 1

        def wait() -> Result:
            self._check()
            result, error = outcome.get()
            if error is not None:
                raise error
            return result  # type: ignore[no-any-return]

        return wait

    def _check(self) -> None:
        process.check_same(
            self._process, f"the threads {self._name!r}, which an open iteration may have,"
        )

    def stop(self) -> None:
        """Drop the tasks that no thread has begun, and wait until the others have ended."""
        self._stopped = True
        self._tasks.put(None)
        _running.discard(self)
        if sys.is_finalizing() or os.getpid() != self._process:  # no threads are left to join
            return
        for _ in range(self._begun):
            self._threads.get().join()

    def _begin(self) -> None:
        """Start a thread: in another than the main one, since ``Thread.start`` waits on a
        condition.

        ``test_the_main_thread_uses_no_condition_of_the_standard_library`` fails without this.
        """
        thread = Thread(target=self._work, name=self._name, daemon=True)
        thread.start()
        self._threads.put(thread)

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            if not self._stopped:
                _run(*item)
            # while the thread waits, nothing keeps a result alive
            del item
        self._tasks.put(None)  # for the next thread


def _run(task: Callable[[], Any], outcome: SimpleQueue[tuple[Any, BaseException | None]]) -> None:
    try:
        outcome.put((task(), None))
    except BaseException as error:  # raised again by the thread that waits for the result
        outcome.put((None, error))


_running: set[Workers] = set()
"""Workers not yet stopped: no thread may run compiled code when the process exits."""


@atexit.register
def _stop_all() -> None:
    for workers in list(_running):
        workers.stop()
