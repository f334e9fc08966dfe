"""Real processes in one gloo group on this machine: started, watched, and ended whatever
happens.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

START = """
import atexit
import signal
import sys
import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # before there is a group, which it would keep
from _support.compile_once import share_compilation

share_compilation()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins with Ctrl-C ignored
torch.set_num_threads(1)
rank, size, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
atexit.register(dist.destroy_process_group)  # else a thread of gloo may abort the process at its end
"""


class Ended(NamedTuple):
    """How a process ended: its status, and what it printed."""

    status: int
    output: str
    errors: str


def run_processes(
    script: str, size: int, folder: Path, *words: object, limit: float = 900
) -> list[Ended]:
    """Run a script in ``size`` processes, with ``rank``, ``size``, ``dist`` and ``torch`` set;
    ``words`` are arguments.

    A process that is stopped is killed as soon as all others have ended. AssertionError where one
    of these takes longer than ``limit`` seconds: it hangs, for which other programs on the machine
    are no reason.
    """
    file = folder / "group"
    file.unlink(missing_ok=True)
    begun = time.monotonic()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", START + script, str(rank), str(size), str(file), *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )
        for rank in range(size)
    ]  # fmt: skip
    ended = set[int]()
    try:
        while len(ended) < size:
            for rank, process in enumerate(running):
                if process.poll() is not None or _stopped(process.pid):
                    ended.add(rank)
            assert time.monotonic() - begun < limit, (
                f"only {sorted(ended)} of {size} processes ended"
            )
            time.sleep(0.05)
    finally:
        for process in running:
            process.kill()
        told = [process.communicate() for process in running]
    return [Ended(process.returncode, *words) for process, words in zip(running, told, strict=True)]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` fills, once for all processes that share the tests: the others
    wait for it.
    """
    place = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # that of this run
    folder = place / name
    is_made = place / f"{name}.made"
    with FileLock(place / f"{name}.lock"):
        if not is_made.exists():
            folder.mkdir()  # an error where the first one failed
            make(folder)
            is_made.touch()
    return folder


def cases_that_run(request: pytest.FixtureRequest, test: Callable[..., None]) -> list[str]:
    """Return the names, its only parameter, for which a test runs in this session: a quick one
    draws some of them.
    """
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    return [item.callspec.params["name"] for item in items if item.function is test]


def environment() -> dict[str, str]:
    """Variables of a process that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False
