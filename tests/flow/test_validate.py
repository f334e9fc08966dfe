"""validate() finds every broken invariant, wherever it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from _support.unchecked_parts import unchecked, with_cells
from hypothesis import given

from nodeflow import (
    Flow,
    Frame,
    FullSampler,
    Layer,
    NodeFlow,
)
from nodeflow.ops import Structure
from nodeflow.testing import assert_valid, node_flows


@given(node_flows())
def test_what_is_made_is_valid(batch):
    batch.validate()


def in_place(change: Callable[[NodeFlow], Any]) -> Callable[[NodeFlow], NodeFlow]:
    def broken(batch: NodeFlow) -> NodeFlow:
        change(batch)
        return batch

    return broken


def with_first_flow(**parts: Any) -> Callable[[NodeFlow], NodeFlow]:
    """The NodeFlow with other parts in its first flow."""

    def broken(batch: NodeFlow) -> NodeFlow:
        flow = batch.flows[0]
        indptr = parts.get("indptr", flow.indptr)
        indices = parts.get("indices", flow.indices)
        structure = unchecked(Structure, indptr, indices, parts.get("num_src", flow.num_src))
        cells = {name: parts[name] for name in ("parent_eid", "weight") if name in parts}
        made = with_cells(
            Flow,
            structure,
            *parts.get("ends", batch.layers[:2]),
            (0, 1),
            data=parts.get("data"),
            cells=cells,
        )
        return unchecked(NodeFlow, batch.layers[:], [made, *batch.flows[1:]], parent=batch.parent)

    return broken


def with_back(layer: Layer) -> Callable[[NodeFlow], NodeFlow]:
    def broken(batch: NodeFlow) -> NodeFlow:
        flow = batch.flows[1].between(batch.layers[1], layer, (1, 2))
        return unchecked(
            NodeFlow, [*batch.layers[:2], layer], [batch.flows[0], flow], parent=batch.parent
        )

    return broken


STRUCTURE = Structure(torch.tensor([0, 2]), torch.tensor([0, 1]), 2)

# the batch is seeds [1, 2] of the graph: layers [1, 2, 0, 4], [1, 2, 0], [1, 2]; flow 0 has 6
# edges, flow 1 has 5
BROKEN = {
    "layer 0: a parent id is out of range": in_place(lambda b: b.front.parent_nid.fill_(6)),
    "layer 2: a parent id is out of range": with_back(unchecked(Layer, 2, torch.tensor([1, -1]))),
    "layer 0 holds parent node 1 twice, without contexts": in_place(
        lambda b: b.front.parent_nid[3:].fill_(1)
    ),
    "layer 2: 2 nodes but 1 parent ids": with_back(unchecked(Layer, 2, torch.tensor([1]))),
    "layer 2: parent ids must be int64": with_back(
        unchecked(Layer, 2, torch.tensor([1, 2], dtype=torch.int32))
    ),
    "layer 2: wrong number of rows in its frame": with_back(
        unchecked(Layer, 2, torch.tensor([1, 2]), Frame(3))
    ),
    "flow 0->1 joins other layers": with_first_flow(ends=(Layer(4), Layer(3))),
    "flow 0->1: indptr and indices must be int64": with_first_flow(
        indices=torch.zeros(6, dtype=torch.int32)
    ),
    "flow 0->1: indptr must have one entry more": with_first_flow(indptr=torch.tensor([0, 6])),
    "flow 0->1: wrong number of sources": with_first_flow(num_src=5),
    "flow 0->1: indptr must end at 6": with_first_flow(indptr=torch.tensor([0, 1, 2, 3])),
    "flow 0->1: indptr decreases": with_first_flow(indptr=torch.tensor([0, 5, 3, 6])),
    "flow 0->1: an edge starts at a row that is no source": in_place(
        lambda b: b.flows[0].indices[0].fill_(4)
    ),
    "flow 1->2: an edge starts at a row that is no source": in_place(
        lambda b: b.flows[1].indices[0].fill_(-1)
    ),
    "flow 0->1: wrong number of rows in its frame": with_first_flow(data=Frame(2)),
    "flow 0->1: wrong number of estimator weights": with_first_flow(weight=torch.ones(2)),
    "flow 0->1: wrong number of parent edge ids": with_first_flow(parent_eid=torch.arange(2)),
    "flow 0->1: a parent edge id is out of range": with_first_flow(parent_eid=torch.full((6,), -2)),
    "flow 0->1: an edge and its parent edge join different nodes": with_first_flow(
        parent_eid=torch.zeros(6).long()
    ),
    "flow 1->2: an edge and its parent edge join different nodes": in_place(
        lambda b: b.flows[1].indices[0].fill_(0)
    ),
    "seed_index must hold rows of the last layer": in_place(lambda b: b.seed_index.fill_(2)),
}


@pytest.mark.parametrize("words", BROKEN)
def test_each_broken_invariant_is_named(graph, words):
    batch = FullSampler(graph, 2)([1, 2])
    assert (batch.layer_sizes, batch.flow_sizes) == ((4, 3, 2), (6, 5))
    batch.validate()
    broken = BROKEN[words](batch)
    with pytest.raises(ValueError, match=f"not a valid NodeFlow: {words}"):
        broken.validate()
    with pytest.raises(AssertionError, match=words):
        assert_valid(broken)


def test_constructors_take_parts_that_fit():
    low = Layer(2, torch.tensor([7, 3]))
    high = Layer(1, torch.tensor([7]))
    batch = NodeFlow(
        [low, high], [Flow(STRUCTURE, low, high, (0, 1), weight=torch.tensor([1.0, 2.0]))]
    )
    batch.validate()
    assert batch.flows[0].needs_weight
    assert batch.flows[0].dst_in_src.tolist() == [0]
