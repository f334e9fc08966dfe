"""A batch is freed when the last name of it goes. In a circle of references it would stay until
Python looks for circles, and the memory of its columns could not serve the next batch.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
from _support.graphs import typed_graph
from _support.sampler_families import FAMILIES, graph_of_all, sampled

from nodeflow import ControlVariateSampler, History, NeighborSampler, NodeFlowLoader
from nodeflow.nn import GraphSAGE


@pytest.fixture
def circles() -> Iterator[list[object]]:
    """A list that the search for circles fills, instead of freeing what it finds."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()
    gc.collect()


def of_the_package(garbage: list[object]) -> list[str]:
    gc.collect()
    names = [f"{type(thing).__module__}.{type(thing).__qualname__}" for thing in garbage]
    return sorted({name for name in names if name.startswith(("nodeflow.", "torch."))})


@pytest.mark.parametrize("name", FAMILIES)
def test_batches_of_every_sampler_are_no_circles(name, circles):
    sampler = FAMILIES[name](graph_of_all())
    gc.collect()
    circles.clear()
    for epoch in range(3):
        sampled(name, sampler, epoch=epoch)
    assert of_the_package(circles) == []


def test_batches_by_type_are_no_circles(circles):
    batch = NeighborSampler(typed_graph(0), [2, 2])({"a": [0, 1]})
    names = [batch.layers[0].of(name).parent_nid for name in batch.layers[0].schema.nodes]
    del batch, names
    assert of_the_package(circles) == []


def test_a_step_of_training_leaves_no_circle(circles):
    graph = graph_of_all()
    model = GraphSAGE(2, 4, 2)
    loader = NodeFlowLoader(
        NeighborSampler(graph, [2, 2]), range(40), 10, ndata={0: ["x"]}, num_workers=2
    )
    for batch in loader:
        model(batch, batch.ldata[0]["x"]).sum().backward()
    del batch
    assert of_the_package(circles) == []


def test_a_batch_with_history_is_no_circle(circles):
    history = History(graph_of_all(), {1: 4})
    batch = ControlVariateSampler(history, [2, 2])([3, 4])
    history.pull(batch)
    batch.ldata[1]["h"] = torch.ones(batch.layer_sizes[1], 4)
    history.commit(batch)
    del batch
    assert of_the_package(circles) == []
