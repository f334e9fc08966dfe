"""A word is its own name: what readers make of ids, categories, labels, numbers, dates and truth values, and titles."""

from __future__ import annotations

import datetime
import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.text_folders import ends, folder_of, fresh, read
from hypothesis import given, strategies as st

from nodeflow import TemporalNeighborSampler
from nodeflow.building import build_graph, node_names
from nodeflow.datasets import read_edge_list, read_folder

QUIET: dict[str, Any] = {"progress": False, "overwrite": True}
DIGITS = st.from_regex(r"[+-]?[0-9]{1,4}", fullmatch=True)


def is_plain(word: str) -> bool:
    return str(int(word)) == word


# ----------------------------------------------------------------------------------------------------- ids and names


@given(pairs=st.lists(st.tuples(DIGITS, DIGITS, DIGITS), min_size=1, max_size=6))
def test_words_of_digits_are_integers_only_if_all_are_written_so(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str, str]]
) -> None:
    folder = fresh(tmp_path_factory)
    (folder / "train.tsv").write_text("".join(f"{src}\t{relation}\t{dst}\n" for src, relation, dst in pairs))
    words = [word for src, _, dst in pairs for word in (src, dst)]
    if all(map(is_plain, words)) and any(int(word) < 0 for word in words):
        with pytest.raises(ValueError, match="must be a name, or an integer from 0"):
            read_folder(folder, labels=False)
        return
    data = read_folder(folder, labels=False)
    assert data.graph.num_nodes == len(set(words))
    if data.node_names is None:
        assert all(map(is_plain, words))
        assert ends(data) == [[int(pair[0]) for pair in pairs], [int(pair[2]) for pair in pairs]]
    else:
        read_back = [[data.node_names[node] for node in end] for end in ends(data)]
        assert read_back == [[pair[0] for pair in pairs], [pair[2] for pair in pairs]]
    numbers, names = data.graph.edata["relation"].tolist(), data.relation_names
    relations = [pair[1] for pair in pairs]
    if all(map(is_plain, relations)):
        assert (numbers, names) == (list(map(int, relations)), None)
    else:
        assert names is not None
        assert [names[number] for number in numbers] == relations


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["1000", "1e3"], "line 3: 1e3 and 1000 are one number but two words; write both as 1000"),
        (["2.", "2"], "line 2: 2. and 2 are one number but two words"),
        (["0", "1e-999999999999999999999"], "are one number but two words"),
        (["1", "nan"], "line 3: nan among numbers is a missing one; leave the row out"),
        (["1.5", "NaN"], "line 3: NaN among numbers is a missing one"),
    ],
)
def test_names_of_nodes_that_are_numbers_written_in_two_ways_are_refused(
    words: list[str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=why):
        read(tmp_path, edges_csv="src,dst\n" + "".join(f"{word},3\n" for word in words))
    data = read(tmp_path, edges_csv="src,dst\nnan,ann\n1.5,1.50\n")  # names, and numbers that are not whole
    assert data.node_names == ("nan", "ann", "1.5", "1.50")


UNCLEAR = {
    "looks like a time": ["03/01/2021", "3.1.2021", "2021/03/01", "01-03-2021 10:00", "2021-03", "12:30", "1:02:03.5"],
    "looks like a number": ["1,000", "-12,345,678.9", "1,5"],
    "beside numbers looks like a missing one": ["NA", "n/a", "null", "None", "?", "-"],
}


@pytest.mark.parametrize(("why", "word"), [(why, word) for why, words in UNCLEAR.items() for word in words])
def test_words_that_would_be_categories_by_mistake_are_refused(why: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"line 3: '{re.escape(word)}' {why}; .*, or leave the column out"):
        read(tmp_path, edges_csv=f'src,dst,c\na,b,1\nb,a,"{word}"\n')


def test_words_that_only_remind_of_numbers_are_categories(tmp_path: Path) -> None:
    words = ("NA", "1.2.3", "7-1", "a,b", "10:4:2:1", "n=3", "-", "2021-003")
    data = read(tmp_path, edges_csv="src,dst,c\n" + "".join(f'a,b,"{word}"\n' for word in words))
    assert data.category_names["c"] == words


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


@pytest.mark.parametrize("word", ["007", "00", "+4", "-0"])
@pytest.mark.parametrize("line", ["3 {} 1", "{} 3 1"])
def test_lists_of_numbers_take_no_other_spelling(tmp_path: Path, word: str, line: str) -> None:
    (tmp_path / "e.txt").write_text("0 1 1\n" + line.format(word) + "\n")
    for read_it in (read_edge_list, lambda file: build_graph(file, tmp_path / "g", **QUIET)):
        with pytest.raises(
            ValueError, match=rf"line 2: (src|dst) must be an integer from 0, got '{word}'".replace("+", r"\+")
        ):
            read_it(tmp_path / "e.txt")


def test_values_of_lists_keep_their_zeros_or_are_refused(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("0,1,+1,-0.5,1e-05\n1,2,-1,0.25,0\n")
    columns = read_edge_list(tmp_path / "e.csv").edata
    assert {name: column.tolist() for name, column in columns.items()} == {
        "c2": [1, -1], "c3": [-0.5, 0.25], "c4": [1e-05, 0]
    }  # fmt: skip
    (tmp_path / "e.csv").write_text("0,1,2139\n1,2,01001\n")
    with pytest.raises(ValueError, match=r"line 2: column 'c2' must hold numbers, got '01001'; skip it"):
        read_edge_list(tmp_path / "e.csv")


def test_names_keep_their_zeros_in_all_files(tmp_path: Path) -> None:
    text, names = "src,dst\n007,7\n7,08\n+7,007\n", ["007", "7", "08", "+7"]
    folder = folder_of(tmp_path, edges_csv=text)
    assert read_folder(folder, labels=False).node_names == tuple(names)
    build_graph(folder / "edges.csv", tmp_path / "g", named=True, **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == names


def test_a_number_and_its_float_are_not_two_nodes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, edges_csv="src,dst\n1,2.0\n2,3.0\n3,1.0\n")
    with pytest.raises(
        ValueError, match=r"edges\.csv, line 2: 2\.0 and 2 are one number but two words; write both as 2"
    ):
        read_folder(folder, labels=False)
    with pytest.raises(ValueError, match=r"edges\.csv: names of nodes: 2\.0 and 2 are one number"):
        build_graph(folder / "edges.csv", tmp_path / "g", named=True, **QUIET)
    # with a letter anywhere they are names, such as versions
    data = read(tmp_path, edges_csv="src,dst\n1,2.0\n2,3.0-rc\n")
    assert data.node_names == ("1", "2.0", "2", "3.0-rc")


def test_labels_and_categories_keep_their_zeros(tmp_path: Path) -> None:
    edges = "src,dst,zip,sign\na,b,01001,+1\nb,c,1001,-1\n"
    folder = folder_of(tmp_path, edges_csv=edges, nodes_csv="n,label\na,01001\nb,1001\nc,+1\n")
    data = read_folder(folder)
    assert (data.class_names, data.graph.ndata["label"].tolist()) == (("01001", "1001", "+1"), [0, 1, 2])
    assert (data.category_names["zip"], data.graph.edata["zip"].tolist()) == (("01001", "1001"), [0, 1])
    assert data.graph.edata["sign"].tolist() == [1, -1]  # where all have a sign it belongs to the number
    (folder / "nodes.csv").write_text("n,label\na,01;2\nb,1;3\nc,1\n")
    assert read_folder(folder).class_names == ("01", "2", "1", "3")
    (folder / "nodes.csv").write_text("n,x\na,007\nb,7\nc,8\n")
    with pytest.raises(ValueError, match=r"nodes\.csv, line 2: column 'x' must hold numbers, got '007'"):
        read_folder(folder, labels=False)
    (folder / "nodes.csv").write_text("n,x\na,0.5\nb,7\nc,-1e3\n")
    assert read_folder(folder, labels=False).graph.ndata["feat"].flatten().tolist() == [0.5, 7, -1000]


# -------------------------------------------------------------------------------------------- dates and truth values


@given(
    stamps=st.lists(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)), min_size=1),
    whole=st.booleans(),
)
def test_dates_are_seconds(
    tmp_path_factory: pytest.TempPathFactory, stamps: list[datetime.datetime], whole: bool
) -> None:
    stamps = [stamp.replace(microsecond=0 if whole else stamp.microsecond // 1000 * 1000) for stamp in stamps]
    folder = fresh(tmp_path_factory)
    lines = [f"{at},{at + 1},{stamp.isoformat()}" for at, stamp in enumerate(stamps)]
    (folder / "edges.csv").write_text("\n".join(["src,dst,time", *lines]))
    wanted = [stamp.replace(tzinfo=datetime.UTC).timestamp() for stamp in stamps]
    built = build_graph(folder / "edges.csv", folder / "g", **QUIET)
    listed = read_edge_list(folder / "edges.csv", header=True)
    (folder / "g").rename(folder / "nowhere")
    for graph in (built, listed, read_folder(folder, labels=False).graph):
        assert graph.edata["time"].tolist() == pytest.approx(wanted, abs=1e-6, rel=0)
        exact = all(stamp.microsecond == 0 for stamp in stamps)
        assert graph.edata["time"].dtype == (torch.int64 if exact else torch.float64)
    import shutil

    shutil.rmtree(folder / "nowhere")


def test_dates_have_zones_and_are_times_of_samplers(tmp_path: Path) -> None:
    edges = "src,dst,time\nann,eve,2021-03-01\nbob,eve,2019-01-01T02:00:00+02:00\ncid,eve,2022-05-05 00:00:00Z\n"
    graph = read(tmp_path, edges_csv=edges).graph
    seconds = [np.datetime64(day, "s").astype(int) for day in ("2021-03-01", "2019-01-01", "2022-05-05")]
    assert graph.edata["time"].tolist() == seconds
    batch = TemporalNeighborSampler(graph, [-1])([1], times=[seconds[1]])
    assert batch.flows[0].parent_eid.tolist() == [1]


def test_dates_of_nodes_are_a_column_of_their_own(tmp_path: Path) -> None:
    nodes = "id,born,x\nb,1970-01-02,1\na,1970-01-01T00:00:00.5,2\n"
    data = read(tmp_path, edges_csv="src,dst\na,b\n", nodes_csv=nodes)
    assert (data.feature_names, data.graph.ndata["feat"].tolist()) == (("x",), [[1], [2]])
    assert data.graph.ndata["born"].tolist() == [86400, 0.5]


def test_a_word_beside_dates_is_refused(tmp_path: Path) -> None:
    edges = "src,dst,when\na,b,2021-03-01\nb,c,unknown\n"
    with pytest.raises(ValueError, match=r"edges\.csv, line 3: 'unknown' is no date, but the column holds dates"):
        read(tmp_path, edges_csv=edges)
    with pytest.raises(ValueError, match=r"line 3: column 'when' must hold dates, got 'unknown'"):
        build_graph(tmp_path / "text" / "edges.csv", tmp_path / "g", named=True, **QUIET)
    # no date of the calendar: a code that looks like one
    assert read(tmp_path, edges_csv="src,dst,when\na,b,2021-13-45\n").category_names["when"] == ("2021-13-45",)


@pytest.mark.parametrize("words", [["True", "False", "True"], ["false", "FALSE", "true"]])
def test_true_and_false_are_not_turned_round(tmp_path: Path, words: list[str]) -> None:
    lines = [f"{at},{at + 1},{word}" for at, word in enumerate(words)]
    wanted = [word.lower() == "true" for word in words]
    graph = read(tmp_path, edges_csv="\n".join(["src,dst,fraud", *lines])).graph
    assert graph.edata["fraud"].tolist() == wanted
    file = tmp_path / "text" / "edges.csv"
    assert read_edge_list(file, header=True).edata["fraud"].tolist() == wanted
    assert build_graph(file, tmp_path / "g", **QUIET).edata["fraud"].tolist() == wanted


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
