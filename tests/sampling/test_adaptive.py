"""Scores by the user: what they see, log-probabilities and gradients, and batches that grow layer
by layer.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from _support.layerwise_reference import law
from torch import Tensor, nn

from nodeflow import FullSampler, Graph, NodeFlowLoader
from nodeflow.sampling import LayerSampler

# destinations 4 and 5 and their edges; 1 -> 4 twice
SRC = [0, 1, 2, 0, 3, 1]
DST = [4, 4, 4, 5, 5, 4]
A = [1.0, 2.0, -1.0, 3.0, 1.0, 0.5]
GRAPH = Graph.from_edges(
    SRC, DST, num_nodes=6, edata={"w": torch.tensor(A)}, ndata={"x": torch.arange(12.0).view(6, 2)}
)


class ByNode(nn.Module):
    """A score with a parameter per node."""

    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(values, dtype=torch.float64))

    def forward(self, candidates, step) -> Tensor:
        return self.raw[candidates.nid]


def test_what_a_score_sees():
    seen = []

    def score(candidates, step):
        seen.append((candidates, step))
        return torch.ones(len(candidates))

    h = torch.rand(2, 3)
    sampler = LayerSampler(GRAPH.view(weight="w"), [2], score=score)
    sampler([5, 4], inputs=h, epoch=3)
    ((candidates, step),) = seen
    assert step.inputs is h
    assert step.flow == 0
    assert candidates.dst_nid.tolist() == [5, 4]
    assert candidates.nid.tolist() == [0, 3, 1, 2]  # in order of first appearance
    full = FullSampler(GRAPH.view(weight="w"), 1, include_dst=False)([5, 4])
    assert candidates.flow.parent_eid.tolist() == full.flows[0].parent_eid.tolist()
    assert candidates.edge_weight.tolist() == [3, 1, 1, 2, -1, 0.5]
    assert candidates.structure is candidates.flow.structure
    x = GRAPH.ndata["x"]
    sums = candidates.flow.aggregate(x[candidates.nid], "sum", weight=candidates.edge_weight)
    wanted = full.flows[0].aggregate(x[full.front.parent_nid], "sum", weight=full.flows[0].weight)
    torch.testing.assert_close(sums, wanted)
    sampler.without_edges([3])([5, 4])
    assert seen[-1][0].nid.tolist() == [3, 0, 1, 2]
    assert seen[-1][0].flow.parent_eid.tolist() == [4, 0, 1, 2, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_columns_of_the_source_layer(dtype):
    """draws and log q_u, at the rows of the drawn nodes, with zeros elsewhere."""
    values = torch.tensor([3, 1, 4, 2], dtype=dtype)
    sampler = LayerSampler(GRAPH.view(weight="w"), [3], score=lambda c, step: values[c.nid])
    for epoch in range(30):
        batch = sampler([4, 5], epoch=epoch)
        flow = batch.flows[0]
        layer = batch.layers[0]
        assert layer.data["draws"].dtype == torch.float32
        assert layer.data["log_prob"].dtype == (torch.float32 if dtype == torch.int64 else dtype)
        draws = dict(zip(layer.parent_nid.tolist(), layer.data["draws"].tolist(), strict=True))
        assert sum(draws.values()) == 3
        for u, log_prob in zip(
            layer.parent_nid.tolist(), layer.data["log_prob"].tolist(), strict=True
        ):
            wanted = math.log(int(values[u]) / 10) if draws[u] else 0
            assert log_prob == pytest.approx(wanted, rel=1e-6)
        for e, row, w in zip(
            flow.parent_eid.tolist(), flow.indices.tolist(), flow.weight.tolist(), strict=True
        ):
            u = int(layer.parent_nid[row])
            assert w == pytest.approx(A[e] * draws[u] / (3 * int(values[u]) / 10), rel=1e-6)
        assert not flow.weight.requires_grad
        assert not batch.layers[1].data


@pytest.mark.parametrize("draw", ["poisson", "systematic"])
def test_log_inclusion_probabilities_and_their_gradient(draw):
    """Scores 10, 1, 2, 1 of size 2: node 0 is certain, the others have (2 - 1) * score / 4."""
    score = ByNode([10.0, 1.0, 2.0, 1.0])
    seen = set()
    for epoch in range(40):
        batch = LayerSampler(GRAPH, [2], score=score, draw=draw)([4, 5], epoch=epoch)
        data = batch.layers[0].data
        nid = batch.layers[0].parent_nid.tolist()
        for u in set(nid) - {4, 5}:
            found = data["log_prob"][nid.index(u)]
            assert data["draws"][nid.index(u)] == 1
            assert found.item() == pytest.approx(
                0 if u == 0 else math.log([10, 1, 2, 1][u] / 4), abs=1e-12
            )
            score.zero_grad()
            found.backward(retain_graph=True)
            wanted = torch.full((4,), -1 / 4)
            wanted[u] += 1 / float(score.raw[u].detach())
            wanted[0] = 0
            torch.testing.assert_close(
                score.raw.grad, torch.zeros(4) + wanted * (u != 0), check_dtype=False
            )
            seen.add(u)
    assert seen == {0, 1, 2, 3}
    everything = LayerSampler(GRAPH, [4], score=ByNode([1.0, 2.0, 3.0, 0.0]), draw=draw)(
        [4, 5]
    ).layers[0]
    assert everything.data["log_prob"].tolist() == [0] * 5  # node 3 has no chance
    everything.data["log_prob"].sum().backward()


def test_the_gradient_of_the_variance_by_enumeration():
    """The mean over all multisets of the gradients that the documentation gives is that of the
    variance's formula.
    """
    values = [3, 1, 4, 2]
    size = 2
    score = ByNode([float(v) for v in values])
    h = torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0, 0.0], dtype=torch.float64)
    src = torch.tensor(SRC)
    dst = torch.tensor(DST)
    a = torch.tensor(A, dtype=torch.float64)
    q = score.raw / score.raw.sum()
    given = torch.zeros(6, 4, dtype=torch.float64).index_put_(
        (dst, src), a * h[src], accumulate=True
    )
    variance = ((given**2 / q).sum() - given.sum(1).square().sum()) / size
    (exact,) = torch.autograd.grad(variance, score.raw)

    sampler = LayerSampler(GRAPH.view(weight="w"), [size], score=score)
    table = law(range(4), values, size, "replacement")
    gradients = {}
    for epoch in itertools.count():
        batch = sampler([4, 5], epoch=epoch)
        layer = batch.layers[0]
        flow = batch.flows[0]
        nid = layer.parent_nid
        draws = layer.data["draws"]
        outcome = tuple(
            sorted((u, int(n)) for u, n in zip(nid.tolist(), draws.tolist(), strict=True) if n)
        )
        if outcome not in gradients:
            ends, u = (ids for ids in reversed(flow.edges()))
            times = draws.double()[u]
            # what a destination got from a node, in one draw: edges of a pair are added up before
            # they are squared
            pair = torch.zeros(flow.num_dst, flow.num_src, dtype=torch.float64)
            pair = pair.index_put_(
                (ends, u), flow.weight.double() * h[nid[u]] / times, accumulate=True
            )
            loss = -(pair.square().sum(0) * draws * layer.data["log_prob"]).sum()
            # and the general way: weights that have a gradient, beside the score function
            kind = a[flow.parent_eid] * times / (size * layer.data["log_prob"].exp()[u])
            received = torch.zeros(flow.num_dst, dtype=torch.float64).index_add(
                0, ends, kind * h[nid[u]]
            )
            error = (received - given.detach().sum(1)[[4, 5]]).square().sum()
            general = error + error.detach() * (layer.data["log_prob"] * draws).sum()
            gradients[outcome] = torch.stack(
                [torch.autograd.grad(x, score.raw, retain_graph=True)[0] for x in (loss, general)]
            )
        if len(gradients) == len(table):
            break
        assert epoch < 2000
    mean = sum(float(p) * gradients[outcome] for outcome, p in table.items())
    # weights are float32
    torch.testing.assert_close(mean[0], exact, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(mean[1], exact, rtol=1e-6, atol=1e-6)


def test_a_score_is_shown_by_its_name():
    score = ByNode([1.0, 2.0, 3.0, 0.5, 1.0, 1.0])
    sampler = LayerSampler(GRAPH, [2, 2], score=score, seed=4)
    assert "score='ByNode'" in repr(sampler)
    assert NodeFlowLoader(sampler, range(6), 2).state_dict()["sampler"]["score"] == repr(
        sampler.settings["score"]
    )
    assert "score" not in repr(LayerSampler(GRAPH, [2]))


def test_where_there_are_no_candidates():
    def never(candidates, step):
        raise AssertionError("nothing to score")

    batch = LayerSampler(GRAPH, [2, 2], score=never)([0, 1])
    assert batch.flow_sizes == (0, 0)
    for layer in batch.layers[:2]:
        assert layer.data["log_prob"].tolist() == layer.data["draws"].tolist() == [0, 0]
    assert LayerSampler(GRAPH, [2], score=never)([]).layer_sizes == (0, 0)


def test_arrays_are_scores_too():
    one = LayerSampler(GRAPH, [2], score=lambda c, step: np.arange(1.0, len(c) + 1))([4, 5])
    other = LayerSampler(GRAPH, [2], score=lambda c, step: torch.arange(1.0, len(c) + 1))([4, 5])
    assert torch.equal(one.flows[0].parent_eid, other.flows[0].parent_eid)
