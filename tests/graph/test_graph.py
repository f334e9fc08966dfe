"""Graphs against brute force and networkx, their checks, their memory, and their travels."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, NeighborSampler, create_full_node_flow
from nodeflow._core.runtime import mapped as maps, process
from nodeflow.testing import graphs

edge_lists = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20)
    )
)


@given(edge_lists)
def test_edges_degrees_and_neighbours_are_those_given(
    drawn,
):
    num_nodes, edges = drawn
    src = [u for u, _ in edges]
    dst = [v for _, v in edges]
    graph = Graph.from_edges(src, dst, num_nodes=num_nodes)
    reference = nx.MultiDiGraph()
    reference.add_nodes_from(range(num_nodes))
    reference.add_edges_from(edges)
    assert (graph.num_nodes, graph.num_edges) == (num_nodes, len(edges))
    assert [end.tolist() for end in graph.edges()] == [src, dst]
    assert graph.in_degrees().tolist() == [reference.in_degree(v) for v in range(num_nodes)]
    for _ in range(2):  # before and after the out-edges are made
        assert graph.out_degrees().tolist() == [reference.out_degree(v) for v in range(num_nodes)]
        for v in range(num_nodes):
            into = [e for e in range(len(edges)) if dst[e] == v]  # the order of the edge ids
            out = [e for e in range(len(edges)) if src[e] == v]
            assert [x.tolist() for x in graph.in_edges([v])] == [
                [src[e] for e in into],
                [v] * len(into),
                into,
            ]
            assert [x.tolist() for x in graph.out_edges([v])] == [
                [v] * len(out),
                [dst[e] for e in out],
                out,
            ]
            assert graph.out_degrees([v, v]).tolist() == [len(out)] * 2
            assert graph.in_degrees(torch.tensor([v])).tolist() == [len(into)]


@given(graphs())
def test_in_edges_of_several_nodes_come_node_by_node(graph):
    nodes = list(range(graph.num_nodes))[::-1] * 2
    src, dst, edge = graph.in_edges(nodes)
    ends = graph.edges()
    assert torch.equal(ends[0][edge], src)
    assert torch.equal(ends[1][edge], dst)
    assert dst.tolist() == [v for v in nodes for _ in range(int(graph.in_degrees([v])))]


@given(graphs())
def test_a_graph_is_its_adjacency_matrix(graph):
    indptr, src, _ = graph.csc()
    into = scipy.sparse.csr_array((np.ones(len(src)), src, indptr), shape=[graph.num_nodes] * 2)
    out_ptr, dst, edge = graph.csr()
    out = scipy.sparse.csr_array((np.ones(len(dst)), dst, out_ptr), shape=[graph.num_nodes] * 2)
    assert np.array_equal(into.toarray(), out.toarray().T)
    ends = graph.edges()
    assert ends[1].numpy()[edge].tolist() == dst.tolist()
    assert sorted(edge) == list(range(graph.num_edges))


def test_ids_are_stored_narrow_and_handed_out_wide(graph):
    assert (graph.indices.dtype, graph.stored_edge_ids.dtype, graph.indptr.dtype) == (
        np.int32,
        np.int32,
        np.int64,
    )
    ends = [*graph.in_edges([1, 2]), *graph.out_edges([0]), *graph.edges()]
    assert {tensor.dtype for tensor in (*ends, graph.in_degrees(), graph.out_degrees([1]))} == {
        torch.int64
    }


def test_graphs_without_edges_or_nodes():
    for empty in (
        Graph([0], []),
        Graph.from_edges([], []),
        Graph.from_edges(torch.zeros(0), np.zeros(0)),
    ):
        assert (empty.num_nodes, empty.num_edges) == (0, 0)
        assert repr(empty) == "Graph(0 nodes, 0 edges)"
        assert empty.in_degrees().tolist() == empty.out_degrees().tolist() == []
        assert [x.tolist() for x in empty.in_edges([])] == [[], [], []]
    lonely = Graph.from_edges([], [], num_nodes=3)
    assert lonely.in_degrees().tolist() == lonely.out_degrees().tolist() == [0, 0, 0]
    assert [x.tolist() for x in lonely.out_edges([2, 0])] == [[], [], []]


def test_nothing_can_be_rebound(graph):
    names = [name for name in dir(graph) if not name.startswith("__")]
    assert {"ndata", "edata", "indptr", "indices", "num_nodes", "uid"} <= set(names)
    for name in [*names, "new"]:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(graph, name, 0)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(graph, name)
    for array in (
        graph.indptr,
        graph.indices,
        graph.stored_edge_ids,
        *graph.csr(),
        Graph([0, 1], [0]).stored_edge_ids,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert not hasattr(graph, "__dict__")


def test_what_is_handed_out_can_be_changed_without_harm(graph):
    def handed_out() -> list[torch.Tensor]:
        ends = [*graph.edges(), *graph.in_edges(range(6)), *graph.out_edges([0])]
        return [*ends, graph.in_degrees(), graph.out_degrees()]

    before = [tensor.clone() for tensor in handed_out()]
    for tensor in handed_out():
        tensor.fill_(99)
    assert all(map(torch.equal, before, handed_out()))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_copy_says_whether_memory_is_shared(dtype):
    indptr = np.array([0, 1, 3])
    indices = np.array([1, 0, 1], dtype)
    edge_ids = np.array([2, 0, 1], dtype)
    shared = Graph(indptr, indices, edge_ids=edge_ids, copy=False)
    assert np.shares_memory(shared.indices, indices)
    assert np.shares_memory(shared.stored_edge_ids, edge_ids)
    assert np.shares_memory(shared.indptr, indptr)
    own = Graph(indptr, indices, edge_ids=edge_ids, copy=True)
    assert not np.shares_memory(own.indices, indices)
    assert not np.shares_memory(own.indptr, indptr)
    indices[:] = 0
    assert own.indices.tolist() == [1, 0, 1]
    assert Graph(indptr, torch.tensor([1, 0, 1], dtype=torch.int32)).indices.dtype == np.int32
    assert indices.flags.writeable  # the caller's array stays as it is


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_memory_mapped_graphs_stay_in_their_files(tmp_path, graph, dtype):
    ids = graph.indices.astype(dtype), graph.stored_edge_ids.astype(dtype)
    arrays = {"indptr": graph.indptr, "indices": ids[0], "edge_ids": ids[1]}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "feat.npy", graph.ndata["feat"].numpy())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    opened = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}
    feat = np.load(tmp_path / "feat.npy", mmap_mode="r")
    mapped = Graph(
        opened["indptr"], opened["indices"], edge_ids=opened["edge_ids"], ndata={"feat": feat}
    )
    for name, array in opened.items():
        assert np.shares_memory(
            getattr(mapped, "stored_edge_ids" if name == "edge_ids" else name), array
        ), name
    assert np.shares_memory(mapped.ndata["feat"].numpy(), feat)
    full = FullSampler(mapped.view("out"), 2), FullSampler(mapped, 2, reuse=True)
    for sampler in (NeighborSampler(mapped, [2, 1]), *full):
        batch = sampler([1, 2, 5])
        batch.copy_from_parent()
        batch.validate()
        for i in range(3):
            assert torch.equal(
                batch.ldata[i]["feat"], graph.ndata["feat"][batch.layers[i].parent_nid]
            )
    create_full_node_flow(mapped, 2).validate()
    with pytest.raises(ValueError, match=r"'feat' of the parent has read-only memory .*clone"):
        batch.copy_to_parent(["feat"])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    travelled = pickle.loads(pickle.dumps(mapped))
    assert len(pickle.dumps(mapped)) < len(pickle.dumps(graph)) + 500  # names, not contents
    (tmp_path / "indices.npy").rename(tmp_path / "gone.npy")
    with pytest.raises(
        FileNotFoundError, match=r"there is no file .*indices\.npy: the pickle names it"
    ):
        pickle.loads(pickle.dumps(mapped))
    assert Path(maps.file_of(travelled.indices).filename) == tmp_path / "indices.npy"
    assert [x.tolist() for x in travelled.edges()] == [x.tolist() for x in graph.edges()]


def test_a_slice_of_a_memory_map_travels_as_what_it_is(tmp_path):
    np.save(tmp_path / "both.npy", np.array([0, 1, 3, 1, 0, 1]))
    both = np.load(tmp_path / "both.npy", mmap_mode="r")
    graph = Graph(both[:3], both[3:])
    assert np.shares_memory(graph.indices, both)
    assert pickle.loads(pickle.dumps(graph)).indices.tolist() == [1, 0, 1]
    turned = Graph(both[:3], both[:2:-1])
    assert pickle.loads(pickle.dumps(turned)).indices.tolist() == [1, 0, 1]


@given(graphs(node_columns={"feat": (2,)}, edge_columns={"w": ()}))
def test_pickles_and_copies_are_the_same_graph(graph):
    graph.csr()
    for same in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        assert [x.tolist() for x in same.edges()] == [x.tolist() for x in graph.edges()]
        assert torch.equal(same.ndata["feat"], graph.ndata["feat"])
        assert torch.equal(same.edata["w"], graph.edata["w"])
        assert not same.indices.flags.writeable
        assert process.graphs[graph.uid] is graph  # batches keep finding the one they came from


def _degrees_of(graph: Graph) -> list[int]:
    return graph.in_degrees().tolist()


def test_graphs_travel_to_a_fresh_process(graph):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_degrees_of, (graph,)) == graph.in_degrees().tolist()


def test_a_deep_copy_is_a_graph_of_its_own():
    graph = Graph.from_edges([0, 1], [1, 2], ndata={"x": torch.ones(3)})
    other = copy.deepcopy(graph)
    other.ndata["x"][0] = 7
    assert graph.ndata["x"].tolist() == [1, 1, 1]
    batch = NeighborSampler(other, [1])([2])
    assert pickle.loads(pickle.dumps(batch)).parent is other
