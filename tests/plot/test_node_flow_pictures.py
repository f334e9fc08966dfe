"""Pictures: they are made, they show what they should, and without matplotlib the error says how to
install it.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodeflow import FullSampler, Graph, NodeFlow, create_node_flow, flow_from_edges
from nodeflow.distributed import PartsReport
from nodeflow.plot import plot_curves, plot_node_flow, plot_parts
from nodeflow.training import EpochRecord

pytest.importorskip("matplotlib")


def records(*accuracies: float) -> list[EpochRecord]:
    return [EpochRecord(i, 1 / i, value, 1.0, 10.0, 100.0) for i, value in enumerate(accuracies, 1)]


def size_of_png(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content[-8:-4] == b"IEND"
    return struct.unpack(">II", content[16:24])


def test_curves_show_loss_and_score(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    kept = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: kept.append(self) or save(self, *a, **k)
    )
    plot_curves(
        {"": records(0.1, 0.5)}, tmp_path / "curves.svg", metric="f1_macro", title="a title"
    )
    left, right = kept[0].axes
    assert left.lines[0].get_xydata().tolist() == [[1, 1], [2, 0.5]]
    assert right.lines[0].get_xydata().tolist() == [[1, 0.1], [2, 0.5]]
    assert (left.get_ylabel(), right.get_ylabel()) == ("training loss", "validation f1 macro")
    assert kept[0].get_suptitle() == "a title"
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def arrows(figure: Any) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    return [
        (note.xyann, note.xy)
        for note in figure.axes[0].texts
        if getattr(note, "arrow_patch", None) is not None
    ]


def test_a_node_flow_has_a_dot_per_node_and_an_arrow_per_edge(graph, tmp_path):
    batch = FullSampler(graph, 2)([3, 2])
    figure = plot_node_flow(batch)
    assert texts(figure) == [
        str(node) for layer in batch.layers for node in layer.parent_nid.tolist()
    ]
    assert [len(dots.get_offsets()) for dots in figure.axes[0].collections] == list(
        batch.layer_sizes
    )
    assert len(arrows(figure)) == sum(batch.flow_sizes)
    assert all(end[0] - start[0] == 1 for start, end in arrows(figure))
    figure.savefig(tmp_path / "batch.png")
    assert min(size_of_png(tmp_path / "batch.png")) > 100


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def dotted(figure: Any) -> list[tuple[list[float], list[float]]]:
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    return [tuple(map(list, line.get_xydata())) for line in lines]


def test_a_node_is_joined_to_its_own_row_in_the_next_layer(graph):
    for include_dst in (True, False):
        batch = FullSampler(graph, 2, include_dst=include_dst)([3, 2])
        figure = plot_node_flow(batch)
        place = [
            {int(v): tuple(at) for v, at in zip(layer.parent_nid, dots.get_offsets(), strict=True)}
            for layer, dots in zip(batch.layers, figure.axes[0].collections, strict=True)
        ]
        own = [
            (list(place[i][v]), list(place[i + 1][v]))
            for i in (0, 1)
            for v in place[i + 1]
            if v in place[i]
        ]
        assert dotted(figure) == own
        assert ("the same node" in legend(figure)) == bool(own)
        assert "seeds" in legend(figure)
        assert len(own) == 2 + batch.layer_sizes[1] or not include_dst


def test_ids_fit_into_their_dots(tmp_path):
    src = [7, 88, 999, 1000, 54321]
    figure = plot_node_flow(
        FullSampler(Graph.from_edges(src, [0] * 5), 1)([0]), tmp_path / "batch.png"
    )
    # a marker's size is its area in square points
    dot = 2 * (330 / 3.141592653589793) ** 0.5 * figure.dpi / 72
    assert (
        max(text.get_window_extent().width for text in figure.axes[0].texts if text.get_text())
        < 1.15 * dot
    )


def test_pooled_nodes_have_local_ids_and_flows_may_skip_layers():
    low = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    high = flow_from_edges([0], [0], num_src=1, num_dst=1)
    skip = flow_from_edges([1], [0], num_src=2, num_dst=1)
    figure = plot_node_flow(
        create_node_flow({(0, 1): low, (1, 2): high, (0, 2): skip}, [[5, 6], None, [5]])
    )
    assert texts(figure) == ["5", "6", "#0", "5"]
    assert legend(figure) == ["skips layers", "seeds"]
    assert not dotted(figure)  # layer 1 has no parent ids, and layer 2 does not follow layer 0
    patches = [
        note.arrow_patch
        for note in figure.axes[0].texts
        if getattr(note, "arrow_patch", None) is not None
    ]
    bent = [patch.get_connectionstyle().rad != 0 for patch in patches]
    assert bent == [False, False, False, True]
    assert patches[3].get_edgecolor() != patches[0].get_edgecolor()
    assert sorted(end[0] - start[0] for start, end in arrows(figure)) == [1, 1, 1, 2]


def test_a_large_node_flow_is_summarised():
    """By a bar per layer, split by what the next layer holds too, and edges and degrees between the
    bars.
    """
    graph = Graph.from_edges([0, 0, 0, 4], [1, 2, 3, 3])
    batch: NodeFlow = FullSampler(graph, 1)([1, 2, 3])
    assert sum(batch.layer_sizes) == 8
    assert len(plot_node_flow(batch, max_nodes=8).axes[0].collections) == 2  # nodes
    figure = plot_node_flow(batch, max_nodes=7)
    axis = figure.axes[0]
    assert figure.get_size_inches().tolist() == [1.6 * batch.num_layers + 1, 3.4]
    kept, new, seeds = [[bar.get_height() for bar in bars] for bars in axis.containers]  # type: ignore[attr-defined]
    assert (kept, new, seeds) == ([3], [2], [3])
    words = [text.get_text() for text in axis.texts]
    assert words == ["5", "3", "4 edges\nin-degree 1.33\n(largest 2)"]


def test_without_matplotlib_the_error_says_how_to_install_it(graph, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    how = r"pip install matplotlib$"
    with pytest.raises(ImportError, match=how):
        plot_node_flow(FullSampler(graph, 1)([1]))
    with pytest.raises(ImportError, match=how):
        plot_curves(records(0.5), tmp_path / "curves.png")
    assert not list(tmp_path.iterdir())


def test_a_graph_instead_of_a_node_flow_is_refused(graph):
    with pytest.raises(
        TypeError, match=r"batch must be a NodeFlow, got Graph.*create_full_node_flow"
    ):
        plot_node_flow(graph)


def test_parts_are_bars(tmp_path):
    report = PartsReport(10, 20, 5, (6, 4), (12, 8), (1, 3), (1, 1), None)
    left, right = plot_parts(report, tmp_path / "parts.png").axes
    bars = [[bar.get_height() for bar in some] for some in (*left.containers, *right.containers)]  # type: ignore[attr-defined]
    assert bars == [[6, 4], [1, 3], [12, 8]]
    assert [bar.get_y() for bar in left.containers[1]] == [6, 4]  # type: ignore[attr-defined]
    assert size_of_png(tmp_path / "parts.png") == (960, 408)
    with pytest.raises(TypeError, match=r"report must be a PartsReport"):
        plot_parts([1, 2])  # type: ignore[arg-type]


def test_a_tall_layer_has_several_columns():
    """So that a picture fits on a screen; no node hides another, and the layers stay apart, each
    below its title.
    """
    batch = FullSampler(Graph.from_edges(range(1, 61), [0] * 60), 1)([0])
    figure = plot_node_flow(batch)
    axis = figure.axes[0]
    width, height = figure.get_size_inches()
    assert height < 11
    assert height < 2.5 * width
    inputs, seeds = (dots.get_offsets() for dots in axis.collections)
    gaps = np.abs(inputs[:, None] - inputs[None]) + 9 * np.eye(len(inputs))[..., None]
    assert (np.maximum(gaps[..., 0] * 1.5, gaps[..., 1] * 0.36) > 0.3).all(), (
        "inches between the middles of two dots"
    )
    assert inputs[:, 0].max() + 1 == seeds[0, 0]
    titles = [float(tick) for tick in axis.get_xticks()]
    assert titles == pytest.approx([inputs[:, 0].min() / 2 + inputs[:, 0].max() / 2, seeds[0, 0]])
    assert axis.get_xlim()[0] < inputs[:, 0].min()
    assert axis.get_xlim()[1] > seeds[0, 0]
