"""Where the tests of readers find files: real data next to the repository if there is any, small
folders otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from _support.text_folders import RING_FILES, write_files


@pytest.fixture
def real_folder(shared_data: Path) -> Callable[[str], Path]:
    """Return a function from the name of a real data set to its folder; it skips the test where
    that is missing.
    """

    def find(name: str) -> Path:
        if not (shared_data / name).is_dir():
            pytest.skip(
                f"needs the real data set {name}, which is kept outside the repository and is not "
                "here"
            )
        return shared_data / name

    return find


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small data set in plain files: 8 nodes on a ring, 3 features, 2 classes, no split."""
    return write_files(tmp_path / "ring", RING_FILES)
