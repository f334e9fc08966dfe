"""A real process that is killed in the middle of a commit: the folders of all are of one commit afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from _support.processes import run_processes
from _support.sampler_families import graph_of_all

from nodeflow.distributed import partition_graph

SCRIPT = """
import os, signal
import nodeflow._store.store as apart
from nodeflow import History
from nodeflow.distributed import DistributedGraph

folder, rows, moment = sys.argv[4], sys.argv[5], sys.argv[6]
graph = DistributedGraph.open(folder, timeout=5)
history = History(graph, {1: 64, 2: 64}, folder=f"{rows}/{rank}")
begun, copied = int(history.step), apart.copy_rows

def killed(arrays, changes):
    names = list(changes)
    copied(arrays, {name: changes[name] for name in names[:3]})
    if rank == 1 and int(history.step) == begun + 3:
        os.kill(os.getpid(), signal.SIGKILL)
    copied(arrays, {name: changes[name] for name in names[3:]})

if moment == "in a commit":
    apart.copy_rows = killed
for _ in range(2 if moment == "none" else 5):
    step = int(history.step)
    for layer in (1, 2):
        assert (history.rows(layer, range(60)) == step).all()
        history.write(layer, range(60), torch.full((60, 64), step + 1.0))
    history.commit()
print(int(history.step))
"""


@pytest.mark.slow
def test_a_process_that_is_killed_in_a_commit_leaves_the_one_before_on_all(tmp_path: Path) -> None:
    partition_graph(graph_of_all(), tmp_path / "parts", 3, method="random", progress=False)

    def run(moment: str) -> list[tuple[int, str, str]]:
        ended = run_processes(SCRIPT, 3, tmp_path, tmp_path / "parts", tmp_path / "rows", moment)
        return [(one.status, one.output, one.errors) for one in ended]

    assert [(status, output) for status, output, _ in run("none")] == [(0, "2\n")] * 3
    for k in range(2):
        killed = run("in a commit")
        for rank, (status, _, errors) in enumerate(killed):
            assert status == (-9 if rank == 1 else 1), errors
            assert rank == 1 or "rank 1 does not answer: its process has ended" in errors, errors
        again = run("none")  # two commits of those five, and then two more
        assert [(status, output) for status, output, _ in again] == [(0, f"{6 + 4 * k}\n")] * 3, again
