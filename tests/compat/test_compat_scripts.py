"""Programs in the style of DGL 0.4's examples run after a change of import lines, as accurate as nodeflow's own way."""

from __future__ import annotations

import runpy
from collections.abc import Iterator

import pytest
import torch
from _support.communities import Communities, communities
from _support.pages import ROOT
from torch.nn.functional import cross_entropy

import nodeflow.compat.dgl as dgl
from nodeflow import (
    ControlVariateSampler,
    Graph,
    History,
    LayerSampler,
    NodeFlow,
    NodeFlowLoader,
    convert,
    create_full_node_flow,
    nn,
    transform,
)

EPOCHS = 6


@pytest.fixture(scope="module")
def data() -> Communities:
    return communities()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    dgl.random.seed(0)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def script(name: str, data: Communities) -> float | tuple[float, float]:
    return runpy.run_path(str(ROOT / "tests" / "compat" / "scripts" / f"{name}.py"))["main"](data, n_epochs=EPOCHS)


def graph_of(data: Communities) -> Graph:
    return convert.from_scipy(data.adj, ndata={"x": torch.from_numpy(data.features)})


def trained(
    data: Communities, loader: NodeFlowLoader, forward: torch.nn.Module, history: History | None = None
) -> None:
    optimizer = torch.optim.Adam(forward.parameters(), lr=0.03, weight_decay=5e-4)
    for _ in range(EPOCHS):
        for batch in loader:
            loss = cross_entropy(forward(batch), torch.from_numpy(data.labels)[batch.seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if history is not None:
                history.push(batch)
                history.commit()


def accuracy(data: Communities, outputs: torch.Tensor) -> float:
    test = data.test_nid
    return float((outputs[test].argmax(1) == torch.from_numpy(data.labels[test])).float().mean())


class MeanGCN(torch.nn.Module):
    """Means over neighbours and a skip connection, by functions on flows."""

    def __init__(self, data: Communities) -> None:
        super().__init__()
        self.first = torch.nn.Linear(data.features.shape[1], 16)
        self.second = torch.nn.Linear(32, data.num_labels)

    def forward(self, batch: NodeFlow) -> torch.Tensor:
        h = batch.ldata[0]["x"]
        for flow, layer in zip(batch.flows, (self.first, self.second), strict=True):
            w = flow.weight
            h = layer(flow.aggregate(h, "sum", weight=w) / flow.aggregate_edges(w).clamp(min=1e-6).unsqueeze(1))
            h = torch.cat([h, h.relu()], 1) if layer is self.first else h
        return h


def test_a_sampling_program(data: Communities) -> None:
    graph, model = graph_of(data), MeanGCN(data)
    sampler = LayerSampler(graph, [300, 300])
    trained(data, NodeFlowLoader(sampler, data.train_nid, 100, shuffle=True, ndata={0: ["x"]}), model)
    full = create_full_node_flow(graph, 2)
    full.copy_from_parent({0: ["x"]})
    with torch.no_grad():
        own = accuracy(data, model(full))
    old = script("adaptive", data)
    assert isinstance(old, float)
    assert min(old, own) > 0.75
    assert abs(old - own) < 0.06


def test_control_variates(data: Communities) -> None:
    graph = graph_of(data)
    graph.edata["p"] = transform.edge_norm(graph, "right")
    model = nn.VRGCN(data.features.shape[1], 16, data.num_labels, num_layers=2)
    history = History(graph, model.history_widths, weight="p", inputs=graph.ndata["x"])
    sampler = ControlVariateSampler(graph, fanouts=[0, 2], history=history)
    trained(data, NodeFlowLoader(sampler, data.train_nid, 100, shuffle=True), model, history)
    own = accuracy(data, model.inference(history.propagation, graph.ndata["x"]))
    old = script("cv_gcn", data)
    assert isinstance(old, tuple)
    assert min(old[0], own) > 0.75
    assert abs(old[0] - own) < 0.06
    assert old[1] == 0.0  # the inference pass has written the history of all nodes
