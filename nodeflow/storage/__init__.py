"""Graphs and their rows in files, larger than memory.

- ``_build``: a graph folder from files of edges, by counting in bounded memory (``_sorting``). ``_edge_files`` reads
  what users have, piece by piece; ``_edge_text`` reads the text among it.
- ``_files``: arrays in files that a program writes itself.
"""

from nodeflow.storage._build import build_graph, node_names
from nodeflow.storage._files import create

__all__ = ["build_graph", "create", "node_names"]
