"""Kills, full disks and lack of memory, at every writer of the package: nothing is lost, hung or
left behind.

    python trials/faults.py [--seed 0] [--kills 200] [--disks 50] [--only WRITER] [--kinds WORDS ...]

Kinds: SIGKILL at moments drawn from the measured length of a write, and before each operation on a
file; a small disk that is filled up to a random level; and the k-th allocation of a Python object
or of a tensor fails, for each k of a commit and of a save. Exits 1 on any loss, hang or file left
behind.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from chains import Apart, Chain, FaultError
from contents import files_of
from memory import Fails, ObjectFails, TensorFails, memory, set_nomemory
from writers import Kept, Table, Writer, all_writers, prepare

FILE_EVENTS = (
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.utime",
    "shutil.rmtree",
)


# ---- kills


def kills(chain: Chain, count: int, draw: random.Random) -> Iterator[str]:
    """Kill a write at moments drawn uniformly from its length."""
    lengths = []
    for _ in range(3):
        process = begin(chain)
        since = time.monotonic()
        process.end()
        lengths.append(time.monotonic() - since)
        chain.judge()
    length = statistics.median(lengths)
    hits = 0
    for _ in range(40 * count):  # a write of a millisecond is often over before the kill
        if hits == count:
            return
        process = begin(chain)
        time.sleep(draw.uniform(0, length))
        process.kill()
        status, _ = process.end()
        outcome = chain.judge()
        if status == -signal.SIGKILL:
            hits += 1
            yield outcome
            chain.advance()


def begin(chain: Chain) -> Apart:
    process = Apart(lambda: chain.writer.write(chain.home, chain.version + 1))
    process.started()
    return process


def steps(chain: Chain, count: int, draw: random.Random) -> Iterator[str]:
    """Kill a write before its k-th operation on a file of the folder, for each k."""
    for k in range(1, 10_000):
        process = Apart(lambda k=k: killed_at(k, chain))  # type: ignore[misc]
        process.started()
        status, answer = process.end()
        outcome = chain.judge()
        if status != -signal.SIGKILL:
            if answer is None or answer[0] is not None:
                raise FaultError(f"ends with {status}, {answer}")
            return
        yield outcome
        chain.advance()


def killed_at(k: int, chain: Chain) -> None:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in FILE_EVENTS and str(arguments[0]).startswith(str(chain.home)):
            seen += 1
            if seen == k:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    chain.writer.write(chain.home, chain.version + 1)


# ---- disks


@contextmanager
def small_disk(place: Path) -> Iterator[Callable[[int], Any] | None]:
    """Mount a small disk; yield a function that leaves so many bytes free, or None where mounting
    is not allowed.
    """
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        yield None
        return

    def leave(size: int) -> None:
        facts = os.statvfs(place)
        with (place / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(facts.f_bavail * facts.f_frsize - size, 1))

    try:
        yield leave
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def disks(
    chain: Chain, count: int, draw: random.Random, leave: Callable[[int], Any] | None
) -> Iterator[str]:
    """Fill up the disk before a write, up to a random level below what a version takes."""
    chain.advance()
    ballast = chain.home.parent / "ballast"
    full = 0
    sizes = [path.stat().st_size for path in chain.home.rglob("*") if path.is_file()]
    for _ in range(20 * count):
        if full == count:
            return
        limit = int(draw.uniform(0, max(sum(sizes), 4096) if leave else max(sizes, default=4096)))

        def write(limit: int = limit) -> None:
            if leave is None:  # a file that may not grow is what a full disk is to a program
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            chain.writer.write(chain.home, chain.version + 1)

        before = files_of(chain.home)
        if leave:
            leave(limit)
        process = Apart(write)
        process.started()
        status, answer = process.end()
        ballast.unlink(missing_ok=True)
        if answer is None:
            raise FaultError(f"the process ended with {status} on a full disk")
        outcome = chain.judge()
        if answer[0] is not None:
            full += 1
            if "OSError" not in answer[0] or str(chain.home) not in answer[0]:
                raise FaultError(f"no OSError with a path: {answer[0]}")
            if (
                not chain.writer.is_continued
                and outcome == "earlier content"
                and files_of(chain.home) != before
            ):
                raise FaultError(
                    f"left behind: {sorted(set(files_of(chain.home)) ^ set(before))[:4]}"
                )
            yield f"error, {outcome}"
            chain.advance()
    yield "no fault"


# ---- the table


def trials(
    options: argparse.Namespace, scratch: Path
) -> Iterator[tuple[str, str, Counter[str], str]]:
    """Yield writer, kind of fault, outcomes and the message of a failure."""
    writers = {n: w for n, w in all_writers(scratch).items() if options.only in (None, n)}
    stores = {w.name: w for w in (Table(files=False, num_rows=60), Kept(files=False, num_rows=60))}
    stores |= {w.name: w for w in (Table(files=True, num_rows=60), Kept(files=True, num_rows=60))}
    exhausted: dict[str, Fails] = {
        "tensor k": TensorFails,
        "tensors from k": partial(TensorFails, after=True),
    }
    if set_nomemory is not None:
        exhausted["object k"] = ObjectFails
    with small_disk(scratch / "disk") as leave:
        what = (
            "a tmpfs of 64 MB, filled up"
            if leave
            else "a limit of the size of files (mounting is not permitted)"
        )
        print(
            f"seed {options.seed}; full disks are {what}\n\n| writer | fault | trials | outcomes "
            "|\n|---|---|---|---|",
            flush=True,
        )
        kinds: list[tuple[str, dict[str, Writer], Callable[..., Iterator[str]], int]] = [
            ("kill at a random moment", writers, kills, options.kills),
            ("kill before operation k", writers, steps, len(writers)),
            ("full disk", writers, partial(disks, leave=leave), options.disks),
        ]
        saves = {n: w for n, w in writers.items() if n in ("Graph.save", "training.save")}
        of_stores = {n: w for n, w in stores.items() if options.only in (None, n)}
        for name, fails in exhausted.items():
            kinds.append(
                (f"no memory, {name}", of_stores | saves, partial(in_memory, fails=fails), 0)
            )
        for kind, group, run, total in kinds:
            if options.kinds and not any(kind.startswith(word) for word in options.kinds):
                continue
            for at, (name, writer) in enumerate(group.items()):
                count = total // len(group) + (at < total % len(group))
                draw = random.Random(f"{options.seed} {kind} {name}")
                folder = (
                    scratch / "disk" if kind == "full disk" else scratch
                ) / f"home-{at}-{len(kind)}{name[:3]}"
                outcomes: Counter[str] = Counter()
                message = ""
                try:
                    for outcome in run(Chain(writer, scratch, folder), count, draw):
                        outcomes[outcome] += 1
                except FaultError as error:
                    message = str(error)
                shutil.rmtree(folder, ignore_errors=True)
                yield name, kind, outcomes, message


def in_memory(chain: Chain, count: int, draw: random.Random, fails: Fails) -> Iterator[str]:
    return memory(chain, fails)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=200, help="in all")
    parser.add_argument("--disks", type=int, default=50, help="in all")
    parser.add_argument("--only", metavar="WRITER", help="of one writer, as the table calls it")
    parser.add_argument("--kinds", nargs="*", help='first words of kinds, as "kill" or "full disk"')
    return parser.parse_args()


def main() -> int:
    options = arguments()
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the disk is unmounted
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        prepare(options.only)
        for name, kind, outcomes, message in trials(options, Path(folder)):
            failed += bool(message)
            words = [f"{number:,} {outcome}" for outcome, number in sorted(outcomes.items())]
            words += [f"**{message}**"] if message else []
            print(f"| {name} | {kind} | {outcomes.total():,} | {', '.join(words)} |", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
