"""Titles of columns, and the formats that people have: what is an end of an edge, and which row is whose."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _support.text_folders import ends, folder_of, read

from nodeflow.building import build_graph, node_names
from nodeflow.datasets import read_edge_list, read_folder

QUIET: dict[str, Any] = {"progress": False, "overwrite": True}


# ------------------------------------------------------------------------------------------------------------ titles


@pytest.mark.parametrize(
    "titles",
    ["src,dst", "source,target", "from,to", "head,tail", "subject,object", "FromNodeId,ToNodeId", "Source ID,Target ID",
     "~from,~to", ":START_ID,:END_ID", "u,v"],
)  # fmt: skip
@pytest.mark.parametrize("named", [False, True])
def test_ends_are_found_by_title_anywhere(tmp_path: Path, titles: str, named: bool) -> None:
    src, dst = titles.split(",")
    rows = [("a", "b"), ("b", "c")] if named else [("0", "1"), ("1", "2")]
    lines = [f"7,{v},{at},{u}" for at, (u, v) in enumerate(rows)]
    text = "\n".join([f"weight,{dst},id,{src}", *lines])
    data = read(tmp_path, edges_csv=text)
    file = tmp_path / "text" / "edges.csv"
    graphs = [data.graph, build_graph(file, tmp_path / "g", named=named, **QUIET)]
    if not named:
        graphs.append(read_edge_list(file, header=True))
    for graph in graphs:
        assert [end.tolist() for end in graph.edges()] == [[0, 1], [1, 2]]
        assert {name: column.tolist() for name, column in graph.edata.items()} == {"weight": [7, 7], "id": [0, 1]}
    assert data.node_names == (("a", "b", "c") if named else None)


@pytest.mark.parametrize("title", ["id", "weight", "timestamp", "Type"])
def test_what_is_no_end_is_not_taken_for_one(tmp_path: Path, title: str) -> None:
    with pytest.raises(ValueError, match=f"must name the ends of edges src and dst.*but '{title}' is among the first"):
        read(tmp_path, edges_csv=f"{title},person,friend\n1,2,3\n4,5,6\n")


def test_titles_and_names_are_told_apart_or_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\['ann', 'bob'\] reads like an edge; put the line src,dst before"):
        read(tmp_path, edges_csv="ann,bob\ncid,dan\neve,fay\n")
    data = read(tmp_path, edges_csv="person,friend,since\nann,bob,2019\n")  # a number below a word
    assert (data.node_names, list(data.graph.edata)) == (("ann", "bob"), ["since"])
    with pytest.raises(ValueError, match="reads like an edge"):
        read(tmp_path, edges_csv="ann,bob,2018\ncid,dan,2019\n")
    assert read(tmp_path, edges_csv="p,q\nann,bob\n", nodes_csv="name\nann\nbob\n").graph.num_edges == 1
    with pytest.raises(ValueError, match="reads like an edge"):
        read(tmp_path, edges_csv="ann,bob\nbob,cid\n", nodes_csv="name\nann\nbob\ncid\n")


def test_a_header_that_is_an_edge_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("# src,dst\n0,1\n1,2\n")  # as numpy.savetxt writes titles
    with pytest.raises(ValueError, match=r"line 2: header=True, but \['0', '1'\] is an edge"):
        read_edge_list(tmp_path / "e.csv", header=True)
    folder = folder_of(tmp_path, edges_csv="# src,dst\n0,1\n1,2\n")
    assert read_folder(folder, labels=False).graph.num_edges == 2


@pytest.mark.parametrize(
    "titles", ["head\trelation\ttail", "subject\tpredicate\tobject", "# head\trelation\ttail", "source\ttype\ttarget"]
)
def test_titles_of_triples(tmp_path: Path, titles: str) -> None:
    data = read(tmp_path, train_tsv=f"{titles}\na\tr\tb\nb\tr\tc\n")
    assert (data.node_names, data.relation_names) == (("a", "b", "c"), ("r",))


def test_relations_are_integers_or_names(tmp_path: Path) -> None:
    for words in (("True", "False"), ("2021-01-01", "x"), ("1.5", "1")):
        data = read(tmp_path, train_tsv="".join(f"a\t{word}\tb\n" for word in words))
        assert (data.relation_names, data.graph.edata["relation"].tolist()) == (words, [0, 1])
    with pytest.raises(ValueError, match=r"train\.tsv, line 2: 1\.0 and 1 are one number but two words"):
        read(tmp_path, train_tsv="a\t1\tb\na\t1.0\tb\n")


def test_comments_before_names(tmp_path: Path) -> None:
    file = tmp_path / "e.tsv"
    for text in (
        "% a note\nann\tbob\nbob\tcid\n",
        "# FromNodeId\tToNodeId\nann\tbob\n# why\nbob\tcid\n",
        "ann\tbob\n#\tnote\nbob\tcid\n",
    ):
        file.write_text(text)
        build_graph(file, tmp_path / "g", named=True, **QUIET)
        assert list(node_names(tmp_path / "g") or ()) == ["ann", "bob", "cid"]
    file.write_text("ann\tbob\n#tag\tcid\n")
    with pytest.raises(ValueError, match=r"line 2 begins with '#', but has columns; .*pass comments=None"):
        build_graph(file, tmp_path / "g", named=True, **QUIET)
    build_graph(file, tmp_path / "g", named=True, comments=None, **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == ["ann", "bob", "#tag", "cid"]
    data = read(tmp_path, train_tsv="# made by hand\n#tag\tr\tb\n")
    assert data.node_names == ("#tag", "b")
    with pytest.raises(ValueError, match=r"line 1 begins with '#', but has columns; remove the mark"):
        read(tmp_path, train_tsv="a\tr\tb\n", nodes_tsv="# id\tx\na\t1\nb\t2\n")


@pytest.mark.parametrize("titles", ["user_id,item_id,rating", "userId,movieId,rating", "customer,product"])
def test_tables_of_users_and_items_are_refused(titles: str, tmp_path: Path) -> None:
    lines = f"{titles}\n" + ",".join("123"[: titles.count(",") + 1]) + "\n"
    (tmp_path / "e.csv").write_text(lines)
    for read_it in (
        lambda: read(tmp_path, edges_csv=lines),
        lambda: read_edge_list(tmp_path / "e.csv", header=True),
        lambda: build_graph(tmp_path / "e.csv", tmp_path / "g", named=True, header=True, **QUIET),
    ):
        with pytest.raises(ValueError, match=r"names nodes of two kinds, .* user 1 would be the same node as item 1"):
            read_it()


# ------------------------------------------------------------------------------------ formats, rows, held-out edges

MATRIX = "%%MatrixMarket matrix coordinate {}\n% a note\n4 4 3\n1 1{}\n2 1{}\n3 2{}\n"


@pytest.mark.parametrize(
    ("kind", "values", "edges", "weight"),
    [
        ("pattern general", ("", "", ""), {(0, 0), (1, 0), (2, 1)}, None),
        ("pattern symmetric", ("", "", ""), {(0, 0), (1, 0), (0, 1), (2, 1), (1, 2)}, None),
        ("integer symmetric", (" 5", " 6", " 7"), {(0, 0), (1, 0), (0, 1), (2, 1), (1, 2)}, [5, 6, 6, 7, 7]),
        ("real general", (" 0.5", " 6", " 7"), {(0, 0), (1, 0), (2, 1)}, [0.5, 6, 7]),
    ],
)
def test_matrix_market(tmp_path: Path, kind: str, values: tuple[str, ...], edges: set[object], weight: object) -> None:
    text = MATRIX.format(kind, *values)
    (tmp_path / "m.mtx").write_text(text)
    (tmp_path / "m.mtx.gz").write_bytes(gzip.compress(text.encode()))
    folder_of(tmp_path, adjacency_mtx=text)
    graphs = [
        read_edge_list(tmp_path / "m.mtx"),
        read_edge_list(tmp_path / "m.mtx.gz"),
        build_graph(tmp_path / "m.mtx", tmp_path / "g", **QUIET),
        read_folder(tmp_path / "text", labels=False).graph,
    ]
    for graph in graphs:
        assert (graph.num_nodes, {*zip(*(end.tolist() for end in graph.edges()), strict=True)}) == (4, edges)
        assert graph.num_edges == len(edges)
        assert (sorted(graph.edata["weight"].tolist()) if weight else None) == weight


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "must be a sparse matrix in Matrix Market format"),
        (MATRIX.format("pattern general", "", "", "").replace("4 4 3", "4 5 3"), r"must hold a square .*\[4, 5\]"),
        (MATRIX.format("pattern general", "", "", "").replace("4 4 3", "4 4 4"), "may be cut short"),
        (MATRIX.format("pattern general", "", "", "").replace("1 1", "0 1"), "out of bounds"),
        *(
            (
                MATRIX.format(f"{kind} general", "", " 3", " 3").replace("1 1", line),
                f"line 4: expected an entry .*{kind}",
            )
            for kind, line in [
                ("integer", "1 1 1.9"),
                ("integer", "1 1 1e2"),
                ("integer", "1 1 3 4"),
                ("integer", "1 1 1_0"),
                ("integer", "1.5 1 1"),
                ("integer", "1 1"),
                ("unsigned-integer", "1 1 -3"),
                ("real", "1 1 1,5"),
                ("real", "1 1 1.5D2"),
                ("real", "1 1 0.5 1"),
                ("pattern", "1 1 7"),
                ("pattern", "1 1.5"),
            ]
        ),
        ("%%MatrixMarket matrix array real general\n1 1\n3\n", "must hold a square sparse matrix .* got array real"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 99999999999999\n1 1 1\n", "99,999,999,999,999 entries"),
    ],
)
def test_wrong_matrices(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "m.mtx").write_text(text)
    with pytest.raises(ValueError, match=rf"m\.mtx.*{words}"):
        read_edge_list(tmp_path / "m.mtx")


def test_separators_and_comments_of_known_formats(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text("1::3::5::978300760\n2::0::3::978302109\n")  # MovieLens
    for delimiter in (None, "::"):
        graph = read_edge_list(tmp_path / "ratings.dat", delimiter=delimiter, columns=("src", "dst", "rating", "time"))
        assert [end.tolist() for end in graph.edges()] == [[1, 2], [3, 0]]
        assert graph.edata["time"].tolist() == [978300760, 978302109]
    build_graph(tmp_path / "ratings.dat", tmp_path / "g", named=True, delimiter="::", **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == ["1", "3", "2", "0"]
    (tmp_path / "out.konect").write_text("% sym weighted\n% 2 3 3\n1 2 1 99\n2 3 1 98\n")
    graph = read_edge_list(tmp_path / "out.konect")
    assert ([end.tolist() for end in graph.edges()], graph.edata["c3"].tolist()) == ([[1, 2], [2, 3]], [99, 98])
    (tmp_path / "out.konect").write_text("% sym weighted\n1 2 1 99\n2 3\n")
    with pytest.raises(ValueError, match=r"line 3: expected 4 columns .* got 2; .*no row may leave one out"):
        read_edge_list(tmp_path / "out.konect")
    jodie = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n0,0,0.0,0,-0.1,0.2\n"
    with pytest.raises(ValueError, match=r"line 2: expected 5 columns .* got 6: .* every column needs a title"):
        read(tmp_path, edges_csv=jodie)


@pytest.mark.parametrize("between", ["\t", " ", "  "])
def test_triples_after_their_number_have_the_tail_second(tmp_path: Path, between: str) -> None:
    rows = ["2", between.join("010"), between.join("121")]
    data = read(tmp_path, train_txt="\n".join(rows))
    assert (ends(data), data.graph.edata["relation"].tolist()) == ([[0, 1], [1, 2]], [0, 1])
    with pytest.raises(ValueError, match=r"train\.txt, line 1: it says that there are 2 triples, got 1"):
        read(tmp_path, train_txt="\n".join(rows[:-1]))


def test_files_of_openke_begin_with_the_number_of_triples(tmp_path: Path) -> None:
    (tmp_path / "train2id.txt").write_text("2\n0 1 0\n1 2 1\n")
    (tmp_path / "test2id.txt").write_text("1\n0 2 1\n")
    data = read_folder(tmp_path, labels=False)
    assert (ends(data), data.graph.edata["relation"].tolist()) == ([[0, 1, 0], [1, 2, 2]], [0, 1, 1])
    (tmp_path / "test2id.txt").write_text("0\t2\t1\n")
    with pytest.raises(ValueError, match=r"test2id\.txt, line 1: expected the number of triples"):
        read_folder(tmp_path, labels=False)


def test_columns_without_any_entry_stop_no_file(tmp_path: Path) -> None:
    gephi = "Source,Target,Type,Id,Label,timeset,Weight\na,b,Directed,0,,,1.0\nb,c,Directed,1,,,2.0\n"
    data = read(tmp_path, edges_csv=gephi, nodes_csv="Id,x,empty\na,1,\nb,2,\nc,3,\n")
    assert (list(data.graph.edata), data.feature_names) == (["Type", "Id", "Weight"], ("x",))
    with pytest.raises(ValueError, match=r"line 3: the entry of column 'Label' is empty; a title .* such as _Label"):
        read(tmp_path, edges_csv=gephi.replace("Directed,0,,", "Directed,0,one,"))


@pytest.mark.parametrize("base", [0, 1])
def test_rows_of_arrays_are_those_of_the_table(tmp_path: Path, base: int) -> None:
    ids = [2 + base, base, 1 + base]
    edges = f"src,dst\n{base},{1 + base}\n{1 + base},{2 + base}\n"
    nodes = "id,x\n" + "".join(f"{node},{node}\n" for node in ids)
    folder = folder_of(tmp_path, edges_csv=edges, nodes_csv=nodes)
    np.save(folder / "labels.npy", ids)
    data = read_folder(folder)
    assert data.graph.ndata["feat"].flatten().tolist() == data.graph.ndata["label"].tolist()
    (folder / "nodes.csv").write_text(nodes.replace(",", ",_", 1))
    import scipy.sparse

    scipy.sparse.save_npz(folder / "features.npz", scipy.sparse.diags_array([float(node) for node in ids]).tocsr())
    data = read_folder(folder)
    assert data.graph.ndata["feat"].to_dense().sum(1).tolist() == data.graph.ndata["label"].tolist()
    (folder / "edges.csv").unlink()
    matrix = scipy.sparse.coo_array(([1, 1], ([0, 1], [1, 2])), (3, 3))  # row by row of the table: 2 -> 0 -> 1
    scipy.sparse.save_npz(folder / "adjacency.npz", matrix)
    data = read_folder(folder)
    label = data.graph.ndata["label"]
    assert [label[end].tolist() for end in data.graph.edges()] == [ids[:2], ids[1:]]


def test_held_out_triples_that_training_has_are_said(tmp_path: Path) -> None:
    train, test = "a\tr\tb\nb\ts\tc\n", "a\tr\tb\na\ts\tb\nc\tr\tnew\n"
    assert "  held out    1 are edges of train too, 1 nodes have no edge of train" in read(
        tmp_path, train_tsv=train, test_tsv=test
    ).info().splitlines()  # fmt: skip
    assert "held out" not in read(tmp_path, train_tsv=train, test_tsv="a\ts\tb\n").info()


def test_a_folder_of_ogb_says_how_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(FileNotFoundError, match=r"looks like one of OGB: read_ogb\(folder\)\.save"):
        read_folder(tmp_path)


def test_names_that_are_wanted_in_a_list_of_numbers_are_told_the_way(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("ann,bob\ncid,dan\n")
    with pytest.raises(
        ValueError, match=r"got 'ann'; .*header=True; build_graph\(named=True\) and read_folder take names"
    ):
        read_edge_list(tmp_path / "e.csv")
