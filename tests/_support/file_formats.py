"""Small folders and files of each format of the package: what writes one, and what reads all of it
and uses it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from nodeflow import FullSampler, Graph, NeighborSampler, distributed, storage
from nodeflow._files.disk import checked
from nodeflow.control_variates import History
from nodeflow.storage import EmbeddingTable

NODES = 40
EDGES = 90


def example() -> Graph:
    draw = np.random.default_rng(0)
    ends = draw.integers(0, NODES, (2, EDGES))
    graph = Graph.from_edges(
        *ends, num_nodes=NODES, edata={"w": torch.from_numpy(draw.random(EDGES))}
    )
    graph.ndata["x"] = torch.from_numpy(draw.random((NODES, 3), np.float32))
    graph.ndata["n"] = storage.narrow(torch.from_numpy(draw.random((NODES, 6)) ** 9), "auto")
    graph.ndata["s"] = torch.from_numpy(
        draw.poisson(0.3, (NODES, 7)).astype(np.float32)
    ).to_sparse_csr()
    return graph


def typed_example() -> Graph:
    draw = np.random.default_rng(1)
    wide = torch.from_numpy(draw.poisson(0.5, (20, 3)).astype(np.float32)).to_sparse_csr()
    nodes = {
        "a": {"x": torch.from_numpy(draw.random((9, 2))), "t": torch.arange(9)},
        "b": 0,
        "c": {"x": wide},
    }
    ends = [draw.integers(0, size, 30) for size in (9, 20, 20, 20)]
    edges = {
        ("a", "to", "c"): (ends[0], ends[1], {"w": torch.from_numpy(draw.random(30))}),
        ("c", "to", "c"): (ends[2], ends[3]),
    }
    return Graph.typed(nodes, edges, reverse=True)


GRAPH = example()
TYPED = typed_example()


def of_graph(graph: Graph) -> Iterable[Any]:
    yield from graph.csc()
    yield from graph.edges()
    yield from graph.out_edges(range(graph.num_nodes))
    yield repr(graph.schema)
    own = [part.data for part in (*graph.nodes.values(), *graph.relations.values())]
    for frame in (graph.ndata, graph.edata, *own):
        for column in frame.values():
            yield (column if isinstance(column, Tensor) else column.fetch(range(column.shape[0])))
    for sampler in (FullSampler(graph, 2), NeighborSampler(graph, [3, 3], seed=1)):
        batch = sampler(range(0, graph.num_nodes, 3))
        yield from (layer.parent_nid for layer in batch.layers)
        yield batch.flows[0].aggregate(torch.ones(batch.layer_sizes[0], 2), "sum")
        yield from (batch.flows[0].of(name).indices for name in graph.schema.relations)
        yield from (batch.layers[0].of(name).rows for name in graph.schema.nodes)


def read_graph(place: Path) -> Iterable[Any]:
    return of_graph(Graph.open(place))


def read_partitions(place: Path) -> Iterable[Any]:
    parts = distributed.Partitions.open(place)
    yield from (parts.rows, parts.parents, parts.bucket_ptr, parts.ndata, parts.edata, parts.train)
    for name in parts.ndata:
        yield parts.column(name).fetch(range(parts.num_nodes))
    for state in distributed.PartitionBuffer(place, 2, order="beta"):
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
        frames = (part.ndata, part.edata, *part.frames.values())
        for frame in frames:
            for name, column in frame.items():
                rows = (
                    column if isinstance(column, Tensor) else column.fetch(range(column.shape[0]))
                )
                yield name, rows
        for kind, ranges in (("nodes", parts.schema.nodes), ("edges", parts.schema.relations)):
            yield from (part.ids_here(kind, ids) for ids in ranges.values())


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
    yield from (rows.shape, str(rows.dtype))
    if max(rows.shape) < 2**20:  # few numbers may be of a matrix of very many rows and columns
        weight = torch.arange(float(rows.shape[-1])).expand(2, -1)
        yield rows.fetch(range(rows.shape[0])) @ weight.T.to(rows.dtype)


def write_table(place: Path) -> None:
    rows = table(place)
    rows.write(range(0, NODES, 2), torch.rand(NODES // 2, 4))
    rows.close()


def write_history(place: Path) -> None:
    rows = history(place)
    rows.write(1, range(NODES), torch.rand(NODES, 4))
    rows.close()


FORMATS: dict[str, tuple[Callable[[Path], object], Callable[[Path], Iterable[Any]]]] = {
    "graph": (GRAPH.save, read_graph),
    "graph of types": (TYPED.save, read_graph),
    "partitions": (
        lambda place: distributed.write_partitions(GRAPH, place, 4, train=range(9), progress=False),
        read_partitions,
    ),
    "partitions of types": (
        lambda place: distributed.write_partitions(TYPED, place, 4, train=range(9), progress=False),
        read_partitions,
    ),
    "parts": (
        lambda place: distributed.partition_graph(
            GRAPH, place, 2, method="random", edges="out", train=range(9), progress=False
        ),
        read_parts,
    ),
    "parts of types": (
        lambda place: distributed.partition_graph(
            TYPED, place, 2, method="random", train=range(9), progress=False
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
    value_hash = hashlib.blake2b()
    for value in values:
        if isinstance(value, tuple):
            value_hash.update(digest(value).encode())
        elif isinstance(value, Tensor) and value.layout != torch.strided:
            parts = value.crow_indices(), value.col_indices(), value.values()
            value_hash.update(f"{list(value.shape)} {digest(parts)}".encode())
        elif isinstance(value, Tensor):
            value_hash.update(
                f"{value.dtype} {list(value.shape)}".encode() + value.contiguous().numpy().tobytes()
            )
        else:
            value_hash.update(
                value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
            )
    return value_hash.hexdigest()


@contextmanager
def changed_manifest(folder: Path) -> Iterator[Any]:
    """The manifest of a folder, which the block changes as another program may: without a
    checksum.
    """
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest.pop("checksum", None)
    yield manifest
    file.write_text(json.dumps(manifest))


def trust_stamps(patch: pytest.MonkeyPatch, seconds: float = 0) -> None:
    """Let the stamp of a folder count when its files are ``seconds`` old."""
    patch.setattr(checked, "_SETTLED", seconds)
