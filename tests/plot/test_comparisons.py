"""Pictures that compare: samplers, fanouts, degrees, ages, and draws with their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import graph_of_all
from _support.sampler_reference import random_graph

from nodeflow import (
    FullSampler,
    Graph,
    History,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    TemporalNeighborSampler,
)
from nodeflow.plot import (
    plot_degrees,
    plot_history_ages,
    plot_inclusion,
    plot_layer_growth,
    plot_samplers,
)
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import Choice, Step

figure = pytest.importorskip("matplotlib.figure")


def axes() -> Any:
    return figure.Figure(layout="constrained").subplots()


def legend(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_legend().get_texts()]


def ticks(axis: Any) -> list[str]:
    return [tick.get_text() for tick in axis.get_xticklabels()]


def test_samplers_are_compared_by_mean_and_deviation():
    graph = graph_of_all()
    samplers = {"two": NeighborSampler(graph, [2, 2]), "one": FullSampler(graph, 1)}
    axis = plot_samplers(samplers, [5, 11], draws=6, ax=axes())
    assert legend(axis) == ["two", "one"]
    assert ticks(axis) == ["layer -3", "layer -2", "seeds"]
    sizes = np.array([samplers["two"]([5, 11], epoch=epoch).layer_sizes for epoch in range(6)])
    bars = [container for container in axis.containers if hasattr(container, "patches")]
    assert [bar.get_height() for bar in bars[0]] == pytest.approx(sizes.mean(0))
    whiskers = bars[0].errorbar.lines[2][0].get_segments()
    assert [top[1] - low[1] for low, top in whiskers] == pytest.approx(2 * sizes.std(0))
    assert [bar.get_height() for bar in bars[1]] == list(samplers["one"]([5, 11]).layer_sizes)
    assert all(
        abs(bar.get_x() + bar.get_width() / 2 - at) < 0.4
        for bar, at in zip(bars[1], (1, 2), strict=True)
    )
    assert ticks(plot_samplers(samplers, [5], count="edges", draws=2, ax=axes())) == [
        "flow -2",
        "flow -1",
    ]
    assert plot_samplers({}, [5], ax=axes()).get_ylabel() == "nodes per batch"
    timed = {"timed": TemporalNeighborSampler(graph, [2])}
    assert legend(plot_samplers(timed, [5], draws=2, times=[10], ax=axes())) == ["timed"]
    numbered = LaborSampler(graph, [2], batch_dependency=3)
    assert legend(plot_samplers({"numbered": numbered}, [5], draws=2, ax=axes())) == ["numbered"]
    assert plot_inclusion(numbered, [5], draws=2, ax=axes()).collections


def test_growth_is_that_of_estimates():
    graph = graph_of_all()
    graph.ndata["big"] = torch.zeros(60, 1000)
    found = {}
    for count in ("nodes", "edges", "bytes"):
        axis = plot_layer_growth(
            graph, [5], [2, -1], num_flows=2, count=count, ndata={0: ["big"]}, ax=axes()
        )
        assert legend(axis) == ["2", "all"]
        found[count] = [line.get_xydata().tolist() for line in axis.lines]
    for i, fanout in enumerate((2, -1)):
        estimate = NeighborSampler(graph, [fanout] * 2).estimate([5], ndata={0: ["big"]})
        assert found["nodes"][i] == [[hop, size] for hop, size in enumerate(estimate.nodes[::-1])]
        assert found["edges"][i] == [
            [1 + hop, size] for hop, size in enumerate(estimate.edges[::-1])
        ]
        assert found["bytes"][i][-1][1] == pytest.approx(estimate.total_bytes / 1e6)
        assert found["bytes"][i][0][1] == pytest.approx(8 / 1e6)


@pytest.mark.parametrize("options", [{}, {"replace": True}, {"prob": "p"}], ids=str)
def test_shares_of_draws_lie_at_the_stated_probabilities(options):
    """At most 1 edge in 1,000 is beyond 4.5 standard errors where all is right; here every edge
    must be within.
    """
    graph = graph_of_all()
    axis = plot_inclusion(NeighborSampler(graph, [3], **options), range(30), draws=400, ax=axes())
    stated, share = axis.collections[-1].get_offsets().T
    assert len(stated) > 100
    # then an edge may be drawn repeatedly, and its number is no probability
    several = "replace" in options
    words = "stated mean number of times" if several else "stated probability"
    assert axis.get_xlabel() == words
    assert axis.get_ylabel().startswith("mean number of times" if several else "share")
    assert (
        np.abs(share - stated)
        < 4.5 * np.sqrt(stated * np.maximum(1 - stated, 0) / 400) + 0.06 * stated
    ).all()


class Biased(Sampler):
    """Draws half of the edges, and says that it draws all."""

    def choose(self, dst: torch.Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 0.5, prob=1.0)


def test_a_sampler_that_states_a_wrong_probability_is_off_the_diagonal():
    axis = plot_inclusion(Biased(random_graph(1, 30, 200), 1), range(30), draws=200, ax=axes())
    stated, share = axis.collections[-1].get_offsets().T
    assert (stated == 1).all()
    assert share.mean() == pytest.approx(0.5, abs=0.03)


def test_inclusion_of_layers_and_of_no_edge():
    graph = graph_of_all()
    stated, share = (
        plot_inclusion(LadiesSampler(graph, [6]), [5, 9], draws=300, ax=axes())
        .collections[-1]
        .get_offsets()
        .T
    )
    # the mean over the draws that have the edge is larger
    assert (share <= stated * 1.2 + 0.02).all()
    alone = Graph.from_edges([], [], num_nodes=3)
    assert legend(plot_inclusion(NeighborSampler(alone, [2]), [0], draws=2, ax=axes())) == [
        "95 % band",
        "0 edges",
    ]


def test_degrees_of_several_graphs(graph):
    axis = plot_degrees({"a": graph, "b": Graph.from_edges([0], [1])}, direction="out", ax=axes())
    assert legend(axis) == ["a (33.3% have degree 0)", "b (50.0% have degree 0)"]
    assert axis.lines[0].get_xydata().tolist() == [
        [1, pytest.approx(4 / 6)],
        [2, pytest.approx(3 / 6)],
    ]
    assert (
        plot_degrees(Graph.from_edges([], [], num_nodes=0), ax=axes()).get_xlabel() == "in-degree"
    )
    axis.figure.canvas.draw()


def test_ages_of_a_history(graph):
    history = History(graph, {1: 2, 2: 2})
    for nodes in ([0, 1, 2], [2, 3], [0]):
        history.write(1, nodes, torch.ones(len(nodes), 2))
        history.commit()
    axis = plot_history_ages(history, ax=axes())
    assert legend(axis) == ["layer 1 (33.3% never written)", "layer 2 (100.0% never written)"]
    assert axis.lines[0].get_xydata().tolist() == [[0, 0.25], [1, 0.75], [2, 1]]
    assert not len(axis.lines[1].get_xydata())
    axis.figure.canvas.draw()
