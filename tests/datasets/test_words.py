"""A word is its own name: what readers make of ids, categories, labels, numbers, dates and truth
values.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import pytest
import torch
from _support.text_folders import ends, folder_of, fresh, read
from hypothesis import given, strategies as st

from nodeflow import TemporalNeighborSampler
from nodeflow.datasets import build_graph, node_names, read_edge_list, read_folder

QUIET: dict[str, Any] = {"progress": False, "overwrite": True}
DIGITS = st.from_regex(r"[+-]?[0-9]{1,4}", fullmatch=True)


def is_plain(word: str) -> bool:
    return str(int(word)) == word


# -----------------------------------------------------------------------------------------------------
# ids and names


@given(pairs=st.lists(st.tuples(DIGITS, DIGITS, DIGITS), min_size=1, max_size=6))
def test_words_of_digits_are_integers_only_if_all_are_written_so(tmp_path_factory, pairs):
    folder = fresh(tmp_path_factory)
    (folder / "train.tsv").write_text(
        "".join(f"{src}\t{relation}\t{dst}\n" for src, relation, dst in pairs)
    )
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
    numbers = data.graph.edata["relation"].tolist()
    names = data.relation_names
    relations = [pair[1] for pair in pairs]
    if all(map(is_plain, relations)):
        assert (numbers, names) == (list(map(int, relations)), None)
    else:
        assert names is not None
        assert [names[number] for number in numbers] == relations


def test_names_that_are_no_numbers_may_be_written_in_two_ways(tmp_path):
    data = read(tmp_path, edges_csv="src,dst\nnan,ann\n1.5,1.50\n")
    assert data.node_names == ("nan", "ann", "1.5", "1.50")


UNCLEAR = {
    "looks like a time": [
        *(
            "03/01/2021",
            "3.1.2021",
            "2021/03/01",
            "01-03-2021 10:00",
            "2021-03",
            "12:30",
            "1:02:03.5",
        ),
        *(
            "2023-01-01 00:00:00 UTC",
            "2021-3-1",
            "2021-03-01 12:00:00 +0000",
            "2021-03-01 24:00:00",
            "01/03/21",
        ),
        *(
            "1-Mar-2021",
            "Mon Mar 01 12:00:00 2021",
            "20210301T120000",
            "2021-W09-1",
            "2021Q1",
            "12:30 PM",
        ),
        "2021-03-01T12:00:00.0000009Z",
    ],
    "looks like a number": [
        "1,000",
        "-12,345,678.9",
        "1,5",
        "1.000,5",
        "1 000",
        "1'000",
        "5%",
        "$5",
        "1,234.50 €",
    ],
    "looks like a missing entry among numbers": ["NA", "n/a", "null", "None", "?", "-"],
}


@pytest.mark.parametrize(
    ("why", "word"), [(why, word) for why, words in UNCLEAR.items() for word in words]
)
def test_words_that_would_be_categories_by_mistake_are_refused(why, word, tmp_path):
    with pytest.raises(
        ValueError, match=rf"line 3: {re.escape(repr(word))} {why}; .*, or leave the column out"
    ):
        read(tmp_path, edges_csv=f'src,dst,c\na,b,1\nb,a,"{word}"\n')


@pytest.mark.parametrize("other", ["0.5", "nan", "1e3"])
def test_integers_that_a_decimal_beside_them_would_round_are_refused(other, tmp_path):
    large = 2**53 + 1
    with pytest.raises(
        ValueError,
        match=rf"line 3: '{large}' would be rounded, because others of its column are no integers",
    ):
        read(tmp_path, edges_csv=f"src,dst,t\na,b,{other}\nb,a,{large}\n")
    assert (
        read(tmp_path, edges_csv=f"src,dst,t\na,b,{other}\nb,a,{large - 1}\n").graph.edata["t"][1]
        == large - 1
    )


def test_words_that_only_remind_of_numbers_are_categories(tmp_path):
    words = (
        "NA",
        "1.2.3",
        "7-1",
        "a,b",
        "10:4:2:1",
        "n=3",
        "-",
        "2021-003",
        "192.168.100.200",
        "Monkey 2000",
        "12 Main 1000",
    )
    data = read(tmp_path, edges_csv="src,dst,c\n" + "".join(f'a,b,"{word}"\n' for word in words))
    assert data.category_names["c"] == words


@pytest.mark.parametrize("word", ["007", "00", "+4", "-0"])
@pytest.mark.parametrize("line", ["3 {} 1", "{} 3 1"])
def test_lists_of_numbers_take_no_other_spelling(tmp_path, word, line):
    (tmp_path / "e.txt").write_text("0 1 1\n" + line.format(word) + "\n")
    for read_it in (read_edge_list, lambda file: build_graph(file, tmp_path / "g", **QUIET)):
        with pytest.raises(
            ValueError,
            match=rf"line 2: (src|dst) must be an integer from 0, got '{word}'".replace("+", r"\+"),
        ):
            read_it(tmp_path / "e.txt")


def test_values_of_lists_keep_their_zeros_or_are_refused(tmp_path):
    (tmp_path / "e.csv").write_text("0,1,+1,-0.5,1e-05\n1,2,-1,0.25,0\n")
    columns = read_edge_list(tmp_path / "e.csv").edata
    assert {name: column.tolist() for name, column in columns.items()} == {
        "c2": [1, -1], "c3": [-0.5, 0.25], "c4": [1e-05, 0]
    }  # fmt: skip


def test_names_keep_their_zeros_in_all_files(tmp_path):
    text = "src,dst\n007,7\n7,08\n+7,007\n"
    names = ["007", "7", "08", "+7"]
    folder = folder_of(tmp_path, edges_csv=text)
    assert read_folder(folder, labels=False).node_names == tuple(names)
    build_graph(folder / "edges.csv", tmp_path / "g", named=True, **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == names


def test_a_number_and_its_float_are_not_two_nodes(tmp_path):
    # with a letter anywhere they are names, such as versions
    data = read(tmp_path, edges_csv="src,dst\n1,2.0\n2,3.0-rc\n")
    assert data.node_names == ("1", "2.0", "2", "3.0-rc")


def test_labels_and_categories_keep_their_zeros(tmp_path):
    edges = "src,dst,zip,sign\na,b,01001,+1\nb,c,1001,-1\n"
    folder = folder_of(tmp_path, edges_csv=edges, nodes_csv="n,label\na,01001\nb,1001\nc,+1\n")
    data = read_folder(folder)
    assert (data.class_names, data.graph.ndata["label"].tolist()) == (
        ("01001", "1001", "+1"),
        [0, 1, 2],
    )
    assert (data.category_names["zip"], data.graph.edata["zip"].tolist()) == (
        ("01001", "1001"),
        [0, 1],
    )
    # where all have a sign it belongs to the number
    assert data.graph.edata["sign"].tolist() == [1, -1]
    (folder / "nodes.csv").write_text("n,label\na,01;2\nb,1;3\nc,1\n")
    assert read_folder(folder).class_names == ("01", "2", "1", "3")
    (folder / "nodes.csv").write_text("n,x\na,0.5\nb,7\nc,-1e3\n")
    assert read_folder(folder, labels=False).graph.ndata["feat"].flatten().tolist() == [
        0.5,
        7,
        -1000,
    ]


# -------------------------------------------------------------------------------------------- dates
# and truth values


@given(
    stamps=st.lists(
        st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)), min_size=1
    ),
    whole=st.booleans(),
)
def test_dates_are_seconds(tmp_path_factory, stamps, whole):
    stamps = [
        stamp.replace(microsecond=0 if whole else stamp.microsecond // 1000 * 1000)
        for stamp in stamps
    ]
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


def test_dates_have_zones_and_are_times_of_samplers(tmp_path):
    edges = (
        "src,dst,time\nann,eve,2021-03-01\nbob,eve,2019-01-01T02:00:00+02:00\ncid,eve,2022-05-05 "
        "00:00:00Z\n"
    )
    graph = read(tmp_path, edges_csv=edges).graph
    seconds = [
        np.datetime64(day, "s").astype(int) for day in ("2021-03-01", "2019-01-01", "2022-05-05")
    ]
    assert graph.edata["time"].tolist() == seconds
    batch = TemporalNeighborSampler(graph, [-1])([1], times=[seconds[1]])
    assert batch.flows[0].parent_eid.tolist() == [1]


def test_dates_of_nodes_are_a_column_of_their_own(tmp_path):
    nodes = "id,born,x\nb,1970-01-02,1\na,1970-01-01T00:00:00.5,2\n"
    data = read(tmp_path, edges_csv="src,dst\na,b\n", nodes_csv=nodes)
    assert (data.feature_names, data.graph.ndata["feat"].tolist()) == (("x",), [[1], [2]])
    assert data.graph.ndata["born"].tolist() == [86400, 0.5]


@pytest.mark.parametrize("words", [["True", "False", "True"], ["false", "FALSE", "true"]])
def test_true_and_false_are_not_turned_round(tmp_path, words):
    lines = [f"{at},{at + 1},{word}" for at, word in enumerate(words)]
    wanted = [word.lower() == "true" for word in words]
    graph = read(tmp_path, edges_csv="\n".join(["src,dst,fraud", *lines])).graph
    assert graph.edata["fraud"].tolist() == wanted
    file = tmp_path / "text" / "edges.csv"
    assert read_edge_list(file, header=True).edata["fraud"].tolist() == wanted
    assert build_graph(file, tmp_path / "g", **QUIET).edata["fraud"].tolist() == wanted
