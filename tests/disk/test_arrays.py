"""Arrays in files: what threads that open them at once must not do."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from nodeflow import Graph
from nodeflow._disk.arrays import read_header
from nodeflow._runtime import locks


def test_one_thread_at_a_time_reads_the_header_of_a_file(tmp_path: Path) -> None:
    """Before 3.11.8 Python may raise SystemError where two threads read literals, by which numpy reads a header."""
    Graph.from_edges([0, 1], [1, 2]).save(tmp_path / "graph")
    np.save(tmp_path / "a.npy", np.arange(3))
    for work in (lambda: Graph.open(tmp_path / "graph"), lambda: read_header(tmp_path / "a.npy")):
        thread = threading.Thread(target=work)
        with locks.syntax:
            thread.start()
            thread.join(timeout=0.3)
            assert thread.is_alive()
        thread.join(timeout=10)
        assert not thread.is_alive()
