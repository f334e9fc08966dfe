"""Without numba's compiler there are no loops: the import says so in one line."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_import_says_that_it_needs_the_compiler() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import nodeflow"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: nodeflow cannot run with NUMBA_DISABLE_JIT")
