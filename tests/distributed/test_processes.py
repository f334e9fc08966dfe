"""Graphs on real processes: the same NodeFlows, errors that name the process that fails, in every
fault; the page.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _support.pages import ROOT, blocks, environment
from _support.processes import Ended, run_processes
from _support.sampler_families import graph_of_all

from nodeflow.distributed import partition_graph

SCRIPT = """
import os, signal, threading, time
from datetime import timedelta
import numpy as np
from _support.sampler_families import fingerprint, graph_of_all
from nodeflow import NeighborSampler
from nodeflow.distributed import DistributedGraph

folder, fault, timeout = sys.argv[4], sys.argv[5], float(sys.argv[6])
store = dist.distributed_c10d._get_default_store()

def interrupt_in_an_exchange():
    waits = False
    while not waits:
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame is not None and frame.f_code.co_name != "_wait":
            frame = frame.f_back
        waits = frame is not None
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

def told(*faults):
    for name, work in faults:
        try:
            work()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")

if fault == "soft":
    told(
        ("another partition", lambda: DistributedGraph.open(folder + "-other" * (rank == 1))),
        ("another timeout", lambda: DistributedGraph.open(folder, timeout=50 + rank)),
        ("another halo", lambda: DistributedGraph.open(folder, halo=float(rank == 1))),
        ("missing part", lambda: DistributedGraph.open(folder + "-torn")),
        ("wrong number", lambda: DistributedGraph.open(folder + "-two")),
    )
graph = DistributedGraph.open(folder, timeout=timeout)
sampler, whole = NeighborSampler(graph, [3, 3]), NeighborSampler(graph_of_all(), [3, 3])
x, one = graph.ndata["x"], rank == 1
if fault == "soft":
    draw = sampler.draw_rows
    told(
        ("elsewhere", lambda: x.fetch(torch.tensor([1])) if one else sampler([1])),
        ("wrong id", lambda: x.fetch(torch.tensor([1000 * one]))),
        ("another seed", lambda: NeighborSampler(graph, [3, 3], seed=int(one))),
        ("raises in a draw", lambda: (vars(sampler).update(draw_rows=None if one else draw), sampler([1]))),
    )
    del sampler.draw_rows
for epoch in range(3):
    seeds = np.arange(rank * epoch * 7) % 60
    batch, other = sampler(seeds, epoch=epoch), whole(seeds, epoch=epoch)
    assert fingerprint(batch) == fingerprint(other)
    batch.copy_from_parent({0: ["x"]}, {0: ["w"]})
    assert torch.equal(batch.layers[0].data["x"], graph_of_all().ndata["x"][batch.layers[0].parent_nid])
if one and fault == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if one and fault == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
if one and fault == "raises":
    raise ValueError("a mistake of the user")
if one and fault == "exits":
    sys.exit()
if fault == "interrupted":
    if one:
        threading.Thread(target=interrupt_in_an_exchange).start()
        try:
            sampler([1, 2, 3])
        except KeyboardInterrupt:
            store.set("interrupted", "")
            sampler([4])
    store.wait(["interrupted"], timedelta(minutes=10))
if one and fault in ("late", "slow"):
    time.sleep(2 * timeout if fault == "late" else 6)
for _ in range(2):  # what a process has sent before it was interrupted may be all that the others need of it
    sampler([1, 2, 3])
print("done")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("parts")
    for name, size, seed in (
        ("graph", 3, 0),
        ("graph-other", 3, 1),
        ("graph-torn", 3, 0),
        ("graph-two", 2, 0),
    ):
        partition_graph(
            graph_of_all(), place / name, size, method="random", seed=seed, progress=False
        )
    shutil.rmtree(place / "graph-torn" / "part-1")
    return place


def run(
    folder: Path, fault: str, timeout: float = 20, size: int = 3, graph: str = "graph"
) -> list[Ended]:
    return run_processes(SCRIPT, size, folder, folder / graph, fault, timeout)


def test_two_processes_draw_as_one(folder):
    ended = run(folder, "none", 600, 2, "graph-two")
    assert [(one.status, one.output) for one in ended] == [(0, "done\n")] * 2, ended


@pytest.mark.slow
def test_faults_that_a_process_survives_are_errors_on_all_and_the_next_draw_is_right(
    folder,
):
    ended = run(folder, "soft", 600)
    assert [one.status for one in ended] == [0] * 3, ended
    lines = [
        dict(line.split(": ", 1) for line in one.output.splitlines() if ": " in line)
        for one in ended
    ]
    same = {
        "another partition": "ValueError: what is opened must be the same on all processes, but "
        "identity of the cut",
        "another timeout": "ValueError: what is opened must be .* timeout is 50.0 on rank 0 and "
        "51.0 on rank 1",
        "another halo": "ValueError: what is opened must be .* halo is 0.0 on rank 0 and 1.0 on "
        "rank 1",
        "missing part": "PeerError: rank 1 failed while this one was at what is opened: "
        "ValueError: part 1 is missing",
        "wrong number": "ValueError: .*-two has 2 parts, but there are 3 processes; start 2 of "
        "them",
        "elsewhere": "PeerError: rank 1 is at another exchange: node column x: questions .* there, "
        "edges drawn: questi",
        "wrong id": "PeerError: rank 1 failed .* at node column x: questions: IndexError: .* 1000, "
        ".* go from 0 to 59",
        "another seed": "ValueError: settings of NeighborSampler must be the same .* seed is 0 on "
        "rank 0 and 1 on r",
        "raises in a draw": "PeerError: rank 1 failed while this one was at edges drawn: "
        "questions: TypeError",
    }
    for name, words in same.items():
        for rank in (0, 2):
            assert re.match(words, lines[rank][name]), (rank, name, lines[rank][name])
    assert lines[1]["wrong id"].startswith("IndexError: ids[0] is 1000")
    assert lines[1]["missing part"].startswith("ValueError: part 1 is missing")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("killed", "rank 1 has ended, is stopped, or is elsewhere"),
        ("raises", "rank 1 has ended with ValueError: a mistake of the user"),
        (
            "interrupted",
            "rank 1 has ended with PeerError: this process left an exchange before its end, at "
            "edges",
        ),
        ("stopped", "rank 1 has ended, is stopped, or is elsewhere"),
        ("late", "rank 1 has ended, is stopped, or is elsewhere"),
        ("exits", "rank 1 has ended its program"),
    ],
)
def test_all_end_with_an_error_that_names_the_one_that_is_missing(folder, fault, words):
    """The limit of ``run_processes`` is the only one: all end, however slow the machine is."""
    ended = run(folder, fault)
    for rank in (0, 2):
        assert ended[rank].status == 1, ended
        assert words in ended[rank].errors, ended
        assert "done" not in ended[rank].output


@pytest.mark.slow
def test_a_slow_process_is_waited_for(folder):
    assert [one.output for one in run(folder, "slow", 600)] == ["done\n"] * 3


COMMITS = """
import os, signal
import nodeflow._files.store.store as apart
from nodeflow import History
from nodeflow.distributed import DistributedGraph

folder, rows, moment = sys.argv[4], sys.argv[5], sys.argv[6]
graph = DistributedGraph.open(folder, timeout=60)
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
def test_a_process_that_is_killed_in_a_commit_leaves_the_one_before_on_all(tmp_path):
    partition_graph(graph_of_all(), tmp_path / "parts", 3, method="random", progress=False)

    def run(moment: str) -> list[tuple[int, str, str]]:
        ended = run_processes(COMMITS, 3, tmp_path, tmp_path / "parts", tmp_path / "rows", moment)
        return [(one.status, one.output, one.errors) for one in ended]

    assert [(status, output) for status, output, _ in run("none")] == [(0, "2\n")] * 3
    for k in range(2):
        killed = run("in a commit")
        for rank, (status, _, errors) in enumerate(killed):
            assert status == (-9 if rank == 1 else 1), errors
            assert rank == 1 or "rank 1 has ended, is stopped, or is elsewhere" in errors, errors
        again = run("none")  # two commits of those five, and then two more
        assert [(status, output) for status, output, _ in again] == [(0, f"{6 + 4 * k}\n")] * 3, (
            again
        )


PAGE = ROOT / "docs" / "distributed" / "processes.md"


@pytest.mark.slow
def test_the_program_of_the_page_runs_on_two_processes(tmp_path):
    # the first block of each language
    texts = {block.language: block.text for block in reversed(blocks(PAGE))}
    subprocess.run(
        [sys.executable, "-c", texts["python"]], cwd=tmp_path, env=environment(), check=True
    )
    (tmp_path / "train.py").write_text(texts["py"])
    command, *words = texts["sh"].split()
    assert command == "torchrun"
    assert "train.py" in words
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (share,) = re.findall(r"([\d.]+) of all nodes are right", done.stdout)
    assert float(share) > 0.45  # chance is 0.25
