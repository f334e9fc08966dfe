"""``batch.plot`` and ``graph.plot``: labels, colours, widths, marks, and what large ones show
instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import graph_of_all
from hypothesis import given, strategies as st

from nodeflow import Graph, NeighborSampler, create_node_flow, flow_from_edges, testing
from nodeflow._core.display.plain import layout

figure = pytest.importorskip("matplotlib.figure")


def axes() -> Any:
    return figure.Figure(layout="constrained").subplots()


def names(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.texts if text.get_text()]


def arrow_widths(axis: Any) -> list[float]:
    return [
        note.arrow_patch.get_linewidth()
        for note in axis.texts
        if getattr(note, "arrow_patch", None) is not None
    ]


def legend(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_legend().get_texts()]


@pytest.fixture
def pyplot() -> Iterator[Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_axes_go_in_and_out(graph, pyplot):
    batch = NeighborSampler(graph, [2, 2])([3, 2])
    axis = axes()
    assert batch.plot(axis) is axis
    assert graph.plot(axis) is axis
    before = pyplot.get_fignums()
    new = batch.plot()
    assert len(pyplot.get_fignums()) == len(before) + 1  # a notebook shows it
    assert new.figure is pyplot.gcf()
    new.figure.canvas.draw()
    with pytest.raises(
        TypeError, match="ax must be axes or a figure of matplotlib, or None for new ones, got"
    ):
        batch.plot(pyplot)


def test_labels_colours_and_widths_are_columns_or_functions(graph):
    batch = NeighborSampler(graph, [2, 2])([3, 2])
    graph.ndata["kind"] = torch.tensor([0, 1, 2, 0, 1, 2])
    batch.copy_from_parent(["kind"], ["w"])
    axis = batch.plot(axes(), label="kind", color="kind", width="w")
    kinds = [kind for frame in batch.ldata for kind in frame["kind"].tolist()]
    assert names(axis)[-len(kinds) :] == [str(kind) for kind in kinds]
    weights = np.concatenate([frame["w"].numpy() for frame in batch.fdata])
    scale = [f"w {weights.min():.3g}", f"w {weights.max():.3g}"]
    assert legend(axis) == [
        "the same node",
        *scale,
        *(f"kind {kind}" for kind in sorted(set(kinds))),
        "seeds",
    ]
    lines = {
        line.get_label(): line.get_linewidth() for line in axis.lines if line.get_label() in scale
    }
    assert lines == pytest.approx({scale[0]: arrow_widths(axis)[weights.argmin()], scale[1]: 4.0})
    assert arrow_widths(axis) == pytest.approx(0.4 + 3.6 * weights / weights.max())
    same = batch.plot(axes(), width=lambda flow: flow.data["w"])
    assert arrow_widths(same) == arrow_widths(axis)
    assert [word for word in legend(same) if word.startswith("width")] == [
        s.replace("w", "width") for s in scale
    ]
    faces = np.concatenate(
        [dots.get_facecolor() for dots in axis.collections if len(dots.get_offsets())]
    )
    assert len(faces) == len(kinds)
    assert len({tuple(face) for face in faces}) == len(set(kinds))
    assert all(tuple(faces[i]) == tuple(faces[kinds.index(kind)]) for i, kind in enumerate(kinds))


def test_types_have_colours_and_a_schema_is_drawn():
    edges = {
        ("a", "r", "b"): ([0, 1], [0, 1]),
        ("b", "s", "b"): ([0, 1], [1, 1]),
        ("b", "back", "a"): ([0], [2]),
    }
    graph = Graph.typed({"a": 3, "none": 0, "b": 2}, edges)
    batch = NeighborSampler(graph, [-1])(graph.nodes["b"].to_graph([1, 0]))
    assert legend(batch.plot(axes())) == ["the same node", "a", "b", "seeds"]
    assert legend(graph.plot(axes(), seeds=[4])) == ["a", "b", "seeds", "self-loop"]
    pooled = create_node_flow(
        [flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)], [[4, 3], None], parent=graph
    )
    assert legend(pooled.plot(axes())) == ["b", "seeds"]
    axis = graph.schema.plot(axes())
    axis.figure.canvas.draw()
    assert {text.get_text() for text in axis.texts if text.get_text()} == {
        "a 3",
        "none 0",
        "b 2\ns 2",
        "r 2\nback 1",
    }
    assert len(arrow_widths(axis)) == 2
    Graph.from_edges([], []).schema.plot(axes()).figure.canvas.draw()
    many = Graph.typed({f"t{i}": 1 for i in range(12)}, {}).plot(axes())
    assert [a.get_ylabel() for a in many.figure.axes[1:]] == ["type"]


def test_numbers_on_a_scale_have_a_colour_bar_and_unknown_ones_are_grey(graph):
    batch = NeighborSampler(graph, [2])([3, 2])
    size = batch.layer_sizes[0]
    batch.ldata[0]["x"] = torch.tensor([torch.nan, *torch.rand(size - 1).tolist()])
    axis = batch.plot(axes(), color="x")
    assert [a.get_ylabel() for a in axis.figure.axes[1:]] == ["x"]
    faces = np.concatenate(
        [dots.get_facecolor() for dots in axis.collections if len(dots.get_offsets())]
    )
    grey = [tuple(face) == (0.6, 0.6, 0.6, 1) for face in faces]
    assert grey == [True] + [False] * (size - 1) + [True] * 2  # the seeds have no such column
    axis.figure.canvas.draw()


def test_the_legend_of_widths_says_sizes_and_leaves_out_what_has_none(graph):
    batch = NeighborSampler(graph, [2, 2])([3, 2])
    sizes = [-3.0, *[1.0] * (batch.flow_sizes[1] - 1)]
    batch.fdata[1]["s"] = torch.tensor(sizes)
    axis = batch.plot(axes(), width="s")
    assert [word for word in legend(axis) if "s|" in word] == ["|s| 1", "|s| 3"]
    # flow 0 has no such column
    assert sorted(set(arrow_widths(axis))) == pytest.approx([0.4, 0.4 + 3.6 / 3, 4.0])
    assert arrow_widths(axis).count(0.4) == batch.flow_sizes[0]
    one = batch.plot(axes(), width=lambda flow: torch.full((flow.num_edges,), 2))
    assert [word for word in legend(one) if word.startswith("width")] == ["width 2"]
    large = batch.plot(axes(), width=lambda flow: torch.full((flow.num_edges,), 3240.5))
    assert [word for word in legend(large) if word.startswith("width")] == ["width 3,240"]
    nothing = batch.plot(axes(), width=lambda flow: torch.full((flow.num_edges,), torch.nan))
    assert not any(word.startswith("width") for word in legend(nothing))


def test_ticks_of_a_summary_end_where_its_axis_ends():
    for size, last in ((3165, 3000), (1, 1), (7, 7), (1000, 1000)):
        graph = Graph.from_edges(np.arange(size), np.zeros(size, np.int64))
        axis = NeighborSampler(graph, [-1], include_dst=False)([0]).plot(axes(), max_nodes=0)
        axis.figure.canvas.draw()
        ticks = axis.get_yticks()
        assert axis.spines["left"].get_bounds() == (0, size)
        assert (ticks[0], ticks[-1]) == (0, last)
        assert all(float(tick).is_integer() for tick in ticks)
    assert axis.get_yticklabels()[-1].get_text() == "1,000"


def test_a_graph_has_a_dot_per_node_and_an_arrow_or_loop_per_edge(graph):
    axis = graph.plot(axes(), seeds=[1], width="w")
    assert names(axis) == [str(v) for v in range(6)]
    assert len(arrow_widths(axis)) == 6  # and the self-loop of node 2, a ring
    assert legend(axis) == ["w 0", "w 6", "seeds", "self-loop"]
    # 1 -> 3, in the order of the destinations
    assert arrow_widths(axis)[-1] == pytest.approx(0.4 + 3.6 * 5 / 6)
    axis.figure.canvas.draw()


def test_some_nodes_with_the_edges_among_them(graph):
    axis = graph.plot(axes(), nodes=[3, 1, 0, 1])
    assert names(axis) == ["0", "1", "3"]
    assert len(arrow_widths(axis)) == 3  # 0 -> 1 twice, 1 -> 3


def test_columns_that_are_fetched_are_fetched_for_what_is_drawn():
    asked = []

    class Far:
        shape = (60,)
        dtype = torch.float32

        def fetch(self, ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
            asked.append(ids.tolist())
            return ids.float()

    graph = graph_of_all()
    graph.ndata["far"] = Far()
    graph.plot(axes(), nodes=[5, 9, 3], color="far")
    assert asked == [[3, 5, 9]]


def test_a_large_graph_shows_its_degrees(graph):
    axis = graph.plot(axes(), max_nodes=5)
    inside, outside = (line.get_xydata().tolist() for line in axis.lines)
    assert inside == [
        [1, pytest.approx(4 / 6)],
        [2, pytest.approx(2 / 6)],
        [3, pytest.approx(1 / 6)],
    ]
    assert outside == [[1, pytest.approx(4 / 6)], [2, pytest.approx(3 / 6)]]
    assert legend(axis) == ["in-degrees (33.3% have degree 0)", "out-degrees (33.3% have degree 0)"]
    assert axis.get_title() == "6 nodes, 7 edges"
    some = graph.plot(axes(), nodes=[0, 1], max_nodes=1)
    assert some.lines[0].get_xydata().tolist() == [[1, 1], [3, 0.5]]


def test_many_edges_between_few_nodes_are_summarised():
    many, few = (Graph.from_edges([0] * count, [1] * count) for count in (31, 30))
    assert many.plot(axes(), max_nodes=3).get_xlabel() == "degree"
    assert len(arrow_widths(few.plot(axes(), max_nodes=3))) == 30
    batch = NeighborSampler(many, [-1])([1])
    assert batch.plot(axes(), max_nodes=3).get_ylabel() == "nodes"
    batch = NeighborSampler(few, [-1])([1])
    assert len(arrow_widths(batch.plot(axes(), max_nodes=3))) == 30


@given(data=st.data(), graph=testing.graphs())
def test_any_graph_is_drawn(data, graph):
    seeds = data.draw(testing.seeds(graph))
    most = data.draw(st.sampled_from([0, 200]))
    axis = graph.plot(axes(), seeds=seeds, max_nodes=most)
    assert most == 0 or names(axis) == [str(v) for v in range(graph.num_nodes)]


@given(batch=testing.node_flows(skips=True), most=st.sampled_from([0, 200]))
def test_any_node_flow_is_drawn(batch, most):
    axis = batch.plot(axes(), max_nodes=most)
    if most or not sum(batch.layer_sizes):
        assert len(arrow_widths(axis)) == sum(flow.num_edges for _, flow in batch.flows.items())


def test_overlap_is_unknown_without_parent_ids():
    batch = create_node_flow([flow_from_edges([0, 1, 2], [0, 1, 1], num_src=3, num_dst=2)])
    axis = batch.plot(axes(), max_nodes=1)
    assert "also in the next layer" not in legend(axis)


def test_the_layout_parts_nodes_and_keeps_joined_ones_close():
    ring = np.arange(12)
    place = layout(14, ring, (ring + 1) % 12)  # two isolated nodes
    far = np.linalg.norm(place[:, None] - place[None], axis=2)
    assert far[~np.eye(14, dtype=bool)].min() > 0.3
    assert far[ring, (ring + 1) % 12].max() < far[ring, (ring + 6) % 12].min()
    assert (place == layout(14, ring, (ring + 1) % 12)).all()
    assert layout(0, [], []).shape == (0, 2)
