"""Training on two hosts, which are network namespaces: the run of one host, and the end of both
where the link dies.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from _support import namespaces
from _support.cli_tools import status
from _support.pages import ROOT
from _support.training_tools import planted
from safetensors.torch import load_file

RUN = [
    "--fanouts",
    "4",
    "4",
    "--hidden",
    "8",
    "--lr",
    "0.02",
    "--direction",
    "in",
    "--no-plot",
    "--dropout",
    "0",
]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "eth0",
}
_HANGS = 600  # seconds after which nothing comes any more, on any machine

pytestmark = pytest.mark.slow


@pytest.fixture
def hosts() -> Iterator[Any]:
    two = namespaces.Hosts(gbits=1)
    try:
        two.__enter__()
    except OSError as error:
        pytest.skip(f"network namespaces can't be made here: {error}")
    try:
        yield two
    finally:
        two.__exit__()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a data set, whole and in two parts, and a folder for each host."""
    planted().save(tmp_path / "whole")
    words = ["--for", "processes", "--parts", "2", "--direction", "in", "--output"]
    command = ["partition", str(tmp_path / "whole"), *words, str(tmp_path / "parts")]
    assert status(command) == 0
    for host in range(2):
        (tmp_path / f"host-{host}").mkdir()
    return tmp_path


HIDE = 'mount -t tmpfs none "$0" && exec "$@"'  # for this host alone


def start(hosts: Any, place: Path, host: int, *words: str) -> subprocess.Popen[str]:
    """Start torchrun on a host from which the part of the other one is hidden."""
    with (place / f"{host}.out").open("w") as output, (place / f"{host}.err").open("w") as errors:
        more = {
            "cwd": place / f"host-{host}",
            "env": ENVIRONMENT,
            "stdout": output,
            "stderr": errors,
        }
        hidden = str(place / "parts" / f"part-{1 - host}")
        return hosts.start(host, "sh", "-c", HIDE, hidden, *hosts.line(host), *words, **more)


def data_of(place: Path, kind: str) -> list[str]:
    return ["--partitions", str(place / "parts")] if kind == "parts" else [str(place / "whole")]


def losses(folder: Path) -> list[str]:
    return [",".join(line.split(",")[:3]) for line in (folder / "log.csv").read_text().splitlines()]


@pytest.mark.parametrize("kind", ["whole", "parts"])
def test_two_hosts_make_the_run_of_one(hosts, place, kind):
    sizes = ["--batch-size", "10", "--epochs", "3", "--output"]
    words = ["-m", "nodeflow", "train", *data_of(place, kind), *RUN, *sizes]
    running = [start(hosts, place, host, *words, "two") for host in range(2)]
    assert [process.wait(_HANGS) for process in running] == [0, 0], (place / "0.err").read_text()
    alone = hosts.alone(*words, "one", cwd=place, env={**ENVIRONMENT, "GLOO_SOCKET_IFNAME": "lo"})
    assert alone.wait(_HANGS) == 0
    assert losses(place / "host-0" / "two") == losses(place / "one")
    folders = place / "host-0" / "two", place / "one"
    weights, of_one = (load_file(folder / "checkpoint.safetensors") for folder in folders)
    assert all(torch.equal(weights[name], of_one[name]) for name in of_one)
    assert not (place / "host-1" / "two").exists()  # the run is written by rank 0 alone


PATIENT = """
import sys
from nodeflow._processes import default_group
from nodeflow.training._cli import main

default_group._PATIENCE = 20.0  # in place of half an hour
sys.exit(main())
"""
GONE = "rank 1 has ended, is stopped, or is elsewhere"
STORE = (
    "the store of the processes does not answer: its host has ended, or the network to it is down"
)


@pytest.mark.parametrize("end", [0, 1])
def test_a_link_that_goes_down_ends_both_with_a_word(hosts, place, end):
    (place / "patient.py").write_text(PATIENT)
    more = ["--batch-size", "10", "--epochs", "100000", "--patience", "100000"]
    words = [str(place / "patient.py"), "train", *data_of(place, "whole"), *RUN, *more]
    running = [start(hosts, place, host, *words) for host in range(2)]
    wait_for(r"(?m)^ +3 ", place / "0.out", running[0])
    hosts.cut(end)
    for host, why in enumerate([GONE, STORE]):
        said = f"an exchange between processes broke off at .*: {why}"
        wait_for(said, place / f"{host}.err", running[host])
    assert [process.wait(_HANGS) for process in running] == [1, 1]


def wait_for(words: str, file: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has written such words; fail where it ends, or hangs, without them."""
    end = time.monotonic() + _HANGS
    has_ended = False
    while not re.search(words, file.read_text()):
        written = f"{file.read_text()} and {file.with_suffix('.err').read_text()}"
        assert not has_ended, f"the process ended: {written}"
        assert time.monotonic() < end, f"the process hangs: {written}"
        time.sleep(0.1)
        has_ended = process.poll() is not None
