"""History, sums and draws agree on one propagation, or it is said that they do not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from _support.views import viewed
from torch import Tensor

from nodeflow import Graph, transform
from nodeflow.control_variates import (
    ControlVariateSampler,
    History,
    Updater,
    control_variate,
    control_variate_dropout,
    exact_sums,
)
from nodeflow.nn import VRGCN, FlowModel
from nodeflow.propagation import Propagation

NODES = 30


@pytest.fixture
def graph() -> Graph:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(NODES, (2, 150), generator=generator)
    graph = transform.add_self_loops(Graph.from_edges(*ends, num_nodes=NODES))
    graph.edata["p"] = transform.edge_norm(graph)
    graph.edata["mean"] = transform.edge_norm(graph, "right")
    return graph


def fill(history: History) -> History:
    """A pass of any model; random rows."""
    with history.renewal() as new:
        for name in new:
            new[name].copy_(
                torch.randn(new[name].shape, generator=torch.Generator().manual_seed(1))
            )
    return history


OTHERS: list[dict[str, Any]] = [
    {"weight": "mean"},
    {"weight": None},
    {"weight": "p", "direction": "out"},
    {"weight": "p", "edge_filter": torch.arange(180) > 0},
]


@pytest.mark.parametrize("other", OTHERS, ids=str)
@pytest.mark.parametrize("aggregated", ["stored", "on demand"])
def test_a_history_of_another_propagation_is_refused(other, aggregated, graph, tmp_path):
    if "edge_filter" in other:
        other = {**other, "edge_filter": torch.arange(graph.num_edges) > 0}
    one = fill(
        History(graph.view(weight="p"), {1: 4}, aggregated=aggregated, folder=tmp_path / "rows")
    )
    with pytest.raises(
        ValueError, match="holds a history of another graph, edge weights, direction or filter"
    ):
        viewed(History, graph, {1: 4}, aggregated=aggregated, folder=tmp_path / "rows", **other)
    two = fill(viewed(History, graph, {1: 4}, aggregated=aggregated, **other))
    before = {name: value.clone() for name, value in two.state_dict().items()}
    with pytest.raises(ValueError, match="its graph, edge weights, direction or filter are others"):
        two.load_state_dict(one.state_dict())
    assert all(torch.equal(value, before[name]) for name, value in two.state_dict().items())
    equal = History(graph.view(weight="p"), {1: 4}, aggregated=aggregated)
    equal.load_state_dict(one.state_dict())
    assert torch.equal(equal.h_1, one.h_1)


def test_a_history_of_another_graph_of_that_size_is_refused():
    state = fill(History(Graph.from_edges([0, 1, 2], [1, 2, 0]), {1: 4})).state_dict()
    for src, dst in (([0, 2, 1], [1, 2, 0]), ([1, 1, 2], [2, 2, 0]), ([0, 0], [1, 2])):
        other = Graph.from_edges(src, dst, num_nodes=3)
        with pytest.raises(
            ValueError, match="its graph, edge weights, direction or filter are others"
        ):
            History(other, {1: 4}).load_state_dict(state)


def test_a_sampler_has_the_numbers_of_its_history(graph):
    """Also where the edge column has changed since."""
    history = History(graph.view(weight="p"), {1: 4})
    before = graph.edata["p"]
    graph.edata["p"] = graph.edata["mean"]
    flow = ControlVariateSampler(history, [-1, -1])([3]).flows[0]
    assert torch.equal(flow.weight, before[flow.parent_eid])


def test_an_edge_that_is_never_drawn_must_not_be_in_the_sums(graph):
    graph.edata["q"] = (torch.arange(graph.num_edges) != 5).float()
    with pytest.raises(ValueError, match="prob: edge 5 has 'q' = 0, so it is never drawn"):
        ControlVariateSampler(History(graph.view(weight="p"), {1: 4}), [2, 2], prob="q")
    mask = torch.arange(graph.num_edges) != 5
    ControlVariateSampler(History(graph.view(where=mask, weight="p"), {1: 4}), [2, 2], prob="q")
    graph.edata["p"] = graph.edata["p"] * mask
    ControlVariateSampler(History(graph.view(weight="p"), {1: 4}), [2, 2], prob="q")
    with pytest.raises(ValueError, match="prob: edge 5"):
        ControlVariateSampler(History(graph, {1: 4}), [2, 2], prob="q")


def test_files_keep_their_type(graph, tmp_path):
    history = History(graph, {1: 4}, folder=tmp_path / "rows")
    model = torch.nn.Module()
    model.history = history
    for move in (model.double, model.half, lambda: model.to("meta")):
        with pytest.raises(
            ValueError, match=r"a history in files keeps its type and place, but .* would become"
        ):
            move()
    assert model.float().to("cpu").history is history
    history.write(1, range(NODES), torch.ones(NODES, 4))
    history.commit()
    assert History(graph, {1: 4}, folder=tmp_path / "rows").rows(1, [3]).tolist() == [[1.0] * 4]


def test_stored_sums_stay_wide(graph):
    history = fill(History(graph.view(weight="p"), {1: 4}, aggregated="stored"))
    sums = history.agg_h_1.clone()
    history.bfloat16()
    assert history.h_1.dtype == torch.bfloat16
    assert history.agg_h_1.equal(sums)
    assert history.double().agg_h_1.dtype == torch.float64


@pytest.mark.parametrize("wrong", [torch.inf, torch.nan, 1e6])
def test_a_pass_whose_rows_are_not_finite_leaves_the_history(wrong, graph):
    torch.manual_seed(0)  # weights that do not leave all rows to the zeros of ReLU
    model = VRGCN(3, 4, 2)
    history = fill(History(graph.view(weight="p"), model.history_widths, dtype=torch.float16))
    before = history.h_1.clone()
    x = torch.ones(NODES, 3)
    x[4] = wrong * 100  # of which 1e8 is finite, but not in float16
    with pytest.raises(
        ValueError, match=r"the model's rows of layer 1 are not finite in torch\.float16"
    ) as error:
        Updater(model, history, x).run()
    assert history.h_1.equal(before)
    assert model.training, f"as before the pass, although {error!r} still holds its frame"


class OwnConv(torch.nn.Module):
    """As the documentation shows: control variates by one call, in every flow."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.own = torch.nn.Linear(width, out)
        self.near = torch.nn.Linear(width, out)

    def forward(self, flow: Any, h: Tensor) -> Tensor:
        return self.own(flow.take_dst(h)) + self.near(control_variate(flow, h))


class OwnModel(FlowModel):
    """Leaves the rows that it gives to the estimator in the column "h"."""

    def forward(self, batch: Any, h: Tensor) -> Tensor:
        for i, flow in enumerate(batch.flows):
            h = self.step(i, h)
            if i:
                batch.ldata[i]["h"] = h.detach()
            h = self.convs[i](flow, h)
        return h


@pytest.mark.parametrize("first", [0, 2])
def test_a_model_of_ones_own_is_exact_in_inference_in_passes_and_with_all_neighbours(first, graph):
    torch.manual_seed(0)
    model = OwnModel([OwnConv(3, 5), OwnConv(5, 4), OwnConv(4, 2)])
    x = torch.randn(NODES, 3)
    history = History(graph.view(weight="mean"), {1: 5, 2: 4}, inputs=x)
    Updater(model, history, x).run()
    p = torch.zeros(NODES, NODES).index_put_(
        graph.edges()[::-1], graph.edata["mean"], accumulate=True
    )
    h = x
    with torch.no_grad():
        for i, conv in enumerate(model.convs):
            h = h.relu() if i else h
            if i:
                torch.testing.assert_close(history.rows(i, range(NODES)), h)
            h = conv.own(h) + conv.near(p @ h)
    torch.testing.assert_close(model.inference(history.propagation, x), h)
    # the history is what it should be: exact for any draw
    batch = ControlVariateSampler(history, [first, 1, 1])([4, 7])
    torch.testing.assert_close(model(batch, x[batch.front.parent_nid]), h[[4, 7]])
    for i, flow in enumerate(history.propagation.flow(0, NODES) for _ in range(2)):
        rows = torch.randn(NODES, 3 + i)
        assert all(torch.equal(found, flow.aggregate(rows, "sum", weight=flow.weight)) for found in
                   control_variate_dropout(flow, rows, rows))  # fmt: skip
    assert torch.equal(exact_sums(batch.flows[0]), batch.ldata[1]["agg_h_0"])
    assert (
        control_variate(batch.flows[0], batch.ldata[1]["agg_h_0"].double()).dtype == torch.float64
    )
    with pytest.raises(
        ValueError, match="the inputs of the history have width 3, but the rows have 7"
    ):
        control_variate(batch.flows[0], torch.zeros(batch.layer_sizes[0], 7))
    history.push(batch)
    history.commit()


class Recorded(torch.nn.Module):
    """Gives a list, of rows that are recorded for gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def layers(self, propagation: Propagation, h: Tensor, **options: Any) -> list[Tensor]:
        return [h, self.linear(h)]


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_a_pass_keeps_no_graph_and_no_inference_tensor(mode, graph):
    history = History(graph, {1: 4})
    with mode():
        Updater(Recorded(), history, torch.ones(NODES, 3)).run()
    assert history.h_1.grad_fn is None
    assert not history.h_1.requires_grad
    history.write(1, [2], torch.ones(1, 4))
    history.commit()
    assert history.age(1, [2, 3]).tolist() == [0, 1]


def test_a_copy_of_a_history_belongs_to_the_same_graph(graph):
    history = fill(History(graph, {1: 4}))
    again = copy.deepcopy(history)
    again.clear()
    assert again.graph is graph
    assert history.h_1.any()
    assert repr(history) == "History({1: 4}, 30 nodes, sums on demand)"


def test_a_history_says_where_it_lies(graph, tmp_path):
    history = History(graph, {1: 4}, aggregated="stored", folder=tmp_path / "rows")
    assert repr(history) == f"History({{1: 4}}, 30 nodes, sums stored, in {tmp_path / 'rows'})"
    history.close()


def test_what_is_shown_and_stored(graph, tmp_path):
    history = History(graph, {1: 4}, folder=tmp_path / "rows")
    # that of folders of before
    assert json.loads((tmp_path / "rows" / "manifest.json").read_text())["version"] == 2
    model = VRGCN(3, 4, 2)
    every = [
        repr(Updater(model, history, torch.ones(NODES, 3), every=every)) for every in (None, 7)
    ]
    assert [text.rpartition(", ")[2] for text in every] == ["when asked)", "every 7 steps)"]


def test_a_pass_ends_with_the_last_layer_of_the_history(graph):
    class Model:
        def layers(self, propagation: Propagation, x: Tensor, **options: Any) -> Iterator[Tensor]:
            yield x
            yield x + 1
            raise AssertionError("layer 2 was computed")

    history = History(graph, {1: 3})
    Updater(Model(), history, torch.ones(NODES, 3)).run()
    assert history.h_1.eq(2).all()


def test_models_of_other_types(graph):
    """Sums are float32 at least, whatever the inputs are."""
    x = torch.randn(NODES, 3).bfloat16()
    model = VRGCN(3, 4, 2).bfloat16()
    history = History(graph.view(weight="p"), model.history_widths, inputs=x, dtype=torch.bfloat16)
    batch = ControlVariateSampler(history, [0, 2])([1, 2])
    assert model(batch).dtype == torch.bfloat16
