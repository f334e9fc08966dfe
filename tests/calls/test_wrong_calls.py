"""Every wrong call of the table raises its error: at once, with its words, and without the memory
that it asks for.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from calls import callables, prepared
from calls.table import Row, rows

TABLE = rows()
PYTHONS = (
    "has no attribute",
    "object is not",
    "unsupported operand",
    "not subscriptable",
    "os.PathLike object",
)
"""Words of Python's own errors, which say nothing about the argument."""
MOST = 100 * 10**6
"""Bytes that a wrong call may take."""
LONG = 60
"""Seconds of the processor that a wrong call may take: so many that a slow processor makes no
difference.
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with contextlib.suppress(ImportError):
        importlib.import_module("matplotlib.figure")  # which takes longer than a call may
    return prepared.namespace(tmp_path_factory.mktemp("calls"))


def refusal(row: Row, names: dict[str, Any]) -> tuple[str, float, int]:
    """Make a wrong call: its message, and the seconds of the processor and bytes that it took."""
    # calls of other rows may have written it
    shutil.rmtree(names["folder"], ignore_errors=True)
    kinds = eval(row.error, vars(builtins))
    _reset_peak()
    # of the processor: other programs may keep it busy
    before = _memory("VmRSS")
    start = time.process_time()
    with pytest.raises(kinds) as caught:
        eval(row.call, dict(names))
    return str(caught.value), time.process_time() - start, _memory("VmHWM") - before


@pytest.mark.cases(len(TABLE))  # all of them in a quick run too: few take a millisecond
@pytest.mark.parametrize("row", TABLE, ids=[row.call[:80] for row in TABLE])
def test_it_is_refused(row, names):
    message, seconds, taken = refusal(row, names)
    if seconds >= LONG or taken >= MOST:  # it may have compiled loops, once
        _, seconds, taken = refusal(row, names)
    assert seconds < LONG, f"the call took {seconds:.1f} s"
    assert taken < MOST, f"the call took {taken / 1e6:.0f} MB"
    assert row.words in message
    assert len(message) < 2000
    assert not any(words in message for words in PYTHONS), f"a message of Python: {message}"


def test_every_public_callable_has_a_right_call_or_an_excuse():
    known = {*prepared.BASE, *prepared.EXCUSES}
    assert [name for name, _ in callables.public() if name not in known] == []
    everything = {name for name, _ in (*callables.public(), *callables.methods())}
    assert sorted(known - everything) == []


def test_every_flag_of_a_method_is_in_the_table():
    assert [
        name
        for name, method in callables.methods()
        if callables.flags(method) and name not in prepared.BASE
    ] == []


def test_the_table_is_large():
    assert len(TABLE) >= 250
    assert len({row.call for row in TABLE}) == len(TABLE)


def _memory(field: str) -> int:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return 1024 * int(text.split(f"{field}:")[1].split()[0])


def _reset_peak() -> None:
    """Let the peak of memory begin anew, where the system has one."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")
