"""Partition buffers of graphs of several types: states against brute force, samplers, learned rows,
golden files.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
import torch
from _support.partition_tools import (
    comet_slots,
    in_small_pieces,
    members_of,
    random_graph,
    written,
)
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.distributed import BufferState, PartitionBuffer, Partitions

TYPES = ("author", "paper", "venue")


def typed_graph(sizes: list[int], ends: list[tuple[int, int]], num_edges: int, seed: int) -> Graph:
    """A graph with columns of all nodes and edges, and of single types and relations, of several
    widths.
    """
    random = np.random.default_rng(seed)
    nodes = {}
    edges = {}
    for i, size in enumerate(sizes):
        x = torch.arange(size * (i + 1.0)).view(size, i + 1) + 100 * i
        nodes[TYPES[i]] = {"x": x} | ({"half": torch.arange(size).bfloat16()} if i else {})
        if i == 1:
            nodes[TYPES[i]]["sparse"] = (x * (x % 3 == 0)).to_sparse_csr()
    for k, (a, b) in enumerate(ends):
        count = int(random.integers(0, num_edges + 1)) if sizes[a] and sizes[b] else 0
        src, dst = (random.integers(0, max(sizes[end], 1), count) for end in (a, b))
        columns = {"w": torch.rand(count, k + 1), **({"day": torch.arange(count)} if k else {})}
        edges[TYPES[a], f"r{k}", TYPES[b]] = (src, dst, columns)
    graph = Graph.typed(nodes, edges)
    graph.ndata["label"] = torch.arange(graph.num_nodes)
    graph.ndata["bag"] = torch.eye(graph.num_nodes)[:, :3].to_sparse_csr()
    graph.edata["number"] = torch.arange(graph.num_edges)
    return graph


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    sizes = draw(st.lists(st.integers(0, 14), min_size=1, max_size=3).filter(any))
    end = st.integers(0, len(sizes) - 1)
    ends = draw(st.lists(st.tuples(end, end), max_size=4))
    return typed_graph(sizes, ends, draw(st.integers(0, 40)), draw(st.integers(0, 99)))


METHODS = ["random", "ranges", "hash", "train-first", "given"]


@given(graphs(), st.data())
def test_states_hold_the_induced_subgraph_with_types_and_columns(tmp_path_factory, graph, data):
    count = data.draw(st.integers(1, min(graph.num_nodes, 6)))
    order = data.draw(st.sampled_from(["comet", "beta", "dispersed"]))
    least = min(2, count) if order == "beta" else 1
    slots = data.draw(
        st.sampled_from(comet_slots(count) if order == "comet" else list(range(least, count + 1)))
    )
    method = data.draw(st.sampled_from(METHODS))
    seed = data.draw(st.integers(0, 9))
    train = np.random.default_rng(seed).permutation(graph.num_nodes)[: graph.num_nodes // 2 + 1]
    how: Any = (
        np.random.default_rng(seed).integers(0, count, graph.num_nodes)
        if method == "given"
        else method
    )
    folder = tmp_path_factory.mktemp("parts") / "a"
    with in_small_pieces():
        written(graph, folder, count, train=train, seed=seed, method=how)
    parts = Partitions.open(folder, verify=True)
    assert parts.schema == graph.schema
    assert (f"({TYPES[0]} " in repr(parts)) == (len(graph.schema.nodes) > 1)
    for name, part in graph.nodes.items():  # the parts have as many nodes of each type, but for one
        sizes = np.bincount(parts.owner[part.ids.start : part.ids.stop], minlength=count)
        assert sizes.max() - sizes.min() <= 1
        assert parts.part.ids(name) == range(
            parts.part.ids(name).start, parts.part.ids(name).start + sizes.max()
        )
        for column in part.data:
            whole = parts.column(column, name).fetch(torch.arange(len(part)))
            assert dense(whole).equal(dense(part.data[column]))
    assert parts.column("label").fetch(torch.arange(graph.num_nodes)).equal(graph.ndata["label"])
    prefetch = data.draw(st.booleans())
    with PartitionBuffer(folder, slots, order=order, seed=seed, prefetch=prefetch) as buffer:
        for epoch in range(2):
            seeds: Counter[int] = Counter()
            edges: Counter[int] = Counter()
            for state, held in zip(buffer, buffer.order_of(epoch).states, strict=True):
                assert state.partitions == held
                check_state(graph, parts, state)
                seeds.update(state.nodes[state.seeds].tolist())
                if order != "dispersed":
                    edges.update(state.parent_edges(state.edges).tolist())
            assert seeds == Counter(train.tolist())
            assert edges == Counter(range(graph.num_edges) if order != "dispersed" else [])
        run = [buffer.order_of(epoch) for epoch in range(2)]
        counters = buffer.counters
        assert (counters.swaps, counters.epochs) == (sum(o.swaps for o in run), 2)
        assert counters.states == sum(len(o.states) for o in run)
        assert counters.bytes_written == 0


def dense(column: torch.Tensor) -> torch.Tensor:
    return column.to_dense() if column.layout == torch.sparse_csr else column


def check_state(graph: Graph, parts: Partitions, state: BufferState) -> None:
    """The graph of a state is the induced subgraph of the resident nodes, with types, relations and
    all columns.
    """
    nodes = state.nodes
    own = state.graph
    members = members_of(graph, parts, state)
    into = np.isin(graph.edges()[1].numpy(), members).sum()
    assert state.visible_edges == (own.num_edges / into if into else 1)
    parents = state.parent_edges(torch.arange(own.num_edges))
    assert list(own.schema.nodes) == list(graph.schema.nodes)
    assert list(own.schema.relations) == list(graph.schema.relations)
    ends = torch.stack(own.edges())
    check_columns(own.ndata, graph.ndata, nodes, 0)
    check_columns(own.edata, graph.edata, parents, 0)
    for name, part in own.nodes.items():
        parent_ids = nodes[part.ids.start : part.ids.stop]
        ids = graph.nodes[name].ids
        assert all(v in ids for v in parent_ids[parent_ids >= 0].tolist())
        check_columns(part.data, graph.nodes[name].data, parent_ids, ids.start)
    for relation, part in own.relations.items():
        parent_ids = parents[part.ids.start : part.ids.stop]
        ids = graph.relations[relation].ids
        assert all(e in ids for e in parent_ids.tolist())
        check_columns(part.data, graph.relations[relation].data, parent_ids, ids.start)
        for end, of in zip(ends[:, part.ids.start : part.ids.stop], relation[::2], strict=True):
            assert all(v in own.nodes[of].ids for v in end.tolist())
    indptr, _, _ = own.csc()
    for v in range(own.num_nodes):  # in-edges lie relation after relation, as samplers need them
        ids = own.stored_edge_ids[indptr[v] : indptr[v + 1]]
        assert (np.diff(ids) > 0).all()


def check_columns(frame: Any, whole: Any, parents: torch.Tensor, first: int) -> None:
    """The rows of a frame are those of the parents, whose ids begin with ``first``; zeros where
    there is none.
    """
    assert sorted(frame) == sorted(whole)
    real = parents >= 0
    for name, column in whole.items():
        rows = dense(frame[name])
        assert rows.dtype == column.dtype
        assert frame[name].layout == column.layout
        assert rows[real].equal(dense(column)[parents[real] - first])
        assert not rows[~real].any()


@given(
    graphs().filter(lambda graph: graph.num_nodes > 2),
    st.booleans(),
    st.integers(0, 9),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_learned_rows_are_those_of_the_same_steps_in_memory(
    tmp_path_factory,
    graph,
    prefetch,
    seed,
    dtype,
):
    """Every state changes all of its rows, by what they hold and by the sums over its edges."""
    graph.ndata["h"] = torch.rand(graph.num_nodes, 2).to(dtype)
    own = {name: part.data["x"].clone() for name, part in graph.nodes.items()}
    h = graph.ndata["h"].clone()
    folder = written(graph, tmp_path_factory.mktemp("parts") / "a", 3, seed=seed).folder
    with PartitionBuffer(
        folder, 2, order="beta", seed=seed, writable=["x", "h"], prefetch=prefetch
    ) as buffer:
        for _ in range(2):
            for state in buffer:
                real = state.nodes >= 0
                src, dst = state.graph.edges()
                rows = state.graph.ndata["h"]
                rows.index_add_(0, dst, rows[src] * 0.25)
                rows *= 0.5
                u, v = state.nodes[src], state.nodes[dst]
                h.index_add_(0, v, h[u] * 0.25)
                h[state.nodes[real]] *= 0.5
                assert rows[real].equal(h[state.nodes[real]])
                for name, part in state.graph.nodes.items():
                    part.data["x"] += 1
                    local = state.nodes[part.ids.start : part.ids.stop]
                    own[name][local[local >= 0] - graph.nodes[name].ids.start] += 1
    committed = Partitions.open(folder, verify=True)
    assert committed.column("h").fetch(torch.arange(graph.num_nodes)).equal(h)
    for name, rows in own.items():
        assert committed.column("x", name).fetch(torch.arange(len(rows))).equal(rows)
    assert committed.epoch == 2
    files = {array.file for array in committed.manifest.arrays.values() if "nodes/" in array.file}
    assert {f"nodes/{path.name}" for path in (folder / "nodes").iterdir()} >= files


def test_a_damaged_end_is_refused(tmp_path):
    """An end in another type is one too: compiled loops that sample rely on it."""
    parts = written(typed_graph([20, 20], [(0, 1)], 200, 1), tmp_path / "a", 2)
    ends = np.load(parts.folder / "src.npy", mmap_mode="r+")
    ends[4] = parts.part.ids("paper").start
    ends.flush()
    with pytest.raises(
        ValueError, match=r"src.npy is damaged: edge 4 ends at row 10 of a part that has 10"
    ):
        list(PartitionBuffer(parts.folder, 2, verify=False))


@pytest.mark.parametrize(
    "nodes",
    [[["author", 20], ["paper", 19]], [["author", 19], ["paper", 21]], [["author", 40]], "x"],
)
def test_a_damaged_schema_is_refused(tmp_path, nodes):
    folder = written(typed_graph([20, 20], [(0, 1)], 200, 1), tmp_path / "a", 2).folder
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["facts"]["schema"]["nodes"] = nodes
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="damaged"):
        PartitionBuffer(folder, 2, verify=False)


# what the version before types wrote
GOLDEN = {
    "random": "c9f504bc8fae159f",
    "train-first": "d6b2e2df617cc3b2",
    "ranges": "c35bb9af8d7787a1",
    "hash": "3699581f5091bffb",
    "given": "11c801aa03787b63",
    "sparse": "99dd26193c13a2b0",
}


@pytest.mark.parametrize("method", GOLDEN)
def test_files_of_one_type_are_those_of_before(tmp_path, method):
    graph = random_graph(41, 90, 3)
    options: Any = {"method": method, "train": range(0, 41, 3), "seed": 5}
    if method == "given":
        options["method"] = [i % 3 for i in range(41)]
    if method == "sparse":
        graph.ndata["s"] = torch.eye(41, dtype=torch.float64)[:, :5].to_sparse_csr()
        options = {}
    folder = written(graph, tmp_path / "a", 4, **options).folder
    digest = blake2b(digest_size=8)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".checked" and not path.name.startswith(".lock"):
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    assert digest.hexdigest() == GOLDEN[method]
