"""Folders of arrays: written whole or not at all, checked when they are opened."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from nodeflow import Graph
from nodeflow._core.runtime import process
from nodeflow._files.disk import (
    arrays,
    folders,
    manifest as manifests,
    streams,
    texts as text_files,
)


def written(folder: Path) -> Path:
    with folders.new_folder(folder) as draft:
        described = {}
        for name, rows in {
            "x": torch.arange(12).reshape(4, 3),
            "half": torch.ones(2, dtype=torch.bfloat16),
        }.items():
            writer = streams.ArrayWriter(
                draft / f"{name}.npy", rows.dtype, tuple(rows.shape[1:]), len(rows)
            )
            writer.append(rows)
            described[name] = writer.finish()
        manifests.Manifest("thing", 3, described, {"name": "papers"}).write(draft)
    return folder


def test_a_folder_comes_back(tmp_path):
    folder = written(tmp_path / "a" / "b")
    assert sorted(path.name for path in folder.iterdir()) == [
        "half.npy",
        manifests.MANIFEST,
        "x.npy",
    ]
    manifest = manifests.Manifest.read(folder, "thing", 3, verify=True)
    assert manifest.facts == {"name": "papers"}
    # the one of zlib and of files of before
    assert {array.checksum for array in manifest.arrays.values()} == {
        zlib.crc32((folder / f"{name}.npy").read_bytes()) for name in ("x", "half")
    }
    assert (
        arrays.map_tensor(folder, manifest.arrays["x"]).tolist()
        == np.arange(12).reshape(4, 3).tolist()
    )
    assert arrays.map_tensor(folder, manifest.arrays["half"]).dtype == torch.bfloat16
    assert [path.name for path in folder.parent.iterdir()] == ["b"]


def test_nothing_is_left_of_a_folder_that_fails(tmp_path):
    def fail() -> None:
        with folders.new_folder(tmp_path / "a") as draft:
            np.save(draft / "x.npy", np.arange(3))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_replaced_only_on_request_and_only_if_it_is_ours(tmp_path):
    folder = written(tmp_path / "a")
    with pytest.raises(FileExistsError, match="overwrite=True"), folders.new_folder(folder):
        pass
    with folders.new_folder(folder, overwrite=True) as draft:
        manifests.Manifest("thing", 4, {}).write(draft)
    assert [path.name for path in folder.iterdir()] == [manifests.MANIFEST]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all my work")
    with (
        pytest.raises(FileExistsError, match="not written by nodeflow"),
        folders.new_folder(tmp_path / "mine", overwrite=True),
    ):
        pass
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_one_process_writes_a_folder(tmp_path):
    another = pytest.raises(BlockingIOError, match="written by another process")
    with folders.new_folder(tmp_path / "a"), another, folders.new_folder(tmp_path / "a"):
        pass
    (tmp_path / "b").mkdir()
    with (
        folders.locked(tmp_path / "b"),
        pytest.raises(BlockingIOError),
        folders.locked(tmp_path / "b"),
    ):
        pass
    with folders.locked(tmp_path / "b"):
        pass


def test_a_folder_that_someone_writes_into_is_not_replaced_alone(tmp_path):
    folder = written(tmp_path / "a")
    with folders.locked(folder):
        with pytest.raises(BlockingIOError), folders.new_folder(folder, overwrite=True, alone=True):
            pass
        with pytest.raises(FileExistsError), folders.new_folder(folder, alone=True):
            pass
        with folders.new_folder(folder, overwrite=True) as draft:
            manifests.Manifest("thing", 4, {}).write(draft)
    with (
        folders.new_folder(folder, overwrite=True, alone=True),
        pytest.raises(BlockingIOError),
        folders.locked(folder),
    ):
        pass


def test_folders_are_written_beside_each_other(tmp_path):
    def write_some(thread: int) -> None:
        for i in range(50):
            written(tmp_path / f"{thread} {i}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write_some, range(4)))
    assert len(list(tmp_path.iterdir())) == 200


@pytest.mark.slow
def test_a_killed_process_leaves_no_half_folder_and_no_lock(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from nodeflow._files.disk.folders import "
        "new_folder\n"
        "with new_folder(Path(sys.argv[1])) as draft:\n"
        "    (draft / 'big.npy').write_bytes(b'x' * 1000); print('ready', flush=True); "
        "time.sleep(3600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(BlockingIOError), folders.new_folder(tmp_path / "a"):
            pass
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "a").exists()
    written(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert not (tmp_path / "a" / "big.npy").exists()


@pytest.mark.parametrize(
    "change",
    [
        "",
        "contents[:-8]",
        "contents + contents[-24:]",
        "b'PK' + bytes(200)",
        "contents.replace(b'<i8', b'<f8')",
    ],
)
def test_damaged_files_are_found_at_once(tmp_path, change):
    file = written(tmp_path / "a") / "x.npy"
    contents = file.read_bytes()
    file.unlink()
    if change:
        file.write_bytes(eval(change, {"contents": contents}))
    with pytest.raises(ValueError, match=r"x\.npy"):
        manifests.Manifest.read(tmp_path / "a", "thing", 3)
    np.save(file, np.arange(15).reshape(5, 3))  # whole, but of another shape
    with pytest.raises(ValueError, match=r"x\.npy holds int64 \[5, 3\]"):
        manifests.Manifest.read(tmp_path / "a", "thing", 3)


@pytest.mark.parametrize("at", [-1, -5, -90])
@pytest.mark.parametrize("piece", [2**22, 64])
def test_a_flipped_bit_is_found_by_the_checksum(tmp_path, at, piece, small_pieces):
    """In the last byte too, and in any of the pieces that a file is read in."""
    small_pieces(piece)
    file = written(tmp_path / "a") / "x.npy"
    contents = bytearray(file.read_bytes())
    contents[at] ^= 4
    file.write_bytes(contents)
    manifests.Manifest.read(tmp_path / "a", "thing", 3, verify=False)
    for verify in (None, True):
        with pytest.raises(ValueError, match=r"x\.npy.*checksum"):
            manifests.Manifest.read(tmp_path / "a", "thing", 3, verify=verify)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("version", 9, "version 9"),
        ("kind", "soup", "'soup'"),
        ("arrays", None, "damaged or foreign"),
        ("arrays x file", "../x.npy", "outside"),
        ("arrays x dtype", "load", "load"),
        ("arrays x dtype", "quint8", "quint8"),
        ("arrays x csr", "x", r"x\.npy is said to hold int64"),
        ("checksum", 1, "another checksum than when it was written"),
    ],
)
def test_foreign_manifests_are_refused(tmp_path, entry, value, message):
    file = written(tmp_path / "a") / manifests.MANIFEST
    words = json.loads(file.read_text())
    del words["checksum"]
    *path, last = entry.split()
    facts = words
    for name in path:
        facts = facts[name]
    facts[last] = [dict(facts)] * 2 if value == "x" else value
    file.write_text(json.dumps(words))
    with pytest.raises(ValueError, match=message):
        manifests.Manifest.read(tmp_path / "a", "thing", 3)


def test_texts_are_a_list_that_compares_as_one(tmp_path):
    words = ["", "é", "node"]
    texts = text_files.map_texts(
        tmp_path, described := text_files.write_texts(tmp_path, "names", words), "names"
    )
    assert texts is not None
    assert texts == words
    assert texts != words[:2]
    assert texts != 3
    assert hash(texts) == hash(tuple(words))
    assert text_files.map_texts(tmp_path, described, "others") is None
    with pytest.raises(ValueError, match="has texts 'names', but not where they end"):
        text_files.map_texts(tmp_path, {"names": described["names"]}, "names")
    other = text_files.write_texts(tmp_path, "other", words[:2])
    with pytest.raises(ValueError, match="the texts 'names' do not end where their bytes end"):
        text_files.map_texts(
            tmp_path, {"names": described["names"], "names.ends": other["other.ends"]}, "names"
        )


def test_a_folder_without_manifest_is_no_folder_of_ours(tmp_path):
    with pytest.raises(FileNotFoundError, match=manifests.MANIFEST):
        manifests.Manifest.read(tmp_path, "thing", 3)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        manifests.Manifest.read(tmp_path / "nowhere", "thing", 3)


def test_a_full_disk_is_an_error_before_anything_is_mapped(tmp_path, failing):
    failing("posix_fallocate", errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        arrays.create_array(tmp_path / "x.npy", np.float32, (10, 4))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(5, 3), (0, 4), (7,), (1, 3)])
@pytest.mark.parametrize("supported", [True, False])
def test_created_arrays_are_zeros_that_can_be_written(tmp_path, shape, supported, failing):
    if not supported:
        failing("posix_fallocate", errno.EOPNOTSUPP)
    array = arrays.create_array(tmp_path / "x.npy", np.int32, shape)
    assert array.shape == shape
    assert not array.any()
    array[...] = 7
    if array.size:
        array.flush()
    assert np.load(tmp_path / "x.npy").tolist() == np.full(shape, 7).tolist()


def test_one_thread_at_a_time_reads_the_header_of_a_file(tmp_path, monkeypatch):
    """Before 3.11.8 Python may raise SystemError where two threads read literals, by which numpy
    reads a header.
    """
    Graph.from_edges([0, 1], [1, 2]).save(tmp_path / "graph")
    np.save(tmp_path / "a.npy", np.arange(3))
    waits = threading.Event()

    class Told:
        """The lock, which tells that a thread is about to take it."""

        lock = process.syntax_lock

        def __enter__(self) -> None:
            waits.set()
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    monkeypatch.setattr(process, "syntax_lock", Told())
    for work in (
        lambda: Graph.open(tmp_path / "graph"),
        lambda: arrays.read_header(tmp_path / "a.npy"),
    ):
        waits.clear()
        thread = threading.Thread(target=work)
        with Told.lock:
            thread.start()
            assert waits.wait(600)
            assert thread.is_alive()
        thread.join(timeout=600)
        assert not thread.is_alive()


def test_numbers_written_before_their_type_was_known_are_converted(tmp_path):
    writer = streams.ArrayWriter(tmp_path / "x.npy", torch.int64, (2,))
    writer.append(torch.tensor([[1, -2], [3, 4]]))
    writer.convert(torch.float64)
    writer.append(torch.tensor([[0.5, 0.25]], dtype=torch.float64))
    described = writer.finish(flush=False)
    assert (described.dtype, described.shape, described.file) == (
        "float64",
        (3, 2),
        f"x-{described.checksum:08x}.npy",
    )
    assert arrays.checksum(tmp_path / described.file) == described.checksum
    assert arrays.map_tensor(tmp_path, described).tolist() == [[1.0, -2.0], [3.0, 4.0], [0.5, 0.25]]


def test_a_file_that_cannot_be_replaced_stays_and_leaves_no_draft(tmp_path, failing):
    manifests.replace_file(tmp_path / "x", b"old")
    failing("fsync", errno.ENOSPC)
    with pytest.raises(OSError, match=r"No space left on device.*x"):
        manifests.replace_file(tmp_path / "x", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x": b"old"}


def test_drafts_of_killed_processes_are_removed(tmp_path):
    for name in ("finished", "replaced"):
        written(tmp_path / name)
    drafts = [".unfinished-b", ".unfinished-living"]
    old = [f".replaced-{name}" for name in ("finished", "lost", "replaced")]
    for name in (*drafts, *old, ".unfinished-new", ".unfinished-replaced"):
        (tmp_path / name).mkdir()
    for name in drafts:
        (tmp_path / name / ".lock").touch()
    for name in old:
        (tmp_path / name / manifests.MANIFEST).write_text("{}")
    with folders.locked(tmp_path / ".unfinished-living"):
        written(tmp_path / "c")
    # those that are being made, the only copy of a folder, and one that someone writes or is about
    # to replace stay
    kept = {
        ".unfinished-living",
        ".unfinished-new",
        ".unfinished-replaced",
        ".replaced-lost",
        ".replaced-replaced",
    }
    assert {path.name for path in tmp_path.iterdir()} == kept | {"finished", "replaced", "c"}
    with pytest.raises(FileNotFoundError, match=r"\.replaced-lost is the one before"):
        manifests.Manifest.read(tmp_path / "lost", "thing", 3)


@pytest.mark.parametrize("name", ["x.npy", manifests.MANIFEST])
@pytest.mark.parametrize("how", ["pipe", "folder", "link", "loop", "empty"])
def test_what_is_no_file_is_named(tmp_path, name, how):
    file = written(tmp_path / "a") / name
    file.unlink()
    if how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "empty":
        file.touch()
    else:
        file.symlink_to(file if how == "loop" else tmp_path / "nowhere")
    with pytest.raises((ValueError, OSError), match=rf"{re.escape(str(file))}|it has no {name}"):
        manifests.Manifest.read(tmp_path / "a", "thing", 3)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"[" * 100_000, b'{"kind": "a", "kind": "b"}', b"3"])
def test_what_is_no_manifest_is_named(tmp_path, text):
    file = written(tmp_path / "a") / manifests.MANIFEST
    file.write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(f"{file} is damaged or foreign")):
        manifests.Manifest.read(tmp_path / "a", "thing", 3)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9999999999999999999)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4L, 4)} '",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (8,)}",
        "{[]: 1}",
        "\0",
        "(" * 5000,
    ],
)
def test_a_damaged_header_is_a_value_error(tmp_path, header):
    file = tmp_path / "x.npy"
    size = len(header) + 1
    file.write_bytes(
        np.lib.format.magic(2, 0) + size.to_bytes(4, "little") + header.encode() + b"\n" + bytes(64)
    )
    with pytest.raises(ValueError):  # noqa: PT011
        arrays.read_header(file)
