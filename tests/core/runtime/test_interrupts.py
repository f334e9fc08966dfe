"""Ctrl-C at random moments of sampling, sums, loading and backward passes: KeyboardInterrupt, then
all works again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nodeflow import _kernels as kernels

INTERRUPTED = """
import faulthandler, random, signal, sys, time
import numpy as np
import torch
from nodeflow import Graph, NeighborSampler, NodeFlowLoader, nn
from nodeflow.propagation import Propagation

faulthandler.dump_traceback_later(280, exit=True)  # shows where it waits
torch.set_num_threads(2)
torch.manual_seed(0)
rng = np.random.default_rng(0)
graph = Graph.from_edges(rng.integers(0, 2000, 20_000), rng.integers(0, 2000, 20_000), num_nodes=2000)
sampler, propagation, seeds = NeighborSampler(graph, [5, 5]), Propagation(graph), np.arange(300)
x, model = torch.randn(2000, 64), nn.GraphSAGE(64, 16, 8, num_layers=2)

def sample():
    return [layer.parent_nid for layer in sampler(seeds[:3]).layers]

def sums():
    return [propagation(x)]

def step():
    batch = sampler(seeds)
    model.zero_grad()
    model(batch, x[batch.layers[0].parent_nid]).sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]

def load():
    loader = NodeFlowLoader(sampler, seeds, 50, num_workers=2)
    return [layer.parent_nid for batch in loader for layer in batch.layers]

works = {"sample": sample, "sums": sums, "step": step, "load": load}
before = {name: work() for name, work in works.items()}
signal.signal(signal.SIGALRM, signal.default_int_handler)
report_unraisable, lost_elsewhere = sys.unraisablehook, []

def unraisable(report):  # Python loses interrupts within the callbacks of its own weak sets
    if report.exc_type is KeyboardInterrupt and "nodeflow" not in report.object.__code__.co_filename:
        lost_elsewhere.append(report.object.__qualname__)
    report_unraisable(report)

sys.unraisablehook = unraisable
random.seed(1)
for name, count in zip(works, map(int, sys.argv[1:]), strict=True):
    for _ in range(count):
        lost, known = time.perf_counter() + 300, len(lost_elsewhere)
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-3))
            while time.perf_counter() < lost and known == len(lost_elsewhere):
                works[name]()
            if known == len(lost_elsewhere):
                raise SystemExit(f"an interrupt of {name} got lost")
        except KeyboardInterrupt:
            pass
assert len(lost_elsewhere) <= 3, lost_elsewhere
for name, work in works.items():
    assert all(torch.equal(a, b) for a, b in zip(work(), before[name], strict=True)), name
"""


@pytest.mark.skipif(os.name == "nt", reason="this system has no timers that send signals")
@pytest.mark.parametrize(
    "counts", [(200, 10, 10, 10), pytest.param((3000, 300, 300, 300), marks=pytest.mark.slow)]
)
def test_every_interrupt_ends_in_keyboard_interrupt(counts):
    """Without the mend, one interrupt of sampling in 25 was a SystemError: 200 miss it once in
    3,500 runs.
    """
    command = [sys.executable, "-c", INTERRUPTED, *map(str, counts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr


class HandlerError(Exception):
    """Raised by a handler."""


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), HandlerError(), None], ids=str)
@pytest.mark.parametrize("depth", [1, 2])
def test_a_loop_raises_the_error_of_the_signal_handler(raised, depth, monkeypatch):
    """A SystemError without such an error among its causes stays."""
    error = raised
    for _ in range(depth):
        outer = SystemError("<function> returned a result with an exception set")
        outer.__cause__ = error
        error = outer

    def lose(*_: object) -> None:
        raise error

    loop = kernels.csr.csr_rows
    monkeypatch.setattr("nodeflow._kernels.interruptible._call", lose)
    with pytest.raises(SystemError if raised is None else type(raised)) as caught:
        loop(np.array([0, 1]), np.array([0]))
    assert caught.value is (error if raised is None else raised)


def test_every_loop_is_interruptible():
    from numba.core.registry import CPUDispatcher

    interruptible = type(kernels.csr.csr_rows)
    assert interruptible is not CPUDispatcher
    folder = Path(kernels.__file__).parent
    names = [path.stem for path in folder.rglob("*.py") if path.stem != "__init__"]
    assert "csr" in names
    for name in names:
        # as the package does; a test may have imported the file itself
        module = kernels.__getattr__(name)
        loops = [value for value in vars(module).values() if isinstance(value, CPUDispatcher)]
        assert all(type(loop) is interruptible for loop in loops), name
