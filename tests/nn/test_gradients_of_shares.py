"""Gradients of the shares of a step: weighted by ``seed_weight``, their mean is the gradient of a
single process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from _support.sampler_families import NODES, graph_of_all
from _support.share_tools import loaders
from torch import Tensor, nn

from nodeflow import LinkSampler, NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.nn import (
    GAT,
    GCN,
    Bilinear,
    DistMult,
    DotProduct,
    GraphSAGE,
    NodeDropout,
    softmax_loss,
)
from nodeflow.random import Random

GRAPH = graph_of_all()
X = torch.linspace(-1, 1, NODES * 5).sin().view(NODES, 5).double()
LABEL = torch.arange(NODES) % 3
SEEDS = [*range(13), 7, 7]  # steps of 8 and 7 seeds; two in one step repeat
Step = Callable[[NodeFlow, NodeFlowLoader], Tensor]


def gradients(modules: nn.Module, loss: Step, ranks: list[NodeFlowLoader]) -> list[list[Tensor]]:
    """The gradients of every step: the mean over the ranks, as DistributedDataParallel takes it."""
    found = []
    for parts in zip(*ranks, strict=True):
        mean = [torch.zeros_like(parameter) for parameter in modules.parameters()]
        for batch, loader in zip(parts, ranks, strict=True):
            modules.zero_grad()
            loss(batch, loader).backward()
            for total, parameter in zip(mean, modules.parameters(), strict=True):
                # DistributedDataParallel waits for every parameter
                assert parameter.grad is not None
                assert torch.isfinite(parameter.grad).all()
                if len(batch.seeds) == 0:
                    assert not parameter.grad.any()
                total += parameter.grad / len(ranks)
        found.append(mean)
    return found


def assert_equal(found: list[list[Tensor]], wanted: list[list[Tensor]]) -> None:
    assert len(found) == len(wanted) > 1
    for mine, its in zip(found, wanted, strict=True):
        for one, other in zip(mine, its, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)
            assert other.any()


def of_nodes(model: nn.Module) -> Step:
    def loss(batch: NodeFlow, loader: NodeFlowLoader) -> Tensor:
        out = model(batch, X[batch.front.parent_nid])[batch.seed_index]
        labels = LABEL[batch.seeds[batch.seed_index]]
        return F.cross_entropy(out, labels, reduction="sum") * loader.seed_weight

    return loss


class Dropped(nn.Module):
    """A model with dropout by node in between; the step is that of the loader."""

    def __init__(self) -> None:
        super().__init__()
        self.model = GraphSAGE(5, 8, 3).double()
        self.drop = NodeDropout(0.4, seed=2)
        self.step = 0

    def forward(self, batch: NodeFlow, h: Tensor) -> Tensor:
        h = self.drop(h, batch.layers[0], layer=0, step=self.step)
        h = self.drop(
            self.model.convs[0](batch.flows[0], h), batch.layers[1], layer=1, step=self.step
        )
        return self.model.convs[1](batch.flows[1], h)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "sage": lambda: GraphSAGE(5, 8, 3),
    "gcn": lambda: GCN(5, 8, 3, norm="layer"),
    "gat": lambda: GAT(5, 8, 3, heads=2, residual=True),
    "jumping": lambda: GraphSAGE(5, 8, 3, jumping="cat"),
    "dropout by node": Dropped,
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", ["even", "owned"])
def test_the_mean_over_ranks_is_the_gradient_of_one_process(name, share):
    sampler = NeighborSampler(GRAPH, [2, 3], seed=1)
    given: dict[str, Any] = {"seeds": SEEDS, "total": 8, "shuffle": True}
    torch.manual_seed(0)
    model = MODELS[name]().double()
    wanted = gradients(model, of_nodes(model), loaders(sampler, 1, **given))
    more = {} if share == "even" else {"share": Random(1).integers(range(NODES), 2)}
    for world_size in (2, 4):  # of four, two own nothing
        assert_equal(
            gradients(model, of_nodes(model), loaders(sampler, world_size, **given, **more)), wanted
        )


def test_a_step_of_one_seed():
    """All shares but one are empty."""
    torch.manual_seed(0)
    model = GraphSAGE(5, 8, 3).double()
    sampler = NeighborSampler(GRAPH, [2, 3])
    given: dict[str, Any] = {"seeds": [*range(8), int(GRAPH.in_degrees().argmax())], "total": 4}
    wanted = gradients(model, of_nodes(model), loaders(sampler, 1, **given))
    ranks = loaders(sampler, 4, **given)
    assert_equal(gradients(model, of_nodes(model), ranks), wanted)
    assert [loader.seed_weight for loader in ranks] == [4.0] * 4


@pytest.mark.parametrize("kind", [DotProduct, DistMult, Bilinear])
@pytest.mark.parametrize("options", [{}, {"chunk": 2, "corrupt": "both", "filter_known": "mark"}])
def test_links(kind, options):
    """Negatives are those of the step; three seeds in two chunks leave ranks without any."""
    sampler = NeighborSampler(GRAPH, [2, 3])
    links = LinkSampler(sampler, num_negatives=4, relation="type", **options)
    torch.manual_seed(0)
    both = nn.ModuleDict({"model": GraphSAGE(5, 8, 4), "decoder": kind(4, 3)}).double()

    def loss(batch: NodeFlow, loader: NodeFlowLoader) -> Tensor:
        h = both["model"](batch, X[batch.front.parent_nid])
        positive, negative = both["decoder"].score_chunks(h, batch)
        return softmax_loss(positive, negative, reduction="sum") * loader.seed_weight

    given: dict[str, Any] = {"seeds": [3, 77, 140, 9, 400, 41, 18, 256, 30, 31, 32], "total": 8}
    wanted = gradients(both, loss, loaders(links, 1, **given))
    for world_size in (2, 4):
        assert_equal(gradients(both, loss, loaders(links, world_size, **given)), wanted)


def test_batch_norm_has_rows_of_its_own():
    """The exception: rows are normalised within a share. An empty share leaves the running
    statistics as they are.
    """
    torch.manual_seed(0)
    model = GraphSAGE(5, 8, 3, norm="batch").double()
    sampler = NeighborSampler(GRAPH, [2, 3])
    ranks = loaders(sampler, 2, seeds=[4], total=2)
    (batch,) = ranks[1]
    assert batch.layer_sizes == (0, 0, 0)
    before = {
        name: value.clone()
        for name, value in model.named_buffers()
        if name.endswith(("mean", "var"))
    }
    of_nodes(model)(batch, ranks[1]).backward()
    for name, value in model.named_buffers():
        assert name not in before or value.equal(before[name])
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())
