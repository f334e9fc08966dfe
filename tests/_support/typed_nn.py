"""Small graphs of several node types, and PyTorch Geometric's view of a flow, for layers of several
types.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow import Flow, Graph
from nodeflow.graph import Schema

TYPES = {"author": 7, "type": 3, "paper.x": 9, "empty": 0}  # names that nn.ModuleDict refuses too
RELATIONS = [
    ("author", "writes", "paper.x"),
    ("paper.x", "cites", "paper.x"),
    ("type", "of", "paper.x"),
    ("paper.x", "rev_writes", "author"),
    ("author", "knows", "author"),
    ("empty", "in", "author"),
]  # no relation enters "type" and "empty"


def typed_graph(seed: int = 0, edges: int = 25, width: int = 8) -> Graph:
    """Return a graph with isolated nodes, parallel edges, and types that no edge enters; features
    of three widths.
    """
    generator = torch.Generator().manual_seed(seed)

    def ends(name: str, count: int) -> Tensor:
        return torch.randint(max(TYPES[name], 1), (count,), generator=generator)

    def pairs(relation: tuple[str, str, str]) -> tuple[Tensor, Tensor]:
        count = edges if TYPES[relation[0]] and TYPES[relation[2]] else 0
        return ends(relation[0], count), ends(relation[2], count)

    nodes = {
        name: {"x": torch.randn(size, width + i, generator=generator, dtype=torch.float64)}
        for i, (name, size) in enumerate(TYPES.items())
    }
    return Graph.typed(nodes, {relation: pairs(relation) for relation in RELATIONS})


def by_type(schema: Schema, parent_nid: Tensor, rows: Tensor) -> dict[str, Tensor]:
    """Return the rows of the nodes of each type."""
    ids = {
        name: (parent_nid >= own.start) & (parent_nid < own.stop)
        for name, own in schema.nodes.items()
    }
    return {name: rows[where] for name, where in ids.items()}


def pyg_view(flow: Flow, schema: Schema) -> dict[tuple[str, str, str], Tensor]:
    """Return the edges of each relation as pairs of rows within the types of both layers, from
    parent ids alone.
    """
    src, dst = flow.edges()
    places = []
    for layer in (flow.src_layer, flow.dst_layer):
        place = torch.zeros(layer.num_nodes, dtype=torch.int64)
        for own in schema.nodes.values():
            where = (layer.parent_nid >= own.start) & (layer.parent_nid < own.stop)
            place[where] = torch.arange(int(where.sum()))
        places.append(place)
    edges = {}
    for relation, own in schema.relations.items():
        where = (flow.parent_eid >= own.start) & (flow.parent_eid < own.stop)
        edges[relation] = torch.stack([places[0][src[where]], places[1][dst[where]]])
    return edges
