"""What the writers write, by version, and digests of what is read."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nodeflow import Graph, storage
from nodeflow.datasets import Dataset
from nodeflow.training import Result, Settings, Trainer

NODES = 3000
EDGES = 20_000
WIDTH = 16


@cache
def graph(version: int) -> Graph:
    random = np.random.default_rng(version)
    result = Graph.from_edges(*random.integers(0, NODES, (2, EDGES)), num_nodes=NODES)
    result.ndata["x"] = torch.from_numpy(random.random((NODES, WIDTH), np.float32))
    return result


@cache
def narrow(version: int) -> Graph:
    src, dst = graph(version).edges()
    return Graph.from_edges(
        src, dst, num_nodes=NODES, ndata={"x": storage.narrow(graph(version).ndata["x"])}
    )


@cache
def sparse(version: int) -> Tensor:
    return torch.eye(NODES).mul(version + 1).to_sparse_csr()


@cache
def dataset(version: int) -> Dataset:
    labelled = Graph.from_edges(
        *graph(version).edges(), num_nodes=NODES, ndata={"feat": graph(version).ndata["x"]}
    )
    labelled.ndata["label"] = torch.arange(NODES) % 3
    return Dataset("planted", labelled, *np.split(np.arange(NODES), [100, 200]), 3)


@cache
def trainer() -> Trainer:
    return Trainer(dataset(0), Settings(fanouts=(2,), hidden=4, direction="in"))


@cache
def result(version: int) -> Result:
    return Trainer(
        dataset(version), Settings(fanouts=(2,), hidden=4, epochs=2 + version, direction="in")
    ).run()


def data_folder(place: Path) -> Path:
    """Return the folder of a small data set, which is made when missing."""
    folder = place / "data"
    if not folder.exists():
        folder.mkdir()
        random = np.random.default_rng(1)
        label = np.repeat([0, 1], 60)
        dst = np.repeat(np.arange(120), 5)
        np.savez(
            folder / "edges.npz", src=60 * label[dst] + random.integers(0, 60, len(dst)), dst=dst
        )
        np.save(folder / "features.npy", label[:, None] + random.normal(0, 1.5, (120, 4)))
        np.save(folder / "labels.npy", label)
    return folder


def chosen(num_rows: int, version: int) -> Tensor:
    """Return the ids of the rows that a version changes."""
    return torch.from_numpy(np.random.default_rng(version).permutation(num_rows)[: num_rows // 2])


def of(*tensors: Tensor) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


UNEQUAL = ("log.csv", "result.json")
"""Files that hold times."""
IGNORED = (".lock", ".checked")
"""Files that a whole folder may have or not."""


def files_of(home: Path) -> list[str]:
    return sorted(
        str(path.relative_to(home)) for path in home.rglob("*") if path.name not in IGNORED
    )


def of_files(home: Path, *names: str) -> str:
    """Return a digest of the contents of files, by default of what a writer wrote under its name,
    without times.
    """
    digest = hashlib.blake2b(digest_size=8)
    plain = [
        n
        for n in files_of(home)
        if n.startswith("it") and "/." not in n and not n.endswith(UNEQUAL)
    ]
    for name in names or plain:
        if (home / name).is_file():
            digest.update(name.encode() + (home / name).read_bytes())
    return digest.hexdigest()
