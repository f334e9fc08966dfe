"""Calls that do not fit a signature say what is meant, and calls that fail inside raise their own
errors.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nodeflow import Graph, LinkSampler, NeighborSampler, NodeFlowLoader, nn
from nodeflow._core.base.calls import Explained, checked
from nodeflow.compat.dgl import DGLGraph
from nodeflow.compat.dgl.contrib.sampling.sampler import create_full_nodeflow
from nodeflow.testing import assert_valid

GRAPH = Graph.from_edges([0, 1], [1, 0])
ONE = NeighborSampler(GRAPH, [1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: nn.GraphSAGE(in_channels=4, hidden=4, out_features=2),
            "'in_channels'; it is called in_features=",
        ),
        (lambda: nn.GraphSAGE(4, 4), "GraphSAGE: missing a required argument: 'out_features'"),
        (
            lambda: nn.GraphSAGE(4, aggregator="mean"),
            "GraphSAGE: missing a required argument: 'hidden'",
        ),
        (
            lambda: nn.GAT(4, 4, 4, num_heads=2),
            "GATConv got .* 'num_heads'; it is called heads= here",
        ),
        (
            lambda: nn.DistMult(64, num_rels=4),
            "DistMult got .* 'num_rels'; it is called num_relations=",
        ),
        (
            lambda: nn.TransE(4, gamma=1),
            "TransE got .* 'gamma'; it takes width, num_relations, inverse, norm",
        ),
        (
            lambda: nn.SAGEConv(4, 4, aggregator_type="mean"),
            "SAGEConv got .* it is called aggregator=",
        ),
        (
            lambda: nn.SAGEConv(1, 2, "mean", False, True, "auto", 3),
            "SAGEConv: too many positional",
        ),
        (lambda: LinkSampler(ONE, neg_ratio=3), "LinkSampler got .* it is called num_negatives="),
        (lambda: NodeFlowLoader(ONE, input_nodes=[1]), "NodeFlowLoader got .* it is called seeds="),
    ],
)
def test_an_argument_that_is_not_taken_is_explained(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_errors_from_within_are_their_own() -> None:
    with pytest.raises(TypeError, match=re.escape("in_features must be an integer, got str 'a'")):
        nn.GraphSAGE("a", 4, 4)

    class Returns(metaclass=Explained):
        def __init__(self) -> None:
            return 3  # type: ignore[return-value]

    with pytest.raises(TypeError, match="should return None, not 'int'"):
        Returns()


def test_a_device_may_be_left_out_by_name() -> None:
    def moved(device: torch.device | str | None = None) -> object:
        return device

    assert checked(moved)(device=None) is None
    with pytest.raises(ValueError, match="device 'nowhere' is not there"):
        checked(moved)("nowhere")


def test_a_class_of_compat_is_not_the_one_whose_name_it_has() -> None:
    with pytest.raises(TypeError, match="batch must be a NodeFlow, got"):
        assert_valid(create_full_nodeflow(DGLGraph([(0, 1)]), 1))  # type: ignore[arg-type]


def test_signatures_are_those_of_the_class() -> None:
    assert [*inspect.signature(nn.GraphSAGE).parameters][:4] == [
        "in_features",
        "hidden",
        "out_features",
        "num_layers",
    ]
    assert "batch_size" in inspect.signature(NodeFlowLoader).parameters
