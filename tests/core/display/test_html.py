"""What notebooks show: escaped, bounded, well-formed, and without reading anything that is far
away.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from _support.sampler_families import FAMILIES, graph_of_all
from hypothesis import given, strategies as st

from nodeflow import (
    ControlVariateSampler,
    Frame,
    Graph,
    History,
    NeighborSampler,
    create_node_flow,
    flow_from_edges,
    testing,
)
from nodeflow._core.display import html

MOST = 16_000  # letters that anything may show


class Far:
    """Rows that must not be fetched."""

    shape = (60, 1000, 3)
    dtype = torch.float16

    def fetch(self, ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        raise AssertionError("rows were fetched")


def shown(thing: Any) -> ElementTree.Element:
    """The HTML of an object, which must be well-formed and short, and set no background."""
    text = thing._repr_html_()
    assert len(text) < MOST
    assert "background" not in text
    return ElementTree.fromstring(text.replace("…", "."))


def words(thing: Any) -> str:
    return " ".join(shown(thing).itertext())


def cells(thing: Any) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in shown(thing).iter("tr")][1:]


def test_a_graph_shows_its_columns():
    graph = Graph.from_edges([0, 1], [1, 0], edata={"w": torch.tensor([0.5, -1.25])})
    graph.ndata["x"] = torch.arange(12).view(2, 6)
    graph.ndata["s"] = torch.eye(2).to_sparse_csr()
    assert words(graph).startswith("Graph")
    assert cells(graph) == [
        ["nodes", "x", "int64", "2 × 6", "96 B", "[0 1 2 3 .], [6 7 8 9 .]"],
        ["nodes", "s", "sparse float32", "2 × 2", "48 B", "2 entries"],
        ["edges", "w", "float32", "2", "8 B", "0.5, -1.25"],
    ]


def test_rows_that_are_fetched_are_not_fetched():
    graph = graph_of_all()
    graph.ndata["far"] = Far()
    assert ["nodes", "far", "float16", "60 × 1,000 × 3", "360 kB", "fetched by Far"] in cells(graph)
    shown(NeighborSampler(graph, [2]))


def test_names_are_escaped_and_cut_off():
    evil = '<script>alert("x")</script> & more'
    frame = Frame(1, {evil: torch.zeros(1), "y" * 10_000: torch.zeros(1)})
    text = ElementTree.tostring(shown(frame), encoding="unicode")
    assert "<script" not in text
    assert cells(frame)[0][0] == evil
    assert len(cells(frame)[1][0]) == 80


@pytest.mark.parametrize("column", [
    torch.zeros(0), torch.zeros(0, 3), torch.zeros(4, 0), torch.zeros(4, 2, dtype=torch.complex64),
    torch.ones(4, dtype=torch.bool), torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0]), torch.zeros(4, 1, 1, 1, 1),
    torch.zeros(4, dtype=torch.bfloat16), torch.zeros(4, 10**6), torch.ones(4, 2, requires_grad=True),
    torch.nn.Parameter(torch.ones(4)), torch.zeros(4, 2, device="meta"), torch.zeros(1).expand(4),
], ids=lambda column: f"{column.dtype} {list(column.shape)} {column.device}")  # fmt: skip
def test_any_column_is_shown(column):
    (row,) = cells(Frame(len(column), {"c": column}))
    assert row[1] == str(column.dtype).removeprefix("torch.")
    if column.device.type == "meta":
        assert row[-1] == "on meta"


def test_a_subclass_of_tensors_is_not_read():
    class Distant(torch.Tensor):
        def tolist(self) -> Any:
            raise AssertionError("values were read")

    (row,) = cells(Frame(2, {"c": torch.ones(2).as_subclass(Distant)}))
    assert row[-1] == "Distant"


def made(_: object) -> None:
    raise AssertionError("a lazy part was made")


def test_what_is_made_when_asked_for_stays_unmade(graph, monkeypatch):
    batch = NeighborSampler(graph, [2, 2])([3, 2])
    monkeypatch.setattr("nodeflow._core.base.frozen.Lazy.get", made)
    for thing in (batch, *batch.ldata, graph):
        shown(thing)
    with pytest.raises(AssertionError, match="a lazy part was made"):
        _ = batch.flows[0].parent_eid


def test_a_node_flow_shows_its_sizes(graph):
    batch = NeighborSampler(graph, [2, 2])([3, 2])
    batch.copy_from_parent({0: ["feat"]}, {1: ["w"]})
    text = words(batch)
    for size in (*batch.layer_sizes, *(f"{size} edges" for size in batch.flow_sizes)):
        assert str(size) in text
    assert [row[:2] for row in cells(batch)] == [["layer 0", "feat"], ["flow 1", "w"]]
    assert len(list(shown(batch).iter("rect"))) == 3


@given(batch=testing.node_flows(skips=True))
def test_any_node_flow_is_shown(batch):
    for thing in (batch, *batch.ldata):
        shown(thing)


def test_types_and_relations_are_shown_with_their_sizes_and_columns():
    edges = {
        ("a", "r", "b"): ([0, 1], [0, 1], {"w": torch.ones(2)}),
        ("b", "s", "b"): ([0, 1], [1, 1]),
    }
    graph = Graph.typed({"a": {"x": torch.ones(3)}, "c": 1, "b": 2}, edges)
    assert [row[:2] for row in cells(graph)] == [["a", "x"], ["a r b", "w"]]
    batch = NeighborSampler(graph, [1, 2])(graph.nodes["b"].to_graph([1]))
    batch.copy_from_parent({0: ["x"]}, {-1: ["w"]})
    assert [row[:2] for row in cells(batch)] == [["layer 0 a", "x"], ["flow 1 r", "w"]]
    many = Graph.typed(
        {f"t{i}": 1 for i in range(60)}, {("t0", f"r{i}", "t1"): ([0], [0]) for i in range(60)}
    )
    for thing in (many, many.schema, NeighborSampler(many, [1, 1])([1])):
        shown(thing)


def test_deep_and_wide_things_are_bounded():
    flow = flow_from_edges([0], [0], num_src=1, num_dst=1)
    deep = create_node_flow([flow] * 50, [[0]] * 51)
    assert len(list(shown(deep).iter("rect"))) == 8
    assert "43 layers" in words(deep)
    wide = Frame(1, {f"column {i}": torch.zeros(1) for i in range(10_000)})
    assert len(cells(wide)) == html.MOST_ROWS + 1
    assert cells(wide)[-1] == [". more rows are not shown"]
    assert "more" not in words(Frame(1, {f"{i}": torch.zeros(1) for i in range(html.MOST_ROWS)}))


@pytest.mark.parametrize("name", FAMILIES)
def test_samplers_show_their_settings(name):
    sampler = FAMILIES[name](graph_of_all())
    assert words(sampler).startswith(type(sampler).__name__)
    rows = dict(cells(sampler))
    assert set(rows) == set(sampler.settings)


def test_histories_are_shown(graph):
    history = History(graph, {1: 3}, aggregated="stored")
    assert [row[0] for row in cells(history)] == ["h_1", "written_1", "agg_h_1"]
    shown(ControlVariateSampler(History(graph, {1: 3}), [1, 1]))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_bars_stay_inside_the_picture(sizes):
    picture = ElementTree.fromstring(html.funnel(sizes, sizes[1:]).replace("…", "."))
    for bar in picture.iter("rect"):
        top = float(bar.attrib["y"])
        tall = float(bar.attrib["height"])
        assert top >= 0
        assert top + tall <= float(picture.attrib["height"])


def test_it_needs_no_matplotlib(graph, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown(NeighborSampler(graph, [2])([1]))
