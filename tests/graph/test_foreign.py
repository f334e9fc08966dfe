"""What users of other libraries try first: one edge_index, sparse matrices, data frames, names in
place of ids.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas
import pytest
import torch

from nodeflow import Frame, Graph, NeighborSampler
from nodeflow.graph import NodeNames


def test_columns_of_data_frames():
    series = pandas.Series
    table = pandas.DataFrame
    columns = table({"w": series([0.5, 1.5]), "kind": series(np.array([3, 4], np.int32))})
    graph = Graph.from_edges(
        series([0, 1]), series([1, 2]), edata=columns, ndata=table({"x": series([1, 2, 3])})
    )
    assert [end.tolist() for end in graph.edges()] == [[0, 1], [1, 2]]
    assert graph.edata["w"].tolist() == [0.5, 1.5]
    assert (graph.edata["w"].dtype, graph.edata["kind"].dtype) == (torch.float64, torch.int32)
    assert graph.ndata["x"].tolist() == [1, 2, 3]
    graph.edata.update(table({"w": series([2.0, 3.0])}))
    assert graph.edata["w"].tolist() == [2, 3]
    assert NeighborSampler(graph, [1])(series([2])).seeds.tolist() == [2]


def test_rows_of_a_series_are_taken_in_their_order():
    series = pandas.Series([1, 2, 3], index=[2, 0, 1])
    assert Frame(3, {"x": series})["x"].tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="fill missing entries"):
        Frame(3, {"x": pandas.Series([1, None, 3], dtype="object")})


@pytest.mark.parametrize("named", [list, np.array, pandas.Series])
def test_names_of_nodes(named):
    graph, names = Graph.from_named_edges(named(["b", "a", "c", "b"]), named(["a", "c", "b", "a"]))
    assert list(names) == ["b", "a", "c"]
    assert [end.tolist() for end in graph.edges()] == [[0, 1, 2, 0], [1, 2, 0, 1]]
    assert names.ids(named(["c", "b", "c"])).tolist() == [2, 0, 2]
    assert names.at(torch.tensor([2, 0])) == ["c", "b"]
    assert (names[-1], names[:2], names.index("a"), len(names), "c" in names, "d" in names, [] in names) == (
        "c", ("b", "a"), 1, 3, True, False, False,
    )  # fmt: skip
    for same in (pickle.loads(pickle.dumps(names)), copy.deepcopy(names)):
        assert list(same) == list(names)
        assert same.ids(["c"]).tolist() == [2]
    assert repr(NodeNames(["a", "b", "c", "d"])) == "NodeNames(4: 'a', 'b', 'c', ...)"


def test_names_in_an_order_of_ones_own():
    graph, names = Graph.from_named_edges([10**15, 7], [7, 7], names=[7, 5, 10**15])
    assert (graph.num_nodes, [end.tolist() for end in graph.edges()]) == (3, [[2, 0], [0, 0]])
    assert names.ids(torch.tensor([5])).tolist() == [1]
    none, no_names = Graph.from_named_edges([], [])
    assert (none.num_nodes, len(no_names), no_names.ids([]).tolist(), no_names.at([])) == (
        0,
        0,
        [],
        [],
    )
