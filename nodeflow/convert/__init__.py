"""Graphs and NodeFlows from and to other libraries, each imported only by the functions that need it."""

from nodeflow.convert._dgl import from_dgl as from_dgl
from nodeflow.convert._dgl import from_dgl_blocks as from_dgl_blocks
from nodeflow.convert._dgl import to_dgl as to_dgl
from nodeflow.convert._dgl import to_dgl_blocks as to_dgl_blocks
from nodeflow.convert._igraph import from_igraph as from_igraph
from nodeflow.convert._igraph import to_igraph as to_igraph
from nodeflow.convert._matrices import from_scipy as from_scipy
from nodeflow.convert._matrices import from_torch_sparse as from_torch_sparse
from nodeflow.convert._matrices import to_scipy as to_scipy
from nodeflow.convert._matrices import to_torch_sparse as to_torch_sparse
from nodeflow.convert._networkx import from_networkx as from_networkx
from nodeflow.convert._networkx import to_networkx as to_networkx
from nodeflow.convert._pyg import from_pyg as from_pyg
from nodeflow.convert._pyg import pyg_loader as pyg_loader
from nodeflow.convert._pyg import to_pyg as to_pyg
from nodeflow.convert._pyg_batch import from_pyg_batch as from_pyg_batch
from nodeflow.convert._tables import from_edge_table as from_edge_table
from nodeflow.convert._tables import to_edge_table as to_edge_table
from nodeflow.convert._tables import to_node_table as to_node_table

__all__ = [
    "from_dgl",
    "from_dgl_blocks",
    "from_edge_table",
    "from_igraph",
    "from_networkx",
    "from_pyg",
    "from_pyg_batch",
    "from_scipy",
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
