"""Graphs of several node types and relations: ids, columns of their own, files, pickles, errors
that name a type.
"""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.graphs import html
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, convert, transform
from nodeflow.graph import Schema
from nodeflow.testing import typed_graphs

WRITES = ("author", "writes", "paper")
CITES = ("paper", "cites", "paper")
REVIEWS = ("author", "reviews", "paper")


def typed(**options: Any) -> Graph:
    return Graph.typed(
        {
            "author": {"age": torch.arange(3)},
            "venue": 0,
            "paper": {"x": torch.ones(4, 2), "age": torch.ones(4, 1)},
        },
        {
            WRITES: ([0, 1, 2, 2], [0, 0, 1, 3], {"share": torch.arange(4.0)}),
            CITES: torch.tensor([[0, 1, 1], [1, 1, 2]]),
            REVIEWS: ([], []),
        },
        **options,
    )


def same(one: Graph, other: Graph) -> None:
    assert one.schema == other.schema
    assert all(map(torch.equal, one.edges(), other.edges()))
    for parts, others in ((one.nodes, other.nodes), (one.relations, other.relations)):
        assert list(parts) == list(others)
        for name, part in parts.items():
            assert part.ids == others[name].ids
            assert part.data.keys() == others[name].data.keys()
            assert all(
                torch.equal(column, others[name].data[key]) for key, column in part.data.items()
            )


def test_types_are_ranges_of_one_id_space():
    graph = typed()
    assert (graph.num_nodes, graph.num_edges) == (7, 7)
    assert {name: part.ids for name, part in graph.nodes.items()} == {
        "author": range(3), "venue": range(3, 3), "paper": range(3, 7)
    }  # fmt: skip
    assert [part.ids for part in graph.relations.values()] == [range(4), range(4, 7), range(7, 7)]
    src, dst = graph.edges()
    assert src.tolist() == [0, 1, 2, 2, 3, 4, 4]
    assert dst.tolist() == [3, 3, 4, 6, 4, 4, 5]
    papers = graph.nodes["paper"]
    writes = graph.relations["writes"]
    assert papers.to_graph([3, 0]).tolist() == [6, 3]
    assert papers.to_local(torch.tensor([5, 3])).tolist() == [2, 0]
    assert writes.data["share"].tolist() == [0, 1, 2, 3]
    assert (papers.data["age"].shape, graph.nodes["author"].data["age"].shape) == ((4, 1), (3,))
    assert len(graph.nodes["venue"]) == 0
    assert (list(graph.ndata), list(graph.edata)) == ([], [])


def test_reverse_relations_have_the_same_edges_and_columns():
    graph = typed(reverse=True)
    assert list(graph.schema.relations) == [
        WRITES, CITES, REVIEWS, ("paper", "rev_writes", "author"), ("paper", "rev_cites", "paper"),
        ("paper", "rev_reviews", "author"),
    ]  # fmt: skip
    src, dst = graph.find_edges(list(graph.relations["writes"].ids))
    back = graph.find_edges(list(graph.relations["rev_writes"].ids))
    assert torch.equal(src, back[1])
    assert torch.equal(dst, back[0])
    assert (
        graph.relations["rev_writes"].data["share"].data_ptr()
        == graph.relations["writes"].data["share"].data_ptr()
    )


def test_the_frame_of_the_only_type_is_that_of_the_graph(tmp_path):
    graph = Graph.typed(
        {"v": {"x": torch.ones(3)}}, {("v", "e", "v"): ([0], [1], {"w": torch.ones(1)})}
    )
    graph.save(tmp_path / "graph")
    for each in (
        graph,
        Graph.open(tmp_path / "graph"),
        pickle.loads(pickle.dumps(graph)),
        copy.deepcopy(graph),
    ):
        assert each.nodes["v"].data is each.ndata
        assert each.relations["e"].data is each.edata
        assert (each.ndata["x"].tolist(), each.edata["w"].tolist()) == ([1, 1, 1], [1])
    same(graph, Graph.open(tmp_path / "graph"))


def test_sizes_of_types_are_shown():
    graph = typed()
    words = (
        "7 nodes (author 3, venue 0, paper 4), 7 edges (author writes paper 4, paper cites paper "
        "3, author reviews"
    )
    assert words in repr(graph)
    assert words in html(graph)
    assert "author writes paper</td>" in html(graph.schema)
    assert "4 edges" in html(graph.schema)
    assert repr(graph.schema).startswith(
        "Schema(author 3, venue 0, paper 4; author -writes-> paper 4, "
    )
    assert repr(graph.nodes).startswith(
        "[OfType('author': ids 0 to 2, columns age), OfType('venue': empty), "
    )
    assert graph.schema != "a schema"
    assert {graph.schema: 1}[typed().schema] == 1
    assert repr(graph.nodes["paper"]) == "OfType('paper': ids 3 to 6, columns x, age)"
    layer = FullSampler(graph, 1)([3]).layers[0]
    assert repr(layer) == "Layer(3 nodes (author 2, venue 0, paper 1))"
    assert repr(Graph.from_edges([0], [1])) == "Graph(2 nodes, 1 edges)"


def test_a_graph_without_types_has_one_of_each():
    graph = Graph.from_edges([0, 1], [1, 2], ndata={"x": torch.ones(3)})
    assert (
        graph.schema
        == Schema({"node": 3}, {("node", "edge", "node"): 2})
        == Schema.of_one_type(3, 2)
    )
    assert graph.nodes["node"].data is graph.ndata
    assert graph.relations["edge"].data is graph.edata
    other = pickle.loads(pickle.dumps(graph))
    assert other.nodes["node"].data is other.ndata
    assert copy.deepcopy(graph).nodes["node"].data is not graph.ndata


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "folder"])
def test_types_travel(way, tmp_path):
    graph = typed(reverse=True)
    graph.ndata["all"] = torch.arange(7)
    if way == "folder":
        graph.save(tmp_path / "graph")
        other = Graph.open(tmp_path / "graph", verify=True)
    else:
        other = pickle.loads(pickle.dumps(graph)) if way == "pickle" else copy.deepcopy(graph)
    same(graph, other)
    assert torch.equal(other.ndata["all"], graph.ndata["all"])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"nodes": [["a", 7]], "relations": []},
        {"nodes": [["a", 7], ["a", 0]], "relations": [["a", "r", "a", 7]]},
        {"nodes": [["a", 7]], "relations": [["a", "r", "b", 7]]},
        {"nodes": [["a", "7"]], "relations": [["a", "r", "a", 7]]},
    ],
)
def test_a_wrong_schema_in_a_folder_is_named(schema, tmp_path):
    folder = tmp_path / "graph"
    typed().save(folder)
    words = json.loads((folder / "manifest.json").read_text())
    words.pop("checksum", None)
    words["facts"]["schema"] = schema
    (folder / "manifest.json").write_text(json.dumps(words))
    with pytest.raises(ValueError, match=f"{folder} is damaged: its manifest has"):
        Graph.open(folder)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.data())
def test_types_of_ids(sizes, data):
    names = [f"t{i}" for i in range(len(sizes))]
    ends = data.draw(
        st.lists(
            st.tuples(st.sampled_from(names), st.sampled_from(names), st.integers(0, 3)),
            max_size=50,
        )
    )
    schema = Schema(
        dict(zip(names, sizes, strict=True)),
        {(a, f"r{i}", b): n for i, (a, b, n) in enumerate(ends)},
    )
    types = [i for i, size in enumerate(sizes) for _ in range(size)]
    assert schema.types_of(torch.arange(schema.num_nodes).numpy()).tolist() == types
    relations = [i for i, (_, _, n) in enumerate(ends) for _ in range(n)]
    assert schema.relations_of(torch.arange(schema.num_edges).numpy()).tolist() == relations
    assert pickle.loads(pickle.dumps(schema)) == schema
    for i, name in enumerate(names):
        assert schema.ids(name) == range(sum(sizes[:i]), sum(sizes[: i + 1]))
        assert list(schema.entering(name)) == [r for r in schema.relations if r[2] == name]
        assert list(schema.leaving(name)) == [r for r in schema.relations if r[0] == name]


@pytest.mark.parametrize(
    "lose",
    [
        transform.add_self_loops,
        convert.to_edge_table,
        convert.to_node_table,
        lambda graph: convert.to_networkx(graph),
        lambda graph: convert.to_networkx(FullSampler(graph, 1)([3])),
    ],
)
def test_what_would_lose_types_is_refused(lose):
    with pytest.raises(
        TypeError,
        match="takes graphs of one node type and one relation, this one has 3 and 3: Schema",
    ):
        lose(typed())
    plain = typed()
    # what the message says
    plain = Graph(plain.indptr, plain.indices, edge_ids=plain.stored_edge_ids)
    assert transform.reverse(plain).num_edges == 7


@given(typed_graphs(), st.data())
def test_parts_of_a_graph_keep_its_types(graph, data):
    for part in (*graph.nodes.values(), *graph.relations.values()):
        part.data["place"] = torch.arange(len(part))
    kept = np.array(
        data.draw(st.lists(st.booleans(), min_size=graph.num_edges, max_size=graph.num_edges)), bool
    )
    nodes = sorted(
        data.draw(
            st.sets(st.sampled_from(range(graph.num_nodes))) if graph.num_nodes else st.just(set())
        )
    )
    order = torch.cat([torch.tensor(ids).flip(0).long() for ids in graph.schema.nodes.values()])
    for part in (
        transform.filter_edges(graph, kept),
        transform.subgraph(graph, nodes),
        transform.reorder(graph, order),
    ):
        of_nodes = (
            part.ndata["parent_nid"]
            if "parent_nid" in part.ndata
            else torch.arange(graph.num_nodes)
        )
        of_edges = (
            part.edata["parent_eid"]
            if "parent_eid" in part.edata
            else torch.arange(graph.num_edges)
        )
        for name, of_type in part.nodes.items():
            whole = graph.nodes[name].to_local(of_nodes[of_type.ids.start : of_type.ids.stop])
            assert torch.equal(of_type.data["place"], whole)
        for name, edges in part.relations.items():
            whole = graph.relations[name].to_local(of_edges[edges.ids.start : edges.ids.stop])
            assert torch.equal(edges.data["place"], whole)
        if part.num_edges == graph.num_edges and len(part.relations) > 1:
            rows = zip(part.relations.values(), graph.relations.values(), strict=True)
            assert all(
                new.data["place"].data_ptr() == old.data["place"].data_ptr() for new, old in rows
            )
        ends = (of_nodes[end] for end in part.edges())
        assert all(
            torch.equal(end, old[of_edges]) for end, old in zip(ends, graph.edges(), strict=True)
        )


def test_types_in_another_order_are_refused():
    graph = typed()
    with pytest.raises(
        ValueError, match="nodes must come type after type, 'author', 'venue', 'paper'"
    ):
        transform.subgraph(graph, [graph.num_nodes - 1, 0])
    assert list(transform.subgraph(Graph.typed({"v": 3}, {}), [2, 0]).schema.nodes) == ["v"]


def test_a_sparse_column_says_how_many_nodes_there_are():
    graph = Graph.typed({"a": {"x": scipy.sparse.eye_array(3, 5, format="csr")}}, {})
    assert (graph.num_nodes, graph.nodes["a"].data["x"].shape) == (3, (3, 5))


@given(typed_graphs())
def test_reverses_are_relations_of_their_own(graph):
    for part in (*graph.nodes.values(), *graph.relations.values()):
        part.data["place"] = torch.arange(len(part))
    graph.edata["id"] = torch.arange(graph.num_edges)
    if not graph.schema.has_several:
        return
    turned = transform.reverse(graph)
    both = transform.add_reverse_edges(graph, mark="added")
    assert list(turned.relations) == [(b, f"rev_{name}", a) for a, name, b in graph.relations]
    assert all(
        torch.equal(new, old) for new, old in zip(turned.edges(), graph.edges()[::-1], strict=True)
    )
    assert both.edata["added"].tolist() == [0] * graph.num_edges + [1] * (
        both.num_edges - graph.num_edges
    )
    assert list(both.relations)[: len(graph.relations)] == list(graph.relations)
    assert set(both.relations) == {*graph.relations, *turned.relations}
    origin = both.edata["id"][graph.num_edges :]
    for new, old in zip(
        (end[graph.num_edges :] for end in both.edges()), graph.edges()[::-1], strict=True
    ):
        assert torch.equal(new, old[origin])
    for name, part in graph.relations.items():
        back = name[2], f"rev_{name[1]}", name[0]
        for made in (turned.relations[back], both.relations[back], both.relations[name]):
            assert torch.equal(made.data["place"], part.data["place"])
    for name, part in graph.nodes.items():
        assert torch.equal(both.nodes[name].data["place"], part.data["place"])
    # a relation that has a reverse gets no other one
    assert transform.add_reverse_edges(both).schema == both.schema
    with pytest.raises(ValueError, match="the graph has an edge column 'added' already"):
        transform.add_reverse_edges(both, mark="added")
