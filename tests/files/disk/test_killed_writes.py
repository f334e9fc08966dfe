"""Files and folders whose writer is killed or fails at the worst moment: nothing is lost, nothing
stays behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nodeflow import storage
from nodeflow._files.disk import arrays, folders, manifest, streams

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the writer is a forked process")


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(task: Callable[[], object]) -> None:
    """Run a function in a forked process, which must be killed."""
    pid = os.fork()
    if not pid:
        try:
            task()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def write(path: Path, version: int) -> None:
    with folders.new_folder(path, overwrite=True) as draft:
        manifest.Manifest("thing", version, {}).write(draft)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_column_has_its_name_when_it_is_whole(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "take_room", die)
        killed(lambda: storage.create(tmp_path / "x.npy", (50, 4)))
    assert not (tmp_path / "x.npy").exists()
    assert storage.create(tmp_path / "x.npy", (50, 4)).sum() == 0
    assert names(tmp_path) == ["x.npy"]


def test_scratch_rows_are_gone_with_their_process(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "take_room", die)
        killed(lambda: arrays.scratch_array(tmp_path, torch.float32, (50, 4)))
    assert names(tmp_path) == []
    rows = arrays.scratch_array(tmp_path, torch.bfloat16, (50, 4))
    rows[49] = 3
    assert (rows.dtype, rows.float().sum()) == (torch.bfloat16, 12)
    assert arrays.scratch_array(tmp_path, torch.float32, (0, 4)).shape == (0, 4)
    assert names(tmp_path) == []


def before_last_rename(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let folders be replaced in two steps, and do something before the draft takes its place."""

    def replace(path: Path, target: Path) -> Path:
        if path.name.startswith(".unfinished-"):
            act()
        os.replace(path, target)
        return target

    patch.setattr(folders, "_exchange", lambda *_: False)
    patch.setattr(Path, "replace", replace)


def fail() -> None:
    raise MemoryError


def test_a_folder_that_cannot_be_replaced_comes_back(tmp_path, monkeypatch):
    write(tmp_path / "a", 1)
    before_last_rename(monkeypatch, fail)
    with pytest.raises(MemoryError):
        write(tmp_path / "a", 2)
    assert manifest.Manifest.read(tmp_path / "a", "thing", 1)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("way", ["one step", "no call for it", "link"])
def test_an_empty_folder_and_the_rest_of_a_draft_are_in_nobodys_way(tmp_path, monkeypatch, way):
    if way == "link":
        (tmp_path / "empty").mkdir()
        (tmp_path / "a").symlink_to("empty", target_is_directory=True)
    else:
        (tmp_path / "a").mkdir()
    draft = folders._draft(tmp_path / "a")
    (draft / "part").mkdir(parents=True)
    (draft / "x.npy").write_bytes(b"half")
    if way == "no call for it":
        monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    write(tmp_path / "a", 2)
    assert names(tmp_path / "a") == [manifest.MANIFEST]
    assert names(tmp_path) == ["a", *["empty"] * (way == "link")]


def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch):
    """What is left of a process that is killed right after it is removed by a save of another
    folder too.
    """
    if sys.platform != "linux":
        pytest.skip("only Linux exchanges two folders")
    write(tmp_path / "a", 1)
    with monkeypatch.context() as patch:
        patch.setattr(folders, "sync_folder", lambda path: path == tmp_path and die())
        killed(lambda: write(tmp_path / "a", 3))
    assert manifest.Manifest.read(tmp_path / "a", "thing", 3)
    write(tmp_path / "c", 1)
    assert names(tmp_path) == ["a", "c"]


def test_a_folder_that_was_being_replaced_comes_back_with_the_next_save(tmp_path, monkeypatch):
    """Until then its copy under another name is the only one, so it must outlive a second kill."""
    write(tmp_path / "a", 1)
    with monkeypatch.context() as patch:
        before_last_rename(patch, die)
        killed(lambda: write(tmp_path / "a", 2))
    with pytest.raises(FileNotFoundError, match="which a killed process had begun to replace"):
        manifest.Manifest.read(tmp_path / "a", "thing", 1)

    def stop() -> None:
        with folders.new_folder(tmp_path / "a", overwrite=True):
            assert manifest.Manifest.read(tmp_path / "a", "thing", 1)
            die()

    killed(stop)
    with pytest.raises(FileExistsError), folders.new_folder(tmp_path / "a"):
        pass
    assert manifest.Manifest.read(tmp_path / "a", "thing", 1)
    write(tmp_path / "a", 3)
    assert manifest.Manifest.read(tmp_path / "a", "thing", 3)
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == [manifest.MANIFEST]


def test_what_came_in_between_is_not_replaced(tmp_path):
    for overwrite in (False, True):
        file = tmp_path / str(overwrite)
        with pytest.raises(FileExistsError), folders.new_folder(file, overwrite=overwrite):
            file.write_text("all my work")
        assert file.read_text() == "all my work"
    assert names(tmp_path) == ["False", "True"]


@pytest.mark.parametrize("num_rows", [None, 3])
def test_all_is_on_the_disk_before_it_has_its_name(num_rows, tmp_path, monkeypatch):
    """A power cut loses what was not flushed, and the order of what is left is that of the
    flushes.
    """
    flushed: dict[int, bytes | list[str]] = {}  # by inode, in order

    def flush(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        path = next(
            path for path in (tmp_path, *tmp_path.rglob("*")) if path.stat().st_ino == inode
        )
        flushed.pop(inode, None)
        flushed[inode] = names(path) if path.is_dir() else path.read_bytes()

    def written(folder: Path, flush: bool) -> arrays.ArrayFile:
        writer = streams.ArrayWriter(folder / "x.npy", torch.int64, (), num_rows)
        writer.append(torch.arange(3))
        return writer.finish(flush=flush)

    def last_flushes(*paths: Path) -> list[int]:
        for path in paths:
            whole = (
                [name for name in flushed[path.stat().st_ino] if name != ".lock"]
                if path.is_dir()
                else None
            )
            assert (names(path) if path.is_dir() else path.read_bytes()) == (
                whole or flushed[path.stat().st_ino]
            )
        return [list(flushed).index(path.stat().st_ino) for path in paths]

    monkeypatch.setattr(os, "fsync", flush)
    folder = tmp_path / "a"
    with folders.new_folder(folder) as draft:
        array = written(draft, flush=True)
        manifest.Manifest("thing", 1, {"x": array}).write(draft)
    order = last_flushes(folder / array.file, folder / manifest.MANIFEST, folder, tmp_path)
    assert order == sorted(order)
    flushed.clear()
    (folder / "part").mkdir()
    array = written(folder / "part", flush=False)
    assert not flushed
    array = replace(array, file=f"part/{array.file}")
    manifest.Manifest("thing", 2, {"x": array}).publish(folder, [array])
    order = last_flushes(folder / array.file, folder / "part", folder / manifest.MANIFEST, folder)
    assert order == sorted(order)
