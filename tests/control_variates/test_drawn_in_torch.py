"""Batches with history are the same when operations of torch draw them."""

from __future__ import annotations

import pytest
import torch
from _support.sampler_families import fingerprint, graph_of_all

from nodeflow import NodeFlowLoader
from nodeflow.control_variates import ControlVariateSampler, History


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("aggregated", ["on demand", "stored"])
@pytest.mark.parametrize(
    "options", [{}, {"reuse": True}, {"prob": "chance", "replace": True}], ids=str
)
def test_same_batches(options, aggregated, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU that torch can use")
    graph = graph_of_all()
    graph.edata["chance"] = 1 + graph.edata["w"]
    history = History(
        graph.view(weight="w"), {1: 3}, aggregated=aggregated, inputs=graph.ndata["x"]
    )
    if aggregated == "on demand":
        history.write(
            1, range(0, 60, 2), torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
        )
        history.commit()
    for fanouts in ([2, 1], [0, 2]):
        compiled = ControlVariateSampler(history, fanouts, seed=4, **options)
        in_torch = compiled.in_torch(device)
        assert in_torch.backend.startswith("torch on")
        loaders = (
            NodeFlowLoader(each, range(0, 60, 3), 7, num_workers=1) for each in (compiled, in_torch)
        )
        for batch, again in zip(*loaders, strict=True):
            assert (
                again.ldata[1]["agg_h_0"].device.type
                == again.ldata[1]["scale"].device.type
                == device
            )
            assert fingerprint(again.to("cpu")) == fingerprint(batch)
