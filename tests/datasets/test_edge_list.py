"""read_edge_list: every way of writing a list, and what it says of a wrong one."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow.datasets import read_edge_list


def write(folder: Path, text: str, name: str = "edges.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


IDS = st.integers(0, 30)
FLOATS = st.floats(allow_nan=False)


@settings(deadline=None)  # the first call in a process may compile kernels
@given(
    edges=st.lists(st.tuples(IDS, IDS, st.integers(-(2**63), 2**63 - 1), FLOATS), min_size=1),
    delimiter=st.sampled_from([",", "\t", " ", ";", ", "]),
    newline=st.sampled_from(["\n", "\r\n", "\n\n", " # note\n"]),
    packed=st.booleans(),
    header=st.booleans(),
)
def test_what_was_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[tuple[int, int, int, float]],
    delimiter: str,
    newline: str,
    packed: bool,
    header: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / ("written.txt" + ".gz" * packed)
    rows = [delimiter.join(["src", "dst", "when", "how"])] if header else []
    rows += [delimiter.join([str(s), str(d), str(t), repr(w)]) for s, d, t, w in edges]
    text = ("# a comment\n" + newline.join(rows) + newline).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    columns = None if header else ("src", "dst", "when", "how")
    graph = read_edge_list(
        path, delimiter=";" if delimiter == ";" else None, columns=columns, header=header, num_nodes=31
    )
    src, dst = graph.edges()
    assert graph.num_nodes == 31
    assert src.tolist() == [edge[0] for edge in edges]
    assert dst.tolist() == [edge[1] for edge in edges]
    assert graph.edata["when"].tolist() == [edge[2] for edge in edges]
    assert graph.edata["how"].tolist() == [edge[3] for edge in edges]
    assert (graph.edata["when"].dtype, graph.edata["how"].dtype) == (torch.int64, torch.float64)


def test_real_list_goes_there_and_back(tmp_path: Path, real_folder) -> None:  # type: ignore[no-untyped-def]
    with np.load(real_folder("mathoverflow_temporal") / "edges.npz") as stored:
        table = np.stack([stored[name] for name in ("src", "dst", "time", "etype")], axis=1)[:50_000]
    path = tmp_path / "edges.tsv"
    np.savetxt(path, table, fmt="%d", delimiter="\t")
    graph = read_edge_list(path, columns=("src", "dst", "time", "etype"))
    assert torch.equal(torch.stack(graph.edges(), 1), torch.from_numpy(table[:, :2].astype(np.int64)))
    assert torch.equal(graph.edata["time"], torch.from_numpy(table[:, 2].astype(np.int64)))


def test_plain_list(tmp_path: Path) -> None:
    graph = read_edge_list(write(tmp_path, "# from to\n0 1\n\n5\t2  # why\n"))
    assert (graph.num_nodes, graph.num_edges, list(graph.edata)) == (6, 2, [])


def test_one_edge(tmp_path: Path) -> None:
    assert read_edge_list(write(tmp_path, "3,4")).num_edges == 1


def test_unnamed_columns_are_numbered(tmp_path: Path) -> None:
    graph = read_edge_list(write(tmp_path, "0,1,7,0.5\n"))
    assert {name: column.tolist() for name, column in graph.edata.items()} == {"c2": [7], "c3": [0.5]}


def test_columns_in_another_order_and_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, "x,9,0,4,one\ny,8,1,5,two\n")
    graph = read_edge_list(path, columns=("_", "time", "dst", "src", "_"))
    assert [ends.tolist() for ends in graph.edges()] == [[4, 5], [0, 1]]
    assert graph.edata["time"].tolist() == [9, 8]


def test_header_names_columns(tmp_path: Path) -> None:
    graph = read_edge_list(write(tmp_path, '"from","to","w"\n1,0,2\n'), header=True)
    assert [ends.tolist() for ends in graph.edges()] == [[1], [0]]
    assert list(graph.edata) == ["w"]
    graph = read_edge_list(write(tmp_path, "w,dst,src\n1,0,2\n"), header=True)
    assert [ends.tolist() for ends in graph.edges()] == [[2], [0]]


def test_column_that_begins_with_an_integer_and_goes_on_with_floats(tmp_path: Path) -> None:
    graph = read_edge_list(write(tmp_path, "0 1 1 2\n1 2 0.25 3\n"))
    assert graph.edata["c2"].tolist() == [1.0, 0.25]
    assert graph.edata["c3"].dtype == torch.int64


def test_lines_of_blanks_and_titles_of_any_kind(tmp_path: Path) -> None:
    path = write(tmp_path, "from,to,,weight (kg)\n0,1,3,0.5\n   \n  # note\n1,2,4,1.5\n")
    graph = read_edge_list(path, header=True)
    assert graph.edata[""].tolist() == [3, 4]
    assert graph.edata["weight (kg)"].tolist() == [0.5, 1.5]


def test_without_comments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1: src must be an integer from 0, got '#'"):
        read_edge_list(write(tmp_path, "# 1\n0 1\n"), comments=None)


@pytest.mark.parametrize("delimiter", ["", "::"])
def test_wrong_delimiter(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(ValueError, match="delimiter must be one character"):
        read_edge_list(write(tmp_path, "0 1\n"), delimiter=delimiter)


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("0,1\n", encoding="utf-8-sig")
    assert read_edge_list(path).num_edges == 1


def test_no_edges(tmp_path: Path) -> None:
    path = write(tmp_path, "# nothing\n")
    assert read_edge_list(path, num_nodes=3).num_nodes == 3
    with pytest.raises(ValueError, match=r"edges\.txt has no edges; pass num_nodes"):
        read_edge_list(path)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# c\n0 1\n\n1 2.0\n", 4, "dst must be an integer from 0, got '2.0'"),
        ("0,1\n-1,2\n", 2, "src must be an integer from 0, got '-1'"),
        ("0 1\nzero 2\n", 2, "src must be an integer from 0, got 'zero'"),
        ("0 1\n1 99999999999999999999\n", 2, "dst must be an integer from 0, got '99999999999999999999'"),
        ("0 1\n1 nan\n", 2, "dst must be an integer from 0, got 'nan'"),
        ("0 1\n1\n", 2, "expected 2 columns (src, dst), got 1"),
        ("0 1\n1 2 3\n", 2, "expected 2 columns (src, dst), got 3"),
        ("0,1\n,2\n", 2, "src must be an integer from 0, got ''"),
        ("from,to\n0,1\n", 1, "if the line names the columns, pass header=True"),
        ("0,1,3\n0,1,red\n", 2, "column 'c2' must hold numbers, got 'red'"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_wrong_line_is_named(tmp_path: Path, text: str, line: int, words: str, packed: bool) -> None:
    path = tmp_path / ("edges.csv" + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(ValueError, match=re.escape(f"{path}, line {line}: ") + ".*" + re.escape(words)):
        read_edge_list(path)


def test_id_beyond_num_nodes(tmp_path: Path) -> None:
    path = write(tmp_path, "0 1\n2 5\n")
    with pytest.raises(ValueError, match="line 2: dst must be an integer from 0 and below num_nodes, 5, got '5'"):
        read_edge_list(path, num_nodes=5)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.csv"):
        read_edge_list(tmp_path / "nowhere.csv")


def test_truncated_gz(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt.gz"
    whole = gzip.compress("\n".join(f"{i} {i * i}" for i in range(5000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"edges\.txt\.gz must be a text file.*cut short"):
        read_edge_list(path)


def test_not_a_gz_and_not_text(tmp_path: Path) -> None:
    for name in ("edges.gz", "edges.txt"):
        path = tmp_path / name
        path.write_bytes(b"\xff\xfe\x00\x01" * 8)
        with pytest.raises(ValueError, match=re.escape(name)):
            read_edge_list(path)


@pytest.mark.parametrize("columns", [("src", "time"), ("src", "dst", "dst"), ()])
def test_wrong_names(tmp_path: Path, columns: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="columns must hold 'src', 'dst' and further names"):
        read_edge_list(write(tmp_path, "0 1\n"), columns=columns)


def test_names_in_one_string(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="columns must be a sequence of names"):
        read_edge_list(write(tmp_path, "0 1\n"), columns="src dst")


def test_too_few_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1: expected 2 columns"):
        read_edge_list(write(tmp_path, "0 1 2\n"), columns=("src", "dst"))


def test_first_two_titles_do_not_matter(tmp_path: Path) -> None:
    assert list(read_edge_list(write(tmp_path, "id,id,b\n0,1,2\n"), header=True).edata) == ["b"]


@pytest.mark.parametrize("header", ["a,b,c,c", "a"])
def test_wrong_header(tmp_path: Path, header: str) -> None:
    with pytest.raises(ValueError, match="line 1: the header must name two or more columns, each once"):
        read_edge_list(write(tmp_path, f"{header}\n0,1,2\n"), header=True)
