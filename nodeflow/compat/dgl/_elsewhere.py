"""Names of DGL 0.4 that have no stand-in, and where their users go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

_PAGE: Final = "see docs/coming-from-dgl.md"

_HETERO: Final = (
    "graphs of several types are outside of this layer; nodeflow has edge types (edge_type=, nodeflow.nn.RGCNConv)"
)
_SEND: Final = "messages are not kept between calls: use update_all, pull or apply_edges"
_LAYERS: Final = "use the layers of nodeflow.nn"
_DISTRIBUTED: Final = "use nodeflow.distributed, whose graphs and samplers work under torchrun"
_STATIC: Final = "edges and nodes are only added: build a new graph of those that are left"
_PARTS: Final = "use nodeflow.transform.subgraph on g.graph"

PACKAGE: Final = {
    "BatchedDGLGraph": "batches of small graphs are outside of this layer",
    "DGLError": "errors are Python's own: ValueError, TypeError, IndexError and KeyError",
    "DGLHeteroGraph": _HETERO,
    "batch": "batches of small graphs are outside of this layer",
    "bipartite": _HETERO,
    "data": "use nodeflow.datasets, or tensors of your own",
    "graph": _HETERO,
    "hetero_from_relations": f"{_HETERO}; for adaptive sampling use nodeflow.LayerSampler(score=...)",
    "heterograph": _HETERO,
    "metapath_reachable_graph": _HETERO,
    "nn": _LAYERS,
    "prop_nodes_bfs": _SEND,
    "sampling": "use nodeflow.RandomWalkSampler or nodeflow.NeighborSampler",
    "unbatch": "batches of small graphs are outside of this layer",
}
"""Of the package ``dgl``."""

SAMPLING: Final = {
    "EdgeSampler": "use nodeflow.LinkSampler, which draws negative edges too",
    "SamplerPool": _DISTRIBUTED,
    "SamplerReceiver": _DISTRIBUTED,
    "SamplerSender": _DISTRIBUTED,
    "random_walk": "use nodeflow.RandomWalkSampler",
}
"""Of ``dgl.contrib.sampling``."""

CONTRIB: Final = {"DistGraphStore": _DISTRIBUTED, "KVClient": _DISTRIBUTED, "graph_store": _DISTRIBUTED}
"""Of ``dgl.contrib``."""

GRAPH: Final = {
    "copy_from_parent": _PARTS,
    "copy_to_parent": _PARTS,
    "edge_subgraph": "use nodeflow.transform.filter_edges on g.graph",
    "filter_edges": "compute a mask from g.edata",
    "filter_nodes": "compute a mask from g.ndata",
    "group_apply_edges": "use flow.softmax and the other operations of nodeflow.ops",
    "init_edata": _DISTRIBUTED,
    "init_ndata": _DISTRIBUTED,
    "line_graph": "line graphs are outside of this layer",
    "local_scope": "copy the columns that are changed: old = dict(g.ndata)",
    "local_var": "DGLGraph(g) shares the structure and has frames of its own",
    "parent": _PARTS,
    "prop_edges": _SEND,
    "prop_nodes": _SEND,
    "push": _SEND,
    "recv": _SEND,
    "remove_edges": _STATIC,
    "remove_nodes": _STATIC,
    "reverse": "use nodeflow.transform.reverse(g.graph)",
    "send": _SEND,
    "send_and_recv": _SEND,
    "subgraph": _PARTS,
    "subgraphs": _PARTS,
    "to_networkx": "use nodeflow.convert.to_networkx(g.graph)",
}
"""Methods of ``DGLGraph``."""


def refuse_import(module: str, name: str) -> NoReturn:
    """Raise ImportError for a name of a module of DGL that has no stand-in."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"nodeflow.compat.dgl has no {module}.{name}: {PACKAGE[module]} ({_PAGE})")


def refuse(names: Mapping[str, str], owner: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that ``owner`` does not have; it says where to go, where that is known."""
    if name in names:
        raise AttributeError(f"{owner} has no {name!r} in nodeflow.compat.dgl: {names[name]} ({_PAGE})", name=name)
    raise AttributeError(f"{owner} has no attribute {name!r}", name=name)
