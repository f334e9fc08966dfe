"""A store that is asked by a thread: its answers and errors pass, and its silence is an error."""

from __future__ import annotations

import gc
import re
import threading
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


class Clock:
    """A clock that goes on by a second whenever it is looked at, however fast the machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


def test_answers_are_those_of_the_store() -> None:
    store = dist.HashStore()
    answers = Answers(dist.PrefixStore("one", store), lambda: 9.0)
    answers.set("key", "value")
    assert (answers.get("key"), answers.check(["key"]), answers.check(["other"])) == (b"value", True, False)
    assert dist.PrefixStore("one", store).get("key") == b"value"
    with pytest.raises(AttributeError, match="nothing"):
        answers._ask("nothing")


def test_silence_is_counted_from_the_first_question_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeflow._peers.answers.time", Clock())
    silent, patience, before = Silent(), [3.0], set(threading.enumerate())
    answers: Any = Answers(silent, lambda: patience[0])
    (thread,) = set(threading.enumerate()) - before
    words = r"store of the processes at 10\.1\.2\.3:29500 has not answered for (\d+) s: .* or the network to it is down"
    lengths = []
    for _ in range(2):
        with pytest.raises(TimeoutError, match=words) as error:
            answers.check(["key"])
        lengths.append(int(re.findall(words, str(error.value))[0]))
    assert lengths[1] > lengths[0] > 3  # the first question is still open
    patience[0] = 18_000.0  # an answer is waited for, by the clock of the machine, for as long as it takes
    silent.free.set()
    assert answers.check(["key"])
    assert thread.name == f"{NAME}-store"
    del answers, error  # whose traceback refers to it
    gc.collect()
    thread.join(600)
    assert not thread.is_alive()
