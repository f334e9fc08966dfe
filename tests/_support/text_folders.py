"""Folders of text files, for tests of data sets."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st

from nodeflow.datasets import Dataset, read_folder

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5
).filter(lambda name: name.strip() == name and name not in ("src", "dst"))

_GAPS = {"na", "n/a", "#n/a", "nan", "null", "none", "nil", "nat", "-", "?", "."}
# all that dates and numbers of other forms, as short as these words, are written with
_UNCLEAR = re.compile(r"[0-9+$€£.,:'/%QTWZ -]+")
CATEGORIES = NAMES.filter(lambda name: name.lower() not in _GAPS and not _UNCLEAR.fullmatch(name))
"""Words that stay categories also beside numbers; others look like dates, numbers or gaps, and are
refused.
"""


def fresh(factory: pytest.TempPathFactory) -> Path:
    folder = factory.getbasetemp() / "text"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    return folder


OGB_FILES = {
    "raw/edge": "0,1\n1,2\n3,0\n",
    "raw/edge-feat": "0.5\n1.5\n2.5\n",
    "raw/node-feat": "1.0,0.25\n-1e-3,0\n0,0\n2,3\n",
    "raw/node-label": "0\n2\nnan\n1\n",
    "raw/node_year": "2001\n1999\n2020\n2011\n",
    "raw/num-node-list": "4\n",
    "raw/num-edge-list": "3\n",
    "split/time/train": "0\n",
    "split/time/valid": "1\n",
    "split/time/test": "3\n2\n",
}
"""A data set of OGB, whose files are ``.csv.gz``."""
RING_FILES: dict[str, Any] = {
    "adjacency.npz": scipy.sparse.csr_matrix(np.roll(np.eye(8, dtype=np.int8), 1, 1)),
    "features.npz": scipy.sparse.csr_matrix(np.eye(8, 3, dtype=np.float32)),
    "labels.npy": [0, 1, 0, 1, -1, 1, 0, 1],
}
"""A small data set in plain files: 8 nodes on a ring, 3 features, 2 classes, no split."""


def write_files(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write files: texts (packed under names that end in .gz), bytes, sparse matrices, dicts of
    arrays, and arrays; for None there is no file.
    """
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode("utf-8", "surrogateescape")
            if path.suffix == ".gz":
                content = gzip.compress(content)
        if content is None:
            path.unlink(missing_ok=True)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif scipy.sparse.issparse(content):
            scipy.sparse.save_npz(path, content)
        elif isinstance(content, dict):
            np.savez(path, **content)
        else:
            np.save(path, np.asarray(content))
    return folder


def folder_of(tmp_path: Path, **files: str | bytes) -> Path:
    """Write files, named as ``edges_csv``, into a folder."""
    return write_files(
        tmp_path / "text", {name.replace("_", "."): content for name, content in files.items()}
    )


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
