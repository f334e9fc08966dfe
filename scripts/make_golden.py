"""Writes tests/sampling/golden.json: a hash of one batch of every family of samplers.

``python scripts/make_golden.py`` adds the hashes of new families, and prints their names. It
removes those of families that are gone, and keeps the others. With ``--all`` it writes all anew,
for a change that is meant to change draws.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
FILE = TESTS / "sampling" / "golden.json"


def updated(kept: dict[str, str]) -> dict[str, str]:
    """Return a hash for every family: that of ``kept`` where it has one."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    families = import_module("_support.sampler_families")
    return {
        name: kept[name] if name in kept else _made(name, families.golden)
        for name in families.FAMILIES
    }


def _made(name: str, golden: Callable[[str], str]) -> str:
    print(name, flush=True)
    return golden(name)


if __name__ == "__main__":
    present = {} if "--all" in sys.argv[1:] else json.loads(FILE.read_text(encoding="utf-8"))
    FILE.write_text(json.dumps(updated(present), indent=1) + "\n", encoding="utf-8")
