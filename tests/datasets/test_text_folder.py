"""read_folder on text files: tables of edges and nodes, and what it says of wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from _support.text_folders import CATEGORIES, NAMES, ends, folder_of, fresh, read, write_rows
from hypothesis import given, strategies as st

from nodeflow.datasets import read_folder

FILES = st.tuples(
    st.sampled_from(["edges.csv", "edges.tsv", "edges.csv.gz"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


@given(
    edges=st.lists(
        st.tuples(
            NAMES, NAMES, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), CATEGORIES
        )
    ),
    how=FILES,
)
def test_named_edges_are_read_back(
    tmp_path_factory,
    edges,
    how,
):
    folder = fresh(tmp_path_factory)
    name, newline, bom = how
    # the word makes names of all ids, and of the last column, also where the others are numbers
    edges = [*edges, ("first", "é, ü", 0, 0.5, "kind")]
    write_rows(
        folder / name, [["src", "dst", "when", "how", "kind"], *map(list, edges)], newline, bom
    )
    data = read_folder(folder, labels=False)
    names = data.node_names
    order = list(dict.fromkeys(name for edge in edges for name in edge[:2]))
    assert list(names) == order
    src, dst = ends(data)
    assert [(names[u], names[v]) for u, v in zip(src, dst, strict=True)] == [
        edge[:2] for edge in edges
    ]
    assert data.graph.edata["when"].tolist() == [edge[2] for edge in edges]
    assert data.graph.edata["how"].tolist() == [edge[3] for edge in edges]
    kinds = data.category_names["kind"]
    assert [kinds[kind] for kind in data.graph.edata["kind"].tolist()] == [
        edge[4] for edge in edges
    ]


@given(
    nodes=st.lists(
        st.tuples(
            NAMES,
            st.floats(width=32, allow_nan=False, allow_infinity=False),
            st.sampled_from(["red", "green", ""]),
            st.sampled_from(["train", "valid", "val", "TEST", "2", ""]),
        ),
        unique_by=lambda node: node[0],
        min_size=1,
    ),
    shuffled=st.randoms(use_true_random=False),
)
def test_nodes_are_read_back(
    tmp_path_factory,
    nodes,
    shuffled,
):
    folder = fresh(tmp_path_factory)
    nodes = [("é, ü", 0.0, "blue", "val"), *nodes]
    nodes = [node for node in nodes if node[2] or node[3] != "train"]
    write_rows(
        folder / "nodes.csv", [["id", "x", "label", "split"], *map(list, nodes)], "\r\n", True
    )
    pairs = [(nodes[0][0], node[0]) for node in nodes]
    shuffled.shuffle(pairs)  # type: ignore[attr-defined]
    write_rows(folder / "edges.csv", [["a node", "another"], *map(list, pairs)], "\n", False)
    data = read_folder(folder)
    assert data.node_names == tuple(node[0] for node in nodes)
    assert data.feature_names == ("x",)
    assert data.graph.ndata["feat"].flatten().tolist() == [node[1] for node in nodes]
    labels = [data.class_names[at] if at >= 0 else "" for at in data.graph.ndata["label"].tolist()]
    assert labels == [node[2] for node in nodes]
    parts = {"train": ["train"], "val": ["val", "valid"], "test": ["TEST", "2"]}
    for part, words in parts.items():
        assert data.splits[part].tolist() == [
            at for at, node in enumerate(nodes) if node[3] in words
        ]


@given(edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_numbers_stay_where_none_is_missing_and_are_names_where_one_is(tmp_path_factory, edges):
    folder = fresh(tmp_path_factory)
    write_rows(folder / "edges.csv", [["src", "dst"], *map(list, edges)], "\n", False)
    data = read_folder(folder, labels=False)
    found = list(dict.fromkeys(node for edge in edges for node in edge))
    if sorted(found) == list(range(len(found))):
        assert data.node_names is None
        named = data.graph.edges()
        assert [end.tolist() for end in named] == [list(end) for end in zip(*edges, strict=True)]
    else:
        assert data.node_names == tuple(map(str, found))
        assert ends(data) == [[found.index(edge[at]) for edge in edges] for at in range(2)]


WAYS = {
    # ids of a database take no memory for the gaps; source and destination by title; quotes, which
    # are letters in .tsv; rows without entries; words of a split
    "{'edges_csv': 'from,to\\n9000000000000,17\\n17,3\\n'}": (
        "('9000000000000', '17', '3'), [[0, 1], [1, 2]], {}"
    ),
    ('{\'edges_csv\': \'note,_x,dst,src\\n"a, ""b""",,0,1\\nc,?,1,2\\n\'}'): (
        "None, [[1, 2], [0, 1]], {'note': [0, 1]}"
    ),
    "{'edges_tsv': 'src\\tdst\\n\"a\\tb\\n'}": "('\"a', 'b'), [[0], [1]], {}",
    ("{'edges_csv': 'src,dst,w\\n\\n0,1,2\\n  \\n,,\\n1,0,3\\n,,\\n'}"): (
        "None, [[0, 1], [1, 0]], {'w': [2, 3]}"
    ),
    ("{'edges_csv': 'src,dst,split\\n0,1,train\\n1,0,Valid\\n0,0,test\\n1,1,0\\n'}"): (
        "None, [[0, 1, 0, 1], [1, 0, 0, 1]], {'split': [0, 1, 2, 0]}"
    ),
}
"""Files, and the names, edges and columns that they say."""


@pytest.mark.parametrize(("files", "expected"), WAYS.items())
def test_ways_to_write_edges(tmp_path, files, expected):
    data = read(tmp_path, **eval(files))
    names, edges, columns = eval(expected)
    assert (data.node_names, ends(data)) == (names, edges)
    assert {name: column.tolist() for name, column in data.graph.edata.items()} == columns
    assert dict(data.category_names) == ({"note": ('a, "b"', "c")} if "note" in columns else {})


def test_numbers_stay_where_files_have_rows_for_them(tmp_path):
    folder = folder_of(tmp_path, edges_csv="src,dst\n0,3\n3,1\n")
    np.save(folder / "features.npy", np.eye(6))
    data = read_folder(folder, labels=False)
    assert (data.graph.num_nodes, data.node_names, ends(data)) == (6, None, [[0, 3], [3, 1]])
    (folder / "edges.csv").write_text("src,dst\nann,3\n")
    (folder / "nodes.csv").write_text("name\nf\ne\nann\nc\n3\na\n")
    data = read_folder(folder, labels=False)
    assert ends(data) == [[2], [4]]


def test_files_of_a_split_keep_numbers_too(tmp_path):
    folder = folder_of(tmp_path, edges_csv="src,dst\n0,4\n")
    np.save(folder / "train.npy", [4])
    data = read_folder(folder, labels=False)
    assert (data.graph.num_nodes, data.train.tolist(), ends(data)) == (5, [4], [[0], [4]])


def test_nodes_by_number_in_any_order(tmp_path):
    data = read(
        tmp_path,
        nodes_tsv="node\tlabel\tx\ty\n2\t7\t2.5\t0\n0\t\t0\t1\n1\t-1\t1\t2\n",
        edges_csv="src,dst\n2,1\n",
    )
    assert (data.node_names, data.feature_names, data.num_classes) == (None, ("x", "y"), 8)
    assert data.graph.ndata["label"].tolist() == [-1, -1, 7]
    assert data.graph.ndata["feat"].tolist() == [[0, 1], [1, 2], [2.5, 0]]
    assert data.graph.ndata["feat"].dtype == torch.float32
    assert data.graph.num_nodes == 3


@pytest.mark.parametrize("gap", ["", "nan"])
def test_numbers_to_predict(tmp_path, gap):
    data = read(
        tmp_path, nodes_csv=f"id,label\na,1.5\nb,{gap}\nc,-2\nd,3\n", edges_csv="src,dst\na,b\n"
    )
    label = data.graph.ndata["label"]
    assert (label.dtype, data.num_classes, data.class_names) == (torch.float32, 0, None)
    assert label[[0, 2, 3]].tolist() == [1.5, -2, 3]
    assert math.isnan(label[1])
    assert torch.cat(list(data.splits.values())).sort().values.tolist() == [0, 2, 3]


def test_whole_numbers_with_gaps_are_classes_as_pandas_writes_them(tmp_path):
    data = read(tmp_path, nodes_csv="id,label\na,1.0\nb,\nc,0.0\n", edges_csv="src,dst\na,b\n")
    assert (data.graph.ndata["label"].tolist(), data.num_classes) == ([1, -1, 0], 2)


def test_several_labels(tmp_path):
    edges = "src,dst\na,b\n"
    data = read(tmp_path, nodes_csv="id,label\na,red; blue\nb,\nc,blue\n", edges_csv=edges)
    assert (data.class_names, data.num_classes) == (("red", "blue"), 2)
    assert data.graph.ndata["label"].tolist() == [[1, 1], [0, 0], [0, 1]]
    data = read(tmp_path, nodes_csv="id,label\na,3;0\nb,\nc,1\n", edges_csv=edges)
    assert (data.class_names, data.num_classes) == (None, 4)
    assert data.graph.ndata["label"].tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]


def test_float_labels_of_an_array(folder):
    values = [0.5, 1.0, np.nan, 2.0, 3.0, 4.0, 5.0, 6.0]
    np.save(folder / "labels.npy", values)
    np.save(folder / "train.npy", [0, 1])
    data = read_folder(folder)
    assert (data.graph.ndata["label"].dtype, data.num_classes) == (torch.float32, 0)
    assert np.array_equal(data.graph.ndata["label"].numpy(), np.float32(values), equal_nan=True)
    np.save(folder / "train.npy", [0, 2])
    with pytest.raises(ValueError, match="holds node 2 for training, which has no label"):
        read_folder(folder)


def test_header_alone_is_a_graph_without_edges(tmp_path):
    data = read(tmp_path, edges_csv="src,dst,w,split\n", nodes_csv="id\n0\n1\n")
    assert (data.graph.num_nodes, data.graph.num_edges, list(data.graph.edata)) == (
        2,
        0,
        ["w", "split"],
    )
    assert read(tmp_path, nodes_csv="id\n").graph.num_nodes == 0


def test_numbers_with_an_underline_are_names(tmp_path):
    folder = folder_of(tmp_path, edges_csv="src,dst,kind\na,b,1_0\nb,c,2\n")
    data = read_folder(folder, labels=False)
    assert (data.graph.edata["kind"].tolist(), data.category_names["kind"]) == (
        [0, 1],
        ("1_0", "2"),
    )


def test_table_of_nodes_beside_arrays_of_edges(tmp_path):
    folder = folder_of(tmp_path, nodes_csv="name,label\nann,0\nbob,1\n")
    np.savez(folder / "edges.npz", src=[0], dst=[1])
    assert read_folder(folder).node_names == ("ann", "bob")
