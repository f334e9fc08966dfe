"""igraph: ids, attributes, undirected graphs."""

from __future__ import annotations

import sys

import pytest
from _support.conversions import assert_same_graph, ends, filled, types
from hypothesis import given

from nodeflow import ALL
from nodeflow.convert import from_igraph, to_igraph
from nodeflow.graph import NodeNames
from nodeflow.testing import graphs

igraph = pytest.importorskip("igraph", reason="igraph is not installed")


@given(graphs(min_nodes=1))
def test_igraph_and_back_is_the_same_graph(graph):
    made = to_igraph(filled(graph), node_columns=ALL, edge_columns=ALL)
    assert (made.vcount(), made.ecount(), made.is_directed()) == (
        graph.num_nodes,
        graph.num_edges,
        True,
    )
    assert made.get_edgelist() == list(zip(*ends(graph), strict=True))
    if graph.num_edges == 0:  # without rows, a list does not tell how wide its rows were
        graph.edata.pop("edge_attr")
    back = from_igraph(made, node_columns=types(graph.ndata), edge_columns=types(graph.edata))
    assert_same_graph(back, graph)


def test_undirected_edges_become_two_next_to_each_other():
    made = igraph.Graph(4, [(0, 1), (2, 2), (1, 0), (3, 1)], edge_attrs={"w": [0.5, 1.5, 2.5, 3.5]})
    graph = from_igraph(made, edge_columns=["w"])
    assert ends(graph) == [[0, 1, 2, 0, 1, 1, 3], [1, 0, 2, 1, 0, 3, 1]]
    assert graph.edata["w"].tolist() == [0.5, 0.5, 1.5, 2.5, 2.5, 3.5, 3.5]
    assert ends(from_igraph(igraph.Graph())) == [[], []]


def test_names_of_vertices():
    made = igraph.Graph.TupleList([("ann", "bob"), ("cid", "ann")], directed=True)
    graph = from_igraph(made)
    names = NodeNames(made.vs["name"])
    assert [names.at(end) for end in graph.edges()] == [["ann", "cid"], ["bob", "ann"]]


def test_igraph_may_be_missing(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(ImportError, match=r"pip install igraph$"):
        to_igraph(graph)
