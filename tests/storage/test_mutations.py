"""Files changed at random: what was written comes back, or an error that names the file; the
process stays alive.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1])]  # where a process of its own looks too

from _support.file_formats import FORMATS, PLAIN, digest, trust_stamps  # noqa: E402

CASES = int(os.environ.get("CASES", 2000))


def mutate(file: Path, others: list[Path], draw: random.Random) -> str:
    """Change a file, and say how."""
    how = draw.choice(
        ["bit"] * 6
        + ["byte", "zeros", "cut", "longer", "gone", "other", "pipe", "folder", "link", "text"]
    )
    data = bytearray(file.read_bytes())
    at = draw.randrange(max(len(data), 1))
    if draw.random() < 0.5:  # the beginning, where headers are
        at = min(at, draw.randrange(160))
    if how in ("bit", "byte", "zeros", "text") and data:
        width = 1 if how in ("bit", "byte") else 8
        new = {
            "bit": bytes([data[at] ^ 1 << draw.randrange(8)]),
            "byte": bytes([draw.randrange(256)]),
        }
        data[at : at + width] = new.get(
            how, b"\0" * 8 if how == "zeros" else draw.choice([b"-1,", b"9" * 12, b"[[", b'"'])
        )
        file.write_bytes(data)
        return f"{how} at {at}"
    if how in ("cut", "longer", "other"):
        file.write_bytes(
            {
                "cut": data[:at],
                "longer": data + data[-9:],
                "other": draw.choice(others).read_bytes(),
            }[how]
        )
        return f"{how} {at}"
    file.unlink()
    if how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "link":
        file.symlink_to(file.parent / "nowhere")
    return how


def run(name: str, home: Path) -> None:
    """Open ``CASES`` copies of a folder, each with one change, and print what went wrong."""
    write, read = FORMATS[name]
    ending = f".{name}" if name in PLAIN else ""
    original = home / f"original{ending}"
    write(original)
    time.sleep(0.01)
    trust_stamps(pytest.MonkeyPatch())
    shutil.copytree(original, home / "whole") if original.is_dir() else shutil.copy(
        original, home / f"whole{ending}"
    )
    expected = digest(read(home / f"whole{ending}"))
    draw = random.Random(1)
    soft = os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text().split()[0]) + 2**30
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))
    outcomes = {"same": 0, "error": 0}
    for case in range(CASES):
        place = home / f"case{ending}"
        if original.is_dir():
            shutil.copytree(original, place)
        else:
            shutil.copy(original, place)
        files = (
            sorted(f for f in place.rglob("*") if f.is_file() and f.name != ".lock")
            if place.is_dir()
            else [place]
        )
        if case % 4 == 0 and name not in ("table", "history"):
            digest(read(place))  # which leaves a stamp
            time.sleep(0.01)
        file = draw.choice(files)
        changed = mutate(file, files, draw)
        print(f"{case}: {file.relative_to(home)} {changed}", flush=True)
        try:
            same = digest(read(place)) == expected
            if not same and name not in PLAIN:
                print("WRONG: other data")
            outcomes["same"] += same
        except (ValueError, OSError) as error:
            outcomes["error"] += 1
            if str(place) not in str(error):
                print(f"WRONG: {type(error).__name__} {error}")
        except Exception as error:
            print(f"WRONG: {type(error).__name__} {error}")
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    print(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FORMATS))
def test_changed_files_give_the_same_or_an_error(tmp_path, name):
    command = [sys.executable, __file__, name, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    wrong = [pair for pair in pairwise(lines) if pair[1].startswith("WRONG")]
    assert wrong == [], wrong[:20]


if __name__ == "__main__":
    import resource

    run(sys.argv[1], Path(sys.argv[2]))
