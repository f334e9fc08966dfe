"""Initialisers of frames: what fills the rows of new columns that nobody computes."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from nodeflow import Frame, FullSampler, Graph, NodeFlow, create_full_node_flow, fn


def sevens(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.full(shape, 7, dtype=dtype, device=device)


@pytest.fixture
def batch() -> NodeFlow:
    made = create_full_node_flow(Graph.from_edges([0, 1], [1, 2]), 1)
    made.ldata[0]["h"] = torch.tensor([1.0, 2.0, 3.0])
    return made


def test_where_rows_are_initial(batch: NodeFlow) -> None:
    last = batch.ldata[1]
    last.set_initializer(sevens)
    last.set_initializer(lambda shape, dtype, device: torch.ones(shape, dtype=dtype), "one")
    batch.apply_layers(1, lambda nodes: {"a": torch.zeros(1, 2), "one": torch.zeros(1)}, v=[1])
    assert last["a"].tolist() == [[7.0, 7.0], [0.0, 0.0], [7.0, 7.0]]
    assert last["one"].tolist() == [1.0, 0.0, 1.0]
    batch.flow_compute(0, fn.copy_u("h", "m"), fn.sum("m", "s"), v=[0, 1])
    assert last["s"].tolist() == [0.0, 1.0, 7.0]  # the sum of no messages is 0
    batch.flow_compute(0, fn.copy_u("h", "m"), lambda nodes: {"r": nodes.mailbox["m"].sum(1)})
    assert last["r"].tolist() == [7.0, 1.0, 2.0]  # but a function of the user's own is not called without messages
    batch.fdata[0].set_initializer(sevens)
    batch.apply_flows(0, fn.copy_u("h", "e"), edges=[1])
    assert batch.fdata[0]["e"].tolist() == [7.0, 2.0]
    last["a"] = torch.zeros(3, 2)
    batch.apply_layers(1, lambda nodes: {"a": torch.ones(1, 2)}, v=[1])
    assert last["a"][:, 0].tolist() == [0.0, 1.0, 0.0]  # rows of a column that is there stay


def test_new_columns_of_the_parent() -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    graph.ndata.set_initializer(sevens)
    batch = FullSampler(graph, 1)([2])
    batch.ldata[-1]["h"] = torch.tensor([3])
    batch.copy_to_parent({-1: ["h"]}, None)
    assert graph.ndata["h"].tolist() == [7, 7, 3]


def test_copies_keep_initializers_and_pickles_do_not(batch: NodeFlow) -> None:
    frame = Frame(2, {"x": torch.zeros(2)})
    frame.set_initializer(sevens)
    other = torch.zeros(1)
    for copied, kept in ((frame.copy(), True), (frame.to("cpu"), True), (pickle.loads(pickle.dumps(frame)), False)):
        assert copied.has_initializer("y") is kept
        assert copied.initial("y", 1, other).tolist() == [7.0 if kept else 0.0]
    copied = frame.copy()
    copied.set_initializer(None)
    copied.set_initializer(None, "unknown")
    assert (copied.has_initializer("y"), frame.has_initializer("y")) == (False, True)
    assert not copy.deepcopy(frame).has_initializer("y")
    batch.ldata[0].set_initializer(sevens)
    assert batch[:1].ldata[0].has_initializer("y")


def test_wrong_initializers() -> None:
    frame = Frame(2)
    with pytest.raises(TypeError, match="function of"):
        frame.set_initializer(3)  # type: ignore[arg-type]
    like = torch.zeros(1, 2)
    for wrong in (lambda *_: torch.zeros(2), lambda *_: torch.zeros(2, 2).long(), lambda *_: None):
        frame.set_initializer(wrong)
        with pytest.raises(ValueError, match="initializer of column 'h' must return"):
            frame.initial("h", 2, like)
