"""Edits of files, which the fuzzing of all readers makes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from _support.run_files import read_tensors, write_tensors

from nodeflow import Graph

TRIALS = str(Path(__file__).parents[1] / "trials")


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    names = ("fuzz", "edits", "formats")
    monkeypatch.syspath_prepend(TRIALS)
    # as the trial sets it, so that it is undone
    monkeypatch.setattr("nodeflow._files.disk.checked._SETTLED", 0)
    yield importlib.import_module("fuzz")
    for name in names:
        sys.modules.pop(name, None)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_edits_reach_what_lies_behind_checksums(fuzz, tmp_path):
    from edits import FITTED, INSIDE, SIGNED, edit, edited, place_files

    Graph.from_edges([0, 1, 2], [1, 2, 0], ndata={"x": torch.arange(3.0)}).save(tmp_path / "graph")
    files = contents(tmp_path / "graph")
    assert edited(files, b"") == (files, {})
    place = next(number for number, name in enumerate(sorted(files)) if name.startswith("ndata0"))
    flip = edit("bit", place, len(files[sorted(files)[place]]) - 2, 6)
    for flags, says in ((0, "checksum"), (SIGNED, None)):
        place_files(tmp_path / str(flags), *edited(files, bytes([flags]) + flip))
        if says:
            with pytest.raises(ValueError, match=says):
                Graph.open(tmp_path / str(flags))
        else:
            assert Graph.open(tmp_path / str(flags)).ndata["x"].tolist() == [0.0, 1.0, 3.0]
    # a column one row shorter, in the header and in the manifest too
    parts = sorted([f"{name}!{part}" for name in files if "npy" in name for part in ("head", "numbers", "table")] + [
        name for name in files if "npy" not in name
    ])  # fmt: skip
    number = next(
        number
        for number, name in enumerate(parts)
        if name.startswith("ndata0") and "numbers" in name
    )
    cut = edit("delete", number, 8, 0, 0)
    place_files(tmp_path / "cut", *edited(files, bytes([INSIDE | SIGNED | FITTED]) + cut))
    with pytest.raises(ValueError, match="column"):
        Graph.open(tmp_path / "cut")


def test_edits_sign_checkpoints(fuzz, tmp_path):
    from edits import SIGNED, edit, edited

    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.arange(3.0)}, {"a": [1]})
    flip = edit("bit", 0, len(path.read_bytes()) - 2, 6)
    for flags in (0, SIGNED):
        changed, _ = edited({path.name: path.read_bytes()}, bytes([flags]) + flip)
        (tmp_path / "b.safetensors").write_bytes(changed[path.name])
        if flags:
            facts, tensors = read_tensors(tmp_path / "b.safetensors")
            assert (facts, tensors["x"].tolist()) == ({"a": [1]}, [0.0, 1.0, 3.0])
        else:
            with pytest.raises(ValueError, match="checksum"):
                read_tensors(tmp_path / "b.safetensors")


def test_a_reader_that_fails_is_found(fuzz, tmp_path):
    """Also without atheris: hypothesis then draws the scripts."""
    target = fuzz.Target("npy", tmp_path)
    folder = tmp_path / "findings"
    folder.mkdir()
    recorder = fuzz.Recorder(target, folder)
    for script in target.seeds():
        recorder(script)
    seeds = recorder.count
    fuzz._with_hypothesis(recorder, lambda: recorder.count >= 2 * seeds + 20)
    assert recorder.count == 2 * seeds + 20
    assert recorder.keys == set()
    good = target.format.read

    def read(place: Path) -> object:
        if place.is_file() and place.read_bytes() != target.files[""]:
            raise RuntimeError("unexpected")
        return good(place)

    target.format = replace(target.format, read=read)
    for script in target.seeds():
        recorder(script)
    assert recorder.keys == {"RuntimeError at elsewhere"}
    target.format = replace(target.format, read=lambda place: [np.ones(2**24)], checked=True)
    recorder(b"")
    assert recorder.keys == {"RuntimeError at elsewhere", "memory"}
    (facts,) = (path for path in folder.glob("wrong-*.json") if "MB for files" in path.read_text())
    assert facts.with_suffix("").read_bytes() == b""
