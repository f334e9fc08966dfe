"""Hosts that are network namespaces of this machine, joined by a link of a stated rate (Linux, as
root).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

DEVICE = "eth0"
_TC = shutil.which("tc") or "/usr/sbin/tc"  # often not on the path


class Hosts:
    """Two hosts, number 0 and 1, until the end of a ``with`` block, which ends their processes
    whatever happens.

    Each has a loopback device and, for the link, ``eth0``. ``gbits`` is its rate in each direction;
    None: no limit. OSError where namespaces can't be made here, with the reason.
    """

    def __init__(self, gbits: float | None = None) -> None:
        self.gbits = gbits
        self.names = [f"nodeflow-{os.getpid()}-{time.monotonic_ns()}-{host}" for host in range(2)]
        self.addresses = ["10.77.0.1", "10.77.0.2"]
        self.started: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Hosts:
        try:
            for name in self.names:
                _call("ip", "netns", "add", name)
            one, other = self.names
            peer = "type", "veth", "peer", "name", DEVICE, "netns", other
            _call("ip", "link", "add", DEVICE, "netns", one, *peer)
            for name, address in zip(self.names, self.addresses, strict=True):
                _call("ip", "-n", name, "addr", "add", f"{address}/24", "dev", DEVICE)
                for device in ("lo", DEVICE):
                    _call("ip", "-n", name, "link", "set", device, "up")
                if self.gbits is not None:
                    # a burst holds what the link carries in 10 ms, the longest time between two
                    # ticks of a kernel
                    rate = (
                        "rate",
                        f"{self.gbits * 1e3:g}mbit",
                        "burst",
                        f"{self.gbits * 1.25e6:.0f}",
                    )
                    _call(
                        _TC,
                        "-n",
                        name,
                        "qdisc",
                        "add",
                        "dev",
                        DEVICE,
                        "root",
                        "tbf",
                        *rate,
                        "latency",
                        "50ms",
                    )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            with suppress(OSError):
                for pid in _call("ip", "netns", "pids", name).split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
        for process in self.started:
            process.wait()
        for name in self.names:
            with suppress(OSError):
                _call("ip", "netns", "del", name)

    def start(self, host: int, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command on a host; ``options`` are those of ``subprocess.Popen``."""
        line = ["ip", "netns", "exec", self.names[host], *words]
        process = subprocess.Popen(line, text=True, **options)
        self.started.append(process)
        return process

    def torchrun(self, host: int, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start torchrun on a host, for one process on each of the two, as a user would type it."""
        options["env"] = {**options.get("env", os.environ), "GLOO_SOCKET_IFNAME": DEVICE}
        return self.start(host, *self.line(host), *words, **options)

    def line(self, host: int) -> tuple[str, ...]:
        """Return the beginning of the line of a host, up to the program."""
        at = f"--node-rank={host}", f"--master-addr={self.addresses[0]}", "--master-port=29500"
        return (*TORCHRUN, "--nnodes=2", *at)

    def alone(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start torchrun for both processes on host 0."""
        return self.start(0, *TORCHRUN, "--standalone", "--nproc-per-node=2", *words, **options)

    def cut(self, host: int = 1) -> None:
        """Take the link down, at the end of a host."""
        _call("ip", "-n", self.names[host], "link", "set", DEVICE, "down")


TORCHRUN = sys.executable, "-m", "torch.distributed.run"


def _call(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
