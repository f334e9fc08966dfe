"""The seam for draws on another device (docs/architecture.md): a sampler that enters at ``_sample``, without numpy."""

from __future__ import annotations

import pytest
import torch
from _support.sampler_reference import random_graph

from nodeflow import FullSampler, NodeFlow, NodeFlowLoader
from nodeflow.flow import Flow, Layer
from nodeflow.ops import Structure
from nodeflow.sampling.base import SamplerBase


class TorchFull(SamplerBase):
    """One flow of full neighbourhoods, found and numbered by operations of torch on ``device``."""

    def __init__(self, graph, device):
        super().__init__(graph, 1)
        self.device = device
        arrays = (graph.csc()[0], graph.csc()[1])
        self._indptr, self._indices = (torch.tensor(array, device=device, dtype=torch.int64) for array in arrays)

    def _sample(self, seeds, draw, inputs):
        asked = torch.from_numpy(seeds).to(self.device)
        distinct, group = asked.unique(return_inverse=True)
        first = torch.full_like(distinct, len(asked)).scatter_reduce_(
            0, group, torch.arange(len(asked), device=self.device), "amin"
        )
        nodes = distinct[first.argsort()]
        index = (nodes == asked[:, None]).long().argmax(1)
        degrees = self._indptr[nodes + 1] - self._indptr[nodes]
        indptr = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        row = torch.repeat_interleave(degrees)
        positions = torch.arange(len(row), device=self.device) - indptr[row] + self._indptr[nodes[row]]
        src = self._indices[positions]
        new = src[~torch.isin(src, nodes)].unique()
        lookup = torch.empty(self.graph.num_nodes, dtype=torch.int64, device=self.device)
        both = torch.cat([nodes, new])
        lookup[both] = torch.arange(len(both), device=self.device)
        layers = [Layer(len(both), both), Layer(len(nodes), nodes)]
        flow = Flow(Structure(indptr, lookup[src], len(both)), *layers, (0, 1))
        return NodeFlow(layers, [flow], parent=self.graph, seed_index=index)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_sampler_on_a_device(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU that torch can use")
    graph = random_graph(3, 40, 200)
    graph.ndata["x"] = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    ours, wanted = TorchFull(graph, device), FullSampler(graph, 1)
    for batch, whole in zip(*(NodeFlowLoader(s, [7, 3, 7, 9, 1], batch_size=3) for s in (ours, wanted)), strict=True):
        assert batch.back.parent_nid.device.type == batch.flows[0].indices.device.type == device
        assert batch.seeds[batch.seed_index].tolist() == whole.seeds[whole.seed_index].tolist()
        x, own = (graph.ndata["x"][b.front.parent_nid.cpu()].to(d) for b, d in ((batch, device), (whole, "cpu")))
        found, mean = batch.flows[0].aggregate(x, "mean"), whole.flows[0].aggregate(own, "mean")
        assert found.device.type == device
        torch.testing.assert_close(found[batch.seed_index].cpu(), mean[whole.seed_index])
