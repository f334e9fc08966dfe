"""Seeds by node type or relation, as ids and as masks; and columns of types that are asked of all
nodes.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from nodeflow import Graph, LinkSampler, NeighborSampler, NodeFlowLoader
from nodeflow.testing import assert_same_node_flow

WRITES = ("author", "writes", "paper")
EDGES = {WRITES: ([0, 1], [0, 3], {"share": torch.ones(2)}), ("paper", "at", "venue"): ([2], [0])}
GRAPH = Graph.typed(
    {"author": 3, "paper": {"x": torch.rand(4, 2)}, "venue": 1}, EDGES, reverse=True
)
SAMPLER = NeighborSampler(GRAPH, [2])
MASK = torch.tensor([True, False, False, True])


@pytest.mark.parametrize(
    ("seeds", "ids"),
    [
        ({"paper": [3, 0]}, [6, 3]),
        ({"paper": MASK}, [3, 6]),
        ({"venue": np.array([True]), "author": torch.tensor([2, 0])}, [7, 2, 0]),
        ({"venue": []}, []),
        ({}, []),
    ],
)
def test_a_dict_is_the_ids_of_its_types(seeds, ids):
    batch = SAMPLER(seeds)
    assert_same_node_flow(batch, SAMPLER(ids))
    assert batch.seed_ids.tolist() == ids
    loader = NodeFlowLoader(SAMPLER, seeds, batch_size=2)
    assert loader.seeds.tolist() == ids


def test_links_by_relation():
    links = LinkSampler(SAMPLER, num_negatives=1)
    assert_same_node_flow(links({"at": [0], WRITES: [1]}), links([2, 1]))


@pytest.mark.parametrize(
    "way", [lambda graph: graph, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))]
)
def test_a_column_of_a_type_is_no_column_of_all_nodes(way):
    graph = way(GRAPH)
    with pytest.raises(KeyError, match=r"'x'; .* of one type are in graph.nodes\[type\].data"):
        graph.ndata["x"]
    with pytest.raises(
        KeyError, match=r"'share'; .*of one relation in graph.relations\[name\].data"
    ):
        NeighborSampler(graph.view(where=lambda edata: edata["share"] > 0), [2])
    with pytest.raises(KeyError, match="no column 'y'; the frame has no columns"):
        graph.ndata["y"]
