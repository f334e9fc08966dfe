"""Folders of stores that nobody has open: damage in them is found, and drafts in them are
removed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from _support.stores import SHAPES, after, changes, opened, values, write_without_end


def flip(file: Path, at: int = -1) -> None:
    contents = bytearray(file.read_bytes())
    contents[at] ^= 1
    file.write_bytes(contents)


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_flipped_bit_in_a_closed_folder_is_found(tmp_path, name):
    store = opened(tmp_path / "a")
    store.commit(changes(1))
    store.close()
    flip(tmp_path / "a" / "0" / f"{name}.npy")
    with pytest.raises(
        ValueError, match=rf"{name}\.npy is damaged: its contents have another checksum"
    ):
        opened(tmp_path / "a")
    flip(tmp_path / "a" / "0" / f"{name}.npy")
    assert values(opened(tmp_path / "a").arrays) == after(1)


def test_the_last_store_of_a_process_writes_the_checksums(tmp_path):
    first = opened(tmp_path / "a")
    second = opened(tmp_path / "a")
    first.commit(changes(1))
    first.close()
    second.commit(changes(2))
    second.arrays["x"][3] = 7  # as a state that is loaded, without a commit
    kept = values(second.arrays)
    second.close()
    again = opened(tmp_path / "a")
    assert values(again.arrays) == kept
    again.commit(changes(3))  # of a process that is killed: nothing says what the rows were
    del again
    assert opened(tmp_path / "a").arrays["step"] == 3


def test_what_a_killed_process_left_is_removed(tmp_path):
    opened(tmp_path / "a").close()
    left = [tmp_path / "a" / name for name in (".manifest.json.unfinished", ".journal.unfinished")]
    for file in left:
        file.write_bytes(b"half")
    opened(tmp_path / "a").close()
    assert not any(file.exists() for file in left)


def test_a_foreign_journal_is_named(tmp_path):
    store = opened(tmp_path / "a")
    write_without_end(store, 1)
    journal = np.memmap(tmp_path / "a" / "journal", np.int64, "r+")
    before = journal[8:].sum()
    journal.view(np.uint8)[64 + 3] = ord("z")  # of the name of an array
    journal[1] += journal[8:].sum() - before
    with pytest.raises(ValueError, match=r"journal is damaged or foreign"):
        opened(tmp_path / "a")


def test_a_mark_that_is_no_length_is_damage(tmp_path):
    store = opened(tmp_path / "a")
    write_without_end(store, 1)
    flip(tmp_path / "a" / "journal", 0)
    with pytest.raises(ValueError, match="journal is damaged"):
        opened(tmp_path / "a")


def test_a_number_of_thousands_of_digits_is_named(tmp_path):
    opened(tmp_path / "a").close()
    manifest = tmp_path / "a" / "manifest.json"
    words = json.loads(manifest.read_text())
    del words["checksum"]
    words["facts"]["set"] = "1" * 5000
    manifest.write_text(json.dumps(words))
    with pytest.raises(
        ValueError, match=r"manifest\.json is damaged: it does not say which arrays"
    ):
        opened(tmp_path / "a")
