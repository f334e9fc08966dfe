"""Calls that do not fit a signature say what is meant, and calls that fail inside raise their own
errors.
"""

from __future__ import annotations

import inspect

import pytest
import torch

from nodeflow import NodeFlowLoader, nn
from nodeflow._core.base.calls import Explained, checked
from nodeflow.compat.dgl import DGLGraph
from nodeflow.compat.dgl.contrib.sampling.sampler import create_full_nodeflow
from nodeflow.testing import assert_valid


def test_errors_from_within_are_their_own():
    class Returns(metaclass=Explained):
        def __init__(self) -> None:
            return 3  # type: ignore[return-value]

    with pytest.raises(TypeError, match="should return None, not 'int'"):
        Returns()


def test_a_device_may_be_left_out_by_name():
    def moved(device: torch.device | str | None = None) -> object:
        return device

    assert checked(moved)(device=None) is None
    with pytest.raises(ValueError, match="device 'nowhere' is not there"):
        checked(moved)("nowhere")


def test_a_class_of_compat_is_not_the_one_whose_name_it_has():
    with pytest.raises(TypeError, match="batch must be a NodeFlow, got"):
        assert_valid(create_full_nodeflow(DGLGraph([(0, 1)]), 1))  # type: ignore[arg-type]


def test_signatures_are_those_of_the_class():
    assert [*inspect.signature(nn.GraphSAGE).parameters][:4] == [
        "in_features",
        "hidden",
        "out_features",
        "num_layers",
    ]
    assert "batch_size" in inspect.signature(NodeFlowLoader).parameters
