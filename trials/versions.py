"""Trains, and runs quick tests, with the oldest and the newest versions of the libraries, on each
Python that is found.

``python trials/versions.py [ROW ...]`` makes an environment per row under ``build/versions``, such
as ``3.11-oldest``, and prints a row of a table for each: versions, tests, seconds. It ends with 1
if a run or a test failed. A row for which torch cannot be had is skipped, and says so. ``--index``
names an index with CPU builds of torch, ``--torch`` a release of it, such as 2.13.0+cpu. A row may
be the path of a Python instead, such as ``.venv/bin/python``, whose libraries are tried as they
are.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "versions"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_FIRST = {"numpy": "2.0", "scipy": "1.13", "numba": "0.61"}
OLDEST = {"3.11": _FIRST, "3.12": _FIRST, "3.13": _FIRST | {"numpy": "2.1", "scipy": "1.14"}}
OLDEST |= {"3.14": {"numpy": "2.3", "scipy": "1.16", "numba": "0.63"}}
"""The oldest libraries that ``pyproject.toml`` admits, and that have wheels for a Python."""
# no CUDA build is called so: those are several GB
TORCH = {"oldest": "2.11.0+cpu", "newest": "2.13.0+cpu"}
FURTHER = ("tqdm==4.66.0", "safetensors==0.5.0", "tomli-w==1.1.0", "filelock==3.21.0")
"""The oldest of the other libraries that ``pyproject.toml`` admits."""
OTHERS = ("tqdm", "safetensors", "tomli-w", "filelock", "pytest", "hypothesis", "setuptools>=77")
QUICK = (
    "tests/core/base",
    "tests/files/disk",
    "tests/graph/test_graph.py",
    "tests/graph/test_graph_folder.py",
)
QUICK += ("tests/sampling/test_everywhere.py", "tests/training/test_run_folder.py")
TRAIN = ("train", "--epochs", "2", "--no-plot")


def interpreter(version: str) -> str | None:
    """Return the path of a Python, in the path or among those of pyenv."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(installed[-1]) if installed else shutil.which(f"python{version}")


def requirements(version: str, kind: str, torch: str | None) -> list[str]:
    wanted = [f"torch=={torch or TORCH[kind]}"]
    if kind == "newest":
        return [*wanted, "numpy", "scipy", "numba", *OTHERS]
    return [
        *wanted,
        *(f"{name}=={number}.*" for name, number in OLDEST[version].items()),
        *FURTHER,
        *OTHERS,
    ]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    # another numba would compile the loops that this checkout keeps anew
    env = {**os.environ, "NUMBA_CACHE_DIR": str(PLACE / "loops"), "PYTHONPATH": ""}
    return subprocess.run(
        [*map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False, env=env
    )


def failed(what: str, done: subprocess.CompletedProcess[str]) -> str:
    lines = [
        line for line in (done.stderr.strip() or done.stdout.strip()).splitlines() if line.strip()
    ]
    return f"{what}: {lines[-1] if lines else done.returncode}"


def install(name: str, home: Path, torch: str | None, index: Sequence[str]) -> tuple[str, bool]:
    """Make the environment of a row; return what is amiss, and whether something failed."""
    version, _, kind = name.partition("-")
    python = interpreter(version)
    if python is None:
        return "no such Python here", False
    done = run(python, "-m", "venv", "--clear", home)
    pip = [
        home / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--only-binary",
        ":all:",
        *index,
    ]
    if done.returncode == 0:
        wanted = requirements(version, kind, torch)
        if run(*pip, wanted[0]).returncode:
            return f"{wanted[0]} is not to be had here", False
        done = run(*pip, *wanted)
    if done.returncode == 0:
        done = run(*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT)
    return (failed("installing", done), True) if done.returncode else ("", False)


def row(name: str, torch: str | None, index: Sequence[str]) -> tuple[list[str], bool]:
    """Return the cells of a row, and whether it failed."""
    begun = time.perf_counter()
    home = PLACE / name.strip("./").replace("/", "-")
    # not resolved: a link has its libraries
    inside = Path(name).absolute() if "/" in name else home / "bin" / "python"
    amiss, wrong = ("", False) if "/" in name else install(name, home, torch, index)
    if amiss:
        return [name, "", "", amiss, ""], wrong
    home.mkdir(parents=True, exist_ok=True)
    code = (
        "import platform, torch, numpy, scipy, numba; print(platform.python_version(), "
        "torch.__version__, "
    )
    versions = run(
        inside, "-c", code + "numpy.__version__, scipy.__version__, numba.__version__)"
    ).stdout.split()
    trained = run(inside, "-m", "nodeflow", *TRAIN, "--output", home / "run")
    score = re.search(r"test accuracy (\d\.\d+)", trained.stdout)
    result = (
        f"accuracy {score[1]}" if score and trained.returncode == 0 else failed("training", trained)
    )
    tests = run(inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", *QUICK)
    counts = re.search(
        r"(\d+ (?:passed|failed).*) in ",
        tests.stdout.strip().splitlines()[-1] if tests.stdout else "",
    )
    outcome = counts[1] if counts else failed("tests", tests)
    wrong = trained.returncode != 0 or tests.returncode != 0
    if tests.returncode:
        (home / "tests.txt").write_text(tests.stdout, encoding="utf-8")
    return [name, ", ".join(versions), result, outcome, f"{time.perf_counter() - begun:.0f}"], wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help="such as 3.12-newest, or a path (default: all)"
    )
    parser.add_argument("--torch", help="the release of torch")
    parser.add_argument("--index", help="an index of CPU builds of torch")
    options = parser.parse_args()
    index = ["--extra-index-url", options.index] if options.index else []
    print(
        "| row | Python, torch, numpy, scipy, numba | training | tests | seconds "
        "|\n|---|---|---|---|---|"
    )
    wrong = False
    for name in options.rows or [
        f"{version}-{kind}" for version in PYTHONS for kind in ("oldest", "newest")
    ]:
        cells, bad = row(name, options.torch, index)
        print(f"| {' | '.join(cells)} |", flush=True)
        wrong |= bad
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
