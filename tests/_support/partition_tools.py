"""Small graphs in folders of parts, and slow references for what a buffer gives and what every part
must hold.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nodeflow import Graph
from nodeflow._files.disk.streams import ArrayWriter
from nodeflow.distributed import (
    BufferState,
    GraphParts,
    Partitions,
    _split,
    _writing,
    partition_graph,
    write_partitions,
)


@contextmanager
def in_small_pieces() -> Iterator[None]:
    """Within the block, folders are written and counted in many small pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_split, "_EDGES", 7)
        patch.setattr(_split, "_BYTES", 50)
        patch.setattr(_writing, "_IDS", 5)
        yield


@contextmanager
def full_disk(step: str, after: int) -> Iterator[None]:
    """Within the block, the disk is full after ``after`` calls of a ``step`` of writing an array:
    ``append``, or ``finish``, which leaves half of the file.
    """
    real = getattr(ArrayWriter, step)
    calls = 0

    def full(writer: ArrayWriter, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            if step == "finish":
                writer.file.write_bytes(b"half of it")
            raise OSError(errno.ENOSPC, "No space left on device", str(writer.file))
        return real(writer, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArrayWriter, step, full)
        yield


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Graph:
    """A graph with repeats and self-loops, columns of several types, and rows that say which node
    they are of.
    """
    random = np.random.default_rng(seed)
    return Graph.from_edges(
        random.integers(0, num_nodes, num_edges),
        random.integers(0, num_nodes, num_edges),
        num_nodes=num_nodes,
        ndata={
            "x": torch.arange(num_nodes * 3.0).view(num_nodes, 3),
            "half": torch.arange(num_nodes).to(torch.bfloat16),
            "label": torch.arange(num_nodes),
        },
        edata={
            "w": torch.arange(num_edges * 2.0).view(num_edges, 2),
            "kind": torch.arange(num_edges).bfloat16(),
        },
    )


def written(graph: Graph, folder: Path, count: int, **options: Any) -> Partitions:
    return write_partitions(graph, folder, count, progress=False, **options)


def comet_slots(num_parts: int) -> list[int]:
    """The numbers of slots that the COMET order takes: two groups of equal size, or all parts."""
    divisors = [size for size in range(1, num_parts) if num_parts % size == 0]
    return [*(2 * size for size in divisors), num_parts]


def edges_among(graph: Graph, nodes: set[int]) -> list[tuple[int, int, int]]:
    """(source, destination, id) of all edges whose two ends are among ``nodes``, sorted; one by
    one.
    """
    src, dst = (end.tolist() for end in graph.edges())
    return sorted(
        (u, v, e)
        for e, (u, v) in enumerate(zip(src, dst, strict=True))
        if u in nodes and v in nodes
    )


def edges_of_state(state: BufferState) -> list[tuple[int, int, int]]:
    """The same of the graph of a state, in parent ids, sorted."""
    src, dst = (state.nodes[end].tolist() for end in state.graph.edges())
    eid = state.parent_edges(torch.arange(state.graph.num_edges)).tolist()
    return sorted(zip(src, dst, eid, strict=True))


def members_of(graph: Graph, parts: Partitions, state: BufferState) -> list[int]:
    """The nodes of a state, whose graph has all edges among them and no others."""
    real = state.nodes >= 0
    members = [
        v for v in range(graph.num_nodes) if int(parts.partition_of([v])) in state.partitions
    ]
    assert sorted(state.nodes[real].tolist()) == members
    assert edges_of_state(state) == edges_among(graph, set(members))
    assert not (state.graph.in_degrees() + state.graph.out_degrees())[~real].any()
    return members


# parts of processes


def cut_into(graph: Graph, folder: Path, num_parts: int, **options: Any) -> GraphParts:
    return partition_graph(
        graph, folder, num_parts, **{"method": "random", "progress": False, **options}
    )


def in_edges(graph: Graph) -> list[tuple[int, int, int]]:
    """(source, destination, id) of all edges, in the order of ``csc``."""
    indptr, src, _ = graph.csc()
    ids = graph.stored_edge_ids
    return [
        (int(src[e]), v, int(ids[e]))
        for v in range(graph.num_nodes)
        for e in range(indptr[v], indptr[v + 1])
    ]


def part_of_edge(edges: str, source: int, destination: int) -> int:
    """The part of an edge, given the masters of its ends."""
    return destination if edges == "in" else source


def check_parts(graph: Graph, parts: GraphParts) -> None:
    """All that a folder says against the graph whose ids it has."""
    nodes = np.arange(graph.num_nodes)
    edges = np.arange(graph.num_edges)
    count = parts.num_parts
    owner = parts.owners(nodes)
    place = parts.places(nodes)
    assert (parts.num_nodes, parts.num_edges) == (graph.num_nodes, graph.num_edges)
    arrays = owner, place, parts.owners(edges, "edge"), parts.places(edges, "edge")
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}
    found_edges: list[int] = []
    mirrors = []
    for k in range(count):
        part = parts.part(k)
        masters = part.masters.tolist()
        rows = part.rows.tolist()
        indptr = part.indptr.tolist()
        assert (part.part, part.identity) == (k, parts.identity)
        assert masters == np.flatnonzero(owner == k).tolist()  # ascending
        assert place[masters].tolist() == list(range(len(masters)))
        expected = [edge for edge in in_edges(graph)
                    if part_of_edge(parts.edges, owner[edge[0]], owner[edge[1]]) == k]  # fmt: skip
        assert rows == (masters if parts.edges == "in" else sorted({v for _, v, _ in expected}))
        assert (indptr[0], indptr[-1], len(indptr)) == (0, part.num_edges, len(rows) + 1)
        dst = np.repeat(part.rows, np.diff(part.indptr)).tolist()
        assert list(zip(part.src.tolist(), dst, part.edge_ids.tolist(), strict=True)) == expected
        ids = [e for _, _, e in expected]
        assert (parts.owners(np.array(ids, int), "edge") == k).all()
        assert parts.places(np.array(ids, int), "edge").tolist() == list(range(len(ids)))
        found_edges += ids
        mirrors.append({u for edge in expected for u in edge[:2]} - set(masters))
        assert sorted(part.ndata) == sorted(parts.ndata)
        assert sorted(part.edata) == sorted(parts.edata)
        for frame, known, at in (
            (part.ndata, graph.ndata, masters),
            (part.edata, graph.edata, ids),
        ):
            for name, column in frame.items():
                assert column.dtype == known[name].dtype
                assert column.equal(known[name][torch.tensor(at, dtype=torch.int64)])
    assert sorted(found_edges) == edges.tolist()
    check_report(graph, parts, owner, mirrors)


def check_report(
    graph: Graph, parts: GraphParts, owner: np.ndarray[Any, Any], mirrors: list[set[int]]
) -> None:
    """The report against the masters, and the mirrors of every part."""
    count = parts.num_parts
    report = parts.report()
    assert report.masters == tuple(np.bincount(owner, minlength=count).tolist())
    assert report.mirrors == tuple(map(len, mirrors))
    assert parts.mirrors.tolist() == [
        [sum(owner[v] == p for v in some) for p in range(count)] for some in mirrors
    ]
    src, dst = (end.numpy() for end in graph.edges())
    assert report.cut_edges == (owner[src] != owner[dst]).sum()
    parts_of_node = [sum(v in some for some in mirrors) + 1 for v in range(graph.num_nodes)]
    assert math.isclose(report.replication_factor, np.mean(parts_of_node) if parts_of_node else 1)
    needs = [{int(owner[v]) for v in some} for some in mirrors]
    partners = [needs[k] | {p for p in range(count) if k in needs[p]} for k in range(count)]
    assert report.partners == tuple(map(len, partners))
