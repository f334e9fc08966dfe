"""Count the false alarms of ``check_sampler`` over all samplers of the package, with one seed after
another.

python trials/alarms.py --seeds 1000

Every family of ``tests/_support/sampler_families.py`` is checked with the seeds 0, 1, ...: a
failure is an alarm, and all are false. Statistical checks state a rate of 1e-6 per call, of which
no run sees one. So they run at ``--rate`` first, where alarms can be counted; what fails is checked
again at the stated rate, from the same draws. It ends with status 1 if more alarms were seen than
either rate makes plausible, or if a check failed that makes no error by chance. Families whose sums
are biased, as their pages say, run without "marginals"; those that draw nothing at random run once.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import torch  # noqa: E402
from _support.sampler_families import CERTAIN, FAMILIES, call_of, graph_of_all  # noqa: E402

from nodeflow.testing import (  # noqa: E402
    CheckError,
    _law_checks as laws,
    check_sampler,
)
from nodeflow.testing._check_sampler import SAMPLER_CHECKS  # noqa: E402

BIASED = {"labor, hajek", "ladies, normalised", "saint, edge", "saint, walk"}
"""Families whose sums are biased, as their pages say."""
PLAUSIBLE = 0.01
"""As many alarms as are seen come by chance with at least this probability, or the run fails."""


Alarm = tuple[str, int, str, str]
"""Family, seed, name of the check, and the first line of its message."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000, help="seeds per family")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no further seed after so many"
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=0.01,
        help="false alarms per call, in the first run of a check",
    )
    parser.add_argument(
        "--checks", nargs="+", metavar="CHECK", help="names of checks, all if left out"
    )
    parser.add_argument("--families", nargs="+", metavar="FAMILY", default=list(FAMILIES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    stated = laws.FALSE_ALARM
    calls = Counter[str]()
    start = time.monotonic()
    alarms: dict[float, list[Alarm]] = {options.rate: [], stated: []}
    for seed in range(options.first, options.first + options.seeds):
        if calls and time.monotonic() - start > 60 * options.minutes:
            break
        for name in options.families:
            if name in CERTAIN and calls[name]:
                continue
            calls[name] += 1
            for rate in alarms:
                laws.FALSE_ALARM = rate
                new = failures(name, seed, options.checks)
                alarms[rate] += new
                if not new:
                    break  # nor is there one at a smaller rate
    seconds = time.monotonic() - start
    seeds = max(calls.values())
    print(
        f"{len(calls)} families, {seeds} seeds, {calls.total():,} calls in {seconds / 60:.0f} "
        "minutes\n"
    )
    sys.exit(report(calls.total(), alarms))


def failures(name: str, seed: int, checks: list[str] | None) -> list[Alarm]:
    """Check one family with one seed, and return what fails."""
    seeds, more = call_of(name)
    selected = [c for c in checks or SAMPLER_CHECKS if c != "marginals" or name not in BIASED]
    options = {} if name in CERTAIN else {"seed": seed}
    try:
        report = check_sampler(
            FAMILIES[name](graph_of_all(), **options), seeds, checks=selected, **more
        )
    except CheckError as error:
        report = error.report
    failed = [outcome for outcome in report.outcomes if outcome.status == "failed"]
    alarms = [(name, seed, outcome.name, outcome.note.partition("\n")[0]) for outcome in failed]
    return alarms if alarms or report.passed else [(name, seed, "none", "no check ran")]


def report(calls: int, alarms: dict[float, list[Alarm]]) -> int:
    """Print the table, and return the status with which to end."""
    statistical = {
        name for name, check in SAMPLER_CHECKS.items() if check.statistical or name == "hubs"
    }
    print(
        "| false alarms per call | expected, at most | seen | probability of so many | failures of "
        "other checks |"
    )
    print("|---|---|---|---|---|")
    wrong = False
    for rate, several in alarms.items():
        seen = len({alarm[:2] for alarm in several if alarm[2] in statistical})
        others = sum(alarm[2] not in statistical for alarm in several)
        probability = poisson_tail(seen, rate * calls)
        wrong |= others > 0 or probability < PLAUSIBLE
        print(f"| {rate:g} | {rate * calls:.3g} | {seen} | {probability:.2g} | {others} |")
    for rate, several in alarms.items():
        for name, seed, check, words in several:
            print(f"\nat {rate:g}: {name}, seed {seed}: {check}: {words}")
    return int(wrong)


def poisson_tail(count: int, mean: float) -> float:
    """The probability of at least ``count`` events where ``mean`` are expected."""
    return 1 - sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(count))


if __name__ == "__main__":
    main()
