"""A store that is asked by a thread: its answers and errors pass, and its silence is an error."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pytest
import torch.distributed as dist

from nodeflow._peers.answers import NAME, Answers


class Silent:
    """A store that does not answer until it is ``free``."""

    host, port = "10.1.2.3", 29500

    def __init__(self) -> None:
        self.free = threading.Event()

    def clone(self) -> Silent:
        return self

    def check(self, keys: list[str]) -> bool:
        self.free.wait()
        return True


def threads() -> int:
    gc.collect()
    return sum(thread.name == f"{NAME}-store" for thread in threading.enumerate())


def test_answers_are_those_of_the_store() -> None:
    store = dist.HashStore()
    answers = Answers(dist.PrefixStore("one", store), lambda: 9.0)
    answers.set("key", "value")
    assert (answers.get("key"), answers.check(["key"]), answers.check(["other"])) == (b"value", True, False)
    assert dist.PrefixStore("one", store).get("key") == b"value"
    with pytest.raises(AttributeError, match="nothing"):
        answers._ask("nothing")


def test_silence_is_counted_from_the_first_question_without_an_answer() -> None:
    before, silent = threads(), Silent()
    answers: Any = Answers(silent, lambda: 0.2)
    words = r"store of the processes at 10\.1\.2\.3:29500 has not answered for 0 s: .* or the network to it is down"
    with pytest.raises(TimeoutError, match=words):
        answers.check(["key"])
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match=words):
        answers.check(["key"])
    assert time.monotonic() - begun < 0.2  # the first question is still open
    silent.free.set()
    time.sleep(0.1)
    assert answers.check(["key"])
    assert threads() == before + 1
    del answers
    time.sleep(0.2)
    assert threads() == before
