"""A benchmark's measurement in a process of its own, whose memory and compiled loops are not those
of another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def figures_of(file: str, *words: object, **environment: str) -> dict[str, Any]:
    """Run ``python file --child *words``; return the figures that it prints as JSON in its last
    line.

    What goes wrong there ends the benchmark with the messages of that process.
    """
    command = [sys.executable, file, "--child", *map(str, words)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
