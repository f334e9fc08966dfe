"""GIN with estimator weights, with which its sums over drawn neighbours are unbiased, and the model made of it."""

from __future__ import annotations

import pytest
import torch
from _support.nn_reference import as_csr, assert_near, dense, dense_gin, gradients, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from nodeflow import (
    BernoulliSampler,
    FastGCNSampler,
    Flow,
    Graph,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    create_full_node_flow,
)
from nodeflow.nn import GIN, GINConv
from nodeflow.sampling.base import SamplerBase

SRC = [1, 2, 3, 4, 5, 2, 3, 5, 0, 3]
DST = [0, 0, 0, 0, 0, 1, 1, 1, 4, 4]
GRAPH = Graph.from_edges(SRC, DST, num_nodes=6)
SAMPLERS: dict[str, SamplerBase] = {
    "neighbor": NeighborSampler(GRAPH, [2]),
    "replace": NeighborSampler(GRAPH, [2], replace=True),
    "labor": LaborSampler(GRAPH, [2]),
    "bernoulli": BernoulliSampler(GRAPH, [2]),
    "ladies": LadiesSampler(GRAPH, [3]),
    "fastgcn": FastGCNSampler(GRAPH, [4]),
}


def make(weighted: bool = True) -> GINConv:
    mlp = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return GINConv(mlp, eps=0.5, train_eps=True, weighted=weighted).double()


def weighted_adjacency(flow: Flow) -> Tensor:
    src, dst = flow.edges()
    matrix = torch.zeros(flow.num_dst, flow.num_src, dtype=torch.float64)
    return matrix.index_put((dst, src), flow.weight.double(), accumulate=True)


@pytest.mark.parametrize("name", SAMPLERS)
@given(epoch=st.integers(0, 10**6))
def test_edges_are_multiplied_by_their_weights(name: str, epoch: int) -> None:
    conv, flow = make(), SAMPLERS[name]([0, 1, 5], epoch=epoch).flows[0]
    h = values((flow.num_src, 3)).requires_grad_()
    found = conv(flow, h)
    expected = dense_gin(weighted_adjacency(flow), dense(flow)[1], conv, h)
    assert_near(found, expected)
    inputs = (h, *conv.parameters())
    for one, other in zip(gradients(found, *inputs), gradients(expected, *inputs), strict=True):
        assert_near(one, other)


def test_what_is_printed() -> None:
    assert "weighted" in repr(make())
    assert "weighted" not in repr(make(weighted=False))


# the model


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_model_is_its_layers(layers: int) -> None:
    model = GIN(3, 8, 2, num_layers=layers).double().eval()
    widths = [3, *[8] * (layers - 1), 2]
    for conv, i, o in zip(model.convs, widths[:-1], widths[1:], strict=True):
        assert (conv.mlp[0].in_features, conv.mlp[-1].out_features, conv.weighted) == (i, o, True)
    x = values((6, 3))
    h = x
    for number, conv in enumerate(model.convs, 1):
        full = create_full_node_flow(GRAPH, 1).flows[0]
        h = dense_gin(weighted_adjacency(full), torch.eye(6, dtype=torch.float64), conv, h)
        h = h if number == layers else h.relu()
    assert_near(model(create_full_node_flow(GRAPH, layers), x), h)
    assert_near(model.inference(GRAPH, x), h)


def test_further_arguments_go_to_the_convolutions() -> None:
    model = GIN(3, 8, 2, num_layers=2, eps=0.25, weighted=False, dropout=0.5, norm="layer")
    assert [float(conv.eps) for conv in model.convs] == [0.25, 0.25]
    assert not any(conv.weighted for conv in model.convs)
    with pytest.raises(TypeError, match=r"h is a sparse matrix"):
        model.eval()(create_full_node_flow(GRAPH, 2), as_csr(values((6, 3)).float()))


@pytest.mark.parametrize("norm", [None, "batch"])
def test_a_batch_of_one_node_trains(norm: str | None) -> None:
    """One row has no variance: it is normalised by the running ones, which stay as they are."""
    torch.manual_seed(0)
    model = GIN(3, 8, 2, num_layers=1 if norm is None else 2, norm=norm)
    batch = create_full_node_flow(Graph.from_edges([0], [0], num_nodes=1), len(model.convs))
    before = {name: value.clone() for name, value in model.named_buffers()}
    out = model.train()(batch, torch.ones(1, 3))
    assert torch.isfinite(out).all()
    assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    assert_near(out, model.eval()(batch, torch.ones(1, 3)))
    out.sum().backward()
