"""What holds for all tests of partition buffers."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_thread_of_a_buffer_is_left_behind() -> Iterator[None]:
    yield
    assert [
        thread for thread in threading.enumerate() if thread.name == "nodeflow-partitions"
    ] == []
