"""Files changed at random: what was written comes back, or an error that names the file; the process stays alive."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nodeflow import FullSampler, Graph, NeighborSampler, distributed, partitions, storage
from nodeflow._disk import checked
from nodeflow.control_variates import History
from nodeflow.learned import EmbeddingTable

CASES = int(os.environ.get("CASES", 2000))
NODES, EDGES = 40, 90


def example() -> Graph:
    draw = np.random.default_rng(0)
    ends = draw.integers(0, NODES, (2, EDGES))
    graph = Graph.from_edges(*ends, num_nodes=NODES, edata={"w": torch.from_numpy(draw.random(EDGES))})
    graph.ndata["x"] = torch.from_numpy(draw.random((NODES, 3), np.float32))
    graph.ndata["s"] = torch.from_numpy(draw.poisson(0.3, (NODES, 7)).astype(np.float32)).to_sparse_csr()
    return graph


GRAPH = example()


def of_graph(graph: Graph) -> Iterable[Any]:
    yield from graph.csc()
    yield from graph.edges()
    yield from graph.out_edges(range(graph.num_nodes))
    for frame in (graph.ndata, graph.edata):
        for name in frame:
            yield frame[name]
    for sampler in (FullSampler(graph, 2), NeighborSampler(graph, [3, 3], seed=1)):
        yield from (layer.parent_nid for layer in sampler(range(0, graph.num_nodes, 3)).layers)


def read_graph(place: Path) -> Iterable[Any]:
    return of_graph(Graph.open(place))


def read_partitions(place: Path) -> Iterable[Any]:
    parts = partitions.Partitions.open(place)
    yield from (parts.rows, parts.parents, parts.bucket_ptr, parts.ndata, parts.edata, parts.train)
    for name in parts.ndata:
        yield parts.column(name).fetch(range(parts.num_nodes))
    for state in partitions.PartitionBuffer(place, 2, order="beta"):
        yield from of_graph(state.graph)
        yield state.nodes


def read_parts(place: Path) -> Iterable[Any]:
    parts = distributed.GraphParts.open(place)
    yield from (str(parts.report()), parts.train, parts.mirrors)
    for kind, size in (("node", parts.num_nodes), ("edge", parts.num_edges)):
        yield from (parts.owners(np.arange(size), kind), parts.places(np.arange(size), kind))
    for k in range(parts.num_parts):
        part = parts.part(k)
        yield from (part.masters, part.rows, part.indptr, part.src, part.edge_ids)
        yield from (*part.ndata.items(), *part.edata.items())


def table(place: Path) -> EmbeddingTable:
    return EmbeddingTable(NODES, 4, lr=1.0, folder=place)


def read_table(place: Path) -> Iterable[Any]:
    opened = table(place)
    return [opened.version, opened.fetch(range(NODES))]


def history(place: Path) -> History:
    return History(GRAPH, {1: 4}, folder=place)


def read_history(place: Path) -> Iterable[Any]:
    opened = history(place)
    return [opened.rows(1, range(NODES)), opened.age(1)]


def read_rows(place: Path) -> Iterable[Any]:
    rows = storage.open(place)
    weight = torch.arange(float(rows.shape[1])).expand(2, -1)
    yield from (rows.shape, str(rows.dtype))
    yield rows.fetch(range(rows.shape[0])) @ weight.T.to(rows.dtype) if rows.shape[0] < 2**20 else None


def write_table(place: Path) -> None:
    made = table(place)
    made.write(range(0, NODES, 2), torch.rand(NODES // 2, 4))
    made.close()


def write_history(place: Path) -> None:
    made = history(place)
    made.write(1, range(NODES), torch.rand(NODES, 4))
    made.close()


FORMATS: dict[str, tuple[Callable[[Path], object], Callable[[Path], Iterable[Any]]]] = {
    "graph": (GRAPH.save, read_graph),
    "partitions": (
        lambda place: partitions.write_partitions(GRAPH, place, 4, train=range(9), progress=False),
        read_partitions,
    ),
    "parts": (
        lambda place: distributed.partition_graph(
            GRAPH, place, 2, method="random", edges="grid", train=range(9), progress=False
        ),
        read_parts,
    ),
    "renumbered parts": (
        lambda place: distributed.partition_graph(
            GRAPH, place, 2, method="random", renumber=True, train=range(9), progress=False
        ),
        read_parts,
    ),
    "table": (write_table, read_table),
    "history": (write_history, read_history),
    "sparse": (lambda place: storage.save_sparse(place, GRAPH.ndata["s"]), read_rows),
    "npy": (lambda place: np.save(place, GRAPH.ndata["x"].numpy()), read_rows),
    "safetensors": (
        lambda place: place.write_bytes(save({"x": GRAPH.ndata["x"]})),
        read_rows,
    ),
}
PLAIN = ("npy", "safetensors")
"""Single files, which have no checksum."""


def digest(values: Iterable[Any]) -> str:
    found = hashlib.blake2b()
    for value in values:
        if isinstance(value, tuple):
            found.update(digest(value).encode())
        elif isinstance(value, Tensor):
            dense = value.to_dense() if value.layout != torch.strided else value
            found.update(f"{dense.dtype} {list(dense.shape)}".encode() + dense.contiguous().numpy().tobytes())
        else:
            found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return found.hexdigest()


def mutate(file: Path, others: list[Path], draw: random.Random) -> str:
    """Change a file, and say how."""
    how = draw.choice(
        ["bit"] * 6 + ["byte", "zeros", "cut", "longer", "gone", "other", "pipe", "folder", "link", "text"]
    )
    data = bytearray(file.read_bytes())
    at = draw.randrange(max(len(data), 1))
    if draw.random() < 0.5:  # the beginning, where headers are
        at = min(at, draw.randrange(160))
    if how in ("bit", "byte", "zeros", "text") and data:
        width = 1 if how in ("bit", "byte") else 8
        new = {"bit": bytes([data[at] ^ 1 << draw.randrange(8)]), "byte": bytes([draw.randrange(256)])}
        data[at : at + width] = new.get(
            how, b"\0" * 8 if how == "zeros" else draw.choice([b"-1,", b"9" * 12, b"[[", b'"'])
        )
        file.write_bytes(data)
        return f"{how} at {at}"
    if how in ("cut", "longer", "other"):
        file.write_bytes({"cut": data[:at], "longer": data + data[-9:], "other": draw.choice(others).read_bytes()}[how])
        return f"{how} {at}"
    file.unlink()
    if how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "link":
        file.symlink_to(file.parent / "nowhere")
    return how


def run(name: str, home: Path) -> None:
    """Open ``CASES`` copies of a folder, each with one change, and print what went wrong."""
    write, read = FORMATS[name]
    ending = f".{name}" if name in PLAIN else ""
    original = home / f"original{ending}"
    write(original)
    time.sleep(0.01)
    checked._SETTLED = 0  # so that there are stamps
    shutil.copytree(original, home / "whole") if original.is_dir() else shutil.copy(original, home / f"whole{ending}")
    expected, draw = digest(read(home / f"whole{ending}")), random.Random(1)
    soft = os.sysconf("SC_PAGE_SIZE") * int(Path("/proc/self/statm").read_text().split()[0]) + 2**30
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))
    outcomes = {"same": 0, "error": 0}
    for case in range(CASES):
        place = home / f"case{ending}"
        if original.is_dir():
            shutil.copytree(original, place)
        else:
            shutil.copy(original, place)
        files = sorted(f for f in place.rglob("*") if f.is_file() and f.name != ".lock") if place.is_dir() else [place]
        if case % 4 == 0 and name not in ("table", "history"):
            digest(read(place))  # which leaves a stamp
            time.sleep(0.01)
        file = draw.choice(files)
        changed = mutate(file, files, draw)
        print(f"{case}: {file.relative_to(home)} {changed}", flush=True)
        try:
            same = digest(read(place)) == expected
            if not same and name not in PLAIN:
                print("WRONG: other data")
            outcomes["same"] += same
        except (ValueError, OSError) as error:
            outcomes["error"] += 1
            if str(place) not in str(error):
                print(f"WRONG: {type(error).__name__} {error}")
        except Exception as error:
            print(f"WRONG: {type(error).__name__} {error}")
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    print(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FORMATS))
def test_changed_files_give_the_same_or_an_error(tmp_path: Path, name: str) -> None:
    command = [sys.executable, __file__, name, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    wrong = [pair for pair in pairwise(lines) if pair[1].startswith("WRONG")]
    assert wrong == [], wrong[:20]


if __name__ == "__main__":
    import resource

    from safetensors.torch import save

    run(sys.argv[1], Path(sys.argv[2]))
