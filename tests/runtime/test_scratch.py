"""Scratch memory: left to the next numbering up to a size, and not at all when it is switched off."""

from __future__ import annotations

import numpy as np
import pytest

from nodeflow._runtime import scratch, switches
from nodeflow.graph._numbering import Numbering


@pytest.fixture(autouse=True)
def _no_scratch():
    scratch._free.clear()


def numbered() -> list[int]:
    with Numbering(10_000) as numbering:
        return numbering.extend(np.arange(5000, 3000, -1)).tolist()


def test_the_next_numbering_takes_the_memory():
    first, second = np.empty(10, np.int64), np.empty(20, np.int64)
    scratch.give_back(first, second, most=20)
    taken = scratch.take()
    assert taken[0] is first
    assert taken[1] is second
    assert [len(array) for array in scratch.take()] == [0, 0]  # nobody else has it at the same time


def test_memory_beyond_the_limit_is_freed():
    scratch.give_back(np.empty(10, np.int64), np.empty(21, np.int64), most=20)
    assert [len(array) for array in scratch.take()] == [10, 0]


def test_off_switch(monkeypatch):
    assert numbered() == list(range(2000))
    assert len(scratch._free) == 1
    monkeypatch.setattr(switches, "reuse_buffers", False)
    assert numbered() == list(range(2000))
    assert len(scratch._free) == 1  # neither taken nor added to
    scratch._free.clear()
    assert numbered() == list(range(2000))
    assert not scratch._free
