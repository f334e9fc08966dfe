"""Titles of columns, and the formats that people have: what is an end of an edge, and which row is
whose.
"""

from __future__ import annotations

import gzip
from functools import partial
from typing import Any

import numpy as np
import pytest
from _support.text_folders import ends, folder_of, read

from nodeflow.datasets import build_graph, node_names, read_edge_list, read_folder

QUIET: dict[str, Any] = {"progress": False, "overwrite": True}


# ------------------------------------------------------------------------------------------------------------
# titles


@pytest.mark.parametrize(
    "titles",
    ["src,dst", "source,target", "from,to", "head,tail", "subject,object", "FromNodeId,ToNodeId", "Source ID,Target ID",
     "~from,~to", ":START_ID,:END_ID", "u,v"],
)  # fmt: skip
@pytest.mark.parametrize("named", [False, True])
def test_ends_are_found_by_title_anywhere(tmp_path, titles, named):
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
        assert {name: column.tolist() for name, column in graph.edata.items()} == {
            "weight": [7, 7],
            "id": [0, 1],
        }
    assert data.node_names == (("a", "b", "c") if named else None)


@pytest.mark.parametrize(
    ("titles", "src", "dst"),
    [
        ("protein1,protein2,score", 0, 1), ("node_a,node_b,w", 0, 1), ("i0,i1,w", 0, 1), ("followee,n,follower", 2, 0),
        ("w,from_user_id,to_user_id", 1, 2), ("source_type,target_type,source_id,target_id", 2, 3),
        ("start,end,sender_id,receiver_id", 2, 3), ("x1,x2,head,tail", 2, 3), ("since,citing_id,cited_id", 1, 2),
    ],
)  # fmt: skip
def test_titles_of_ends_have_a_side(titles, src, dst, tmp_path):
    """They begin with a word for each side, or are the first two and end with a number or letter
    for it.
    """
    row = list("3456"[: titles.count(",") + 1])
    (tmp_path / "e.csv").write_text(f"{titles}\n{','.join(row)}\n")
    graph = read_edge_list(tmp_path / "e.csv", header=True)
    assert [end.tolist() for end in graph.edges()] == [[int(row[src])], [int(row[dst])]]


def test_titles_and_names_are_told_apart_or_refused(tmp_path):
    data = read(tmp_path, edges_csv="person,friend\n7,9\n")  # numbers below a word
    assert data.node_names == ("7", "9")
    assert (
        read(tmp_path, edges_csv="p,q\nann,bob\n", nodes_csv="name\nann\nbob\n").graph.num_edges
        == 1
    )


def test_a_header_that_is_an_edge_is_refused(tmp_path):
    folder = folder_of(tmp_path, edges_csv="# src,dst\n0,1\n1,2\n")
    assert read_folder(folder, labels=False).graph.num_edges == 2


@pytest.mark.parametrize(
    "titles",
    [
        "head\trelation\ttail",
        "subject\tpredicate\tobject",
        "# head\trelation\ttail",
        "source\ttype\ttarget",
    ],
)
def test_titles_of_triples(tmp_path, titles):
    data = read(tmp_path, train_tsv=f"{titles}\na\tr\tb\nb\tr\tc\n")
    assert (data.node_names, data.relation_names) == (("a", "b", "c"), ("r",))


def test_relations_are_integers_or_names(tmp_path):
    for words in (("True", "False"), ("2021-01-01", "x"), ("1.5", "1")):
        data = read(tmp_path, train_tsv="".join(f"a\t{word}\tb\n" for word in words))
        assert (data.relation_names, data.graph.edata["relation"].tolist()) == (words, [0, 1])


def test_comments_before_names(tmp_path):
    file = tmp_path / "e.tsv"
    for text in (
        "% a note\nann\tbob\nbob\tcid\n",
        "# FromNodeId\tToNodeId\nann\tbob\n# why\nbob\tcid\n",
        "ann\tbob\n#\tnote\nbob\tcid\n",
    ):
        file.write_text(text)
        build_graph(file, tmp_path / "g", named=True, **QUIET)
        assert list(node_names(tmp_path / "g") or ()) == ["ann", "bob", "cid"]
    file.write_text("ann\tbob\n#tag\tann\n")
    build_graph(file, tmp_path / "g", named=True, comments=None, **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == ["ann", "bob", "#tag"]
    data = read(tmp_path, train_tsv="# made by hand\n#tag\tr\tb\n")
    assert data.node_names == ("#tag", "b")


@pytest.mark.parametrize(
    "titles",
    [
        "user_id,item_id,rating",
        "userId,movieId,rating",
        "customer,product",
        "t,customer_id,product_id",
    ],
)
def test_tables_of_users_and_items_are_refused(titles, tmp_path):
    lines = f"{titles}\n" + ",".join("123"[: titles.count(",") + 1]) + "\n"
    (tmp_path / "e.csv").write_text(lines)
    for read_it in (
        lambda: read(tmp_path, edges_csv=lines),
        lambda: read_edge_list(tmp_path / "e.csv", header=True),
        lambda: build_graph(tmp_path / "e.csv", tmp_path / "g", named=True, header=True, **QUIET),
    ):
        with pytest.raises(
            ValueError,
            match=r"names nodes of two kinds, .* user 1 would be the same node as item 1",
        ):
            read_it()


@pytest.mark.parametrize(
    ("titles", "src", "dst"),
    [
        ("a,b,h,t", 0, 1),
        ("t,x,h,r", 2, 0),
        ("a,b,s,o", 0, 1),
        ("o,x,s,p", 2, 0),
    ],
)
def test_short_titles_are_ends_only_beside_their_third(titles, src, dst, tmp_path):
    """``t`` may be a time, and ``h``, ``s``, ``o`` anything."""
    text = f"{titles}\n3,4,5,6\n"
    (tmp_path / "e.csv").write_text(text)
    graph = read_edge_list(tmp_path / "e.csv", header=True)
    assert [end.tolist() for end in graph.edges()] == [[src + 3], [dst + 3]]


@pytest.mark.parametrize("text", ["ann,44\nbob,45\n", "7,0.5\n8,1\n", "ann,2021-03-01\nbob,2021-03-02\n", "ann\nbob\n",
                                  "ann,True\nbob,False\n", "007,x\n08,1\n", "david\nbob\n"])  # fmt: skip
@pytest.mark.parametrize("form", ["csv", "tsv", "csv_gz", "comment"])
def test_a_table_of_nodes_needs_titles(text, form, tmp_path):
    data = text.encode() if form != "tsv" else text.replace(",", "\t").encode()
    if form == "comment":
        data = b"# of people\n" + data
    file = {
        f"nodes_{form.replace('comment', 'csv')}": gzip.compress(data) if form == "csv_gz" else data
    }
    with pytest.raises(
        ValueError,
        match=r"nodes\..*must name the columns, but .* reads like a node; put a line of titles",
    ):
        read(tmp_path, edges_csv="src,dst\nbob,bob\n", **file)


@pytest.mark.parametrize(
    "titles", ["id,0", "paper_id,0", "paperId,1", "person,age", "Node Name,1.5", "KEY,2021-03-01"]
)
def test_titles_of_nodes(titles, tmp_path):
    data = read(tmp_path, edges_csv="src,dst\nbob,ann\n", nodes_csv=f"{titles}\nann,1\nbob,2\n")
    assert (data.node_names, data.feature_names) == (("ann", "bob"), (titles.split(",")[1],))


def test_first_rows_of_names_that_may_be_titles(tmp_path):
    def built(*texts: str, **options: Any) -> list[str]:
        files = [tmp_path / f"{at}.csv" for at in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        build_graph(files, tmp_path / "g", named=True, **options, **QUIET)
        return list(node_names(tmp_path / "g") or ())

    unknown = "alice_col,bob_col\nann,bob\nbob,cid\n"
    assert built(unknown, header=True) == ["ann", "bob", "cid"]
    assert built(unknown, header=False) == ["alice_col", "bob_col", "ann", "bob", "cid"]
    # an edge is told by its names in other rows or files, by a number, and by being alone
    assert built("ann,bob\ncid,dan\n", "eve,ann\n") == ["ann", "bob", "cid", "dan", "eve"]
    assert built("ann,7\ncid,dan\n") == ["ann", "7", "cid", "dan"]
    assert built("ann,bob,2\ncid,dan,3\n") == ["ann", "bob", "cid", "dan"]
    assert built("ann,bob\n") == ["ann", "bob"]


@pytest.mark.parametrize("between", [" ", "\t", ","])
def test_kinds_that_are_numbered_apart_are_refused(between, tmp_path):
    rows = "1 1 5 978300760\n1 2 3 978302109\n".replace(" ", between)
    text = f"% bip weighted\n% 2 1 2\n{rows}".encode()
    for name in ("e.csv", "e.csv.gz"):
        file = tmp_path / name
        file.write_bytes(gzip.compress(text) if "gz" in name else text)
        for read_it in (
            partial(read_edge_list, file),
            partial(read_edge_list, file, comments="%"),
            partial(build_graph, file, tmp_path / "g", **QUIET),
            partial(build_graph, file, tmp_path / "g", named=True, delimiter=between, **QUIET),
            partial(
                build_graph,
                file,
                tmp_path / "g",
                named=True,
                delimiter=between,
                comments="%",
                **QUIET,
            ),
        ):
            with pytest.raises(
                ValueError,
                match=r"e\.csv.*line 1 says 'bip', .* user 1 would be the same node as item 1; "
                r"give each",
            ) as error:
                read_it()
            assert "copy it again" not in str(error.value)
    with pytest.raises(ValueError, match="line 1 says 'bip'"):
        read(tmp_path, edges_csv="% bip\nsrc,dst\n1,1\n")
    for name in ("ratings.dat", "u.data", "u.data.gz"):
        text = rows.replace(between, "::") if name == "ratings.dat" else rows
        (tmp_path / name).write_bytes(
            gzip.compress(text.encode()) if "gz" in name else text.encode()
        )
        with pytest.raises(
            ValueError,
            match="reads like ratings of MovieLens, by users of items, and user 1 would be",
        ):
            read_edge_list(tmp_path / name)
    for named in (False, True):
        with pytest.raises(ValueError, match="reads like ratings of MovieLens"):
            build_graph(
                tmp_path / "ratings.dat", tmp_path / "g", named=named, delimiter="::", **QUIET
            )


# ------------------------------------------------------------------------------------ formats,
# rows, held-out edges

MATRIX = "%%MatrixMarket matrix coordinate {}\n% a note\n4 4 3\n1 1{}\n2 1{}\n3 2{}\n"


@pytest.mark.parametrize(
    ("kind", "values", "edges", "weight"),
    [
        ("pattern general", ("", "", ""), {(0, 0), (1, 0), (2, 1)}, None),
        ("pattern symmetric", ("", "", ""), {(0, 0), (1, 0), (0, 1), (2, 1), (1, 2)}, None),
        (
            "integer symmetric",
            (" 5", " 6", " 7"),
            {(0, 0), (1, 0), (0, 1), (2, 1), (1, 2)},
            [5, 6, 6, 7, 7],
        ),
        ("real general", (" 0.5", " 6", " 7"), {(0, 0), (1, 0), (2, 1)}, [0.5, 6, 7]),
    ],
)
def test_matrix_market(tmp_path, kind, values, edges, weight):
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
        assert (graph.num_nodes, {*zip(*(end.tolist() for end in graph.edges()), strict=True)}) == (
            4,
            edges,
        )
        assert graph.num_edges == len(edges)
        assert (sorted(graph.edata["weight"].tolist()) if weight else None) == weight


@pytest.mark.parametrize(
    ("text", "words"),
    [
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
                ("real", "1 1 1e"),
                ("pattern", "1 1 7"),
                ("pattern", "1 1.5"),
            ]
        ),
    ],
)
def test_wrong_matrices(tmp_path, text, words):
    (tmp_path / "m.mtx").write_text(text)
    with pytest.raises(ValueError, match=rf"m\.mtx.*{words}"):
        read_edge_list(tmp_path / "m.mtx")


def test_separators_and_comments_of_known_formats(tmp_path):
    (tmp_path / "ratings.dat").write_text("1::3::5::978300760\n2::0::3::978302109\n")  # MovieLens
    for delimiter in (None, "::"):
        graph = read_edge_list(
            tmp_path / "ratings.dat", delimiter=delimiter, columns=("src", "dst", "rating", "time")
        )
        assert [end.tolist() for end in graph.edges()] == [[1, 2], [3, 0]]
        assert graph.edata["time"].tolist() == [978300760, 978302109]
    names = ("src", "dst", "rating", "time")
    build_graph(
        tmp_path / "ratings.dat", tmp_path / "g", named=True, delimiter="::", columns=names, **QUIET
    )
    assert list(node_names(tmp_path / "g") or ()) == ["1", "3", "2", "0"]
    (tmp_path / "out.konect").write_text("% sym weighted\n% 2 3 3\n1 2 1 99\n2 3 1 98\n")
    graph = read_edge_list(tmp_path / "out.konect")
    assert ([end.tolist() for end in graph.edges()], graph.edata["c3"].tolist()) == (
        [[1, 2], [2, 3]],
        [99, 98],
    )


@pytest.mark.parametrize("between", ["\t", " ", "  "])
def test_triples_after_their_number_have_the_tail_second(tmp_path, between):
    rows = ["2", between.join("010"), between.join("121")]
    data = read(tmp_path, train_txt="\n".join(rows))
    assert (ends(data), data.graph.edata["relation"].tolist()) == ([[0, 1], [1, 2]], [0, 1])


def test_files_of_openke_begin_with_the_number_of_triples(tmp_path):
    (tmp_path / "train2id.txt").write_text("2\n0 1 0\n1 2 1\n")
    (tmp_path / "test2id.txt").write_text("1\n0 2 1\n")
    data = read_folder(tmp_path, labels=False)
    assert (ends(data), data.graph.edata["relation"].tolist()) == (
        [[0, 1, 0], [1, 2, 2]],
        [0, 1, 1],
    )


def test_columns_without_any_entry_stop_no_file(tmp_path):
    gephi = (
        "Source,Target,Type,Id,Label,timeset,Weight\na,b,Directed,0,,,1.0\nb,c,Directed,1,,,2.0\n"
    )
    data = read(tmp_path, edges_csv=gephi, nodes_csv="Id,x,empty\na,1,\nb,2,\nc,3,\n")
    assert (list(data.graph.edata), data.feature_names) == (["Type", "Id", "Weight"], ("x",))


@pytest.mark.parametrize("base", [0, 1])
def test_rows_of_arrays_are_those_of_the_table(tmp_path, base):
    ids = [2 + base, base, 1 + base]
    edges = f"src,dst\n{base},{1 + base}\n{1 + base},{2 + base}\n"
    nodes = "id,x\n" + "".join(f"{node},{node}\n" for node in ids)
    folder = folder_of(tmp_path, edges_csv=edges, nodes_csv=nodes)
    np.save(folder / "labels.npy", ids)
    data = read_folder(folder)
    assert data.graph.ndata["feat"].flatten().tolist() == data.graph.ndata["label"].tolist()
    (folder / "nodes.csv").write_text(nodes.replace(",", ",_", 1))
    import scipy.sparse

    scipy.sparse.save_npz(
        folder / "features.npz", scipy.sparse.diags_array([float(node) for node in ids]).tocsr()
    )
    data = read_folder(folder)
    assert data.graph.ndata["feat"].to_dense().sum(1).tolist() == data.graph.ndata["label"].tolist()
    (folder / "edges.csv").unlink()
    # row by row of the table: 2 -> 0 -> 1
    matrix = scipy.sparse.coo_array(([1, 1], ([0, 1], [1, 2])), (3, 3))
    scipy.sparse.save_npz(folder / "adjacency.npz", matrix)
    data = read_folder(folder)
    label = data.graph.ndata["label"]
    assert [label[end].tolist() for end in data.graph.edges()] == [ids[:2], ids[1:]]
