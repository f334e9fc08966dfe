"""The undo journal by itself."""

from __future__ import annotations

import pytest
import torch

from nodeflow._files.store.journal import Journal


def test_a_journal_that_is_not_marked_changes_nothing(tmp_path):
    log = Journal(tmp_path / "journal")
    log.undo({})
    log.erase()
    assert not log.marked
    array = torch.arange(6.0).view(3, 2)
    log.record({"x": array}, [("x", torch.tensor([1, 2]))])
    with pytest.raises(
        RuntimeError, match="holds rows of a commit that did not end; undo it first"
    ):
        log.record({"x": array}, [("x", torch.tensor([0]))])
    log.close()
    assert (tmp_path / "journal").exists()  # still needed
    array.zero_()
    log.undo({"x": array})
    assert array.tolist() == [[0, 0], [2, 3], [4, 5]]
    log.close()
    assert not (tmp_path / "journal").exists()


def test_a_journal_is_marked_when_all_rows_are_there(tmp_path):
    """A kill in between finds nothing to be put back."""
    log = Journal(tmp_path / "journal")
    arrays = {"x": torch.arange(6.0).view(3, 2), "y": torch.arange(3)}
    with pytest.raises((IndexError, RuntimeError)):
        log.record(arrays, [("x", torch.tensor([1])), ("y", torch.tensor([3]))])
    assert not log.marked
    log.record(arrays, [("x", torch.tensor([1])), ("y", torch.tensor([2]))])
    assert log.marked
