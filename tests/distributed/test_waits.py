"""Real processes of which one does not come to an exchange: the others say where it is, soon, or wait for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _support.processes import Ended, run_processes

SCRIPT = """
import os, signal, time, warnings
from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow._peers import watch
from nodeflow._peers.present import present

watch.LOOK, watch.PERIOD = 6, 0.2
fault, one = sys.argv[4], rank == 1
peers, weight = present(), torch.nn.Linear(2, 1)
if fault != "begins alone":
    peers.totals("beginning", 1)
if fault == "begins alone":
    loader = NodeFlowLoader(NeighborSampler(Graph.from_edges([0], [1]), [1]), [0, 1])
    dist.barrier() if one else list(loader)
if fault == "leaves":
    for step in range(9):
        if one and step == 5:
            break
        peers.totals("steps", 1)
    dist.barrier()
if fault == "leaves before a gradient":
    trained = torch.nn.parallel.DistributedDataParallel(weight)
    for step in range(9):
        if one and step == 5:
            peers.totals("scores", 1)
        trained(torch.ones(1, 2)).sum().backward()
if fault == "raises alone":
    with peers.together("rows of some nodes"):
        if one:
            raise IndexError("no node 7")
        dist.barrier()
        peers.totals("rows", 1)
if fault == "another group":
    from nodeflow._peers.present import new_group
    other = new_group("other", 300)
    other.totals("beginning", 1)
    (other if one else peers).totals("rows", 1)
if fault == "stops" and one:
    os.kill(os.getpid(), signal.SIGSTOP)
if fault == "ends" and one:
    sys.exit()
if fault == "sleeps" and one:
    time.sleep(20)
if fault == "works" and one:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        torch.ones(100, 100) @ torch.ones(100, 100)
peers.totals("the end", 1)
print("done")
"""


def run(fault: str, folder: Path) -> list[Ended]:
    return run_processes(SCRIPT, 2, folder, fault)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "rank", "words"),
    [
        ("begins alone", 0, r"will not end: all processes wait.*rank 1 lives, .*waits \d+ s at <string>, line \d+"),
        ("leaves", 0, r"all processes wait, this one at exchange 7, steps; rank 1 lives, but has not come to "
         r"exchange 7: its last exchange was number 6, steps; it waits \d+ s at <string>, line \d+"),
        ("leaves before a gradient", 1, r"at exchange 2, scores; rank 0 lives, .* 1, beginning; it waits \d+ s at"),
        ("raises alone", 1, "IndexError: no node 7"),
        # each of the two may be the first to find it; then it ends, and the other one names it
        ("another group", None, r"this one at exchange 2, rows; rank [01] lives, .* it waits"),
        ("stops", 0, "rank 1 does not answer: it has ended or is stopped, or .*its last exchange was number"),
        ("ends", 0, "rank 1 has ended its program .its last exchange was number"),
    ],
)  # fmt: skip
def test_who_is_missing_is_said_soon(fault: str, rank: int | None, words: str, tmp_path: Path) -> None:
    ended = run(fault, tmp_path)
    told = ended if rank is None else [ended[rank]]
    assert re.search(words, "".join(each.errors for each in told)), ended
    assert all(each.status == 1 for each in told)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["sleeps", "works"])
def test_who_computes_is_waited_for_and_named(fault: str, tmp_path: Path) -> None:
    first, second = run(fault, tmp_path)
    assert (first.output, second.output) == ("done\n", "done\n"), first.errors
    assert re.search("RuntimeWarning: an exchange between .* waits: rank 1 lives, .* it is at <string>", first.errors)
    assert second.errors == ""
