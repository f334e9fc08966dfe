"""Files that are read, damaged at random: the same data, or an error that names the file; nothing
else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.run_files import read_log, read_run, read_state, read_tensors, run_of
from _support.training_tools import FAST, planted

from nodeflow.datasets import Dataset, read_folder
from nodeflow.training import Checkpoints, Trainer, save

ERRORS = (ValueError, OSError, KeyError)
COUNT = 2000


def mutated(contents: bytes, random: np.random.Generator) -> bytes:
    """The contents with bits flipped, a piece cut out, put in, repeated or overwritten, or cut
    off.
    """
    data = bytearray(contents)
    at = int(random.integers(len(data)))
    size = int(random.integers(1, 40))
    kind = random.integers(6)
    if kind == 0:
        data[at] ^= 1 << int(random.integers(8))
    elif kind == 1:
        del data[at : at + size]
    elif kind == 2:
        data[at:at] = random.bytes(size)
    elif kind == 3:
        data[at:at] = data[at : at + size]
    elif kind == 4:
        data[at : at + size] = random.bytes(len(data[at : at + size]))
    else:
        del data[at:]
    return bytes(data)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return (
            type(other) is type(one)
            and one.dtype == other.dtype
            and torch.equal(one.to_dense(), other.to_dense())
        )
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and list(one) == list(other)
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, (list, tuple)):
        return type(other) is type(one) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


def contents(data: Dataset) -> list[Any]:
    """What a reader made of a folder."""
    graph = data.graph
    return [
        *graph.edges(),
        dict(graph.ndata),
        dict(graph.edata),
        dict(data.splits),
        data.num_classes,
        data.class_names,
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run, and the same data as arrays and as text, in folders beside each other."""
    data = planted()
    save(
        Trainer(data, FAST.replace(epochs=2, hidden=4), checkpoints=Checkpoints(tmp_path)).run(),
        tmp_path,
    )
    start = FAST.replace(dropout=0.5).to_dict() | {"checkpoint_every": "10min", "processes": 2}
    run_of(start).write(tmp_path)
    graph = data.graph
    src, dst = data.graph.edges()
    arrays = tmp_path / "arrays"
    text = tmp_path / "text"
    for place in (arrays, text):
        place.mkdir()
    np.savez(arrays / "edges.npz", src=src, dst=dst, kind=graph.edata["kind"])
    np.save(arrays / "labels.npy", graph.ndata["label"])
    scipy.sparse.save_npz(
        arrays / "features.npz", scipy.sparse.csr_matrix(graph.ndata["feat"].numpy())
    )
    for part, nodes in data.splits.items():
        np.save(arrays / f"{part}.npy", nodes)
    edges = torch.stack([src, dst, graph.edata["kind"]], 1).tolist()
    nodes = zip(
        range(300), graph.ndata["label"].tolist(), graph.ndata["feat"][:, 0].tolist(), strict=True
    )
    for name, title, rows in (("edges", "src,dst,kind", edges), ("nodes", "id,label,x", nodes)):
        (text / f"{name}.csv").write_text(
            "\n".join([title, *(",".join(map(str, row)) for row in rows)])
        )
    return tmp_path


READERS: dict[str, tuple[Callable[[Path], Any], bool]] = {
    "state.safetensors": (read_state, True),
    "checkpoint.safetensors": (read_tensors, True),
    "run.toml": (lambda path: read_run(path.parent).values(), False),
    "log.csv": (lambda path: [record.__dict__ for record in read_log(path)], False),
    "arrays/edges.npz": (lambda path: contents(read_folder(path.parent)), True),
    "arrays/features.npz": (lambda path: contents(read_folder(path.parent)), True),
    "arrays/labels.npy": (lambda path: contents(read_folder(path.parent)), False),
    "arrays/train.npy": (lambda path: contents(read_folder(path.parent)), False),
    "text/edges.csv": (lambda path: contents(read_folder(path.parent)), False),
    "text/nodes.csv": (lambda path: contents(read_folder(path.parent)), False),
}
"""What reads a file, and whether it has a checksum."""


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_mutated_file_is_the_same_data_or_an_error_that_names_it(name, folder):
    read, checked = READERS[name]
    path = folder / name
    random = np.random.default_rng(sum(map(ord, name)))
    whole = path.read_bytes()
    expected = read(path)
    outcomes: Counter[str] = Counter()
    for _ in range(COUNT):
        path.write_bytes(mutated(whole, random))
        try:
            outcome = "same" if same(read(path), expected) else "other"
        except ERRORS as error:
            outcome = "error" if str(folder) in str(error) else "error without a name"
        outcomes[outcome] += 1
    assert outcomes["error"] > COUNT / 20
    assert outcomes["error without a name"] == 0
    assert outcomes["other"] == 0 or not checked
