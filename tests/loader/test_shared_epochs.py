"""Processes that each hold the whole graph and share steps: what must be the same on all of them is
compared.
"""

from __future__ import annotations

import pytest
from _support.processes import run_processes

SCRIPT = """
import os
from nodeflow import Graph, NeighborSampler, NodeFlowLoader

sampler = NeighborSampler(Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0]), [1])

def begun(work):
    try:
        print(len(list(work())))
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__, error)

loader = NodeFlowLoader(sampler, "all", 1)
begun(lambda: loader)
loader.set_epoch(7 + rank)
begun(lambda: loader)
loader.set_epoch(5)
begun(lambda: loader)
begun(lambda: NodeFlowLoader(sampler, "all", 1, shuffle=True, seed=rank))
begun(lambda: NodeFlowLoader(sampler, "all", 1, share=[0, 0, 0, rank]))
own = {"rank": rank, "world_size": 2}
begun(lambda: NodeFlowLoader(sampler, "all", 1, shuffle=True, seed=rank, **own))
if rank == 0:  # no process waits for the other
    begun(lambda: NodeFlowLoader(sampler, "all", 1, rank=0, world_size=1))
    begun(lambda: NodeFlowLoader(sampler, "all", 1, rank=2, world_size=4))
child = os.fork()
if child == 0:
    begun(lambda: loader)  # for another process's training, as a worker of torch's DataLoader does
    from nodeflow._processes.default_group import default_peers
    begun(lambda: default_peers().totals("counts", 1))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.slow
def test_iterations_begin_on_all_processes_or_on_none(tmp_path):
    first, second = run_processes(SCRIPT, 2, tmp_path)
    assert (first.status, second.status) == (0, 0), first.errors + second.errors
    lines = first.output.splitlines()
    differ = "ValueError iterations of NodeFlowLoader must be the same on all processes, "
    assert lines[1].startswith(f"{differ}but epoch is 7 on rank 0 and 8 on rank 1")
    assert lines[3].startswith(f"{differ}but seed is 0 on rank 0 and 1 on rank 1")
    assert lines[4].startswith(f"{differ}but owner is 'hash ")
    assert lines[5] == lines[3]
    assert [lines[i] for i in (0, 2, 6, 7, 8)] == ["2", "2", "4", "1", "2"]
    assert lines[9].startswith(
        "RuntimeError the connections to other processes were made in another process"
    )
    assert second.output.splitlines()[:6] == lines[:6]
