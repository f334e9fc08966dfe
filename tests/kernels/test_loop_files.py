"""Files of compiled loops: a full disk stops no call, and where there is no folder an error says
what to set.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource")

FULL_DISK = """
import resource
import numba
import numpy as np
from nodeflow import _kernels as kernels

numba.config.CACHE_DIR = {folder!r}
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
print(kernels.csr.ranges_of(np.array([0, 3, 4]), np.array([1, 0])))
"""
NO_FOLDER = """
import numba.core.caching as caching

def refuse(self):
    raise PermissionError("read-only")

for name in list(vars(caching)):
    if name.endswith("CacheLocator"):
        getattr(caching, name).ensure_cache_path = refuse
import nodeflow

nodeflow.Graph.from_edges([0, 1], [1, 2]).csc()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=1200
    )


def test_a_full_disk_stops_no_call(tmp_path):
    done = run(FULL_DISK.format(folder=str(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert f"compiled loops cannot be kept in {tmp_path}" in done.stderr
    assert "File too large" in done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and ".tmp" in path.name]


def test_a_missing_folder_is_said_with_what_to_set():
    done = run(NO_FOLDER)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("OSError: numba stores compiled loops in the folder of ")
    assert last.endswith("set NUMBA_CACHE_DIR to a folder that can be written")
