"""Time an epoch of ``nodeflow train`` beside busy programs and alone, with threads that spin for
long or shortly.

python benchmarks/busy.py [--busy 0 4] [--rounds 3] [--spins 1000 10000]

"spin" is what the OpenMP library does by default, "short" what the command chooses. A busy program
is a loop that never waits. "load" is how many threads were ready to run beside the epoch, by the
system's average of a minute at its end: in a row "alone" it must be small, or other programs were
not alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DEFAULT = "300000"  # pauses for which GNU's library spins unless a variable says otherwise
SIZE = [
    "--hidden",
    "32",
    "--fanouts",
    "5",
    "5",
    "--epochs",
    "2",
    "--validate-every",
    "2",
    "--no-plot",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--busy", nargs="+", type=int, default=[0, 4], help="numbers of busy programs"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    parser.add_argument(
        "--spins", nargs="*", default=[], help="further numbers of pauses to spin for"
    )
    options = parser.parse_args()
    kinds = {"spin": {"GOMP_SPINCOUNT": DEFAULT}, "short": {}}
    kinds |= {f"spin {count}": {"GOMP_SPINCOUNT": count} for count in options.spins}
    print(
        f"{os.cpu_count()} cores\n\n| beside | threads | s per epoch | ratio to spin | load "
        "|\n|---|---|---|---|---|"
    )
    for count in options.busy:
        programs = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)
        ]
        try:
            seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
            for _ in range(options.rounds):
                for kind, variables in kinds.items():
                    seconds[kind].append(epoch(variables))
        finally:
            for program in programs:
                program.kill()
                program.wait()
        first = statistics.median(seconds["spin"])
        for kind, times in seconds.items():
            middle = statistics.median(times)
            what = f"{count} busy programs" if count else "alone"
            print(
                f"| {what} | {kind} | {middle:.2f} | {middle / first:.2f} | "
                f"{os.getloadavg()[0]:.1f} |",
                flush=True,
            )


def epoch(variables: dict[str, str]) -> float:
    """Seconds of the second epoch of a run of its own."""
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run"
        command = [
            sys.executable,
            "-m",
            "nodeflow",
            "train",
            "debian",
            *SIZE,
            "--output",
            str(output),
        ]
        subprocess.run(
            command, env={**environment, **variables}, check=True, stdout=subprocess.DEVNULL
        )
        with open(output / "log.csv", encoding="utf-8", newline="") as log:
            return float([*csv.DictReader(log)][-1]["seconds"])


if __name__ == "__main__":
    main()
