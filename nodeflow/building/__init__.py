"""Graph folders from files of edges, in bounded memory.

- ``_build``: the folder, by counting and sorting pieces (``_sorting``).
- ``_edge_files`` reads the files that users have, piece by piece.
"""

from nodeflow.building._build import build_graph, node_names

__all__ = ["build_graph", "node_names"]
