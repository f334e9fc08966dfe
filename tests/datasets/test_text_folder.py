"""read_folder on text files: tables of edges and nodes, and what it says of wrong ones."""

from __future__ import annotations

import math
import re
from pathlib import Path

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
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[tuple[str, str, int, float, str]],
    how: tuple[str, str, bool],
) -> None:
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
    tmp_path_factory: pytest.TempPathFactory,
    nodes: list[tuple[str, float, str, str]],
    shuffled: object,
) -> None:
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
def test_numbers_stay_where_none_is_missing_and_are_names_where_one_is(
    tmp_path_factory: pytest.TempPathFactory, edges: list[tuple[int, int]]
) -> None:
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


@pytest.mark.parametrize(
    ("files", "names", "edges", "columns"),
    [
        # ids of a database take no memory for the gaps
        (
            {"edges_csv": "from,to\n9000000000000,17\n17,3\n"},
            ("9000000000000", "17", "3"),
            [[0, 1], [1, 2]],
            {},
        ),
        # source and destination by title, quotes, and a column that is left out
        (
            {"edges_csv": 'note,_x,dst,src\n"a, ""b""",,0,1\nc,?,1,2\n'},
            None,
            [[1, 2], [0, 1]],
            {"note": [0, 1]},
        ),
        # quotes are letters there
        ({"edges_tsv": 'src\tdst\n"a\tb\n'}, ('"a', "b"), [[0], [1]], {}),
        (
            {"edges_csv": "src,dst,w\n\n0,1,2\n  \n,,\n1,0,3\n,,\n"},
            None,
            [[0, 1], [1, 0]],
            {"w": [2, 3]},
        ),
        (
            {"edges_csv": "src,dst,split\n0,1,train\n1,0,Valid\n0,0,test\n1,1,0\n"},
            None,
            [[0, 1, 0, 1], [1, 0, 0, 1]],
            {"split": [0, 1, 2, 0]},
        ),
    ],
)
def test_ways_to_write_edges(
    tmp_path: Path,
    files: dict[str, str],
    names: object,
    edges: list[list[int]],
    columns: dict[str, list[int]],
) -> None:
    data = read(tmp_path, **files)
    assert (data.node_names, ends(data)) == (names, edges)
    assert {name: column.tolist() for name, column in data.graph.edata.items()} == columns
    assert dict(data.category_names) == ({"note": ('a, "b"', "c")} if "note" in columns else {})


def test_numbers_stay_where_files_have_rows_for_them(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv="src,dst\n0,3\n3,1\n")
    np.save(folder / "features.npy", np.eye(6))
    data = read_folder(folder, labels=False)
    assert (data.graph.num_nodes, data.node_names, ends(data)) == (6, None, [[0, 3], [3, 1]])
    (folder / "edges.csv").write_text("src,dst\n0,3\n6,1\n")
    with pytest.raises(
        ValueError,
        match=r"edges\.csv, line 3: src must be a number from 0 to 5, for a row of features",
    ):
        read_folder(folder, labels=False)
    (folder / "edges.csv").write_text("src,dst\nann,3\n")
    with pytest.raises(
        ValueError, match=r"line 2: src must be a number.*nodes\.csv may give names.*got 'ann'"
    ):
        read_folder(folder, labels=False)
    (folder / "nodes.csv").write_text("name\nf\ne\nann\nc\n3\na\n")
    data = read_folder(folder, labels=False)
    assert ends(data) == [[2], [4]]


def test_files_of_a_split_keep_numbers_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv="src,dst\n0,4\n")
    np.save(folder / "train.npy", [4])
    data = read_folder(folder, labels=False)
    assert (data.graph.num_nodes, data.train.tolist(), ends(data)) == (5, [4], [[0], [4]])


def test_nodes_by_number_in_any_order(tmp_path: Path) -> None:
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
def test_numbers_to_predict(tmp_path: Path, gap: str) -> None:
    data = read(
        tmp_path, nodes_csv=f"id,label\na,1.5\nb,{gap}\nc,-2\nd,3\n", edges_csv="src,dst\na,b\n"
    )
    label = data.graph.ndata["label"]
    assert (label.dtype, data.num_classes, data.class_names) == (torch.float32, 0, None)
    assert label[[0, 2, 3]].tolist() == [1.5, -2, 3]
    assert math.isnan(label[1])
    assert torch.cat(list(data.splits.values())).sort().values.tolist() == [0, 2, 3]


def test_whole_numbers_with_gaps_are_classes_as_pandas_writes_them(tmp_path: Path) -> None:
    data = read(tmp_path, nodes_csv="id,label\na,1.0\nb,\nc,0.0\n", edges_csv="src,dst\na,b\n")
    assert (data.graph.ndata["label"].tolist(), data.num_classes) == ([1, -1, 0], 2)


def test_several_labels(tmp_path: Path) -> None:
    edges = "src,dst\na,b\n"
    data = read(tmp_path, nodes_csv="id,label\na,red; blue\nb,\nc,blue\n", edges_csv=edges)
    assert (data.class_names, data.num_classes) == (("red", "blue"), 2)
    assert data.graph.ndata["label"].tolist() == [[1, 1], [0, 0], [0, 1]]
    data = read(tmp_path, nodes_csv="id,label\na,3;0\nb,\nc,1\n", edges_csv=edges)
    assert (data.class_names, data.num_classes) == (None, 4)
    assert data.graph.ndata["label"].tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]


def test_float_labels_of_an_array(folder: Path) -> None:
    values = [0.5, 1.0, np.nan, 2.0, 3.0, 4.0, 5.0, 6.0]
    np.save(folder / "labels.npy", values)
    np.save(folder / "train.npy", [0, 1])
    data = read_folder(folder)
    assert (data.graph.ndata["label"].dtype, data.num_classes) == (torch.float32, 0)
    assert np.array_equal(data.graph.ndata["label"].numpy(), np.float32(values), equal_nan=True)
    np.save(folder / "train.npy", [0, 2])
    with pytest.raises(ValueError, match="holds node 2 for training, which has no label"):
        read_folder(folder)


def test_header_alone_is_a_graph_without_edges(tmp_path: Path) -> None:
    data = read(tmp_path, edges_csv="src,dst,w,split\n", nodes_csv="id\n0\n1\n")
    assert (data.graph.num_nodes, data.graph.num_edges, list(data.graph.edata)) == (
        2,
        0,
        ["w", "split"],
    )
    assert read(tmp_path, nodes_csv="id\n").graph.num_nodes == 0


EDGES = "src,dst\na,b\nb,c\n"
NODES = "id,label,split,x\na,0,train,1\nb,1,val,2\nc,1,test,3\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edges_csv": ""}, r"edges\.csv is empty; its first line must name its columns"),
        ({"edges_csv": "\n \n"}, r"edges\.csv is empty"),
        (
            {"edges_csv": "src\na\n"},
            r"line must name two or more columns.* with commas between: \['src'\]",
        ),
        ({"edges_csv": "src;dst\na;b\n"}, r"with commas between: \['src;dst'\]"),
        (
            {"edges_csv": "0,1\n1,2\n"},
            r"\['0', '1'\] reads like an edge; put the line src,dst before",
        ),
        ({"edges_csv": "ann,bob\nann,cid\n"}, r"\['ann', 'bob'\] reads like an edge"),
        (
            {"edges_csv": "a,b,src\n0,1,2\n"},
            r"must name two or more columns, each once, and the ends of edges src and dst",
        ),
        (
            {"edges_csv": "src,dst,,\n0,1,2,3\n"},
            r"line 1: every column needs a title of its own, got \['src', 'dst', ''",
        ),
        ({"edges_csv": "src,dst,w,w\n0,1,2,3\n"}, r"line 1: every column needs a title of its own"),
        (
            {"edges_csv": "src,dst\na,b\n\nc\n"},
            r"line 4: expected 2 columns \(src, dst\), got 1: \['c'\]",
        ),
        (
            {"edges_csv": 'src,dst\n"a\nb",c\na,"b, c",d\n'},
            r"line 4: expected 2 columns .* got 3: \['a', 'b, c', 'd'\]",
        ),
        (
            {"edges_csv": 'src,dst\na,"b\n'},
            r"edges\.csv, line 2: unexpected end of data; a quoted entry may have no end",
        ),
        (
            {"edges_csv": b"src,dst\n\xff,b\n"},
            r"edges\.csv, line 2 has bytes that are no UTF-8; it must be text",
        ),
        ({"edges_csv_gz": b"src,dst\n"}, r"edges\.csv\.gz must be a text file of columns"),
        ({"edges_csv": "src,dst,w\na,b,1\nb,,2\n"}, r"line 3: the entry of column 'dst' is empty"),
        ({"edges_csv": "src,dst,w\na,b,1\nb,c,\n"}, r"line 3: the entry of column 'w' is empty"),
        (
            {"edges_csv": "src,dst\n0,1\n1,-1\n"},
            r"line 3: dst must be a name, or an integer from 0, got '-1'",
        ),
        (
            {"edges_csv": "src,dst,split\na,b,train\nb,c,later\n"},
            r"line 3: column 'split' must hold train.*got 'later'",
        ),
        ({"edges_tsv": EDGES}, r"must hold one of edges\.csv and edges\.tsv, got both"),
        ({"train_tsv": "a\tr\tb\n"}, r"must hold one of edges\.csv and train\.tsv, got both"),
        (
            {"nodes_csv": "id\na\nb\n"},
            r"edges\.csv, line 3: dst must be a node of .*nodes\.csv, got 'c'",
        ),
        (
            {"nodes_csv": "id\n0\n1\n"},
            r"edges\.csv, line 2: src must be a node of .*nodes\.csv, got 'a'",
        ),
        ({"nodes_csv": "id\na\nb\nc\nb\n"}, r"nodes\.csv, line 5: node 'b' is there twice"),
        ({"nodes_csv": "id\n1\n2\n1\n"}, r"nodes\.csv, line 4: node '1' is there twice"),
        (
            {"nodes_csv": "id\n1\n2\n2.0\n"},
            r"nodes\.csv, line 4: 2\.0 and 2 are one number but two words",
        ),
        ({"nodes_csv": "id\n0\n-3\n"}, r"nodes\.csv, line 3: no node can be '-3'"),
        ({"nodes_csv": ""}, r"nodes\.csv is empty"),
        (
            {"nodes_csv": "label,id\n0,a\n"},
            r"must begin with a column of ids or names of nodes, got \['label', 'id'\]",
        ),
        (
            {"nodes_csv": NODES + "d,0,later,4\n"},
            r"line 5: column 'split' must hold train.*got 'later'",
        ),
        (
            {"nodes_csv": NODES + "d,0,test,old\n"},
            r"line 5: column 'x' must hold numbers, got 'old'; .* such as _x",
        ),
        (
            {"nodes_csv": NODES + "d,-2,test,4\n"},
            r"line 5: label must be a class from 0, or -1 or empty .*, got '-2'",
        ),
        (
            {"nodes_csv": NODES + "d,,train,4\n"},
            r"nodes\.csv holds node 'd' for training, which has no label",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, files: dict[str, str | bytes], message: str) -> None:
    folder = folder_of(tmp_path, **{"edges_csv": EDGES, **files})
    if "edges_csv_gz" in files:
        (folder / "edges.csv").unlink()
    with pytest.raises(ValueError, match=message):
        read_folder(folder, labels=False)


def test_what_is_given_twice(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv=EDGES, nodes_csv=NODES)
    for name, words in (
        ("labels", "labels in nodes.csv or in labels.npy"),
        ("features", "features in nodes.csv or in"),
    ):
        np.save(
            folder / f"{name}.npy", np.zeros((3, 1)) if name == "features" else np.zeros(3, int)
        )
        with pytest.raises(ValueError, match=re.escape(words)):
            read_folder(folder)
        (folder / f"{name}.npy").unlink()
    np.save(folder / "val.npy", [0])
    with pytest.raises(
        ValueError, match=r"nodes\.csv has a split in columns, so .*val\.npy must not be there"
    ):
        read_folder(folder)


def test_numbers_with_an_underline_are_names(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv="src,dst,kind\na,b,1_0\nb,c,2\n")
    data = read_folder(folder, labels=False)
    assert (data.graph.edata["kind"].tolist(), data.category_names["kind"]) == (
        [0, 1],
        ("1_0", "2"),
    )


def test_without_labels(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv=EDGES, nodes_csv="id\na\nb\nc\n")
    with pytest.raises(
        FileNotFoundError, match=r"has no column label in nodes\.csv; labels=False reads"
    ):
        read_folder(folder)


def test_table_of_nodes_beside_arrays_of_edges(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, nodes_csv="name,label\nann,0\nbob,1\n")
    np.savez(folder / "edges.npz", src=[0], dst=[1])
    assert read_folder(folder).node_names == ("ann", "bob")
    np.savez(folder / "edges.npz", src=[0], dst=[1], num_nodes=3)
    with pytest.raises(ValueError, match=r"nodes\.csv must have 3 rows, one per node"):
        read_folder(folder)
    (folder / "nodes.csv").write_text("name\nann\nbob\n")
    with pytest.raises(ValueError, match=r"nodes\.csv must list 3 nodes, got 2"):
        read_folder(folder, labels=False)
