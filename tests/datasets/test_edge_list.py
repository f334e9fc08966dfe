"""read_edge_list: ways of writing a list, and wrong ones. ``tests/datasets`` reads random lists
with it too.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import torch

from nodeflow import Graph
from nodeflow.datasets import read_edge_list


def write(folder: Path, text: str, name: str = "edges.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


WAYS = {
    "'# from to\\n0 1\\n\\n5\\t2  # why\\n'": "[[0, 5], [1, 2]], {}",
    "'3,4'": "[[3], [4]], {}",
    "'\\ufeff0,1\\n'": "[[0], [1]], {}",
    "'0,1,7,0.5\\n'": "[[0], [1]], {'c2': [7], 'c3': [0.5]}",
    "'0 1 1 2\\n1 2 0.25 3\\n'": "[[0, 1], [1, 2]], {'c2': [1.0, 0.25], 'c3': [2, 3]}",
    ("'x,9,0,4,one\\ny,8,1,5,two\\n', columns=('_', 'time', 'dst', 'src', '_')"): (
        "[[4, 5], [0, 1]], {'time': [9, 8]}"
    ),
    '\'"from","to","w"\\n1,0,2\\n\', header=True': "[[1], [0]], {'w': [2]}",
    "'w,dst,src\\n1,0,2\\n', header=True": "[[2], [0]], {'w': [1]}",
    "'id,id\\n0,1\\n', header=True": "[[0], [1]], {}",
    ("'from,to,,weight (kg)\\n0,1,3,0.5\\n   \\n  # note\\n1,2,4,1.5\\n', header=True"): (
        "[[0, 1], [1, 2]], {'': [3, 4], 'weight (kg)': [0.5, 1.5]}"
    ),
    "'# nothing\\n', num_nodes=3": "[[], []], {}",
}
"""Texts with options, and the ends and columns that they say."""


@pytest.mark.parametrize(("arguments", "expected"), WAYS.items())
def test_ways_to_write_a_list(tmp_path, arguments, expected):
    def listed(text: str, **options: Any) -> tuple[Graph, dict[str, Any]]:
        return read_edge_list(write(tmp_path, text), **options), options

    graph, options = eval(f"listed({arguments})", {"listed": listed})
    ends, columns = eval(expected)
    assert [end.tolist() for end in graph.edges()] == ends
    largest = max(map(max, zip(*ends, strict=True)), default=0)
    assert graph.num_nodes == options.get("num_nodes", largest + 1)
    assert {name: column.tolist() for name, column in graph.edata.items()} == columns
    for name, values in columns.items():
        kind = torch.int64 if isinstance(values[0], int) else torch.float64
        assert graph.edata[name].dtype == kind


def test_files_that_hold_no_list(tmp_path):
    whole = gzip.compress("\n".join(f"{i} {i * i}" for i in range(5000)).encode())
    other = b"\xff\xfe\x00\x01" * 8
    for name, content, words in (
        ("cut.txt.gz", whole[: len(whole) // 2], r"cut\.txt\.gz must be a text file.*cut short"),
        ("edges.gz", other, r"edges\.gz"),
        ("edges.txt", other, r"edges\.txt"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=words):
            read_edge_list(tmp_path / name)
