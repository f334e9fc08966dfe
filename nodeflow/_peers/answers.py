"""Calls of the store by which processes found each other, which end also where the store is out of reach."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

NAME = "nodeflow-watch"
"""Beginning of the names of threads that say nothing about what a process does."""
_Question = tuple[SimpleQueue[Any], str, tuple[object, ...]]


class Answers:
    """A store of torch on a connection of its own, whose calls raise TimeoutError once it is silent for ``patience()``.

    ``patience`` returns seconds. Behind a dead network, torch's own calls wait for a quarter of an hour whatever their
    timeout, so a thread makes them; it ends with this object.
    """

    def __init__(self, store: Any, patience: Callable[[], float]) -> None:
        self._patience, self._open_since, self._questions = patience, list[float](), SimpleQueue[_Question | None]()
        words = store.clone(), self._questions, self._open_since
        threading.Thread(target=_answer, args=words, name=f"{NAME}-store", daemon=True).start()
        # not at the end of the program, whose last sign is still to be written
        weakref.finalize(self, self._questions.put, None).atexit = False
        while hasattr(store, "underlying_store"):
            store = store.underlying_store
        self.address = f" at {store.host}:{store.port}" if hasattr(store, "port") else ""

    def set(self, key: str, value: str) -> None:
        self._ask("set", key, value)
        self._ask("check", [key])  # torch's store does not answer a "set"

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask("check", keys))

    def get(self, key: str) -> bytes:
        return bytes(self._ask("get", key))

    def _ask(self, name: str, *words: object) -> Any:
        answers = SimpleQueue[Any]()
        self._open_since.append(time.monotonic())
        self._questions.put((answers, name, words))
        while True:
            with suppress(Empty):
                answer = answers.get(timeout=self._patience() / 30)
                if isinstance(answer, Exception):
                    raise answer
                return answer
            silent = time.monotonic() - (self._open_since[:1] or [time.monotonic()])[0]
            if silent > self._patience():
                what = f"the store of the processes{self.address} has not answered for {silent:.0f} s"
                raise TimeoutError(f"{what}: its host has ended or is stopped, or the network to it is down")


def _answer(store: Any, questions: SimpleQueue[_Question | None], open_since: list[float]) -> None:
    """Answer one question after the other; ``open_since`` has the times of those without an answer."""
    while (question := questions.get()) is not None:
        answers, name, words = question
        try:
            answer = getattr(store, name)(*words)
        except Exception as error:
            answer = error
        open_since.pop(0)
        answers.put(answer)
