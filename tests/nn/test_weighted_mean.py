"""SAGEConv(weighted=True): the expectation over all draws, enumerated, is the mean over all in-edges."""

from __future__ import annotations

import pytest
import torch

from nodeflow import FullSampler, Graph, NeighborSampler, transform
from nodeflow.nn import GraphSAGE, SAGEConv


def drawn(weighted: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the expectation over the 3 draws of one neighbour with prob 0.5, 0.3, 0.2, and the mean over all."""
    graph = Graph.from_edges([1, 2, 3], [0, 0, 0], edata={"p": torch.tensor([0.5, 0.3, 0.2])})
    graph.ndata.update(transform.degrees(graph))
    x = torch.tensor([[0.0], [1.0], [10.0], [100.0]], dtype=torch.float64)
    conv = SAGEConv(1, 1, bias=False, weighted=weighted).double()
    torch.nn.init.ones_(conv.neigh.weight)
    torch.nn.init.zeros_(conv.own.weight)
    sampler, found = NeighborSampler(graph, [1], prob="p"), {}
    for epoch in range(200):
        batch = sampler([0], epoch=epoch)
        batch.copy_from_parent(["in_degree"], None)
        found[int(batch.flows[0].parent_eid[0])] = conv(batch, 0, x[batch.front.parent_nid])
        if len(found) == 3:
            break
    p = graph.edata["p"].double()
    return sum(p[e] * out for e, out in found.items()), torch.tensor([[37.0]], dtype=torch.float64)


def test_the_weighted_mean_is_unbiased_and_the_plain_one_is_not() -> None:
    torch.testing.assert_close(*drawn(True), rtol=1e-5, atol=0)
    expected, mean = drawn(False)
    assert (expected - mean).abs() > 1


def test_with_all_edges_it_is_the_mean(graph: Graph) -> None:
    graph.ndata.update(transform.degrees(graph))
    plain, weighted = GraphSAGE(2, 4, 3), GraphSAGE(2, 4, 3, weighted=True)
    weighted.load_state_dict(plain.state_dict())
    x = torch.rand(graph.num_nodes, 2)
    torch.testing.assert_close(weighted.inference(graph, x), plain.inference(graph, x))
    batch = FullSampler(graph, 2)([0, 3])
    h = x[batch.front.parent_nid]
    with pytest.raises(ValueError, match="weighted=True needs the column 'in_degree'"):
        weighted(batch, h)
    batch.copy_from_parent(["in_degree"], None)
    torch.testing.assert_close(weighted(batch, h), plain(batch, h))
    with pytest.raises(ValueError, match="weighted=True needs aggregator='mean', got 'pool'"):
        SAGEConv(2, 2, aggregator="pool", weighted=True)
