"""Coverage-guided fuzzing of everything that reads files: what was written, or an error that names
the file.

Each reader runs in a process of its own, with atheris where it is installed, else with hypothesis,
which draws the same scripts of edits (``edits.py``) without looking at what they reach. Wrong are:
an error of another type, or without the path; other data where a checksum was not made again; a
dead process; more than 100 seconds of the processor; more than 64 MB and ten times the files; an
import, a process or a file elsewhere that the contents chose.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    path for path in (str(ROOT / "trials"), str(ROOT / "tests"), str(ROOT)) if path not in sys.path
]
HOME = ROOT / "build" / "fuzz"
SECONDS = 100
MEMORY = 64 << 20
ERRORS = (ValueError, OSError)
READING = (
    "_core", "_files", "control_variates", "datasets", "distributed", "graph", "storage", "training",
)  # fmt: skip
"""Rooms of the package whose branches are counted; loops that numba compiles cannot be."""
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where files are that are written thousands of times."""
_FATAL = 5
"""Inputs that kill the process of one reader before it is given up."""
_COLUMNS = ("reader", "seconds", "executions", "per second", "coverage", "features", "findings")


class Wrong(Exception):  # noqa: N818  it is a finding
    """What a reader did that it should not; ``key`` is the same for the same fault."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key
        self.text = text


class Target:
    """One reader: its files as they were written, and what it must do with a script of edits."""

    def __init__(self, name: str, home: Path) -> None:
        from edits import seeds
        from formats import FORMATS, digest

        self.format = FORMATS[name]
        self.digest = digest
        self.home = home
        original = home / f"original{self.format.ending}"
        self.place = home / f"place{self.format.ending}"
        self.format.write(original)
        paths = [original] if original.is_file() else sorted(original.rglob("*"))
        self.fixed = {_name(path, original): path.read_bytes() for path in paths if path.is_file()}
        for name in [name for name in self.fixed if name.endswith(".lock")]:
            del self.fixed[name]
        self.files = {
            key: data for key, data in self.fixed.items() if re.search(self.format.only, key)
        }
        self.seeds = lambda: seeds(self.files)
        self._write(self.files, {})
        # which loads what is imported late
        self.expected = self.digest(self.format.read(self.place))
        self._write(self.files, {})
        if self.digest(self.format.read(self.place)) != self.expected:
            raise ValueError(f"{name} is not read alike twice")
        self.roots = {module.partition(".")[0] for module in sys.modules} | set(
            sys.stdlib_module_names
        )
        self.watched = False
        self.broken = ""
        sys.addaudithook(self._hook)

    def __call__(self, script: bytes) -> None:
        """Read the files after some edits; raises ``Wrong``."""
        from edits import SIGNED, edited

        files, odd = edited(self.files, script)
        self._write(files, odd)
        signed = bool(script[:1] and script[0] & SIGNED)
        size = sum(map(len, files.values()))
        with self._limits(size):
            try:
                digest = self.digest(self.format.read(self.place))
            except ERRORS as error:
                if str(self.place) not in str(error):
                    raise Wrong(
                        _place(error), f"the error does not name the file: {error!r}"[:300]
                    ) from error
                return
            except Exception as error:
                raise Wrong(_place(error), repr(error)[:300]) from error
        if self.format.checked and not signed and digest != self.expected:
            raise Wrong("other data", "other data without an error")

    def _write(self, files: dict[str, bytes], odd: dict[str, str]) -> None:
        from edits import place_files

        if self.place.is_dir():
            shutil.rmtree(self.place)
        self.place.unlink(missing_ok=True)
        if self.place.suffix == "" or "" not in self.fixed:
            self.place.mkdir()
        kept = {name: data for name, data in self.fixed.items() if name not in self.files}
        place_files(self.place, {**kept, **files}, odd)

    @contextmanager
    def _limits(self, size: int) -> Iterator[None]:
        """Watch memory and what the contents choose, as long as the block runs."""
        room = MEMORY + 10 * size
        # threads that start take room for their stacks, which is no allocation of the reader
        limit = _status("VmSize") + room + 2**28
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        self.watched = True
        self.broken = ""
        try:
            yield
        finally:
            self.watched = False
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if self.broken:
            raise Wrong(self.broken.split(" ")[0], self.broken)
        if (taken := _status("VmHWM") - before) > room:
            raise Wrong("memory", f"{taken >> 20} MB for files of {size:,} bytes")

    def _hook(self, event: str, details: tuple[Any, ...]) -> None:
        if not self.watched:
            return
        if event in ("pickle.find_class", "subprocess.Popen", "os.system", "os.exec"):
            self.broken = f"{event} {details!r}"[:200]
        elif event == "import" and str(details[0]).partition(".")[0] not in self.roots:
            self.broken = f"import {details[0]}"
        elif (
            event == "open"
            and isinstance(details[0], str)
            and details[2] & (os.O_WRONLY | os.O_RDWR)
        ):
            path = Path(details[0]).absolute()
            if not {self.home, Path("/dev"), ROOT / "nodeflow"} & {*path.parents}:
                self.broken = f"write {path}"


def _name(path: Path, original: Path) -> str:
    return "" if path == original else path.relative_to(original).as_posix()


def _status(word: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text[text.index(word) :].split(maxsplit=2)[1]) << 10


def _place(error: BaseException) -> str:
    """Return type and innermost line of an error within the package."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if f"{ROOT}/nodeflow/" in frame.filename
    ]
    where = (
        f"{frames[-1].filename.removeprefix(f'{ROOT}/')}:{frames[-1].lineno}"
        if frames
        else "elsewhere"
    )
    return f"{type(error).__name__} at {where}"


def show(name: str, file: str | Path) -> None:
    """Read once more what a saved script makes of the files of a reader; what is wrong raises."""
    _prepare()
    with tempfile.TemporaryDirectory() as home:
        target = Target(name, Path(home).resolve())
        target(Path(file).read_bytes())
        print("nothing is wrong with it now")


class Recorder:
    """Calls a target, counts, and saves the first script of each kind of fault; ``script`` holds
    the present one.
    """

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.keys = set[str]()
        self.count = 0
        self.end = math.inf

    def __call__(self, script: bytes) -> None:
        # libFuzzer looks at its clock only after it has run all of the corpus
        if time.monotonic() > self.end:
            print(f"Done {self.count} runs", flush=True)
            os._exit(0)
        self.count += 1
        (self.folder / "script").write_bytes(script)
        # of processor time, whose default action ends the process, also within a compiled loop
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            self.target(script)
        except Wrong as wrong:
            if wrong.key in self.keys:
                return
            self.keys.add(wrong.key)
            file = self.folder / f"wrong-{blake2b(wrong.key.encode(), digest_size=5).hexdigest()}"
            file.write_bytes(script)
            file.with_suffix(".json").write_text(json.dumps([wrong.key, wrong.text]))
            print(f"WRONG {wrong.key}: {wrong.text}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def load_package() -> ModuleType | None:
    """Import the package, and atheris where it is, which then counts the branches and comparisons
    of what reads.
    """
    warnings.simplefilter("ignore")
    try:
        import atheris
    except ImportError:
        import formats

        return None
    files = [path.relative_to(ROOT) for path in (ROOT / "nodeflow").rglob("*.py")]
    others = [file for file in files if len(file.parts) > 2 and file.parts[1] not in READING]
    names = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in others]
    with atheris.instrument_imports(include=["nodeflow"], exclude=names):
        import formats  # noqa: F401
    return atheris


def _prepare() -> None:
    """Let stamps be written at once, so that they are edited too, and all threads take memory from
    one place.
    """
    from nodeflow._files.disk import checked

    checked._SETTLED = 0
    ctypes.CDLL(None).mallopt(-8, 1)


def run_reader(
    name: str, seconds: float, folder: Path, home: Path, atheris: ModuleType | None
) -> None:
    """Fuzz one reader in this process for so long, with its files in ``home``, and print what is
    found.
    """
    _prepare()
    with (folder / "log").open("w") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    recorder = Recorder(Target(name, home), folder)
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    if not any(corpus.iterdir()):
        scripts = list(recorder.target.seeds())
        for number, script in enumerate(scripts[:: max(len(scripts) // 50, 1)]):
            (corpus / f"seed-{number:04}").write_bytes(script)
    print("READY", flush=True)
    recorder.end = time.monotonic() + seconds + 2
    if atheris is None:
        end = time.monotonic() + seconds
        _with_hypothesis(recorder, lambda: time.monotonic() >= end)
        return
    options = [
        f"-max_total_time={int(seconds)}",
        "-timeout=300",
        "-rss_limit_mb=6000",
        "-max_len=4096",
    ]
    options += ["-print_final_stats=1", f"-artifact_prefix={folder}/artifact-", str(corpus)]
    atheris.Setup([sys.argv[0], *options], recorder)
    atheris.Fuzz()


def _with_hypothesis(recorder: Recorder, is_over: Callable[[], bool]) -> None:
    """Draw scripts of edits until it is over."""
    from hypothesis import HealthCheck, given, seed, settings, strategies

    quiet = settings(
        database=None, deadline=None, max_examples=200, suppress_health_check=list(HealthCheck)
    )
    number = 0
    for script in recorder.target.seeds():
        if not is_over():
            recorder(script)

    def one(script: bytes) -> None:
        if not is_over():
            recorder(script)

    while not is_over():
        number += 1
        seed(number)(quiet(given(strategies.binary(max_size=200))(one)))()
    print(f"Done {recorder.count} runs", flush=True)


def fuzz(
    name: str, seconds: float, atheris: ModuleType | None
) -> tuple[tuple[str, ...], list[str]]:
    """Fuzz one reader, in new processes as long as inputs kill them; return a row of the table, and
    the findings.
    """
    folder = HOME / re.sub(r"\W+", "-", name)
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("wrong-*"), folder / "log"]:
        old.unlink(missing_ok=True)
    executions = 0
    cover = ("-", "-")
    spent = 0.0
    findings = list[str]()
    while len(findings) < _FATAL and spent < max(seconds - 1, 1):
        with tempfile.TemporaryDirectory(prefix="nodeflow-fuzz-", dir=_MEMORY) as home:
            arguments = (name, seconds - spent, folder, Path(home).resolve(), atheris)
            child = get_context("fork").Process(target=run_reader, args=arguments)
            child.start()
            spent += _wait(child, folder / "log", seconds - spent)
        text = (folder / "log").read_text(errors="replace")
        executions += max(
            (int(each) for each in re.findall(r"^(?:#|Done )(\d+)", text, re.MULTILINE)), default=0
        )
        cover = max(
            [cover, *re.findall(r"cov: (\d+) ft: (\d+)", text)],
            key=lambda pair: (len(pair[1]), pair[1]),
        )
        if child.exitcode == 0:
            break
        line = next(
            (line for line in reversed(text.splitlines()) if "ERROR" in line or "Error" in line), ""
        )
        findings.append(f"{name}: the process ended with {child.exitcode}: {line[:300]}")
        if "READY" not in text:
            findings[-1] += f" before it had read the valid files, see {folder / 'log'}"
            break
        fatal = (
            folder / f"fatal-{blake2b((folder / 'script').read_bytes(), digest_size=5).hexdigest()}"
        )
        shutil.copy(folder / "script", fatal)
        findings[-1] += _again(name, fatal)
    for file in sorted(folder.glob("wrong-*.json")):
        key, what = json.loads(file.read_text())
        findings.append(f"{name}: {key}: {what}{_again(name, file.with_suffix(''))}")
    row = (
        name,
        f"{spent:.0f}",
        f"{executions:,}",
        f"{executions / max(spent, 1):.0f}",
        *cover,
        str(len(findings)),
    )
    return row, findings


def _wait(child: BaseProcess, log: Path, seconds: float) -> float:
    """Wait for a process, or end it minutes too late; return the seconds since it had read the
    valid files.
    """
    begin = time.monotonic()
    ready = False
    while child.is_alive():
        child.join(0.2)
        if not ready and log.exists() and "READY" in log.read_text(errors="replace"):
            begin = time.monotonic()
            ready = True
        if time.monotonic() - begin > seconds + 600:
            child.kill()
    return time.monotonic() - begin


def _again(name: str, file: Path) -> str:
    lines = (
        'import sys; sys.path.insert(0, "trials")',
        "from fuzz import show",
        f"show({name!r}, {str(file)!r})",
    )
    return "".join(f"\n    {line}" for line in lines)


def main() -> int:
    """Fuzz all readers, or those of some names, print a table; return 1 if anything was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10, help="for each reader (default: 10)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="READER", help="readers (default: all)"
    )
    options = parser.parse_args()
    os.environ |= {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    atheris = load_package()
    from formats import FORMATS

    if unknown := [name for name in options.only if name not in FORMATS]:
        parser.error(f"there is no reader {unknown[0]!r}; there are {', '.join(FORMATS)}")
    findings: list[str] = []
    print(f"with {'atheris' if atheris else 'hypothesis, without coverage'}\n")
    print(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}", flush=True)
    for name in options.only or FORMATS:
        row, more = fuzz(name, options.minutes * 60, atheris)
        findings += more
        print(f"| {' | '.join(row)} |", flush=True)
    print("\n".join(["", *findings]))
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
