"""Graphs cut into parts, against slow references; and what becomes of mistakes and damaged
files.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import partial

import numpy as np
import pytest
import torch
from _support.file_formats import changed_manifest
from _support.partition_tools import check_parts, cut_into, in_small_pieces, random_graph, written
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.distributed import DistributedGraph, GraphParts
from nodeflow.storage import open as open_rows

METHODS = ["random", "ranges", "hash", "given", "metis"]


@given(
    st.integers(0, 30), st.integers(0, 70), st.integers(1, 12), st.sampled_from(METHODS),
    st.sampled_from(["in", "out"]), st.booleans(), st.integers(0, 5),
)  # fmt: skip
def test_a_folder_holds_the_graph(
    tmp_path_factory, num_nodes, num_edges, num_parts, method, edges,
    identity, seed,
):  # fmt: skip
    """With repeats, self-loops, nodes without edges, parts without nodes, and edges in many
    pieces.
    """
    graph = random_graph(num_nodes, num_edges if num_nodes else 0, seed)
    if identity:  # edge ids are positions
        graph = Graph(*graph.csc()[:2], ndata=dict(graph.ndata), edata=dict(graph.edata))
    if method == "metis":
        pytest.importorskip("pymetis")
        num_parts = min(num_parts, max(num_nodes, 1))
    elif method == "given":
        method = np.random.default_rng(seed).integers(0, num_parts, num_nodes)
    train = list(range(0, num_nodes, 3))
    with in_small_pieces():
        folder = tmp_path_factory.mktemp("parts") / "a"
        parts = cut_into(
            graph,
            folder,
            num_parts,
            method=method,
            edges=edges,
            train=train,
            seed=seed,
        )
    assert parts.val is None
    assert parts.train.tolist() == train
    check_parts(graph, parts)
    assert GraphParts.open(folder, verify=True).part(0).identity == parts.identity


def test_methods(tmp_path):
    graph = random_graph(50, 100)
    nodes = np.arange(50)
    cuts = {method: cut_into(graph, tmp_path / method, 4, method=method).owners(nodes)
            for method in ("random", "ranges", "hash")}  # fmt: skip
    assert sorted(np.bincount(cuts["random"]).tolist()) == [12, 12, 13, 13]
    assert cuts["ranges"].tolist() == sorted(cuts["ranges"].tolist())
    assert sorted(np.bincount(cuts["ranges"]).tolist()) == [12, 12, 13, 13]
    fewer = cut_into(random_graph(20, 10), tmp_path / "fewer", 4, method="hash")
    # a hash is of the id alone
    assert fewer.owners(nodes[:20]).tolist() == cuts["hash"][:20].tolist()
    for method in ("random", "hash"):
        other = cut_into(graph, tmp_path / f"other-{method}", 4, method=method, seed=1)
        assert (other.owners(nodes) != cuts[method]).sum() > 20
    given_parts = cut_into(graph, tmp_path / "given", 4, method=cuts["hash"])
    assert (given_parts.method, given_parts.owners(nodes).tolist()) == (
        "given",
        cuts["hash"].tolist(),
    )


def test_metis_cuts_fewer_edges(tmp_path):
    pytest.importorskip("pymetis")
    ring = Graph.from_edges(range(100), [*range(1, 100), 0])
    cuts = [
        cut_into(ring, tmp_path / method, 4, method=method).report().cut_edges
        for method in ("metis", "random")
    ]
    assert cuts[0] <= 10 < 50 < cuts[1]


@pytest.mark.parametrize(("num_parts", "kind"), [(256, np.uint8), (257, np.int16)])
def test_numbers_of_parts_are_narrow(tmp_path, num_parts, kind):
    numbers = np.arange(num_parts)[::-1]
    graph = Graph.from_edges([0], [1], num_nodes=num_parts)
    owner = written(graph, tmp_path / "a", num_parts, method=numbers).owner
    assert owner.dtype == kind
    assert owner.tolist() == numbers.tolist()


def test_columns_are_chosen_and_added(tmp_path):
    graph = random_graph(20, 30)
    np.save(tmp_path / "y.npy", np.arange(40.0).reshape(20, 2))
    parts = cut_into(
        graph, tmp_path / "a", 3, ndata=["label"], edata=[], val=[3, 1, 3], test=[],
        columns={"h": lambda ids: torch.stack([ids, -ids], 1).half(), "y": open_rows(tmp_path / "y.npy"),
                 "a/b": np.arange(20)},
    )  # fmt: skip
    assert (parts.ndata, parts.edata) == (["label", "h", "y", "a/b"], [])
    for k in range(3):
        part = parts.part(k)
        nodes = torch.from_numpy(np.array(part.masters))
        assert part.ndata["h"].equal(torch.stack([nodes, -nodes], 1).half())
        assert part.ndata["y"].equal(torch.stack([2.0 * nodes, 2.0 * nodes + 1], 1).double())
        assert part.ndata["a/b"].equal(nodes)
        assert part.edata == {}
    assert parts.train is None
    assert [None if ids is None else ids.tolist() for ids in (parts.val, parts.test)] == [
        [1, 3],
        [],
    ]
    assert (
        repr(parts) == "GraphParts(3 parts, 20 nodes, 30 edges, edges: in, ndata: label, h, y, a/b)"
    )
    assert repr(parts.part(2)) == f"GraphPart(2: 6 masters, {parts.part(2).num_edges} edges)"


def test_the_folder_depends_on_its_arguments_only(tmp_path):
    graph = random_graph(30, 60)
    first, again, other = (
        cut_into(graph, tmp_path / f"{k}", 4, seed=seed) for k, seed in enumerate((1, 1, 2))
    )
    assert first.identity == again.identity != other.identity
    for file in ("manifest.json", "owner.npy", "part-2/manifest.json", "part-2/src.npy"):
        assert (first.folder / file).read_bytes() == (again.folder / file).read_bytes()
    graph.ndata["label"] = graph.ndata["label"].flip(0)
    assert cut_into(graph, tmp_path / "column", 4, seed=1).identity != first.identity


def test_the_report_is_a_table(tmp_path):
    graph = Graph.from_edges([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
    parts = cut_into(graph, tmp_path / "a", 2, method="ranges", train=[0, 1, 2])
    assert str(parts.report()) == (
        "part  masters  edges  mirrors  partners  train\n"
        "   0        2      2        1         1      2\n"
        "   1        2      3        2         1      1\n"
        "replication factor 1.75, 60.0% of the edges cut"
    )
    empty = cut_into(Graph.from_edges([], []), tmp_path / "b", 2).report()
    assert (empty.replication_factor, empty.cut) == (1, 0)


def test_sparse_columns_stay_sparse(tmp_path):
    graph = random_graph(20, 50)
    graph.ndata["s"] = torch.eye(20).to_sparse_csr()
    graph.edata["t"] = (torch.arange(150).view(50, 3) % 4 == 0).float().to_sparse_csr()
    parts = cut_into(graph, tmp_path / "a", 3, edges="out")
    for k in range(3):
        part = parts.part(k)
        assert part.ndata["s"].layout == torch.sparse_csr
        assert part.ndata["s"].to_dense().equal(torch.eye(20)[np.array(part.masters)])
        edges = graph.edata["t"].to_dense()[np.array(part.edge_ids)]
        assert part.edata["t"].to_dense().equal(edges)
    indices = next((tmp_path / "a" / "part-1").glob("node-*.indices*.npy"))
    column = np.load(indices, mmap_mode="r+")
    column[1] = 20  # reading it would be reading foreign memory
    column.flush()
    for verify in (None, False):
        with pytest.raises(ValueError, match=re.escape(str(indices))):
            GraphParts.open(tmp_path / "a", verify=verify).part(1)


def test_metis_takes_no_more_parts_than_nodes(tmp_path):
    pytest.importorskip("pymetis")
    with pytest.raises(
        ValueError, match="num_parts must be at most the number of nodes 20, got 21"
    ):
        cut_into(random_graph(20, 30), tmp_path / "a", 21, method="metis")


def test_a_machine_needs_its_own_part_only(tmp_path):
    graph = random_graph(20, 30)
    folder = tmp_path / "a"
    cut_into(graph, folder, 3)
    shutil.rmtree(folder / "part-1")
    parts = GraphParts.open(folder, verify=True)
    assert parts.part(2).part == parts.part(-1).part == 2
    with pytest.raises(
        ValueError, match=r"part 1 is missing: .*part-1 has no graph part in it: it does not exist"
    ):
        parts.part(1)
    with pytest.raises(IndexError, match="part 3 is out of range: there are 3"):
        parts.part(3)


def test_several_parts_need_several_processes(tmp_path):
    cut_into(random_graph(20, 30), tmp_path / "a", 3)
    with pytest.raises(
        RuntimeError, match="a has 3 parts, one for each of 3 processes, and this process is alone"
    ):
        DistributedGraph.open(tmp_path / "a")


def test_parts_of_another_folder_are_refused(tmp_path):
    graph = random_graph(20, 30)
    parts = cut_into(graph, tmp_path / "a", 3)
    other = cut_into(graph, tmp_path / "b", 3, seed=1)
    shutil.rmtree(parts.folder / "part-1")
    shutil.copytree(other.folder / "part-1", parts.folder / "part-1")
    with pytest.raises(
        ValueError, match=f"part-1 holds part 1 of cut {other.identity}, and not part 1 of"
    ):
        parts.part(1)
    shutil.rmtree(parts.folder / "part-1")
    shutil.copytree(parts.folder / "part-2", parts.folder / "part-1")
    with pytest.raises(ValueError, match="part-1 holds part 2 of cut"):
        parts.part(1)


def test_damaged_files(tmp_path):
    folder = tmp_path / "a"
    cut_into(random_graph(20, 30), folder, 3)
    shutil.copytree(folder, tmp_path / "whole")

    a_part = r"owner\.npy or place\.npy is damaged: it names a part or a place that there is not"
    for file, change, options, words in (
        ("owner.npy", flipped, {}, r"owner\.npy is damaged: its contents have another checksum"),
        ("owner.npy", lambda data: data[:-1] + b"\x03", {"verify": False}, a_part),
        ("place.npy", lambda data: data[:-1] + b"\x7f", {"verify": False}, a_part),
        ("part-1/src.npy", flipped, {}, r"part-1/src\.npy is damaged: its contents have another"),
        ("manifest.json", lambda data: data.replace(b": 30,", b": 31,"), {}, "another checksum"),
        ("edge_place.npy", cut_off, {}, r"edge_place\.npy is damaged, was cut off"),
        ("part-0/indptr.npy", cut_off, {}, r"part-0/indptr\.npy is damaged, was cut off"),
        ("manifest.json", more_edges, {}, "sizes and arrays do not fit together"),
        ("part-0/manifest.json", without_src, {}, "arrays do not fit together"),
        *(
            ("manifest.json", partial(with_fact, fact, value), {}, f"{folder}.*do not fit together")
            for fact, value in (
                ("cut", None),
                ("edges", "grid"),
                ("renumbered", True),
                ("num_nodes", float("inf")),
            )
        ),
    ):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "whole", folder)
        (folder / file).write_bytes(change((folder / file).read_bytes()))
        number = int(file[5]) if file.startswith("part-") else 0
        with pytest.raises(ValueError, match=words):
            GraphParts.open(folder, **options).part(number)
    with pytest.raises(ValueError, match="holds 'graph part', not 'graph parts'"):
        GraphParts.open(folder / "part-0")
    with pytest.raises(FileNotFoundError, match="has no graph parts in it"):
        GraphParts.open(tmp_path)


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def cut_off(data: bytes) -> bytes:
    return data[:-3]


def with_fact(name: str, value: object, manifest: bytes) -> bytes:
    words = json.loads(manifest)
    del words["checksum"]
    words["facts"][name] = value
    return json.dumps(words).encode()


def test_a_book_of_another_shape_is_named(tmp_path):
    folder = tmp_path / "a"
    cut_into(random_graph(20, 30), folder, 3)
    with changed_manifest(folder) as words:
        arrays = words["arrays"]
        arrays["owner"] = {**arrays["edge_owner"], "shape": [30]}
    with pytest.raises(ValueError, match=r"sizes and arrays do not fit together: owner"):
        GraphParts.open(folder)


def more_edges(data: bytes) -> bytes:
    manifest = json.loads(data)
    del manifest["checksum"]
    manifest["facts"]["num_edges"] += 1
    return json.dumps(manifest).encode()


def without_src(data: bytes) -> bytes:
    manifest = json.loads(data)
    del manifest["checksum"]
    del manifest["arrays"]["src"]
    return json.dumps(manifest).encode()
