"""Folders of text files, for tests of data sets."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import strategies as st

from nodeflow._files.text import words
from nodeflow.datasets import Dataset, read_folder

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5
).filter(lambda name: name.strip() == name and name not in ("src", "dst"))

_UNCLEAR = (words._OTHER_DATE, words._OTHER_NUMBER)
CATEGORIES = NAMES.filter(
    lambda name: (
        name.lower() not in words._GAPS and not any(form.fullmatch(name) for form in _UNCLEAR)
    )
)
"""Words that stay categories also beside numbers; others look like dates, numbers or gaps, and are
refused.
"""


def fresh(factory: pytest.TempPathFactory) -> Path:
    folder = factory.getbasetemp() / "text"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    return folder


def folder_of(tmp_path: Path, **files: str | bytes) -> Path:
    """Write files, named as ``edges_csv``, into a folder."""
    folder = tmp_path / "text"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def read(tmp_path: Path, **files: str | bytes) -> Dataset:
    return read_folder(folder_of(tmp_path, **files), labels=False)


def ends(data: Dataset) -> list[list[int]]:
    return [end.tolist() for end in data.graph.edges()]


def write_rows(path: Path, rows: list[list[object]], newline: str, bom: bool) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    encoding = "utf-8-sig" if bom else "utf-8"
    with opened(path, "wt", encoding=encoding, newline="") as file:
        if ".csv" in path.name:
            csv.writer(file, lineterminator=newline).writerows(rows)
        else:
            file.write("".join("\t".join(map(str, row)) + newline for row in rows))
