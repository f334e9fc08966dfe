"""Stores: rows change by whole commits, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.stores import SHAPES, Store, after, changes, opened, values, write_without_end
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow._core.peers.peers import Facts, Peers
from nodeflow._files.store import journal, store as stores


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that gets a folder and the folder of the tests as arguments."""
    command = [sys.executable, "-c", code, str(folder), str(Path(__file__).parents[2])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_commits_are_there_when_the_folder_is_opened_again(tmp_path):
    store = opened(tmp_path / "a" / "b")
    assert values(store.arrays) == after(0)
    for k in (1, 2):
        store.commit(changes(k))
    store.flush()
    assert values(store.arrays) == values(opened(tmp_path / "a" / "b").arrays) == after(2)
    store.close()
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        ".lock",
        "0",
        "manifest.json",
    ]
    assert np.load(tmp_path / "a" / "b" / "0" / "x.npy").tolist() == after(2)["x"]
    with pytest.raises(ValueError, match="is closed"):
        store.commit(changes(3))


def test_stores_of_one_process_share_the_journal(tmp_path):
    """A journal that another store has replaced, or removed when it was closed, is no longer
    written.
    """
    first = opened(tmp_path / "a")
    second = opened(tmp_path / "a")
    first.commit(changes(1))
    second.commit(changes(2))
    large = torch.arange(50).repeat(500)
    first.commit({"x": (large, torch.full((len(large), 3), 2.0))})  # in a larger journal
    first.commit(changes(3))
    for _ in range(2):
        write_without_end(second, 4)
        assert opened(tmp_path / "a").arrays["step"].item() == second.arrays["step"].item() == 3
        first.close()


def test_all_arrays_are_replaced_at_once(tmp_path):
    store = opened(tmp_path / "a")
    store.commit(changes(1))
    new = store.successor()
    new["x"].fill_(4)
    # which removes unfinished sets
    assert values(store.arrays) == values(opened(tmp_path / "a").arrays) == after(1)
    new = store.successor()
    new["x"].fill_(4)
    store.replace(new)
    assert (
        values(store.arrays)
        == values(opened(tmp_path / "a").arrays)
        == {**after(0), "x": [[4.0] * 3] * 50}
    )
    store.commit(changes(1))
    assert values(opened(tmp_path / "a").arrays)["half"] == after(1)["half"]


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=4), st.integers(0, 3), st.booleans()
)
@examples(40)
def test_an_error_at_any_array_puts_all_rows_back(ids, at, files):
    import tempfile

    shapes = {f"x{k}": ((10, 2), torch.float64) for k in range(4)}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "s", "thing", 1, shapes, {})
        for array in store.arrays.values():
            array.copy_(torch.rand(10, 2))
        before = values(store.arrays)
        wanted: dict[str, tuple[Tensor, Tensor]] = {}
        for k, which in enumerate(ids):
            new = torch.rand(len(which) + (k == at), 2).double()  # too many rows for the ids
            wanted[f"x{k}"] = torch.tensor(which, dtype=torch.int64), new
        if at < len(ids):
            with pytest.raises((IndexError, RuntimeError)):
                store.commit(wanted) if files else stores.MemoryStore(store.arrays).commit(wanted)
            assert values(store.arrays) == before
            return
        store.commit(wanted) if files else stores.MemoryStore(store.arrays).commit(wanted)
        for k, which in enumerate(ids):
            expected = torch.tensor(before[f"x{k}"], dtype=torch.float64).view(10, 2)
            for row, new in zip(which, wanted[f"x{k}"][1], strict=True):
                expected[row] = new
            assert store.arrays[f"x{k}"].equal(expected)
        store.close()


@pytest.mark.parametrize("files", [False, True])
def test_rows_that_could_not_be_put_back_are_put_back_by_the_next_commit(
    files, tmp_path, monkeypatch
):
    store = opened(tmp_path / "a") if files else stores.MemoryStore({"x": torch.zeros(50, 3)})

    def change(arrays: Any) -> None:
        arrays["x"][0] = 5
        raise ZeroDivisionError

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Tensor, "index_copy_", fail)
        with pytest.raises(RuntimeError, match="could not be put back"):
            store.change({"x": torch.tensor([0])}, change)
    store.commit({"x": (torch.tensor([1]), torch.ones(1, 3))})
    assert store.arrays["x"].sum(1)[:3].tolist() == [0, 3, 0]


@pytest.mark.parametrize("bad", [[50], [-1], [3, 10**12]])
def test_ids_that_are_no_rows(bad, tmp_path):
    store = opened(tmp_path / "a")
    store.commit(changes(1))
    ids = torch.tensor(bad)
    for wrong in (
        {"x": (ids, torch.ones(len(bad), 3))},
        {**changes(2), "seen": (ids, torch.ones(len(bad)).bool())},
    ):
        with pytest.raises((IndexError, RuntimeError)):
            store.commit(wrong)
        with pytest.raises((IndexError, RuntimeError)):
            stores.MemoryStore(store.arrays).commit(wrong)
        assert values(store.arrays) == after(1)


# ---- faults

DIE = """
import os, signal, sys
from pathlib import Path
import torch
from torch.utils._python_dispatch import TorchDispatchMode
torch.set_num_threads(1)
sys.path[:0] = [str(Path(sys.argv[2]))]
from _support.stores import after, changes, opened, values

class DieAt(TorchDispatchMode):
    def __init__(self, n):
        super().__init__()
        self.n, self.seen = n, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        if self.seen == self.n:
            os.kill(os.getpid(), signal.SIGKILL)
        return func(*args, **(kwargs or {}))

store = opened(Path(sys.argv[1]))
store.commit(changes(1))
with DieAt(0):  # the first use of such a mode imports for seconds
    store.commit(changes(1))
store.close()
for n in range(1, 1000):
    child = os.fork()
    if child == 0:
        store, wanted = opened(Path(sys.argv[1])), changes(2)
        with DieAt(n):
            store.commit(wanted)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
    store = opened(Path(sys.argv[1]))
    assert values(store.arrays) == after(1), n
    store.close()
print(n)
"""


@pytest.mark.slow
def test_a_process_killed_at_any_operation_of_a_commit_leaves_the_rows_before(
    tmp_path,
):
    assert int(run(DIE, tmp_path / "a").stdout) > 10
    assert values(opened(tmp_path / "a").arrays) == after(2)


RUN = """
import sys
from pathlib import Path
sys.path[:0] = [str(Path(sys.argv[2]))]
from _support.stores import changes, opened
store = opened(Path(sys.argv[1]))
print("ready", flush=True)
for k in range(int(store.arrays["step"]) + 1, 10**6):
    store.commit(changes(k))
"""


@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_process_leaves_whole_commits(count, tmp_path):
    opened(tmp_path / "a").close()
    for seconds in np.random.default_rng(0).uniform(0.02, 0.2, count):
        command = [sys.executable, "-c", RUN, str(tmp_path / "a"), str(Path(__file__).parents[2])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(BlockingIOError, match="written by another process"):
                opened(tmp_path / "a")
            with pytest.raises(subprocess.TimeoutExpired):  # else the program ended by itself
                process.wait(seconds)
            process.kill()
        store = opened(tmp_path / "a")
        assert values(store.arrays) == after(int(store.arrays["step"]))
        store.close()
    assert int(opened(tmp_path / "a").arrays["step"]) > 0


@pytest.mark.parametrize("damage", ["none", "flipped", "last", "cut", "foreign", "empty", "index"])
def test_only_a_complete_journal_is_undone(damage, tmp_path):
    store = opened(tmp_path / "a")
    store.commit(changes(1))
    write_without_end(store, 2)
    assert values(store.arrays) == after(2)
    file = tmp_path / "a" / "journal"
    contents = bytearray(file.read_bytes())
    match damage:
        case "flipped":
            contents[200] ^= 1
        case "last":  # the old row of the last array
            contents[int.from_bytes(contents[:8], "little") - 64] ^= 1
        case "cut" | "empty":
            del contents[300 * (damage == "cut") :]
        case "foreign":
            contents[24:32] = b"%PDF-1.7"
        case "index":
            contents[16] += 1
    file.write_bytes(contents)
    if damage not in ("none", "empty"):
        with pytest.raises(
            ValueError, match=r"a/journal is damaged, as by a power cut: .* remove the journal"
        ):
            opened(tmp_path / "a")
        file.unlink()
    store = opened(tmp_path / "a")
    assert values(store.arrays) == after(1 if damage == "none" else 2)
    store.commit(changes(3))
    assert values(store.arrays) == values(opened(tmp_path / "a").arrays)
    if damage != "none":
        assert values(store.arrays) == after(3)


def test_a_full_disk_during_a_commit(tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = opened(tmp_path / "a")
    with monkeypatch.context() as patched:
        patched.setattr(journal, "take_room", full)
        with pytest.raises(OSError, match=r"No space left on device.*journal"):
            store.commit(changes(1))
    assert values(store.arrays) == values(opened(tmp_path / "a").arrays) == after(0)
    assert not [path for path in (tmp_path / "a").iterdir() if "unfinished" in path.name]
    store.commit(changes(1))
    assert values(store.arrays) == after(1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="No space left on device"):
            opened(tmp_path / "b")
        with pytest.raises(OSError, match="No space left on device"):
            store.successor()
    assert not (tmp_path / "b").exists()
    assert values(opened(tmp_path / "a").arrays) == after(1)


@pytest.mark.slow
def test_a_child_made_by_fork_does_not_write(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; sys.path[:0] = [sys.argv[2]]\n"
        "from _support.stores import changes, opened\n"
        "store = opened(Path(sys.argv[1])); child = os.fork()\n"
        "if child == 0:\n"
        "    for job in (lambda: store.commit(changes(1)), lambda: opened(Path(sys.argv[1]))):\n"
        "        try: job()\n"
        "        except BlockingIOError: continue\n"
        "        os._exit(1)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0; store.commit(changes(1))"
    )
    run(code, tmp_path / "a")
    assert values(opened(tmp_path / "a").arrays) == after(1)


class Two(Peers):
    """Two processes, of which the other has a set of arrays of some number, and may be gone."""

    size = 2

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self.number = number
        self.gone = False

    def gather(
        self, what: str, arrays: Sequence[np.ndarray[Any, Any]]
    ) -> list[list[np.ndarray[Any, Any]]]:
        if self.gone:
            raise ConnectionError("the other process has ended")
        return [[*arrays], [np.array([self.number, 0, 0], np.int64)]]

    def agree(self, what: str, facts: Facts) -> None:
        if not callable(facts) and facts["number of its arrays"] != str(self.number):
            raise ValueError(f"{what} are of other numbers")


def test_a_commit_that_the_other_process_may_not_have_ended_is_left_open(tmp_path):
    peers = Two()
    store = opened(tmp_path / "a", peers=peers)
    store.commit(changes(1))
    peers.gone = True
    with pytest.raises(ConnectionError):
        store.commit(changes(2))
    peers.gone = False
    with pytest.raises(
        RuntimeError, match=r"unknown whether the last commit to .* ended on the other processes"
    ):
        store.commit(changes(3))
    store.close()
    assert values(opened(tmp_path / "a").arrays) == after(1)


@pytest.mark.parametrize(
    ("number", "words"), [(1, "has no set 1 of arrays, only 0"), (2, "are of other numbers")]
)
def test_a_folder_of_another_run_is_refused_and_stays(tmp_path, number, words):
    opened(tmp_path / "a").commit(changes(1))
    with pytest.raises(ValueError, match=words):
        opened(tmp_path / "a", peers=Two(number))
    assert values(opened(tmp_path / "a").arrays) == after(1)


def test_a_store_knows_its_process(tmp_path, monkeypatch):
    store = opened(tmp_path / "a")
    another = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: another)
    with pytest.raises(BlockingIOError, match="was opened by the process that forked this one"):
        store.commit(changes(1))
    assert values(store.arrays) == after(0)


def test_folders_of_others(tmp_path):
    opened(tmp_path / "a").close()
    other = {**SHAPES, "x": ((50, 4), torch.float32)}
    with pytest.raises(ValueError, match=r"holds a thing with arrays .*; choose another folder"):
        Store(tmp_path / "a", "thing", 1, other, {"name": "papers"})
    with pytest.raises(ValueError, match="holds a thing with name papers, not mag"):
        Store(tmp_path / "a", "thing", 1, SHAPES, {"name": "mag"})
    with pytest.raises(ValueError, match="holds a thing of another author"):
        Store(tmp_path / "a", "thing", 1, SHAPES, {"name": "mag"}, {"name": "of another author"})
    with pytest.raises(ValueError, match="holds 'thing', not 'soup'"):
        Store(tmp_path / "a", "soup", 1, SHAPES, {})
    with pytest.raises(ValueError, match="version 1"):
        Store(tmp_path / "a", "thing", 2, SHAPES, {"name": "papers"})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "history.json").touch()
    with pytest.raises(ValueError, match="holds other files, or a thing of an earlier layout"):
        opened(tmp_path / "mine")
    (tmp_path / "a" / "0" / "half.npy").unlink()
    with pytest.raises(ValueError, match=r"half\.npy"):
        opened(tmp_path / "a")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    manifest["facts"].pop("set")
    del manifest["checksum"]
    (tmp_path / "a" / "manifest.json").write_text(json.dumps({**manifest, "arrays": {}}))
    with pytest.raises(ValueError, match="does not say which arrays"):
        opened(tmp_path / "a")


def test_a_commit_of_nothing(tmp_path):
    nothing: stores.Changes = {}
    opened(tmp_path / "a").commit(nothing)
    assert values(opened(tmp_path / "a").arrays) == after(0)
