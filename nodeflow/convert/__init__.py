"""Graphs and NodeFlows from and to other libraries, each imported only by the functions that need
it.
"""

from nodeflow.convert._attributes import from_igraph, from_networkx, to_igraph, to_networkx
from nodeflow.convert._dgl import from_dgl, from_dgl_blocks, to_dgl, to_dgl_blocks
from nodeflow.convert._edge_tables import from_edge_table, to_edge_table, to_node_table
from nodeflow.convert._from_pyg import from_pyg, from_pyg_batch
from nodeflow.convert._from_tables import from_tables
from nodeflow.convert._matrices import from_scipy, from_torch_sparse, to_scipy, to_torch_sparse
from nodeflow.convert._to_pyg import pyg_loader, to_pyg

__all__ = [
    "from_dgl",
    "from_dgl_blocks",
    "from_edge_table",
    "from_igraph",
    "from_networkx",
    "from_pyg",
    "from_pyg_batch",
    "from_scipy",
    "from_tables",
    "from_torch_sparse",
    "pyg_loader",
    "to_dgl",
    "to_dgl_blocks",
    "to_edge_table",
    "to_igraph",
    "to_networkx",
    "to_node_table",
    "to_pyg",
    "to_scipy",
    "to_torch_sparse",
]
